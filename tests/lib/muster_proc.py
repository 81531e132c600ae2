"""One `muster serve` process: started on free ports, watched, and always stopped again."""

import atexit
import hashlib
import json
import os
import re
import selectors
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import logfmt

REPO = Path(__file__).resolve().parents[2]
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 20.0

READY_LINE = re.compile(
    r"^(?:ready|standby) http=(\S+) server=(\S+) manager=(\S+) client=(\S+)$")

STORE = os.environ.get("MUSTER_TEST_STORE", "")  # postgres: what is kept is kept there
databases = []  # PostgreSQL servers of this process, none or one


def binary():
    return os.path.abspath(os.environ.get("MUSTER_BIN", REPO / "build" / "muster"))


def run(*arguments, timeout_s=30, stdin=None, env=None):
    """A muster command that ends by itself. Returns the completed process, output as text."""
    return subprocess.run(
        [binary(), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=not isinstance(stdin, bytes),
        timeout=timeout_s,
        env={**os.environ, **(env or {})},
    )


def write_config(path, config):
    """JSON is YAML, and needs no library."""
    Path(path).write_text(json.dumps(config, indent=2) + "\n")
    return path


def database():
    """The PostgreSQL server of this process. It ends with the thread that asks first, so conftest.py
    asks for it."""
    if not databases:
        from postgres import Postgres
        server = Postgres(settings={"max_connections": "400"})
        databases.append(server.start())
        atexit.register(server.close)
    return databases[0]


def cell_of(data):
    """One for each data folder, also after a restart."""
    return "t" + hashlib.sha256(str(Path(data).absolute()).encode()).hexdigest()[:24]


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def hold_port():
    """A socket that has a port which is free on every address, and does not listen on it. A server
    can, and while it is down the system gives the port to nobody's outgoing connection."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("0.0.0.0", 0))
    return held


class NotReady(AssertionError):
    pass


class Muster:
    """config is a dict for --config, or None. Start it with start(), or use it in a with block.
    embedded: what it keeps is in its data folder, whatever MUSTER_TEST_STORE says. wrap: a command
    that becomes Muster."""

    def __init__(self, folder, config=None, dev=True, env=None, data=None, embedded=False,
                 wrap=()):
        self.folder = Path(folder)
        self.data = Path(data) if data else self.folder / "data"
        self.log_path = self.folder / "muster.log"
        self.config = config
        self.dev = dev
        self.cell_name = None if embedded or STORE != "postgres" else cell_of(self.data)
        self.env = env or {}
        self.wrap = wrap
        self.binary = binary()
        self.process = None
        self.killed = False
        self.ready_line = None
        self.http_address = self.server_address = self.manager_address = None
        self.client_address = None
        self.held = {}  # door: see hold_port

    def arguments(self, server_port=0, manager_port=0, http_port=0, client_port=0):
        wanted = {"server": server_port, "manager": manager_port, "http": http_port,
                  "client": client_port}
        port = {door: number or self.hold(door) for door, number in wanted.items()}
        args = ["serve", "--data", self.data]
        if self.dev:
            args.append("--dev")
        if self.config is not None:
            args += ["--config", write_config(self.folder / "muster.yaml", self.config)]
        if self.cell_name:
            args += ["--store", database().url(), "--cell", self.cell_name]
        return [*args, "--server-port", port["server"], "--manager-port", port["manager"],
                "--client-port", port["client"], "--http", f"127.0.0.1:{port['http']}"]

    def hold(self, door):
        if door in self.held:
            self.held[door].close()
        self.held[door] = hold_port()
        return self.held[door].getsockname()[1]

    def let_go(self):
        while self.held:
            self.held.popitem()[1].close()

    def start(self, server_port=0, manager_port=0, http_port=0, client_port=0):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrap, self.binary, *map(str, self.arguments(server_port, manager_port, http_port,
                                                       client_port))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.env},
            )
        try:
            self.await_ready()
        except BaseException:
            self.kill9()
            raise
        return self

    def await_ready(self):
        deadline = time.monotonic() + START_DEADLINE_S
        output = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not (lines := [n for n in output.split(b"\n")[:-1] if n[:8] != b"standby "]):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise NotReady(f"no ready line within {START_DEADLINE_S} s\n{self.log()}")
                data = os.read(self.process.stdout.fileno(), 4096)
                if not data:
                    raise NotReady(f"it ended with {self.process.wait()}\n{self.log()}")
                output += data
        self.ready_line = lines[0].decode()
        match = READY_LINE.match(self.ready_line)
        if not match:
            raise NotReady(f"not a ready line: {self.ready_line!r}")
        self.http_address = address(match[1])
        self.server_address = address(match[2])
        self.manager_address = address(match[3])
        self.client_address = address(match[4])

    @property
    def pid(self):
        return self.process.pid

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_lines(self, msg=None):
        """The whole lines of the log as dicts; with msg, those of that event."""
        text = self.log()
        lines = logfmt.parse_all(text[: text.rfind("\n") + 1])
        return [line for line in lines if msg in (None, line["msg"])]

    # --- what it stored

    def query(self, file, sql):
        """Of a data folder's file, or of its cell, whose tables have the same names."""
        if self.cell_name:
            return database().rows(f"SET search_path = muster_{self.cell_name}; {sql}")
        with sqlite3.connect(f"file:{self.data / file}?mode=ro", uri=True) as db:
            return db.execute(sql).fetchall()

    def journal(self):
        """(number, changes) of every batch that is kept, in order."""
        sql = "SELECT seq, {} FROM journal ORDER BY seq"
        packed = "encode(changes, 'hex')" if self.cell_name else "hex(changes)"
        return [(int(seq), bytes.fromhex(text)) for seq, text in
                self.query("journal.db", sql.format(packed))]

    def folded(self):
        """Up to which batch the tables are."""
        sql = "SELECT seq FROM fold" if self.cell_name else \
            "SELECT value FROM meta WHERE key = 'folded_seq'"
        return int(self.query("state.db", sql)[0][0])

    def forget_journal(self, last):
        """As if it had been trimmed up to there; nobody serves it."""
        sql = f"DELETE FROM journal WHERE seq <= {last}"
        if self.cell_name:
            self.query("journal.db", sql)
            return
        with sqlite3.connect(self.data / "journal.db") as db:
            db.execute(sql)

    # --- its life

    def resident_kib(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self):
        code = self.process.wait(STOP_DEADLINE_S)
        self.process.stdout.close()
        return code

    def kill9(self):
        if self.running:
            self.killed = True
            self.process.kill()
        return self.finish()

    def term(self):
        """Asks it to end and returns its exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.finish()
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"still running {STOP_DEADLINE_S} s after SIGTERM") from None

    def restart(self, same_ports=True):
        """Starts again with the same data folder; what runs is ended in good order first."""
        if self.running:
            assert self.term() == 0, self.log()
        return self.start_on_same_ports() if same_ports else self.start()

    def start_on_same_ports(self):
        return self.start(self.server_address[1], self.manager_address[1], self.http_address[1],
                          self.client_address[1])

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        """May be called again; it may be started again after it, on other ports."""
        if self.process is not None and not self.process.stdout.closed:
            self.kill9()
        self.let_go()
