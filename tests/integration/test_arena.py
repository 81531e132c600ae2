"""Everything together: a control plane, an agent, game servers on both SDKs, and bots that play."""

import subprocess
from pathlib import Path

import players
import pytest
from agent_proc import Agent
from muster_proc import REPO, binary

PATIENCE_S = 60.0
GAMES = {"c": Path(binary()).parent / "arena", "python": REPO / "tests" / "lib" / "python_game.py"}


class Bot:
    """examples/arena_bot as this account."""

    def __init__(self, world, account, *arguments):
        self.process = subprocess.Popen(
            [str(REPO / "examples" / "arena_bot"), "--url", "http://%s:%d" % world.muster.http_address,
             "--token", players.token_of(world, account, "game"), "--region", "EU", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""

    def sees(self, text):
        """Reads along until it says that."""
        while text not in self.said:
            line = self.process.stdout.readline()
            assert line, f"no {text!r} in {self.said!r}"
            self.said += line

    def end(self):
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        self.said += output
        return self.process.returncode

    def played(self):
        assert self.end() == 0, self.said
        assert "echoes, round trip" in self.said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def make_bot():
    bots = []

    def make(*arguments):
        bots.append(Bot(*arguments))
        return bots[-1]

    yield make
    for bot in bots:
        bot.close()


@pytest.fixture
def make_arena(make_world, tmp_path):
    """A world with one host that runs the arena, or its sister in Python."""
    made = []

    def make(game, **fleet):
        world = make_world(fleets=players.fleets(binary=str(GAMES[game]), **fleet))
        token = players.token_of(world, "host", "game_host")
        agent = Agent(tmp_path, "http://%s:%d" % world.muster.http_address, token)
        made.append((world, agent.start()))
        world.wait(lambda: world.api.all("/v1/hosts"), "host")
        return world, agent

    yield make
    for world, agent in made:
        end_games(world, agent)
        agent.__exit__()


def end_games(world, agent):
    """Game servers outlive their agent, so it is asked to end them first."""
    if not agent.running:
        agent.start()
    for number in servers(world):
        agent.post(f"/servers/{number}/terminate", why="the test is over", grace_ms=0)
        world.wait(lambda number=number: is_over(agent, number), "end of a game server")


def servers(world):
    return [server["id"] for server in world.api.all("/v1/servers")]


def is_over(agent, number):
    return agent.show(number)["state"] == "over"


def seats(world):
    return world.api.all("/players")


def rooms(world):
    return world.api.get("/rooms/arena/main/1.0")["rooms"]


def empty(world):
    return world.wait(lambda: not seats(world), "end of every seat")


@pytest.mark.parametrize("game, way", [("c", []), ("c", ["--udp"]), ("python", [])])
def test_a_bot_plays(make_arena, make_bot, game, way):
    world, _ = make_arena(game)
    bot = make_bot(world, "anna", "--seconds", 1, *way)
    bot.sees("playing as anna")
    (room,) = rooms(world)
    assert room["settings"] == {"map": "pit"}
    bot.played()
    empty(world)


@pytest.mark.parametrize("game", GAMES)
def test_bots_share_a_room(make_arena, make_bot, game):
    world, _ = make_arena(game, max_players=3)
    first = make_bot(world, "anna", "--seconds", 4)
    first.sees("playing as anna")
    others = [make_bot(world, name, "--seconds", 1) for name in ("bob", "carol")]
    for bot in [*others, first]:
        bot.played()
    assert len(rooms(world)) == 1
    empty(world)


@pytest.mark.parametrize("game", GAMES)
def test_a_banned_player_is_sent_away(make_arena, make_bot, game):
    world, _ = make_arena(game)
    bot = make_bot(world, "eve", "--seconds", PATIENCE_S)
    bot.sees("playing as eve")
    world.api.post("/ban/issue", account="eve", reason="cheating", expires="2099-01-01 00:00:00")
    assert bot.end() == 1
    assert "bye: kicked" in bot.said
    empty(world)


@pytest.mark.parametrize("game", GAMES)
def test_players_do_not_notice_the_death_of_the_agent(make_arena, make_bot, game):
    world, agent = make_arena(game)
    playing = make_bot(world, "anna", "--seconds", 5)
    playing.sees("playing as anna")
    agent.kill9()
    late = make_bot(world, "bob", "--seconds", 1)  # he has a seat, and nobody to say so
    late.sees("room ")
    agent.start()
    assert agent.adopted == 1
    late.played()
    playing.played()
    empty(world)


def test_the_arena_goes_when_its_version_is_turned_off(make_arena, make_bot):
    world, agent = make_arena("c", arguments=["--check-ms", "300"])
    bot = make_bot(world, "anna", "--seconds", 2)
    bot.sees("playing as anna")
    changed = players.fleets(binary=str(GAMES["c"]), arguments=["--check-ms", "300"],
                             versions=[{"name": "1.0", "enabled": False}])
    world.reload(fleets=changed)
    bot.played()
    assert world.wait(lambda: is_over(agent, 1), "end of the game server")
    assert agent.show(1)["exit_code"] == 0
    assert "ending: empty" in agent.show(1)["tail"]
