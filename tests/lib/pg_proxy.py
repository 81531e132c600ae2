"""A proxy between a node and PostgreSQL that reads along, so that it can cut a connection at the one
moment where nobody knows what became of a commit. It runs on a thread of its own.

A commit is a prepared statement whose text has COMMIT_SQL in it; its answer ends with
ReadyForQuery. `plan` says what happens to the next one:

    before     it does not reach PostgreSQL                             not done
    inside     half of it does                                          not done
    answered   it does; the answer does not come back                   done
    half       … half of the answer does                                done
    silent     … the answer never comes back, and nothing else does     done, and nobody hears

All but the last cut the connection, in half of the cases with a reset."""

import itertools
import random
import selectors
import socket
import struct
import threading
import time

COMMIT_SQL = b"INSERT INTO journal"
CUTS = ("before", "inside", "answered", "half")
FAULTS = (*CUTS, "silent")
STARTUP = 196608  # protocol 3.0; the other untyped messages ask for encryption or cancel
UP, DOWN = "up", "down"  # towards PostgreSQL, towards the node
CONNECT_S = 5.0


class Fault:
    """One that was planned; it has happened when `done` is set."""

    def __init__(self, how):
        assert how in FAULTS, how
        self.how = how
        self.done = threading.Event()
        self.at = None  # when it happened, by CLOCK_BOOTTIME


class PgProxy:
    """target: (host, port) of PostgreSQL. Use it in a with block."""

    def __init__(self, target, seed=1):
        self.target = target
        self.random = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.links = []
        self.planned = []  # faults, in their order
        self.swallowed = set()  # directions whose bytes vanish
        self.stalled = False  # bytes wait, and are delivered later
        self.refusing = False
        self.commits = 0  # that PostgreSQL has answered
        self.happened = []  # how, of each fault
        self.cut_after = None  # (direction, bytes that still pass)
        self.calls = []  # of other threads, for this one
        self.lock = threading.Lock()
        self.waker, self.woken = socket.socketpair()
        self.ended = False
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.selector.register(self.woken, selectors.EVENT_READ, self.wake)
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.do(self.finish)
        self.thread.join(10)
        assert self.failure is None or kind is not None, self.failure

    # --- what a test says

    def do(self, call):
        """Runs that on the proxy's thread and waits for it."""
        done = threading.Event()
        with self.lock:
            self.calls.append((call, done))
        self.waker.send(b"x")
        assert done.wait(10), self.failure

    def plan(self, how):
        fault = Fault(how)
        self.do(lambda: self.planned.append(fault))
        return fault

    def cut(self):
        """Every connection, now."""
        self.do(lambda: [link.cut() for link in list(self.links)])

    def cut_at(self, direction, count):
        """Whichever connection carries the byte after so many from now."""
        self.do(lambda: setattr(self, "cut_after", [direction, count]))

    def swallow(self, *directions):
        """From now on; none = everything passes again, but what was swallowed is gone."""
        self.do(lambda: setattr(self, "swallowed", set(directions)))

    def stall(self, on):
        def change():
            self.stalled = on
            if not on:
                for link in list(self.links):
                    link.pass_on_late()
        self.do(change)

    def refuse(self, on):
        """New connections are closed at once."""
        self.do(lambda: setattr(self, "refusing", on))

    # --- the thread

    def run(self):
        try:
            while not self.ended:
                for key, _ in self.selector.select(1.0):
                    key.data()
        except BaseException as e:  # noqa: BLE001
            self.failure = repr(e)
            raise

    def wake(self):
        self.woken.recv(4096)
        with self.lock:
            calls, self.calls = self.calls, []
        for call, done in calls:
            call()
            done.set()

    def finish(self):
        for link in list(self.links):
            link.cut()
        self.listener.close()
        self.ended = True

    def accept(self):
        inner, _ = self.listener.accept()
        if self.refusing:
            inner.close()
            return
        try:
            outer = socket.create_connection(self.target, CONNECT_S)
        except OSError:
            inner.close()
            return
        self.links.append(Link(self, inner, outer))


class Reader:
    """Splits one direction into messages. untyped: so far they have no type byte."""

    def __init__(self, untyped):
        self.untyped = untyped
        self.kept = bytearray()

    def take(self):
        """The next whole message as (type, payload, raw), or None."""
        head = 0 if self.untyped else 1
        if len(self.kept) < head + 4:
            return None
        size = head + struct.unpack_from(">I", self.kept, head)[0]
        if len(self.kept) < size:
            return None
        raw = bytes(self.kept[:size])
        del self.kept[:size]
        return raw[:head], raw[head + 4:], raw


