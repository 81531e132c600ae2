"""Very many players' clients on one epoll: they connect, say that they have loaded when their lobby is
created, and count what they hear. Peers (peers.py) are for tests that look closely; ten thousand of
them would be too slow."""

import select
import socket
import struct
import time
from collections import Counter

import chat

CREATED, LOADING, START, ABORTED = 0x0602, 0x0603, 0x0604, 0x0605
PER_ADDRESS = 2000  # below what one address may have


class Crowd:
    def __init__(self, address, tokens):
        """tokens: account -> access token. All connect and are greeted when this returns."""
        self.address = address
        self.epoll = select.epoll()
        self.sockets = {}  # descriptor -> (account, socket)
        self.incoming = {}
        self.heard = {account: Counter() for account in tokens}  # of each code
        self.starts = {}  # account -> the frames of his MATCH_STARTs
        self.lost = []  # accounts whose connection was closed
        self.loads = True
        for n, (account, token) in enumerate(tokens.items()):
            self.connect(account, token, f"127.0.0.{2 + n // PER_ADDRESS}")
            if n % 100 == 99:
                self.pump(0)  # or the listener's backlog is too short

    def connect(self, account, token, source):
        s = socket.socket()
        s.bind((source, 0))
        s.settimeout(8)
        s.connect(self.address)
        s.send(chat.cl_connect(account, token))
        s.setblocking(False)
        self.sockets[s.fileno()] = (account, s)
        self.incoming[s.fileno()] = bytearray()
        self.epoll.register(s.fileno(), select.EPOLLIN)

    def pump(self, timeout_s):
        for fd, _ in self.epoll.poll(timeout_s, 4096):
            account, s = self.sockets[fd]
            try:
                data = s.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                self.epoll.unregister(fd)
                self.lost.append(account)
                continue
            self.incoming[fd] += data
            self.read(account, s, self.incoming[fd])

    def read(self, account, s, buffer):
        at = 0
        while len(buffer) >= at + 4:
            length, code = struct.unpack_from("<HH", buffer, at)
            if len(buffer) < at + 2 + length:
                break
            self.hear(account, s, code, buffer, at)
            at += 2 + length
        del buffer[:at]

    def hear(self, account, s, code, buffer, at):
        self.heard[account][code] += 1
        if code == 0x2A00:
            s.send(chat.pong())
        elif code == CREATED and self.loads:
            lobby, = struct.unpack_from("<i", buffer, at + 4)
            s.send(chat.cl_player_loading_status(lobby, account, 1))
        elif code == START:
            lobby, = struct.unpack_from("<i", buffer, at + 4)
            self.starts.setdefault(account, []).append(lobby)

    def total(self, code):
        return sum(heard[code] for heard in self.heard.values())

    def wait(self, look, what, timeout_s, beside=lambda: None):
        """Pumps until look() is true; beside is called in between."""
        deadline = time.monotonic() + timeout_s
        while not look():
            assert time.monotonic() < deadline, f"no {what} within {timeout_s} s"
            self.pump(0.02)
            beside()

    def close(self):
        for _, s in self.sockets.values():
            s.close()
        self.epoll.close()
