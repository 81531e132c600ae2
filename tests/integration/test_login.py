"""Tokens that only the login service can make: extended ones of players, and those of game servers.
The agent is one that starts nothing (fake_host.py)."""

import http.client
import json
import threading
import time

import pytest
from fake_host import FakeHost, Refused
from http_api import Api, admin_token
from login_service import KnownPlayer, LoginService, claims_of, public_file, sign
from players import Player, fleets, token_of

DEADLINE_S = 20
NO_RATES = {"create": [{"count": 100000, "seconds": 60}], "join": [{"count": 100000, "seconds": 60}]}


@pytest.fixture
def login():
    with LoginService() as login:
        yield login


@pytest.fixture
def start(make_world, tmp_path, login):
    """Starts a Muster that knows the login service."""
    def start(**fleet):
        access = {"keys": [public_file(tmp_path)], "login_url": login.url}
        return make_world(default_region="EU", fleets=fleets(**fleet), rates=NO_RATES, access=access)
    return start


@pytest.fixture
def world(start):
    return start()


@pytest.fixture
def host(world):
    with FakeHost(world.muster) as host:
        yield host


@pytest.fixture
def ann(world):
    return KnownPlayer(world, "ann")


@pytest.fixture
def master():
    return sign("arena", "profile,leaderboard,game_ban")


def server_of(host, placed):
    return next(s for s in host.servers.values() if s.room == placed["id"])


def refused(server, key, **members):
    with pytest.raises(Refused) as fault:
        server.joined(key, **members)
    return fault.value.error


def stays_reserved(player, server, made):
    """And is as good as ever."""
    assert [s["state"] for s in player.seats()] == ["reserved"]
    assert server.joined(made["key"])["access_token"] == player.token
    assert [s["state"] for s in player.seats()] == ["taken"]


def aside(call):
    """Runs it beside the test; the thread has its result or what was raised."""
    def run():
        try:
            thread.result = call()
        except Exception as fault:  # noqa: BLE001
            thread.fault = fault
    thread = threading.Thread(target=run, daemon=True)
    thread.result = thread.fault = None
    thread.start()
    return thread


def result_of(thread):
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    if thread.fault:
        raise thread.fault
    return thread.result


class Gate:
    """Holds the answers of a login service until it is opened."""

    def __init__(self, login):
        self.login = login
        self.open = threading.Event()
        login.answer = self.answer

    def answer(self, path, form):
        self.open.wait(DEADLINE_S)
        return self.login.take(path, form)


# --- extension


def test_a_token_is_extended_by_its_issuer(host, login, ann, master):
    made = ann.create(info={"skin": "red"})
    server = server_of(host, made)
    told = server.joined(made["key"], extend_token=master, extend_scopes="profile,game_ban,other")
    assert (told["account"], told["info"]) == ("ann", {"skin": "red"})
    assert told["scopes"] == ["game", "profile", "game_ban"]
    assert claims_of(told["access_token"])["sco"] == "game,profile,game_ban"
    assert [s["state"] for s in ann.seats()] == ["taken"]
    assert Api(ann.muster, told["access_token"]).ask("GET", "/ban/find/eve").status == 404
    assert login.asked.get_nowait() == ("/login/extend", {
        "access_token": ann.token, "extend": master, "scopes": "profile,game_ban,other"}, None)
    assert login.asked.empty()


def test_a_list_of_scopes_is_asked_for_with_commas(host, login, ann, master):
    made = ann.create()
    told = server_of(host, made).joined(
        made["key"], extend_token=master, extend_scopes=["profile", "a&b=c d%"])
    assert told["scopes"] == ["game", "profile"]
    assert login.asked.get_nowait()[1]["scopes"] == "profile,a&b=c d%"


def test_a_repeat_gets_the_same_token_and_asks_once(host, login, ann, master):
    made = ann.create()
    server = server_of(host, made)
    number = next(server.seq)
    told = [server.joined(made["key"], seq=number, extend_token=master, extend_scopes="*")
            for _ in range(2)]
    assert told[0] == told[1]
    assert login.asked.qsize() == 1


def test_who_is_not_extended_is_not_asked_for(host, login, ann):
    made = ann.create()
    assert server_of(host, made).joined(made["key"])["access_token"] == ann.token
    assert login.asked.empty()


