"""Muster's room side: what a game server that was started by a Muster agent uses to say that it is
ready, to let players in and to report who left. One file on pyzmq, no threads.

    room = Room(on_kick=lambda key, reason: drop(key))
    room.ready()
    while not room.refused:
        room.poll(1.0)

A loop of its own waits until room.fd is readable or room.timeout() seconds have passed, and calls
room.poll(). Calls return at once and are sent by the next poll, which also calls their `reply`. An
agent that is away is ordinary: calls wait, and are said again when not answered within 10 s."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

import zmq

MAX_MESSAGE, MAX_CALLS, MAX_CALL_BYTES = 64 * 1024, 1024, 1024 * 1024  # calls: that wait, together
MALFORMED, BUSY = -1, 503  # codes: an answer was not understood; the agent can take no more calls
QUEUED = 64  # messages libzmq holds either way; the rest waits here
MESSAGES_A_POLL = 256  # so that the agent cannot starve the game's loop


class RoomError(Exception):
    """The room could not be made, or a call could not be taken."""


@dataclass(frozen=True)
class Answer:
    """How a call ended. The last four are of a yes to joined."""
    code: int = 0  # 0 = yes; else the agent's error code, such as 404, 410 or -32602
    text: str = ""  # ... and its sentence
    account: str = ""
    access_token: str = ""
    scopes: Sequence[str] = ()
    info: Any = None


Reply = Callable[[Answer], None]
Call = Tuple[str, bytes, Optional[Reply]]  # method and message


def _loads(text: bytes) -> Any:
    """None for whatever is not JSON in UTF-8, or too deep for Python."""
    try:  # int refuses NaN and Infinity, which Python alone would take
        return json.loads(text.decode(), parse_constant=int)
    except (ValueError, RecursionError):
        return None


def _variable(env: Mapping[str, str], name: str, kind: type, without: str) -> Any:
    value = _loads(os.fsencode(env.get(name) or without))
    if type(value) is not kind:
        raise RoomError(f"the environment's {name} is not a JSON {kind.__name__}")
    return value


def _answer(method: str, message: dict[str, Any]) -> Answer:
    malformed = Answer(MALFORMED, "the agent's answer is malformed")
    error, result = message.get("error"), message.get("result")
    if error is not None:
        told = error if isinstance(error, dict) else {}
        code, text = told.get("code"), told.get("message")
        return Answer(code, text) if type(code) is int and code and type(text) is str else malformed
    if method != "joined":
        return Answer() if "result" in message else malformed
    told = result if isinstance(result, dict) else {}
    token, scopes, account = told.get("access_token"), told.get("scopes", []), told.get("account", "")
    if type(token) is not str or type(scopes) is not list or not all(type(s) is str for s in scopes):
        return malformed
    return Answer(0, "", str(account), token, scopes, told.get("info"))


class Room:
    """The room this process was started for; used from one thread."""
    def __init__(self, argv: Optional[Sequence[str]] = None, env: Optional[Mapping[str, str]] = None,
                 on_kick: Optional[Callable[[str, str], None]] = None, repeat_s: float = 10.0) -> None:
        argv, env = sys.argv if argv is None else argv, os.environ if env is None else env
        if len(argv) < 3 or not re.fullmatch(r"[0-9]{1,5}(,[0-9]{1,5})*", argv[2]):
            raise RoomError("not <binary> <endpoint> <ports> ...: an agent starts this program")
        self.endpoint = argv[1] if "://" in argv[1] else "ipc://" + argv[1]
        self.ports = [int(port) for port in argv[2].split(",")]
        self.room_id = env.get("room_id", "")
        self.max_players: int = _variable(env, "game_max_players", int, "0")  # 0 = not said
        self.room_settings: dict[str, Any] = _variable(env, "room_settings", dict, "{}")
        self.server_settings: dict[str, Any] = _variable(env, "server_settings", dict, "{}")
        self.discovery_services: dict[str, Any] = _variable(env, "discovery_services", dict, "{}")
        self.login_access_token = env.get("login_access_token", "")
        self.on_kick = on_kick
        self.ok = True  # set it to False when the game is beyond help: the agent ends the process
        self.refused = False  # ready was answered with an error: the process should exit
        self._repeat_s = repeat_s
        self._unsent: dict[int, Call] = {}  # by id, in the order they are to be sent
        self._sent: dict[int, Call] = {}  # ... in the order they are due again
        self._due: dict[int, float] = {}  # when
        self._bytes = self._last_id = 0
        self._more = True  # there is something to do that fd does not tell
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PAIR)
        for option, value in ((zmq.LINGER, 200), (zmq.SNDHWM, QUEUED), (zmq.RCVHWM, QUEUED),
                              (zmq.RECONNECT_IVL_MAX, 1000), (zmq.MAXMSGSIZE, MAX_MESSAGE)):
            self._socket.setsockopt(option, value)
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as e:
            self.close()
            raise RoomError(f"cannot connect to {self.endpoint}: {e}") from e
        self.fd: int = self._socket.getsockopt(zmq.FD)  # readable: call poll; see timeout()

    def close(self) -> None:
        """Gives what was sent 200 ms to reach the agent."""
        self._socket.close()
        self._context.term()

    def ready(self, settings: Optional[dict] = None, reply: Optional[Reply] = None) -> None:
        """Players may come. settings are merged into the room's. A refusal sets `refused`."""
        self._call("inited", {} if settings is None else {"settings": settings}, reply)

    def joined(self, key: str, reply: Reply, extend_token: str = "", extend_scopes: str = "") -> None:
        """A player showed this key. A yes says who he is and makes the seat his until left."""
        extend = {"extend_token": extend_token, "extend_scopes": extend_scopes}
        self._call("joined", {"key": key, **(extend if any(extend.values()) else {})}, reply)

    def left(self, key: str, reply: Optional[Reply] = None) -> None:
        """He is gone; the seat may be given to another. Right to say again."""
        self._call("left", {"key": key}, reply)

    def update_settings(self, settings: dict, reply: Optional[Reply] = None) -> None:
        """Replaces the room's settings."""
        self._call("update_settings", {"settings": settings}, reply)

    def check_deployment(self, reply: Reply) -> None:
        """404: this version was turned off; 410: a newer deployment is there. Exit when empty."""
        self._call("check_deployment", {}, reply)

    def waiting(self) -> int:
        """Calls that are not answered yet."""
        return len(self._unsent) + len(self._sent)

    def timeout(self) -> Optional[float]:
        """Seconds after which poll has something to do anyway; None = never. libzmq's descriptor
        tells what happened since the last poll and nothing else, so ask before each wait for it."""
        if self._more or not self._sent:
            return 0.0 if self._more else None
        return max(0.0, self._due[next(iter(self._sent))] - time.monotonic())

    def poll(self, timeout_s: float = 0.0) -> None:
        """Does what can be done now. If that was nothing, waits so long for something and does it."""
        until = time.monotonic() + timeout_s
        while not self._work():
            left, due = until - time.monotonic(), self.timeout()
            if left <= 0:
                return
            wanted = zmq.POLLIN | (zmq.POLLOUT if self._unsent else 0)
            self._socket.poll(1000 * (left if due is None else min(left, due)), wanted)

    def _work(self) -> bool:
        done, self._more = 0, True
        while self._more and done < MESSAGES_A_POLL:
            while done < MESSAGES_A_POLL and self._socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
                done += 1
                self._take(self._socket.recv())
            done += self._send_calls()
            # Last, since each call of libzmq may take the news that fd would have told.
            events = self._socket.getsockopt(zmq.EVENTS)
            self._more = bool(events & zmq.POLLIN or (events & zmq.POLLOUT and self._unsent))
        return done > 0

    def _send(self, message: bytes) -> bool:
        try:
            self._socket.send(message, zmq.DONTWAIT)
            return True
        except zmq.Again:
            return False

    def _call(self, method: str, params: dict[str, Any], reply: Optional[Reply]) -> None:
        request = {"jsonrpc": "2.0", "id": self._last_id + 1, "method": method, "params": params}
        try:
            message = json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as e:
            raise RoomError(f"this cannot be said in JSON: {e}") from e
        if any(value in ("", None) for value in params.values()) or len(message) > MAX_MESSAGE:
            raise RoomError("a text is missing, or the message would be too large")
        if self.waiting() >= MAX_CALLS or self._bytes + len(message) > MAX_CALL_BYTES:
            raise RoomError("too many calls wait for an answer")
        self._last_id += 1
        self._bytes += len(message)
        self._unsent[self._last_id] = (method, message, reply)
        self._more = True

    def _send_calls(self) -> int:
        now, n = time.monotonic(), 0
        while self._sent and self._due[first := next(iter(self._sent))] <= now:
            self._unsent[first] = self._sent.pop(first)
        while self._unsent and self._send(self._unsent[first := next(iter(self._unsent))][1]):
            self._sent[first] = self._unsent.pop(first)
            self._due[first] = now + self._repeat_s
            n += 1
        return n

    def _take(self, raw: bytes) -> None:
        message = _loads(raw)
        if isinstance(message, dict) and "method" not in message:
            return self._take_answer(message)
        bad = {"code": -32700 if message is None else -32600, "message": "not a JSON object"}
        answer = self._take_call(message) if isinstance(message, dict) else {"error": bad}
        asked = message if isinstance(message, dict) else {"id": None}
        if "id" in asked:  # else it is a notification
            known = type(asked["id"]) in (int, float, str) and len(str(asked["id"])) <= 64
            reply = {"jsonrpc": "2.0", "id": asked["id"] if known else None, **answer}
            self._send(json.dumps(reply).encode())

    def _take_call(self, message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params")
        if message.get("jsonrpc") != "2.0" or type(method) is not str:
            return {"error": {"code": -32600, "message": "not a JSON-RPC 2.0 call"}}
        if method == "status":
            return {"result": {"status": "ok" if self.ok else "not ok"}}
        if method != "kick":
            return {"error": {"code": -32601, "message": "a room answers status and kick"}}
        params = params if isinstance(params, dict) else {}
        key, reason = params.get("key"), params.get("reason", "")
        if type(key) is not str or type(reason) is not str:
            return {"error": {"code": -32602, "message": "kick wants a key and may have a reason"}}
        if self.on_kick:
            self.on_kick(key, reason)
        return {"result": {}}

    def _take_answer(self, message: dict[str, Any]) -> None:
        call_id = message["id"] if type(message.get("id")) is int else 0
        call = self._sent.pop(call_id, None) or self._unsent.pop(call_id, None)
        if call is None:  # the second answer to a call that was repeated
            return
        method, said, reply = call
        answer = _answer(method, message)
        if answer.code == BUSY and method in ("inited", "left"):  # or a seat would be lost
            self._sent[call_id], self._due[call_id] = call, time.monotonic() + self._repeat_s
            return
        self._due.pop(call_id, None)
        self._bytes -= len(said)
        self.refused = self.refused or (method == "inited" and answer.code != 0)
        if reply:
            reply(answer)
