"""The room side of the Python SDK, and the example game server, which is built on that of C, each
against an agent written by hand. tests/unit/sdk_room does the same to the C SDK alone."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fake_agent import PATIENCE_S, FakeAgent
from muster_proc import REPO, binary
from ports import free_ports

sys.path.insert(0, str(REPO / "sdk" / "python"))

import muster_room  # noqa: E402
from muster_room import Room, RoomError  # noqa: E402


# The SDK in Python.


@pytest.fixture
def make(tmp_path):
    """An agent and a room that talks to it; the room's replies gather in room.told."""
    made = []

    def make_both(**options):
        agent = FakeAgent(tmp_path)
        room = agent.room = Room(["game", agent.path, "4000,4001"], {}, **options)
        room.told = []
        made.append((agent, room))
        return agent, room

    yield make_both
    for agent, room in made:
        room.close()
        agent.close()


def told(room):
    told, room.told = room.told, []
    return told


def replied(agent, room):
    agent.run_until(lambda: room.told)
    return told(room)


def test_python_ready_is_inited(make):
    agent, room = make()
    room.ready({"map": "pit"}, room.told.append)
    call = agent.hear("inited")
    assert call["params"] == {"settings": {"map": "pit"}}
    agent.answer(call, {"status": "OK"})
    assert replied(agent, room) == [muster_room.Answer()]
    assert not room.refused and room.waiting() == 0


def test_python_a_refused_ready_wishes_the_exit(make):
    agent, room = make()
    room.ready(reply=room.told.append)
    call = agent.hear("inited")
    assert call["params"] == {}
    agent.refuse(call, 410, "given up")
    assert replied(agent, room) == [muster_room.Answer(410, "given up")]
    assert room.refused


def test_python_joined_and_left(make):
    agent, room = make()
    room.joined("k1", room.told.append)
    room.joined("k2", room.told.append, extend_token="t", extend_scopes="a,b")
    first, second = agent.hear("joined"), agent.hear("joined")
    assert first["params"] == {"key": "k1"}
    assert second["params"] == {"key": "k2", "extend_token": "t", "extend_scopes": "a,b"}
    agent.refuse(second, 403, "no such key")
    agent.admit(first, "anna")
    agent.run_until(lambda: len(room.told) == 2)
    no, yes = told(room)
    assert (no.code, no.text) == (403, "no such key")
    assert (yes.code, yes.account, yes.access_token, yes.scopes, yes.info) == (
        0, "anna", "token of anna", ["game"], {"n": 1})
    room.left("k1", room.told.append)
    agent.answer(agent.hear("left"))
    assert replied(agent, room) == [muster_room.Answer()]


def test_python_settings_and_deployment(make):
    agent, room = make()
    room.update_settings({"map": "hall"})
    call = agent.hear("update_settings")
    assert call["params"] == {"settings": {"map": "hall"}}
    agent.answer(call)
    room.check_deployment(room.told.append)
    agent.refuse(agent.hear("check_deployment"), 410, "outdated")
    assert replied(agent, room) == [muster_room.Answer(410, "outdated")]
    assert room.waiting() == 0


def test_python_status_and_kick(make):
    kicked = []
    agent, room = make(on_kick=lambda key, reason: kicked.append((key, reason)))
    agent.status()
    assert agent.hear() == {"jsonrpc": "2.0", "id": "status", "result": {"status": "ok"}}
    room.ok = False
    agent.status()
    assert agent.hear()["result"] == {"status": "not ok"}
    agent.kick("k", "banned")
    agent.run_until(lambda: kicked)
    assert kicked == [("k", "banned")]


@pytest.mark.parametrize("said, call_id, code", [
    (b"", None, -32700), (b"{", None, -32700), (b"\xff\xfe", None, -32700), (b"[" * 60000, None, -32700),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"status"}', None, -32700),
    (b"[]", None, -32600), (b"5", None, -32600),
    (b'{"id":1,"method":"status"}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"dance"}', 1, -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"kick"}', 1, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"kick","params":{"key":5}}', 1, -32602),
])  # fmt: skip
def test_python_malformed_calls_are_answered_and_nothing_ends(make, said, call_id, code):
    agent, room = make()
    agent.say(said)
    answer = agent.hear()
    assert (answer["id"], answer["error"]["code"]) == (call_id, code)
    agent.status()
    assert agent.hear()["result"] == {"status": "ok"}


