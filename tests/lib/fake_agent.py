"""The agent's end of a game server's conversation, written by hand: a bound PAIR socket."""

import json
import time

import zmq

PATIENCE_S = 30.0


class FakeAgent:
    """room is a Room of the Python SDK in this process, which is run while the agent waits, woken
    only by what the SDK tells to wait for; None where the game server is a process of its own."""

    def __init__(self, folder, room=None):
        self.path = str(folder / "agent")
        self.context = zmq.Context()
        self.room = room
        self.bind()

    def bind(self):
        self.socket = self.context.socket(zmq.PAIR)
        self.socket.setsockopt(zmq.LINGER, 0)
        while True:
            try:
                self.socket.bind("ipc://" + self.path)
                return
            except zmq.ZMQError as e:  # the socket before this one is still being closed
                if e.errno != zmq.EADDRINUSE:
                    raise

    def die(self):
        self.socket.close()

    def close(self):
        self.socket.close()
        self.context.term()

    def run_room(self, until, deadline):
        """One wait of a game's loop; `until` is the agent's own socket, or None."""
        poller = zmq.Poller()
        if until:
            poller.register(until, zmq.POLLIN)
        wait_s = deadline - time.monotonic()
        assert wait_s > 0, "nothing came"
        if self.room:
            poller.register(self.room.fd, zmq.POLLIN)
            due = self.room.timeout()
            wait_s = wait_s if due is None else min(wait_s, due)
        poller.poll(1000 * wait_s)
        if self.room:
            self.room.poll()

    def hear_bytes(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            self.run_room(self.socket, deadline)
        return self.socket.recv()

    def hear(self, method=None):
        """The next message; with a method, it must be a call of that."""
        message = json.loads(self.hear_bytes())
        assert message["jsonrpc"] == "2.0"
        if method:
            assert message["method"] == method, message
            assert isinstance(message["params"], dict)
            assert isinstance(message["id"], int)
        return message

    def run_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.run_room(None, deadline)

    def say(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.socket.send(raw)

    def answer(self, call, result=None, **more):
        self.say({"jsonrpc": "2.0", "id": call["id"], "result": {} if result is None else result, **more})

    def refuse(self, call, code, text):
        self.say({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": text}})

    def admit(self, call, account):
        self.answer(call, {"access_token": "token of " + account, "account": account, "info": {"n": 1},
                           "scopes": ["game"]})

    def kick(self, key, reason):
        self.say({"jsonrpc": "2.0", "method": "kick", "params": {"key": key, "reason": reason}})

    def status(self):
        self.say({"jsonrpc": "2.0", "id": "status", "method": "status", "params": {}})
