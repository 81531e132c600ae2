"""How a chat server introduces itself on the manager port, and every way to be refused."""

import time

import chat
import pytest
from chat import AUTO, EU, RU, USE
from test_handshake_server import TOKENS


def refused(world, *args, **options):
    peer = world.unregistered_chat(*args, **options)
    peer.say_hello()
    sentence = peer.refusal("MGR_HANDSHAKE_RESPONSE")
    peer.expect_closed()
    return sentence


def test_yes_carries_the_clock_and_the_servers_of_its_regions(world):
    eu = world.server(region=EU, ip="10.1.2.3", port=21001, capacity=7)
    use = world.server(region=USE, ip="10.1.2.4", port=21002, capacity=8)
    world.server(region=RU)
    before_ms = int(time.time() * 1000)
    hello = world.chat(regions=(EU, USE)).hello
    assert before_ms - 1 <= hello.time_ms <= time.time() * 1000 + 1
    entries = {(e.server_id, e.ip, e.port, e.region, e.max_matches) for e in hello.servers}
    assert entries == {
        (eu.server_id, "10.1.2.3", 21001, EU, 7),
        (use.server_id, "10.1.2.4", 21002, USE, 8),
    }


def test_server_list_is_cut_where_the_frame_is_full(world):
    """Each entry takes 52 bytes here, so 320 of them do not fit into one frame."""
    servers = [
        world.unregistered_server(ip=f"2001:db8:1111:2222:3333:4444:5555:{i:04x}")
        for i in range(0x1000, 0x1000 + 320)
    ]
    for server in servers:
        server.say_hello()
    ids = {server.answer("SV_HANDSHAKE_RESPONSE").server_id for server in servers}
    listener = world.chat()
    listed = {e.server_id for e in listener.hello.servers}
    assert listed < ids
    (raw,) = listener.raw
    assert chat.FRAME_MAX - 52 < len(raw) - 2 <= chat.FRAME_MAX


@pytest.mark.parametrize(
    "chat_id", ["", "a" * 65, "chat server", "chat/1", "chät", "a\n", "a:b"]
)
def test_invalid_chat_server_id(world, chat_id):
    assert refused(world, chat_id) == "Invalid Chat Server ID"


@pytest.mark.parametrize("chat_id", ["a", "A.b_c-9", "a" * 64])
def test_valid_chat_server_ids(world, chat_id):
    world.chat(chat_id)


@pytest.mark.parametrize("region", [-1, AUTO, 18, 127])
def test_invalid_region(world, region):
    assert refused(world, regions=(EU, region)) == "Invalid region"


@pytest.mark.muster(dev=False, tokens=TOKENS)
def test_without_dev_a_token_is_needed(world):
    assert refused(world, token="guess") == "Invalid token"
    assert refused(world, token="server-token") == "Invalid token"
    world.chat(token="chat-token")


@pytest.mark.muster(dev=False, tokens=TOKENS)
def test_a_token_admits_only_to_its_regions(world):
    assert refused(world, token="chat-token", regions=(EU, USE)) == "Invalid region"


def test_second_connection_is_refused_while_the_first_answers_a_ping(world):
    first = world.chat("chat-1")
    assert refused(world, "chat-1") == "Chat Server already registered"
    first.barrier()


def test_second_connection_wins_when_the_first_is_silent(world):
    world.server()
    first = world.chat("chat-1")
    first.answers_ping = False
    second = world.chat("chat-1")
    first.expect_closed()
    second.allocate(1)


def test_chat_servers_with_different_ids_live_side_by_side(world):
    first, second = world.chat("chat-1"), world.chat("chat-2")
    first.barrier()
    second.barrier()


def test_ping_is_answered_before_the_handshake(world):
    peer = world.unregistered_chat()
    peer.round_trip()
    peer.register()


@pytest.mark.parametrize(
    "early",
    [
        chat.mgr_heartbeat(),
        chat.mgr_server_allocation_request(1, 6, 0, EU, 10, 1500),
        chat.mgr_allocation_cancel(1),
        chat.sv_handshake("any", "10.0.0.1", 20000, EU, 4),
        chat.frame(0x7777),
    ],
    ids=["heartbeat", "request", "cancel", "handshake of the other port", "unknown command"],
)
def test_anything_before_the_handshake_is_a_protocol_error(world, early):
    peer = world.connect("manager")
    peer.send(early)
    peer.expect_error()


def test_second_handshake_is_a_protocol_error(world):
    peer = world.chat()
    peer.say_hello()
    peer.expect_error()


def test_handshake_above_1_kib_is_a_protocol_error(world):
    peer = world.unregistered_chat(token="t" * 1020)
    peer.say_hello()
    peer.expect_error()