def test_our_own_tokens_are_extended_here(host, world, login):
    bob = Player(world, "bob")
    made = bob.create()
    ours = token_of(world, "arena", "game_ban")
    told = server_of(host, made).joined(made["key"], extend_token=ours, extend_scopes="*")
    assert sorted(told["scopes"]) == ["game", "game_ban"]
    assert login.asked.empty()


def test_an_issuer_cannot_extend_what_we_signed(host, world, login, master):
    bob = Player(world, "bob")
    made = bob.create()
    server = server_of(host, made)
    error = refused(server, made["key"], extend_token=master, extend_scopes="*")
    assert error["code"] == "no_signing_key"
    stays_reserved(bob, server, made)
    assert login.asked.empty()


def answers(status, body):
    return lambda path, form: (status, body)


def token(**claims):
    body = {"acc": "ann", "sco": "game,profile", **claims}
    return json.dumps({"token": sign(body.pop("acc"), body.pop("sco"), **body)})


@pytest.mark.parametrize("status, body, why", [
    (403, token, "it answered 403"),
    (500, lambda: "", "it answered 500"),
    (201, token, "it answered 201"),
    (307, token, "it answered 307"),
    (200, lambda: "", "its answer holds no token"),
    (200, lambda: "[1]", "its answer holds no token"),
    (200, lambda: '{"token": 7}', "its answer holds no token"),
    (200, lambda: '{"token": "rubbish"}',
     "the token it gave is not valid: it is no JWT signed with HS256, RS256 or ES256"),
    (200, lambda: token(acc="eve"), "the token it gave is another account's"),
    (200, lambda: token(gms="2"), "the token it gave is not valid: it is for another gamespace"),
    (200, lambda: token(exp=1), "the token it gave is not valid: it has expired"),
    (200, lambda: " " * 2000000, "the answer is too long"),
], ids=["refused", "broken", "made", "moved", "nothing", "list", "number", "rubbish", "account",
        "gamespace", "expired", "long"])
def test_what_is_no_good_answer_leaves_the_seat_reserved(
        host, login, ann, master, status, body, why):
    login.answer = answers(status, body())
    made = ann.create()
    server = server_of(host, made)
    error = refused(server, made["key"], extend_token=master, extend_scopes="profile")
    assert error == {"code": "login_failed", "status": 502,
                     "message": f"The login service did not extend the access token: {why}."}
    stays_reserved(ann, server, made)


def test_a_failure_is_not_remembered(host, login, ann, master):
    made = ann.create()
    server = server_of(host, made)
    login.answer = answers(403, "{}")
    assert refused(server, made["key"], extend_token=master, extend_scopes="*")["status"] == 502
    login.answer = login.take
    told = server.joined(made["key"], extend_token=master, extend_scopes="*")
    assert "profile" in told["scopes"]


def test_nobody_is_there(host, login, ann, master):
    made = ann.create()
    server = server_of(host, made)
    login.__exit__()
    error = refused(server, made["key"], extend_token=master, extend_scopes="*")
    assert error["code"] == "login_failed"
    assert error["message"].endswith("connection refused.")
    assert [s["state"] for s in ann.seats()] == ["reserved"]
    with login:
        assert "profile" in server.joined(
            made["key"], extend_token=master, extend_scopes="*")["scopes"]
    login.__enter__()


def test_a_slow_service_has_five_seconds(host, login, ann, master):
    gate = Gate(login)
    made = ann.create()
    server = server_of(host, made)
    began = time.monotonic()
    error = refused(server, made["key"], extend_token=master, extend_scopes="*")
    assert time.monotonic() - began > 4.5
    assert (error["code"], error["status"]) == ("login_failed", 502)
    assert error["message"].endswith(": no answer in time.")
    gate.open.set()
    stays_reserved(ann, server, made)


def test_a_bad_master_is_not_shown_to_anybody(host, login, ann):
    made = ann.create()
    server = server_of(host, made)
    error = refused(server, made["key"], extend_token="rubbish", extend_scopes="*")
    assert error["code"] == "bad_access_token"
    stays_reserved(ann, server, made)
    assert login.asked.empty()


# --- nobody else waits


