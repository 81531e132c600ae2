"""A reader of GET /v1/events, and the journal as its witness.

The reader is a peer of the test's Net: it takes what comes while somebody waits for something. It
reads the stream as the standard for server-sent events says; what it notices wrong by itself (an id
that does not grow) is a violation.
"""

import http.client
import itertools
import json
import re
import struct
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from peers import DEADLINE_S, Late, Peer

REPO = Path(__file__).resolve().parents[2]


ports = itertools.count(60001)  # of servers that come only to be seen


def admin_token(world):
    return (world.muster.data / "admin.token").read_text().strip()


def list_all(world, what):
    """Every item of a list of the API, page by page."""
    items, cursor = [], ""
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=DEADLINE_S)
    while cursor is not None:
        connection.request("GET", f"/v1/{what}?limit=200&cursor={cursor}" if cursor else
                           f"/v1/{what}?limit=200",
                           headers={"Authorization": f"Bearer {admin_token(world)}"})
        answer = connection.getresponse()
        page = json.loads(answer.read())
        assert answer.status == 200, page
        items += page["items"]
        cursor = page["next"]
    connection.close()
    return items


def metric(world, name):
    """The value of a metric without labels."""
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=DEADLINE_S)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {admin_token(world)}"})
    page = connection.getresponse().read().decode()
    connection.close()
    return float(re.search(rf"^{name} (\S+)$", page, re.M)[1])


class Event(NamedTuple):
    id: str | None
    type: str
    data: dict


def place(event_id):
    """The order of ids: "7" is after all of batch 7."""
    batch, _, change = event_id.partition(".")
    return int(batch), int(change) if change else 1 << 40


class Reader(Peer):
    def __init__(self, world, kinds=None, last_id=None, token=None, query_id=None, **options):
        self.world = world
        self.kinds = kinds
        self.token = token
        self.query_id = query_id
        self.last_id = last_id
        self.events = []  # all, over every connection
        super().__init__(world.net, world.muster.http_address, name="reader of events", **options)

    # --- asking

    def open(self):
        super().open()
        self.status = None
        self.head = None
        self.body = bytearray()  # not yet a whole block of lines
        self.blocks = 0  # on this connection; the first is the greeting
        self.ended = False  # by the last chunk
        arguments = {"kinds": self.kinds, "last_event_id": self.query_id}
        query = "&".join(f"{k}={quote(v)}" for k, v in arguments.items() if v is not None)
        lines = [f"GET /v1/events?{query} HTTP/1.1", "Host: muster"]
        token = self.token if self.token is not None else admin_token(self.world)
        if token:
            lines.append(f"Authorization: Bearer {token}")
        if self.last_id is not None:
            lines.append(f"Last-Event-ID: {self.last_id}")
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reconnect(self):
        """Comes back with the last id, as a browser does."""
        self.close()
        self.open()
        return self.expect_open()

    def expect_open(self):
        self.net.wait(lambda: self.blocks > 0 or self.closed, "greeting of the stream")
        assert self.status == 200 and not self.closed, (self.status, self.error())
        return self

    def error(self):
        return json.loads(self.body)["error"] if self.status != 200 and self.body else None

    def expect_refused(self):
        """The status and the error of a request that is no stream."""

        def answered():
            length = self.head and int(self.head.get("content-length", "0"))
            return self.status and len(self.body) >= length

        self.net.wait(answered, "answer to a refused reader")
        self.close()
        return self.status, self.error()

    # --- reading

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.lost()
            return
        self.incoming += data
        if self.status is None and not self.read_head():
            return
        if self.status != 200:
            self.body += self.incoming
            self.incoming.clear()
            return
        self.read_chunks()
        while (end := self.body.find(b"\n\n")) >= 0:
            block = self.body[:end].decode()
            del self.body[: end + 2]
            self.take_block(block)

    def read_head(self):
        end = self.incoming.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self.incoming[:end].decode().split("\r\n")
        del self.incoming[: end + 4]
        self.status = int(first.split()[1])
        self.head = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        return True

    def read_chunks(self):
        while (end := self.incoming.find(b"\r\n")) >= 0:
            size = int(self.incoming[:end], 16)
            if len(self.incoming) < end + 2 + size + 2:
                return
            self.body += self.incoming[end + 2 : end + 2 + size]
            del self.incoming[: end + 2 + size + 2]
            self.ended = self.ended or size == 0

    def take_block(self, block):
        self.blocks += 1
        fields = {}
        for line in block.split("\n"):
            if line and not line.startswith(":"):
                key, value = line.split(": ", 1)
                assert key not in fields
                fields[key] = value
        if "id" in fields:
            self.move_to(fields["id"], fields.get("event"))
        if "data" in fields:
            event = Event(fields.get("id"), fields["event"], json.loads(fields["data"]))
            self.events.append(event)

    def move_to(self, new, event_type):
        """Ids only grow; the greeting repeats the one we came with, and a gap may lead back."""
        if self.last_id and event_type != "gap" and self.blocks > 1:
            if place(new) <= place(self.last_id):
                self.net.violations.append(f"event {new} after {self.last_id}")
        self.last_id = new

    # --- looking

    def of(self, *types):
        return [e for e in self.events if e.type in types]

    def changes(self):
        return [e for e in self.events if e.id is not None]

    def expect_event(self, event_type, timeout_s=DEADLINE_S, **fields):
        """Waits for such an event, wherever it stands."""

        def look():
            for e in self.events:
                if e.type == event_type and all(e.data.get(k) == v for k, v in fields.items()):
                    return e
            return None

        try:
            return self.net.wait(look, f"{event_type} {fields}", timeout_s)
        except Late as late:
            raise Late(f"{late}; it has {[e[:2] for e in self.events[-20:]]}") from None

    def expect_everything(self, timeout_s=30):
        """Waits until it has the newest batch: something is changed, and seen."""
        newest = self.world.server(port=next(ports))
        self.expect_event("server", timeout_s, port=newest.port)
        newest.close()


