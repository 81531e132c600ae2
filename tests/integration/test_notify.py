"""Whoever started Muster, as systemd does, hears when it is ready, reads again, stops, and lives."""

import os
import signal
import socket

import pytest
from agent_proc import Agent
from fake_control import FakeControl
from muster_proc import Muster, write_config

PATIENCE_S = 30.0
WATCHDOG_S = 0.4


class Supervisor:
    """The socket that a service is given, and what it says there."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(PATIENCE_S)

    def hear(self):
        """The next message, as a dict."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def hear_of(self, key):
        """The next message with that key; signs of life may come before it."""
        while key not in (message := self.hear()):
            assert message == {"WATCHDOG": "1"}, message
        return message

    def close(self):
        self.socket.close()


@pytest.fixture
def supervisor(tmp_path):
    made = Supervisor(tmp_path)
    yield made
    made.close()


@pytest.mark.embedded
def test_a_service_tells_how_it_is(supervisor, tmp_path):
    """From the first word to the last, with a reload that is taken and one that is refused."""
    config = {"timeouts": {"ack_ms": 5000}}
    with Muster(tmp_path, config, env={"NOTIFY_SOCKET": supervisor.path}) as muster:
        assert supervisor.hear() == {"READY": "1", "STATUS": "serving"}
        socket.create_connection(muster.http_address, PATIENCE_S).close()

        write_config(tmp_path / "muster.yaml", {"timeouts": {"ack_ms": 4000}})
        muster.signal(signal.SIGHUP)
        assert int(supervisor.hear_of("RELOADING")["MONOTONIC_USEC"]) > 0
        assert supervisor.hear() == {"READY": "1", "STATUS": "serving"}

        write_config(tmp_path / "muster.yaml", {"timeouts": {"ack_ms": "soon"}})
        muster.signal(signal.SIGHUP)
        supervisor.hear_of("RELOADING")
        again = supervisor.hear()
        assert again["READY"] == "1" and "refused" in again["STATUS"]

        muster.signal(signal.SIGTERM)
        assert supervisor.hear()["STOPPING"] == "1"
        assert muster.finish() == 0


@pytest.mark.embedded
def test_a_service_that_cannot_start_is_never_ready(supervisor, tmp_path):
    with Muster(tmp_path, env={"NOTIFY_SOCKET": supervisor.path}) as muster:
        supervisor.hear_of("READY")
        second = Muster(tmp_path, data=muster.data, env={"NOTIFY_SOCKET": supervisor.path})
        with pytest.raises(AssertionError, match="ended with 1"):
            second.start()
    supervisor.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        supervisor.hear()


@pytest.mark.embedded
def test_a_loop_that_hangs_gives_no_sign_of_life(supervisor, tmp_path):
    env = {"NOTIFY_SOCKET": supervisor.path, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
    with Muster(tmp_path, env=env) as muster:
        supervisor.hear_of("READY")
        for _ in range(5):
            assert supervisor.hear() == {"WATCHDOG": "1"}
        muster.signal(signal.SIGSTOP)
        supervisor.socket.settimeout(2 * WATCHDOG_S)
        with pytest.raises(TimeoutError):
            while True:  # what was said before it stopped
                supervisor.hear()
        muster.signal(signal.SIGCONT)
        supervisor.socket.settimeout(PATIENCE_S)
        assert supervisor.hear() == {"WATCHDOG": "1"}


def test_an_agent_tells_how_it_is(supervisor, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", supervisor.path)
    with FakeControl() as control, Agent(tmp_path, control.url) as agent:
        assert supervisor.hear()["READY"] == "1"
        assert agent.spawn(1) == (202, {})
        control.await_event(1, "inited")
        for pid in agent.pids():  # neither a game server nor its shim may speak for the agent
            with open(f"/proc/{pid}/environ", "rb") as environment:
                assert b"NOTIFY_SOCKET" not in environment.read()
        assert len(agent.pids()) == 2
        os.kill(agent.process.pid, signal.SIGTERM)
        assert supervisor.hear()["STOPPING"] == "1"
        assert agent.finish() == 0
