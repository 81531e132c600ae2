"""A limit for files (ulimit -f, LimitFSIZE of a unit): a write beyond it fails as on a full disk, and
ends nobody without a word. test_disk_full.py has what the control plane does while it serves."""

import contextlib
import signal
import subprocess
from pathlib import Path

import pytest
from gate import limit_files
from muster_proc import binary, run
from real_rooms import parent_of
from test_agent import agent, call, control, started  # noqa: F401: fixtures
from test_backup import where

pytestmark = pytest.mark.embedded
REASON = "the file size limit of this process is reached; raise it (ulimit -f, LimitFSIZE)"


@contextlib.contextmanager
def limited(size):
    """Whoever is started in this has the limit from its beginning."""
    limit_files(0, size)
    try:
        yield
    finally:
        limit_files(0)


def run_limited(size, *arguments, stdout=subprocess.PIPE):
    """A muster command whose files may have so many bytes."""
    with limited(size):
        return subprocess.run([binary(), *map(str, arguments)], stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=30)


SERVE = ["serve", "--dev", "--server-port", 0, "--manager-port", 0, "--client-port", 0,
         "--http", "127.0.0.1:0"]


@pytest.mark.parametrize("size", [0, 10, 4096, 20000, 60000])
def test_a_start_is_refused(tmp_path, size):
    """With a limit that is reached by the secret, by the first table, by the log of a database."""
    result = run_limited(size, *SERVE, "--data", tmp_path / "data")
    assert result.returncode == 1, result.stderr
    assert REASON in result.stderr
    with subprocess.Popen([binary(), *map(str, SERVE), "--data", tmp_path / "data"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as muster:
        assert muster.stdout.readline().startswith("ready "), "with room it starts"
        muster.terminate()


def test_why_the_store_is_read_only_is_in_the_log(world):
    world.server(capacity=200)
    asker = world.chat()
    limit_files(world.muster.pid, 600_000)  # its log must still take a line
    for lobby in range(100, 300):
        asker.request(lobby)
        if not asker.reply(lobby).ok:
            break
    world.wait(lambda: world.muster.log_lines("journal cannot be used"), "line in the log")
    assert REASON in world.muster.log_lines("journal cannot be used")[0]["why"]
    limit_files(world.muster.pid)
    world.wait(lambda: world.muster.log_lines("store writable again"), "recovery", timeout_s=15)


def ignores_limit(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.split("SigIgn:")[1].split()[0], 16)
    return bool(ignored >> (signal.SIGXFSZ - 1) & 1)


def test_an_agent_goes_on(agent, control):
    """What it cannot keep on disk it still says, and writes when it can: the next agent has it."""
    with started(agent, control, 12) as log:
        limit_files(agent.process.pid, 0)
        agent.say(12, call("joined", 2, key="a"))
        assert log.answer_to(2)
        control.status = 503
        agent.say(12, call("joined", 3, key="b"))
        control.wait(lambda: any(e.get("key") == "b" for batch in control.batches
                                 for e in batch["events"]), "b on its way")
        assert b'"b"' not in (agent.data / "events" / "12").read_bytes()
        limit_files(agent.process.pid)
        control.wait(lambda: b'"b"' in (agent.data / "events" / "12").read_bytes(), "b on disk")
        agent.kill9()
        control.status = 200
        agent.start()
        assert control.await_event(12, "joined", 2)["key"] == "b"


def test_an_agent_with_a_limit_from_its_start_refuses_clearly(agent, control):
    agent.term()
    with limited(0):
        agent.start()
    status, answer = agent.spawn(12)
    if status == 202:
        answer = control.await_event(12, "failed")
        assert REASON in answer["text"]
    else:
        assert REASON in answer["error"]["message"]
    limit_files(agent.process.pid)
    assert agent.spawn(13) == (202, {})
    control.await_event(13, "inited")


def scripted(agent, folder, text):
    """A game server that is a shell script, and has begun; its pid."""
    game = folder / "game"
    game.write_text(f"#!/bin/sh\necho up\n{text}\n")
    game.chmod(0o755)
    assert agent.spawn(12, binary=str(game)) == (202, {})
    with agent.follow(12) as log:
        assert log.line() == "up"
    return agent.show(12)["pid"]


def test_a_game_server_whose_log_may_not_grow_goes_on(agent, control, tmp_path):
    """How it goes on when there is room again: tests/unit/shim/test_output.c."""
    pid = scripted(agent, tmp_path, "while read line; do echo \"$line\"; [ \"$line\" = end ] && exit 3; done")
    limit_files(parent_of(pid), 0)
    for _ in range(10):
        assert agent.post("/servers/12/stdin", line="a line that nobody can keep") == (200, {})
    assert agent.post("/servers/12/stdin", line="end") == (200, {})
    failed = control.await_event(12, "failed")
    assert failed["exit_code"] == 3
    assert len(failed["tail"].splitlines()) == 12, "its shim has not forgotten its last lines"


def test_a_game_server_has_the_signal_that_it_knows(agent, tmp_path):
    """We ignore it, and whoever we start does not. (Python does, so it is another game server.)"""
    pid = scripted(agent, tmp_path, "read line")
    assert ignores_limit(agent.process.pid) and ignores_limit(parent_of(pid))
    assert not ignores_limit(pid)


@pytest.mark.parametrize("arguments", [["help", "--markdown"], ["sim", "--seeds", 3]])
def test_output_into_a_file(tmp_path, arguments):
    with open(tmp_path / "output", "wb") as output:
        result = run_limited(10, *arguments, stdout=output)
    assert result.returncode == 1
    assert f"cannot write to standard output: {REASON}" in result.stderr


def test_a_backup(world, tmp_path):
    file = tmp_path / "backup"
    result = run_limited(1000, "backup", file, *where(world))
    assert result.returncode == 1
    assert f"cannot write: {REASON}" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize("size", [100, 5000, 20000, 60000])
def test_a_restore(world, tmp_path, size):
    file, data = tmp_path / "backup", tmp_path / "data"
    assert run("backup", file, *where(world)).returncode == 0
    result = run_limited(size, "restore", file, "--data", data)
    assert result.returncode == 1 and REASON in result.stderr, result.stderr
    assert [f.name for f in data.iterdir()] == ["lock"]
    result = run("restore", file, "--data", data)
    assert result.returncode == 0, result.stderr
