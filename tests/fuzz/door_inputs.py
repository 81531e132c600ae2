"""Inputs for the doors of Muster: what is sent over one or a few connections, and how they end. An
input is sound when every answer to it is known to be owed; any other is a sound one that was
damaged. All of it comes from a random source that the caller seeds, so a seed is a list of inputs."""

import base64
import hashlib
import hmac
import json
import struct
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import chat

SECRET = b"\x07" * 32  # of the Muster that is fuzzed, so that tokens in kept inputs stay good
AGENT_TOKEN = "agents-token"
FAR_S = 4102444800  # the year 2100


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(account, scopes):
    """An access token as Muster's own issuer signs it."""
    key = hashlib.blake2b(b"access token, HS256", key=SECRET, digest_size=32).digest()
    claims = {"acc": account, "gms": "1", "sco": scopes, "iat": 1, "exp": FAR_S}
    text = b64(b'{"alg":"HS256","typ":"JWT"}') + "." + b64(json.dumps(claims).encode())
    return text + "." + b64(hmac.new(key, text.encode(), hashlib.sha256).digest())


ADMIN = token("admin", "muster_admin,muster_allocate,muster_read,game_host,game_ban")
GAME = token("7", "game,game_multi")


@dataclass
class Input:
    """actions: ["send", connection, text], where a character is a byte; ["pause"] until Muster has
    turned; ["await", connection, n] until so many bytes came or it ended; ["close", connection]; ["reset", connection]. answers: of a sound input over HTTP the
    statuses that each answer on connection 0 may have, in order."""

    door: str
    actions: list
    answers: list = None
    refusable: bool = False  # it may take all memory of a connection, so that it just ends
    open: bool = False  # it needs no token, or has none that is good
    why: str = ""
    heads: list = field(default_factory=list)  # the places among answers that have no body

    def to_json(self):
        return {k: v for k, v in self.__dict__.items() if v not in (None, "", [], False)}


def text_of(data):
    return data.decode("latin-1")


def bytes_of(text):
    return text.encode("latin-1")


# ── damage ───────────────────────────────────────────────────────────────────────────────────────

HTTP_SCRAPS = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":", b" ", b"\t", b"\0", b"%", b"%00", b"%zz", b"%ff", b"&",
    b"=", b"?", b"//", b"/../", b"#", b";", b",", b"\xff\xfe", b"HTTP/1.1", b"HTTP/9.9", b"HTTP/1.0",
    b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 0\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Content-Length : 3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Host: other\r\n", b"Cookie: a=b; c\r\n",
    b"Authorization: Basic YTpi\r\n", b"Authorization: Bearer \r\n", b" folded\r\n",
    b"Last-Event-ID: 99999999999999999999\r\n", b"Range: bytes=0-1\r\n", b"Idempotency-Key: \r\n",
    b"X-Forwarded-For: 1.2.3.4, ::1, x\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n", b"-1\r\n",
    b"5;x=y\r\nhello\r\n", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b'{"a":', b"[" * 64, b'"\\ud800"', b"1e999",
    b"9223372036854775808", b"-9223372036854775808", b"a=b&a=c", b"access_token=x",
]

FRAME_SCRAPS = [
    b"\0", b"\xff", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0",
    b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\x02\0\0\x2a", b"\xff\xff\x02\x20", b"\x01\x40\x02\x10",
    b"\x01\0\x02\x10", b"a" * 1024 + b"\0", b"\xc0\xaf\0", b"\xed\xa0\x80\0",
]

JSON_SCRAPS = [b'{"jsonrpc":"2.0",', b'"id":', b"null", b"[", b"]", b"{", b"}", b'"', b"\\u0000",
               b"1e400", b"\xff", b"\0", b'"params":[]', b'"method":"inited"', b'"id":1.5', b","]

