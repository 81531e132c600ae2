"""A stand-in for one of several nodes, on the way to a real Muster: it passes on what it is asked
when it leads, stands by when it does not, and can die with an answer in its hands."""

import http.client
import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    daemon_threads = True


class StandIn:
    """behind is the URL of the Muster that does what is asked; None = nobody does.

    leader: None = this one leads; "" = nobody does; else the URL where it says the leader is.
    dies: called with each request that was passed on, before its answer is; true = it is killed."""

    def __init__(self, behind=None):
        self.behind = behind
        self.leader = None
        self.stopping = False
        self.dies = lambda request: False
        self.answer = None  # (request) -> bool: answers by itself when it is true
        self.asked = []  # (method, path, headers)
        self.changed = threading.Condition()
        self.sockets = set()
        self.server = None
        self.port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                node.handle(self)

            do_GET = do_POST = do_DELETE = do_PUT = handle_any

            def setup(self):
                super().setup()
                node.sockets.add(self.connection)

            def finish(self):
                node.sockets.discard(self.connection)
                try:
                    super().finish()
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.server:
            self.kill()

    def kill(self):
        server, self.server = self.server, None
        server.socket.shutdown(2)  # nobody is let in from now on, whatever else takes a while
        threading.Thread(target=self.end, args=(server,), daemon=True).start()
        for socket in list(self.sockets):
            try:
                socket.shutdown(2)
            except OSError:
                pass

    @staticmethod
    def end(server):
        server.shutdown()
        server.server_close()

    def handle(self, request):
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length)
        with self.changed:
            self.asked.append((request.command, request.path, dict(request.headers)))
            self.changed.notify_all()
        if self.answer and self.answer(request):
            return
        if self.stopping:
            self.give(request, 503, {"error": {"code": "busy", "message": "Muster is stopping."}})
        elif self.leader is not None:
            self.stand_by(request)
        elif self.behind:
            self.pass_on(request, body)

    def stand_by(self, request):
        if self.leader:
            text = f"This node is a standby; the leader of cell default is at {self.leader}"
            self.give(request, 307, {"error": {"code": "not_the_leader", "message": text}},
                      Location=self.leader + request.path)
        else:
            self.give(request, 503, {"error": {
                "code": "no_leader", "message": "No node leads cell default now. Ask again."}})

    def give(self, request, status, answer, **head):
        text = json.dumps(answer).encode()
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", **head}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def pass_on(self, request, body):
        there = http.client.HTTPConnection(self.behind.removeprefix("http://"), timeout=30)
        head = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "connection")}
        there.request(request.command, request.path, body=body or None, headers=head)
        answer = there.getresponse()
        if self.dies(request):
            answer.read()
            self.kill()
            return
        request.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date"):
                request.send_header(name, value)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        try:
            while piece := answer.read1(1 << 16):
                request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                request.wfile.flush()
            request.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        there.close()

    def wait(self, condition, what, timeout_s=20):
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), what

    def keys(self):
        return [head.get("Idempotency-Key") for _, _, head in self.asked]


class StandInDoor:
    """The same for one of the chat ports. response: the command of the greeting's answer.

    loses(data): called with what Muster says; true = this is not passed on, and the node is killed."""

    def __init__(self, response, behind):
        self.response = response
        self.behind = behind
        self.leader = None
        self.loses = lambda data: False
        self.frozen = False  # it lets people in, and says nothing any more
        self.greeted = 0
        self.changed = threading.Condition()
        self.sockets = set()
        self.listener = None
        self.address = None

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "%s:%d" % self.listener.getsockname()
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.listener:
            self.kill()

    def accept(self, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def kill(self):
        listener, self.listener = self.listener, None
        listener.shutdown(2)
        listener.close()
        for peer in list(self.sockets):
            self.drop(peer)

    def drop(self, peer):
        self.sockets.discard(peer)
        try:
            peer.shutdown(2)
        except OSError:
            pass

    def serve(self, peer):
        self.sockets.add(peer)
        with self.changed:
            self.greeted += 1
            leader = self.leader
            self.changed.notify_all()
        if self.frozen:
            return
        if leader is None:
            there = socket.create_connection(self.behind)
            self.sockets.add(there)
            threading.Thread(target=self.pump, args=(there, peer, True), daemon=True).start()
            self.pump(peer, there, False)
            return
        where = f"the leader of cell default is at {leader}" if leader else \
            "nobody leads cell default now"
        text = f"This node is a standby; {where}".encode()
        try:
            peer.recv(4096)
            peer.sendall(struct.pack("<HHB", 3 + len(text) + 1, self.response, 0) + text + b"\0")
        except OSError:
            pass
        self.drop(peer)

    def pump(self, source, sink, is_musters):
        try:
            while data := source.recv(1 << 16):
                if self.frozen:
                    continue
                if is_musters and self.loses(data):
                    self.kill()
                    return
                sink.sendall(data)
        except OSError:
            pass
        self.drop(source)
        self.drop(sink)

    def wait(self, condition, what, timeout_s=20):
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), what
