"""Many HTTP clients that do nothing, or everything slowly, while matches are being allocated."""

import resource
import http.client
import selectors
import socket
import time

import pytest
from http_api import admin_token

IDLE = 2000
SLOW = 500
MATCHES = 300


@pytest.fixture
def world(make_world):
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * (IDLE + SLOW):
        pytest.skip(f"only {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield make_world(http={"connections": 4000, "connections_per_address": 4000})
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def connect(address):
    s = socket.create_connection(address, timeout=10)
    s.setblocking(False)
    return s


class Crowd:
    """Sockets that are only looked at when they are written to or closed."""

    def __init__(self, address):
        self.address = address
        self.sockets = []

    def grow(self, n, say):
        for i in range(n):
            s = connect(self.address)
            data = say(i)
            if data:
                s.send(data)
            self.sockets.append(s)

    def drip(self, byte):
        """One more byte from each that is still connected."""
        for s in self.sockets:
            try:
                s.send(byte)
            except (BrokenPipeError, ConnectionResetError):
                pass

    def closed(self):
        """How many Muster has hung up on."""
        n = 0
        for s in self.sockets:
            try:
                n += s.recv(65536) == b""
            except BlockingIOError:
                pass
            except ConnectionResetError:
                n += 1
        return n

    def close(self):
        for s in self.sockets:
            s.close()


def allocate_many(world, asker, first):
    """p99 of allocations one after the other, in ms."""
    took = []
    for lobby in range(first, first + MATCHES):
        began = time.perf_counter()
        asker.allocate(lobby)
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[MATCHES * 99 // 100]


def test_idle_and_slow_clients_hold_up_nobody(world):
    server, asker = world.server(capacity=1000, beat_every_s=1), world.chat()
    world.server(capacity=1000, beat_every_s=1)
    before = allocate_many(world, asker, 1)
    resident = world.muster.resident_kib()
    token = admin_token(world.muster)
    crowd = Crowd(world.muster.http_address)
    try:
        crowd.grow(IDLE, lambda i: b"")
        heads = [
            b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: ",  # a head without an end
            b"POST /v1/tokens HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 60000\r\n\r\n{",  # a body without one
            f"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
            * 20,  # asks and asks, and never reads
        ]
        crowd.grow(SLOW, lambda i: heads[i % 3])
        first = 1000
        for _ in range(3):
            crowd.drip(b"x")
            during = allocate_many(world, asker, first)
            world.api.get("/v1/status")
            first += MATCHES
        grown = world.muster.resident_kib() - resident
        # A bound that no healthy run is near; figures are for benchmarks.
        assert during < max(50, 20 * before), (before, during)
        assert grown < (IDLE + SLOW) * 64, f"{grown} KiB for {IDLE + SLOW} clients"
        world.wait(lambda: crowd.closed() > 0, "end of a head that drips", timeout_s=15)
        assert not server.closed and not asker.closed
    finally:
        crowd.close()


def test_too_many_from_one_address_are_turned_away(make_world):
    world = make_world(http={"connections_per_address": 20})
    crowd = Crowd(world.muster.http_address)
    try:
        crowd.grow(40, lambda i: b"")
        world.wait(lambda: crowd.closed() >= 20, "connections too many to be closed")
        for s in crowd.sockets[:20]:
            s.close()
        del crowd.sockets[:20]
        world.wait(lambda: free_again(world), "place for a client")
    finally:
        crowd.close()


def free_again(world):
    try:
        return world.api.get("/healthz")
    except (ConnectionError, TimeoutError):
        return None


def test_answers_that_nobody_reads_are_limited(world):
    """Large answers to clients that never read: the memory they hold is capped, and who reads is
    served, or told that it is busy."""
    for _ in range(200):
        world.server()
    token = admin_token(world.muster)
    resident = world.muster.resident_kib()
    request = (
        f"GET /v1/servers?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()
    crowd = Crowd(world.muster.http_address)
    try:
        for _ in range(1500):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.connect(world.muster.http_address)
            s.setblocking(False)
            s.send(request)
            crowd.sockets.append(s)
        with selectors.DefaultSelector() as selector:
            selector.register(crowd.sockets[-1], selectors.EVENT_READ)
            assert selector.select(30), "the last of them is answered"
        answer = world.api.ask("GET", "/v1/servers", {"limit": 1000})
        assert answer.status in (200, 503)
        if answer.status == 503:
            assert answer.error["code"] == "busy" and answer.head["retry-after"] == "1"
        grown = world.muster.resident_kib() - resident
        assert grown < 200 * 1024, f"{grown} KiB"
    finally:
        crowd.close()
    world.wait(lambda: world.api.ask("GET", "/v1/servers", {"limit": 1000}).status == 200,
               "room for answers again")


def test_one_address_does_not_take_the_room_of_others(world):
    """One address lets so many answers lie that it gets no more: monitors are answered all the
    same, also there, and elsewhere everybody is."""
    for _ in range(200):
        world.server()
    token = admin_token(world.muster)
    bearer = {"Authorization": f"Bearer {token}"}
    request = (
        f"GET /v1/servers?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()

    def status(path, source):
        client = http.client.HTTPConnection(*world.muster.http_address, timeout=10,
                                            source_address=(source, 0))
        try:
            client.request("GET", path, headers=bearer)
            return client.getresponse().status
        finally:
            client.close()

    crowd = Crowd(world.muster.http_address)
    try:
        for _ in range(1000):
            s = socket.socket()
            # Small segments: otherwise the kernel takes whole answers off Muster's hands.
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.connect(world.muster.http_address)
            s.setblocking(False)
            s.send(request)
            crowd.sockets.append(s)
        world.wait(lambda: status("/v1/servers", "127.0.0.1") == 503, "an address that is full")
        assert status("/healthz", "127.0.0.1") == 200
        assert status("/readyz", "127.0.0.1") == 200
        assert status("/v1/servers", "127.0.0.2") == 200
    finally:
        crowd.close()