@pytest.mark.parametrize("answer", [
    {}, {"result": None}, {"result": {}}, {"result": {"access_token": 5}}, {"result": []},
    {"result": {"access_token": "t", "scopes": "game"}}, {"result": {"access_token": "t", "scopes": [1]}},
    {"error": 5}, {"error": {}}, {"error": {"code": "x", "message": "m"}}, {"error": {"code": 5}},
    {"error": {"code": 0, "message": "m"}}, {"error": {"code": True, "message": "m"}},
])  # fmt: skip
def test_python_malformed_answers_are_told_as_such(make, answer):
    agent, room = make()
    room.joined("k", room.told.append)
    agent.say({"jsonrpc": "2.0", "id": agent.hear("joined")["id"], **answer})
    assert [a.code for a in replied(agent, room)] == [muster_room.MALFORMED]


def test_python_answers_to_nothing_are_ignored(make):
    agent, room = make()
    room.left("k", room.told.append)
    call = agent.hear("left")
    for call_id in (7, "1", None, [1], True, 1.0):
        agent.say({"jsonrpc": "2.0", "id": call_id, "result": {}})
    agent.answer(call)
    agent.answer(call)
    agent.status()
    agent.hear()
    assert told(room) == [muster_room.Answer()]


def test_python_an_unanswered_call_is_repeated_with_its_id(make):
    agent, room = make(repeat_s=0.5)
    before = time.monotonic()
    room.joined("k", room.told.append)
    first = agent.hear("joined")
    assert agent.hear("joined") == first
    assert time.monotonic() - before >= 0.5
    agent.admit(first, "anna")
    assert [a.account for a in replied(agent, room)] == ["anna"]
    assert room.waiting() == 0


@pytest.mark.parametrize("method", ["inited", "left"])
def test_python_a_busy_agent_is_told_again(make, method):
    agent, room = make(repeat_s=0.5)
    room.ready(reply=room.told.append) if method == "inited" else room.left("k", room.told.append)
    call = agent.hear(method)
    agent.refuse(call, 503, "too many calls wait")
    assert agent.hear(method) == call
    assert not room.refused and not room.told and room.waiting() == 1
    agent.answer(call)
    assert replied(agent, room) == [muster_room.Answer()]


def test_python_a_busy_agent_lets_nobody_in(make):
    agent, room = make()
    room.joined("k", room.told.append)
    agent.refuse(agent.hear("joined"), 503, "too many calls wait")
    assert replied(agent, room) == [muster_room.Answer(503, "too many calls wait")]


def test_python_repeats_after_ten_seconds(make):
    _, room = make()
    room.left("k")
    assert room.timeout() == 0.0
    room.poll()
    assert 9.0 < room.timeout() <= 10.0


def test_python_an_agent_that_comes_back_gets_every_call(make):
    agent, room = make(repeat_s=0.3)
    room.joined("taken", room.told.append)
    agent.hear("joined")
    agent.die()
    room.left("away", room.told.append)
    room.poll()
    agent.bind()
    waiting = {1, 2}
    while waiting:
        call = agent.hear()
        if call["id"] in waiting:
            waiting.remove(call["id"])
            agent.admit(call, "anna")
    agent.run_until(lambda: room.waiting() == 0)
    assert len(told(room)) == 2


def test_python_a_thousand_calls_in_bursts_by_the_descriptor(make):
    agent, room = make()
    for _ in range(5):
        for _ in range(200):
            room.left("k", room.told.append)
        for _ in range(200):
            agent.answer(agent.hear("left"))
        agent.run_until(lambda: room.waiting() == 0)
        assert len(told(room)) == 200


def test_python_more_than_one_poll_takes_is_not_forgotten(make):
    kicked = []
    agent, room = make(on_kick=lambda key, reason: kicked.append(key))
    for i in range(800):
        agent.kick(str(i), "")
    agent.run_until(lambda: len(kicked) == 800)
    assert kicked == [str(i) for i in range(800)]


def test_python_what_waits_is_bounded(make):
    _, room = make()
    for _ in range(muster_room.MAX_CALLS):
        room.left("k")
    with pytest.raises(RoomError, match="too many"):
        room.left("k")
    _, room = make()
    with pytest.raises(RoomError, match="too large"):
        room.left("k" * muster_room.MAX_MESSAGE)
    with pytest.raises(RoomError, match="too many"):
        for _ in range(muster_room.MAX_CALLS):
            room.left("k" * 60000)
    assert room.waiting() == muster_room.MAX_CALL_BYTES // 60100


def test_python_texts_are_checked(make):
    _, room = make()
    for key in ("", None, "\ud800"):
        with pytest.raises(RoomError):
            room.left(key)
    with pytest.raises(RoomError):
        room.joined("k", print, extend_token="t")
    with pytest.raises(RoomError):
        room.update_settings({"n": float("nan")})
    assert room.waiting() == 0