ZMTP_SCRAPS = [b"\x04\x26\x05READY", b"\x04\x06\x05ERROR", b"\x04\x05\x04PING", b"\x04\x05\x04PONG",
               b"\x02" + b"\x7f" + b"\xff" * 7, b"\x02" + b"\xff" * 8, b"\x01\x00", b"\0\0", b"\x06\0\0",
               b"\xff" + b"\0" * 8 + b"\x7f\x03", b"\x0bSocket-Type\0\0\0\x04PAIR", b"\x80", b"\x03"]


def damage(rng, data, scraps):
    """One to four places of it are wrong."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 32, 200)))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:at] + data[end:]
        elif kind == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
        elif kind in (2, 3, 4):
            data = data[:at] + rng.choice(scraps) + data[at:]
        elif kind == 5:
            data = data[:end] + data[at:end] * rng.choice((1, 2, 7, 40)) + data[end:]
        elif kind == 6:
            data = data[:at]
        else:
            data = data[:at] + bytes(rng.randrange(256) for _ in range(end - at)) + data[end:]
    return data[:1 << 17]


def pieces(rng, data, connection=0):
    """Sends it whole or in parts; a part may begin anywhere."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 0, 1, 2, 5))))
    actions = []
    for begin, end in zip([0, *cuts], [*cuts, len(data)]):
        if begin < end:
            actions += [["send", connection, text_of(data[begin:end])], ["pause"]]
    return actions[:-1]


def cut_short(rng, actions, connection=0):
    """The client goes away in the middle of it, one time in six."""
    if rng.randrange(6):
        return actions
    sends = [n for n, action in enumerate(actions) if action[0] == "send"]
    if not sends:
        return actions
    last = rng.choice(sends)
    text = actions[last][2]
    keep = actions[:last] + [["send", connection, text[: rng.randrange(len(text) + 1)]]]
    pause = [["pause"]] if rng.randrange(2) else []
    return [*keep, *pause, [rng.choice(("close", "reset")), connection]]


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────

WORDS = ["arena", "default", "main", "1.0", "0.9", "EU", "USE", "nowhere", "host-1", "7", "8", "ann",
         "http://127.0.0.1:1", "127.0.0.1", "all", "a" * 63, "ä", "x" * 300, "", "0", "-1", "1", "2",
         "9223372036854775807", "18446744073709551616", "true", "null", "%", "a/b", "..", "a b", "\t"]
NUMBERS = [0, 1, 2, 3, 7, 63, 64, 100, 1000, 4096, 65536, -1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63),
           2**63, 10**30, 1.5, -0.0, 1e300]
FOREVER = {"stream_events", "server_logs"}  # operations whose answer has no end


