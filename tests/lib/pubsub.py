"""Google Pub/Sub as its REST reference describes it, for tests: topics, subscriptions, pull,
acknowledge, modifyAckDeadline, publish; the token endpoint, the metadata server and the public keys.

It is strict: what Google refuses with 400 is refused here (unknown members, no base64, too many
messages), an acknowledgement that comes too late does nothing, and a message that nobody
acknowledges in time is delivered again under another id. Faults are put in with `fail`, `cut` and
`stop`. Everything that a test waits for is an event (`wait`).
"""

import base64
import binascii
import contextlib
import functools
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SCOPES = {"https://www.googleapis.com/auth/pubsub", "https://www.googleapis.com/auth/cloud-platform"}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
WAIT_S = 20
PUBLISH_MAX = 1000
REQUEST_MAX = 10 * 1000 * 1000
ACK_REQUEST_MAX = 512 * 1024


@functools.cache
def private_key(name):
    """The same key for the same name: making one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Refusal(Exception):
    def __init__(self, code, status, message):
        super().__init__(message)
        self.code, self.status, self.message = code, status, message


def bad(message):
    return Refusal(400, "INVALID_ARGUMENT", message)


class Cut(Exception):
    """The connection ends without an answer."""


class Message:
    def __init__(self, number, data, attributes):
        self.number, self.data, self.attributes = str(number), data, attributes
        self.published = time.time()

    def json(self):
        shown = {"messageId": self.number,
                 "publishTime": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.published))}
        if self.data:
            shown["data"] = base64.b64encode(self.data).decode()
        if self.attributes:
            shown["attributes"] = self.attributes
        return shown


class Delivery:
    """One message of a subscription."""

    def __init__(self, message):
        self.message, self.attempts = message, 0
        self.ack_id, self.due = None, 0.0  # while somebody has it


class Subscription:
    def __init__(self, topic, deadline_s, counts):
        self.topic, self.deadline_s, self.counts = topic, deadline_s, counts
        self.waiting, self.out, self.done = [], {}, 0

    def expire(self, now):
        late = [d for d in self.out.values() if d.due <= now]
        for delivery in late:
            del self.out[delivery.ack_id]
            delivery.ack_id = None
        self.waiting = late + self.waiting

    def take(self, n, now):
        taken, self.waiting = self.waiting[:n], self.waiting[n:]
        for delivery in taken:
            delivery.attempts += 1
            delivery.ack_id = "ack:" + secrets.token_urlsafe(24)
            delivery.due = now + self.deadline_s
            self.out[delivery.ack_id] = delivery
        return taken


class PubSub:
    def __init__(self, project="demo", auth=False, hold_s=20):
        self.project, self.auth, self.hold_s = project, auth, hold_s
        self.changed = threading.Condition()
        self.topics, self.subscriptions = {}, {}
        self.faults = defaultdict(list)  # "pull", "results:publish" -> what happens to the next
        self.requests = defaultdict(int)
        self.forbidden = set()
        self.published = defaultdict(list)
        self.number = 1000
        self.tokens = {}  # -> when it ends
        self.token_s = 3600
        self.tokens_given = defaultdict(int)
        self.account = "muster@demo.iam.gserviceaccount.com"
        self.account_key = private_key("account")
        self.google_keys = {}
        self.add_google_key("key-1")
        self.server, self.port = None, 0
        self.start()

    # -- life

    def start(self):
        """Also again, at the same port: nothing was lost meanwhile."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *args):
                pass

            def do_GET(self):
                fake.serve(self, "GET")

            def do_POST(self):
                fake.serve(self, "POST")

            def do_PUT(self):
                fake.serve(self, "PUT")

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

            def __init__(self, *args):
                self.open = set()
                super().__init__(*args)

            def process_request(self, request, address):
                self.open.add(request)
                super().process_request(request, address)

            def shutdown_request(self, request):
                self.open.discard(request)
                super().shutdown_request(request)

            def handle_error(self, request, address):
                pass  # whoever asked has gone

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02},
                         daemon=True).start()

    def stop(self):
        """Nobody is there any more; connections are cut."""
        server, self.server = self.server, None
        if not server:
            return
        server.shutdown()
        server.server_close()
        for request in list(server.open):
            try:
                request.shutdown(2)
            except OSError:
                pass
        with self.changed:
            self.changed.notify_all()

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"http://{self.host}"

    # -- what a test says and sees

    def topic(self, name):
        self.topics.setdefault(name, [])
        return name

    def subscription(self, name, topic, deadline_s=10, counts=True):
        """counts: it has a dead-letter policy, so deliveryAttempt is told."""
        self.topic(topic)
        self.subscriptions[name] = Subscription(topic, deadline_s, counts)
        self.topics[topic].append(name)
        return name

    def publish(self, topic, data, attributes=None):
        if isinstance(data, (dict, list)):
            data = json.dumps(data)
        if isinstance(data, str):
            data = data.encode()
        with self.changed:
            return self._publish(topic, data, attributes or {}).number

    def _publish(self, topic, data, attributes):
        self.number += 1
        message = Message(self.number, data, attributes)
        self.published[topic].append(message)
        for name in self.topics[topic]:
            self.subscriptions[name].waiting.append(Delivery(message))
        self.changed.notify_all()
        return message

    def sent(self, topic):
        """What came to a topic, in order."""
        with self.changed:
            return list(self.published[topic])

    def results(self, topic):
        return [json.loads(m.data) for m in self.sent(topic)]

    def outstanding(self, name):
        """Messages that nobody has acknowledged."""
        with self.changed:
            s = self.subscriptions[name]
            return len(s.waiting) + len(s.out)

    def wait(self, condition, timeout_s=WAIT_S):
        """Until condition() is true, asked whenever something happened here."""
        end = time.monotonic() + timeout_s
        with self.changed:
            while True:
                value = condition()
                if value:
                    return value
                left = end - time.monotonic()
                assert left > 0, "it did not happen in time"
                self.changed.wait(min(left, 0.2))

    def deliver_again(self, name):
        """As if the deadlines of all that is out had passed."""
        with self.changed:
            s = self.subscriptions[name]
            for delivery in s.out.values():
                delivery.due = 0
            self.changed.notify_all()

    def fail(self, name, status, times=1):
        """The next requests of that verb ("pull"), or of that name and verb ("results:publish")."""
        self.faults[name] += [status] * times

    def garble(self, name, body):
        """The next is answered with this, and nothing is done."""
        self.faults[name].append(body)

    def cut(self, name, times=1, after=False):
        """after: it was done, and the answer is lost."""
        self.faults[name] += ["after" if after else "before"] * times

    def heal(self):
        with self.changed:
            self.faults.clear()

    def forget_tokens(self):
        with self.changed:
            self.tokens.clear()

    # -- tokens

    def credentials(self, path, key=None):
        """The file of the service account."""
        pem = (key or self.account_key).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()).decode()
        path.write_text(json.dumps({
            "type": "service_account", "project_id": self.project, "private_key_id": "k1",
            "private_key": pem, "client_email": self.account, "client_id": "1",
            "token_uri": self.url + "/token"}))
        return path

    def add_google_key(self, name):
        self.google_keys[name] = private_key(name)

    def oidc(self, audience, email, key="key-1", signer=None, algorithm="RS256", **claims):
        """The token that a push carries."""
        now = int(time.time())
        body = {"iss": "https://accounts.google.com", "aud": audience, "email": email,
                "email_verified": True, "iat": now, "exp": now + 3600, "sub": "1", "azp": "1"}
        body.update(claims)
        body = {k: v for k, v in body.items() if v is not None}
        return jwt.encode(body, signer or self.google_keys[key], algorithm, headers={"kid": key})

    def new_token(self, whence):
        token = "ya29." + secrets.token_urlsafe(30)
        with self.changed:
            self.tokens[token] = time.monotonic() + self.token_s
            self.tokens_given[whence] += 1
            self.changed.notify_all()
        return {"access_token": token, "expires_in": self.token_s, "token_type": "Bearer"}

    def exchange(self, handler, body):
        from urllib.parse import parse_qs
        if handler.headers.get("Content-Type") != "application/x-www-form-urlencoded":
            raise bad("no form")
        form = {k: v[0] for k, v in parse_qs(body.decode(), strict_parsing=True).items()}
        if form.get("grant_type") != GRANT:
            raise bad("unsupported_grant_type")
        try:
            head = jwt.get_unverified_header(form["assertion"])
            claims = jwt.decode(form["assertion"], self.account_key.public_key(), ["RS256"],
                                audience=self.url + "/token", issuer=self.account,
                                options={"require": ["iss", "aud", "iat", "exp"]})
        except (jwt.PyJWTError, KeyError) as e:
            raise bad(f"invalid_grant: {e}") from e
        if head.get("kid") != "k1" or claims["exp"] - claims["iat"] > 3600:
            raise bad("invalid_grant")
        if not SCOPES & set(claims.get("scope", "").split()):
            raise bad("invalid_scope")
        return self.new_token("account")

    def jwks(self):
        def number(n):
            raw = n.to_bytes((n.bit_length() + 7) // 8, "big")
            return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

        keys = []
        for name, key in self.google_keys.items():
            public = key.public_key().public_numbers()
            keys.append({"kid": name, "kty": "RSA", "alg": "RS256", "use": "sig",
                         "n": number(public.n), "e": number(public.e)})
        return {"keys": keys}

    # -- requests

    def serve(self, handler, method):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        whole = handler.path.rsplit("/", 1)[1]  # "results:publish"
        try:
            fault = self.fault(whole, whole.rsplit(":", 1)[-1])
            answer = fault if isinstance(fault, bytes) else self.answer(handler, method, body)
            if fault == "after":
                raise Cut
            self.reply(handler, 200, answer)
        except Refusal as e:
            self.reply(handler, e.code, {"error": {"code": e.code, "message": e.message,
                                                   "status": e.status}})
        except Cut:
            handler.close_connection = True
        finally:
            with self.changed:
                self.changed.notify_all()

    def fault(self, *names):
        fault = None
        with self.changed:
            for name in dict.fromkeys(names):
                self.requests[name] += 1
                if fault is None and self.faults[name]:
                    fault = self.faults[name].pop(0)
        if fault == "before":
            raise Cut
        if isinstance(fault, int):
            raise Refusal(fault, "UNAVAILABLE", f"injected {fault}")
        return fault

    def reply(self, handler, status, answer):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json; charset=UTF-8")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        handler.wfile.flush()

    def answer(self, handler, method, body):
        if method == "POST" and handler.path == "/token":
            return self.exchange(handler, body)
        if method == "GET" and handler.path == METADATA:
            if handler.headers.get("Metadata-Flavor") != "Google":
                raise Refusal(403, "PERMISSION_DENIED", "Missing Metadata-Flavor:Google header.")
            return self.new_token("metadata")
        if method == "GET" and handler.path == "/oauth2/v3/certs":
            return self.jwks()
        found = re.fullmatch(r"/v1/projects/([^/]+)/(topics|subscriptions)/([^/:]+)(?::(\w+))?",
                             handler.path)
        if not found:
            raise Refusal(404, "NOT_FOUND", "no such path")
        self.authorize(handler)
        project, kind, name, verb = found.groups()
        if method == "PUT" and not verb:
            return self.create(kind, name, self.read(body))
        if project != self.project or name not in getattr(self, kind):
            raise Refusal(404, "NOT_FOUND", f"Resource not found (resource={name}).")
        if name in self.forbidden:
            raise Refusal(403, "PERMISSION_DENIED", "User not authorized to perform this action.")
        verbs = {("topics", "publish"): self.on_publish, ("subscriptions", "pull"): self.on_pull,
                 ("subscriptions", "acknowledge"): self.on_acknowledge,
                 ("subscriptions", "modifyAckDeadline"): self.on_modify}
        if method != "POST" or (kind, verb) not in verbs:
            raise Refusal(404, "NOT_FOUND", "no such method")
        if not (handler.headers.get("Content-Type") or "").startswith("application/json"):
            raise bad("Content-Type is not application/json")
        return verbs[kind, verb](name, self.read(body))

    def authorize(self, handler):
        header = handler.headers.get("Authorization")
        if not self.auth:
            if header:
                raise bad("an emulator was given a token")
            return
        with self.changed:
            ends = self.tokens.get((header or "").removeprefix("Bearer "), 0)
        if ends < time.monotonic():
            raise Refusal(401, "UNAUTHENTICATED",
                          "Request had invalid authentication credentials.")

    def create(self, kind, name, request):
        prefix = f"projects/{self.project}/"
        with self.changed:
            if name in getattr(self, kind):
                raise Refusal(409, "ALREADY_EXISTS", "Resource already exists in the project")
            if kind == "topics":
                self.members(request)
                self.topic(name)
                return {"name": f"{prefix}topics/{name}"}
            self.members(request, topic=str, ackDeadlineSeconds=int)
            topic = request.get("topic", "").removeprefix(prefix + "topics/")
            deadline_s = request.get("ackDeadlineSeconds", 10)
            if topic not in self.topics:
                raise Refusal(404, "NOT_FOUND", "Topic not found")
            if not 10 <= deadline_s <= 600:
                raise bad("Invalid ack deadline given")
            self.subscription(name, topic, deadline_s, counts=False)
            return {"name": f"{prefix}subscriptions/{name}", **request}

    @staticmethod
    def read(body):
        if len(body) > REQUEST_MAX:
            raise bad("Request payload size exceeds the limit: 10485760 bytes.")
        try:
            value = json.loads(body)
        except ValueError as e:
            raise bad(f"Invalid JSON payload received. {e}") from e
        if not isinstance(value, dict):
            raise bad("Invalid JSON payload received.")
        return value

    @staticmethod
    def members(value, **kinds):
        """Only these, of these types; all but those with a default None must be there."""
        for key in value:
            if key not in kinds:
                raise bad(f'Invalid JSON payload received. Unknown name "{key}": Cannot find field.')
        for key, kind in kinds.items():
            if key in value and (not isinstance(value[key], kind)
                                 or kind is int and isinstance(value[key], bool)):
                raise bad(f"Invalid value at '{key}'")

    def on_publish(self, name, request):
        self.members(request, messages=list)
        messages = request.get("messages") or []
        if not messages:
            raise bad("The value for message_count is too small. You passed 0 in the request")
        if len(messages) > PUBLISH_MAX:
            raise bad("The value for message_count is too large.")
        ready = [self.read_message(m) for m in messages]
        with self.changed:
            return {"messageIds": [self._publish(name, *m).number for m in ready]}

    def read_message(self, message):
        if not isinstance(message, dict):
            raise bad("Invalid value at 'messages'")
        self.members(message, data=str, attributes=dict, orderingKey=str)
        try:
            data = base64.b64decode(message.get("data", ""), validate=True)
        except binascii.Error as e:
            raise bad("Invalid value at 'messages[0].data' (TYPE_BYTES), Base64 decoding failed") \
                from e
        attributes = message.get("attributes", {})
        if not data and not attributes:
            raise bad("One or more messages are empty; each must have data or an attribute.")
        if len(attributes) > 100:
            raise bad("too many attributes")
        for key, value in attributes.items():
            if not isinstance(value, str) or not 0 < len(key.encode()) <= 256 or \
                    len(value.encode()) > 1024 or key.startswith("goog"):
                raise bad(f"attribute {key}")
        return data, attributes

    def on_pull(self, name, request):
        self.members(request, maxMessages=int, returnImmediately=bool)
        n = request.get("maxMessages", 0)
        if n < 1:
            raise bad("You have passed in a max_messages value that is too small")
        end = time.monotonic() + (0 if request.get("returnImmediately") else self.hold_s)
        server = self.server
        with self.changed:
            s = self.subscriptions[name]
            while True:
                now = time.monotonic()
                s.expire(now)
                taken = s.take(min(n, 1000), now)
                if taken or now >= end or self.server is not server:
                    break
                self.changed.wait(min(end - now, 0.2))
        if self.server is not server:
            raise Cut
        if not taken:
            return {}
        received = []
        for delivery in taken:
            one = {"ackId": delivery.ack_id, "message": delivery.message.json()}
            if s.counts:
                one["deliveryAttempt"] = delivery.attempts
            received.append(one)
        return {"receivedMessages": received}

    def ack_ids(self, request):
        ids = request.get("ackIds") or []
        if not ids:
            raise bad("No ack ids specified.")
        if not all(isinstance(i, str) and i.startswith("ack:") for i in ids):
            raise bad("You have passed an invalid ack ID to the service")
        if len(json.dumps(request)) > ACK_REQUEST_MAX:
            raise bad("Request payload size exceeds the limit: 524288 bytes.")
        return ids

    def on_acknowledge(self, name, request):
        self.members(request, ackIds=list)
        ids = self.ack_ids(request)
        with self.changed:
            s = self.subscriptions[name]
            s.expire(time.monotonic())
            for i in ids:
                if s.out.pop(i, None):
                    s.done += 1
        return {}

    def on_modify(self, name, request):
        self.members(request, ackIds=list, ackDeadlineSeconds=int)
        ids = self.ack_ids(request)
        seconds = request.get("ackDeadlineSeconds", 0)
        if not 0 <= seconds <= 600:
            raise bad("Invalid ack deadline given")
        with self.changed:
            s = self.subscriptions[name]
            now = time.monotonic()
            s.expire(now)
            for i in ids:
                if i in s.out:
                    s.out[i].due = now + seconds
        return {}


class Client:
    """Whoever asks for allocations and reads the results: speaks REST to a fake or an emulator."""

    def __init__(self, host, project="demo"):
        self.host, self.project = host, project
        self.base = f"http://{host}/v1/projects/{project}/"
        self.prefix = f"projects/{project}/"

    def ask(self, method, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def create(self, topic, *subscriptions):
        self.ask("PUT", f"topics/{topic}", {})
        for name in subscriptions:
            self.ask("PUT", f"subscriptions/{name}", {"topic": f"{self.prefix}topics/{topic}"})

    def publish(self, topic, *bodies):
        messages = [{"data": base64.b64encode(b if isinstance(b, bytes) else json.dumps(b).encode())
                     .decode()} for b in bodies]
        return self.ask("POST", f"topics/{topic}:publish", {"messages": messages})["messageIds"]

    def pull(self, name, n):
        """The data of the next n messages, acknowledged."""
        got, end = [], time.monotonic() + WAIT_S * 2
        while len(got) < n:
            assert time.monotonic() < end, f"{len(got)} of {n} messages came"
            received = self.ask("POST", f"subscriptions/{name}:pull",
                                {"maxMessages": 100}).get("receivedMessages", [])
            if received:
                self.ask("POST", f"subscriptions/{name}:acknowledge",
                         {"ackIds": [r["ackId"] for r in received]})
            got += [base64.b64decode(r["message"].get("data", "")) for r in received]
        return got


@contextlib.contextmanager
def emulator(folder):
    """Google's own, where it is installed: PUBSUB_EMULATOR is its command without arguments, else
    gcloud's is taken. None where there is none."""
    command = shlex.split(os.environ.get("PUBSUB_EMULATOR", ""))
    if not command and shutil.which("gcloud"):
        command = ["gcloud", "beta", "emulators", "pubsub", "start", f"--data-dir={folder}"]
    if not command:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    with open(folder / "emulator.log", "wb") as log:
        process = subprocess.Popen([*command, f"--host-port={host}"] if "gcloud" in command[0]
                                   else [*command, f"--host={host.split(':')[0]}",
                                         f"--port={host.split(':')[1]}"],
                                   stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://{host}/", timeout=5)
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, "no emulator"
                time.sleep(0.2)
        yield host
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)
