"""What stands behind the doors while they are fuzzed: a Muster, or an agent with running game
servers. Each says whether it still lives and still answers what everybody knows the answer to."""

import http.client
import json
import os
import re
import socket
import tempfile
import time
from pathlib import Path

import chat
import door_inputs
import players
from agent_proc import GAME, Agent
from door_inputs import ADMIN, AGENT_TOKEN, SECRET
from fake_control import FakeControl
from muster_proc import Muster

DEADLINE_S = 30.0
QUIET_S = 0.03  # an input that is owed nothing has had its answers when so long nothing came
GROWTH_KIB = 96 * 1024  # beyond what it has after the first inputs; under ASan freed memory stays
SPARE_FILES = 8
LEFT_MAX = 40  # connections; see may_be_left
REPORTS = ("Sanitizer", "runtime error:", "Assertion")

ENV = {"ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=12:allocator_release_to_os_interval_ms=200",
       "UBSAN_OPTIONS": "print_stacktrace=1"}


class Broken(Exception):
    """It does not do what it must."""


class Target:
    """process: a subprocess; http: (host, port) of the door that says whether it lives."""

    health = ("GET", "/healthz", None)
    doors = ()

    def __init__(self, folder):
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.asker = None
        self.first_memory = self.first_files = self.left = 0

    def start(self):
        self.started()
        self.alive()
        self.first_files = self.files()
        return self

    def alive(self):
        """It answers its health; the connection stays, so that this costs little."""
        method, path, token = self.health
        for attempt in (1, 2):
            try:
                if self.asker is None:
                    self.asker = http.client.HTTPConnection(*self.http, timeout=DEADLINE_S)
                self.asker.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
                answer = self.asker.getresponse()
                body = answer.read()
                if answer.status != 200:
                    raise Broken(f"{path} is answered with {answer.status} {body[:200]}")
                return
            except (OSError, http.client.HTTPException) as e:
                self.asker.close()
                self.asker = None
                if attempt == 2:
                    raise Broken(f"{path} is not answered: {e!r}") from None

    def pid(self):
        return self.process.pid

    def files(self):
        return len(os.listdir(f"/proc/{self.pid()}/fd"))

    def memory_kib(self):
        status = Path(f"/proc/{self.pid()}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

    def warmed_up(self):
        self.first_memory = self.memory_kib()

    def nothing_grew(self):
        """Descriptors are those of the beginning; memory, under a sanitizer, is not far from it."""
        deadline = time.monotonic() + DEADLINE_S
        while self.files() > self.first_files + SPARE_FILES + self.left:
            if time.monotonic() > deadline:
                names = sorted(os.readlink(each) for each in Path(f"/proc/{self.pid()}/fd").iterdir())
                raise Broken(f"{len(names)} descriptors are open, {self.first_files} at the beginning:\n" +
                             "\n".join(names))
            self.alive()
        grown = self.memory_kib() - self.first_memory
        if self.first_memory and grown > GROWTH_KIB:
            raise Broken(f"its memory grew by {grown} KiB")

    def may_be_left(self):
        """Whether one more client may go without a reset: libmicrohttpd misses an end that comes with
        the last bytes, so each keeps its place until its deadline."""
        self.left += self.left < LEFT_MAX
        return self.left < LEFT_MAX

    def reports(self):
        return [line for line in self.log().splitlines() if any(word in line for word in REPORTS)]

    def connect(self, door):
        made = socket.create_connection(self.addresses[door], DEADLINE_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def stop(self):
        """In good order: whatever leaks is reported then."""
        if self.asker:
            self.asker.close()
        code = self.ended()
        if code != 0 or self.reports():
            raise Broken(f"it ended with {code}: " + "\n".join(self.reports()[:5]))


class Control(Target):
    doors = ("http", "server", "manager", "client")

    def started(self):
        config = {"fleets": players.fleets(), "rates": {
            verb: [{"count": 1000000, "seconds": 60}] for verb in ("create", "join")}}
        self.muster = Muster(self.folder, config, env=ENV, embedded=True)
        self.muster.data.mkdir(mode=0o700)
        secret = self.muster.data / "secret"
        secret.write_bytes(SECRET)
        secret.chmod(0o600)
        self.muster.start()
        self.process = self.muster.process
        self.http = self.muster.http_address
        self.addresses = {door: getattr(self.muster, f"{door}_address") for door in self.doors}
        self.operations = door_inputs.Operations(self.ask("/openapi.json"))
        while self.digest() == [(None,)]:  # what it writes down of its own start
            self.alive()

    def log(self):
        return self.muster.log()

    def ask(self, path):
        connection = http.client.HTTPConnection(*self.http, timeout=DEADLINE_S)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise Broken(f"{path} is answered with {answer.status} {body[:200]}")
            return json.loads(body)
        finally:
            connection.close()

    def digest(self):
        """Of everything that is stored: the number of the last batch."""
        return self.muster.query("journal.db", "SELECT max(seq) FROM journal")

    def known(self, door):
        """A request to that door of which everybody knows the answer."""
        if door == "http":
            assert self.ask("/v1/me")["account"] == "admin"
            return
        hello, name = {
            "server": (chat.sv_handshake("any", "10.9.9.9", 29999, chat.EU, 1), "SV_HANDSHAKE_RESPONSE"),
            "manager": (chat.mgr_handshake("any", "known", [chat.EU]), "MGR_HANDSHAKE_RESPONSE"),
            "client": (chat.cl_connect(99, door_inputs.token("99", "game")), "CL_CONNECT_RESPONSE")}[door]
        with self.connect(door) as connection:
            connection.sendall(hello)
            frames = bytearray()
            while True:
                data = connection.recv(65536)
                if not data:
                    raise Broken(f"the {door} port closes a good handshake")
                frames += data
                for code, payload, _ in chat.split(frames):
                    made = chat.decode(code, payload)
                    if made.name == name:
                        if not made.ok:
                            raise Broken(f"the {door} port refuses a good handshake: {made.error}")
                        return

    def make(self, rng, door, sound):
        if door != "http":
            return door_inputs.chat_input(rng, door)
        return (door_inputs.http_sound if sound else door_inputs.http_damaged)(rng, self.operations)

    def ended(self):
        try:
            return self.muster.term() if self.muster.running else self.muster.finish()
        finally:
            self.muster.__exit__()

    def kill(self):
        self.muster.__exit__()


class Host(Target):
    """An agent, with one game server that speaks, one that ends at once without a word, and some that
    leave their sockets to us."""

    doors = ("agent", "game")
    OVER, TALKER, FIRST, SILENT = 900000, 900001, 900002, 4
    health = ("GET", f"/servers/{TALKER}", AGENT_TOKEN)

    def started(self):
        self.turn = 0
        self.control = FakeControl(token=AGENT_TOKEN).start()
        self.control.server.handle_error = lambda *_: None  # the agent may be killed
        self.agent = Agent(self.folder, self.control.url, token=AGENT_TOKEN, **{"heartbeat-ms": 5000})
        os.environ.update(ENV)
        self.agent.start()
        self.process = self.agent.process
        self.http = self.agent.address
        self.addresses = {"agent": self.agent.address}
        self.operations = door_inputs.AgentOperations()
        quiet = self.folder / "quiet"
        quiet.write_text('#!/bin/sh\necho "$1"\nexec sleep 100000\n')
        quiet.chmod(0o755)
        patient = {"spawn_timeout_ms": 3600000, "status_period_ms": 3600000, "binary": str(GAME)}
        self.spawn(self.OVER, **{**patient, "binary": "/bin/false"})
        self.spawn(self.TALKER, **patient)
        self.hears(self.TALKER, "inited")
        self.hears(self.OVER, "failed")
        self.sockets = []
        for server in range(self.FIRST, self.FIRST + self.SILENT):
            self.spawn(server, **{**patient, "binary": str(quiet)})
            with self.agent.follow(server) as log:
                self.sockets.append(log.line())

    def hears(self, server, event):
        """The control plane is told that of it."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.control.of(server, event):
            if not self.agent.running or time.monotonic() > deadline:
                raise Broken(f"there is no word that {server} {event}")
            with self.control.changed:
                self.control.changed.wait(0.2)

    def spawn(self, server, **options):
        status, answer = self.agent.spawn(server, **options)
        if status != 202:
            raise Broken(f"/spawn is answered with {status} {answer}")

    def log(self):
        return self.agent.log()

    def digest(self):
        return None

    def connect(self, door):
        if door == "agent":
            return super().connect(door)
        self.turn += 1
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(DEADLINE_S)
        made.connect(self.sockets[self.turn % self.SILENT])
        return made

    def known(self, door):
        deadline = time.monotonic() + DEADLINE_S
        if door == "agent":
            self.alive()
            return
        while time.monotonic() < deadline:  # ZeroMQ ignores who comes before the last has gone
            if self.is_answered():
                return
        raise Broken("a call of a game server is not answered")

    def is_answered(self):
        call = b'{"jsonrpc":"2.0","method":"nonsense","params":{},"id":77}'
        with self.connect("game") as connection:
            connection.settimeout(1.0)
            heard = b""
            try:
                connection.sendall(door_inputs.GREETING)
                connection.recv(64)
                connection.sendall(door_inputs.zmtp_ready() + door_inputs.zmtp_message(call))
                while b'"id":77' not in heard:
                    data = connection.recv(4096)
                    if not data:
                        return False
                    heard += data
            except OSError:
                return False
            return b"-32601" in heard

    def make(self, rng, door, sound):
        if door == "game":
            return door_inputs.game_input(rng)
        return (door_inputs.agent_sound if sound else door_inputs.agent_damaged)(rng, self.operations)

    def ended(self):
        pids = self.agent.pids()
        code = self.agent.term() if self.agent.running else self.agent.finish()
        self.put_away(pids)
        return code

    def put_away(self, pids):
        for pid in pids:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.agent.__exit__()
        self.control.stop()

    def kill(self):
        self.put_away(self.agent.pids())


TARGETS = {door: kind for kind in (Control, Host) for door in kind.doors}
