"""Servers that a host begins to start before it is certain that anybody wants them: nobody hears of
them until they are asked for, and they end by themselves when they are not."""

import os
import signal
import threading
import time

import pytest
from agent_proc import Agent, alive
from gate import Gate
from ports import free_ports
from real_rooms import Rooms, parent_of
from test_agent import agent, control  # noqa: F401: fixtures

PREPARED_S = 5.0  # what the agent waits for the spawn


def wait_for(look, what, timeout_s=20.0):
    until = time.monotonic() + timeout_s
    while not look():
        assert time.monotonic() < until, f"no {what} in {timeout_s} s"
        time.sleep(0.01)


def has_said(agent, server, text):
    status, body = agent.ask("GET", f"/servers/{server}/logs")
    return status == 200 and text in body.decode()


def prepared(agent, server, *arguments, **options):
    """One that has been started, and is where it would say that it is ready; its pid."""
    assert agent.prepare(server, *arguments, **options) == (202, {})
    wait_for(lambda: has_said(agent, server, "argv"), "first line")
    return agent.show(server)["pid"]


def lists(beat, server):
    return str(server) in [s["id"] for s in beat["servers"]]


def test_what_was_prepared_is_what_is_spawned(agent, control):
    pid = prepared(agent, 12)
    beat = control.await_beat()
    assert not lists(beat, 12) and control.of(12) == []

    assert agent.prepare(12) == (202, {})
    assert agent.spawn(12) == (202, {})
    assert control.await_event(12, "inited")["pid"] == pid
    control.await_beat(lambda beat: lists(beat, 12))
    assert agent.spawn(12) == (202, {}) and agent.prepare(12) == (202, {})
    assert agent.show(12)["pid"] == pid
    time.sleep(PREPARED_S + 0.5)
    assert agent.show(12)["state"] == "running", "who was asked for stays"
    assert [e["event"] for e in control.of(12)] == ["inited"]


def test_what_nobody_asks_for_ends_and_nobody_hears_of_it(control, tmp_path):
    port = free_ports(1)
    with Agent(tmp_path, control.url, ports=f"{port}-{port}") as agent:
        expires(agent, control)


def expires(agent, control):
    pid = prepared(agent, 12)
    wait_for(lambda: agent.ask("GET", "/servers/12")[0] == 404, "end", PREPARED_S + 5)
    assert not alive(pid)
    control.await_beat()
    assert control.of(12) == [] and not any(lists(beat, 12) for beat in control.beats)

    assert agent.spawn(12, room_settings={"map": "later"}) == (202, {}), "its number is free"
    inited = control.await_event(12, "inited")
    assert inited["pid"] != pid, "and so is its port, the only one there is"


def test_another_server_under_its_number_comes_after_it(agent, control):
    pid = prepared(agent, 12, room_settings={"map": "never stored"})
    status, answer = agent.spawn(12)
    assert status == 503 and "prepared under this number" in answer["error"]["message"]
    wait_for(lambda: agent.spawn(12)[0] == 202, "place for the other")
    inited = control.await_event(12, "inited")
    assert inited["pid"] != pid and not alive(pid)
    assert [e["event"] for e in control.of(12)] == ["inited"]


def test_one_that_ended_before_it_was_asked_for_is_told_of_then(agent, control):
    assert agent.prepare(12, "--exit", "7") == (202, {})
    wait_for(lambda: has_said(agent, 12, "that was all"), "end")
    control.await_beat()
    assert control.of(12) == []
    assert agent.spawn(12, "--exit", "7") == (202, {})
    failed = control.await_event(12, "failed")
    assert failed["exit_code"] == 7 and failed["tail"].endswith("that was all\n")


def test_one_that_cannot_be_prepared_says_so_to_whoever_spawns_it(agent, control):
    status, _ = agent.prepare(12, binary="/nowhere/game")
    assert status == 409
    status, answer = agent.spawn(12, binary="/nowhere/game")
    assert status == 409 and "/nowhere/game" in answer["error"]["message"]
    assert agent.prepare(12, ports=99)[0] == 400
    assert control.of(12) == []


def test_the_next_agent_ends_what_was_only_prepared(agent, control):
    pid = prepared(agent, 12)
    other = prepared(agent, 13)
    assert agent.spawn(13) == (202, {})
    agent.kill9()
    agent.start()
    wait_for(lambda: agent.ask("GET", "/servers/12")[0] == 404, "end")
    assert not alive(pid) and alive(other), "the one that was asked for is nobody's to end"
    assert control.await_event(13, "inited")["pid"] == other
    control.await_beat(lambda beat: lists(beat, 13))
    assert control.of(12) == []


