"""The chat protocol in Python, written by hand from docs/protocol.md and never from
src/wire/chat.def, so that the two can disagree and a test notices.

Functions named after a message make its bytes (the direction peer -> Muster); decode() takes the
bytes of the other direction apart and is strict: a byte too many or too few is an error."""

import struct
from types import SimpleNamespace

USE, USW, EU, SG, MY, PH, TH, ID, VN, RU, KR, AU, LAT, DX, CN, BR, TR = range(17)
AUTO = 17

READY, LOST, ENDED, BACK = range(4)  # kinds of MGR_MATCH_EVENT

FRAME_MAX = 16384
LOBBY_END = 1 << 30  # lobby ids of chat servers are below this


class WrongBytes(Exception):
    """Muster sent something the protocol does not allow."""


class Message(SimpleNamespace):
    """One decoded message: .name and its fields."""


# --- making bytes


def frame(code, payload=b""):
    return struct.pack("<HH", len(payload) + 2, code) + payload


def text(value):
    return (value if isinstance(value, bytes) else value.encode()) + b"\0"


def ping():
    return frame(0x2A00)


def pong():
    return frame(0x2A01)


def sv_handshake(token, ip, port, region, max_matches):
    return frame(0x1000, text(token) + text(ip) + struct.pack("<ibi", port, region, max_matches))


def sv_heartbeat(server_id, count, cpu, memory):
    return frame(0x1002, struct.pack("<iiff", server_id, count, cpu, memory))


def sv_allocate_match_ack(success, lobby):
    return frame(0x1005, struct.pack("<bi", success, lobby))


def sv_ready_for_match(server_id, lobby, token):
    return frame(0x1006, struct.pack("<ii", server_id, lobby) + text(token))


def sv_cancel_match_ack(lobby, success=1):
    return frame(0x1009, struct.pack("<bi", success, lobby))


def sv_validate_token(lobby, account, token):
    return frame(0x100A, struct.pack("<ii", lobby, account) + text(token))


def sv_match_ended(server_id, lobby, winning_team=0, duration_s=0):
    return frame(0x100C, struct.pack("<iibi", server_id, lobby, winning_team, duration_s))


def sv_player_left(server_id, lobby, account):
    return frame(0x100E, struct.pack("<iii", server_id, lobby, account))


def sv_drain(on):
    return frame(0x100F, struct.pack("<b", on))


def sv_drain_ack(on):
    return frame(0x1010, struct.pack("<b", on))


def sv_match_list(server_id, lobbies):
    return frame(
        0x1011, struct.pack(f"<iB{len(lobbies)}i", server_id, len(lobbies), *lobbies)
    )


def mgr_handshake(token, chat_server_id, regions):
    return frame(
        0x2000,
        text(token) + text(chat_server_id) + struct.pack(f"<B{len(regions)}b", len(regions), *regions),
    )


def mgr_server_allocation_request(lobby, game_type, game_mode, region, players, rating):
    return frame(0x2002, struct.pack("<ibbbbi", lobby, game_type, game_mode, region, players, rating))


def mgr_heartbeat():
    return frame(0x2004)


def mgr_allocation_cancel(lobby):
    return frame(0x2006, struct.pack("<i", lobby))


def cl_connect(account, access_token):
    return frame(0x0600, struct.pack("<i", account) + text(access_token))


def cl_player_loading_status(lobby, account, loaded):
    return frame(0x0603, struct.pack("<iib", lobby, account, loaded))


# --- taking bytes apart


class Reader:
    def __init__(self, payload):
        self.payload = payload
        self.at = 0

    def take(self, layout):
        size = struct.calcsize("<" + layout)
        if self.at + size > len(self.payload):
            raise WrongBytes("payload too short")
        (value,) = struct.unpack_from("<" + layout, self.payload, self.at)
        self.at += size
        return value

    def i8(self):
        return self.take("b")

    def i32(self):
        return self.take("i")

    def i64(self):
        return self.take("q")

    def text(self):
        end = self.payload.find(b"\0", self.at)
        if end < 0:
            raise WrongBytes("string without its NUL")
        value = self.payload[self.at : end].decode("utf-8")
        self.at = end + 1
        return value

    def flag(self):
        value = self.i8()
        if value not in (0, 1):
            raise WrongBytes(f"flag is {value}")
        return value

    def end(self):
        if self.at != len(self.payload):
            raise WrongBytes(f"{len(self.payload) - self.at} bytes left over")


def _nothing(r):
    return {}


def _error(r):
    return {"message": r.text()}


def _sv_handshake_response(r):
    if r.flag():
        return {"ok": 1, "server_id": r.i32(), "time_ms": r.i64()}
    return {"ok": 0, "error": r.text()}


def _sv_heartbeat_ack(r):
    if r.flag():
        return {"ok": 1, "server_time_ms": r.i64()}
    return {"ok": 0, "error": r.text()}


def _sv_allocate_match(r):
    return {"lobby": r.i32(), "game_type": r.i8(), "game_mode": r.i8(), "match_token": r.text()}


def _lobby_response(r):
    if r.flag():
        return {"ok": 1, "lobby": r.i32()}
    return {"ok": 0, "lobby": r.i32(), "error": r.text()}


def _sv_cancel_match(r):
    return {"lobby": r.i32(), "match_token": r.text()}


