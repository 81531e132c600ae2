"""Clocks that step and processes that stand still: nobody is called silent for it."""

import os
import signal
import time
from pathlib import Path

import pytest
from chat import LOST

LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
BEAT_S = 0.2


class WallClock:
    """Muster's wall clock, to be stepped; its monotonic clock stays real."""

    def __init__(self, folder):
        self.path = Path(folder) / "clock"
        self.step(0)
        self.env = {
            "LD_PRELOAD": LIBRARY,
            "FAKETIME_TIMESTAMP_FILE": str(self.path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        # libfaketime has one lock for all threads. The thread that folds the journal in the
        # background may hold it and stand still for as long as the machine is busy, so it is an
        # ordinary one here, as everywhere without this capability.
        self.wrap = ["setpriv", "--bounding-set=-sys_nice"] if os.geteuid() == 0 else []

    def step(self, seconds):
        """How far from the true time it is from now on."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.rename(self.path)


@pytest.fixture
def clock(tmp_path):
    return WallClock(tmp_path)


@pytest.fixture
def clock_world(request, clock, make_world):
    return make_world(env=clock.env, wrap=clock.wrap, **request.node.get_closest_marker("muster").kwargs)


def seen_offset_s(server):
    return server.beat().server_time_ms / 1000 - time.time()


@pytest.mark.muster(heartbeat_ms=2000, chat_ms=60000)
@pytest.mark.parametrize("step_s", [3600, -3600, 31, -120])
def test_step_of_the_wall_clock_makes_nobody_offline(clock_world, clock, step_s):
    world = clock_world
    beating = world.server(beat_every_s=BEAT_S)
    asker = world.chat()
    first = asker.allocate(7)
    last_beat_s = time.monotonic()
    silent = world.server(region=3)

    clock.step(step_s)
    world.wait(lambda: abs(seen_offset_s(beating) - step_s) < 5, "the step has reached Muster")
    silent.expect_closed()  # a whole timeout of true time passes
    assert time.monotonic() - last_beat_s >= 1.9, "the step counted as silence"

    assert not beating.closed
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT", kind=LOST)
    again = asker.allocate(7)
    assert again.match_token == first.match_token
    assert beating.validate(7, 1).ok, "a token does not expire by a step"
    assert asker.allocate(8).server_id == beating.server_id


@pytest.mark.muster(heartbeat_ms=2000, token_ms=2000)
def test_token_expires_by_true_time_when_the_wall_clock_goes_back(clock_world, clock):
    world = clock_world
    server = world.server(beat_every_s=BEAT_S)
    world.chat().allocate(7)
    clock.step(-3600)
    assert server.validate(7, 1).ok
    world.elapse(2.2)
    assert server.validate(7, 2).error == "Match token expired"


@pytest.mark.muster(heartbeat_ms=2000)
@pytest.mark.parametrize("step_s", [3600, -3600])
def test_restart_after_a_step_keeps_everything(clock_world, clock, step_s):
    world = clock_world
    server = world.server(beat_every_s=BEAT_S)
    asker = world.chat()
    first = asker.allocate(7)
    assert world.muster.term() == 0
    clock.step(step_s)
    world.muster.restart()
    server.reconnect()
    asker.reconnect()
    assert asker.allocate(7).match_token == first.match_token
    assert server.validate(7, 1).ok == (step_s < 0), "up to ten minutes count as time that passed"


@pytest.mark.embedded
@pytest.mark.muster(heartbeat_ms=1500)
def test_stopped_muster_calls_nobody_silent(world):
    """SIGSTOP for longer than the timeout, while the servers say nothing either."""
    servers = [world.server() for _ in range(5)]
    asker = world.chat()
    asker.allocate(7)
    for server in servers:
        server.beat()
    world.muster.signal(signal.SIGSTOP)
    world.elapse(3.0)
    world.muster.signal(signal.SIGCONT)
    for server in servers:
        server.beat_every_s = BEAT_S
        assert server.beat().ok
    world.server(region=3).expect_closed()  # a whole timeout passes
    assert not any(server.closed for server in servers)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


@pytest.mark.embedded
@pytest.mark.muster(ack_ms=1000)
def test_stopped_muster_does_not_blame_a_server_for_its_ack(world):
    """The ACK lay in the socket while Muster did not run."""
    server = world.server(on_allocate="silent")
    other = world.server(cpu=50)
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    world.muster.signal(signal.SIGSTOP)
    server.accept(offer)
    world.elapse(2.5)
    world.muster.signal(signal.SIGCONT)
    assert asker.placed(7).server_id == server.server_id
    assert not other.was_asked(7)


@pytest.mark.muster(heartbeat_ms=1500)
def test_silence_still_counts_after_a_stop(world):
    silent = world.server()
    world.muster.signal(signal.SIGSTOP)
    world.elapse(2.0)
    world.muster.signal(signal.SIGCONT)
    silent.expect_closed()
