"""A client of Muster's HTTP API. Ordinary requests block: Muster answers them by itself. One that
waits for something a peer of the test must do is begun as a peer (Call) and awaited with them."""

import http.client
import json
import socket
from typing import NamedTuple
from urllib.parse import urlencode

from peers import DEADLINE_S, Peer

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


class Answer(NamedTuple):
    status: int
    head: dict  # names in lower case
    body: bytes

    @property
    def json(self):
        assert self.head["content-type"] == JSON, self
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


def first_line_and_head(method, path, query, token, content_type, length, headers):
    if query:
        path += "?" + urlencode(query)
    head = dict(headers or {})
    if token:
        head.setdefault("Authorization", f"Bearer {token}")
    if content_type:
        head.setdefault("Content-Type", content_type)
    if length or method != "GET":
        head.setdefault("Content-Length", str(length))
    return path, head


class Api:
    """token: sent with each request; None = none."""

    def __init__(self, muster, token=None):
        self.muster = muster
        self.token = token

    def as_admin(self):
        return Api(self.muster, admin_token(self.muster))

    def with_token(self, token):
        return Api(self.muster, token)

    def ask(self, method, path, query=None, data=None, form=None, body=b"", content_type=None,
            headers=None, timeout_s=DEADLINE_S):
        """data is sent as JSON, form as a form, body as it is. Returns the answer, whatever it is."""
        if data is not None:
            body, content_type = json.dumps(data).encode(), JSON
        if form is not None:
            body, content_type = urlencode(form).encode(), FORM
        path, head = first_line_and_head(
            method, path, query, self.token, content_type, len(body), headers)
        connection = http.client.HTTPConnection(*self.muster.http_address, timeout=timeout_s)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in head.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()},
                          answer.read())
        finally:
            connection.close()

    def get(self, path, **query):
        """The answer's JSON; it must be a yes."""
        answer = self.ask("GET", path, query)
        assert answer.status == 200, (path, query, answer)
        return answer.json

    def post(self, path, key=None, **data):
        headers = {"Idempotency-Key": key} if key else None
        answer = self.ask("POST", path, data=data, headers=headers)
        assert answer.status == 200, (path, data, answer)
        return answer.json

    def refused(self, method, path, status, code, **options):
        """The sentence of a refusal, which must have that status and code."""
        answer = self.ask(method, path, **options)
        assert (answer.status, answer.error["code"]) == (status, code), answer
        assert answer.error["message"][-1] in ".?", answer.error
        return answer.error["message"]

    def pages(self, path, **query):
        """The items of a list, page after page."""
        cursor = None
        while True:
            page = self.get(path, **query, **({"cursor": cursor} if cursor else {}))
            yield page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def all(self, path, **query):
        return [item for page in self.pages(path, **query) for item in page]

    def begin(self, net, method, path, query=None, headers=None):
        return Call(net, self.muster.http_address, method, path, query, self.token, headers)


def admin_token(muster):
    return (muster.data / "admin.token").read_text().strip()


class Call(Peer):
    """One request under way on a connection of its own."""

    def __init__(self, net, address, method, path, query, token, headers):
        path, head = first_line_and_head(method, path, query, token, None, 0, headers)
        lines = [f"{method} {path} HTTP/1.1", "Host: muster", *(f"{k}: {v}" for k, v in head.items())]
        self.request = "\r\n".join([*lines, "", ""]).encode()
        self.answer_given = None
        super().__init__(net, address, name=f"{method} {path}")

    def open(self):
        super().open()
        self.send(self.request)

    def read(self):
        data = self.socket.recv(1 << 16)
        if not data:
            self.lost()
            return
        self.incoming += data
        end = self.incoming.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self.incoming[:end].decode().split("\r\n")
        head = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        body = bytes(self.incoming[end + 4 :])
        if len(body) == int(head["content-length"]):
            self.answer_given = Answer(int(first.split()[1]), head, body)

    def answered(self, timeout_s=DEADLINE_S):
        answer = self.net.wait(lambda: self.answer_given, f"answer to {self}", timeout_s)
        self.close()
        return answer


# ── heads with one piece many times ───────────────────────────────────────────────────────────

# How the pieces stand in a request, and what may come of it: each piece may cost the server more
# memory than it has bytes.
CROWDED = {
    "arguments": (lambda n: b"GET /?" + b"a&" * n + b" HTTP/1.1\r\nHost: h\r\n\r\n", {200, 404}),
    "cookies": (lambda n: b"GET / HTTP/1.1\r\nHost: h\r\nCookie: " + b"a;" * n + b"\r\n\r\n",
                {200, 404, 431}),
    "fields": (lambda n: b"GET / HTTP/1.1\r\nHost: h\r\n" + b"a:b\r\n" * n + b"\r\n",
               {200, 404, 431}),
    "cookies before a body": (
        lambda n: b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nCookie: " + b"a;" * n +
        b"\r\n\r\nhi", {404, 405, 431}),
}
CROWDED_NUMBERS = (1, 100, *range(165, 200), 300, 400, 3000)


def ask_crowded(address, case, n):
    """On a connection of its own; the status of the answer."""
    with socket.create_connection(address, DEADLINE_S) as peer:
        peer.sendall(CROWDED[case][0](n))
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        return answer.status