class Link:
    """One connection of the node's. Sent as it comes, message by message."""

    numbers = itertools.count(1)

    def __init__(self, proxy, inner, outer):
        self.proxy, self.inner, self.outer = proxy, inner, outer
        self.number = next(Link.numbers)
        self.up = Reader(untyped=True)
        self.down = Reader(untyped=False)
        self.plain_answers = 0  # single bytes that PostgreSQL owes: no to encryption
        self.commit_names = set()
        self.syncs = []  # of each ReadyForQuery to come: was a commit before it?
        self.commit_open = False  # a commit was bound since the last Sync
        self.fault = None  # that waits for the answer to a commit …
        self.answer = bytearray()  # … of which there is so much
        self.mute = False
        self.late = []  # (socket, data), while stalled
        for side in (inner, outer):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        proxy.selector.register(inner, selectors.EVENT_READ, self.from_node)
        proxy.selector.register(outer, selectors.EVENT_READ, self.from_postgres)

    def receive(self, side):
        try:
            data = side.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self.cut(gently=True)
        return data

    def pass_on(self, direction, data):
        p = self.proxy
        if self.mute or direction in p.swallowed or not self.open:
            return
        if p.cut_after and p.cut_after[0] == direction:
            data, rest = data[: p.cut_after[1]], data[p.cut_after[1]:]
            p.cut_after[1] -= len(data)
            if rest:
                p.cut_after = None
                self.write(direction, data)
                p.happened.append("bytes")
                self.cut()
                return
        self.write(direction, data)

    def write(self, direction, data):
        if self.proxy.stalled or self.late:
            self.late.append((direction, data))
            return
        try:
            (self.outer if direction == UP else self.inner).sendall(data)
        except OSError:
            self.cut()

    def pass_on_late(self):
        late, self.late = self.late, []
        for direction, data in late:
            if self.open:
                self.write(direction, data)

    @property
    def open(self):
        return self.inner.fileno() >= 0

    def cut(self, gently=False):
        if not self.open:
            return
        reset = not gently and self.proxy.random.random() < 0.5
        for side in (self.inner, self.outer):
            self.proxy.selector.unregister(side)
            if reset:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            side.close()
        self.proxy.links.remove(self)

    # --- towards PostgreSQL

    def from_node(self):
        self.up.kept += self.receive(self.inner)
        while self.open and (message := self.up.take()):
            kind, payload, raw = message
            if self.up.untyped:
                self.hear_untyped(payload)
            elif self.hear(kind, payload, raw):
                continue
            self.pass_on(UP, raw)

    def hear_untyped(self, payload):
        code = struct.unpack_from(">I", payload)[0]
        if code == STARTUP:
            self.up.untyped = False
        else:
            self.plain_answers += 1

    def hear(self, kind, payload, raw):
        """True: nothing is left to pass on."""
        if kind == b"P":
            name, sql, _ = payload.split(b"\0", 2)
            if COMMIT_SQL in sql:
                self.commit_names.add(name)
        elif kind == b"B":
            _, name, _ = payload.split(b"\0", 2)
            if name in self.commit_names:
                return self.begin_commit(raw)
        elif kind in (b"S", b"Q"):
            self.syncs.append(self.commit_open)
            self.commit_open = False
        return False

    def begin_commit(self, raw):
        self.commit_open = True
        if self.fault or not self.proxy.planned:
            return False
        self.fault = self.proxy.planned.pop(0)
        if self.fault.how == "inside":
            self.pass_on(UP, raw[: len(raw) // 2])
        if self.fault.how in ("before", "inside"):
            self.happens()
            return True
        return False

    # --- towards the node

    def from_postgres(self):
        self.down.kept += self.receive(self.outer)
        while self.open and self.plain_answers and self.down.kept:
            self.plain_answers -= 1
            self.pass_on(DOWN, bytes(self.down.kept[:1]))
            del self.down.kept[:1]
        while self.open and (message := self.down.take()):
            kind, _, raw = message
            ready = kind == b"Z"
            if self.fault and self.syncs and self.syncs[0]:
                self.answer += raw
                if ready:  # before that it is not committed
                    self.keep_answer()
                continue
            if ready and self.syncs and self.syncs.pop(0):
                self.proxy.commits += 1
            self.pass_on(DOWN, raw)

    def keep_answer(self):
        if self.fault.how == "half":
            self.pass_on(DOWN, bytes(self.answer[: len(self.answer) // 2]))
        self.happens()

    def happens(self):
        fault, self.fault = self.fault, None
        self.proxy.happened.append(fault.how)
        fault.at = time.clock_gettime(time.CLOCK_BOOTTIME)
        if fault.how == "silent":
            self.mute = True
        else:
            self.cut()
        fault.done.set()
