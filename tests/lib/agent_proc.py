"""One `muster agent` process, what it is asked over HTTP, and the game servers it runs."""

import http.client
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import logfmt
from muster_proc import binary
from ports import free_ports

GAME = Path(__file__).with_name("room_game.py")
DEADLINE_S = 30.0
PORTS_EACH = 60
MARK = "MUSTER_TEST_FOLDER"  # in the environment of each game server
READY_LINE = re.compile(r"^ready http=(\S+):(\d+) name=(\S+) servers=(\d+)$")


def own_ports(n=PORTS_EACH):
    first = free_ports(n)
    return f"{first}-{first + n - 1}"


def alive(pid):
    """Whether that process runs: one that is dead and not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def children_of(pid):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def is_shim(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"muster-shim\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


class Agent:
    def __init__(self, folder, control_url, token="agents-token", ports=None, **options):
        self.folder = Path(folder)
        # Short, or its sockets would lie, and stay, elsewhere: an address has 107 bytes.
        self.data = Path(options.pop("data", None) or tempfile.mkdtemp(prefix="agent-"))
        self.data.chmod(0o711)
        self.log_path = self.folder / "agent.log"
        self.token = token
        self.options = {"control": control_url, "token": token, "region": "EU",
                        "ports": ports or own_ports(),
                        "listen": "127.0.0.1:0", "name": "host-1", "data": self.data,
                        "heartbeat-ms": 300, "uids": "none", **options}
        self.process = None
        self.address = None
        self.adopted = None

    def start(self):
        arguments = [f"--{name}={value}" for name, value in self.options.items()]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [binary(), "agent", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, env={**os.environ, "AGENTS_OWN": "must not be seen"})
        match = READY_LINE.match(self.first_line())
        self.address = (match[1], int(match[2]))
        self.adopted = int(match[4])
        return self

    def first_line(self):
        output = b""
        deadline = time.monotonic() + DEADLINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in output:
                assert selector.select(max(0, deadline - time.monotonic())), self.log()
                data = os.read(self.process.stdout.fileno(), 4096)
                assert data, f"it ended with {self.process.wait()}\n{self.log()}"
                output += data
        return output.decode().split("\n")[0]

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_lines(self, msg=None):
        text = self.log()
        lines = logfmt.parse_all(text[: text.rfind("\n") + 1])
        return [line for line in lines if msg in (None, line["msg"])]

    def finish(self):
        code = self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        return code

    def kill9(self):
        self.process.kill()
        return self.finish()

    def term(self):
        self.process.send_signal(signal.SIGTERM)
        return self.finish()

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        """Its game servers and their shims outlive it, so they are ended one by one."""
        pids = self.pids()
        if self.running:
            self.kill9()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.data, ignore_errors=True)

    def pids(self):
        """Of its game servers, which have our mark in their environment, and of their shims."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if MARK.encode() + b"=" + bytes(self.folder) not in (entry / "environ").read_bytes():
                    continue
                shim = (entry / "stat").read_text().rsplit(") ", 1)[1].split()[1]
                found.append(int(entry.name))
                if Path(f"/proc/{shim}/comm").read_text().startswith("muster-shim"):
                    found.append(int(shim))
            except (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError):
                continue
        return found

    def shims(self):
        """The pids of those that are its children."""
        return [pid for pid in children_of(self.process.pid) if is_shim(pid)]

    # ── what the control plane asks ──────────────────────────────────────────────────────────

    def ask(self, method, path, data=None, token=None, body=None):
        connection = http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)
        head = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if data is not None:
            body = json.dumps(data)
        try:
            connection.request(method, path, body=body, headers=head if token != "" else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, path, **data):
        status, body = self.ask("POST", path, data)
        return status, json.loads(body)

    def spawn(self, server, *arguments, path="/spawn", **options):
        """The answer's status and JSON. options go over what is asked by default."""
        env = options.pop("env", [])
        if isinstance(env, list):
            env = [{"key": MARK, "value": str(self.folder)}, *env]
        return self.post(path, **{
            "server_id": str(server), "session_id": str(server + 1000), "fleet": "arena",
            "version": "1.0", "deployment": None, "binary": str(GAME), "endpoint": "path",
            "ports": 1, "arguments": list(arguments), "env": env, "room_settings": {"map": "a"},
            "server_settings": {}, "room_id": str(server + 1000), "max_players": 8,
            "login_access_token": None, "discovery_services": {}, "spawn_timeout_ms": 30000,
            "status_period_ms": 1000, **options})

    def prepare(self, server, *arguments, **options):
        """The same before it is certain."""
        return self.spawn(server, *arguments, path="/prepare", **options)

    def show(self, server):
        status, body = self.ask("GET", f"/servers/{server}")
        assert status == 200, body
        return json.loads(body)

    def say(self, server, message):
        """Makes the game server send that."""
        line = message if isinstance(message, str) else json.dumps(message)
        assert self.post(f"/servers/{server}/stdin", line=line) == (200, {})

    def follow(self, server, lines=1000):
        return Follower(self, server, lines)


class Follower:
    """The log of a game server, line by line, as it comes."""

    def __init__(self, agent, server, lines):
        self.connection = http.client.HTTPConnection(*agent.address, timeout=DEADLINE_S)
        self.connection.request("GET", f"/servers/{server}/logs?follow=1&lines={lines}",
                                headers={"Authorization": f"Bearer {agent.token}"})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def line(self):
        """The next one; "" when the server is gone."""
        return self.answer.readline().decode().rstrip("\n")

    def until(self, condition):
        while True:
            line = self.line()
            assert line, "the log has ended"
            found = condition(line)
            if found:
                return found

    def message(self, condition=lambda message: True):
        """The next JSON-RPC message that the game server got, but for questions for its status."""
        def take(line):
            message = json.loads(line[4:]) if line.startswith("got ") else None
            if message and message.get("method") != "status" and condition(message):
                return message
            return None
        return self.until(take)

    def answer_to(self, number):
        return self.message(lambda message: message.get("id") == number)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