def test_one_whose_end_nobody_saw_is_told_to_nobody(agent, control):
    """Its agent, its shim and itself go at once, as with a loss of power."""
    pid = prepared(agent, 12)
    wait_for((agent.data / "servers" / "12" / "record").exists, "record")
    for victim in (agent.process.pid, parent_of(pid), pid):
        os.kill(victim, signal.SIGKILL)
    agent.finish()
    agent.start()
    wait_for(lambda: agent.ask("GET", "/servers/12")[0] == 404, "end")
    assert agent.spawn(12, room_settings={"map": "later"}) == (202, {}), "its number is free"
    assert control.await_event(12, "inited")["pid"] != pid
    assert [e["event"] for e in control.of(12)] == ["inited"]


def test_an_agent_that_is_stopped_leaves_none_behind(agent, control):
    """Others run on; but of one that was only prepared nobody knows."""
    pid = prepared(agent, 12)
    other = prepared(agent, 13)
    assert agent.spawn(13) == (202, {})
    control.await_event(13, "inited")
    assert agent.term() == 0
    wait_for(lambda: not alive(pid), "end")
    assert alive(other)
    agent.start()
    wait_for(lambda: agent.ask("GET", "/servers/12")[0] == 404, "end")
    control.await_beat(lambda beat: lists(beat, 13))
    assert control.of(12) == []


def test_it_can_be_ended_before_it_was_asked_for(agent, control):
    pid = prepared(agent, 12)
    assert agent.post("/servers/12/terminate", why="x", grace_ms=60000) == (202, {})
    wait_for(lambda: not alive(pid), "end, for nobody plays there")
    wait_for(lambda: agent.ask("GET", "/servers/12")[0] == 404, "end")
    assert control.of(12) == []


# ── with a control plane ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def gated(make_world, gate_library, tmp_path):
    gate = Gate(gate_library, tmp_path / "gated")
    rooms = Rooms(make_world, tmp_path, world={"env": gate.env, "data": gate.folder})
    rooms.gate = gate
    rooms.host()
    yield rooms
    gate.open()
    rooms.close()


def ask_for_room(rooms, answers):
    """In a thread: nobody answers while the gate is closed."""
    ann = rooms.player("ann")
    rooms.gate.close()

    def ask():
        try:
            answers.append(ann.create({"map": "first"}))
        except Exception as e:  # noqa: BLE001: the connection goes with the process
            answers.append(e)
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


@pytest.mark.embedded("what is gated is the data folder's disk")
def test_a_server_starts_while_its_room_is_being_stored(gated):
    answers = []
    thread = ask_for_room(gated, answers)
    wait_for(lambda: len(gated.agent.pids()) > 0, "game server")
    assert answers == [], "nobody is told of a room that is not stored"
    pids = gated.agent.pids()
    gated.gate.open()
    thread.join(20)
    placed = {**answers[0], "server": int(gated.room(answers[0])["server"])}
    assert gated.pid(placed) in pids, "it is the one that was begun"
    assert gated.joined(placed)["account"] == "ann"


@pytest.mark.embedded("what is gated is the data folder's disk")
def test_a_room_that_was_never_stored_leaves_nothing(gated):
    answers = []
    thread = ask_for_room(gated, answers)
    wait_for(lambda: len(gated.agent.pids()) > 0, "game server")
    begun = gated.agent.pids()
    gated.gate.break_disk()
    gated.gate.open()
    thread.join(20)
    assert isinstance(answers[0], Exception), "it could not be stored"
    gated.gate.mend_disk()
    gated.wait(lambda: gated.api.ask("GET", "/readyz").status == 200, "disk")

    # The number that was lost is given again, to a room with other settings.
    placed = gated.create("bob", {"map": "second"})
    assert gated.pid(placed) not in begun
    assert gated.first_line(placed)["env"]["room_settings"] == '{"map":"second"}'
    wait_for(lambda: not any(alive(pid) for pid in begun), "end of what nobody wants", PREPARED_S + 5)
    assert [r["id"] for r in gated.api.all("/v1/rooms")] == [placed["id"]]
    assert "another one was asked for under its number" in gated.agent.log()
