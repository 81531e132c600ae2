"""What game servers may use, as `muster agent` is told: real agents, real processes."""

import io
import os
import tarfile
from pathlib import Path

import players
import pytest
from agent_proc import GAME, Agent
from fake_control import FakeControl
from muster_proc import run

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives away processes")
MIB = 1 << 20
FIRST = 190000


@pytest.fixture
def control():
    with FakeControl() as control:
        yield control


@pytest.fixture
def start(control, tmp_path):
    agents = []

    def start(folder=tmp_path, url=None, uids=None, **options):
        agent = Agent(folder, url or control.url, **options)
        del agent.options["uids"]
        if uids:
            agent.options["uids"] = uids
        agents.append(agent)
        return agent.start()

    yield start
    for agent in agents:
        agent.__exit__()


def status_of(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def limits_of(pid):
    text = Path(f"/proc/{pid}/limits").read_text()
    return {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()[1:]}


def inited(agent, control, server):
    assert agent.spawn(server) == (202, {})
    control.await_event(server, "inited")
    return agent.show(server)["pid"]


@as_root
def test_root_gives_each_game_server_a_user_and_no_power(start, control):
    agent = start(slots=2)
    users = set()
    for server in (12, 13):
        pid = inited(agent, control, server)
        status = status_of(pid)
        (user,) = set(status["Uid"].split())
        assert status["Gid"].split() == [user] * 4 and status["Groups"].strip() == ""
        users.add(int(user))
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[kind], 16) == 0, kind
        assert status["NoNewPrivs"] == "1"
        limits = limits_of(pid)
        assert limits["Max open files"] == "4096"
        assert limits["Max processes"] == "512"
        assert limits["Max file size"] == str(1024 * MIB)
        assert limits["Max core file size"] == "0"
    assert users == {FIRST, FIRST + 1}
    assert "run as root" not in agent.log()


@as_root
def test_without_users_of_their_own_they_run_as_the_agent(start, control):
    agent = start(uids="none", files=200)
    pid = inited(agent, control, 12)
    assert set(status_of(pid)["Uid"].split()) == {"0"}
    assert int(status_of(pid)["CapEff"], 16) == 0
    assert limits_of(pid)["Max open files"] == "200"
    assert "game servers run as root" in agent.log()


@as_root
def test_what_its_user_may_not_enter_is_named(start, control, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    game = shut / "game"
    game.write_text("#!/bin/sh\n")
    game.chmod(0o755)
    agent = start()
    assert agent.spawn(12, binary=str(game)) == (202, {})
    text = control.await_event(12, "failed")["text"]
    assert str(FIRST) in text and str(game) in text and "may not" in text, text


@as_root
def test_a_data_folder_that_users_cannot_reach_is_refused(start, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    (shut / "data").mkdir()
    with pytest.raises(AssertionError, match="it ended with 1") as ended:
        start(data=shut / "data")
    assert "closed to others" in str(ended.value) and "--uids none" in str(ended.value)


def archive_of(path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.add(path, "bin/game")
    return out.getvalue()


@as_root
def test_a_deployment_is_run_by_a_user_who_cannot_change_it(start, make_world):
    world = make_world(fleets=players.fleets(binary="bin/game"), default_region="EU")
    query = {"fleet": "arena", "version": "1.0"}
    kept = world.api.ask("POST", "/v1/deployments", query, body=archive_of(GAME),
                         content_type="application/octet-stream").json
    world.api.post(f"/v1/deployments/{kept['id']}/switch")
    agent = start(url="http://%s:%d" % world.muster.http_address,
                  token=players.token_of(world, "host", "game_host"))
    world.wait(lambda: world.api.all("/v1/hosts"), "the host")
    room = players.Player(world, "ann").create()
    (server,) = world.api.all("/v1/servers")
    pid = agent.show(server["id"])["pid"]
    try:
        assert room["key"] and set(status_of(pid)["Uid"].split()) == {str(FIRST)}
        folder = Path(os.readlink(f"/proc/{pid}/cwd"))
        assert folder.parent == agent.data / "deployments"
        assert not [p for p in (folder, *folder.rglob("*")) if p.stat().st_mode & 0o022]
    finally:
        agent.post(f"/servers/{server['id']}/terminate", why="x", grace_ms=0)


@pytest.mark.parametrize("arguments, about", [
    (["--uids", "0"], "--uids takes a user id from 1000 to 1073741823, or none, not '0'"),
    (["--uids", "nobody"], "or none, not 'nobody'"),
    (["--uids", "190000x"], "or none, not '190000x'"),
    (["--memory-mib", "10"], "--memory-mib needs --cgroup"),
    (["--files", "1"], "--files"),
    (["--log-files", "0"], "--log-files"),
    (["--log-mb", "1"], "did you mean '--log-mib'"),
])
def test_mistakes_are_told_in_a_sentence(arguments, about):
    good = ["--control", "http://127.0.0.1:1", "--region", "EU", "--token", "t"]
    ended = run("agent", *good, *arguments)
    assert ended.returncode == 2
    assert about in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
