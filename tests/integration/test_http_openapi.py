"""The API's description: it is well-formed, and it is true. A property-based run asks for everything
the description allows and much that it does not, and finds no status and no shape that is not in it."""

import contextlib
import copy
import io
import json
import re
import tarfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from fake_host import FakeHost
from http_api import Answer, Api, admin_token
from muster_proc import REPO, run
from players import Player, fleets, token_of
from world import World

METHODS = {"get", "post", "put", "delete"}


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """What everything is asked of: rooms end, players are banned, hosts turned off."""
    with something_of_everything(tmp_path_factory.mktemp("described")) as world:
        yield world


@pytest.fixture
def untouched(tmp_path):
    with something_of_everything(tmp_path) as world:
        yield world


@contextlib.contextmanager
def something_of_everything(folder):
    often = [{"count": 100000, "seconds": 60}]
    world = World(folder, fleets=fleets(reserve_s=3600),
                  default_region="EU",
                  rates={"create": often, "join": often}).start()
    server, asker = world.server(capacity=3), world.chat()
    world.server(region=0)
    for lobby in (1, 2):
        asker.allocate(lobby)
    server.end(2)
    asker.refuse(3, region=0)
    for role in ("server", "chat"):
        world.api.post("/v1/tokens", role=role, fleet="default")
    world.api.post(f"/v1/servers/{server.server_id}/drain")
    with FakeHost(world.muster) as host:
        room = Player(world, "ann").create()
        world.spawned = next(s.id for s in host.servers.values() if s.room == room["id"])
        host.logs[world.spawned] = ["ready"]
        world.room = room["id"]
        world.api.post("/ban/issue", account="bob", expires="2999-01-01 00:00:00", reason="cheats")
        world.deployment = upload(world)
        world.party = place_party(world)
        world.lobby = world.api.ask("POST", "/v1/lobbies", data={
            "teams": [[{"account": 1}], [{"account": 2}]]}).json["id"]
        yield world
    world.stop()


def place_party(world):
    """An allocation called t-1; returns the number of its party."""
    answer = world.api.ask("POST", "/v1/allocations", data={
        "ticketId": "t-1", "fleet": "arena", "playerId": "pat", "partyIds": ["quin"]})
    assert answer.status == 200, answer
    return world.api.get("/v1/seats", account="quin")["items"][0]["multi"]


def upload(world):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        file = tarfile.TarInfo("bin/arena")
        file.size, file.mode = 3, 0o755
        tar.addfile(file, io.BytesIO(b"#!\n"))
    answer = world.api.ask("POST", "/v1/deployments", {"fleet": "arena", "version": "1.0"},
                           body=archive.getvalue(), content_type="application/octet-stream")
    assert answer.status == 200, answer
    return answer.json


@pytest.fixture(scope="module")
def document(busy):
    return Api(busy.muster).get("/openapi.json")


def operations(document):
    for path, ways in document["paths"].items():
        for method, operation in ways.items():
            yield path, method, operation


# --- well-formed


def test_document_has_what_the_standard_asks_for(document):
    assert document["openapi"] == "3.1.0"
    assert set(document) == {"openapi", "info", "paths", "components"}
    assert document["info"]["title"] and document["info"]["version"]
    names = set()
    for path, method, operation in operations(document):
        assert path.startswith("/") and method in METHODS
        assert operation["operationId"] not in names
        names.add(operation["operationId"])
        assert operation["summary"]
        in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))
        seen = set()
        for parameter in operation["parameters"]:
            assert parameter["in"] in ("path", "query", "header")
            assert parameter["required"] or parameter["in"] != "path"
            assert (parameter["name"], parameter["in"]) not in seen
            seen.add((parameter["name"], parameter["in"]))
        for status, response in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status) and response["description"]
            assert "content" in response or status == "204"
            for content in response.get("content", {}).values():
                assert content["schema"]
        assert {"200", "201", "204"} & set(operation["responses"])
        for way in operation["security"]:
            for scheme in way:
                assert scheme in document["components"]["securitySchemes"]


