"""A login service of a test: it signs players' tokens, extends them and makes those of game servers,
as docs/login.md has it."""

import functools
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from http_api import Api
from players import Player

LIFE_S = 600


@functools.cache
def private_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def sign(account, scopes, **changes):
    now = int(time.time())
    claims = {"acc": account, "gms": "1", "sco": scopes, "iat": now, "exp": now + LIFE_S, **changes}
    return jwt.encode(claims, private_key(), algorithm="RS256")


def claims_of(token):
    return jwt.decode(token, options={"verify_signature": False})


def public_file(folder):
    """The public half, as an entry of access.keys."""
    path = folder / "login.pem"
    path.write_bytes(private_key().public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    return {"name": "login", "algorithm": "RS256", "file": str(path)}


class KnownPlayer(Player):
    """One whose token the login service has signed."""

    def __init__(self, world, account, scopes="game"):
        Api.__init__(self, world.muster, sign(account, scopes))
        self.account = account
        self.game = "arena/main/1.0"


def extend(form):
    own, by = claims_of(form["access_token"]), claims_of(form["extend"])
    given, asked = by["sco"].split(","), form["scopes"].split(",")
    more = [s for s in given if asked == ["*"] or s in asked]
    return sign(own["acc"], ",".join(own["sco"].split(",") + more))


class LoginService:
    """answer(path, form): status and JSON text. A context manager; it can be entered again, and is
    at the same port then."""

    def __init__(self):
        self.asked = queue.Queue()  # (path, form, Authorization)
        self.answer = self.take
        self.port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/login/"

    def take(self, path, form):
        if path == "/login/extend":
            return 200, json.dumps({"token": extend(form)})
        assert path == "/login/auth", path
        return 200, json.dumps({"access_token": sign(form["account"], form["scopes"])})

    def __enter__(self):
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
                form = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
                service.asked.put((self.path, form, self.headers["Authorization"]))
                status, body = service.answer(self.path, form)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body.encode())
                except OSError:
                    pass  # nobody waits for it any more

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(20)