def test_others_are_not_held_up(host, world, login, ann, master):
    gate = Gate(login)
    bob, cat = KnownPlayer(world, "bob"), Player(world, "cat")
    made = ann.create()
    same = bob.enter(made["id"])
    server = server_of(host, made)
    joining = aside(lambda: server.joined(made["key"], extend_token=master, extend_scopes="*"))
    login.asked.get(timeout=DEADLINE_S)
    elsewhere = cat.create()
    assert server_of(host, elsewhere).joined(elsewhere["key"])["account"] == "cat"
    answer = host.post_event({"server": server.id, "seq": 1000, "event": "joined", "key": same["key"]})
    assert answer["result"]["account"] == "bob"
    assert joining.is_alive()
    assert [s["state"] for s in ann.seats()] == ["reserved"]
    gate.open.set()
    assert "profile" in result_of(joining)["scopes"]


def test_events_that_came_with_it_keep_their_order(host, world, login, ann, master):
    bob = Player(world, "bob")
    made, other = ann.create(), bob.create()
    servers = [server_of(host, made).id, server_of(host, other).id]
    events = [
        {"server": servers[0], "seq": 10, "event": "joined", "key": made["key"],
         "extend_token": master, "extend_scopes": "profile"},
        {"server": servers[1], "seq": 10, "event": "joined", "key": other["key"],
         "extend_token": "rubbish", "extend_scopes": "profile"},
        {"server": servers[0], "seq": 11, "event": "left", "key": made["key"]},
        {"server": servers[1], "seq": 11, "event": "joined", "key": other["key"]},
        {"server": servers[1], "seq": 12, "event": "joined", "key": 7},
    ]
    told = host.post("/v1/agent/events", {"name": host.name, "events": events})["answers"]
    assert [(a["server"], a["seq"]) for a in told] == [(e["server"], e["seq"]) for e in events]
    assert told[0]["result"]["scopes"] == ["game", "profile"]
    assert told[1]["error"]["code"] == "bad_access_token"
    assert told[2]["result"] == {}
    assert told[3]["result"]["account"] == "bob"
    assert told[4]["error"]["code"] == "bad_argument"
    assert ann.seats() == []


def test_many_who_ask_the_same_ask_once(host, login, ann, master):
    gate = Gate(login)
    made = ann.create()
    event = {"server": server_of(host, made).id, "seq": 10, "event": "joined", "key": made["key"],
             "extend_token": master, "extend_scopes": "profile"}
    body = {"name": host.name, "events": [event]}
    asking = [aside(lambda: host.post("/v1/agent/events", body)) for _ in range(4)]
    login.asked.get(timeout=DEADLINE_S)
    gate.open.set()
    assert len({json.dumps(result_of(a), sort_keys=True) for a in asking}) == 1
    assert login.asked.empty()


def begin_joining(world, host, made, master):
    """A connection on which an answer is to come."""
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=DEADLINE_S)
    event = {"server": server_of(host, made).id, "seq": 10, "event": "joined", "key": made["key"],
             "extend_token": master, "extend_scopes": "profile"}
    connection.request("POST", "/v1/agent/events", json.dumps({"name": host.name, "events": [event]}), {
        "Content-Type": "application/json", "Authorization": f"Bearer {admin_token(world.muster)}"})
    return connection


def test_an_agent_that_goes_away_while_it_waits(host, world, login, ann, master):
    gate = Gate(login)
    made = ann.create()
    connection = begin_joining(world, host, made, master)
    login.asked.get(timeout=DEADLINE_S)
    connection.close()
    gate.open.set()
    server = server_of(host, made)
    told = server.joined(made["key"], seq=10, extend_token=master, extend_scopes="profile")
    assert told["scopes"] == ["game", "profile"]


def test_muster_stops_while_somebody_waits(host, world, login, ann, master):
    gate = Gate(login)
    made = ann.create()
    connection = begin_joining(world, host, made, master)
    login.asked.get(timeout=DEADLINE_S)
    world.restart()
    assert connection.getresponse().status == 503, "before the service's time is up"
    connection.close()
    gate.open.set()
    server = server_of(host, made)
    told = server.joined(made["key"], seq=10, extend_token=master, extend_scopes="profile")
    assert told["scopes"] == ["game", "profile"]


# --- game servers' own tokens

OWN = {"account": "server-of-arena", "scopes": "profile,leaderboard"}


