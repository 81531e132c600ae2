"""Peers that are there and yet are not: they stop reading, or the network swallows what they say."""

import os
import resource

import chat
import pytest
from chat import BACK, EU, LOST
from proxy import Proxy

BEAT_S = 0.2


@pytest.mark.muster(heartbeat_ms=1500)
def test_blackholed_server_is_found_and_healed(world):
    """The TCP connection stays up all the time; only the bytes are gone."""
    proxy = Proxy(world.net, world.muster.server_address)
    server = world.server(through=proxy, beat_every_s=BEAT_S)
    asker = world.chat()
    first = asker.allocate(7)

    proxy.blackhole(True)
    asker.expect_event(7, LOST)
    assert asker.refuse(8) == "No servers available"

    proxy.blackhole(False)
    proxy.cut()
    server.expect_closed()
    server.reconnect()
    asker.expect_event(7, BACK)
    assert asker.allocate(7).match_token == first.match_token
    asker.allocate(9)


@pytest.mark.muster(ack_ms=2000, heartbeat_ms=20000)
def test_offer_that_vanishes_on_the_way_goes_to_the_next_server(world):
    proxy = Proxy(world.net, world.muster.server_address)
    server = world.server(through=proxy)
    other = world.server(cpu=90)
    proxy.blackhole(True)
    asker = world.chat()
    assert asker.allocate(7).server_id == other.server_id
    assert not server.was_asked(7)

    proxy.blackhole(False)  # what was swallowed is gone; the CANCEL is repeated until it arrives
    server.expect_cancel(7, timeout_s=15)


@pytest.mark.muster(heartbeat_ms=60000)
def test_peer_that_never_reads_is_cut_and_costs_little(world):
    world.server()
    deaf = world.chat("deaf", receive_buffer=4096)
    good = world.chat("good")
    deaf.allocate(1)
    before_kib = world.muster.resident_kib()
    deaf.stop_reading()
    repeat = chat.mgr_server_allocation_request(1, 6, 0, EU, 10, 0)  # its answer is far longer

    def cut():
        if len(deaf.outgoing) < 1000 * len(repeat):
            deaf.send(5000 * repeat)
        good.round_trip()
        return deaf.send_failed

    world.wait(cut, "end of a peer that does not read", timeout_s=20)
    good.allocate(2)
    assert world.muster.resident_kib() - before_kib < 16 * 1024


@pytest.mark.muster(heartbeat_ms=1500)
def test_server_that_stops_reading_and_speaking_is_offline(world):
    deaf = world.server()
    good = world.server(cpu=50, beat_every_s=BEAT_S)
    deaf.stop_reading()
    asker = world.chat()
    assert asker.allocate(7).server_id == good.server_id


def test_silent_strangers_disturb_nobody(world):
    """Three hundred that begin a frame and never end it."""
    strangers = [world.connect(door) for door in ("server", "manager") for _ in range(150)]
    for stranger in strangers:
        stranger.send(b"\x20")
    server, asker = world.server(), world.chat()
    assert asker.allocate(7).server_id == server.server_id


def test_running_out_of_descriptors_is_survived(world):
    """Whoever is in stays in; whoever comes later gets in when there is room again."""
    server, asker = world.server(), world.chat()
    in_use = len(os.listdir(f"/proc/{world.muster.pid}/fd"))
    limits = resource.prlimit(world.muster.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(world.muster.pid, resource.RLIMIT_NOFILE, (in_use + 8, limits[1]))
    crowd = [world.connect("server") for _ in range(40)]
    world.elapse(0.2)
    assert server.beat().ok
    asker.allocate(7)
    for peer in crowd:
        peer.close()
    resource.prlimit(world.muster.pid, resource.RLIMIT_NOFILE, limits)
    world.server()
    world.chat("chat-2").barrier()