class Operations:
    """What can be asked, from the table that Muster makes its routes of (GET /openapi.json)."""

    def __init__(self, described, extra=()):
        self.schemas = described.get("components", {}).get("schemas", {})
        self.all = [(method.upper(), path, row) for path, rows in described["paths"].items()
                    for method, row in rows.items()]
        self.sound = [o for o in self.all if o[2]["operationId"] not in FOREVER]

    def statuses(self, row):
        return sorted(int(status) for status in row["responses"] if status != "500")

    def value(self, rng, schema, depth=0):
        """Mostly what fits the schema; else another thing."""
        schema = self.schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema)
        if rng.randrange(12) == 0 or depth > 5:
            return rng.choice((None, True, "x", 1, [], {}, [[]], {"a": 1}, rng.choice(NUMBERS)))
        if "enum" in schema:
            return rng.choice([*schema["enum"], "other"])
        kind = schema.get("type", "string")
        kind = rng.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            members = schema.get("properties") or {}
            chosen = [k for k in members if k in schema.get("required", ()) or rng.randrange(2)]
            made = {k: self.value(rng, members[k], depth + 1) for k in chosen}
            if rng.randrange(10) == 0 or not members:
                made[rng.choice(WORDS)] = rng.choice((1, "x", None, True, {"b": [1]}))
            return made
        if kind == "array":
            n = rng.choice((0, 1, 1, 2, 3, schema.get("maxItems", 4)))
            return [self.value(rng, schema.get("items", {}), depth + 1) for _ in range(min(n, 120))]
        if kind in ("integer", "number"):
            edges = [schema[k] + d for k in ("minimum", "maximum") if k in schema for d in (-1, 0, 1)]
            return rng.choice([*edges, rng.randrange(100), rng.choice(NUMBERS)])
        if kind == "boolean":
            return bool(rng.randrange(2))
        if schema.get("pattern") == "^[0-9]+$" and rng.randrange(4):
            return str(rng.choice((1, 1, 2, 3, 5, 10, 2**40)))
        most = schema.get("maxLength", 64)
        return rng.choice([*WORDS, "x" * min(most, 2000), "x" * min(most + 1, 2000)])

    def argument(self, rng, schema):
        """The same as text."""
        made = self.value(rng, schema)
        return made if isinstance(made, str) else json.dumps(made)

    def credential(self, rng):
        """(header or None, whether nobody is let in by it)"""
        kind = rng.randrange(8)
        if kind < 4:
            return f"Bearer {ADMIN}", False
        if kind < 6:
            return f"Bearer {GAME}", False
        return rng.choice((None, "Bearer x", "Basic eDp5", f"Bearer {ADMIN[:-2]}AA")), True

    def path(self, rng, template, row):
        path = template
        for p in (p for p in row.get("parameters", ()) if p["in"] == "path"):
            text = self.argument(rng, p["schema"])
            if p["name"] in ("game", "server", "version", "fleet") and rng.randrange(4):
                text = {"game": "arena", "server": "main", "version": "1.0"}.get(p["name"], "arena")
            text = quote(text, safe="").replace(".", "%2E") or "1"
            path = path.replace("{%s}" % p["name"], text.replace("%00", "1"))
        return path

    def query(self, rng, row):
        given = {}
        for p in row.get("parameters", ()):
            if p["in"] != "query" or rng.randrange(2):
                continue
            schema = p.get("schema") or p["content"]["application/json"]["schema"]
            given[p["name"]] = self.argument(rng, schema).replace("\0", "")
        if "wait" in given:
            given["wait"] = "0"
        if rng.randrange(12) == 0:
            given[rng.choice(("access_token", "nothing", "a"))] = rng.choice(WORDS)
        return "?" + urlencode(given) if given else ""

    def body(self, rng, row):
        """(content type or None, bytes)"""
        content = row.get("requestBody", {}).get("content", {})
        if not content:
            return (None, b"") if rng.randrange(8) else ("application/json", b"{}")
        kind = rng.choice(list(content))
        made = self.value(rng, content[kind].get("schema", {}))
        if kind == "application/x-www-form-urlencoded" and isinstance(made, dict):
            flat = {k: v if isinstance(v, str) else json.dumps(v) for k, v in made.items()}
            return kind, urlencode(flat).encode()
        if kind == "application/octet-stream":
            return kind, rng.choice((b"", b"PK\3\4", b"\x1f\x8b\x08\0", b"x" * 3000))
        return kind, json.dumps(made).encode()

    def request(self, rng, row, last=True):
        """One that is whole: its bytes, whether nobody is let in, whether the answer has a body."""
        method, template, about = row
        credential, unknown = self.credential(rng)
        kind, body = self.body(rng, about)
        target = self.path(rng, template, about) + self.query(rng, about)
        shown = "HEAD" if method == "GET" and rng.randrange(10) == 0 else method
        head = [f"{shown} {target} HTTP/1.1", "Host: muster"]
        if credential:
            head.append(f"Authorization: {credential}")
        if kind:
            head.append(f"Content-Type: {kind}")
        if rng.randrange(6) == 0:
            head.append("Idempotency-Key: k%d" % rng.randrange(50))
        if rng.randrange(6) == 0:
            head.append("Cookie: " + "; ".join(["a=b"] * rng.randrange(1, 9)))
        if last and rng.randrange(6) == 0:
            head.append("Connection: close")
        if body and rng.randrange(3) == 0:
            head.append("Transfer-Encoding: chunked")
            body = chunked(rng, body)
        elif body or method != "GET":
            head.append(f"Content-Length: {len(body)}")
        made = "\r\n".join([*head, "", ""]).encode() + body
        return made, unknown, shown != "HEAD"