def test_a_game_server_gets_a_token_of_the_login_service(start, login):
    world = start(access_token=OWN)
    with FakeHost(world.muster) as host:
        tokens = []
        for name in ("ann", "bob"):
            made = KnownPlayer(world, name).create()
            tokens.append(server_of(host, made).spawn["login_access_token"])
        claims = claims_of(tokens[0])
        assert (claims["acc"], claims["sco"]) == ("server-of-arena", "profile,leaderboard")
        assert tokens[0] == tokens[1]
    path, form, proof = login.asked.get_nowait()
    assert (path, form) == ("/login/auth", {
        "credential": "muster", "account": "server-of-arena", "scopes": "profile,leaderboard",
        "full": "true"})
    assert login.asked.empty(), "it is asked for once"
    scheme, shown = proof.split()
    assert scheme == "Bearer" and claims_of(shown)["acc"] == "muster"
    assert claims_of(shown)["exp"] - time.time() < 61
    assert Api(world.muster, shown).ask("GET", "/regions").status == 200
    Api(world.muster, shown).refused("GET", "/v1/servers", 403, "forbidden")


def test_a_token_is_used_for_half_of_its_time(start, login):
    login.answer = lambda path, form: (200, json.dumps(
        {"token": sign(form["account"], form["scopes"], exp=int(time.time()) + 6)}))
    world = start(access_token=OWN)
    with FakeHost(world.muster):
        KnownPlayer(world, "ann").create()
        asked = time.monotonic()
        assert login.asked.get_nowait()[0] == "/login/auth"
        for i in range(1000):
            KnownPlayer(world, f"p{i}").create()
            if not login.asked.empty():
                break
        assert time.monotonic() - asked > 2


def test_a_spawn_waits_for_its_token(start, login):
    world = start(access_token=OWN)
    gate = Gate(login)
    with FakeHost(world.muster) as host:
        waiting = [aside(KnownPlayer(world, name).create) for name in ("ann", "bob")]
        login.asked.get(timeout=DEADLINE_S)
        for i in range(3):  # it is heard and answered meanwhile
            host.beat()
        assert host.spawned.empty() and all(w.is_alive() for w in waiting)
        gate.open.set()
        rooms = [result_of(w) for w in waiting]
        tokens = {server_of(host, made).spawn["login_access_token"] for made in rooms}
        assert [claims_of(t)["acc"] for t in tokens] == ["server-of-arena"]
    assert login.asked.empty()


def test_a_spawn_without_its_token_does_not_happen(start, login):
    world = start(access_token=OWN)
    login.answer = lambda path, form: (200, json.dumps({"token": sign("eve", "profile")}))
    ann = KnownPlayer(world, "ann")
    with FakeHost(world.muster) as host:
        answer = ann.ask("POST", "/create/arena/main/1.0", data={})
        assert (answer.status, answer.error["code"]) == (503, "spawn_failed"), answer
        assert answer.error["message"] == (
            "The login service gave no token for the server: the token it gave is another account's.")
        assert host.spawned.empty()
        (told,) = world.api.all("/v1/hosts")
        assert told["passed_over"] is None  # it has done nothing wrong
        assert ann.seats() == []


def test_core_tries_again_when_a_token_did_not_come(start, login):
    world = start(access_token=OWN)
    first = [403]
    login.answer = lambda path, form: (
        (first.pop(), "") if first else LoginService.take(login, path, form))
    with FakeHost(world.muster) as host:
        made = KnownPlayer(world, "ann").create()
        assert server_of(host, made).spawn["login_access_token"]
    assert login.asked.qsize() == 2


# --- configuration


def test_without_a_login_service_there_is_no_signing_key(make_world, tmp_path, master):
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES,
                       access={"keys": [public_file(tmp_path)]})
    ann = KnownPlayer(world, "ann")
    with FakeHost(world.muster) as host:
        made = ann.create()
        server = server_of(host, made)
        error = refused(server, made["key"], extend_token=master, extend_scopes="*")
        assert error["code"] == "no_signing_key"
        stays_reserved(ann, server, made)


def test_a_reload_changes_whom_is_asked(host, world, login, ann, master):
    made = ann.create()
    server = server_of(host, made)
    access = world.muster.config["access"]
    world.reload(**{**world.muster.config, "access": {**access, "login_url": ""}})
    error = refused(server, made["key"], extend_token=master, extend_scopes="*")
    assert error["code"] == "no_signing_key"
    lines = world.reload(**{**world.muster.config, "access": access})
    assert ("access.login_url", login.url) in [(l.get("what"), l.get("now")) for l in lines]
    assert "profile" in server.joined(made["key"], extend_token=master, extend_scopes="*")["scopes"]
