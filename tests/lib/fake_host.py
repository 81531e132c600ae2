"""An agent that starts nothing: it heartbeats, takes what the control plane asks for and says what a
test wants said of it, as docs/agent-protocol.md has it."""

import functools
import http.client
import itertools
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from http_api import admin_token

BEAT_S = 0.5
DEADLINE_S = 20.0
AWAY = (OSError, http.client.HTTPException)  # the control plane


class Refused(AssertionError):
    """An event that was answered with an error."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


class Server:
    """A game server that was asked for. state: "starting", "running", "ending"."""

    def __init__(self, agent, spawn):
        self.agent = agent
        self.spawn = spawn
        self.id = spawn["server_id"]
        self.room = spawn["room_id"]
        self.ports = [next(agent.ports) for _ in range(spawn["ports"])]
        self.pid = 100000 + int(self.id)
        self.state = "starting"
        self.seq = itertools.count(1)
        self.lock = threading.Lock()

    def listed(self):
        return {"id": self.id, "session": spawn_session(self.spawn), "pid": self.pid,
                "state": self.state, "ports": self.ports, "since_ms": 1000}

    def say(self, event, seq=None, **members):
        """Posts one event; its result, or Refused."""
        with self.lock:
            number = next(self.seq) if seq is None else seq
            answer = self.agent.post_event(
                {"server": self.id, "seq": number, "event": event, **members})
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def inited(self, **members):
        self.say("inited", pid=self.pid, ports=self.ports, **members)
        self.state = "running"
        return self

    def joined(self, key, **members):
        return self.say("joined", key=key, **members)

    def left(self, key):
        return self.say("left", key=key)

    def exited(self, code=0):
        self.agent.servers.pop(self.id, None)
        return self.say("exited", exit_code=code, peak_memory=1, run_ms=1, tail="")


def spawn_session(spawn):
    return spawn["session_id"]


class FakeHost:
    """script(server): what becomes of a spawn; by default it is running at once. A context manager:
    when it is entered the control plane knows the host."""

    def __init__(self, muster, name="host-1", region="EU", address="203.0.113.7", slots=4096,
                 script=Server.inited, cpu=10.0, memory=20.0, first_port=40000, token=None):
        self.muster = muster
        self.token = token  # what it shows; None: the operator's
        self.name, self.region, self.address, self.slots = name, region, address, slots
        self.cpu, self.memory = cpu, memory
        self.script = script
        self.ports = itertools.count(first_port)
        self.servers = {}  # those that are listed
        self.spawned = queue.Queue()  # every Server, as it was asked for
        self.kicked = queue.Queue()
        self.terminated = queue.Queue()
        self.written = queue.Queue()  # (server, line) of its input
        self.logs = {}  # server -> lines
        self.following = queue.Queue()  # lines for who follows; None ends it
        self.broken_off = threading.Event()  # a follower went away
        self.authorized = []  # what the control plane showed
        self.beats = itertools.count(1)
        self.mistakes = []
        self.work = queue.Queue()
        self.stopping = threading.Event()
        self.beating = True
        self.beat_lock = threading.Lock()

    # --- towards the control plane

    def post(self, path, body):
        connection = http.client.HTTPConnection(*self.muster.http_address, timeout=DEADLINE_S)
        try:
            connection.request("POST", path, json.dumps(body), {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self.token or admin_token(self.muster)}"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status == 503 and b'"no_leader"' in text:
            raise ConnectionError("a node that is starting does not lead yet")
        assert answer.status == 200, (path, body, answer.status, text)
        return json.loads(text)

    def post_again(self, path, body):
        """Until somebody answers, as long as it takes to start again."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return self.post(path, body)
            except AWAY:
                if time.monotonic() > deadline or self.stopping.wait(BEAT_S / 10):
                    raise

    def post_event(self, event):
        body = {"name": self.name, "events": [event]}
        answers = self.post_again("/v1/agent/events", body)["answers"]
        assert [(a["server"], a["seq"]) for a in answers] == [(event["server"], event["seq"])]
        return answers[0]

    def beat(self, **changes):
        with self.beat_lock:
            return self.post("/v1/agent/heartbeat", {
                "name": self.name, "address": self.address, "url": self.url, "region": self.region,
                "slots": self.slots, "cpu_percent": self.cpu, "memory_percent": self.memory,
                "disk_percent": 1.0, "load": 0.1, "beat": next(self.beats), "leaving": False,
                "deployments": [], "servers": [s.listed() for s in list(self.servers.values())],
                **changes})

    def beat_on(self):
        while not self.stopping.wait(BEAT_S):
            try:
                if self.beating:
                    self.beat()
            except AWAY:
                pass
            except Exception as mistake:  # noqa: BLE001
                if not self.stopping.is_set():
                    self.mistakes.append(mistake)

    # --- from the control plane

    def hear(self, path, body):
        """Returns status and answer."""
        if path == "/spawn":
            server = self.servers.get(body["server_id"])
            if not server:
                server = self.servers[body["server_id"]] = Server(self, body)
                self.spawned.put(server)
                self.work.put(server)
            return 202, {}
        _, kind, number, verb = path.split("/")
        assert kind == "servers", path
        if verb == "terminate":
            gone = self.servers.pop(number, None)
            self.terminated.put((number, body))
            if gone:
                gone.state = "ending"
        elif verb == "kick":
            self.kicked.put((number, body))
        elif verb == "stdin":
            if number not in self.servers:
                return 404, {"error": {"code": "not_found", "message": "No such server runs here."}}
            self.written.put((number, body["line"]))
            return 200, {}
        return 202, {}

    def show_logs(self, handler, number, query):
        """GET /servers/{id}/logs: what the test has put into `logs`; a follower gets line after line
        until None."""
        if number not in self.logs:
            raw = json.dumps({"error": {"code": "not_found", "message": "It was never here."}}).encode()
            handler.answer(404, raw)
            return
        lines = list(self.logs[number])[-int(query["lines"][0]):]
        raw = "".join(line + "\n" for line in lines).encode()
        if "follow" not in query:
            handler.answer(200, raw, "text/plain; charset=utf-8")
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            while raw is not None:
                if raw:
                    handler.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
                line = self.following.get(timeout=DEADLINE_S)
                raw = None if line is None else (line + "\n").encode()
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            handler.close_connection = True
            self.broken_off.set()

    def do_work(self):
        while (server := self.work.get()) is not None:
            try:
                self.script(server)
            except Exception as mistake:  # noqa: BLE001
                if not self.stopping.is_set():
                    self.mistakes.append(mistake)

    # --- life

    def __enter__(self):
        agent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, raw, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def do_GET(self):
                agent.authorized.append(self.headers["Authorization"])
                url = urlsplit(self.path)
                _, kind, number, verb = url.path.split("/")
                assert (kind, verb) == ("servers", "logs"), self.path
                agent.show_logs(self, number, parse_qs(url.query))

            def do_POST(self):
                agent.authorized.append(self.headers["Authorization"])
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                status, answer = agent.hear(self.path, body)
                self.answer(status, json.dumps(answer).encode())

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.beat()
        serve = functools.partial(self.http.serve_forever, poll_interval=0.02)
        self.threads = [threading.Thread(target=t, daemon=True)
                        for t in (serve, self.beat_on, self.do_work)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stopping.set()
        self.work.put(None)
        self.http.shutdown()
        self.http.server_close()
        for thread in self.threads:
            thread.join(DEADLINE_S)
        if kind is None:
            assert not self.mistakes, self.mistakes
