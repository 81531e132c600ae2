"""Game servers, chat servers and players' clients as Muster sees them, all driven by one thread.

A Net holds the peers of one test. Whoever waits for something pumps every peer, so a game server
acknowledges, lists and heartbeats by its script while the test waits on a chat server. Nothing
here sleeps: every wait is for an event, with a deadline that is only met when something is wrong.
"""

import errno
import selectors
import socket
import time
from collections import deque

import chat

DEADLINE_S = 30.0
PAUSE_S = 0.5  # a pump that takes longer: the test itself was not run, and that counts as no more


class Late(AssertionError):
    """What a test waited for did not happen in time."""


class Net:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.peers = []
        self.violations = []  # what no peer may ever see; checked at the end of each test
        self.closing = []  # what else is to be closed with the net

    def pump(self, timeout_s):
        """Handles whatever the sockets have, waiting at most so long for the first of it."""
        due = [p.next_beat_s for p in self.peers if p.next_beat_s is not None]
        if due:
            timeout_s = min(timeout_s, max(0.0, min(due) - time.monotonic()))
        for key, events in self.selector.select(timeout_s):
            key.data.ready(events)
        for peer in list(self.peers):
            peer.beat_when_due()

    def wait(self, look, what, timeout_s=DEADLINE_S):
        """Pumps until look() gives something true, and returns that."""
        left, before = timeout_s, time.monotonic()
        while True:
            found = look()
            if found:
                return found
            now = time.monotonic()
            left, before = left - min(now - before, PAUSE_S), now
            if left <= 0:
                raise Late(f"no {what} within {timeout_s} s")
            self.pump(min(left, 0.25))

    def elapse(self, seconds):
        """Lets time pass where the passing of time is what is being tested."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.pump(left)

    def close(self):
        for peer in list(self.peers):
            peer.close()
        for close in self.closing:
            close()
        self.selector.close()


class Peer:
    """One TCP connection to one of Muster's ports, non-blocking, with an inbox of decoded messages."""

    def __init__(self, net, address, name="peer", receive_buffer=None, source=None):
        self.net = net
        self.address = address
        self.name = name
        self.answers_ping = True
        self.next_beat_s = None
        self.receive_buffer = receive_buffer
        self.source = source  # the address to connect from; None = as the system likes
        self.open()

    def __repr__(self):
        return self.name

    def open(self):
        self.inbox = deque()
        self.raw = []  # every frame received, as bytes
        self.pings = 0
        self.closed = False
        self.send_failed = False  # Muster has closed; what it said before may still be unread
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.socket = socket.socket()
        if self.receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(DEADLINE_S)
        if self.source:
            self.socket.bind((self.source, 0))
        self.socket.connect(self.address)
        self.socket.setblocking(False)
        self.interest = selectors.EVENT_READ
        self.net.selector.register(self.socket, self.interest, self)
        self.net.peers.append(self)

    # --- the socket

    def want(self, interest):
        if self.closed or interest == self.interest:
            return
        if self.interest:
            self.net.selector.unregister(self.socket)
        self.interest = interest
        if interest:
            self.net.selector.register(self.socket, interest, self)

    def stop_reading(self):
        self.want(self.interest & ~selectors.EVENT_READ)

    def resume_reading(self):
        self.want(self.interest | selectors.EVENT_READ)

    def ready(self, events):
        if events & selectors.EVENT_WRITE:
            self.flush()
        if events & selectors.EVENT_READ and not self.closed:
            self.read()

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError as e:
            if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT):
                raise
            data = b""
        if not data:
            self.lost()
            return
        self.incoming += data
        for code, payload, raw in chat.split(self.incoming):
            self.raw.append(raw)
            self.received(chat.decode(code, payload))
            if self.closed:
                return

    def send(self, data):
        self.outgoing += data
        self.flush()

    def flush(self):
        try:
            while self.outgoing and not self.closed:
                del self.outgoing[: self.socket.send(self.outgoing)]
        except BlockingIOError:
            pass
        except OSError as e:
            if e.errno not in (errno.ECONNRESET, errno.EPIPE):
                raise
            self.send_failed = True
            self.outgoing.clear()
        write = selectors.EVENT_WRITE if self.outgoing else 0
        self.want((self.interest & selectors.EVENT_READ) | write)

    def lost(self):
        """The other side has closed, or we have."""
        if self.closed:
            return
        self.want(0)
        self.closed = True
        self.next_beat_s = None
        self.socket.close()
        self.net.peers.remove(self)

    def close(self):
        self.lost()

    def half_close(self):
        """Sends FIN, goes on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    # --- messages

    def received(self, message):
        if message.name == "PING":
            self.pings += 1
            if self.answers_ping:
                self.send(chat.pong())
            return
        self.inbox.append(message)

    def beat_when_due(self):
        pass

    def find(self, name, **fields):
        """The first such message in the inbox, left there."""
        for message in self.inbox:
            if message.name == name and all(
                getattr(message, k, None) == v for k, v in fields.items()
            ):
                return message
        return None

    def take(self, name, **fields):
        message = self.find(name, **fields)
        if message:
            self.inbox.remove(message)
        return message

    def expect(self, name, timeout_s=DEADLINE_S, **fields):
        """Waits for such a message and takes it; the others stay in the inbox."""
        what = f"{name} {fields or ''} for {self}"

        def look():
            message = self.take(name, **fields)
            if not message and self.closed:
                raise Late(f"{self} was closed without {what}; it holds {list(self.inbox)}")
            return message

        try:
            return self.net.wait(look, what, timeout_s)
        except Late as late:
            raise Late(f"{late}; it holds {list(self.inbox)}") from None

    def expect_closed(self, timeout_s=DEADLINE_S):
        self.net.wait(lambda: self.closed, f"end of connection for {self}", timeout_s)

    def expect_error(self, reason=None, timeout_s=DEADLINE_S):
        """A protocol error: an ERROR frame with a reason, then the end of the connection."""
        message = self.expect("ERROR", timeout_s)
        assert message.message, "an ERROR frame without a reason"
        if reason is not None:
            assert reason in message.message
        self.expect_closed(timeout_s)
        return message.message

    def round_trip(self):
        """Everything sent before has been read by Muster."""
        self.send(chat.ping())
        self.expect("PONG")

    def answer(self, name, **fields):
        """Expects a yes."""
        message = self.expect(name, **fields)
        assert message.ok, f"{self} was refused: {message}"
        return message

    def refusal(self, name, **fields):
        """Expects a no, and returns its sentence."""
        message = self.expect(name, **fields)
        assert not message.ok, f"{self} was not refused: {message}"
        return message.error


class GameServer(Peer):
    """A game server with a script: what it does by itself when Muster speaks to it.

    on_allocate  "ack", "refuse", "silent", or "ready" (acknowledge, then say READY)
    lists        it knows SV_MATCH_LIST
    acks_cancel  it acknowledges SV_CANCEL_MATCH
    beat_every_s it heartbeats by itself that often; None = only when told
    count        the match count it reports; None = the truth
    """

    def __init__(self, net, address, ip, port, region, capacity, token="any", **script):
        self.ip, self.port, self.region, self.capacity = ip, port, region, capacity
        self.token = token
        self.server_id = None
        self.matches = {}  # lobby -> token of the matches it holds
        self.asked = []  # every SV_ALLOCATE_MATCH it ever got
        self.on_allocate = "ack"
        self.lists = True
        self.acks_cancel = True
        self.beat_every_s = None
        self.count = None
        self.cpu = 0.0
        self.memory = 0.0
        super().__init__(net, address, name=f"server {ip}:{port}")
        self.set(**script)

    def set(self, **script):
        for key, value in script.items():
            assert hasattr(self, key), f"a game server has no '{key}'"
            setattr(self, key, value)

    # --- starting

    def open(self):
        self.beats = deque()  # why each heartbeat that has no answer yet was sent
        super().open()

    def say_hello(self):
        self.send(chat.sv_handshake(self.token, self.ip, self.port, self.region, self.capacity))

    def register(self):
        """Handshake, match list, first heartbeat: after this Muster may place matches here."""
        self.say_hello()
        self.answer("SV_HANDSHAKE_RESPONSE")
        if self.lists:
            self.send_list()
        self.beat()
        return self

    def reconnect(self):
        """A new connection from the same address; the process kept its matches."""
        self.close()
        self.open()
        return self.register()

    # --- by itself

    def received(self, message):
        if message.name == "SV_HEARTBEAT_ACK" and self.beats.popleft() == "by itself" and message.ok:
            return
        super().received(message)
        if message.name == "SV_HANDSHAKE_RESPONSE" and message.ok:
            self.server_id = message.server_id
        elif message.name == "SV_ALLOCATE_MATCH":
            self.asked.append(message)
            self.take_on(message.lobby, message.match_token)
        elif message.name == "SV_CANCEL_MATCH":
            if self.matches.get(message.lobby) == message.match_token:
                del self.matches[message.lobby]
            if self.acks_cancel:
                self.send(chat.sv_cancel_match_ack(message.lobby))
        elif message.name == "SV_MATCH_LIST" and self.lists:
            self.send_list()
        elif message.name == "SV_DRAIN":
            self.send(chat.sv_drain_ack(message.on))

    def take_on(self, lobby, token):
        if self.on_allocate == "refuse":
            self.send(chat.sv_allocate_match_ack(0, lobby))
        elif self.on_allocate in ("ack", "ready"):
            self.hold(lobby, token)
            self.send(chat.sv_allocate_match_ack(1, lobby))
            if self.on_allocate == "ready":
                self.say_ready(lobby, token)

    def hold(self, lobby, token):
        held = self.matches.get(lobby)
        if held not in (None, token):
            self.net.violations.append(f"{self} got lobby {lobby} twice: {held}, {token}")
        self.matches[lobby] = token
        if len(self.matches) > self.capacity:
            self.net.violations.append(
                f"{self} holds {len(self.matches)} matches, its maximum is {self.capacity}"
            )

    def beat_when_due(self):
        if self.beat_every_s is None or self.server_id is None or self.closed:
            return
        now = time.monotonic()
        if self.next_beat_s is None or now >= self.next_beat_s:
            self.send_beat("by itself")
            self.next_beat_s = now + self.beat_every_s

    # --- when told

    def send_beat(self, why="told"):
        self.beats.append(why)
        count = len(self.matches) if self.count is None else self.count
        self.send(chat.sv_heartbeat(self.server_id, count, self.cpu, self.memory))

    def beat(self, **report):
        """Heartbeats and waits for the answer, so that Muster knows what was reported."""
        self.set(**report)
        self.send_beat()
        return self.answer("SV_HEARTBEAT_ACK")

    def send_list(self):
        self.send(chat.sv_match_list(self.server_id, list(self.matches)))

    def ack(self, lobby, success=1):
        self.send(chat.sv_allocate_match_ack(success, lobby))

    def accept(self, offer):
        """Takes the match it was offered, as "ack" would have done."""
        self.hold(offer.lobby, offer.match_token)
        self.ack(offer.lobby)

    def say_ready(self, lobby, token=None):
        self.send(chat.sv_ready_for_match(self.server_id, lobby, token or self.matches[lobby]))

    def ready_answer(self, lobby, token=None):
        self.say_ready(lobby, token)
        return self.expect("SV_READY_FOR_MATCH_RESPONSE", lobby=lobby)

    def validate(self, lobby, account, token=None):
        self.send(chat.sv_validate_token(lobby, account, token or self.matches[lobby]))
        return self.expect("SV_VALIDATE_TOKEN_RESPONSE", lobby=lobby, account=account)

    def end(self, lobby):
        """Tells Muster that a match is over and waits for the answer."""
        self.matches.pop(lobby, None)
        self.send(chat.sv_match_ended(self.server_id, lobby, 1, 600))
        return self.expect("SV_MATCH_ENDED_RESPONSE", lobby=lobby)

    def expect_offer(self, lobby, **options):
        return self.expect("SV_ALLOCATE_MATCH", lobby=lobby, **options)

    def expect_cancel(self, lobby, **options):
        return self.expect("SV_CANCEL_MATCH", lobby=lobby, **options)

    def barrier(self):
        """Every message decided for this server before now is in its inbox: the refusal of an
        impossible token leaves in order with all other effects."""
        impossible = chat.LOBBY_END - 1
        self.send(chat.sv_validate_token(impossible, 1, "no such token"))
        self.expect("SV_VALIDATE_TOKEN_RESPONSE", lobby=impossible)

    def was_asked(self, lobby):
        return any(offer.lobby == lobby for offer in self.asked)


class ChatServer(Peer):
    def __init__(self, net, address, chat_id, regions, token="any", **options):
        self.chat_id = chat_id
        self.regions = list(regions)
        self.token = token
        super().__init__(net, address, name=f"chat {chat_id}", **options)

    def say_hello(self):
        self.send(chat.mgr_handshake(self.token, self.chat_id, self.regions))

    def register(self):
        self.say_hello()
        self.hello = self.answer("MGR_HANDSHAKE_RESPONSE")
        return self

    def reconnect(self):
        self.close()
        self.open()
        return self.register()

    def request(self, lobby, region=chat.EU, game_type=6, game_mode=0, players=10, rating=1650):
        self.send(
            chat.mgr_server_allocation_request(lobby, game_type, game_mode, region, players, rating)
        )

    def reply(self, lobby, **options):
        return self.expect("MGR_SERVER_ALLOCATION_RESPONSE", lobby=lobby, **options)

    def placed(self, lobby, **options):
        """Waits for the answer to a request, which must be a yes."""
        return self.answer("MGR_SERVER_ALLOCATION_RESPONSE", lobby=lobby, **options)

    def refused(self, lobby, **options):
        """Waits for the answer to a request, which must be a no; returns its sentence."""
        return self.refusal("MGR_SERVER_ALLOCATION_RESPONSE", lobby=lobby, **options)

    def allocate(self, lobby, **request):
        self.request(lobby, **request)
        return self.placed(lobby)

    def refuse(self, lobby, **request):
        self.request(lobby, **request)
        return self.refused(lobby)

    def send_cancel(self, lobby):
        self.send(chat.mgr_allocation_cancel(lobby))

    def cancel(self, lobby):
        self.send_cancel(lobby)
        return self.expect("MGR_ALLOCATION_CANCEL_RESPONSE", lobby=lobby)

    def expect_event(self, lobby, kind, **options):
        return self.expect("MGR_MATCH_EVENT", lobby=lobby, kind=kind, **options)

    def barrier(self):
        """As GameServer.barrier, with the cancelling of a lobby nobody has."""
        unknown = chat.LOBBY_END - 1
        assert self.cancel(unknown).error == "Match not found"


class Client(Peer):
    """A player's game client."""

    def __init__(self, net, address, account, token, **options):
        self.account = account
        self.token = token
        super().__init__(net, address, name=f"player {account}", **options)

    def say_hello(self):
        self.send(chat.cl_connect(self.account, self.token))

    def register(self):
        self.say_hello()
        self.hello = self.answer("CL_CONNECT_RESPONSE")
        return self

    def reconnect(self):
        self.close()
        self.open()
        return self.register()

    def say_loaded(self, lobby, loaded=1):
        self.send(chat.cl_player_loading_status(lobby, self.account, loaded))

    def created(self, **fields):
        return self.expect("CL_MATCH_LOBBY_CREATED", **fields)

    def started(self, **fields):
        return self.expect("CL_MATCH_START", **fields)

    def aborted(self, **fields):
        return self.expect("CL_MATCH_ABORTED", **fields)
