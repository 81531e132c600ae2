"""Rooms from end to end: a real control plane, real agents, real game servers, and players who ask
over HTTP. What needs a control plane or an agent written by hand is in test_agent.py and
test_play_rooms.py; bots that play are in test_arena.py."""

import contextlib
import ctypes
import http.client
import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agent_proc import MARK, Agent, alive
from muster_proc import REPO, run
from players import token_of
from ports import free_ports
from real_rooms import ARENA, PROBE, Rooms, parent_of, playing
from test_agent import MALFORMED

LOST_RACE = (503, "no_place")


@pytest.fixture
def make_rooms(make_world, tmp_path):
    """Rooms with one host, unless the test starts its own."""
    made = []

    def make(host=True, agent=None, **options):
        made.append(Rooms(make_world, tmp_path, **options))
        if host:
            made[-1].host(**(agent or {}))
        return made[-1]

    yield make
    for rooms in made:
        rooms.close()


def where(rooms):
    """What a command needs to find that Muster."""
    muster = rooms.world.muster
    return "--url", "http://%s:%d" % muster.http_address, "--data", muster.data


def crash_the_control_plane(rooms):
    rooms.world.crash()
    rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")


# ── the flow ──────────────────────────────────────────────────────────────────────────────────


def test_the_whole_flow(make_rooms):
    """From the player's wish to the end of the process, with a game server after the seed."""
    rooms = make_rooms(arguments=["--settings", '{"map":"goodone"}'], ports=2, empty_timeout_s=1,
                       server_settings='{"tick":60}')
    placed = rooms.create("ann", {"map": "badone", "mode": "duel"}, info={"skin": "red"})
    assert placed["settings"] == {"map": "goodone", "mode": "duel"}
    pid = rooms.pid(placed)
    said = rooms.first_line(placed)
    assert said["argv"][2] == ",".join(map(str, placed["location"]["ports"]))
    assert json.loads(said["env"]["room_settings"]) == {"map": "badone", "mode": "duel"}
    assert said["env"]["room_id"] == placed["id"]

    told = rooms.joined(placed)
    assert (told["account"], told["info"], told["scopes"]) == ("ann", {"skin": "red"}, ["game"])
    assert rooms.world.api.with_token(told["access_token"]).get("/player/ann")["seats"]
    assert rooms.seats("ann")[0]["state"] == "taken"

    second = rooms.player("bob").join({"map": "goodone"})
    assert (second["id"], second["location"]) == (placed["id"], placed["location"])
    master = token_of(rooms.world, "arena", "game_ban")
    more = rooms.call(placed, "joined", key=second["key"], extend_token=master,
                      extend_scopes="game_ban")["result"]
    assert sorted(more["scopes"]) == ["game", "game_ban"]

    assert rooms.call(placed, "update_settings", settings={"map": "ice"})["result"] == {}
    assert [r["settings"] for r in rooms.player("cat").rooms()] == [{"map": "ice"}]
    assert rooms.call(placed, "check_deployment")["result"] == {}
    for key in (placed["key"], second["key"]):
        assert rooms.call(placed, "left", key=key)["result"] == {}
    assert rooms.seats("ann") == rooms.seats("bob") == []

    room = rooms.ended(placed)
    assert (room["end_reason"], room["exit"]["signal"]) == ("empty", signal.SIGTERM)
    assert not alive(pid)
    assert rooms.player("cat").rooms() == []
    for secret in (placed["key"], second["key"], told["access_token"], master, rooms.agent.token):
        assert secret not in rooms.world.muster.log() + rooms.agent.log()


