"""`muster player-client`: a player's side of a match lobby, in lines and in JSON, with exit codes that
say how it went."""

import json
import os
import selectors
import signal
import socket
import subprocess

import chat
import pytest
import secure
from muster_proc import binary, run
from players import token_of


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_PLAYER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def doors(world):
    http = "http://%s:%d" % world.muster.http_address
    return ["--client", "%s:%d" % world.muster.client_address, "--http", http,
            "--data", world.muster.data]


class PlayerClient:
    """One that runs; its lines are read as they come, while the world's peers are served."""

    def __init__(self, world, account, *options):
        self.world = world
        self.heard = []
        self.rest = b""
        arguments = ["player-client", "--account", account, "--json", *doors(world), *options]
        self.process = subprocess.Popen(
            [binary(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.is_read = False
        world.net.selector.register(self.process.stdout, selectors.EVENT_READ, self)

    def ready(self, _):
        data = os.read(self.process.stdout.fileno(), 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.heard += [json.loads(line) for line in lines]
        if not data:
            self.close()

    def close(self):
        if not self.is_read:
            self.is_read = True
            self.world.net.selector.unregister(self.process.stdout)

    def times(self, event):
        return [h["event"] for h in self.heard].count(event)

    def hears(self, event, **fields):
        wanted = {"event": event, **fields}

        def found():
            return next((h for h in self.heard if wanted.items() <= h.items()), None)

        return self.world.wait(found, f"{wanted} in the output")

    def ends(self):
        self.world.wait(lambda: self.is_read, f"end after {self.heard}")
        return self.process.wait(5)

    def kill(self):
        self.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def player(world):
    """Starts player clients that have connected when this returns."""
    started = []

    def start(account, *options):
        started.append(PlayerClient(world, account, *options))
        started[-1].hears("connected", account=account)
        return started[-1]

    yield start
    for one in started:
        one.kill()


def team(*accounts):
    return [{"account": a, "name": f"p{a}", "slot": i} for i, a in enumerate(accounts)]


def post(world, *teams, **more):
    wanted = {"region": "EU", "type": 1, "map": "caldera", "teams": [team(*t) for t in teams], **more}
    answer = world.api.ask("POST", "/v1/lobbies", data=wanted)
    assert answer.status == 201, answer
    return answer.json


def number(lobby):
    return int(lobby["id"])


def ready_server(world):
    """One that accepts a match and is ready for it at once."""
    return world.server(on_allocate="ready")


def test_match_that_starts(world, player):
    server = ready_server(world)
    anna, ben = player(7, "--load-after", 50), player(8, "--load-after", 400)
    lobby = number(post(world, [7], [8]))
    heard = anna.hears("lobby", lobby=lobby)
    assert (heard["type"], heard["map"]) == (1, "caldera")
    assert heard["teams"] == [team(7), team(8)]
    anna.hears("loaded", lobby=lobby, player=7)
    ben.hears("loading", lobby=lobby, player=7, loaded=True)
    starts = [one.hears("start", lobby=lobby) for one in (anna, ben)]
    assert starts[0]["match_token"] == starts[1]["match_token"]
    assert (starts[0]["host"], starts[0]["port"]) == (server.ip, server.port)
    assert anna.ends() == ben.ends() == 0


@pytest.mark.muster(loading_ms=700)
def test_player_who_never_loads_aborts_it_for_all(world, player):
    ready_server(world)
    anna, ben = player(7, "--load-after", 0), player(8, "--never-load")
    lobby = number(post(world, [7], [8], requeue=True))
    for one in (anna, ben):
        told = one.hears("aborted", lobby=lobby)
        assert told["reason"] == "Loading timeout" and told["requeued"] is True
        assert one.ends() == 1


@pytest.mark.muster(player_gone_ms=300)
def test_player_who_leaves(world, player):
    ready_server(world)
    anna, ben = player(7, "--never-load"), player(8, "--leave-after", 50)
    lobby = number(post(world, [7], [8]))
    ben.hears("left")
    assert ben.ends() == 0
    assert anna.hears("aborted", lobby=lobby)["reason"] == "Player disconnected"
    assert anna.ends() == 1
    back = player(8)
    back.hears("aborted", lobby=lobby)  # he was away, and hears it now
    assert back.ends() == 1


def test_second_connection_ends_the_first(world, player):
    first = player(7, "--stay")
    player(7)
    assert first.hears("closed")["reason"] == "Replaced by a new connection"
    assert first.ends() == 1


def test_stays_through_matches_and_a_crash_of_muster(world, player):
    ready_server(world)
    anna = player(7, "--stay", "--load-after", 0)
    first = number(post(world, [7]))
    anna.hears("start", lobby=first)
    world.crash()
    anna.hears("lost")
    world.wait(lambda: anna.times("connected") == 2, "a second connection")
    world.wait(lambda: anna.times("start") == 2, "the start once more, for who comes back")
    anna.process.send_signal(signal.SIGTERM)
    assert anna.ends() == 0


def test_told_to_stop_while_it_waits(world, player):
    anna = player(7)
    anna.process.send_signal(signal.SIGINT)
    assert anna.ends() == 0


def test_lines_for_people(world):
    ready_server(world)
    process = subprocess.Popen([binary(), *map(str, ["player-client", "--account", 7,
                                "--load-after", 0, *doors(world)])],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "player 7: connected\n"
        lobby = number(post(world, [7]))
        world.wait(lambda: process.poll() is not None, "its end")
        lines = process.stdout.read().splitlines()
        assert lines[0] == f"player 7: lobby {lobby}, type 1, mode 0, map caldera; team 1: p7 (7); " \
            "team 2: nobody"
        assert lines[1] == "player 7: has loaded"
        assert lines[2].startswith(f"player 7: match {lobby} starts at 10.0.0.1:")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_lobby_without_a_map(world):
    process = subprocess.Popen([binary(), *map(str, ["player-client", "--account", 7,
                                "--never-load", *doors(world)])],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "player 7: connected\n"
        world.server(on_allocate="silent")
        lobby = number(post(world, [7], map=""))
        assert process.stdout.readline() == \
            f"player 7: lobby {lobby}, type 1, mode 0; team 1: p7 (7); team 2: nobody\n"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("words, code", [
    ("Silent for too long", 3),
    ("Replaced by a new connection", 1),
])
def test_muster_says_why_and_hangs_up(words, code):
    """One of our own making."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        process = subprocess.Popen(
            [binary(), "player-client", "--account", "7", "--token", "x",
             "--client", "127.0.0.1:%d" % door.getsockname()[1]],
            stdout=subprocess.PIPE, text=True)
        try:
            with door.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(chat.frame(0x2AFF, chat.text(words)))
                connection.shutdown(socket.SHUT_WR)
                assert process.communicate(timeout=10)[0] == f"player 7: Muster hung up: {words}\n"
            assert process.returncode == code
        finally:
            process.kill()
            process.communicate()


def test_over_tls(make_world, tmp_path):
    authority = secure.Authority(tmp_path)
    certificate, key = authority.issue("server")
    world = make_world(tls={"client": {"certificate": str(certificate), "key": str(key)}})
    plain = run("player-client", "--account", 7, *doors(world))
    assert plain.returncode == 3 and "--tls-ca says whom to believe" in plain.stdout
    anna = PlayerClient(world, 7, "--tls-ca", authority.path, "--tls-name", "localhost",
                        "--load-after", 0)
    try:
        anna.hears("connected")
        ready_server(world)
        lobby = number(post(world, [7]))
        anna.hears("start", lobby=lobby)
        assert anna.ends() == 0
    finally:
        anna.kill()


# --- tokens and refusals


def test_wrong_token_is_refused(world):
    token = token_of(world, "8", "game")
    result = run("player-client", "--account", 7, "--token", token, *doors(world))
    assert result.returncode == 1
    assert result.stdout == "player 7: Muster refuses: Invalid token\n"


def test_token_from_the_environment(world):
    token = token_of(world, "8", "game")
    result = run("player-client", "--account", 7, "--json", *doors(world),
                 env={"MUSTER_PLAYER_TOKEN": token})
    assert json.loads(result.stdout) == {"event": "refused", "account": 7,
                                         "reason": "Invalid token"}


def test_no_token_to_be_had(world, tmp_path):
    result = run("player-client", "--account", 7, *doors(world)[:4], "--data", tmp_path)
    assert result.returncode == 1
    assert result.stderr == (
        "muster player-client: no access token: An access token is needed: Authorization: Bearer "
        "TOKEN. Give one with MUSTER_TOKEN, or its data folder with --data DIR; "
        f"{tmp_path}/admin.token cannot be read: No such file or directory.\n")


def test_nobody_to_ask_for_a_token(tmp_path):
    result = run("player-client", "--account", 7, "--http", "http://127.0.0.1:1", "--data", tmp_path)
    assert result.returncode == 3
    assert result.stderr == (
        "muster player-client: no access token: cannot reach Muster at http://127.0.0.1:1: "
        "Connection refused; is it running? 'muster serve' starts one; --http or MUSTER_URL names "
        "another\n")


def test_nobody_there(world):
    token = token_of(world, "7", "game")
    result = run("player-client", "--account", 7, "--token", token, "--client", "127.0.0.1:1")
    assert result.returncode == 3
    assert "cannot reach Muster at 127.0.0.1:1: Connection refused" in result.stderr


@pytest.mark.parametrize("arguments, says", [
    ([], "--account is missing"),
    (["--account", 0], "--account"),
    (["--account", 7, "--client", "here"], "--client takes HOST:PORT, or several with commas between them, not 'here'"),
    (["--account", 7, "--load-after", "soon"], "--load-after"),
    (["--account", 7, "--never-lode"], "--never-load"),
])
def test_wrong_usage(arguments, says):
    result = run("player-client", *arguments)
    assert result.returncode == 2
    assert says in result.stderr