def schemas(node):
    """Every schema anywhere in the document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "schema":
                yield value
            elif key == "schemas":
                yield from value.values()
            yield from schemas(value)
    elif isinstance(node, list):
        for item in node:
            yield from schemas(item)


def test_schemas_are_schemas(document):
    found = list(schemas(document))
    assert len(found) > 100
    for schema in found:
        jsonschema.Draft202012Validator.check_schema(schema)


def test_references_lead_somewhere_and_everything_is_used(document):
    text = json.dumps(document)
    used = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', text))
    assert used == set(document["components"]["schemas"])


def test_errors_are_of_the_one_table(document):
    """Each code that a description names is a row of errors.def, under its status."""
    table = dict(re.findall(r'^X\(\w+, "(\w+)", ".*", (\d+)\)$',
                            (REPO / "src/base/errors.def").read_text(), re.M))
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                continue
            codes = re.findall(r"(?:^|; )(\w+): ", response["description"])
            assert codes and all(table[code] == status for code in codes)


def test_page_of_the_documentation_is_current():
    """If this fails: build/muster openapi --markdown > docs/http-api.md"""
    page = run("openapi", "--markdown")
    assert page.returncode == 0
    assert page.stdout == Path(REPO / "docs/http-api.md").read_text()


def test_command_prints_what_the_server_answers(document):
    assert json.loads(run("openapi").stdout) == document


# --- true


def strict(document):
    """The same schemas, with no key allowed that they do not name."""
    components = copy.deepcopy(document["components"])
    for schema in components["schemas"].values():
        schema["additionalProperties"] = False
    return components


def check_answer(document, operation, answer):
    assert str(answer.status) in operation["responses"], (operation["operationId"], answer)
    content = operation["responses"][str(answer.status)]["content"]
    (content_type, described), = content.items()
    assert answer.head["content-type"] == content_type
    if content_type != "application/json" or operation["operationId"] == "openapi":
        return
    schema = {**described["schema"], "components": strict(document)}
    if "properties" in schema:
        schema["additionalProperties"] = False
    jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    ).validate(answer.json)
    if answer.status >= 300:
        codes = operation["responses"][str(answer.status)]["description"]
        assert re.search(rf"\b{answer.error['code']}: ", codes), (codes, answer)


# Texts that mean something in the busy world, by the name of their argument.
KNOWN = {
    "game": ["arena"], "server": ["main"], "version": ["1.0", "1.0", "0.9", "2.0"],
    "region": ["EU", "EU", "USE"], "account": ["ann", "bob", "cat"], "fleet": ["default", "arena"],
    "expires": ["2099-12-31 23:59:59", "2001-01-01 00:00:00"],
    "ticketId": ["t-1", "t-2"], "player": ["pat", "quin", "nobody"],
}


TEAMS = [[[{"account": 7}], [{"account": 8, "name": "Bea", "slot": 3}]], [[{"account": 9}]],
         [[{"account": 9}], []], [[]], [[{"acount": 7}]], [[{"account": 7}, {"account": 7}]]]
GROUPS = [[], [], [[7, 8]], [[9]], [[]], [[7], [7]]]


def valid_values(schema, name=None):
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "integer":
        return st.integers(schema["minimum"], schema["maximum"])
    if schema["type"] == "boolean":
        return st.booleans()
    if schema["type"] == "object":
        return st.sampled_from([{}, {"map": "dust"}, {"EU": 31}, {"level": {"@func": ">", "@value": 5}}])
    if schema["type"] == "array":
        items = schema["items"]
        if items.get("type") == "array":
            return st.sampled_from(TEAMS if "$ref" in items["items"] else GROUPS)
        if items["type"] == "object":
            return st.sampled_from([[], [{"token": "rubbish", "ip": "1.2.3.4"}], [{"ip": 7}]])
        words = st.sampled_from(items["enum"]) if "enum" in items else st.sampled_from(["EU", "USE"])
        return st.lists(words, min_size=schema["minItems"], max_size=3)
    if "pattern" in schema:
        return st.integers(1, 6).map(str)
    return st.sampled_from(KNOWN.get(name, ["default", "EU", "chat-1", "1", "ticket,load"]))


def schema_of(parameter):
    """Objects in a query are JSON."""
    return parameter.get("schema") or parameter["content"]["application/json"]["schema"]


def in_query(value):
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return json.dumps(value) if isinstance(value, (list, dict, bool)) else value


ODD = st.one_of(
    st.text(max_size=80),
    st.integers(-(2**70), 2**70),
    st.sampled_from(["", "0", "-1", "1e9", "null", "%00", "../..", "[", "{}", "EU,,USE", "\x7f",
                     "9223372036854775807", "9223372036854775808", "ä" * 100]),
)
ODD_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def is_for_players(path):
    return path.split("/")[1] in ("create", "join", "room", "rooms", "regions", "player", "players", "ban")


@st.composite
def requests(draw, document, players_only=False):
    """(path, method, operation, path with values, query, body): more right than wrong."""
    path, method, operation = draw(st.sampled_from(
        [o for o in operations(document) if o[2]["operationId"] != "stream_events"
         and (is_for_players(o[0]) or not players_only)]))
    query, body, where = {}, {}, path
    for parameter in operation["parameters"]:
        right = draw(st.integers(0, 9)) > 0
        name = parameter["name"]
        if name == "wait":
            query[name] = draw(st.sampled_from([0, "x", 61]))
        elif parameter["in"] == "path" and right and path.startswith("/v1/lobbies/"):
            where = where.replace("{%s}" % name, str(draw(st.integers(2**30, 2**30 + 5))))
        elif parameter["in"] == "path":
            value = draw(valid_values(schema_of(parameter), name) if right
                         else st.text("abc019 .-_~%ä", min_size=1, max_size=70))
            where = where.replace("{%s}" % name, str(value))
        elif parameter["in"] == "query" and draw(st.booleans()):
            value = draw(valid_values(schema_of(parameter), name) if right else ODD)
            query[name] = in_query(value)
    content = operation.get("requestBody", {}).get("content", {})
    for name, schema in content.get("application/json", {}).get("schema", {}).get(
            "properties", {}).items():
        if draw(st.integers(0, 9)) > 1:
            body[name] = draw(valid_values(schema, name) if draw(st.integers(0, 9)) > 0 else ODD_JSON)
    if draw(st.integers(0, 19)) == 0:
        query[draw(st.text("abc_", min_size=1, max_size=9))] = draw(ODD)
    if draw(st.integers(0, 19)) == 0:
        body[draw(st.text("abc_", min_size=1, max_size=9))] = draw(ODD_JSON)
    return path, method, operation, where, query, body


@st.composite
def bodies(draw, body):
    """How it is sent: as JSON mostly, as a form, or as something that it is not."""
    raw = json.dumps(body).encode()
    how = draw(st.integers(0, 9))
    if how == 0:
        return {"form": {k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()}}
    if how == 1:
        return {"body": draw(st.binary(max_size=200)), "content_type": "application/json"}
    if how == 2:
        return {"body": raw, "content_type": draw(st.sampled_from(["text/plain", "", None, "a/b;c"]))}
    return {"data": body} if body else {}


def quote_path(path):
    return "".join(c if c.isascii() and (c.isalnum() or c in "/-_.~") else
                   "".join(f"%{b:02X}" for b in c.encode()) for c in path)


@settings(max_examples=1000, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_is_answered_that_is_not_described(busy, document, data):
    ask_something(busy, document, data, data.draw(requests(document)))


@settings(max_examples=400, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_players_are_answered_as_described(busy, document, data):
    """Where a game, a version and rooms are known, so that they are placed, too."""
    ask_something(busy, document, data, data.draw(requests(document, players_only=True)))


def ask_something(busy, document, data, request):
    path, method, operation, where, query, body = request
    token = data.draw(st.sampled_from([admin_token(busy.muster)] * 8 + [None, "rubbish"]))
    headers = {}
    if method != "get" and data.draw(st.booleans()):
        headers["Idempotency-Key"] = data.draw(st.sampled_from(["a", "b", "c" * 128, "d" * 129]))
    answer = Api(busy.muster, token).ask(
        method.upper(), quote_path(where), query, headers=headers,
        **(data.draw(bodies(body)) if method != "get" else {}))
    if answer.status == 404 and answer.error["message"].endswith("lists what there is."):
        assert where.count("/") != path.count("/") or "//" in where or where.endswith("/")
        return  # the path has led elsewhere: a value with a slash, or none
    check_answer(document, operation, answer)


THINGS = {"get_lobby": lambda world: world.lobby, "get_room": lambda world: world.room, "server_logs": lambda world: world.spawned,
          "get_deployment": lambda world: world.deployment["id"],
          "get_party": lambda world: world.party}


def test_right_requests_are_granted(untouched, document):
    """So that the run above is known to have looked at answers, and not at refusals alone."""
    ban = untouched.api.post("/ban/issue", account="eve", expires="2999-01-01 00:00:00", reason="cheats")
    for path, method, operation in operations(document):
        if method != "get" or operation["operationId"] == "stream_events":
            continue
        values = {"name": "EU", "fleet": "default", "game": "arena", "server": "main",
                  "version": "1.0", "account": "eve", "ticketId": "t-1", "digest": untouched.deployment["digest"],
                  "id": THINGS.get(operation["operationId"], lambda world: "1")(untouched)}
        if path == "/ban/{id}":
            values["id"] = str(ban["id"])
        answer = untouched.api.ask("GET", re.sub(r"{(\w+)}", lambda found: values[found[1]], path))
        assert answer.status == 200, (path, answer)
        check_answer(document, operation, answer)


def test_placed_players_are_described(make_world, document):
    """In a world of their own: the runs above turn off hosts and versions, and ban."""
    world = make_world(fleets=fleets(), default_region="EU")
    captain = Player(world, "captain", scopes=("game", "game_multi"))
    accounts = [{"token": token_of(world, name, "game"), "ip": "192.0.2.1"} for name in ("cat", "dan")]
    with FakeHost(world.muster):
        for path, data in (("/create/", {"settings": {"map": "ice"}}), ("/join/", {}),
                           ("/create/multi/", {"accounts": accounts}),
                           ("/join/multi/", {"accounts": accounts})):
            answer = captain.ask("POST", f"{path}arena/main/1.0", data=data)
            assert answer.status == 200, (path, answer)
            described = document["paths"][path + "{game}/{server}/{version}"]["post"]
            check_answer(document, described, answer)


def test_results_of_allocations_are_described(make_world, document):
    """Success, with and without a party, Queued and Failure."""
    world = make_world(fleets=fleets(max_players=2), default_region="EU")
    operation = document["paths"]["/v1/allocations"]["post"]
    asked = [("a", {"partyIds": ["b"]}, 200), ("a", {}, 200), ("c", {}, 202),
             ("d", {"joinOnIds": ["x"]}, 404), ("e", {"fleet": "x"}, 400), ("", {}, 400)]
    with FakeHost(world.muster, slots=1):
        for i, (player, more, status) in enumerate(asked):
            answer = world.api.ask("POST", "/v1/allocations", data={
                "ticketId": f"t{i}", "fleet": "arena", "playerId": player, **more})
            assert answer.status == status, answer
            check_answer(document, operation, answer)
            assert set(answer.json) >= {"envelopeVersion", "type", "ticketId", "status"}
    answer = world.api.ask("DELETE", "/v1/allocations/t2")
    check_answer(document, document["paths"]["/v1/allocations/{ticketId}"]["delete"], answer)
    for path in ("/v1/queues", "/v1/routes", "/v1/allocations"):
        answer = world.api.ask("GET", path)
        check_answer(document, document["paths"][path]["get"], answer)
        assert path == "/v1/queues" or answer.json["items"]


def test_undocumented_answers_would_be_noticed(document):
    """The check itself: another status, another key, a wrong type."""
    operation = document["paths"]["/v1/servers"]["get"]
    head = {"content-type": "application/json"}
    check_answer(document, operation, Answer(200, head, b'{"items":[],"next":null}'))
    for status, body in ((201, b'{"items":[],"next":null}'),
                         (200, b'{"items":[],"next":null,"more":1}'),
                         (200, b'{"items":[],"next":7}'),
                         (200, b'{"items":[{"id":"1"}],"next":null}'),
                         (404, b'{"error":{"code":"not_found","message":"x"}}'),
                         (400, b'{"error":{"code":"key_conflict","message":"x"}}')):
        with pytest.raises((AssertionError, jsonschema.ValidationError)):
            check_answer(document, operation, Answer(status, head, body))