def chunked(rng, body):
    made = b""
    while body:
        n = rng.randrange(1, len(body) + 1)
        made += b"%x\r\n" % n + body[:n] + b"\r\n"
        body = body[n:]
    return made + b"0\r\n\r\n"


def takes_archive(row):
    return "application/octet-stream" in row.get("requestBody", {}).get("content", {})


def http_sound(rng, operations):
    n = rng.choice((1, 1, 1, 2, 3, 6))
    rows = [rng.choice(operations.sound) for _ in range(n)]
    rows = [row for row in rows[:-1] if not takes_archive(row[2])] + rows[-1:]  # it may end with that
    made = [operations.request(rng, row, last=len(rows) == 1) for row in rows]
    data = b"".join(request for request, _, _ in made)
    open_ = all(unknown and row[2].get("security") for (_, unknown, _), row in zip(made, rows))
    return Input("http", pieces(rng, data), open=open_,
                 answers=[operations.statuses(row[2]) for row in rows],
                 heads=[i for i, (_, _, body) in enumerate(made) if not body])


def http_crowded(rng, target, head):
    """As many arguments, cookies or fields as the memory of a connection holds, give or take some:
    what the library does when it runs out of it while it takes a head apart."""
    n = rng.choice((rng.randrange(1, 400), rng.randrange(150, 250), rng.randrange(400, 3000)))
    scrap = rng.choice((b"a", b"a=", b"a=b", b"", b"%61", b"abc=def"))
    filler = b"X-F: " + b"y" * rng.choice((0, 0, 100, 1000, rng.randrange(12000))) + b"\r\n"
    kind = rng.randrange(4)
    if kind == 0:
        target += b"?" + (scrap + b"&") * n
    elif kind == 1:
        head += b"Cookie: " + (scrap + b";") * n + b"\r\n"
    elif kind == 2:
        head += (scrap.replace(b"=", b"") + b":\r\n") * n
    else:
        target += b"?" + b"a&" * rng.randrange(200)
        head += b"Cookie: " + b"a;" * rng.randrange(200) + b"\r\n"
    return b"GET " + target + b" HTTP/1.1\r\nHost: m\r\n" + filler + head + b"\r\n"


def http_crowd(rng, operations, door="http"):
    """Whole, and answered, be it with the word that it is too much."""
    _, path, row = rng.choice(operations.sound)
    credential = f"Authorization: Bearer {ADMIN}\r\n".encode() if rng.randrange(2) else b""
    target = path.replace("{", "").replace("}", "").encode()
    allowed = {200, 202, 204, 307, 400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 431, 503}
    return Input(door, pieces(rng, http_crowded(rng, target, credential)), answers=[sorted(allowed)],
                 refusable=True, open=not credential and bool(row.get("security")))


def http_damaged(rng, operations, door="http"):
    if rng.randrange(6) == 0:
        return http_crowd(rng, operations, door)
    rows = [rng.choice(operations.all) for _ in range(rng.choice((1, 1, 2, 3)))]
    made = [operations.request(rng, row) for row in rows]
    data = b"".join(request for request, _, _ in made)
    if rng.randrange(8) == 0:
        data += http_crowded(rng, b"/healthz", b"")
    if rng.randrange(8):
        data = damage(rng, data, HTTP_SCRAPS)
    return Input(door, cut_short(rng, pieces(rng, data)), open=not lets_in(data))


def lets_in(data):
    return any(word.encode() in data for word in (ADMIN, GAME, AGENT_TOKEN))