def _sv_validate_token_response(r):
    if r.flag():
        return {"ok": 1, "lobby": r.i32(), "account": r.i32()}
    return {"ok": 0, "lobby": r.i32(), "account": r.i32(), "error": r.text()}


def _on(r):
    return {"on": r.flag()}


def _sv_kick_player(r):
    return {"lobby": r.i32(), "account": r.i32(), "reason": r.text()}


def _server_entry(r):
    return Message(
        server_id=r.i32(), ip=r.text(), port=r.i32(), region=r.i8(), max_matches=r.i32()
    )


def _mgr_handshake_response(r):
    if r.flag():
        return {"ok": 1, "time_ms": r.i64(), "servers": [_server_entry(r) for _ in range(r.i32())]}
    return {"ok": 0, "error": r.text()}


def _mgr_server_allocation_response(r):
    if r.flag():
        return {
            "ok": 1,
            "lobby": r.i32(),
            "server_id": r.i32(),
            "ip": r.text(),
            "port": r.i32(),
            "match_token": r.text(),
            "allocation_time_ms": r.i64(),
        }
    return {"ok": 0, "lobby": r.i32(), "error": r.text()}


def _mgr_heartbeat_ack(r):
    return {"time_ms": r.i64()}


def _mgr_match_event(r):
    return {"lobby": r.i32(), "kind": r.i8(), "reason": r.text()}


def _cl_connect_response(r):
    if r.flag():
        return {"ok": 1, "time_ms": r.i64()}
    return {"ok": 0, "error": r.text()}


def _team(r):
    return [Message(account=r.i32(), name=r.text(), slot=r.i8()) for _ in range(r.i8())]


def _card(r):
    return {"game_type": r.i8(), "game_mode": r.i8(), "map": r.text(),
            "team1": _team(r), "team2": _team(r)}


def _cl_match_lobby_created(r):
    return {"lobby": r.i32(), **_card(r)}


def _cl_player_loading_status(r):
    return {"lobby": r.i32(), "account": r.i32(), "loaded": r.flag()}


def _cl_match_start(r):
    return {"lobby": r.i32(), "ip": r.text(), "port": r.i32(), "match_token": r.text(),
            **_card(r)}


def _cl_match_aborted(r):
    return {"lobby": r.i32(), "reason": r.text(), "requeued": r.flag()}


FROM_MUSTER = {
    0x0601: ("CL_CONNECT_RESPONSE", _cl_connect_response),
    0x0602: ("CL_MATCH_LOBBY_CREATED", _cl_match_lobby_created),
    0x0603: ("CL_PLAYER_LOADING_STATUS", _cl_player_loading_status),
    0x0604: ("CL_MATCH_START", _cl_match_start),
    0x0605: ("CL_MATCH_ABORTED", _cl_match_aborted),
    0x2A00: ("PING", _nothing),
    0x2A01: ("PONG", _nothing),
    0x2AFF: ("ERROR", _error),
    0x1001: ("SV_HANDSHAKE_RESPONSE", _sv_handshake_response),
    0x1003: ("SV_HEARTBEAT_ACK", _sv_heartbeat_ack),
    0x1004: ("SV_ALLOCATE_MATCH", _sv_allocate_match),
    0x1007: ("SV_READY_FOR_MATCH_RESPONSE", _lobby_response),
    0x1008: ("SV_CANCEL_MATCH", _sv_cancel_match),
    0x100B: ("SV_VALIDATE_TOKEN_RESPONSE", _sv_validate_token_response),
    0x100D: ("SV_MATCH_ENDED_RESPONSE", _lobby_response),
    0x100F: ("SV_DRAIN", _on),
    0x1010: ("SV_DRAIN_ACK", _on),
    0x1011: ("SV_MATCH_LIST", _nothing),
    0x1012: ("SV_KICK_PLAYER", _sv_kick_player),
    0x2001: ("MGR_HANDSHAKE_RESPONSE", _mgr_handshake_response),
    0x2003: ("MGR_SERVER_ALLOCATION_RESPONSE", _mgr_server_allocation_response),
    0x2005: ("MGR_HEARTBEAT_ACK", _mgr_heartbeat_ack),
    0x2007: ("MGR_ALLOCATION_CANCEL_RESPONSE", _lobby_response),
    0x2008: ("MGR_MATCH_EVENT", _mgr_match_event),
}


def decode(code, payload):
    if code not in FROM_MUSTER:
        raise WrongBytes(f"command {code:04X} is not one Muster sends")
    name, layout = FROM_MUSTER[code]
    reader = Reader(payload)
    try:
        fields = layout(reader)
        reader.end()
    except (WrongBytes, UnicodeDecodeError) as e:
        raise WrongBytes(f"{name}: {e}: {payload.hex(' ')}") from None
    return Message(name=name, **fields)


def split(buffer):
    """Takes the whole frames off the front of a bytearray: yields (code, payload, raw bytes)."""
    while len(buffer) >= 4:
        length, code = struct.unpack_from("<HH", buffer)
        if length < 2 or length > FRAME_MAX:
            raise WrongBytes(f"frame of length {length}")
        if len(buffer) < 2 + length:
            return
        raw = bytes(buffer[: 2 + length])
        del buffer[: 2 + length]
        yield code, raw[4:], raw