def test_two_hundred_race_for_the_last_seat(make_rooms):
    """One wins it. Whoever wanted that room hears a clear no, whoever wanted any gets another."""
    rooms = make_rooms(binary=ARENA, max_players=2,
                       world={"http": {"connections": 1000, "connections_per_address": 1000}})
    placed = rooms.create("first")
    there, any_room = f"/room/arena/{placed['id']}/join", "/join/arena/main/1.0"
    racers = [(rooms.player(f"p{i}"), any_room if i % 10 == 0 else there) for i in range(200)]
    answers = [None] * len(racers)
    start = threading.Barrier(len(racers))

    def race(i, player, path):
        start.wait()
        answers[i] = player.ask("POST", path, data={}, timeout_s=60)

    threads = [threading.Thread(target=race, args=(i, *racer)) for i, racer in enumerate(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    won = [i for i, a in enumerate(answers) if a.status == 200 and a.json["id"] == placed["id"]]
    assert len(won) == 1
    for i, answer in enumerate(answers):
        if racers[i][1] == there and i not in won:
            assert (answer.status, answer.error["code"]) == LOST_RACE, answer
        else:
            assert answer.status == 200, answer
    rooms_of = {a.json["id"] for a in answers if a.status == 200}
    taken = [r["reserved"] for r in rooms.api.all("/v1/rooms")]
    assert len(taken) == len(rooms_of) and max(taken) <= 2
    assert rooms.room(placed)["reserved"] == 2
    with playing(answers[won[0]].json) as lines:
        assert lines.readline() == f"welcome p{won[0]}\n"


# ── reservations and keys ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_a_reservation_ends_at_its_deadline(make_rooms, crash):
    rooms = make_rooms(reserve_s=3)
    placed = rooms.create("ann")
    second = rooms.player("bob").enter(placed["id"])
    rooms.joined(placed, second["key"])
    if crash:
        crash_the_control_plane(rooms)
        assert [s["slot"] for s in rooms.seats("ann")] == [placed["slot"]]
    rooms.wait(lambda: rooms.seats("ann") == [], "end of a reservation")
    assert rooms.code(placed, "joined", key=placed["key"]) == 403
    assert [s["state"] for s in rooms.seats("bob")] == ["taken"]


def test_a_key_outlives_the_control_plane(make_rooms):
    rooms = make_rooms()
    placed = rooms.create("ann")
    crash_the_control_plane(rooms)
    assert rooms.joined(placed)["account"] == "ann"
    crash_the_control_plane(rooms)
    assert [s["state"] for s in rooms.seats("ann")] == ["taken"]
    assert rooms.code(placed, "left", key=placed["key"]) == 0
    assert rooms.seats("ann") == []


@pytest.mark.parametrize("away", ["stopped", "killed"])
def test_reservations_stand_still_while_the_host_is_away(make_rooms, away):
    rooms = make_rooms(reserve_s=4, world={"host_ms": 1000})
    placed = rooms.create("ann")
    if away == "stopped":
        os.kill(rooms.agent.process.pid, signal.SIGSTOP)
    else:
        rooms.agent.kill9()
    rooms.wait(lambda: rooms.host_state() == "silent", "silence of the host")
    assert rooms.room(placed)["host_away"] is True
    rooms.world.elapse(4.2)  # the time that stands still
    assert [s["slot"] for s in rooms.seats("ann")] == [placed["slot"]]
    answer = rooms.player("bob").ask("POST", f"/room/arena/{placed['id']}/join", data={})
    assert (answer.status, answer.error["code"]) == (503, "host_away")
    if away == "stopped":
        os.kill(rooms.agent.process.pid, signal.SIGCONT)
    else:
        rooms.agent.start()
    assert rooms.joined(placed)["account"] == "ann"
    assert rooms.player("bob").enter(placed["id"])["id"] == placed["id"]


def test_a_key_opens_one_seat_once(make_rooms):
    rooms = make_rooms()
    placed, other = rooms.create("ann"), rooms.create("bob")
    assert rooms.code(other, "joined", key=placed["key"]) == 403
    assert rooms.code(placed, "joined", key=placed["key"][:-1]) == 403
    assert rooms.joined(placed)["account"] == "ann"
    assert rooms.code(placed, "joined", key=placed["key"]) == 409
    assert rooms.code(other, "joined", key=placed["key"]) == 403
    assert rooms.code(other, "left", key=placed["key"]) == 0  # which is not his to say
    assert [s["state"] for s in rooms.seats("ann")] == ["taken"]
    assert rooms.code(placed, "left", key=placed["key"]) == 0
    assert rooms.code(placed, "left", key=placed["key"]) == 0
    assert rooms.code(placed, "joined", key=placed["key"]) == 403
    assert rooms.seats("ann") == []


# ── servers that do not come up, or hang ──────────────────────────────────────────────────────


def test_what_keeps_a_server_from_coming_up_is_told(make_rooms):
    rooms = make_rooms(others={
        "slow": {"arguments": ["--no-inited"], "spawn_timeout_s": 1},
        "exits": {"arguments": ["--exit", "3"]},
        "crashes": {"arguments": ["--crash"]},
        "missing": {"binary": "/no/such/server"},
    })
    rooms.create("zoe")  # something works there
    for game, status, code, sentence, output in [
            ("slow", 504, "spawn_timeout", "did not initialise in 1 s", '"argv"'),
            ("exits", 503, "spawn_failed", "exited with status 3", "that was all"),
            ("crashes", 503, "spawn_failed", "signal 11", '"argv"'),
            ("missing", 503, "spawn_failed", "/no/such/server", "")]:
        answer = rooms.player("ann", game).cannot(status, code, "create")
        assert sentence in answer.error["message"], answer.error
        assert output in answer.error.get("output", ""), answer.error
        ticket = rooms.api.get(f"/v1/tickets/{answer.error['ticket']}")
        assert ticket["state"] == "failed"
        assert rooms.host_state() == "well", "bad games close no host"
    assert rooms.seats("ann") == []
    rooms.wait(lambda: sum(map(alive, rooms.agent.pids())) == 2, "end of all that did not come up")
    assert rooms.joined(rooms.create("ann"))["account"] == "ann", "the others are not touched"


def leaky(tmp_path, **changes):
    env = [{"key": "STATS_KEY", "value": "0123-stats-4567"}, {"key": MARK, "value": str(tmp_path)}]
    return {"access_token": {"account": "server-of-arena", "scopes": "profile"}, "env": env,
            "server_settings": '{"map": "ice", "db": {"password": "correct horse"}}', **changes}


def test_how_a_failed_start_ended_is_kept(make_rooms, tmp_path):
    """Room by room: with which status, after how long and with which last words; and of a process
    that never ran, why."""
    unread = tmp_path / "unread"
    unread.write_text("#!/no/such/interpreter\n")
    unread.chmod(0o755)
    rooms = make_rooms(others={
        "exits": {"arguments": ["--exit", "77"]},
        "crashes": {"arguments": ["--crash"]},
        "slow": {"arguments": ["--no-inited"], "spawn_timeout_s": 1},
        "unread": {"binary": str(unread)},
        "missing": {"binary": "/no/such/server"},
    })

    def end_of(game):
        rooms.wait(lambda: rooms.host_state() == "well", "end of a back-off")
        answer = rooms.player("ann", game).ask("POST", f"/create/{game}/main/1.0", data={})
        ticket = answer.error["ticket"]
        found, = [r for r in rooms.api.all("/v1/rooms") if r["ticket"] == ticket]
        rooms.wait(lambda: rooms.room(found)["exit"], "end of a room")
        return rooms.room(found)["exit"], found["server"]

    for game, code, sig, why, tail in [
            ("exits", 77, None, None, "that was all"),
            ("crashes", None, signal.SIGSEGV, None, '"argv"'),
            ("slow", None, signal.SIGKILL, None, '"argv"'),
            ("unread", None, None, "cannot execute", ""),
            ("missing", None, None, "/no/such/server", "")]:
        end, server = end_of(game)
        assert (end["code"], end["signal"]) == (code, sig), (game, end)
        assert tail in end["tail"], end
        if why:
            assert why in end["why"] and end["tail"] == "" and end["run_ms"] == 0, end
        else:
            assert end["why"] is None and end["run_ms"] > 0 and end["peak_memory"] > 0, end
        shown = run("server", server, *where(rooms))
        assert shown.returncode == 0, shown.stderr
        if code is not None:
            assert re.search(rf"^exit\.code +{code}$", shown.stdout, re.MULTILINE), shown.stdout
        assert (why or tail) in shown.stdout


def test_what_a_game_server_was_given_is_not_shown_to_players(make_rooms, tmp_path):
    """It prints all of its environment, then ends or goes on."""
    arguments = ["--exit", "3", "--token", "tell-nobody"]
    rooms = make_rooms(others={"leaky": leaky(tmp_path, arguments=arguments),
                               "sound": leaky(tmp_path)})
    answer = rooms.player("ann", "leaky").cannot(503, "spawn_failed", "create")
    said = answer.error["output"]
    assert "that was all" in said and '"map' in said.replace("\\", "")
    for hidden in ("eyJ", "correct horse", "0123-stats", "tell-nobody"):
        assert hidden not in said, said
    assert '"login_access_token": "***"' in said and '"--token", "***"' in said

    placed = rooms.create("ann", game="sound")
    told = rooms.joined(placed)
    assert told["account"] == "ann" and told["access_token"].startswith("eyJ")
    rooms.agent.say(placed["server"], json.dumps({"key": placed["key"]}))
    environ = Path(f"/proc/{rooms.pid(placed)}/environ").read_text()
    assert "login_access_token=eyJ" in environ and "STATS_KEY=0123-stats-4567" in environ
    logs = rooms.agent.ask("GET", f"/servers/{placed['server']}/logs")[1].decode()
    end_it_now(rooms, placed)
    shown = rooms.ended(placed)["exit"]["tail"], rooms.agent.show(placed["server"])["tail"]
    for text in (logs, *shown):
        assert "***" in text
        for hidden in ("eyJ", "correct horse", "0123-stats", placed["key"]):
            assert hidden not in text, text


def test_an_agent_that_took_over_knows_what_was_given(make_rooms, tmp_path):
    rooms = make_rooms(others={"sound": leaky(tmp_path)})
    placed = rooms.create("ann", game="sound")
    rooms.agent.kill9()
    rooms.agent.start()
    logs = rooms.agent.ask("GET", f"/servers/{placed['server']}/logs")[1].decode()
    assert '"argv"' in logs
    for hidden in ("eyJ", "correct horse", "0123-stats"):
        assert hidden not in logs, logs


def test_one_that_hangs_and_ignores_sigterm_is_killed(make_rooms):
    rooms = make_rooms(others={
        "hangs": {"arguments": ["--status", "bad", "--ignore-term"], "status_period_s": 1}})
    hangs, lives = rooms.create("ann", game="hangs"), rooms.create("bob")
    room = rooms.ended(hangs)
    assert (room["end_reason"], room["exit"]["signal"]) == ("hung", signal.SIGKILL)
    assert room["exit"]["run_ms"] > 5000
    assert rooms.player("ann", "hangs").seats() == []
    assert rooms.joined(lives)["account"] == "bob"


def test_one_that_is_stopped_is_found_beside_one_that_is_never_asked(make_rooms):
    rooms = make_rooms(others={"hangs": {"status_period_s": 1}})
    hangs, lives = rooms.create("ann", game="hangs"), rooms.create("bob")
    for placed in (hangs, lives):
        rooms.joined(placed)
    os.kill(rooms.pid(hangs), signal.SIGSTOP)
    room = rooms.ended(hangs, within_s=60)
    assert (room["end_reason"], room["exit"]["signal"]) == ("hung", signal.SIGKILL)
    assert rooms.player("ann", "hangs").seats() == []
    assert rooms.room(lives)["state"] == "open"
    assert [s["state"] for s in rooms.seats("bob")] == ["taken"]


def test_an_operator_ends_one_that_ignores_sigterm(make_rooms):
    rooms = make_rooms(arguments=["--ignore-term"])
    placed = rooms.create("ann")
    told = run("terminate", placed["server"], *where(rooms))
    assert told.returncode == 0, told.stderr
    room = rooms.ended(placed)
    assert (room["end_reason"], room["exit"]["signal"]) == ("by_operator", signal.SIGKILL)
    assert rooms.seats("ann") == []


# ── what they say ─────────────────────────────────────────────────────────────────────────────


def test_rubbish_of_one_server_does_not_touch_the_others(make_rooms):
    rooms = make_rooms()
    bad, good = rooms.create("ann"), rooms.create("bob")
    settings = {}
    with rooms.agent.follow(bad["server"], lines=0) as log:
        for n, (text, code, number) in enumerate(MALFORMED):
            rooms.agent.say(bad["server"], text)
            answer = log.message()
            assert (answer["error"]["code"], answer["id"]) == (code, number), text
            if n % 5 == 0:
                settings = {"n": n}
                assert rooms.code(good, "update_settings", settings=settings) == 0
    assert rooms.room(good)["settings"] == settings
    assert rooms.joined(good)["account"] == "bob"
    assert rooms.joined(bad)["account"] == "ann", "and it may still speak sense"
    assert rooms.room(bad)["settings"] == {}


HOSTILE = {"new\nline": 'a"b\\c\n\r\t', "": "ä€😀", "%s%n": "$(reboot); `reboot` || reboot",
           "PATH=x": "=", "deep": [[[{"a": None}]]], "number": 1.5, "big": 2**53, "yes": True}


def test_hostile_settings_arrive_as_they_are_or_not_at_all(make_rooms):
    rooms = make_rooms()
    placed = rooms.create("ann", HOSTILE)
    said = rooms.first_line(placed)
    assert json.loads(said["env"]["room_settings"]) == HOSTILE
    assert len(said["argv"]) == 3
    ann = rooms.player("ann")
    ann.cannot(400, "bad_argument", "create", data={"settings": {"a": "x\0y"}})
    ann.cannot(400, "bad_argument", "create", data={"settings": {"a\0b": 1}})
    ann.cannot(413, "too_large", "create", data={"settings": {"a": "x" * 200 * 1024}})
    assert [s["slot"] for s in rooms.seats("ann")] == [placed["slot"]]
    large = {"a": "x" * 30 * 1024}
    said = rooms.first_line(rooms.create("bob", large))
    assert json.loads(said["env"]["room_settings"]) == large

    hostile = {**HOSTILE, "from": "server"}
    assert rooms.code(placed, "update_settings", settings=hostile) == 0
    assert rooms.room(placed)["settings"] == hostile
    assert ann.rooms({"from": "server"})[0]["settings"] == hostile
    with rooms.agent.follow(placed["server"], lines=0) as log:
        rooms.agent.say(placed["server"], {
            "jsonrpc": "2.0", "method": "update_settings", "params": {"settings": {"a": "x\0y"}},
            "id": 50})
        assert log.message()["error"]["code"] == -32700
    assert rooms.room(placed)["settings"] == hostile


# ── somebody dies ─────────────────────────────────────────────────────────────────────────────


def test_an_agent_dies_with_twenty_games_and_the_control_plane_meanwhile(make_rooms):
    """None of the games dies, the next agent takes all of them over, and tells what ended."""
    rooms = make_rooms(binary=ARENA)
    made = [rooms.create(f"p{i}") for i in range(20)]
    pids = {p["server"]: rooms.pid(p) for p in made}
    with playing(made[0]) as lines:
        assert lines.readline() == "welcome p0\n"
        rooms.agent.kill9()
        killed, ended = made[18], made[19]
        os.kill(pids[killed["server"]], signal.SIGKILL)
        os.kill(pids[ended["server"]], signal.SIGTERM)
        lines.write("/echo still here\n")
        lines.flush()
        assert [line for line in iter(lines.readline, "echo still here\n") if not line] == []
        rooms.world.muster.kill9()
        rooms.world.muster.restart()
        rooms.agent.start()
        assert rooms.agent.adopted == 20

        assert rooms.ended(killed)["exit"]["signal"] == signal.SIGKILL
        gone = rooms.ended(ended)
        assert (gone["end_reason"], gone["exit"]["code"]) == ("exited", 0)
        assert "over" in gone["exit"]["tail"]
        assert rooms.seats("p18") == rooms.seats("p19") == []
        for placed in made[:18]:
            assert rooms.pid(placed) == pids[placed["server"]] and alive(pids[placed["server"]])
            assert rooms.room(placed)["state"] == "open"
            assert [s["slot"] for s in rooms.seats(f"p{made.index(placed)}")] == [placed["slot"]]
        rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
        late = rooms.player("late").enter(made[5]["id"])
        with playing(late) as others:
            assert others.readline() == "welcome late\n"


def create_in_thread(rooms, account, **options):
    """Somebody waits for the first room. Returns it when its server has been started, and who waits:
    a thread with the `answer`, which stays None when the connection is cut."""
    def wait():
        with contextlib.suppress(OSError, http.client.HTTPException):
            thread.answer = rooms.player(account).ask(
                "POST", "/create/arena/main/1.0", data={}, timeout_s=60, **options)

    thread = threading.Thread(target=wait)
    thread.answer = None
    thread.start()
    room = rooms.wait(lambda: rooms.api.all("/v1/rooms"), "room")[0]
    placed = {"id": room["id"], "server": int(room["server"])}
    rooms.wait(lambda: rooms.agent.ask("GET", f"/servers/{placed['server']}")[0] == 200
               and rooms.pid(placed), "start of the server")
    return placed, thread


INITED = {"jsonrpc": "2.0", "method": "inited", "params": {}, "id": 1}


def test_an_agent_dies_while_a_server_starts(make_rooms):
    """Whoever waits for it does not notice."""
    rooms = make_rooms(arguments=["--no-inited"])
    placed, waiting = create_in_thread(rooms, "ann")
    pid = rooms.pid(placed)
    rooms.agent.kill9()
    rooms.agent.start()
    assert rooms.agent.adopted == 1 and rooms.pid(placed) == pid
    rooms.agent.say(placed["server"], INITED)
    waiting.join()
    assert (waiting.answer.status, waiting.answer.json["id"]) == (200, placed["id"])
    assert rooms.joined({**placed, "key": waiting.answer.json["key"]})["account"] == "ann"


def test_the_control_plane_dies_while_a_server_starts(make_rooms):
    """Whoever asks again with the same key gets the room he was waiting for."""
    rooms = make_rooms(arguments=["--no-inited"])
    once = {"Idempotency-Key": "once"}
    ann = rooms.player("ann")
    placed, waiting = create_in_thread(rooms, "ann", headers=once)
    rooms.world.muster.kill9()
    waiting.join()
    assert waiting.answer is None
    rooms.agent.say(placed["server"], INITED)
    rooms.world.muster.restart()
    answer = ann.ask("POST", "/create/arena/main/1.0", data={}, headers=once, timeout_s=60)
    assert (answer.status, answer.json["id"]) == (200, placed["id"]), answer
    assert len(rooms.api.all("/v1/rooms")) == 1
    assert rooms.joined({**placed, "key": answer.json["key"]})["account"] == "ann"


def test_a_host_that_is_lost_comes_back(make_rooms):
    """Its rooms were over and their seats given back: nobody needs its servers any more."""
    rooms = make_rooms(binary=ARENA, world={"host_ms": 600, "host_lost_ms": 1500})
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    rooms.agent.kill9()
    room = rooms.ended(placed)
    assert room["end_reason"] == "host_lost"
    assert rooms.seats("ann") == []
    assert alive(pid)
    rooms.agent.start()
    rooms.wait(lambda: not alive(pid), "end of a server without a room")
    rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
    assert rooms.create("ann")["id"] != placed["id"]


def test_agent_and_shim_die_and_the_game_goes_on(make_rooms):
    rooms = make_rooms(binary=ARENA)
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    with playing(placed) as lines:
        assert lines.readline() == "welcome ann\n"
        shim = parent_of(pid)
        rooms.agent.kill9()
        os.kill(shim, signal.SIGKILL)
        rooms.agent.start()
        assert rooms.agent.adopted == 1 and rooms.pid(placed) == pid
        late = rooms.player("bob").enter(placed["id"])
        with playing(late) as others:
            assert others.readline() == "welcome bob\n"
    rooms.wait(lambda: not rooms.room(placed)["taken"], "end of both seats")
    os.kill(pid, signal.SIGKILL)
    assert rooms.ended(placed)["end_reason"] == "exited"


def test_an_agent_that_dies_as_a_game_starts_finds_it_again(make_rooms):
    """Killed the moment the game runs, and back at once: it is taken over, or was only prepared and
    is started again, and the player is placed."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        runs, game = Path(folder) / "runs", Path(folder) / "game"
        os.mkfifo(runs)
        runs.chmod(0o666)
        said = os.fdopen(os.open(runs, os.O_RDWR), "rb", buffering=0)  # nobody waits to say it
        stack.enter_context(said)
        game.write_text(f'#!/bin/sh\necho > {runs}\nexec {ARENA} "$@"\n')
        game.chmod(0o755)
        rooms = make_rooms(binary=game)
        for name in ("ann", "bob", "cid"):
            with ThreadPoolExecutor(1) as asking:
                asked = asking.submit(rooms.create, name)
                said.read(100)
                rooms.agent.kill9()
                rooms.agent.start()
                placed = asked.result(timeout=30)
            with playing(placed) as lines:
                assert lines.readline() == f"welcome {name}\n"
            while select.select([said], [], [], 0)[0]:
                said.read(100)  # of one that was started again
        rooms.wait(lambda: len(rooms.agent.pids()) == 2 * 3, "one game and one shim for each")


def test_a_host_that_cannot_start_it_is_passed_over(make_rooms):
    rooms = make_rooms(host=False, world={"spawn_retry_ms": 20000})
    port = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        rooms.host("bad", ports=f"{port}-{port}")
        good = rooms.host("good")
        for name in ("ann", "bob"):  # one of them is sent to the bad one first, if not both
            placed = rooms.player(name).create()
            assert placed["location"]["ports"][0] != port
            assert rooms.room(placed)["host_name"] == "good"
        assert good.ask("GET", f"/servers/{rooms.room(placed)['server']}")[0] == 200


def test_a_killed_shim_is_replaced(make_rooms):
    rooms = make_rooms(binary=PROBE)
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    shim = parent_of(pid)
    assert Path(f"/proc/{shim}/comm").read_text().startswith("muster-shim")
    os.kill(shim, signal.SIGKILL)
    rooms.wait(lambda: not alive(shim), "end of the shim")
    assert alive(pid)
    assert rooms.tell(placed, "deployment", '"deployment"')["deployment"] == 0
    rooms.agent.say(placed["server"], "exit 5")
    assert rooms.ended(placed)["exit"]["code"] == 5


def test_what_happens_while_the_control_plane_is_away_is_told_afterwards(make_rooms):
    rooms = make_rooms()
    first, second, third = (rooms.create(name) for name in ("ann", "bob", "cat"))
    rooms.joined(second)
    rooms.world.muster.kill9()
    with rooms.agent.follow(first["server"], lines=0) as log:
        def say(number, method, **params):
            rooms.agent.say(first["server"], {
                "jsonrpc": "2.0", "method": method, "params": params, "id": number})

        for n in range(20):
            say(200 + n, "update_settings", settings={"n": n})
        say(300, "joined", key=first["key"])
        say(301, "left", key=first["key"])
        say(302, "joined", key=first["key"])
        rooms.agent.say(second["server"], {
            "jsonrpc": "2.0", "method": "left", "params": {"key": second["key"]}})
        os.kill(rooms.pid(third), signal.SIGKILL)
        rooms.wait(lambda: rooms.agent.show(third["server"])["state"] == "over", "end of a server")
        rooms.world.muster.restart()
        answers = [log.message() for _ in range(23)]
    by_number = {a["id"]: a for a in answers}
    settled = [a["id"] for a in answers if a["id"] < 300]
    assert settled == list(range(200, 220))
    assert [a["id"] for a in answers if a["id"] >= 300] == [300, 301, 302]
    assert by_number[300]["result"]["account"] == "ann"
    assert by_number[302]["error"]["code"] == 403
    assert rooms.room(first)["settings"] == {"n": 19}
    rooms.wait(lambda: rooms.seats("bob") == [], "end of a seat")
    assert rooms.ended(third)["exit"]["signal"] == signal.SIGKILL
    assert rooms.seats("ann") == rooms.seats("cat") == []


# ── processes and ports ───────────────────────────────────────────────────────────────────────


def test_a_port_is_given_again_when_its_server_is_reaped(make_rooms):
    rooms = make_rooms(host=False, ports=2)
    port = free_ports(2)
    rooms.host(ports=f"{port}-{port + 1}")
    placed = rooms.create("ann")  # has both
    pid = rooms.pid(placed)
    os.kill(pid, signal.SIGSTOP)  # so that SIGTERM waits
    assert rooms.api.ask("POST", f"/v1/servers/{placed['server']}/terminate", data={}).status == 200
    rooms.wait(lambda: rooms.agent.show(placed["server"])["state"] == "ending", "SIGTERM")
    answer = rooms.player("bob").cannot(503, "spawn_failed", "create")
    assert "port" in answer.error["message"], answer.error
    assert alive(pid)
    os.kill(pid, signal.SIGCONT)
    rooms.ended(placed)
    rooms.wait(lambda: rooms.host_state() == "well", "end of a back-off")
    again = rooms.create("bob")["location"]
    assert sorted(again["ports"]) == sorted(placed["location"]["ports"])


CLONE = """
import ctypes, os, signal, sys
class Args(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal",
        "stack", "stack_size", "tls", "set_tid", "set_tid_size", "cgroup")]
wanted = (ctypes.c_int * 1)(int(sys.argv[1]))
args = Args(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
libc = ctypes.PyDLL(None, use_errno=True)
pid = libc.syscall(435, ctypes.byref(args), ctypes.sizeof(args))
if pid == 0:
    os.execv("/bin/sleep", ["sleep", "300"])
print(pid if pid > 0 else -ctypes.get_errno(), flush=True)
if pid > 0:
    os.waitpid(pid, 0)
"""


class Stranger:
    """A process of somebody else that got that very pid."""

    def __init__(self, pid):
        self.pid = pid
        self.parent = subprocess.Popen([sys.executable, "-c", CLONE, str(pid)], stdout=subprocess.PIPE)
        got = int(self.parent.stdout.readline())
        if got < 0:
            self.parent.wait()
            self.parent.stdout.close()
            pytest.skip(f"clone3 with set_tid: {os.strerror(-got)}")
        assert got == pid

    def close(self):
        if alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        self.parent.wait()
        self.parent.stdout.close()


@pytest.fixture
def reaper():
    """What loses its parents becomes our child, so that its pid can be had."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(36, 1, 0, 0, 0) == 0
    yield lambda pid: os.waitpid(pid, 0)
    assert prctl(36, 0, 0, 0, 0) == 0


def end_it_now(rooms, placed):
    path = f"/servers/{placed['server']}/terminate"
    assert rooms.agent.post(path, why="x", grace_ms=0)[0] == 202


def test_the_next_owner_of_a_pid_is_left_alone(make_rooms, reaper):
    """Agent, shim and game die, and the game's pid is given to somebody else before the next agent
    comes: who is neither taken for the game nor ended with it."""
    rooms = make_rooms(binary=ARENA)
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    shim = parent_of(pid)
    rooms.agent.kill9()
    os.kill(shim, signal.SIGKILL)
    reaper(shim)
    os.kill(pid, signal.SIGKILL)
    reaper(pid)
    stranger = Stranger(pid)
    try:
        rooms.agent.start()
        room = rooms.ended(placed)
        assert room["end_reason"] == "exited"
        assert room["exit"]["code"] is None and room["exit"]["signal"] is None, "nobody saw it"
        rooms.api.ask("POST", f"/v1/servers/{placed['server']}/terminate", data={})
        end_it_now(rooms, placed)
        assert rooms.agent.show(placed["server"])["state"] == "over"
        assert rooms.create("bob")["id"] != placed["id"]
        assert alive(pid)
    finally:
        stranger.close()


def test_the_next_owner_of_a_pid_is_left_alone_by_a_living_agent(make_rooms):
    rooms = make_rooms(binary=ARENA)
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    os.kill(pid, signal.SIGKILL)
    rooms.ended(placed)
    rooms.wait(lambda: not Path(f"/proc/{pid}").exists(), "end of the process")
    stranger = Stranger(pid)
    try:
        end_it_now(rooms, placed)
        assert rooms.agent.term() == 0
        rooms.agent.start()
        rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
        assert rooms.create("bob")["id"] != placed["id"]
        assert alive(pid)
    finally:
        stranger.close()


MIB = 1 << 20


def test_a_flood_of_output_stays_within_its_limit(make_rooms):
    """1 GiB: the log has its cap, and neither heartbeats nor other rooms are held up."""
    rooms = make_rooms(others={"loud": {"binary": str(PROBE)}}, world={"host_ms": 1500},
                       agent={"log-mib": 1, "log-files": 2})
    loud, quiet = rooms.create("ann", game="loud"), rooms.create("bob")
    with rooms.agent.follow(loud["server"], lines=0) as log:
        rooms.agent.say(loud["server"], "flood 1024")
        log.until(lambda line: line.startswith("xxxx"))
        assert rooms.joined(quiet)["account"] == "bob"
        assert rooms.code(quiet, "update_settings", settings={"during": "flood"}) == 0
    rooms.wait(lambda: rooms.room(loud)["settings"] == {"flooded": 1024}, "end of the flood")
    assert rooms.host_state() == "well"
    assert not rooms.world.muster.log_lines("host silent")
    home = rooms.agent.data / "servers" / str(loud["server"])
    logs = [f.stat().st_size for f in home.iterdir() if f.name.startswith("log")]
    assert MIB <= sum(logs) <= 2 * MIB, logs
    rooms.agent.say(loud["server"], "exit 5")
    room = rooms.ended(loud)
    assert room["exit"]["code"] == 5
    assert 1022 * MIB < room["exit"]["dropped_bytes"] < 1024 * MIB
    assert room["exit"]["tail"].endswith("x" * 1023 + "\n")
    said = rooms.agent.ask("GET", f"/servers/{loud['server']}/logs?lines=10000")[1].decode()
    assert "bytes of output dropped]" in said


# ── what a game server is given ───────────────────────────────────────────────────────────────


def test_a_game_server_has_nothing_of_the_agents(make_rooms):
    rooms = make_rooms(binary=PROBE)
    said = rooms.first_line(rooms.create("ann"))
    said["env"].pop("LC_CTYPE", None)  # Python's own
    assert sorted(said["env"]) == [
        "MUSTER_TEST_FOLDER", "discovery_services", "game_max_players", "room_id", "room_settings",
        "server_settings"]
    assert said["files"] == [0, 1, 2]
    assert said["cwd"].startswith(str(rooms.agent.data))
    assert said["status"]["NoNewPrivs"] == ["1"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(said["status"][name][0], 16) == 0, name
    assert said["limits"]["CORE"] == [0, 0]
    assert rooms.agent.token not in json.dumps(said)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each game server a user of its own")
def test_each_game_server_is_a_user_of_its_own_with_limits(make_rooms):
    rooms = make_rooms(binary=PROBE, agent={
        "uids": 234000, "slots": 2, "files": 100, "processes": 50, "file-mib": 1})
    made = rooms.create("ann"), rooms.create("bob")
    said = [rooms.first_line(placed) for placed in made]
    assert [s["status"]["Uid"] for s in said] == [["234000"] * 4, ["234001"] * 4]
    assert [s["status"]["Gid"] for s in said] == [["234000"] * 4, ["234001"] * 4]
    for s in said:
        assert s["status"]["Groups"] == []
        assert s["limits"] == {
            "NOFILE": [100, 100], "NPROC": [50, 50], "CORE": [0, 0], "FSIZE": [MIB, MIB]}
        assert int(s["status"]["CapBnd"][0], 16) == 0
    own, others = f"{said[0]['cwd']}/mine", f"{said[1]['cwd']}/mine"
    for path, why in [(own, None), (others, "Permission denied"), ("/etc/mine", "Permission denied"),
                      (str(rooms.agent.data / "mine"), "Permission denied")]:
        assert rooms.tell(made[0], f"write {path}", '"wrote"')["why"] == why, path


# ── bans ──────────────────────────────────────────────────────────────────────────────────────


def test_a_ban_by_account_and_then_by_address(make_rooms):
    rooms = make_rooms(world={"http": {"trusted_proxies": ["127.0.0.1"]}})
    warden = rooms.world.api
    there = {"X-Forwarded-For": "198.51.100.7"}
    placed = rooms.create("eve")
    rooms.joined(placed)
    friend = rooms.player("bob").ask("POST", f"/room/arena/{placed['id']}/join", data={}, headers=there)
    rooms.joined(placed, friend.json["key"])
    with rooms.agent.follow(placed["server"], lines=0) as log:
        ban = warden.post("/ban/issue", account="eve", reason="cheats", expires="2099-01-01 00:00:00")
        assert log.message()["params"] == {"key": "***", "reason": "cheats"}
    kick = rooms.heard(placed, lambda m: m.get("method") == "kick")
    assert kick["params"]["key"] == placed["key"]
    assert rooms.seats("eve") == []
    assert rooms.code(placed, "joined", key=placed["key"]) == 403

    def join(account):
        return rooms.player(account).ask("POST", "/join/arena/main/1.0", data={}, headers=there).status

    assert join("cat") == 200, "nobody banned has come from there yet"
    answer = rooms.player("eve").cannot(423, "banned", headers=there)
    assert answer.head["x-ban-id"] == str(ban["id"]) and answer.head["x-ban-reason"] == "cheats"
    rooms.player("eve2").cannot(423, "banned", headers=there)
    rooms.player("eve2").cannot(423, "banned", "create", headers=there)
    rooms.player("eve2").join()  # from elsewhere
    assert [s["state"] for s in rooms.seats("bob")] == ["taken"], "who sits there already may stay"
    assert warden.ask("DELETE", f"/ban/{ban['id']}").status == 200
    assert join("eve") == join("eve2") == 200


# ── deployments ───────────────────────────────────────────────────────────────────────────────


def archive_of(path, mark, crash=False):
    """PROBE with its SDK; `mark` makes it another one."""
    with tarfile.open(path, "w:gz") as archive:
        archive.add(REPO / "sdk" / "python" / "muster_room.py", "lib/muster_room.py")
        text = PROBE.read_text().replace(
            'str(Path(__file__).resolve().parents[2] / "sdk" / "python")', '"lib"')
        text = text.replace('who="probe"', f'who="{mark}"')
        if crash:
            text = text.replace('if "--crash" in sys.argv:', "if True:")
        info = tarfile.TarInfo("bin/server")
        info.mode, info.size = 0o755, len(text.encode())
        archive.addfile(info, io.BytesIO(text.encode()))
    return path


def deploy(rooms, path):
    told = run("deploy", "arena", "1.0", path, "--switch", "-o", "json", *where(rooms), timeout_s=60)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def cannot_start(rooms, account):
    """As soon as it may be tried again."""
    player = rooms.player(account)

    def tried():
        answer = player.ask("POST", f"/create/{player.game}", data={})
        assert answer.status == 503, answer
        return answer.error["code"] == "spawn_failed" and answer

    return rooms.wait(tried, "end of a pause")


def version(rooms):
    found, = [v for v in rooms.api.all("/v1/versions") if v["name"] == "1.0" and v["fleet"] == "arena"]
    return found


def test_deployments_from_upload_to_quarantine(make_rooms, tmp_path):
    rooms = make_rooms(binary="bin/server", backoff_ms=100)
    second = rooms.host("host-2")
    one = deploy(rooms, archive_of(tmp_path / "1.tar.gz", "one"))
    assert version(rooms)["deployment"] == one["id"]
    for agent in (rooms.agent, second):
        unpacked = agent.data / "deployments" / one["digest"]
        assert (unpacked / "bin" / "server").stat().st_mode & 0o7777 == 0o555
    second.term()  # from here on it is clear where rooms are

    old = rooms.create("ann")
    said = rooms.first_line(old)
    assert (said["who"], said["cwd"]) == ("one", str(rooms.agent.data / "deployments" / one["digest"]))
    for path in ("mine", "bin/server", "bin/mine"):
        assert rooms.tell(old, f"write {path}", '"wrote"')["why"], path
    assert rooms.tell(old, "deployment", '"deployment"')["deployment"] == 0

    two = deploy(rooms, archive_of(tmp_path / "2.tar.gz", "two"))
    assert rooms.tell(old, "deployment", '"deployment"')["deployment"] == 410
    new = rooms.create("bob")
    assert rooms.first_line(new)["who"] == "two"
    assert rooms.room(old)["state"] == "open" and alive(rooms.pid(old))

    three = deploy(rooms, archive_of(tmp_path / "3.tar.gz", "three", crash=True))
    assert version(rooms)["deployment"] == three["id"]
    for n in range(3):
        assert "no such map" in cannot_start(rooms, f"p{n}").error["output"]
    now = version(rooms)
    assert now["deployment"] == two["id"] and not now["quarantined"]
    assert now["reason"] == "It failed to start 3 times in EU: no such map", now
    assert rooms.first_line(rooms.create("p0"))["who"] == "two"
    assert rooms.tell(new, "deployment", '"deployment"')["deployment"] == 0


def test_a_host_that_comes_later_fetches_what_it_lacks(make_rooms, tmp_path):
    rooms = make_rooms(binary="bin/server")
    one = deploy(rooms, archive_of(tmp_path / "1.tar.gz", "one"))
    host, = rooms.api.all("/v1/hosts")
    assert rooms.api.ask("POST", f"/v1/hosts/{host['id']}/disable", data={}).status == 200
    rooms.agents.insert(0, rooms.host("host-2", **{"heartbeat-ms": 60000}))  # it has one chance
    placed = rooms.create("ann")
    assert rooms.room(placed)["host_name"] == "host-2"
    assert rooms.first_line(placed)["cwd"].endswith(one["digest"])


def test_a_version_that_only_crashes_is_quarantined(make_rooms, tmp_path):
    rooms = make_rooms(binary="bin/server", backoff_ms=100)
    deploy(rooms, archive_of(tmp_path / "bad.tar.gz", "bad", crash=True))
    for n in range(3):
        cannot_start(rooms, f"p{n}")
    assert version(rooms)["quarantined"] is True
    answer = rooms.player("ann").cannot(503, "no_host", "create")
    assert "Build 1.0 of arena failed to start on 1 host" in answer.error["message"], answer
    deploy(rooms, archive_of(tmp_path / "good.tar.gz", "good"))
    assert version(rooms)["quarantined"] is False
    assert rooms.first_line(rooms.create("ann"))["who"] == "good"


# ── the agent's token ─────────────────────────────────────────────────────────────────────────


MORE_THAN_NEEDED = ("this access token can do more than an agent needs; issue one with: "
                    "muster token issue --account HOST --scopes game_host")


def test_a_token_that_lacks_the_scope_is_told_as_that(world, tmp_path):
    url = "http://%s:%d" % world.muster.http_address
    with Agent(tmp_path, url, token_of(world, "host-1", "muster_read")) as agent:
        (line, *_) = world.wait(lambda: agent.log_lines(
            "the control plane refuses our access token; what is to be told waits"), "such a line")
        assert line["reason"] == (
            "it answered 403: This needs the scope game_host, which the access token has not.")
        assert not agent.log_lines("the control plane does not answer; what is to be told waits")


@pytest.mark.parametrize("scopes, by, warned", [
    ("game_host", "--token-file", False), ("game_host,muster_read", "--token-file", True),
    ("game_host,muster_admin", "MUSTER_TOKEN", True)])
def test_a_token_that_can_do_too_much_is_told(world, tmp_path, monkeypatch, scopes, by, warned):
    """The environment may hold the administrator's, for other commands."""
    url = "http://%s:%d" % world.muster.http_address
    token = token_of(world, "host-1", *scopes.split(","))
    agent = Agent(tmp_path, url, token)
    del agent.options["token"]
    if by == "MUSTER_TOKEN":
        monkeypatch.setenv(by, token)
    else:
        (tmp_path / "token").write_text(token)
        agent.options["token-file"] = tmp_path / "token"
    with agent:
        world.wait(lambda: world.api.all("/v1/hosts"), "heartbeat")
        lines = agent.log_lines(MORE_THAN_NEEDED)
        assert [line["from"] for line in lines] == [by] * warned
        assert token not in agent.log()