def stripped(made):
    """The same of somebody who has no token; it may be cut anywhere."""
    sends = [action for action in made.actions if action[0] == "send"]
    text = "".join(action[2] for action in sends)
    for word in (ADMIN, GAME, AGENT_TOKEN):
        text = text.replace(word, "x" * len(word))
    for action in sends:
        action[2], text = text[:len(action[2])], text[len(action[2]):]
    return made


# ── the agent's HTTP door ────────────────────────────────────────────────────────────────────────


def agent_table(schema_of_spawn):
    """What docs/agent-protocol.md has, in the form of /openapi.json."""
    def row(method, path, about=None, query=(), statuses=(200, 400, 401, 404, 405, 413)):
        made = {"operationId": f"agent {method} {path}", "security": [{}],
                "responses": dict.fromkeys(map(str, statuses)),
                "parameters": [{"name": n, "in": "query", "schema": s} for n, s in query]}
        if "{id}" in path:
            runs = {} if "terminate" in path else {"enum": ["900000", "900001", "900002", "1"]}  # see Host
            made["parameters"].append({"name": "id", "in": "path", "schema": {
                "type": "string", "pattern": "^[0-9]+$", **runs}})
        if about:
            made["requestBody"] = {"content": {"application/json": {"schema": about}}}
        return path, method, made

    def members(**kinds):
        return {"type": "object", "properties": kinds, "required": list(kinds)[:1]}

    text, number = {"type": "string", "maxLength": 150}, {"type": "integer"}
    paths = {}
    for path, method, made in (
            row("post", "/spawn", schema_of_spawn, statuses=(202, 400, 401, 409, 413, 503)),
            row("post", "/prepare", schema_of_spawn, statuses=(202, 400, 401, 409, 413, 503)),
            row("post", "/servers/{id}/terminate", members(why=text, grace_ms={
                "type": "integer", "minimum": 0, "maximum": 3600000}),
                statuses=(202, 400, 401, 404, 405, 413)),
            row("post", "/servers/{id}/kick", members(key=text, reason=text),
                statuses=(202, 400, 401, 404, 405, 413)),
            row("post", "/servers/{id}/stdin", members(line={"type": "string", "maxLength": 4095}),
                statuses=(200, 400, 401, 404, 405, 409, 413)),
            row("get", "/servers/{id}/logs", query=(("lines", number),)),
            row("get", "/servers/{id}")):
        paths.setdefault(path, {})[method] = made
    return {"paths": paths}


SPAWN = {"type": "object", "properties": {
    "server_id": {"type": "string", "enum": ["5", "6", "7"]},
    "session_id": {"type": "string", "pattern": "^[0-9]+$"}, "fleet": {"type": "string"},
    "version": {"type": "string"}, "deployment": {"type": "null"},
    "binary": {"type": "string", "enum": ["/bin/false", "/nowhere", "../x"]},
    "endpoint": {"type": "string", "enum": ["path", "uri"]},
    "ports": {"type": "integer", "minimum": 0, "maximum": 8},
    "arguments": {"type": "array", "items": {"type": "string"}},
    "env": {"type": "array", "items": {"type": "object", "properties": {
        "key": {"type": "string"}, "value": {"type": "string"}}, "required": ["key", "value"]}},
    "room_settings": {"type": "object"}, "server_settings": {"type": "object"},
    "room_id": {"type": "string", "pattern": "^[0-9]+$"}, "max_players": {"type": "integer"},
    "login_access_token": {"type": ["string", "null"]}, "discovery_services": {"type": "object"},
    "spawn_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 3600000},
    "status_period_ms": {"type": "integer", "minimum": 1, "maximum": 3600000}}}
SPAWN["required"] = list(SPAWN["properties"])


class AgentOperations(Operations):
    def __init__(self):
        super().__init__(agent_table(SPAWN))

    def credential(self, rng):
        if rng.randrange(4):
            return f"Bearer {AGENT_TOKEN}", False
        return rng.choice((None, "Bearer x", "Basic eDp5")), True


