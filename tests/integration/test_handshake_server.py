"""How a game server introduces itself on the server port, and every way to be refused."""

import time

import chat
import pytest
from chat import AUTO, EU, USE

TOKENS = [
    {"token": "server-token", "role": "server", "fleet": "default", "regions": ["EU"]},
    {"token": "chat-token", "role": "chat", "fleet": "default", "regions": ["EU"]},
]


def refused(world, **options):
    server = world.unregistered_server(**options)
    server.say_hello()
    sentence = server.refusal("SV_HANDSHAKE_RESPONSE")
    server.expect_closed()
    return sentence


def test_yes_carries_a_server_id_and_the_clock(world):
    server = world.unregistered_server()
    before_ms = int(time.time() * 1000)
    server.say_hello()
    answer = server.answer("SV_HANDSHAKE_RESPONSE")
    assert answer.server_id > 0
    assert before_ms - 1 <= answer.time_ms <= time.time() * 1000 + 1


def test_each_server_has_its_own_id(world):
    ids = {world.server().server_id for _ in range(5)}
    assert len(ids) == 5


@pytest.mark.parametrize("ip", ["", "localhost", "999.1.1.1", "10.0.0", "10.0.0.1:80", "::g"])
def test_invalid_ip_address(world, ip):
    assert refused(world, ip=ip) == "Invalid IP address"


@pytest.mark.parametrize("port", [-1, 0, 1023, 65536, 2**31 - 1])
def test_invalid_port(world, port):
    assert refused(world, port=port) == "Invalid port"


@pytest.mark.parametrize("port", [1024, 65535])
def test_the_outermost_ports_are_valid(world, port):
    world.server(port=port)


@pytest.mark.parametrize("region", [-128, -1, AUTO, 18, 63, 64, 127])
def test_invalid_region(world, region):
    assert refused(world, region=region) == "Invalid region"


@pytest.mark.parametrize("capacity", [-1, 0, 1001, -(2**31), 2**31 - 1])
def test_invalid_capacity(world, capacity):
    assert refused(world, capacity=capacity) == "Invalid capacity"


@pytest.mark.parametrize("capacity", [1, 1000])
def test_the_outermost_capacities_are_valid(world, capacity):
    world.server(capacity=capacity)


@pytest.mark.muster(dev=False, tokens=TOKENS)
def test_without_dev_a_token_is_needed(world):
    assert refused(world, token="guess") == "Invalid token"
    assert refused(world, token="") == "Invalid token"
    assert refused(world, token="server-toke") == "Invalid token"
    world.server(token="server-token")


@pytest.mark.muster(dev=False, tokens=TOKENS)
def test_a_chat_servers_token_does_not_admit_a_game_server(world):
    assert refused(world, token="chat-token") == "Invalid token"


@pytest.mark.muster(dev=False, tokens=TOKENS)
def test_a_token_admits_only_to_its_regions(world):
    assert refused(world, token="server-token", region=USE) == "Invalid region"
    world.server(token="server-token", region=EU)


def test_second_connection_is_refused_while_the_first_answers_a_ping(world):
    first = world.server(port=21000)
    assert refused(world, port=21000) == "Server already registered"
    assert first.pings == 1
    assert first.beat().ok, "the first connection is not disturbed"


def test_second_connection_wins_when_the_first_is_silent(world):
    first = world.server(port=21000, answers_ping=False)
    second = world.server(port=21000)
    assert second.server_id == first.server_id
    first.expect_closed()
    assert world.chat().allocate(1).server_id == second.server_id
    assert second.was_asked(1) and not first.was_asked(1)


def test_same_ip_with_another_port_is_another_server(world):
    first = world.server(ip="10.0.0.9", port=21000)
    second = world.server(ip="10.0.0.9", port=21001)
    assert first.server_id != second.server_id


def test_two_challengers_leave_one_winner(world):
    first = world.server(port=21000, answers_ping=False)
    challengers = [world.unregistered_server(port=21000) for _ in range(2)]
    for challenger in challengers:
        challenger.say_hello()
    answers = [c.expect("SV_HANDSHAKE_RESPONSE") for c in challengers]
    assert sorted(a.ok for a in answers) == [0, 1]
    (loser,) = [a for a in answers if not a.ok]
    assert loser.error == "Server already registered"
    first.expect_closed()


def test_ping_is_answered_before_the_handshake(world):
    server = world.unregistered_server()
    server.round_trip()
    server.register()


@pytest.mark.parametrize(
    "early",
    [
        chat.sv_heartbeat(1, 0, 0, 0),
        chat.sv_allocate_match_ack(1, 1),
        chat.sv_match_list(1, []),
        chat.mgr_handshake("any", "chat-1", [EU]),
        chat.frame(0x7777),
    ],
    ids=["heartbeat", "ack", "match list", "handshake of the other port", "unknown command"],
)
def test_anything_before_the_handshake_is_a_protocol_error(world, early):
    peer = world.connect("server")
    peer.send(early)
    peer.expect_error()


def test_second_handshake_is_a_protocol_error(world):
    server = world.server()
    server.say_hello()
    server.expect_error()


def test_handshake_above_1_kib_is_a_protocol_error(world):
    server = world.unregistered_server(token="t" * 1010)
    server.say_hello()
    server.expect_error()


def test_large_frame_is_refused_before_its_payload_arrives(world):
    peer = world.connect("server")
    peer.send(b"\x00\x20\x00\x10")  # announces 8 KiB of SV_HANDSHAKE
    peer.expect_error()


def test_no_handshake_for_five_seconds_ends_the_connection(world):
    began_s = time.monotonic()
    peers = [world.connect("server"), world.connect("manager")]
    pinging = world.connect("server")
    world.elapse(2.0)
    pinging.round_trip()  # a PING is no handshake
    assert not any(p.closed for p in peers)
    for peer in [*peers, pinging]:
        peer.expect_closed()
    assert time.monotonic() - began_s >= 4.5
