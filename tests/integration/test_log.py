"""A log nobody reads: Muster serves on, and drops lines instead."""

import os
import socket

from muster_proc import Muster


class Unread(Muster):
    """Its standard error is a pipe that nobody reads."""

    def start(self, *ports):
        self.read_end, write_end = os.pipe()
        self.log_path = f"/dev/fd/{write_end}"
        try:
            return super().start(*ports)
        finally:
            os.close(write_end)

    def log(self):
        return ""


def heartbeat_is_answered(address):
    with socket.create_connection(address, timeout=5) as s:
        s.sendall(b"\x02\x00\x00\x2a")
        return s.recv(4) == b"\x02\x00\x01\x2a"


def test_a_log_nobody_reads_does_not_stop_anything(tmp_path):
    with Unread(tmp_path) as muster:
        for _ in range(2500):
            with socket.create_connection(muster.server_address, timeout=5) as s:
                s.sendall(b"\x05\x00\xee\xee" + b"\xff" * 60)
        assert heartbeat_is_answered(muster.server_address)
        assert muster.term() == 0
        os.close(muster.read_end)