def test_python_start(tmp_path):
    env = {"room_settings": '{"map":"pit"}', "server_settings": '{"tick":60}', "room_id": "34",
           "game_max_players": "8", "login_access_token": "secret", "discovery_services": '{"a":"b"}'}
    room = Room(["game", f"ipc://{tmp_path}/none", "32765,32766", "--own"], env)
    assert room.endpoint == f"ipc://{tmp_path}/none" and room.ports == [32765, 32766]
    assert (room.room_settings, room.server_settings) == ({"map": "pit"}, {"tick": 60})
    assert (room.room_id, room.max_players, room.login_access_token) == ("34", 8, "secret")
    assert room.discovery_services == {"a": "b"}
    room.close()
    for argv in (["game"], ["game", "x"], ["game", "x", ""], ["game", "x", "1,"], ["game", "x" * 200, "1"]):
        with pytest.raises(RoomError):
            Room(argv, {})
    for name, value in (("room_settings", "[]"), ("server_settings", "{"), ("game_max_players", "x")):
        with pytest.raises(RoomError, match=name):
            Room(["game", f"{tmp_path}/none", "1"], {name: value})


def test_python_sdk_is_small():
    assert len(Path(muster_room.__file__).read_text().splitlines()) <= 250


# The arena.


class Arena:
    """build/arena on a free port, its output and its agent."""

    def __init__(self, folder, *arguments, **env):
        self.agent = FakeAgent(folder)
        self.port = free_ports()
        self.process = subprocess.Popen(
            [str(Path(binary()).parent / "arena"), self.agent.path, str(self.port), "--bind", "127.0.0.1",
             *map(str, arguments)],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said = b""
        self.connections = []

    def start(self):
        call = self.agent.hear("inited")
        self.agent.answer(call, {"status": "OK"})
        self.sees(r"ready for players")
        return call

    def sees(self, pattern):
        """Reads the arena's output until there is a line like that."""
        while not re.search(pattern, self.said.decode()):
            more = os.read(self.process.stdout.fileno(), 4096)
            assert more, f"no {pattern!r} in {self.said.decode()!r}"
            self.said += more

    def tcp(self):
        return self.connected(Tcp(self.port))

    def udp(self):
        return self.connected(Udp(self.port))

    def connected(self, connection):
        self.connections.append(connection)
        return connection

    def player(self, kind, account):
        player = getattr(self, kind)()
        player.say("key of " + account)
        call = self.agent.hear("joined")
        assert call["params"]["key"] == "key of " + account
        self.agent.admit(call, account)
        player.hears("welcome " + account)
        player.hears(f"* {account} joined")
        return player

    def ends(self, code=0):
        assert self.process.wait(PATIENCE_S) == code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for connection in self.connections:
            connection.close()
        self.process.stdin.close()
        self.process.stdout.close()
        self.agent.close()


class Tcp:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(PATIENCE_S)
        self.lines = self.socket.makefile("r")

    def say(self, *lines):
        self.socket.sendall("".join(line + "\n" for line in lines).encode())

    def hears(self, line):
        assert self.lines.readline() == line + "\n"

    def ends(self):
        assert self.lines.readline() == ""

    def close(self):
        self.lines.close()
        self.socket.close()


class Udp:
    def __init__(self, port):
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(("127.0.0.1", port))

    def say(self, *lines):
        for line in lines:
            self.socket.send(line.encode())

    def hears(self, line):
        assert self.socket.recv(4096).decode() == line + "\n"

    def close(self):
        self.socket.close()


@pytest.fixture
def make_arena(tmp_path):
    made = []

    def make(*arguments, **env):
        made.append(Arena(tmp_path, *arguments, **env))
        return made[-1]

    yield make
    for arena in made:
        arena.close()


@pytest.fixture
def arena(make_arena):
    arena = make_arena(game_max_players="3")
    arena.start()
    return arena


def test_arena_says_which_map_it_chose(make_arena):
    assert make_arena().start()["params"] == {"settings": {"map": "pit"}}


def test_arena_keeps_the_map_of_the_room(make_arena):
    assert make_arena(room_settings='{"map":"hall"}').start()["params"] == {}


def test_arena_exits_when_the_room_was_given_up(make_arena):
    arena = make_arena()
    arena.agent.refuse(arena.agent.hear("inited"), 410, "nobody waits any more")
    arena.sees("given up: nobody waits any more")
    arena.ends(code=1)


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_arena_echo_and_chat(arena, kind):
    anna, bob = arena.player(kind, "anna"), arena.player("tcp", "bob")
    anna.hears("* bob joined")
    anna.say("/echo 1", "hello", "/who")
    anna.hears("echo 1")
    anna.hears("anna: hello")
    anna.hears("here: anna bob")
    bob.hears("anna: hello")
    bob.say("hi")
    anna.hears("bob: hi")
    arena.sees(f"anna joined over {kind} from 127.0.0.1")


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_arena_a_bad_key_is_told_and_dropped(arena, kind):
    stranger = getattr(arena, kind)()
    stranger.say("wrong")
    arena.agent.refuse(arena.agent.hear("joined"), 403, "no such key")
    stranger.hears("bye: no such key")
    if kind == "tcp":
        stranger.ends()
    arena.agent.status()
    assert arena.agent.hear()["result"] == {"status": "ok"}, "nothing is said about a stranger"


def test_arena_no_key_within_five_seconds(arena):
    before = time.monotonic()
    silent = arena.tcp()
    silent.hears("bye: no key was shown in time")
    silent.ends()
    assert 4.9 < time.monotonic() - before < PATIENCE_S


def test_arena_lines_after_the_key_wait_for_the_agent(arena):
    anna = arena.tcp()
    anna.say("k", "/echo early", "/echo bird")
    arena.agent.admit(arena.agent.hear("joined"), "anna")
    for line in ("welcome anna", "* anna joined", "echo early", "echo bird"):
        anna.hears(line)


def test_arena_reports_a_closed_connection(arena):
    anna, bob = arena.player("tcp", "anna"), arena.player("tcp", "bob")
    anna.close()
    bob.hears("* anna left")
    assert arena.agent.hear("left")["params"] == {"key": "key of anna"}


def test_arena_reports_silence_over_udp(make_arena):
    arena = make_arena("--silence-ms", 300)
    arena.start()
    anna = arena.player("udp", "anna")
    assert arena.agent.hear("left")["params"] == {"key": "key of anna"}
    anna.hears("bye: silent")


def test_arena_a_player_who_went_before_the_answer_is_reported(arena):
    anna = arena.tcp()
    anna.say("k")
    call = arena.agent.hear("joined")
    anna.close()
    arena.sees("dropped a connection: closed")
    arena.agent.admit(call, "anna")
    assert arena.agent.hear("left")["params"] == {"key": "k"}


def test_arena_one_key_is_one_player(arena):
    arena.player("tcp", "anna")
    thief = arena.tcp()
    thief.say("key of anna")
    thief.hears("bye: somebody came with this key already")


def test_arena_is_full(arena):
    for account in ("anna", "bob", "carol"):
        arena.player("tcp", account)
    late = arena.tcp()
    late.say("k")
    late.hears("bye: the arena is full")


def test_arena_kick(arena):
    anna = arena.player("tcp", "anna")
    arena.agent.kick("key of anna", "banned")
    anna.hears("bye: kicked: banned")
    anna.ends()
    assert arena.agent.hear("left")["params"] == {"key": "key of anna"}
    arena.agent.kick("key of nobody", "banned")
    assert arena.agent.hear("check_deployment"), "it is empty"


def test_arena_changes_the_map(arena):
    anna = arena.player("tcp", "anna")
    anna.say("/map hall")
    anna.hears("* anna changed the map to hall")
    assert arena.agent.hear("update_settings")["params"] == {"settings": {"map": "hall"}}
    anna.say('/map x","admin":"y')
    anna.hears("that is no name of a map")


def test_arena_goes_when_outdated_and_empty(make_arena):
    arena = make_arena("--check-ms", 200)
    arena.start()
    anna = arena.player("tcp", "anna")
    arena.agent.refuse(arena.agent.hear("check_deployment"), 410, "a newer one is there")
    arena.sees("ending when empty: a newer one is there")
    anna.say("/echo on")
    anna.hears("echo on")
    anna.say("/quit")
    anna.hears("bye: as you wish")
    while (call := arena.agent.hear())["method"] != "left":
        arena.agent.answer(call)
    arena.agent.answer(call)
    arena.sees("ending: empty")
    arena.ends()


def test_arena_asks_when_the_last_player_left(arena):
    arena.player("tcp", "anna").close()
    arena.agent.answer(arena.agent.hear("left"))
    arena.agent.refuse(arena.agent.hear("check_deployment"), 404, "turned off")
    arena.ends()


def test_arena_ends_in_order(arena):
    anna, bob = arena.player("tcp", "anna"), arena.player("udp", "bob")
    anna.hears("* bob joined")
    arena.process.send_signal(signal.SIGTERM)
    bob.hears("* anna left")
    bob.hears("bye: the arena closes")
    assert {arena.agent.hear("left")["params"]["key"] for _ in range(2)} == {"key of anna", "key of bob"}
    arena.ends()
    arena.sees("over")


def test_arena_says_what_the_operator_types(arena):
    anna = arena.player("tcp", "anna")
    arena.process.stdin.write(b"restart in 5 minutes\n")
    arena.process.stdin.flush()
    anna.hears("operator: restart in 5 minutes")


def test_arena_survives_bad_players(arena):
    anna = arena.player("tcp", "anna")
    for rubbish in (b"\n", b"\xff\n", b"x" * 5000, b"\x00\n", b"k" * 300 + b"\n"):
        bad = arena.tcp()
        bad.socket.sendall(rubbish)
        assert bad.lines.readline().startswith("bye: ")
    stray = arena.udp()
    stray.socket.send(b"")
    stray.socket.send(b"x" * 5000)
    anna.say("/echo still here")
    anna.hears("echo still here")


def test_arena_goes_on_while_the_agent_is_away(make_arena):
    arena = make_arena("--repeat-ms", 300)
    arena.start()
    anna = arena.player("tcp", "anna")
    arena.agent.die()
    bob = arena.tcp()
    bob.say("key of bob")
    anna.say("/echo on")
    anna.hears("echo on")
    arena.agent.bind()
    while (call := arena.agent.hear())["method"] != "joined":
        arena.agent.answer(call)
    arena.agent.admit(call, "bob")
    bob.hears("welcome bob")


# The bot.


class FakeMuster(BaseHTTPRequestHandler):
    """Answers what the test's `answers` say, one after the other, and keeps what was asked."""

    def do_POST(self):  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        status, answer, headers = self.server.answers.pop(0)
        text = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(text), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def muster():
    server = HTTPServer(("127.0.0.1", 0), FakeMuster)
    server.asked, server.answers = [], []
    server.url = "http://127.0.0.1:%d" % server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def bot(muster, *arguments):
    return subprocess.Popen([str(REPO / "examples" / "arena_bot"), "--url", muster.url, *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PYTHONUNBUFFERED": "1"})


def seat_at(arena):
    return {"id": "12", "slot": "77", "location": {"host": "127.0.0.1", "ports": [arena.port]}, "settings": {},
            "key": "secret"}


def error(sentence):
    return {"error": {"code": "x", "message": sentence}}


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_bot_joins_and_plays(arena, muster, kind):
    muster.answers = [(200, {"token": "mine"}, {}), (503, error("full"), {"Retry-After": 0}),
                      (200, seat_at(arena), {})]
    playing = bot(muster, "--token", "admin", "--account", "anna", "--seconds", "1", "--game", "g", "--server",
                  "s", "--version", "2", "--settings", '{"map":"pit"}', *(["--udp"] if kind == "udp" else []))
    call = arena.agent.hear("joined")
    assert call["params"]["key"] == "secret"
    arena.agent.admit(call, "anna")
    assert arena.agent.hear("left")["params"]["key"] == "secret"
    output, _ = playing.communicate(timeout=PATIENCE_S)
    assert playing.returncode == 0, output
    assert "room 12 at 127.0.0.1" in output and f"playing as anna over {kind}" in output
    assert re.search(r"played 1 s: \d+ echoes, round trip [\d.]+ ms", output)
    assert "secret" not in output
    assert muster.asked == [
        ("/v1/access-tokens", "Bearer admin", {"account": "anna", "scopes": ["game"]}),
        ("/join/g/s/2", "Bearer mine", {"settings": {"map": "pit"}}),
        ("/join/g/s/2", "Bearer mine", {"settings": {"map": "pit"}}),
    ]


def test_bot_says_why_it_was_refused(muster):
    muster.answers = [(423, error("banned until tomorrow"), {})]
    playing = bot(muster, "--token", "mine")
    output, _ = playing.communicate(timeout=PATIENCE_S)
    assert (playing.returncode, output) == (1, "arena_bot: refused (423): banned until tomorrow\n")


def test_bot_whose_key_is_refused(arena, muster):
    muster.answers = [(200, seat_at(arena), {})]
    playing = bot(muster, "--token", "mine")
    arena.agent.refuse(arena.agent.hear("joined"), 403, "no such key")
    output, _ = playing.communicate(timeout=PATIENCE_S)
    assert playing.returncode == 1 and output.endswith("arena_bot: bye: no such key\n")


def test_bot_without_muster(muster):
    muster.url = "http://127.0.0.1:%d" % free_ports()
    playing = bot(muster, "--token", "mine")
    output, _ = playing.communicate(timeout=PATIENCE_S)
    assert playing.returncode == 3 and "cannot reach" in output
