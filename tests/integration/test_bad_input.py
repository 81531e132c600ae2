"""Bytes no honest peer would send: a clear sentence, the end of that connection, nobody else
disturbed. And bytes an honest peer may well send, in odd pieces."""

import math
import struct

import chat
import http_api
import pytest
from chat import EU

NAN, INFINITY = math.nan, math.inf


def heartbeat(count=0, cpu=0.0, memory=0.0):
    """Server id 1: the first one to register in a new world."""
    return chat.sv_heartbeat(1, count, cpu, memory)


SERVER_PORT = {
    "cpu NaN": heartbeat(cpu=NAN),
    "cpu negative": heartbeat(cpu=-0.5),
    "cpu above 100": heartbeat(cpu=100.5),
    "cpu infinite": heartbeat(cpu=INFINITY),
    "cpu minus infinite": heartbeat(cpu=-INFINITY),
    "memory NaN": heartbeat(memory=NAN),
    "memory negative": heartbeat(memory=-1e-3),
    "memory above 100": heartbeat(memory=101),
    "memory infinite": heartbeat(memory=INFINITY),
    "signalling NaN": chat.frame(0x1002, struct.pack("<iiIf", 1, 0, 0x7F800001, 0)),
    "count negative": heartbeat(count=-1),
    "count too large": heartbeat(count=1_000_001),
    "count smallest": heartbeat(count=-(2**31)),
    "length 0": b"\x00\x00\x00\x00",
    "length 1": b"\x01\x00\x02\x10",
    "length above 16 KiB": struct.pack("<HH", 16385, 0x1002),
    "length largest": b"\xff\xff\x02\x10",
    "payload too short": chat.frame(0x1002, b"\x01\x00\x00"),
    "payload absent": chat.frame(0x1002),
    "one byte left over": chat.frame(0x1002, struct.pack("<iiffx", 1, 0, 0, 0)),
    "PING with a payload": chat.frame(0x2A00, b"\0"),
    "flag is 2": chat.frame(0x1005, struct.pack("<bi", 2, 7)),
    "flag is -1": chat.frame(0x1005, struct.pack("<bi", -1, 7)),
    "string is not UTF-8": chat.frame(0x1006, struct.pack("<ii", 1, 7) + b"MATCH_\xff\xfe\0"),
    "string is an overlong form": chat.frame(0x1006, struct.pack("<ii", 1, 7) + b"\xc0\xaf\0"),
    "string is half a surrogate": chat.frame(0x1006, struct.pack("<ii", 1, 7) + b"\xed\xa0\x80\0"),
    "string without NUL": chat.frame(0x1006, struct.pack("<ii", 1, 7) + b"MATCH_7"),
    "string above 1,024 bytes": chat.frame(0x1006, struct.pack("<ii", 1, 7) + b"a" * 1025 + b"\0"),
    "list longer than its frame": chat.frame(0x1011, struct.pack("<iBi", 1, 200, 7)),
    "list shorter than its frame": chat.frame(0x1011, struct.pack("<iBii", 1, 1, 7, 8)),
}

MANAGER_PORT = {
    "length 0": b"\x00\x00\x00\x00",
    "length largest": b"\xff\xff\x02\x20",
    "request too short": chat.frame(0x2002, b"\x01\x00\x00\x00\x06"),
    "request too long": chat.frame(0x2002, struct.pack("<ibbbbix", 1, 6, 0, EU, 10, 0)),
    "cancel too short": chat.frame(0x2006, b"\x01\x00"),
    "cancel too long": chat.frame(0x2006, b"\x01\x00\x00\x00\x00"),
    "heartbeat with a payload": chat.frame(0x2004, b"\0"),
    "PONG with a payload": chat.frame(0x2A01, b"\0"),
}


@pytest.mark.parametrize("case", SERVER_PORT)
def test_protocol_error_on_the_server_port(world, case):
    bad, good = world.server(), world.server()
    asker = world.chat()
    bad.send(SERVER_PORT[case])
    bad.expect_error()
    assert good.beat().ok
    assert asker.allocate(1).server_id == good.server_id


@pytest.mark.parametrize("case", MANAGER_PORT)
def test_protocol_error_on_the_manager_port(world, case):
    world.server()
    bad, good = world.chat("bad"), world.chat("good")
    bad.send(MANAGER_PORT[case])
    bad.expect_error()
    good.allocate(1)


@pytest.mark.parametrize(
    "hello",
    [
        chat.frame(0x1000, b"token\0" b"10.0.0.1\0"),
        chat.frame(0x1000, b"token"),
        chat.frame(0x1000, b"\xff\0" b"10.0.0.1\0" + struct.pack("<ibi", 20000, EU, 4)),
        chat.frame(0x1000, b"t\0" b"10.0.0.1\0" + struct.pack("<ibix", 20000, EU, 4)),
    ],
    ids=["cut", "without NUL", "not UTF-8", "left over"],
)
def test_protocol_error_in_a_handshake(world, hello):
    peer = world.connect("server")
    peer.send(hello)
    peer.expect_error()


