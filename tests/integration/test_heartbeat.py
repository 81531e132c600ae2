"""Heartbeats of game servers and chat servers, and what silence means."""

import time

import chat
import pytest
from chat import BACK, ENDED, LOST

BEAT_S = 0.2  # with heartbeat_ms=1500 a server that beats this often is never silent


def test_acknowledgement_carries_the_clock(world):
    server = world.server()
    before_ms = int(time.time() * 1000)
    ack = server.beat(count=3, cpu=45.2, memory=62.8)
    assert before_ms - 1 <= ack.server_time_ms <= time.time() * 1000 + 1


def test_acknowledgement_byte_for_byte(world):
    server = world.server()
    ack = server.beat()
    assert server.raw[-1] == bytes.fromhex("0b 00 03 10 01") + ack.server_time_ms.to_bytes(8, "little")


@pytest.mark.parametrize("spoofed", [0, -1, 4242, "of another"])
def test_heartbeat_with_a_foreign_id_is_refused(world, spoofed):
    victim, liar = world.server(), world.server()
    liar_id, liar.server_id = liar.server_id, victim.server_id if spoofed == "of another" else spoofed
    liar.send_beat()
    assert liar.refusal("SV_HEARTBEAT_ACK") == "Server not registered"
    liar.server_id = liar_id
    assert liar.beat().ok, "the connection is kept"


def test_a_spoofed_load_does_not_reach_the_victim(world):
    victim = world.server(capacity=1)
    liar = world.server(capacity=1, cpu=90)
    liar.set(server_id=victim.server_id, count=1, cpu=100, memory=100)
    liar.send_beat()
    assert liar.refusal("SV_HEARTBEAT_ACK") == "Server not registered"
    assert world.chat().allocate(1).server_id == victim.server_id


def test_muster_pings_every_peer(world):
    """Each 10 seconds; nobody says anything meanwhile."""
    server, asker = world.server(), world.chat()
    world.wait(lambda: server.pings and asker.pings, "PING for both", timeout_s=14)


@pytest.mark.muster(heartbeat_ms=1500)
def test_silent_server_is_offline_and_disconnected(world):
    last_beat_s = time.monotonic()
    silent = world.server(capacity=4)
    beating = world.server(capacity=4, cpu=50, beat_every_s=BEAT_S)
    silent.expect_closed()
    assert time.monotonic() - last_beat_s >= 1.4
    assert world.chat().allocate(1).server_id == beating.server_id


@pytest.mark.muster(heartbeat_ms=1500)
def test_beating_server_outlives_many_timeouts(world):
    beating = world.server(beat_every_s=BEAT_S)
    for _ in range(2):
        world.server().expect_closed()  # two others fall silent, one after the other
    assert not beating.closed
    assert world.chat().allocate(1).server_id == beating.server_id


@pytest.mark.muster(heartbeat_ms=1500)
def test_answering_pings_is_no_heartbeat(world):
    server = world.server()
    while not server.closed:
        server.send(chat.ping())
        world.elapse(0.1)
    assert server.take("PONG")


@pytest.mark.muster(heartbeat_ms=1500)
def test_match_on_a_silent_server_is_lost_once_and_comes_back(world):
    server = world.server(on_allocate="ready")
    asker = world.chat()
    first = asker.allocate(7)
    assert server.validate(7, 100).ok
    server.expect_closed()
    asker.expect_event(7, LOST)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT", kind=LOST), "told twice"

    server.beat_every_s = BEAT_S
    server.reconnect()
    asker.expect_event(7, BACK)
    again = asker.allocate(7)
    assert (again.server_id, again.match_token) == (first.server_id, first.match_token)
    assert server.validate(7, 100).ok, "it kept its seat"


@pytest.mark.muster(heartbeat_ms=1500, lost_ms=1000)
def test_lost_match_ends_when_its_server_stays_away(world):
    world.server()
    asker = world.chat()
    asker.allocate(7)
    asker.expect_event(7, LOST)
    asker.expect_event(7, ENDED)
    assert asker.refuse(7) == "Invalid match lobby ID"


@pytest.mark.muster(heartbeat_ms=1500, lost_ms=60000)
def test_lost_match_keeps_its_slot(world):
    """The server is back, its match too, so there is no room for a second one."""
    server = world.server(capacity=1)
    asker = world.chat()
    asker.allocate(7)
    asker.expect_event(7, LOST)
    server.beat_every_s = BEAT_S
    server.reconnect()
    asker.expect_event(7, BACK)
    assert asker.refuse(8) == "No servers available"


@pytest.mark.muster(heartbeat_ms=1500)
def test_dropped_connection_is_lost_only_when_its_time_is_over(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    beat_s = time.monotonic()
    server.beat()
    server.close()
    assert asker.refuse(8) == "No servers available", "it is unplaceable at once"
    asker.expect_event(7, LOST)
    assert time.monotonic() - beat_s >= 1.4


@pytest.mark.muster(heartbeat_ms=1500)
def test_quick_reconnect_loses_nothing(world):
    server = world.server(beat_every_s=BEAT_S)
    asker = world.chat()
    asker.allocate(7)
    server_id = server.server_id
    server.reconnect()
    assert server.server_id == server_id
    world.server(ip="10.9.9.9").expect_closed()  # a whole timeout passes
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


@pytest.mark.muster(heartbeat_ms=1500, ack_ms=20000)
def test_match_being_opened_on_a_silent_server_moves_on(world):
    silent = world.server(on_allocate="silent")
    other = world.server(cpu=50, beat_every_s=BEAT_S)
    asker = world.chat()
    asker.request(7)
    silent.expect_offer(7)
    assert asker.placed(7).server_id == other.server_id
    assert silent.closed


@pytest.mark.muster(chat_ms=1500)
def test_silent_chat_server_is_gone(world):
    silent, beating = world.chat("silent"), world.chat("beating")
    deadline_s = time.monotonic() + 6
    while not silent.closed and time.monotonic() < deadline_s:
        beating.send(chat.mgr_heartbeat())
        beating.expect("MGR_HEARTBEAT_ACK")
        world.elapse(0.2)
    assert silent.closed and not beating.closed


def test_chat_servers_heartbeat_is_acknowledged_with_the_clock(world):
    asker = world.chat()
    before_ms = int(time.time() * 1000)
    asker.send(chat.mgr_heartbeat())
    assert before_ms - 1 <= asker.expect("MGR_HEARTBEAT_ACK").time_ms <= time.time() * 1000 + 1
