"""A Kubernetes API server with Agones in it: the few endpoints that an allocator uses, as they are
documented, and strict. What a real one would refuse is refused, and what nobody should ask for, or
must never be written, is kept in `faults`, which a test expects to be empty."""

import base64
import contextlib
import copy
import json
import ssl
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE_S = 30.0
TOKENS = "quilkin.dev/tokens"
FLEET = "agones.dev/fleet"


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": message, "reason": reason, "code": code}


class Lost(Exception):
    """The connection ends without an answer."""


def merge(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge(target.get(key), value)
    return target


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that goes away


class Kube:
    """With `token`, requests must show it. With `tls` (a certificate and a key), it speaks TLS."""

    def __init__(self, token=None, tls=None, clients=None, bookmark_s=0.2):
        self.changed = threading.Condition()
        self.token = token
        self.bookmark_s = bookmark_s
        self.version = 1000
        self.floor = 1000  # older versions are forgotten
        self.objects = {}  # (namespace, name)
        self.events = []  # (version, type, object)
        self.continues = {}
        self.requests = []  # (kind, name or "", body or None)
        self.faults = []
        self.plans = {}  # kind -> what is to go wrong, one after another
        self.watches = {}
        self.watches_ended = 0
        self.held = False  # watches say nothing
        self.next_port = 7000
        self.made = 0
        self.replenish = False
        self.delete_when_over = True
        self.piece = None  # bytes per piece of a watch
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.kube = self
        scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            if clients:  # they must show a certificate that this signed
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(clients)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.port = self.http.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.cut_watches()
        self.http.shutdown()
        self.http.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ── what a test does ────────────────────────────────────────────────────────────────────────

    def add(self, fleet, n=1, namespace="default", state="Ready", annotations=None):
        """GameServers that wait; returns their names."""
        with self.changed:
            return [self.make(fleet, namespace, state, annotations) for _ in range(n)]

    def make(self, fleet, namespace, state, annotations):
        self.made += 1
        self.next_port += 1
        name = f"{fleet}-{self.made:05d}"
        self.store("ADDED", {
            "apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{self.made}",
                         "labels": {FLEET: fleet}, "annotations": dict(annotations or {})},
            "spec": {"container": "game"},
            "status": {"state": state, "address": f"10.0.0.{self.made % 250 + 1}", "nodeName": "node",
                       "ports": [{"name": "metrics", "port": 9000 + self.made % 1000},
                                 {"name": "game", "port": self.next_port}]},
        })
        return name

    def get(self, name, namespace="default"):
        with self.changed:
            return copy.deepcopy(self.objects.get((namespace, name)))

    def all(self, state=None):
        with self.changed:
            return [copy.deepcopy(o) for o in self.objects.values()
                    if state in (None, o["status"]["state"])]

    def tokens(self, name):
        return [t for t in self.get(name)["metadata"]["annotations"].get(TOKENS, "").split(",") if t]

    def set_state(self, name, state, namespace="default"):
        with self.changed:
            o = copy.deepcopy(self.objects[namespace, name])
            o["status"]["state"] = state
            self.store("MODIFIED", o)

    def annotate(self, name, annotations, namespace="default"):
        """Somebody else writes."""
        with self.changed:
            o = self.objects[namespace, name]
            self.store("MODIFIED", merge(o, {"metadata": {"annotations": annotations}}))

    def delete(self, name, namespace="default"):
        with self.changed:
            self.store("DELETED", copy.deepcopy(self.objects[namespace, name]))

    def compact(self):
        """Forgets every older version: whoever watches from one must list again."""
        with self.changed:
            self.version += 1
            self.floor = self.version
            self.events.clear()
            self.continues.clear()

    def plan(self, kind, *faults):
        """What happens to the next requests of a kind: a status, or a word (see `meet`)."""
        with self.changed:
            self.plans.setdefault(kind, []).extend(faults)

    def forget_plans(self):
        with self.changed:
            self.plans.clear()

    def cut_watches(self):
        with self.changed:
            for handler in self.watches.values():
                handler.cut = True
            self.changed.notify_all()

    @contextlib.contextmanager
    def held_watches(self):
        """What happens meanwhile they tell afterwards, in order."""
        self.held = True
        try:
            yield
        finally:
            with self.changed:
                self.held = False
                self.changed.notify_all()

    def await_(self, what, condition, timeout_s=PATIENCE_S):
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), \
                f"not in time: {what}; asked: {[r[:2] for r in self.requests[-20:]]}"

    def kinds(self, kind):
        with self.changed:
            return [r for r in self.requests if r[0] == kind]

    @property
    def writes(self):
        with self.changed:
            return [r for r in self.requests if r[0] in ("allocate", "patch")]

    # ── objects ─────────────────────────────────────────────────────────────────────────────────

    def store(self, kind, o):
        """Under the lock. Each write has a version of its own."""
        self.version += 1
        o["metadata"]["resourceVersion"] = str(self.version)
        key = o["metadata"]["namespace"], o["metadata"]["name"]
        if kind == "DELETED":
            self.objects.pop(key)
        else:
            self.objects[key] = o
        self.events.append((self.version, kind, copy.deepcopy(o)))
        self.check_tokens(o)
        self.changed.notify_all()

    def check_tokens(self, o):
        """A proxy sends to every endpoint with a token; its endpoints are those that are allocated."""
        text = o["metadata"].get("annotations", {}).get(TOKENS)
        if text is None or o["status"]["state"] != "Allocated":
            return
        tokens = text.split(",")
        if "" in tokens or " " in text or len(set(tokens)) != len(tokens):
            self.faults.append(f"not a list of tokens: {text!r}")
        for other in self.objects.values():
            if other["metadata"]["name"] == o["metadata"]["name"] or \
                    other["status"]["state"] != "Allocated":
                continue
            held = other["metadata"].get("annotations", {}).get(TOKENS, "").split(",")
            both = set(tokens) & set(held) - {""}
            if both:
                self.faults.append(f"{both} on {o['metadata']['name']} and {other['metadata']['name']}")

    def over(self, o):
        """What Agones' controller does with one that is over."""
        if not self.delete_when_over:
            return
        gone = copy.deepcopy(o)
        self.store("DELETED", gone)
        if self.replenish:
            self.make(o["metadata"]["labels"][FLEET], o["metadata"]["namespace"], "Ready", None)

    def matches(self, o, selector):
        if not selector:
            return True
        key, _, value = selector.partition("=")
        return o["metadata"]["labels"].get(key) == value

    # ── requests ────────────────────────────────────────────────────────────────────────────────

    def meet(self, kind):
        """Under the lock. The planned fault of this request, or None."""
        plan = self.plans.get(kind)
        return plan.pop(0) if plan else None

    def list(self, namespace, query):
        limit = int(query.get("limit", 0))
        if "resourceVersion" in query:
            self.faults.append("a list from a version may be stale")
        if "continue" in query:
            if query["continue"] not in self.continues:
                raise Refused(410, "Expired", "The provided continue parameter is too old")
            version, rest = self.continues.pop(query["continue"])
        else:
            version = self.version
            rest = [copy.deepcopy(o) for (ns, _), o in sorted(self.objects.items())
                    if ns == namespace and self.matches(o, query.get("labelSelector"))]
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        metadata = {"resourceVersion": str(version)}
        if rest:
            token = base64.b64encode(f"{version}/{len(rest)}/{len(self.continues)}+=".encode()).decode()
            self.continues[token] = (version, rest)
            metadata.update({"continue": token, "remainingItemCount": len(rest)})
        for o in page:  # a list says once what its items are
            o.pop("kind"), o.pop("apiVersion")
        return {"apiVersion": "agones.dev/v1", "kind": "GameServerList", "metadata": metadata,
                "items": page}

    def find(self, namespace, name):
        o = self.objects.get((namespace, name))
        if not o:
            raise Refused(404, "NotFound", f'gameservers.agones.dev "{name}" not found')
        return o

    def patch(self, namespace, name, body):
        o = self.find(namespace, name)
        metadata = body.get("metadata", {})
        if "resourceVersion" not in metadata:
            self.faults.append("a patch against no version")
        elif metadata["resourceVersion"] != o["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", "the object has been modified; please apply your changes "
                                           "to the latest version and try again")
        for key, value in (metadata.get("annotations") or {}).items():
            if value is not None and not isinstance(value, str):
                raise Refused(422, "Invalid", f"metadata.annotations: {key} must be a string")
        if set(body) - {"metadata", "status"} or set(metadata) - {"resourceVersion", "annotations"}:
            self.faults.append(f"a patch of too much: {body}")
        if "status" in body and body["status"] != {"state": "Shutdown"}:
            self.faults.append(f"a patch of the status: {body['status']}")
        after = merge(o, body)
        if after["metadata"]["annotations"].get(TOKENS) == "":
            self.faults.append("an empty list of tokens must be no annotation")
        if after == o:
            return copy.deepcopy(o)  # nothing is written
        after["metadata"] = dict(after["metadata"])
        self.store("MODIFIED", after)
        answer = copy.deepcopy(after)
        if "status" in body:
            self.over(after)
        return answer

    def allocate(self, namespace, body):
        if body.get("apiVersion") != "allocation.agones.dev/v1" or \
                body.get("kind") != "GameServerAllocation":
            raise Refused(400, "BadRequest", "this is no GameServerAllocation")
        spec = body["spec"]
        annotations = spec.get("metadata", {}).get("annotations", {})
        if not all(isinstance(v, str) for v in annotations.values()):
            raise Refused(422, "Invalid", "spec.metadata.annotations: must be strings")
        for selector in spec["selectors"]:
            labels = selector["matchLabels"]
            for (ns, name), o in sorted(self.objects.items()):
                if ns == namespace and o["status"]["state"] == "Ready" and \
                        all(o["metadata"]["labels"].get(k) == v for k, v in labels.items()):
                    return self.allocated(body, o, annotations)
        return {**body, "metadata": {"creationTimestamp": None},
                "status": {"state": "UnAllocated", "gameServerName": ""}}

    def allocated(self, body, o, annotations):
        after = merge(o, {"metadata": {"annotations": annotations}, "status": {"state": "Allocated"}})
        self.store("MODIFIED", after)
        status = {"state": "Allocated", "gameServerName": o["metadata"]["name"],
                  "ports": o["status"]["ports"], "address": o["status"]["address"],
                  "nodeName": "node", "source": "local",
                  "metadata": {"labels": o["metadata"]["labels"],
                               "annotations": after["metadata"]["annotations"]}}
        return {**body, "metadata": {"name": o["metadata"]["name"], "namespace": "default"},
                "status": status}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True
    cut = False

    def log_message(self, *_):
        pass

    @property
    def kube(self):
        return self.server.kube

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def read_body(self):
        n = int(self.headers.get("Content-Length", 0))
        return self.rfile.read(n) if n else b""

    def handle_one(self, method):
        body = self.read_body()
        try:
            answer = self.dispatch(method, body)
        except Refused as e:
            answer = (e.status["code"], e.status)
        except (Lost, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return
        if answer:
            self.answer(*answer)

    def do_GET(self):
        self.handle_one("GET")

    def do_POST(self):
        self.handle_one("POST")

    def do_PATCH(self):
        self.handle_one("PATCH")

    def do_PUT(self):
        self.handle_one("PUT")

    def do_DELETE(self):
        self.handle_one("DELETE")

    # ── which request it is ─────────────────────────────────────────────────────────────────────

    def dispatch(self, method, raw):
        kube = self.kube
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=bool(url.query)))
        if kube.token and self.headers.get("Authorization") != "Bearer " + kube.token:
            with kube.changed:
                kube.requests.append(("unauthorized", "", None))
                kube.changed.notify_all()
            raise Refused(401, "Unauthorized", "Unauthorized")
        part = url.path.strip("/").split("/")
        head = part[:4] + part[5:6] if len(part) >= 6 else part
        namespace, name = (part[4], part[6] if len(part) > 6 else "") if len(part) > 5 else ("", "")
        if head == ["apis", "agones.dev", "v1", "namespaces", "gameservers"]:
            if method == "GET" and not name:
                if query.pop("watch", "") in ("1", "true"):
                    return self.watch(namespace, query)
                return self.do("list", "", None, lambda: kube.list(namespace, query))
            if method == "GET":
                return self.do("get", name, None, lambda: copy.deepcopy(kube.find(namespace, name)))
            if method == "PATCH" and name:
                return self.patch(namespace, name, raw)
        if head == ["apis", "allocation.agones.dev", "v1", "namespaces", "gameserverallocations"] \
                and method == "POST" and not name:
            body = self.json_body(raw, "application/json")
            return self.do("allocate", "", body, lambda: kube.allocate(namespace, body), 201)
        with kube.changed:
            kube.faults.append(f"{method} {self.path}")
        raise Refused(404, "NotFound", "the server could not find the requested resource")

    def json_body(self, raw, content_type):
        if self.headers.get("Content-Type") != content_type:
            with self.kube.changed:
                self.kube.faults.append(f"Content-Type {self.headers.get('Content-Type')}")
            raise Refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        try:
            return json.loads(raw)
        except ValueError:
            raise Refused(400, "BadRequest", "the body is no JSON") from None

    def patch(self, namespace, name, raw):
        body = self.json_body(raw, "application/merge-patch+json")
        return self.do("patch", name, body, lambda: self.kube.patch(namespace, name, body))

    def do(self, kind, name, body, act, code=200):
        """A number: that is answered, and nothing done. "drop": not even that. "lost": it is done,
        and the answer is lost. "slow": it is done a second later. "contention": of allocations.
        "race": somebody else writes first. A function is called first. An Event: it is done, and
        answered when that is set."""
        kube = self.kube
        with kube.changed:
            kube.requests.append((kind, name, body))
            kube.changed.notify_all()
            fault = kube.meet(kind)
            if fault == "slow":
                kube.changed.wait(1.0)
            if callable(fault):
                fault()
            if fault == "drop":
                raise Lost
            if fault == "contention":
                return 201, {**body, "status": {"state": "Contention"}}
            if fault == "race":
                other = copy.deepcopy(kube.find("default", name))
                other["metadata"]["annotations"]["somebody"] = str(kube.version)
                kube.store("MODIFIED", other)
            if isinstance(fault, int):
                raise Refused(fault, "Fault", f"planned {fault}")
            answer = act()
            if fault == "lost":
                raise Lost
        if isinstance(fault, threading.Event):
            fault.wait(PATIENCE_S)
        return code, answer

    # ── watches ─────────────────────────────────────────────────────────────────────────────────

    def send_line(self, kind, o):
        data = (json.dumps({"type": kind, "object": o}) + "\n").encode()
        size = self.kube.piece or len(data)
        for i in range(0, len(data), size):
            piece = data[i:i + size]
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            self.wfile.flush()

    def send_raw_line(self, data):
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()

    def watch(self, namespace, query):
        kube = self.kube
        with kube.changed:
            kube.requests.append(("watch", query.get("resourceVersion", ""), None))
            kube.changed.notify_all()
            if not query.get("resourceVersion", "").isdigit() or \
                    query.get("allowWatchBookmarks") != "true" or "timeoutSeconds" not in query:
                kube.faults.append(f"a watch without version, bookmarks or an end: {query}")
            fault = kube.meet("watch")
        if isinstance(fault, int):
            raise Refused(fault, "Fault", f"planned {fault}")
        if fault == "drop":
            raise Lost
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        if isinstance(fault, bytes):
            self.send_raw_line(fault)
        self.follow(namespace, query)
        return None

    def follow(self, namespace, query):
        kube = self.kube
        at = int(query["resourceVersion"])
        end = time.monotonic() + int(query["timeoutSeconds"])
        with kube.changed:
            kube.watches[id(self)] = self
            self.cut = False
            kube.changed.notify_all()
        try:
            while time.monotonic() < end:
                with kube.changed:
                    kube.changed.wait_for(lambda: self.cut or (kube.version > at and not kube.held),
                                          kube.bookmark_s)
                    if self.cut:
                        raise Lost
                    if kube.held:
                        continue
                    news = [e for e in kube.events if e[0] > at]
                    too_old = at < kube.floor and kube.version > at
                    now = kube.version
                if too_old:
                    self.send_line("ERROR", Refused(410, "Expired", "too old resource version: "
                                                                    f"{at} ({now})").status)
                    break
                for _, kind, o in news:
                    if o["metadata"]["namespace"] == namespace and \
                            kube.matches(o, query.get("labelSelector")):
                        self.send_line(kind, o)
                at = now
                if not news:
                    self.send_line("BOOKMARK", {"kind": "GameServer", "apiVersion": "agones.dev/v1",
                                                "metadata": {"resourceVersion": str(at)}})
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        finally:
            with kube.changed:
                kube.watches.pop(id(self), None)
                kube.watches_ended += 1
                kube.changed.notify_all()