# --- the journal


def row_fields():
    """The fields of each kind of row, in the order of their numbers, out of rows.def."""
    text = (REPO / "src/core/rows.def").read_text()
    kinds = re.findall(r"\bK\((\w+)\)", text)
    return [
        (
            kind,
            re.findall(
                r"F\((\w+), (\w+), \d+\)",
                re.search(rf"#define ROW_FIELDS_{kind}\(F\)((?:.*\\\n)*.*\n)", text)[1],
            ),
        )
        for kind in kinds
    ]


NUMBERS = {"i8": ("<b", 1), "i32": ("<i", 4), "i64": ("<q", 8)}


def decode_field(blob, at, field_type):
    if field_type in NUMBERS:
        code, size = NUMBERS[field_type]
        return struct.unpack_from(code, blob, at)[0], at + size
    if field_type == "text":
        end = blob.index(b"\0", at)
        return blob[at:end].decode(), end + 1
    size = struct.unpack_from("<H", blob, at)[0]
    return bytes(blob[at + 2 : at + 2 + size]), at + 2 + size


def decode_batch(blob, kinds):
    """(kind, gone, row) of each change; of what is gone the row has its id alone."""
    at = 0
    while at < len(blob):
        kind, fields = kinds[blob[at]]
        gone = blob[at + 1] == 1
        at += 2
        row = {}
        for field_type, name in fields[:1] if gone else fields:
            row[name], at = decode_field(blob, at, field_type)
        yield kind, gone, row


TYPES = {
    "fleet": "fleet",
    "chat_server": "chat_server",
    "server": "server",
    "session": "session",
    "seat": "seat",
    "ticket": "ticket",
    "enrolment": "token",
    "audit": "audit",
}


def journal_events(muster, after="0"):
    """What the stream must have shown: (id, type, gone, row) of every stored change after an id."""
    kinds = row_fields()
    for seq, blob in muster.journal():
        for index, (kind, gone, row) in enumerate(decode_batch(blob, kinds)):
            event_id = f"{seq}.{index}"
            if kind in TYPES and place(event_id) > place(after):
                yield event_id, TYPES[kind], gone, row
