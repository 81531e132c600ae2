"""Chat servers, players and game servers where there are several nodes: Muster's own commands find
whoever leads by the sentence of a standby, and go on with the next leader."""

import contextlib
import json
import subprocess
import threading

import pytest
from muster_proc import binary, run
from stand_in import StandIn, StandInDoor
from players import token_of

SERVER, MANAGER, CLIENT = 0x1001, 0x2001, 0x0601


@contextlib.contextmanager
def two(response, behind):
    with StandInDoor(response, behind) as first, StandInDoor(response, behind) as second:
        yield first, second


@pytest.fixture
def managers(world):
    with two(MANAGER, world.muster.manager_address) as doors:
        yield doors


def addresses(*doors):
    return ",".join(door.address for door in doors)


@contextlib.contextmanager
def running(*arguments):
    with subprocess.Popen([binary(), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def game(world):
    """Straight at Muster: what is lost is lost between Muster and the others."""
    with running("game-server", "--region", "EU", "--max", 1000, "--ready-delay", 0,
                 "--server", "%s:%d" % world.muster.server_address) as process:
        assert "registered" in process.stdout.readline()
        yield process


def allocate(*options, manager, code=0):
    result = run("allocate", "--lobby", 7, "--region", "EU", "--json", "--manager", manager, *options,
                 timeout_s=60)
    assert result.returncode == code, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def until(process, words):
    while True:
        line = process.stdout.readline()
        assert line, f"it ended before it said {words}"
        if words in line:
            return line


# ── chat servers ──────────────────────────────────────────────────────────────────────────────


def test_a_chat_server_tries_the_next(game, managers):
    first, second = managers
    first.kill()
    answer, = allocate(manager=addresses(first, second))
    assert answer["ok"] and answer["lobby"] == 7


def test_a_chat_server_follows_the_sentence(game, managers):
    """To one that is not in its list."""
    first, second = managers
    first.leader = second.address
    answer, = allocate(manager=first.address)
    assert answer["ok"] and second.greeted == 1


def test_a_chat_server_waits_for_a_leader(game, managers):
    first, second = managers
    first.leader = second.leader = ""

    def lead():
        second.wait(lambda: second.greeted >= 3, "greeting")
        second.leader = None

    thread = threading.Thread(target=lead)
    thread.start()
    answer, = allocate(manager=addresses(first, second))
    thread.join()
    assert answer["ok"]


def test_two_standbys_that_name_each_other(game, managers):
    first, second = managers
    first.leader, second.leader = second.address, first.address
    result = run("allocate", "--lobby", 7, "--region", "EU", "--manager", addresses(first, second))
    assert result.returncode == 3
    assert "This node is a standby; the leader of cell default is at" in result.stderr
    assert first.greeted + second.greeted < 150


def test_nobody_is_there(game, managers):
    first, second = managers
    first.kill()
    second.kill()
    result = run("allocate", "--lobby", 7, "--region", "EU", "--manager", addresses(first, second),
                 timeout_s=5)
    assert result.returncode == 3 and "cannot reach" in result.stderr


def test_an_answer_that_is_lost_is_had_from_the_next_leader(world, game, managers):
    """The key (chat server, lobby) finds it: the same server and token, and one match."""
    first, second = managers
    said = []

    def loses(data):
        said.append(data)
        return b"MATCH_7_" in b"".join(said)

    first.loses = loses
    answer, = allocate(manager=addresses(first, second))
    assert answer["ok"] and answer["token"].encode() in b"".join(said)
    sessions = world.api.get("/v1/sessions")["items"]
    assert [s["lobby"] for s in sessions] == [7]


def test_tickets_in_flight_are_answered_once(world, game, managers):
    """A stream of requests while the way to Muster is cut again and again."""
    first, second = managers
    count = 300
    with running("allocate", "--lobby", 100, "--region", "EU", "--json", "--every", 10, "--count",
                 count, "--manager", addresses(first, second)) as process:
        answers = []
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            answers.append(json.loads(line))
            if len(answers) in (50, 120, 190):
                for door in managers:
                    for peer in list(door.sockets):
                        door.drop(peer)
        assert process.wait(30) == 0
    assert sorted(a["lobby"] for a in answers) == list(range(100, 100 + count))
    assert all(a["ok"] for a in answers)
    assert len({a["token"] for a in answers}) == count


def test_a_leader_that_is_frozen(game, managers):
    """It closes nothing, and its standby may name it for a while."""
    first, second = managers
    second.leader = first.address
    with running("allocate", "--lobby", 50, "--region", "EU", "--json", "--every", 1000, "--count", 14,
                 "--manager", addresses(first, second)) as process:
        until(process, '"lobby":50')
        first.frozen = True
        second.wait(lambda: second.greeted >= 3, "greeting")
        second.leader = None
        answers = [json.loads(line) for line in process.stdout if line.startswith("{")]
        assert process.wait(30) == 0
    assert sorted(a["lobby"] for a in answers) == list(range(51, 64))


def test_one_alone_ends_with_its_connection(game, managers):
    with running("allocate", "--lobby", 7, "--region", "EU", "--stay", "--manager",
                 managers[0].address) as process:
        until(process, "lobby 7: server")
        managers[0].kill()
        assert process.wait(10) == 3


# ── players ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def clients(world):
    with two(CLIENT, world.muster.client_address) as doors:
        yield doors


def player(world, account, client, *options):
    return ["player-client", "--account", account, "--token", token_of(world, str(account), "game"), "--client",
            client, *options]


def test_a_player_goes_on_with_the_next_leader(world, clients):
    first, second = clients
    second.leader = first.address
    with running(*player(world, 5, addresses(second, first), "--stay")) as process:
        until(process, "connected")
        first.kill()
        second.leader = ""
        until(process, "nobody leads")
        second.leader = None
        until(process, "connected")


def test_a_player_without_stay_rides_through_it_too(world, clients):
    first, second = clients
    with running(*player(world, 5, addresses(first, second))) as process:
        until(process, "connected")
        first.kill()
        until(process, "connected")


def test_a_player_whose_leader_is_frozen(world, clients):
    first, second = clients
    with running(*player(world, 5, addresses(first, second))) as process:
        until(process, "connected")
        first.frozen = True
        until(process, "it does not answer")
        until(process, "connected")


def test_a_player_whom_nobody_hears(world, clients):
    first, second = clients
    first.kill()
    second.kill()
    result = run(*player(world, 5, addresses(first, second)), timeout_s=5)
    assert result.returncode == 3 and "cannot reach Muster" in result.stderr


def test_a_matchmaker_rides_through_failovers(world, game, clients):
    """Its players change with the leader, its own questions too; the books are right at the end."""
    url = "http://%s:%d" % world.muster.http_address
    first, second = clients
    second.leader = first.address
    with StandIn(url) as here, StandIn(url) as there:
        with running("matchmaker", "--players", 12, "--team", 2, "--every", 200, "--for", "8s",
                     "--settle", "30s", "--client", addresses(first, second), "--url",
                     f"{here.url},{there.url}", "--data", world.muster.data) as process:
            until(process, "started")
            first.kill()
            here.kill()
            second.leader = ""
            second.wait(lambda: second.greeted >= 12, "players at the standby")
            second.leader = None
            until(process, "started")
            rest = process.stdout.read()
            assert process.wait(60) == 0, rest
            assert "creation to start" in rest


# ── game servers ──────────────────────────────────────────────────────────────────────────────


def test_a_game_server_goes_on_with_the_next_leader(world):
    with two(SERVER, world.muster.server_address) as (first, second):
        second.leader = first.address
        with running("game-server", "--region", "EU", "--server",
                     addresses(second, first)) as process:
            assert "This node is a standby" in process.stdout.readline()
            until(process, "registered")
            answer, = allocate(manager="%s:%d" % world.muster.manager_address)
            assert answer["ok"]
            first.kill()
            second.leader = None
            assert "holding 1" in until(process, "registered")
        sessions = world.api.get("/v1/sessions")["items"]
        assert [s["lobby"] for s in sessions] == [7]


# ── lists ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb, option", [
    (["allocate", "--lobby", 1, "--region", "EU"], "--manager"),
    (["player-client", "--account", 1, "--token", "t"], "--client"),
    (["game-server", "--region", "EU"], "--server"),
    (["matchmaker"], "--client"),
])
@pytest.mark.parametrize("value, why", [
    ("127.0.0.1:1,", "takes HOST:PORT, or several with commas between them, not ''"),
    ("127.0.0.1:1,here", "not 'here'"),
    ("127.0.0.1:1, 127.0.0.1:2", "not ' 127.0.0.1:2'"),
    (",".join(["127.0.0.1:1"] * 9), "takes at most 8, with commas between them"),
])
def test_lists_that_are_none(verb, option, value, why):
    result = run(*verb, option, value)
    assert result.returncode == 2 and f"{option} takes" in result.stderr and why in result.stderr
