"""Ports that no other test has. They are below those that the system gives to outgoing connections, so
that a port stays free while its server is down; and each is locked, as a byte of a file, for the
tests that run beside this process."""

import fcntl
import os
import random
import socket
import tempfile
from collections import deque
from pathlib import Path

FIRST = 10240
KEPT = 2000  # so many of the last ones stay locked: older ones belong to tests that are over

_chance = random.SystemRandom()
_kept = deque()
_file = None


def _lock_file():
    global _file
    if _file is None:
        path = Path(tempfile.gettempdir()) / f"muster-test-ports-{os.getuid()}"
        _file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return _file


def _is_free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                return False
    return True


def _claim(ports):
    """A lock keeps out other processes; this one has to look at what it has given itself."""
    if any(port in _kept for port in ports):
        return False
    try:
        fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, len(ports), ports[0])
    except OSError:
        return False
    if not all(map(_is_free, ports)):
        fcntl.lockf(_lock_file(), fcntl.LOCK_UN, len(ports), ports[0])
        return False
    _kept.extend(ports)
    while len(_kept) > KEPT:
        fcntl.lockf(_lock_file(), fcntl.LOCK_UN, 1, _kept.popleft())
    return True


def free_ports(n=1):
    """The first of so many in a row."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        first = _chance.randrange(min(FIRST, low - 1000), low - n)
        if _claim(range(first, first + n)):
            return first
