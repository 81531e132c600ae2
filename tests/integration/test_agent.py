"""`muster agent` with real game servers, beside a control plane written by hand."""

import hashlib
import io
import json
import os
import signal
import tarfile
import threading
import time
from pathlib import Path

import http_api
import pytest
from agent_proc import DEADLINE_S, Agent, GAME, MARK, PORTS_EACH, alive, children_of
from fake_control import FakeControl, Refused
from muster_proc import run


@pytest.fixture
def control():
    with FakeControl() as control:
        yield control


@pytest.fixture
def agent(control, tmp_path, request):
    with Agent(tmp_path, control.url) as agent:
        request.node.agents = [agent]
        yield agent


def call(method, number, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


def result(number, value):
    return {"jsonrpc": "2.0", "id": number, "result": value}


def started(agent, control, server, *arguments, **options):
    """A game server that has been inited; its log."""
    assert agent.spawn(server, *arguments, **options) == (202, {})
    control.await_event(server, "inited")
    log = agent.follow(server)
    assert log.answer_to(1) == result(1, {"status": "OK"})
    return log


# ── the flow ──────────────────────────────────────────────────────────────────────────────────


def test_whole_flow(agent, control):
    player = {"access_token": "t0ken", "account": "4711", "info": {"name": "Ann"}, "scopes": ["a"]}
    control.answer = lambda e: player if e["event"] == "joined" else {}
    log = started(agent, control, 12, "--settings", '{"map":"goodone"}', ports=2)

    inited = control.of(12, "inited")[0]
    assert inited["seq"] == 1
    assert inited["settings"] == {"map": "goodone"}
    assert len(inited["ports"]) == 2
    assert alive(inited["pid"])

    agent.say(12, call("joined", 2, key="K", extend_token="E", extend_scopes="s1,s2"))
    assert log.answer_to(2) == result(2, player)
    joined = control.of(12, "joined")[0]
    assert (joined["key"], joined["extend_token"], joined["extend_scopes"]) == ("K", "E", "s1,s2")

    agent.say(12, call("update_settings", 3, settings={"map": "b"}))
    assert log.answer_to(3) == result(3, {})
    agent.say(12, call("check_deployment", 4))
    assert log.answer_to(4) == result(4, {})
    agent.say(12, call("left", 5, key="K"))
    assert log.answer_to(5) == result(5, {})

    assert agent.post("/servers/12/terminate", why="enough", grace_ms=5000) == (202, {})
    exited = control.await_event(12, "exited")
    assert exited["exit_signal"] == signal.SIGTERM
    assert "enough" in exited["text"]
    assert exited["run_ms"] > 0 and exited["peak_memory"] > 1000
    assert exited["tail"].splitlines()[-1].startswith("got ")
    assert [e["seq"] for e in control.of(12)] == [1, 2, 3, 4, 5, 6]
    assert log.line() == "", "the log ends with its server"
    assert not alive(inited["pid"])


def test_errors_of_the_control_plane_reach_the_game(agent, control):
    def answer(event):
        if event["event"] == "joined":
            raise Refused(403, "bad_key", "This key opens no seat here.")
        if event["event"] == "check_deployment":
            raise Refused(410, "outdated", "A newer deployment is in use.")
        return {}

    control.answer = answer
    with started(agent, control, 12) as log:
        agent.say(12, call("joined", 2, key="bad"))
        assert log.answer_to(2)["error"] == {"code": 403, "message": "This key opens no seat here."}
        agent.say(12, call("check_deployment", "x"))
        assert log.answer_to("x")["error"] == {
            "code": 410, "message": "A newer deployment is in use."}


def test_command_line_and_environment(agent, control):
    with started(
            agent, control, 12, "--settings", "{}", ports=3, endpoint="path",
            env=[{"key": "A", "value": "b c"}, {"key": "room_id", "value": "a lie"}],
            room_settings={"map": "a"}, server_settings={"tick": 60}, max_players=16,
            login_access_token="secret", discovery_services={"login": "http://x"}) as log:
        log.close()
    said = json.loads(agent.ask("GET", "/servers/12/logs")[1].decode().splitlines()[0])
    game, endpoint, ports, *rest = said["argv"]
    assert game == str(GAME)
    assert endpoint.startswith("/") and len(endpoint) < 108
    assert [int(p) for p in ports.split(",")] == control.of(12, "inited")[0]["ports"]
    assert rest == ["--settings", "{}"]
    env = said["env"]
    assert json.loads(env.pop("room_settings")) == {"map": "a"}
    assert json.loads(env.pop("server_settings")) == {"tick": 60}
    assert json.loads(env.pop("discovery_services")) == {"login": "http://x"}
    env.pop(MARK)
    env.pop("LC_CTYPE", None)  # Python's own
    assert env == {"A": "b c", "game_max_players": "16", "login_access_token": "***",
                   "room_id": "1012"}
    environ = Path(f"/proc/{control.of(12, 'inited')[0]['pid']}/environ").read_text()
    assert "login_access_token=secret" in environ.split("\0")
    assert "secret" not in agent.log()


def test_endpoint_as_uri(agent, control):
    with started(agent, control, 12, endpoint="uri"):
        pass
    said = json.loads(agent.ask("GET", "/servers/12/logs")[1].decode().splitlines()[0])
    assert said["argv"][1].startswith("ipc:///")


SPARE_SHIMS = 4


def test_a_shim_that_is_slower_than_its_game_server_delays_it_and_no_more(agent, control, tmp_path):
    """On a busy machine a shim may have to wait for its turn while its game server runs."""
    deadline = time.monotonic() + DEADLINE_S
    shims = agent.shims()
    while len(shims) < SPARE_SHIMS or not all(map(children_of, shims)):
        assert time.monotonic() < deadline
        shims = agent.shims()
    for pid in shims:
        os.kill(pid, signal.SIGSTOP)
    sent = tmp_path / "sent"
    agent.spawn(12, "--sent", str(sent))
    while not sent.exists():
        assert time.monotonic() < deadline
    for _ in range(3):  # it has not been forgotten meanwhile
        control.await_beat(lambda beat: [s["pid"] for s in beat["servers"]] == [0])
    assert control.of(12) == []
    for pid in shims:
        os.kill(pid, signal.SIGCONT)
    assert alive(control.await_event(12, "inited")["pid"])
    assert agent.follow(12).answer_to(1) == result(1, {"status": "OK"})


def test_a_spawn_is_idempotent_also_when_it_has_ended(agent, control):
    started(agent, control, 12)
    pid = agent.show(12)["pid"]
    assert agent.spawn(12) == (202, {})
    assert agent.show(12)["pid"] == pid
    agent.post("/servers/12/terminate", why="x", grace_ms=0)
    control.await_event(12, "exited")
    assert agent.spawn(12) == (202, {})
    assert agent.show(12)["state"] == "over"
    assert len(control.of(12, "inited")) == 1


def test_bad_spawns_are_refused_with_a_sentence(agent):
    for wrong, about in [({"server_id": "x"}, "server_id"), ({"server_id": None}, "server_id"),
                         ({"binary": "relative"}, "binary"), ({"binary": ""}, "binary"),
                         ({"ports": 5}, "ports"), ({"ports": "1"}, "ports"),
                         ({"arguments": [1]}, "arguments"), ({"arguments": "x"}, "arguments"),
                         ({"env": [{"key": "a=b", "value": ""}]}, "env"), ({"env": [1]}, "env"),
                         ({"room_settings": []}, "room_settings"), ({"endpoint": "no"}, "endpoint"),
                         ({"deployment": "123"}, "deployment"),
                         ({"spawn_timeout_ms": 0}, "spawn_timeout_ms")]:
        status, answer = agent.spawn(12, **wrong)
        assert status == 400, (wrong, answer)
        assert about in answer["error"]["message"] and answer["error"]["message"][-1] == "."
    status, answer = agent.spawn(12, binary="/no/such/file")
    assert status == 409 and "/no/such/file" in answer["error"]["message"]
    for body in ("", "{", "[]", "1"):
        assert agent.ask("POST", "/spawn", body=body)[0] == 400


# ── it does not come up ───────────────────────────────────────────────────────────────────────


def test_spawn_timeout(agent, control):
    asked = time.monotonic()
    agent.spawn(12, "--no-inited", spawn_timeout_ms=1500)
    failed = control.await_event(12, "failed")
    assert time.monotonic() - asked >= 1.5
    assert failed["text"] == "The server did not initialise in 1.5 s."
    assert failed["cause"] == "game" and failed["exit_signal"] == signal.SIGKILL
    assert failed["run_ms"] > 0 and failed["peak_memory"] > 1000
    assert '"argv"' in failed["tail"]
    assert agent.show(12)["exit_signal"] == signal.SIGKILL
    assert control.of(12) == [failed]


def test_exit_before_inited(agent, control):
    agent.spawn(12, "--exit", "3")
    failed = control.await_event(12, "failed")
    assert failed["text"] == "The server exited with status 3 before it was ready."
    assert failed["tail"].endswith("that was all\n")
    assert failed["exit_code"] == 3 and failed["cause"] == "game"
    assert failed["run_ms"] > 0 and failed["peak_memory"] > 1000
    shown = agent.show(12)
    assert (shown["state"], shown["exit_code"], shown["exit_signal"]) == ("over", 3, None)


def test_crash_before_inited(agent, control):
    agent.spawn(12, "--crash")
    failed = control.await_event(12, "failed")
    assert failed["text"].startswith("The server was ended by signal 11 ")
    assert failed["exit_signal"] == 11 and failed["cause"] == "game"


def test_one_that_never_ran_has_no_exit(agent, control, tmp_path):
    game = tmp_path / "game"
    game.write_text("#!/no/such/interpreter\n")
    game.chmod(0o755)
    agent.spawn(12, binary=str(game))
    failed = control.await_event(12, "failed")
    assert failed["text"] == f"cannot execute {game}: No such file or directory"
    for name in ("exit_code", "exit_signal", "run_ms"):
        assert name not in failed
    shown = agent.show(12)
    assert (shown["exit_code"], shown["exit_signal"], shown["run_ms"]) == (None, None, 0)
    assert shown["why"] == failed["text"]


def test_whose_fault_it_was_is_told(agent, control, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    agent.spawn(12, "--exit", "3")
    agent.spawn(13, "--crash")
    agent.spawn(14, "--no-inited", spawn_timeout_ms=1500)
    agent.spawn(15, binary=str(script))
    agent.spawn(16, binary="bin/game", deployment="00" * 32)
    told = {server: control.await_event(server, "failed")["cause"] for server in range(12, 17)}
    assert told == {12: "game", 13: "game", 14: "game", 15: "configuration",
                    16: "configuration"}, told


def test_a_room_that_was_given_up(agent, control):
    """An error to inited: it may go by itself, then SIGTERM, then SIGKILL. A repeat gets the same."""
    def answer(event):
        if event["event"] == "inited":
            raise Refused(409, "already_over", "The room was given up.")
        return {}

    control.answer = answer
    agent.spawn(12, "--ignore-term")
    with agent.follow(12) as log:
        refused = {"code": 409, "message": "The room was given up."}
        assert log.answer_to(1)["error"] == refused
        agent.say(12, call("inited", 7))
        assert log.answer_to(7)["error"] == refused
    exited = control.await_event(12, "exited")
    assert exited["exit_signal"] == signal.SIGKILL
    assert 9000 < exited["run_ms"] < 25000
    assert len(control.of(12, "inited")) == 1


def test_a_repeated_inited_gets_the_first_answer(agent, control):
    with started(agent, control, 12) as log:
        agent.say(12, call("inited", 8, settings={"other": 1}))
        assert log.answer_to(8) == result(8, {"status": "OK"})
    assert len(control.of(12, "inited")) == 1


# ── what it says ──────────────────────────────────────────────────────────────────────────────

MALFORMED = [
    ("not json", -32700, None), ("", -32700, None), ("hex ff00fe", -32700, None),
    ("parts a b c", -32700, None), ("big 70000", -32600, None),
    ("[]", -32600, None), ("1", -32600, None), ('"x"', -32600, None), ("null", -32600, None),
    ("{}", -32600, None), ('{"jsonrpc":"2.0"}', -32600, None),
    ('{"jsonrpc":"1.0","method":"left","id":50}', -32600, 50),
    ('{"jsonrpc":"2.0","method":5,"id":51}', -32600, 51),
    ('{"jsonrpc":"2.0","method":"left","id":{}}', -32600, None),
    ('[{"jsonrpc":"2.0","method":"left","id":52}]', -32600, None),
    ('{"jsonrpc":"2.0","method":"nope","id":53}', -32601, 53),
    ('{"jsonrpc":"2.0","method":"left","id":54}', -32602, 54),
    ('{"jsonrpc":"2.0","method":"left","params":["k"],"id":55}', -32602, 55),
    ('{"jsonrpc":"2.0","method":"joined","params":{"key":5},"id":56}', -32602, 56),
    ('{"jsonrpc":"2.0","method":"joined","params":{"key":""},"id":57}', -32602, 57),
    ('{"jsonrpc":"2.0","method":"joined","params":{"key":"%s"},"id":58}' % ("k" * 256), -32602, 58),
    ('{"jsonrpc":"2.0","method":"joined","params":{"key":"k","extend_token":1},"id":59}', -32602, 59),
    ('{"jsonrpc":"2.0","method":"update_settings","id":60}', -32602, 60),
    ('{"jsonrpc":"2.0","method":"update_settings","params":{"settings":[]},"id":61}', -32602, 61),
    ('{"jsonrpc":"2.0","method":"left","params":{"key":"a","key":"b"},"id":62}', -32700, None),
]


def test_malformed_messages_are_answered_and_the_conversation_goes_on(agent, control):
    others = started(agent, control, 13)
    with started(agent, control, 12) as log:
        for text, code, number in MALFORMED:
            agent.say(12, text)
            answer = log.message()
            assert answer["error"]["code"] == code, (text, answer)
            assert answer["id"] == number, (text, answer)
            assert answer["error"]["message"], answer
        agent.say(12, '{"jsonrpc":"2.0","method":"nope"}')  # a notification is never answered
        agent.say(12, '{"jsonrpc":"2.0","result":{"status":"ok"},"id":99999}')  # to no question
        agent.say(12, call("left", 100, key="k"))
        assert log.message() == result(100, {})
    agent.say(13, call("left", 3, key="k"))
    assert others.answer_to(3) == result(3, {})
    assert [e["event"] for e in control.of(12)] == ["inited", "left"]


def test_a_message_beyond_every_limit_ends_nothing(agent, control):
    with started(agent, control, 12) as log:
        agent.say(12, "big 300000")  # costs it its connection, which it makes again
        deadline = threading.Event()
        for number in range(20, 60):  # what it says meanwhile may be lost, as the SDK knows
            agent.say(12, call("left", number, key="k"))
            if control.of(12, "left"):
                break
            deadline.wait(0.1)
        control.await_event(12, "left")
        assert log.message()["result"] == {}
    assert agent.show(12)["state"] == "running"


def test_a_notification_is_an_event_without_an_answer(agent, control):
    with started(agent, control, 12) as log:
        agent.say(12, '{"jsonrpc":"2.0","method":"left","params":{"key":"k"}}')
        control.await_event(12, "left")
        agent.say(12, call("left", 9, key="other"))
        assert log.message() == result(9, {})


def test_kick_is_a_notification(agent, control):
    with started(agent, control, 12) as log:
        assert agent.post("/servers/12/kick", key="K", reason="banned") == (202, {})
        assert log.message() == {"jsonrpc": "2.0", "method": "kick",
                                 "params": {"key": "K", "reason": "banned"}}
    assert agent.post("/servers/999/kick", key="K", reason="x")[0] == 202


# ── is it alive? ──────────────────────────────────────────────────────────────────────────────


def test_status_is_asked_and_any_case_of_ok_will_do(agent, control):
    with started(agent, control, 12, "--status", "oK", status_period_ms=200) as log:
        for _ in range(3):
            log.until(lambda line: '"status"' in line and '"method"' in line)
    assert agent.show(12)["state"] == "running"


def test_another_answer_than_ok_is_a_hang(agent, control):
    agent.spawn(12, "--status", "bad", "--ignore-term", status_period_ms=200)
    exited = control.await_event(12, "exited")
    assert "hung" in exited["text"]
    assert exited["exit_signal"] == signal.SIGKILL, "SIGTERM was ignored"
    assert exited["run_ms"] > 5000


def test_three_silent_ones_are_a_hang(agent, control):
    """Ten seconds each. Another server goes on answering; a third, silent for a shorter time, is
    not touched."""
    started(agent, control, 13, status_period_ms=500)
    agent.spawn(12, "--status", "", status_period_ms=500)
    control.await_event(12, "inited")
    exited = control.await_event(12, "exited", timeout_s=60)
    assert "three times" in exited["text"]
    assert exited["exit_signal"] == signal.SIGTERM
    assert exited["run_ms"] > 30000
    assert agent.show(13)["state"] == "running"


def test_a_stopped_one_is_a_hang_beside_others_that_are_not_asked(agent, control):
    """The other is asked once an hour, so that its silence says nothing of the machine."""
    started(agent, control, 13, status_period_ms=3_600_000)
    started(agent, control, 12, status_period_ms=500)
    os.kill(agent.show(12)["pid"], signal.SIGSTOP)
    exited = control.await_event(12, "exited", timeout_s=60)
    assert "three times" in exited["text"] and exited["hung"] is True
    assert exited["exit_signal"] == signal.SIGKILL, "a stopped process does not hear SIGTERM"
    assert exited["run_ms"] > 30000
    assert agent.show(13)["state"] == "running"


def test_silence_of_all_kills_nobody(agent, control):
    """All stand still for longer than the three questions take, as on a stopped host."""
    pids = []
    for server in (12, 13):
        started(agent, control, server, status_period_ms=500)
        pids.append(agent.show(server)["pid"])
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    control.await_beat()
    threading.Event().wait(34)  # the silence itself
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for server in (12, 13):
        with agent.follow(server, lines=0) as log:
            agent.say(server, call("left", 5, key="k"))
            assert log.answer_to(5) == result(5, {})
        assert agent.show(server)["state"] == "running"
    assert agent.log_lines("all game servers are silent; nothing is concluded from that")


def test_a_stopped_agent_concludes_nothing(agent, control):
    """It is stopped for longer than a game server has to initialise."""
    agent.spawn(12, "--no-inited", spawn_timeout_ms=3000)
    control.await_beat(lambda beat: beat["servers"])
    os.kill(agent.process.pid, signal.SIGSTOP)
    threading.Event().wait(4)
    os.kill(agent.process.pid, signal.SIGCONT)
    control.await_beat()
    assert agent.show(12)["state"] == "starting"
    agent.say(12, call("inited", 1))
    control.await_event(12, "inited")
    assert not control.of(12, "failed")


# ── heartbeats and doors ──────────────────────────────────────────────────────────────────────


def test_heartbeat(agent, control):
    started(agent, control, 12, ports=2)
    beat = control.await_beat(lambda b: b["servers"] and b["servers"][0]["state"] == "running")
    assert (beat["name"], beat["region"], beat["address"]) == ("host-1", "EU", "127.0.0.1")
    assert beat["url"] == "http://%s:%d" % agent.address
    assert beat["slots"] == PORTS_EACH and beat["leaving"] is False and beat["deployments"] == []
    for share in ("cpu_percent", "memory_percent", "disk_percent"):
        assert 0 <= beat[share] <= 100
    assert beat["memory_percent"] > 0 and beat["load"] >= 0
    server, = beat["servers"]
    inited = control.of(12, "inited")[0]
    assert server.pop("since_ms") >= 0
    assert server == {"id": "12", "session": "1012", "pid": inited["pid"], "state": "running",
                      "ports": inited["ports"]}
    numbers = [b["beat"] for b in control.beats]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(control.connections["/v1/agent/heartbeat"]) == 1
    assert not control.connections["/v1/agent/heartbeat"] & control.connections["/v1/agent/events"]


def test_who_is_let_in(agent, control):
    control.await_beat()
    control.await_beat()  # so it has read the answer to the one before
    for token, status in [("agents-token", 404), ("controls-token", 404), ("x", 401), ("", 401),
                          ("agents-toke", 401), ("agents-token2", 401)]:
        assert agent.ask("GET", "/servers/1", token=token)[0] == status, token
    control.gives = "newer-token"
    control.await_beat()
    control.await_beat()
    for token, status in [("newer-token", 404), ("controls-token", 404), ("agents-token", 404)]:
        assert agent.ask("GET", "/servers/1", token=token)[0] == status, token
    for method, path, status in [("GET", "/", 404), ("GET", "/spawn", 404), ("GET", "/servers/", 404),
                                 ("GET", "/servers/x", 404), ("POST", "/servers/1", 405),
                                 ("GET", "/servers/1/kick", 405), ("POST", "/servers/1/nope", 404)]:
        answer = agent.ask(method, path)
        assert answer[0] == status and "error" in json.loads(answer[1]), (method, path, answer)


def test_what_does_not_run_here(agent):
    assert agent.post("/servers/5/terminate", why="x", grace_ms=1)[0] == 202
    assert agent.post("/servers/5/stdin", line="x")[0] == 404
    assert agent.ask("GET", "/servers/5/logs")[0] == 404


def test_a_redirect_is_followed(tmp_path):
    with FakeControl() as leader, FakeControl() as standby:
        standby.redirect = leader.url
        with Agent(tmp_path, standby.url) as agent:
            leader.await_beat()
            started(agent, leader, 12)
            assert not standby.beats and not standby.events


def test_the_next_control_plane_is_tried(tmp_path):
    with FakeControl() as first, FakeControl() as second:
        with Agent(tmp_path, f"{first.url},{second.url}") as agent:
            first.await_beat()
            first.stop()
            second.await_beat()
            started(agent, second, 12)


def test_a_control_plane_that_does_not_know_us(tmp_path):
    with FakeControl(token="another") as control, Agent(tmp_path, control.url) as agent:
        control.wait(lambda: "/v1/agent/heartbeat" in control.connections, "heartbeat")
        control.token = "agents-token"
        control.await_beat()
        lines = agent.log_lines("the control plane refuses our access token; what is to be told waits")
        assert any("401: Who are you?" in line["reason"] for line in lines)
        assert not agent.log_lines("the control plane does not answer; what is to be told waits")


# ── somebody is away ──────────────────────────────────────────────────────────────────────────


def test_control_plane_away(agent, control):
    """Ten seconds: calls wait, repeats of them do not become events, all arrives in order."""
    log = started(agent, control, 12)
    others = started(agent, control, 13)
    control.stop()
    for number in range(2, 12):
        agent.say(12, call("joined", number, key=f"k{number}"))
        agent.say(13, call("update_settings", number, settings={"n": number}))
    agent.say(12, call("left", 12, key="k5"))
    agent.say(12, call("joined", 5, key="k5"))  # the SDK repeats what was not answered
    agent.say(12, call("left", 12, key="k5"))
    threading.Event().wait(10)
    assert agent.show(12)["state"] == agent.show(13)["state"] == "running"
    control.start()
    for number in range(2, 13):
        assert log.answer_to(number) == result(number, {})
    for number in range(2, 12):
        assert others.answer_to(number) == result(number, {})
    assert [(e["event"], e["key"]) for e in control.of(12)[1:]] == [
        *(("joined", f"k{n}") for n in range(2, 12)), ("left", "k5")]
    assert [e["settings"]["n"] for e in control.of(13)[1:]] == list(range(2, 12))
    for server in (12, 13):
        seqs = [e["seq"] for e in control.of(server)]
        assert seqs == list(range(1, len(seqs) + 1))


def test_a_control_plane_in_trouble_is_told_the_same_again(agent, control):
    log = started(agent, control, 12)
    control.status = 503
    agent.say(12, call("left", 2, key="k"))
    control.wait(lambda: len(control.batches) >= 4, "repeated batch")
    control.status = 200
    assert log.answer_to(2) == result(2, {})
    assert len(control.of(12, "left")) == 1
    events = {json.dumps(b["events"]) for b in control.batches[1:]}
    assert len(events) == 1, "the same, later"
    (line,) = agent.log_lines("the control plane cannot take what it is told; it waits")
    assert (line["for"], line["reason"]) == ("events", "it answered 503: Not now.")


def test_an_event_that_is_never_taken_does_not_block_the_others(agent, control):
    log = started(agent, control, 12)
    control.status = 400
    agent.say(12, call("left", 2, key="poison"))
    assert log.answer_to(2)["error"]["code"] == 400
    control.status = 200
    agent.say(12, call("left", 3, key="k"))
    assert log.answer_to(3) == result(3, {})
    assert [e["seq"] for e in control.of(12)] == [1, 3]


def test_after_a_refused_batch_events_go_one_by_one_and_then_together_again(agent, control):
    def say_while_it_is_away(n, first):
        control.thawed.clear()
        for i in range(first, first + n):
            agent.say(12, {"jsonrpc": "2.0", "method": "left", "params": {"key": f"k{i}"}})

    started(agent, control, 12).close()
    control.status = 400
    say_while_it_is_away(20, 0)
    control.thawed.set()
    refused = "the control plane refuses an event; it is dropped"
    control.wait(lambda: any(len(b["events"]) > 1 for b in control.batches), "batch of several")
    control.wait(lambda: len(agent.log_lines(refused)) == 20, "end of all that was refused")
    control.status = 200
    seen = len(control.batches)
    say_while_it_is_away(300, 20)
    control.thawed.set()
    control.wait(lambda: len(control.of(12, "left")) == 300, "the rest")
    sizes = [len(b["events"]) for b in control.batches[seen:]]
    assert sizes[0] == 1 and max(sizes) > 1 and sizes.count(1) >= 200


def test_events_that_cannot_be_read_are_dropped_and_the_others_told(control, tmp_path):
    """A file that was damaged: the control plane refuses what is in it under no number of ours."""
    settle = control.settle

    def read(event):
        if event["server"].isdigit():
            return settle(event)
        return {"server": None, "seq": event["seq"], "error": {
            "code": "bad_argument", "message": "server is a number.", "status": 400}}

    control.settle = read
    folder = tmp_path / "data" / "events"
    folder.mkdir(parents=True)
    for server in range(70, 75):
        event = {"server": "x" if server in (71, 73) else str(server), "seq": 1, "event": "left",
                 "key": "k"}
        (folder / str(server)).write_text(f'{1:020}\n+1\tleft\t"k"\t""\t{json.dumps(event)}\n')
    with Agent(tmp_path, control.url, data=folder.parent) as agent:
        for server in (70, 72, 74):
            control.await_event(server, "left")
        control.wait(lambda: not list(folder.glob("7*")), "end of all that waits")
        lines = agent.log_lines("the control plane refuses an event; it is dropped")
        assert sorted(line["server"] for line in lines) == [71, 73]
        assert {line["reason"] for line in lines} == {"server is a number."}
        assert not agent.log_lines("the control plane does not answer; what is to be told waits")


def test_a_slow_answer_for_one_key_holds_up_no_other(agent, control):
    release = threading.Event()

    def take(request, body):
        if any(e.get("key") == "slow" for e in body.get("events", [])):
            release.wait(20)
        return FakeControl.take(control, request, body)

    log = started(agent, control, 12)
    control.take = take
    agent.say(12, call("joined", 2, key="slow", extend_token="t", extend_scopes="s"))
    agent.say(12, call("left", 3, key="slow"))
    agent.say(12, call("joined", 4, key="other"))
    first = log.message()
    release.set()
    assert first == result(4, {})
    assert log.message() == result(2, {})
    assert log.message() == result(3, {})


def test_an_answered_call_is_not_asked_again_when_it_is_repeated(agent, control):
    control.answer = lambda e: {"access_token": f"t{e['seq']}"} if e["event"] == "joined" else {}
    log = started(agent, control, 12)
    agent.say(12, call("joined", 2, key="K"))
    first = log.answer_to(2)
    agent.say(12, call("joined", 2, key="K"))
    assert log.answer_to(2) == first
    assert len(control.of(12, "joined")) == 1
    agent.say(12, call("left", 3, key="K"))
    log.answer_to(3)
    agent.say(12, call("joined", 2, key="K"))  # after it left, the control plane decides anew
    assert log.answer_to(2) != first
    assert len(control.of(12, "joined")) == 2


def test_agent_killed_with_five_games(agent, control):
    """None of them dies, all are taken over; what was not told is told, with numbers of its own;
    what they say meanwhile is heard; and one that ended meanwhile is reported."""
    servers = range(12, 17)
    for server in servers:
        started(agent, control, server).close()
    pids = {server: agent.show(server)["pid"] for server in servers}
    control.stop()
    agent.say(12, call("left", 2, key="untold"))
    agent.say(13, call("joined", 2, key="untold"))
    # Both have been read when the agent has answered something that came after them.
    for server in (12, 13):
        with agent.follow(server, lines=0) as log:
            agent.say(server, "not json")
            log.message()
    agent.kill9()
    assert all(alive(pid) for pid in pids.values())
    os.kill(pids[16], signal.SIGKILL)

    agent.start()
    assert agent.adopted == 5
    control.start()
    exited = control.await_event(16, "exited")
    assert exited["exit_signal"] == signal.SIGKILL
    left = control.await_event(12, "left")
    joined = control.await_event(13, "joined")
    assert (left["key"], left["seq"], joined["key"], joined["seq"]) == ("untold", 2, "untold", 2)
    for server in range(12, 16):
        assert agent.show(server)["pid"] == pids[server]
        assert agent.show(server)["state"] == "running"
        with agent.follow(server) as log:
            if server in (12, 13):
                assert log.answer_to(2) == result(2, {}), "the call of before is answered"
            agent.say(server, call("left", 5, key="k"))
            assert log.answer_to(5) == result(5, {})
        assert control.of(server)[-1]["seq"] == (3 if server in (12, 13) else 2)
    beat = control.await_beat()
    assert sorted(s["id"] for s in beat["servers"]) == ["12", "13", "14", "15"]
    assert len(control.of(12, "inited")) == 1


def test_sigterm_leaves_the_games_running(agent, control):
    started(agent, control, 12)
    pid = agent.show(12)["pid"]
    assert agent.term() == 0
    assert control.beats[-1]["leaving"] is True
    assert alive(pid)
    line, = agent.log_lines("stopping; game servers run on and wait for the next agent")
    assert line["servers"] == 1
    agent.start()
    assert agent.adopted == 1
    assert agent.show(12)["pid"] == pid
    with agent.follow(12) as log:
        agent.say(12, call("left", 5, key="k"))
        assert log.answer_to(5) == result(5, {})
    beat = control.await_beat()
    assert beat["leaving"] is False and beat["beat"] < control.beats[0]["beat"] + 100


def test_two_agents_cannot_use_one_folder(agent, control, tmp_path):
    other = Agent(tmp_path, control.url, data=agent.data)
    with pytest.raises(AssertionError, match="it ended with 1"):
        other.start()
    assert "another agent uses the folder" in other.log()


# ── what it may use, and how it is started ────────────────────────────────────────────────────


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives away processes")
def test_each_game_server_has_a_user_and_limits_of_its_own(control, tmp_path):
    limits = {"uids": 70000, "slots": 4, "files": 100, "file-mib": 3, "processes": 50}
    with Agent(tmp_path, control.url, **limits) as agent:
        uids = set()
        for server in (12, 13):
            started(agent, control, server).close()
            pid = agent.show(server)["pid"]
            status = Path(f"/proc/{pid}/status").read_text()
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            real, effective, saved, _ = map(int, fields["Uid"].split())
            assert real == effective == saved and 70000 <= real < 70004
            uids.add(real)
            assert fields["NoNewPrivs"] == "1"
            assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
            text = Path(f"/proc/{pid}/limits").read_text()
            allowed = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()}
            assert allowed["Max open files"] == "100"
            assert allowed["Max file size"] == str(3 << 20)
            assert allowed["Max core file size"] == "0"
        assert len(uids) == 2
        agent.kill9()
        agent.start()
        with agent.follow(12, lines=0) as log:  # its user may connect to the socket bound anew
            agent.say(12, call("left", 5, key="k"))
            assert log.answer_to(5) == result(5, {})


def test_there_are_so_many_places_and_no_more(control, tmp_path):
    with Agent(tmp_path, control.url, slots=1) as agent:
        started(agent, control, 12)
        status, answer = agent.spawn(13)
        assert status == 409 and "places" in answer["error"]["message"]
        assert control.await_beat()["slots"] == 1
        agent.post("/servers/12/terminate", why="x", grace_ms=0)
        control.await_event(12, "exited")
        started(agent, control, 13)


GOOD = ["--control", "http://127.0.0.1:1", "--region", "EU", "--token", "t"]


@pytest.mark.parametrize("arguments, about", [
    ([], "--control is needed"),
    (["--control", "ftp://x", *GOOD[2:]], "--control takes a URL as"),
    (["--control", "http://x/path", *GOOD[2:]], "without a path"),
    (["--control", "http://a,,http://b", *GOOD[2:]], "with commas between them, not ''"),
    (["--control", ",".join(["http://a"] * 9), *GOOD[2:]], "--control takes at most 8"),
    (GOOD[:2] + GOOD[4:], "--region is needed"),
    (GOOD + ["--region", "E U"], "--region takes the name of a region"),
    (GOOD[:4], "an access token of scope game_host is needed"),
    (GOOD[:4] + ["--token-file", "/no/such"], "cannot read --token-file /no/such"),
    (GOOD[:4] + ["--token", "a b"], "a token has no blanks"),
    (GOOD + ["--token-file", "/dev/null"], "give one"),
    (GOOD + ["--ports", "9-1"], "--ports takes a range"),
    (GOOD + ["--ports", "38000"], "--ports takes a range"),
    (GOOD + ["--listen", "somewhere"], "--listen takes ADDRESS:PORT"),
    (GOOD + ["--listen", "0.0.0.0:0"], "say with --address"),
    (GOOD + ["--name", "two words"], "--name takes a name"),
    (GOOD + ["--ca", "/no/such"], "cannot read --ca /no/such"),
    (GOOD + ["--memory-mib", "10"], "--memory-mib needs --cgroup"),
    (GOOD + ["--slot", "1"], "did you mean '--slots'"),
])
def test_mistakes_are_told_in_a_sentence(arguments, about):
    ended = run("agent", *arguments, env={"MUSTER_TOKEN": ""})
    assert ended.returncode == 2
    assert about in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stdout == ""


def test_a_port_that_is_taken_is_a_sentence(control, agent, tmp_path):
    ended = run("agent", *GOOD, "--listen", "%s:%d" % agent.address, "--data", tmp_path / "other",
                "--uids", "none")
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith("Address already in use.") or "in use" in ended.stderr


# ── its folder ────────────────────────────────────────────────────────────────────────────────


def test_a_deployment_below_a_relative_data_folder(control, tmp_path):
    """As by default. Shims wait elsewhere for what they are to start."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.add(GAME, "bin/game")
    digest = hashlib.sha256(out.getvalue()).hexdigest()
    control.archives[digest] = out.getvalue()
    agent = Agent(tmp_path, control.url)
    agent.options["data"] = os.path.relpath(agent.data)
    with agent:
        control.wait(lambda: list((agent.data / "servers").glob("spare-*")), "shims that wait")
        started(agent, control, 12, deployment=digest, binary="bin/game")


# ── bytes that no control plane sends ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", http_api.CROWDED)
def test_crowded_head_at_the_agents_door(agent, control, case):
    """Without a token. Each of these ended the agent."""
    with started(agent, control, 12):
        for n in http_api.CROWDED_NUMBERS:
            status = http_api.ask_crowded(agent.address, case, n)
            assert status in http_api.CROWDED[case][1] | {401}, (n, status)
        assert agent.running and agent.show(12)["state"] == "running"


# ── nothing ───────────────────────────────────────────────────────────────────────────────────


def test_a_game_server_that_prints_nothing(agent, control):
    """Of its last lines there is nothing to look for characters or secrets in."""
    assert agent.spawn(12, binary="/bin/true", login_access_token="secret") == (202, {})
    failed = control.await_event(12, "failed")
    assert failed["exit_code"] == 0 and failed["tail"] == ""
    assert agent.ask("GET", "/servers/12/logs") == (200, b"")
