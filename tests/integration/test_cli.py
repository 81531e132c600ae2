"""The other verbs of the binary, against a Muster of the test's own."""

import itertools
import json
import re
import subprocess
import time

import chat
import pytest
from chat import EU, USE
from muster_proc import binary, run


class Running:
    """A muster command that runs until it is stopped; its output is read line by line."""

    def __init__(self, folder, *arguments):
        self.path = folder / f"{arguments[0]}.out"
        self.output = open(self.path, "wb")
        self.process = subprocess.Popen(
            [binary(), *map(str, arguments)], stdout=self.output, stderr=self.output
        )

    def text(self):
        return self.path.read_text(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.output.close()
        return code


@pytest.fixture
def running(tmp_path):
    """Starts commands, and stops what still runs when the test is over."""
    started = []

    def start(*arguments):
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield start
    for command in started:
        if not command.output.closed:
            command.stop()


def place(address):
    return f"{address[0]}:{address[1]}"


@pytest.fixture
def game_server(world, running):
    def start(*options):
        return running("game-server", "--server", place(world.muster.server_address), *options)

    return start


def allocate(world, *arguments):
    return run("allocate", "--manager", place(world.muster.manager_address), *arguments)


def test_version():
    result = run("--version")
    assert result.returncode == 0
    assert re.search(r"\d+\.\d+\.\d+", result.stdout)


def test_help_names_every_verb():
    result = run("--help")
    assert result.returncode == 0
    for verb in ("serve", "game-server", "player-client", "matchmaker", "allocate", "dump", "sim", "dev"):
        assert verb in result.stdout


@pytest.mark.parametrize("verb", ["serve", "game-server", "player-client", "matchmaker", "allocate", "dump",
                                  "sim", "dev"])
def test_help_of_each_verb(verb):
    result = run(verb, "--help")
    assert result.returncode == 0
    assert result.stdout.lower().startswith("usage") or "muster " + verb in result.stdout


def test_wrong_verb_suggests_the_nearest():
    result = run("alocate")
    assert result.returncode == 2
    assert "allocate" in result.stderr


def test_no_verb_points_to_the_help():
    result = run()
    assert result.returncode == 2
    assert "--help" in result.stderr


# --- muster game-server and muster allocate: a first allocation by hand


def registered(world, listener, n):
    """Waits until Muster lists n servers."""

    def look():
        return len(listener.reconnect().hello.servers) == n

    world.wait(look, f"{n} game servers")


def test_first_allocation_by_hand(world, game_server):
    server = game_server("--region", "EU", "--max", "4", "--ip", "10.1.2.3", "--port", "31000")
    registered(world, world.chat("listener"), 1)
    result = allocate(world, "--lobby", "12345", "--region", "EU", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout.splitlines()[-1])
    text = json.dumps(answer)
    assert "10.1.2.3" in text and "31000" in text and "MATCH_12345_" in text
    assert list(answer) == ["lobby", "ok", "server", "ip", "port", "token", "ms"]

    again = allocate(world, "--lobby", "12345", "--region", "EU", "--json")
    token = re.search(r"MATCH_12345_[0-9a-f-]+_\d+", result.stdout)[0]
    assert token in again.stdout, "asked again, the same place"
    assert server.stop() == 0


def test_allocate_says_why_not_and_exits_1(world):
    result = allocate(world, "--lobby", "1", "--region", "EU")
    assert result.returncode == 1
    assert "No servers available" in result.stdout + result.stderr


def test_allocate_cancels(world, game_server):
    game_server("--region", "EU", "--max", "1")
    registered(world, world.chat("listener"), 1)
    assert allocate(world, "--lobby", "1", "--region", "EU").returncode == 0
    assert allocate(world, "--lobby", "2", "--region", "EU").returncode == 1
    assert allocate(world, "--lobby", "1", "--region", "EU", "--cancel").returncode == 0

    def freed():
        return allocate(world, "--lobby", "3", "--region", "EU").returncode == 0

    world.wait(freed, "slot of the cancelled match", timeout_s=25)


ONE_REGION = {
    "dev": False,
    "tokens": [
        {"token": "s", "role": "server"},
        {"token": "c", "role": "chat", "regions": ["EU"]},
    ],
}


@pytest.mark.muster(**ONE_REGION)
def test_allocate_names_only_the_regions_it_was_given(world, game_server):
    """A Muster, or a token, with few regions refuses a chat server that speaks for others."""
    game_server("--region", "EU", "--token", "s")
    registered(world, world.chat("listener", token="c"), 1)
    auto = allocate(world, "--lobby", "1", "--region", "AUTO", "--regions", "EU", "--token", "c")
    assert auto.returncode == 0, auto.stderr
    cancel = allocate(world, "--lobby", "1", "--cancel", "--region", "EU", "--token", "c")
    assert cancel.returncode == 0, cancel.stderr
    cancel = allocate(world, "--lobby", "1", "--cancel", "--regions", "EU", "--token", "c")
    assert cancel.returncode == 0, cancel.stderr


@pytest.mark.parametrize(
    "arguments,sentence",
    [
        (["--region", "AUTO"], "--region AUTO needs --regions"),
        (["--cancel"], "--cancel needs --region too"),
        (["--region", "EU", "--regions", "AUTO"], "AUTO is none of them"),
    ],
)
def test_allocate_says_which_region_option_is_missing(arguments, sentence):
    result = run("allocate", "--lobby", "1", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr


@pytest.mark.muster(**ONE_REGION)
def test_allocate_tells_a_refused_greeting_as_json_too(world):
    result = allocate(world, "--lobby", "1", "--region", "EU", "--token", "wrong", "--json")
    assert result.returncode == 1
    assert json.loads(result.stdout) == {"ok": False, "error": "Invalid token"}


def test_allocate_on_the_server_port_says_so(world):
    server_port = place(world.muster.server_address)
    result = run("allocate", "--manager", server_port, "--lobby", "1", "--region", "EU")
    assert result.returncode == 1
    assert "chat servers use the manager port" in result.stderr


def test_allocate_exits_3_when_nobody_is_there():
    result = run("allocate", "--manager", "127.0.0.1:1", "--lobby", "1", "--region", "EU")
    assert result.returncode == 3
    assert "127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["allocate", "--lobby", "1"],
        ["allocate", "--region", "EU"],
        ["allocate", "--lobby", "x", "--region", "EU"],
        ["allocate", "--lobby", "1", "--region", "NOWHERE"],
        ["game-server"],
        ["game-server", "--region", "EU", "--max", "0"],
        ["dump"],
        ["dump", "one", "two"],
        ["sim", "--seeds", "-1"],
        ["sim", "--hours", "nan"],
        ["sim", "--trace", "--json"],
        ["dev", "--seconds", "x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_with_a_sentence(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stderr.strip()


def test_sim_names_the_option_it_refuses():
    """One sentence, as every other verb."""
    result = run("sim", "--hours", "1x")
    assert "--hours" in result.stderr and "1x" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def placed_on_the_good_one(world, game_server, *bad_behaviour):
    """A misbehaving server that looks best, and a working one: who gets the match?"""
    game_server("--region", "EU", "--cpu", "0", "--memory", "0", "--port", "31001", *bad_behaviour)
    good = world.server(cpu=90, port=31002)
    listener = world.chat("listener")
    registered(world, listener, 2)
    return listener.allocate(7).server_id == good.server_id


@pytest.mark.muster(ack_ms=2000)
@pytest.mark.parametrize(
    "behaviour", [["--refuse"], ["--silent"], ["--slow", "20000"], ["--drop-after", "0"]], ids=" ".join
)
def test_misbehaving_game_server_is_passed_over(world, game_server, behaviour):
    assert placed_on_the_good_one(world, game_server, *behaviour)


@pytest.mark.muster(ack_ms=400)
def test_slow_game_server_answers_after_muster_took_the_match_back(world, game_server):
    slow = game_server("--region", "EU", "--slow", "4000")
    listener = world.chat("listener")
    registered(world, listener, 1)
    assert listener.refuse(7) == "Server allocation timeout"
    world.wait(lambda: "match 7 accepted too late" in slow.text(), "late answer")
    taken_back = "match 7 cancelled by Muster"
    assert slow.text().index(taken_back) < slow.text().index("match 7 accepted too late")
    world.wait(lambda: "late acknowledgement" in world.muster.log(), "Muster's word about it")


def test_draining_game_server_takes_no_new_matches(world, game_server):
    server = game_server("--region", "EU", "--drain-after", "0")
    listener = world.chat("listener")
    registered(world, listener, 1)
    world.wait(lambda: "asking Muster for no new matches" in server.text(), "drain")
    lobbies = itertools.count(1)
    world.wait(lambda: not allocated(listener, next(lobbies)), "refusal", timeout_s=15)


def allocated(listener, lobby):
    listener.request(lobby)
    return listener.reply(lobby).ok


@pytest.mark.muster(**ONE_REGION)
def test_tokens_come_from_the_environment(world, running, monkeypatch):
    """Options are visible to every user of the machine."""
    monkeypatch.setenv("MUSTER_ENROL_TOKEN", "s")
    running("game-server", "--server", place(world.muster.server_address), "--region", "EU")
    registered(world, world.chat("listener", token="c"), 1)
    monkeypatch.setenv("MUSTER_ENROL_TOKEN", "c")
    assert allocate(world, "--lobby", "1", "--region", "EU").returncode == 0


def test_lying_game_server_is_as_full_as_it_says(world, game_server):
    game_server("--region", "EU", "--max", "2", "--lie-load", "2")
    listener = world.chat("listener")
    registered(world, listener, 1)
    lobbies = itertools.count(1)

    def full():
        """Whatever is placed before its first report is given up at once."""
        lobby = next(lobbies)
        listener.request(lobby)
        answer = listener.reply(lobby)
        return listener.cancel(lobby) if answer.ok else answer.error == "No servers available"

    world.wait(lambda: full() is True, "refusal for a server that says it is full", timeout_s=15)


@pytest.mark.muster(heartbeat_ms=1500)
def test_game_server_without_heartbeats_goes_offline(world, game_server):
    game_server("--region", "EU", "--no-heartbeat")
    registered(world, world.chat("listener"), 1)
    world.wait(lambda: "offline" in world.muster.log().lower(), "Offline server", timeout_s=10)


def test_game_server_outlives_muster(world, game_server):
    """It reconnects by itself, with its id and its match."""
    game_server("--region", "EU", "--port", "31003")
    asker = world.chat("listener")
    registered(world, asker, 1)
    first = asker.allocate(7)
    world.crash()
    asker.reconnect()

    def placed():
        asker.request(8)
        answer = asker.reply(8)
        return answer.ok and answer

    assert world.wait(placed, "return of the game server", timeout_s=20).server_id == first.server_id
    assert asker.allocate(7).match_token == first.match_token
    assert not asker.find("MGR_MATCH_EVENT", kind=chat.ENDED)


def test_match_of_a_game_server_ends_by_itself(world, game_server):
    game_server("--region", "EU", "--match-seconds", "1", "--players", "3")
    asker = world.chat("listener")
    registered(world, asker, 1)
    asker.allocate(7)
    asker.expect_event(7, chat.READY)
    asker.expect_event(7, chat.ENDED)


# --- muster dump


FRAMES = (
    chat.ping()
    + chat.sv_handshake("secret", "10.0.0.1", 20000, EU, 4)
    + chat.sv_heartbeat(42, 3, 45.5, 62.5)
    + chat.mgr_server_allocation_request(12345, 6, 0, USE, 10, 1650)
    + chat.frame(0x7ABC, b"\x01\x02")
)


def test_dump_prints_a_line_per_frame(tmp_path):
    (tmp_path / "frames").write_bytes(FRAMES)
    result = run("dump", tmp_path / "frames")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 5
    for line, words in zip(
        lines,
        [
            ["PING"],
            ["SV_HANDSHAKE", "10.0.0.1", "20000"],
            ["SV_HEARTBEAT", "42", "45.5", "62.5"],
            ["MGR_SERVER_ALLOCATION_REQUEST", "12345", "1650"],
            ["7ABC"],
        ],
    ):
        for word in words:
            assert word in line


def test_dump_reads_standard_input():
    result = run("dump", "-", stdin=FRAMES)
    assert result.returncode == 0
    assert result.stdout.count(b"\n") == 5


def test_dump_reads_hex_text():
    result = run("dump", "--hex", "-", stdin=chat.ping().hex(" ") + "\n" + chat.pong().hex())
    assert result.returncode == 0
    assert "PING" in result.stdout and "PONG" in result.stdout


def test_dump_says_where_it_is_not_frames(tmp_path):
    (tmp_path / "frames").write_bytes(chat.ping() + b"\x00\x00garbage")
    result = run("dump", tmp_path / "frames")
    assert result.returncode == 1
    assert "PING" in result.stdout
    assert "4" in result.stdout + result.stderr, "the offset"


def test_dump_goes_on_after_a_payload_that_is_no_message(tmp_path):
    (tmp_path / "frames").write_bytes(chat.frame(0x1002, b"\x01") + chat.ping())
    result = run("dump", tmp_path / "frames")
    assert result.returncode == 1
    bad, good = result.stdout.splitlines()
    assert "bad SV_HEARTBEAT" in bad and "PING" in good


def test_dump_of_what_muster_says(world, tmp_path):
    """What the independent codec read, the binary reads the same."""
    server = world.server()
    asker = world.chat()
    token = asker.allocate(7).match_token
    captured = b"".join(server.raw + asker.raw)
    (tmp_path / "captured").write_bytes(captured)
    result = run("dump", tmp_path / "captured")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == len(server.raw) + len(asker.raw)
    for name in ("SV_HANDSHAKE_RESPONSE", "SV_ALLOCATE_MATCH", "MGR_SERVER_ALLOCATION_RESPONSE"):
        assert name in result.stdout
    assert token in result.stdout


# --- muster sim and muster dev


def test_sim_reports_as_json():
    result = run("sim", "--seeds", "3", "--json", timeout_s=120)
    assert result.returncode == 0, result.stdout + result.stderr
    (line,) = result.stdout.splitlines()
    report = json.loads(line)
    assert report["seeds"] == 3
    assert report["violations"] == 0
    assert report["steps"] > 0 and report["simulated_hours"] > 0 and report["seconds"] >= 0


def test_sim_gives_the_same_hash_for_the_same_seed():
    first, second, other = (
        run("sim", "--seeds", "1", "--seed", seed, "--hours", "0.05", timeout_s=120)
        for seed in ("7", "7", "8")
    )
    assert first.returncode == second.returncode == other.returncode == 0
    hashes = [re.findall(r"\b[0-9a-f]{8,64}\b", r.stdout) for r in (first, second, other)]
    assert hashes[0] and hashes[0] == hashes[1] != hashes[2]


def test_dev_shows_allocations_and_ends_by_itself(tmp_path):
    began_s = time.monotonic()
    result = run("dev", "--data", tmp_path / "data", "--any-port", "--seconds", "4", timeout_s=30)
    assert result.returncode == 0, result.stdout + result.stderr
    assert time.monotonic() - began_s >= 3.5
    assert "allocat" in result.stdout.lower() or "placed" in result.stdout.lower(), result.stdout


def test_dev_started_again_has_the_same_six_servers(tmp_path):
    """Its game servers come back to their places instead of adding six at each start."""
    of_its_own = ["--data", tmp_path / "data", "--any-port", "--game-port", "23001"]
    starts = [run("dev", *of_its_own, "--seconds", "2").stdout for _ in range(2)]
    servers = [set(re.findall(r"game-server (\d+ \w+): registered", text)) for text in starts]
    assert len(servers[0]) == 6 and servers[0] == servers[1]


def test_dev_hints_name_the_binary_that_runs(tmp_path):
    result = run("dev", "--data", tmp_path / "data", "--any-port", "--seconds", "2")
    assert f"  {binary()} allocate --lobby" in result.stdout
