"""A control plane that decides nothing: it takes heartbeats and events as docs/agent-protocol.md has
it, keeps them, and answers as a test wants. It can go away and come back."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEADLINE_S = 30.0


class Refused(Exception):
    """What an `answer` raises to refuse an event."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.error = {"code": code, "message": message, "status": status}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


class FakeControl:
    """answer(event) gives the result of each event, once: a repeat of (server, seq) gets the first
    answer again."""

    def __init__(self, token="agents-token", gives="controls-token"):
        self.token = token
        self.gives = gives
        self.changed = threading.Condition()
        self.beats = []
        self.events = []  # each (server, seq) once, in the order taken
        self.repeats = 0
        self.batches = []
        self.answers = {}
        self.status = 200  # what batches are answered with
        self.redirect = None  # a standby: where the leader is …
        self.nobody_leads = False  # … or that there is none
        self.shown = []  # each Authorization, by path
        self.probes = 0
        self.thawed = threading.Event()  # cleared: it accepts and never answers, as if stopped
        self.thawed.set()
        self.archives = {}
        self.connections = {}  # path -> set of client ports
        self.answer = lambda event: {}
        self.port = 0
        self.server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        control = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                control.thawed.wait(DEADLINE_S)
                status, answer, head = control.take(self, json.loads(body))
                text = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in head.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.write(text)

            def do_GET(self):
                control.thawed.wait(DEADLINE_S)
                status, body, head = control.give(self)
                self.send_response(status)
                for name, value in head.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.write(body)

            def write(self, text):
                try:
                    self.wfile.write(text)
                except OSError:
                    pass  # whoever asked has gone

            def setup(self):
                super().setup()
                control.open_sockets.add(self.connection)

            def finish(self):
                control.open_sockets.discard(self.connection)
                super().finish()

            def log_message(self, *_):
                pass

        self.open_sockets = set()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self):
        """Gone, with all its connections; nobody listens on its port."""
        self.server.shutdown()
        self.server.server_close()
        for socket in list(self.open_sockets):
            try:
                socket.shutdown(2)
            except OSError:
                pass
        self.server = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.server:
            self.stop()

    def take(self, request, body):
        with self.changed:
            ports = self.connections.setdefault(request.path, set())
            ports.add(request.client_address[1])
            answer = self.take_locked(request, body)
            self.changed.notify_all()
            return answer

    def give(self, request):
        """What is asked with GET: who leads, and archives."""
        with self.changed:
            leads = not self.redirect and not self.nobody_leads
            if request.path == "/leader":
                self.probes += 1
                self.changed.notify_all()
                return 200 if leads else 503, b'{"leader":%s}' % str(leads).lower().encode(), {}
            self.shown.append((request.path, request.headers["Authorization"]))
            if not leads:
                status, answer, head = self.stand_by(request)
                return status, json.dumps(answer).encode(), head
            digest = request.path.removeprefix("/v1/deployments/").removesuffix("/archive")
            found = digest in self.archives
            return 200 if found else 404, self.archives.get(digest, b"{}"), {}

    def stand_by(self, request):
        if self.redirect:
            error = {"code": "not_the_leader", "message": f"The leader is at {self.redirect}"}
            return 307, {"error": error}, {"Location": self.redirect + request.path}
        error = {"code": "no_leader", "message": "No node leads cell default now. Ask again."}
        return 503, {"error": error}, {"Retry-After": "1"}

    def take_locked(self, request, body):
        self.shown.append((request.path, request.headers["Authorization"]))
        if self.redirect or self.nobody_leads:
            return self.stand_by(request)
        if request.headers["Authorization"] != f"Bearer {self.token}":
            return 401, {"error": {"code": "bad_access_token", "message": "Who are you?"}}, {}
        if request.path == "/v1/agent/heartbeat":
            self.beats.append(body)
            return 200, {"host": "3", "token": self.gives, "interval_ms": 5000}, {}
        assert request.path == "/v1/agent/events", request.path
        self.batches.append(body)
        if self.status != 200:
            return self.status, {"error": {"code": "internal", "message": "Not now."}}, {}
        return 200, {"answers": [self.settle(event) for event in body["events"]]}, {}

    def settle(self, event):
        number = (event["server"], event["seq"])
        if number in self.answers:
            self.repeats += 1
            return self.answers[number]
        self.events.append(event)
        answer = {"server": event["server"], "seq": event["seq"]}
        try:
            answer["result"] = self.answer(event)
        except Refused as refused:
            answer["error"] = refused.error
        self.answers[number] = answer
        return answer

    def wait(self, condition, what, timeout_s=DEADLINE_S):
        with self.changed:
            found = self.changed.wait_for(condition, timeout_s)
            assert found, f"no {what} in {timeout_s} s; events: {self.events}"
            return found

    def of(self, server, kind=None):
        return [e for e in self.events
                if e["server"] == str(server) and kind in (None, e["event"])]

    def await_event(self, server, kind, n=1, timeout_s=DEADLINE_S):
        self.wait(lambda: len(self.of(server, kind)) >= n, f"{kind} of {server}", timeout_s)
        return self.of(server, kind)[n - 1]

    def await_beat(self, condition=lambda beat: True, timeout_s=DEADLINE_S):
        """The next heartbeat from now on of which that is true."""
        with self.changed:
            seen = len(self.beats)
        self.wait(lambda: any(map(condition, self.beats[seen:])), "such heartbeat", timeout_s)
        return next(beat for beat in self.beats[seen:] if condition(beat))