def test_what_came_before_the_bad_frame_counts(world):
    server = world.server(capacity=1)
    asker = world.chat()
    asker.allocate(7)
    server.send(chat.sv_match_ended(server.server_id, 7) + b"\x00\x00\x00\x00")
    server.expect_error()
    asker.expect_event(7, chat.ENDED)
    assert asker.refuse(7) == "Invalid match lobby ID"


def test_what_comes_after_the_bad_frame_does_not_count(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    server.send(heartbeat(cpu=NAN) + chat.sv_match_ended(server.server_id, 7))
    server.expect_error()
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


def whole_log(world, of):
    """The lines of that event. Muster is ended first: another thread writes its log."""
    assert world.muster.term() == 0
    return world.muster.log_lines(of)


def test_protocol_error_is_one_line_in_the_log(world):
    server = world.server()
    server.send(heartbeat(cpu=NAN))
    server.expect_error()
    (line,) = whole_log(world, "protocol error")
    assert line["peer"].startswith("127.0.0.1:")
    assert line["command"] == "SV_HEARTBEAT"


# --- well-formed frames that answer nothing


def test_acknowledgements_nobody_waits_for_are_harmless(world):
    server = world.server()
    server.send(
        chat.sv_cancel_match_ack(99)
        + chat.sv_cancel_match_ack(-1, success=0)
        + chat.sv_drain_ack(1)
        + chat.sv_player_left(server.server_id, 99, 1)
        + chat.pong()
    )
    assert server.beat().ok
    assert world.chat().allocate(7).server_id == server.server_id, "it does not drain either"


# --- honest bytes in odd pieces


def test_frames_split_byte_by_byte(world):
    world.server()
    asker = world.unregistered_chat()
    stream = chat.mgr_handshake("any", "chat-1", [EU]) + chat.mgr_server_allocation_request(
        7, 6, 0, EU, 10, 1500
    )
    for byte in stream:
        asker.send(bytes([byte]))
        world.net.pump(0.001)
    asker.answer("MGR_HANDSHAKE_RESPONSE")
    asker.placed(7)


def test_header_in_two_reads(world):
    asker = world.chat()
    frame = chat.mgr_allocation_cancel(7)
    asker.send(frame[:1])
    world.chat("other").round_trip()
    asker.send(frame[1:3])
    world.chat("third").round_trip()
    asker.send(frame[3:])
    asker.expect("MGR_ALLOCATION_CANCEL_RESPONSE")


def test_handshake_and_fifty_frames_in_one_write(world):
    world.server(capacity=100)
    asker = world.unregistered_chat()
    asker.send(
        chat.mgr_handshake("any", "chat-1", [EU])
        + b"".join(
            chat.mgr_server_allocation_request(lobby, 6, 0, EU, 10, 1500) for lobby in range(1, 51)
        )
    )
    asker.answer("MGR_HANDSHAKE_RESPONSE")
    for lobby in range(1, 51):
        asker.placed(lobby)


def test_truncated_last_frame_at_close_is_no_drama(world):
    server = world.server()
    asker = world.chat()
    server.send(chat.sv_heartbeat(server.server_id, 0, 1, 1)[:-3])
    server.close()
    asker.barrier()
    server.open()
    server.register()


def test_peer_that_closes_its_sending_half(world):
    asker = world.chat()
    asker.half_close()
    asker.expect_closed()


def test_largest_frame_is_accepted(world):
    """An unknown command with a full payload: skipped like a small one."""
    asker = world.chat()
    asker.send(chat.frame(0x7001, b"\xaa" * (chat.FRAME_MAX - 2)))
    asker.barrier()


# --- commands we do not know


def test_unknown_command_is_skipped_and_logged_once(world):
    server = world.server()
    for _ in range(3):
        server.send(chat.frame(0x7ABC, b"from the future"))
    assert server.beat().ok
    (line,) = whole_log(world, "unknown command; further ones are not logged")
    assert line["command"].lower().endswith("7abc")


def test_unknown_command_on_the_manager_port_is_skipped(world):
    asker = world.chat()
    asker.send(chat.frame(0x7ABC) + chat.frame(0x2009, b"x"))
    asker.barrier()


# --- heads that cost the HTTP server more memory than it gives a connection


@pytest.mark.parametrize("case", http_api.CROWDED)
def test_crowded_head_at_the_http_port(world, case):
    """Without a token. Each of these ended the process."""
    for n in http_api.CROWDED_NUMBERS:
        status = http_api.ask_crowded(world.muster.http_address, case, n)
        assert status in http_api.CROWDED[case][1], (n, status)
    assert world.muster.running
    assert world.api.ask("GET", "/readyz").status == 200
