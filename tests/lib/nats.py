"""A real nats-server with JetStream, and a client of its text protocol that is enough for tests."""

import itertools
import json
import select
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

DEADLINE_S = 30.0
STREAM = "MUSTER"
REQUEST, RESULT, DEAD = (f"muster.allocation.{name}" for name in ("request", "result", "dead"))


def publication(subject, body, reply=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n"


class NatsServer:
    """Started on a free port, which it keeps over restarts; always stopped again."""

    def __init__(self, folder, *options, lets_us_in=True):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.options = options
        self.lets_us_in = lets_us_in
        self.port = -1
        self.process = None

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        with open(self.folder / "nats.log", "ab") as log:
            self.process = subprocess.Popen(
                ["nats-server", "-js", "-sd", self.folder / "js", "-a", "127.0.0.1",
                 "-p", str(self.port), "--ports_file_dir", self.folder, *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.await_port()
        return self

    def await_port(self):
        path = self.folder / f"nats-server_{self.process.pid}.ports"
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            try:
                ports = json.loads(path.read_text())
                self.port = int(ports["nats"][0].rsplit(":", 1)[1])
                if self.lets_us_in:
                    NatsClient(self.port).close()
                return
            except (OSError, ValueError):
                time.sleep(0.01)

    def log(self):
        return (self.folder / "nats.log").read_text(errors="replace")

    def stop(self, hard=False):
        if self.process and self.process.poll() is None:
            self.process.kill() if hard else self.process.terminate()
            self.process.wait(DEADLINE_S)

    def client(self):
        return NatsClient(self.port)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop(hard=True)


class Message(NamedTuple):
    subject: str
    reply: str
    head: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class NatsClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self.unread = bytearray()
        self.sids = itertools.count(1)
        self.numbers = itertools.count(1)
        self.inbox = f"_INBOX.test{id(self)}"
        self.kept = {}  # sid -> messages nobody has asked for yet
        assert self.line().startswith(b"INFO ")
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nPING\r\n')
        assert self.line() == b"PONG\r\n"
        self.answers = self.subscribe(self.inbox + ".>")

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read_more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("nats-server has closed the connection")
        self.unread += data

    def read(self, count):
        while len(self.unread) < count:
            self.read_more()
        taken = bytes(self.unread[:count])
        del self.unread[:count]
        return taken

    def line(self):
        while (end := self.unread.find(b"\n")) < 0:
            self.read_more()
        return self.read(end + 1)

    def send(self, data):
        self.socket.sendall(data)

    def subscribe(self, subject):
        sid = str(next(self.sids))
        self.kept[sid] = []
        self.send(f"SUB {subject} {sid}\r\nPING\r\n".encode())
        while self.read_one() != "PONG":
            pass
        return sid

    def publish(self, subject, body=b"", reply=""):
        self.send(publication(subject, body, reply))

    def publish_at_once(self, subject, *bodies):
        """In one write: whoever reads them has the last before he can answer the first."""
        self.send(b"".join(publication(subject, body) for body in bodies))

    def publish_named(self, subject, name, reply):
        """With an id of which JetStream drops repeats for a while."""
        head = f"NATS/1.0\r\nNats-Msg-Id: {name}\r\n\r\n".encode()
        self.send(f"HPUB {subject} {reply} {len(head)} {len(head)}\r\n".encode() + head + b"\r\n")

    def read_one(self):
        """Handles one line of the server's, and says which it was."""
        words = self.line().split()
        kind = words[0].decode()
        if kind == "PING":
            self.send(b"PONG\r\n")
        elif kind in ("MSG", "HMSG"):
            self.keep(kind, [w.decode() for w in words[1:]])
        else:
            assert kind in ("PONG", "INFO"), words
        return kind

    def keep(self, kind, words):
        counts = 2 if kind == "HMSG" else 1
        subject, sid, *reply = words[:-counts]
        total = int(words[-1])
        data = self.read(total + 2)[:total]
        lines = data[: int(words[-2])].decode().split("\r\n") if kind == "HMSG" else [""]
        head = {"Status": lines[0].split()[1]} if " " in lines[0] else {}
        head.update(line.split(": ", 1) for line in lines[1:] if ": " in line)
        body = data[int(words[-2]):] if kind == "HMSG" else data
        self.kept[sid].append(Message(subject, reply[0] if reply else "", head, body))

    def next(self, sid):
        while not self.kept[sid]:
            self.read_one()
        return self.kept[sid].pop(0)

    def take(self, sid, count):
        return [self.next(sid) for _ in range(count)]

    def nothing_more(self, sid, within_s=0.3):
        """Messages that came, though none should have."""
        deadline = time.monotonic() + within_s
        while not self.kept[sid]:
            left = max(0, deadline - time.monotonic())
            if not self.unread and not select.select([self.socket], [], [], left)[0]:
                break
            self.read_one()
        return self.kept[sid]

    def ask(self, subject, body=b""):
        """One request's answer, as JSON."""
        reply = f"{self.inbox}.{next(self.numbers)}"
        self.publish(subject, body, reply)
        answer = self.next(self.answers)
        assert answer.subject == reply
        assert "Status" not in answer.head, (subject, answer.head)
        return answer.json

    def store(self, subject, *bodies):
        """Publishes, and waits until the stream has them."""
        for body in bodies:
            self.publish(subject, body, f"{self.inbox}.{next(self.numbers)}")
        for answer in self.take(self.answers, len(bodies)):
            assert "seq" in answer.json, answer

    def await_forgotten_ids(self):
        """Until the stream has forgotten the ids of all messages that it has now: the last of them
        is ours, and a repeat of it is stored again."""
        name = f"probe-{next(self.numbers)}"
        duplicates = 0
        while True:
            self.publish_named(DEAD, name, f"{self.inbox}.{next(self.numbers)}")
            answer = self.next(self.answers).json
            assert "seq" in answer, answer
            if duplicates and not answer.get("duplicate"):
                return
            duplicates += bool(answer.get("duplicate"))

    def api(self, verb, body=None):
        answer = self.ask("$JS.API." + verb, b"" if body is None else body)
        assert "error" not in answer, answer
        return answer

    def make_stream(self, **more):
        self.api(f"STREAM.CREATE.{STREAM}", {
            "name": STREAM, "subjects": [REQUEST, RESULT, DEAD], "retention": "limits",
            "storage": "file", "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, **more})

    def follow(self, subject):
        """A subscription to everything that the stream has of a subject, from its beginning."""
        target = f"{self.inbox}x{next(self.numbers)}"
        sid = self.subscribe(target)
        self.api(f"CONSUMER.CREATE.{STREAM}", {"stream_name": STREAM, "config": {
            "deliver_subject": target, "deliver_policy": "all", "ack_policy": "none",
            "filter_subject": subject, "replay_policy": "instant"}})
        return sid

    def consumer(self, name="muster"):
        return self.api(f"CONSUMER.INFO.{STREAM}.{name}")


def await_ready(world, status=200):
    """Until /readyz of a world's Muster says so: it is connected with its brokers, or is not;
    returns what it says."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answer = world.api.ask("GET", "/readyz")
        if answer.status == status:
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)