def agent_sound(rng, operations):
    made = http_sound(rng, operations)
    made.door = "agent"
    return made


def agent_damaged(rng, operations):
    return http_damaged(rng, operations, "agent")


# ── the chat protocol's ports ────────────────────────────────────────────────────────────────────


def some_i32(rng):
    return rng.choice((0, 1, 2, 3, 7, 17, 100, -1, 2**30, 2**31 - 1, -(2**31), rng.randrange(1 << 20)))


def some_i8(rng):
    return rng.choice((0, 0, 1, 2, 3, 6, 10, 17, 63, 127, -1, -128))


def some_text(rng):
    return rng.choice(("", "any", "MATCH_7", "10.0.0.1", "10.0.0.2", "::1", "chat-1", "chat-2", "x" * 64,
                       "x" * 1024, "x" * 1025, "\u00e4", b"\xff\xfe", "a b", "300.1.1.1"))


def some_float(rng):
    return rng.choice((0.0, 1.0, 50.0, 100.0, 100.1, -1.0, float("nan"), float("inf"), 1e-40))


SERVER_FRAMES = [
    lambda r: chat.sv_heartbeat(some_i32(r), some_i32(r), some_float(r), some_float(r)),
    lambda r: chat.sv_allocate_match_ack(some_i8(r), some_i32(r)),
    lambda r: chat.sv_ready_for_match(some_i32(r), some_i32(r), some_text(r)),
    lambda r: chat.sv_cancel_match_ack(some_i32(r), some_i8(r)),
    lambda r: chat.sv_validate_token(some_i32(r), some_i32(r), some_text(r)),
    lambda r: chat.sv_match_ended(some_i32(r), some_i32(r), some_i8(r), some_i32(r)),
    lambda r: chat.sv_player_left(some_i32(r), some_i32(r), some_i32(r)),
    lambda r: chat.sv_drain(some_i8(r)),
    lambda r: chat.sv_drain_ack(some_i8(r)),
    lambda r: chat.sv_match_list(some_i32(r), [some_i32(r) for _ in range(r.randrange(256))]),
]
MANAGER_FRAMES = [
    lambda r: chat.mgr_server_allocation_request(r.choice((1, 2, 7, some_i32(r))), some_i8(r),
                                                 some_i8(r), some_i8(r), some_i8(r), some_i32(r)),
    lambda r: chat.mgr_heartbeat(),
    lambda r: chat.mgr_allocation_cancel(some_i32(r)),
]
CLIENT_FRAMES = [
    lambda r: chat.cl_player_loading_status(some_i32(r), some_i32(r), some_i8(r)),
    lambda r: chat.cl_connect(some_i32(r), GAME),
]


def hello(rng, door):
    if door == "server":
        good = rng.randrange(4)
        return chat.sv_handshake("any", "10.0.0.1", rng.randrange(20000, 20008), 2, 4) if good else \
            chat.sv_handshake(some_text(rng), some_text(rng), some_i32(rng), some_i8(rng), some_i32(rng))
    if door == "manager":
        regions = [some_i8(rng) for _ in range(rng.choice((1, 1, 3, 255)))]
        name = rng.choice(("chat-1", "chat-2", "chat-3"))
        return chat.mgr_handshake("any", name, [2]) if rng.randrange(4) else \
            chat.mgr_handshake(some_text(rng), some_text(rng), regions)
    return chat.cl_connect(7, GAME) if rng.randrange(4) else \
        chat.cl_connect(some_i32(rng), rng.choice((GAME, ADMIN, "x", "", "x" * 1024)))


FRAMES = {"server": SERVER_FRAMES, "manager": MANAGER_FRAMES, "client": CLIENT_FRAMES}


def chat_input(rng, door):
    """A few connections of one port, each with a handshake first, mostly, then frames."""
    actions = []
    for connection in range(rng.choice((1, 1, 1, 2))):
        frames = [hello(rng, door)] if rng.randrange(8) else []
        for _ in range(rng.choice((0, 1, 2, 4, 12))):
            kind = rng.randrange(12)
            if kind == 0:
                made = chat.frame(rng.randrange(1 << 16), bytes(rng.randrange(256) for _ in range(9)))
            elif kind == 1:
                made = rng.choice((chat.ping(), chat.pong()))
            else:
                made = rng.choice(FRAMES[door])(rng)
            frames.append(made)
        data = b"".join(frames)
        if rng.randrange(3):
            first = len(frames[0]) if frames and rng.randrange(2) else 0
            data = data[:first] + damage(rng, data[first:], FRAME_SCRAPS)
        actions += cut_short(rng, pieces(rng, data, connection), connection)
    return Input(door, actions)


# ── the game socket of an agent ──────────────────────────────────────────────────────────────────

GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\0" + b"NULL".ljust(20, b"\0") + b"\0" * 32


def zmtp_command(name, body):
    body = bytes([len(name)]) + name + body
    return bytes([4, len(body)]) + body if len(body) < 256 else b"\x06" + struct.pack(">Q", len(body)) + body


def zmtp_message(body, more=False):
    if len(body) < 256:
        return bytes([int(more), len(body)]) + body
    return bytes([2 | int(more)]) + struct.pack(">Q", len(body)) + body


def zmtp_ready(kind=b"PAIR"):
    return zmtp_command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


METHODS = ["inited", "joined", "left", "update_settings", "check_deployment", "status", "kick", "", "x" * 300]
MEMBERS = ["key", "settings", "extend_token", "extend_scopes", "status", "a"]


def rpc_value(rng, depth=0):
    made = [None, True, 0, -1, 1.5, 2**63, "", "x", "ok", "y" * rng.choice((255, 256, 5000)), "\u0000"]
    if depth < 3:
        made += [{}, [], {rng.choice(MEMBERS): rpc_value(rng, depth + 1)}, [rpc_value(rng, depth + 1)]]
    return rng.choice(made)


def rpc_message(rng):
    made = {"jsonrpc": rng.choice(("2.0", "2.0", "2.0", "1.0", 2)), "id": rng.choice((1, 2, "a", None, 1.5, []))}
    kind = rng.randrange(8)
    if kind == 0:
        made["result"] = rpc_value(rng)
    elif kind == 1:
        made["error"] = rng.choice(({"code": 1, "message": "no"}, {"code": "x"}, 7, {}))
    else:
        made["method"] = rng.choice(METHODS)
        made["params"] = {k: rpc_value(rng) for k in MEMBERS if rng.randrange(3) == 0}
        if rng.randrange(6) == 0:
            made["params"] = rpc_value(rng)
        if rng.randrange(3) == 0:
            del made["id"]
    return json.dumps(made).encode()


def game_input(rng):
    """What a game server may say over its socket: ZeroMQ's own greeting, which is answered before it
    listens to more, then messages."""
    greeting = GREETING if rng.randrange(12) else damage(rng, GREETING, ZMTP_SCRAPS)
    data = zmtp_ready(rng.choice((b"PAIR",) * 8 + (b"DEALER", b"")))
    begin = len(data)
    for _ in range(rng.choice((0, 1, 2, 4, 8, 40))):
        body = rpc_message(rng)
        if rng.randrange(2) == 0:
            body = damage(rng, body, JSON_SCRAPS)
        if rng.randrange(40) == 0:
            body = b"x" * rng.choice((65535, 65536, 65537, 300000))
        data += zmtp_message(body, more=rng.randrange(12) == 0)
    if rng.randrange(3) == 0:
        first = 0 if rng.randrange(2) else begin
        data = data[:first] + damage(rng, data[first:], ZMTP_SCRAPS)
    first = [["send", 0, text_of(greeting)], ["await", 0, len(GREETING)]]
    return Input("game", first + cut_short(rng, pieces(rng, data)))
