"""Hosts, rooms and what belongs to them, over HTTP: what agents send, what they are asked for, and
what operators see and do. The agent is one that starts nothing (fake_host.py)."""

import base64
import http.client
import json
import threading

import pytest
from events import Reader
from fake_host import FakeHost, Refused
from http_api import Api, admin_token
from players import Player, fleets, token_of
from prometheus import scrape

NO_RATES = {"create": [{"count": 100000, "seconds": 60}], "join": [{"count": 100000, "seconds": 60}]}


@pytest.fixture
def world(make_world):
    return make_world(default_region="EU", fleets=fleets(), rates=NO_RATES)


@pytest.fixture
def host(world):
    with FakeHost(world.muster) as host:
        yield host


@pytest.fixture
def ann(world):
    return Player(world, "ann")


def server_of(host, placed):
    return next(s for s in host.servers.values() if s.room == placed["id"])


def beat(**changes):
    return {"name": "host-9", "address": "203.0.113.9", "url": "http://127.0.0.1:1", "region": "EU",
            "slots": 8, "cpu_percent": 12.5, "memory_percent": 40, "beat": 1, "servers": [], **changes}


# --- heartbeats


def test_the_first_heartbeat_registers_a_host(world):
    told = world.api.post("/v1/agent/heartbeat", **beat())
    assert told["interval_ms"] == 5000 and told["fetch"] == []
    assert told["token"].count(".") == 2
    (shown,) = world.api.all("/v1/hosts")
    assert shown["id"] == told["host"]
    assert (shown["name"], shown["address"], shown["url"]) == (
        "host-9", "203.0.113.9", "http://127.0.0.1:1")
    assert (shown["region"], shown["slots"], shown["enabled"]) == ("EU", 8, True)
    assert shown["passed_over"] is None and shown["cpu_percent"] == 12.5
    alone = world.api.get(f"/v1/hosts/{told['host']}")
    assert alone.pop("removal")["now"] is True
    assert shown == alone
    again = world.api.post("/v1/agent/heartbeat", **beat(beat=2, memory_percent=97))
    assert again["host"] == told["host"]
    assert world.api.get(f"/v1/hosts/{told['host']}")["passed_over"] == "overloaded"


def test_what_we_show_to_agents_survives_a_restart_and_opens_nothing(world, host, ann):
    told = host.beat()
    Api(world.muster, told["token"]).refused("GET", "/v1/hosts", 401, "bad_access_token")
    world.restart()
    assert host.beat()["token"] == told["token"]
    ann.create()
    assert set(host.authorized) == {f"Bearer {told['token']}"}


@pytest.mark.parametrize("changes, argument", [
    ({"name": ""}, "name"),
    ({"name": "x" * 65}, "name"),
    ({"name": None}, "name"),
    ({"address": 7}, "address"),
    ({"url": "ftp://x"}, "url"),
    ({"region": "ATLANTIS"}, "region"),
    ({"slots": -1}, "slots"),
    ({"cpu_percent": -0.5}, "cpu_percent"),
    ({"memory_percent": "40"}, "memory_percent"),
    ({"memory_percent": 1e30}, "memory_percent"),
    ({"beat": 0}, "beat"),
    ({"leaving": "no"}, "leaving"),
    ({"deployments": ["abc"]}, "deployments"),
    ({"deployments": "abc"}, "deployments"),
    ({"servers": {}}, "servers"),
    ({"servers": [7]}, "servers"),
    ({"servers": [{"id": 12, "session": "1", "state": "running"}]}, "id"),
    ({"servers": [{"id": "12", "session": "x", "state": "running"}]}, "session"),
    ({"servers": [{"id": "12", "session": "1", "state": "dancing"}]}, "state"),
    ({"servers": [{"id": "12", "session": "1", "state": "running", "ports": [0]}]}, "ports"),
    ({"servers": [{"id": "12", "session": "1", "state": "running", "ports": [1] * 5}]}, "ports"),
])
def test_a_wrong_heartbeat_is_refused(world, changes, argument):
    answer = world.api.ask("POST", "/v1/agent/heartbeat", data=beat(**changes))
    assert (answer.status, answer.error["code"]) == (400, "bad_argument"), answer
    assert answer.error["argument"] == argument
    assert world.api.all("/v1/hosts") == []


@pytest.mark.parametrize("path", ["/v1/agent/heartbeat", "/v1/agent/events"])
def test_bodies_of_agents_are_json_objects(world, path):
    api = world.api
    for body in (b"", b"{", b"[]", b"7"):
        api.refused("POST", path, 400, "bad_argument", body=body, content_type="application/json")
    api.refused("POST", path, 415, "unsupported_type", form={"name": "x"})
    most = 1 << 20 if path.endswith("heartbeat") else 64 << 10
    too_much = b" " * (most + 1)
    api.refused("POST", path, 413, "too_large", body=too_much, content_type="application/json")


def test_unknown_members_are_ignored(world):
    world.api.post("/v1/agent/heartbeat", **beat(weather="fine"))


def test_agents_need_their_scope(world):
    game = Api(world.muster, token_of(world, "x", "game", "muster_read"))
    agent = Api(world.muster, token_of(world, "x", "game_host"))
    for path in ("/v1/agent/heartbeat", "/v1/agent/events"):
        Api(world.muster).refused("POST", path, 401, "no_access_token")
        game.refused("POST", path, 403, "forbidden", data=beat())
    assert agent.ask("POST", "/v1/agent/heartbeat", data=beat()).status == 200
    agent.refused("GET", "/v1/hosts", 403, "forbidden")


# --- whose a host is


def test_a_host_belongs_to_the_account_that_registered_it(world, ann):
    token = token_of(world, "racks", "game_host")
    mallory = Api(world.muster, token_of(world, "mallory", "game_host"))
    with FakeHost(world.muster, token=token) as host:
        server = server_of(host, ann.create())
        before = world.api.get(f"/v1/hosts/{host.beat()['host']}")
        told = mallory.refused("POST", "/v1/agent/heartbeat", 403, "forbidden",
                               data=beat(name="host-1"))
        assert told == "Host host-1 belongs to another account."
        after = world.api.get(f"/v1/hosts/{before['id']}")
        assert (after["url"], after["address"]) == (host.url, "203.0.113.7")
        event = {"server": server.id, "seq": 77, "event": "exited", "exit_code": 0}
        (answer,) = mallory.post("/v1/agent/events", name="host-1", events=[event])["answers"]
        assert (answer["error"]["code"], answer["error"]["status"]) == ("forbidden", 403)
        assert world.api.get(f"/v1/sessions/{server.room}")["state"] == "open"
        again = FakeHost(world.muster, token=token_of(world, "racks", "game_host", "game"))
        again.url = host.url  # another token of the same account
        assert again.beat(servers=[server.listed()])["host"] == before["id"]


def test_an_operator_frees_a_name(make_world):
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES, host_ms=300)
    racks, other = (Api(world.muster, token_of(world, a, "game_host")) for a in ("racks", "other"))
    first = racks.post("/v1/agent/heartbeat", **beat())
    world.api.post(f"/v1/hosts/{first['host']}/disable")
    world.wait(lambda: world.api.all("/v1/hosts")[0]["passed_over"] == "silent", "silent host")
    second = other.post("/v1/agent/heartbeat", **beat(beat=1))
    assert second["host"] == first["host"] and second["token"] != first["token"]
    racks.refused("POST", "/v1/agent/heartbeat", 403, "forbidden", data=beat(beat=2))


def test_each_agent_is_called_with_a_token_of_its_own(world, ann):
    ben = Player(world, "ben")
    with FakeHost(world.muster, "host-1", slots=1) as one, \
            FakeHost(world.muster, "host-2", slots=1, first_port=50000) as two:
        tokens = [host.beat()["token"] for host in (one, two)]
        assert tokens[0] != tokens[1]
        for player in (ann, ben):
            placed = player.create()
            host = one if any(s.room == placed["id"] for s in one.servers.values()) else two
            server = server_of(host, placed)
            server.joined(placed["key"])
            host.logs[server.id] = ["a line"]
            world.api.ask("GET", f"/v1/servers/{server.id}/logs")
            host.following.put(None)
            world.api.ask("GET", f"/v1/servers/{server.id}/logs", query={"follow": "true"})
            world.api.post(f"/v1/servers/{server.id}/stdin", line="hello")
            world.api.post(f"/v1/seats/{placed['slot']}/kick", reason="enough")
            host.kicked.get(timeout=20)
            world.api.post(f"/v1/servers/{server.id}/terminate")
            host.terminated.get(timeout=20)
        for host, token in zip((one, two), tokens):
            assert host.authorized == [f"Bearer {token}"] * 7, host.name


# --- spawning


def test_a_spawn_says_how(make_world):
    fleet = fleets(
        binary="bin/arena", ports=2, endpoint="uri", arguments=["--fast", "a b"],
        env=[{"key": "A", "value": 'quo"te'}], server_settings=json.dumps({"tick": 30}),
        discover=[{"name": "profile", "url": "http://profile"}],
        access_token={"account": "server-of-arena", "scopes": "profile,leaderboard"},
        status_period_s=7, spawn_timeout_s=12,
        versions=[{"name": "1.0"}, {"name": "2.0", "server_settings": '{"tick": 60}'}])
    world = make_world(default_region="EU", fleets=fleet, rates=NO_RATES)
    with FakeHost(world.muster) as host:
        made = Player(world, "ann").create({"map": "dust"})
        spawn = server_of(host, made).spawn
        token = spawn.pop("login_access_token")
        assert spawn == {
            "server_id": spawn["server_id"], "session_id": made["id"], "room_id": made["id"],
            "fleet": "arena", "version": "1.0", "deployment": None, "binary": "bin/arena",
            "endpoint": "uri", "ports": 2, "arguments": ["--fast", "a b"],
            "env": [{"key": "A", "value": 'quo"te'}], "room_settings": {"map": "dust"},
            "server_settings": {"tick": 30}, "max_players": 4,
            "discovery_services": {"profile": "http://profile"},
            "spawn_timeout_ms": spawn["spawn_timeout_ms"], "status_period_ms": 7000}
        assert 0 < spawn["spawn_timeout_ms"] <= 12000
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        assert (claims["acc"], claims["sco"]) == ("server-of-arena", "profile,leaderboard")
        other = Player(world, "bob", game="arena/main/2.0").create()
        assert server_of(host, other).spawn["server_settings"] == {"tick": 60}
        assert made["location"]["ports"] == server_of(host, made).ports


def test_an_agent_that_refuses_is_quoted(world, ann):
    class Refuses(FakeHost):
        def hear(self, path, body):
            if path == "/spawn":
                return 409, {"error": {"code": "no_port", "message": "There is no port left."}}
            return super().hear(path, body)

    with Refuses(world.muster):
        answer = ann.ask("POST", "/create/arena/main/1.0", data={})
        assert (answer.status, answer.error["code"]) == (503, "spawn_failed"), answer
        assert "There is no port left" in answer.error["message"]
        (ticket,) = world.api.all("/v1/tickets", kind="room")
        assert ticket["state"] == "failed" and "no port left" in ticket["error"]["message"]
        (shown,) = world.api.all("/v1/hosts")
        assert shown["passed_over"] == "failing" and shown["backoff_left_ms"] > 0


@pytest.mark.parametrize("status, refused", [
    (401, False), (402, True), (403, False), (499, True), (500, False), (503, False)])
def test_which_answers_of_an_agent_refuse_a_spawn(world, ann, status, refused):
    """One that does not know our token or is in trouble has refused nothing: it is asked again."""
    asked = []

    class Answers(FakeHost):
        def hear(self, path, body):
            if path == "/spawn":
                asked.append(body["server_id"])
                if len(asked) == 1:
                    return status, {"error": {"code": "no", "message": "Not now."}}
            return super().hear(path, body)

    with Answers(world.muster):
        answer = ann.ask("POST", "/create/arena/main/1.0", data={})
        assert answer.status == (503 if refused else 200), answer
        assert len(asked) == (1 if refused else 2)


def test_who_waits_for_a_server_is_told_that_muster_stops(make_world):
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES)
    with FakeHost(world.muster, script=lambda server: None) as host:
        ann = Player(world, "ann")
        got = []
        waiting = threading.Thread(
            target=lambda: got.append(ann.ask("POST", "/create/arena/main/1.0", data={})))
        waiting.start()
        host.spawned.get(timeout=10)
        assert world.muster.term() == 0
        waiting.join(10)
        assert (got[0].status, got[0].error["code"]) == (503, "busy")


# --- events


def test_events_are_answered_one_by_one_and_in_order(world, host, ann):
    server = server_of(host, ann.create())
    bob = Player(world, "bob").enter(server.room)
    events = [
        {"server": server.id, "seq": 10, "event": "update_settings", "settings": {"map": "ice"}},
        {"server": server.id, "seq": 11, "event": "joined", "key": "rubbish"},
        {"server": server.id, "seq": 12, "event": "joined", "key": bob["key"]},
        {"server": server.id, "seq": 13, "event": "dance"},
        {"server": server.id, "seq": 14, "event": "left", "key": bob["key"]},
        {"server": "999999", "seq": 1, "event": "left", "key": "x"},
        {"server": server.id, "seq": 15, "event": "check_deployment"},
        {"server": server.id, "seq": 16, "event": "update_settings"},
    ]
    answers = host.post("/v1/agent/events", {"name": host.name, "events": events})["answers"]
    assert [(a["server"], a["seq"]) for a in answers] == [(e["server"], e["seq"]) for e in events]
    assert answers[0]["result"] == {}
    assert (answers[1]["error"]["code"], answers[1]["error"]["status"]) == ("bad_key", 403)
    assert answers[2]["result"]["account"] == "bob"
    assert answers[3]["error"]["code"] == "bad_argument"
    assert answers[4]["result"] == {} and answers[6]["result"] == {}
    assert answers[7]["error"]["message"] == "settings is missing."
    room = world.api.get(f"/v1/rooms/{server.room}")
    assert room["settings"] == {"map": "ice"}
    assert [s["account"] for s in room["seats"]] == ["ann"]
    again = host.post("/v1/agent/events", {"name": host.name, "events": events[:3]})["answers"]
    assert again[0] == answers[0]


def test_no_events_are_no_mistake(host):
    assert host.post("/v1/agent/events", {"name": "host-1", "events": []}) == {"answers": []}


def test_events_without_a_number_do_not_hold_up_the_others(world, host, ann):
    """Whoever has one of them in his queue would be stuck with it for ever."""
    server = server_of(host, ann.create())
    bad = [7, None, {}, {"server": "x", "seq": 3}, {"server": server.id},
           {"server": server.id, "seq": 0, "event": "left", "key": "k"},
           {"server": "0", "seq": 4, "event": "joined", "key": "k"}]
    good = [{"server": server.id, "seq": 10 + i, "event": "update_settings", "settings": {"n": i}}
            for i in range(len(bad))]
    events = [e for pair in zip(bad, good) for e in pair]
    answers = host.post("/v1/agent/events", {"name": host.name, "events": events})["answers"]
    assert [a["error"]["code"] for a in answers[::2]] == ["bad_argument"] * len(bad)
    assert [(a["server"], a["seq"]) for a in answers[::2]] == [
        (None, 0), (None, 0), (None, 0), (None, 3), (server.id, 0), (server.id, 0), (None, 4)]
    assert answers[0]["error"]["message"] == "An event is an object."
    assert answers[4]["error"]["message"] == "server is missing."
    assert [(a["seq"], a["result"]) for a in answers[1::2]] == [(e["seq"], {}) for e in good]
    assert world.api.get(f"/v1/rooms/{server.room}")["settings"] == {"n": len(bad) - 1}


@pytest.mark.parametrize("events, argument", [
    ("x", "events"), ([{"server": "1", "seq": 1, "event": "left"}] * 257, "events"),
])
def test_events_that_are_no_list_of_events_are_refused(world, events, argument):
    answer = world.api.ask("POST", "/v1/agent/events", data={"name": "h", "events": events})
    assert (answer.status, answer.error.get("argument")) == (400, argument), answer


def test_joined_tells_who_it_is(world, host, ann):
    made = ann.create(info={"skin": "red"})
    server = server_of(host, made)
    told = server.joined(made["key"])
    assert told == {"access_token": ann.token, "account": "ann", "info": {"skin": "red"},
                    "scopes": ["game"]}
    (seat,) = world.api.all("/v1/seats", account="ann")
    assert (seat["state"], seat["room"], seat["info"]) == ("taken", made["id"], {"skin": "red"})


def test_a_token_that_cannot_be_extended_leaves_the_seat_reserved(world, host, ann):
    made = ann.create()
    server = server_of(host, made)
    with pytest.raises(Refused) as refused:
        server.joined(made["key"], extend_token="rubbish", extend_scopes="profile")
    assert refused.value.error["code"] == "bad_access_token"
    with pytest.raises(Refused) as refused:
        server.joined(made["key"], extend_token="", extend_scopes="profile")
    assert refused.value.error["code"] == "bad_access_token"
    assert refused.value.error["message"] == "The access token cannot be extended: extend_token is empty."
    (seat,) = world.api.all("/v1/seats", room=made["id"])
    assert seat["state"] == "reserved"
    master = token_of(world, "master", "game_multi", "game_ban")
    told = server.joined(made["key"], extend_token=master, extend_scopes=["game_multi"])
    assert sorted(told["scopes"]) == ["game", "game_multi"]
    assert told["access_token"] != ann.token


@pytest.mark.parametrize("extension", [{"extend_token": "", "extend_scopes": ""}, {"extend_scopes": "profile"},
                                       {"extend_token": "rubbish"}])
def test_a_token_is_extended_only_when_both_are_passed(host, ann, extension):
    made = ann.create()
    assert server_of(host, made).joined(made["key"], **extension)["scopes"] == ["game"]


# --- looking


def test_rooms_and_their_seats(world, host, ann):
    made = ann.create({"map": "dust"})
    server = server_of(host, made)
    (room,) = world.api.all("/v1/rooms")
    assert (room["id"], room["server"], room["fleet"], room["version"]) == (
        made["id"], server.id, "arena", "1.0")
    assert (room["state"], room["host_name"], room["region"]) == ("open", "host-1", "EU")
    assert (room["reserved"], room["taken"], room["max_players"]) == (1, 0, 4)
    assert room["ports"] == server.ports and room["settings"] == {"map": "dust"}
    whole = world.api.get(f"/v1/rooms/{made['id']}")
    assert whole["exit"] is None
    assert [s["id"] for s in whole["seats"]] == [made["slot"]]
    for query, n in (({"fleet": "arena"}, 1), ({"fleet": "default"}, 0), ({"version": "1.0"}, 1),
                     ({"version": "2.0"}, 0), ({"region": "EU"}, 1), ({"region": "USE"}, 0),
                     ({"host": room["host"]}, 1), ({"host": "77"}, 0), ({"state": "open"}, 1),
                     ({"state": "starting"}, 0)):
        assert len(world.api.all("/v1/rooms", **query)) == n, query
    assert len(world.api.all("/v1/seats", room=made["id"], account="ann", state="reserved")) == 1
    assert world.api.all("/v1/seats", state="taken") == []
    world.api.refused("GET", "/v1/rooms/4711", 404, "not_found")
    world.api.refused("GET", "/v1/hosts/4711", 404, "not_found")
    world.api.refused("GET", "/v1/rooms", 400, "bad_argument", query={"fleet": "x"})


def test_matches_and_rooms_stand_in_one_list(world, host, ann):
    game, asker = world.server(capacity=4), world.chat()
    placed = []
    for lobby in (1, 2, 3):
        asker.allocate(lobby)
        placed.append(Player(world, f"p{lobby}").create())
    sessions = world.api.all("/v1/sessions")
    assert [s["kind"] for s in sessions] == ["match", "room"] * 3
    ids = [int(s["id"]) for s in sessions]
    assert ids == sorted(set(ids))
    assert [s["id"] for s in world.api.all("/v1/sessions", kind="room")] == [p["id"] for p in placed]
    assert [s["id"] for s in world.api.all("/v1/sessions", limit=1)] == [s["id"] for s in sessions]
    newest = world.api.all("/v1/sessions", order="newest", limit=2)
    assert newest == sessions[::-1]
    room = world.api.get(f"/v1/sessions/{placed[0]['id']}")
    assert (room["chat_server"], room["lobby"], room["game_type"]) == (None, None, None)
    assert (room["version"], room["player_count"]) == ("1.0", 4)
    tickets = world.api.all("/v1/tickets")
    assert [t["kind"] for t in tickets] == ["match", "room"] * 3
    assert world.api.all("/v1/tickets", account="p2")[0]["session"] == placed[1]["id"]
    assert [t["id"] for t in world.api.all("/v1/tickets", limit=1)] == [t["id"] for t in tickets]
    servers = world.api.all("/v1/servers")
    assert [s["provider"] for s in servers] == ["chat"] + ["agent"] * 3
    assert servers == world.api.all("/v1/servers", limit=1)
    assert servers == world.api.all("/v1/servers", order="newest", limit=1)[::-1]
    assert [s["id"] for s in world.api.all("/v1/servers", provider="chat")] == [str(game.server_id)]
    assert len(world.api.all("/v1/servers", status="running", fleet="arena", region="EU")) == 3
    status = world.api.get("/v1/status")
    assert status["rooms"] == {"starting": 0, "open": 3, "ending": 0, "reserved": 3, "taken": 0}
    assert status["hosts"]["healthy"] == 1
    fleet = world.api.get("/v1/fleets/arena")
    assert (fleet["provider"], fleet["game"], fleet["server"]) == ("agent", "arena", "main")
    assert (fleet["rooms"], fleet["max_players"]) == (3, 4)
    assert world.api.get("/v1/fleets/default")["game"] is None


def test_servers_of_both_kinds_page_by_page(world, host, ann):
    """Registered and spawned ones in turn, so that a page begins after either."""
    for n in range(4):
        world.server()
        Player(world, f"p{n}").create()
    providers = [s["provider"] for s in world.api.all("/v1/servers", limit=1)]
    assert providers == ["chat", "agent"] * 4
    ids = [s["id"] for s in world.api.all("/v1/servers")]
    for cursor in ids:
        after = world.api.all("/v1/servers", limit=3)[ids.index(cursor) + 1:]
        page = world.api.get("/v1/servers", cursor=cursor)["items"]
        assert [s["id"] for s in page] == [s["id"] for s in after]
        page = world.api.get("/v1/servers", cursor=cursor, order="newest")["items"]
        assert [s["id"] for s in page] == ids[:ids.index(cursor)][::-1]


def test_why_a_room_came_to_be(world, host, ann):
    made = ann.create()
    (ticket,) = world.api.all("/v1/tickets", account="ann")
    assert (ticket["verb"], ticket["state"], ticket["version"]) == ("create", "done", "1.0")
    why = world.api.get(f"/v1/tickets/{ticket['id']}/why")
    assert [t["outcome"] for t in why["hosts"]] == ["opened"] and why["tries"] == []
    assert f"room {made['id']}" in why["sentence"] and "host-1" in why["sentence"]
    assert why["ticket"] == world.api.get(f"/v1/tickets/{ticket['id']}", wait=1)


def test_exit_report(world, host, ann):
    made = ann.create()
    server = server_of(host, made)
    host.servers.pop(server.id)
    server.say("exited", exit_signal=11, peak_memory=4096, run_ms=1234, dropped_bytes=77,
               tail="line 1\nboom")
    shown = world.api.get(f"/v1/servers/{server.id}")
    assert (shown["status"], shown["room"], shown["pid"]) == ("gone", made["id"], server.pid)
    assert shown["exit"] == {"code": None, "signal": 11, "why": None, "peak_memory": 4096,
                             "run_ms": 1234, "dropped_bytes": 77, "tail": "line 1\nboom"}
    room = world.api.get(f"/v1/rooms/{made['id']}")
    assert (room["state"], room["end_reason"], room["seats"]) == ("ended", "exited", [])
    assert room["exit"] == shown["exit"]


def test_a_long_tail_is_cut(world, host, ann):
    """Not refused: the agent would send it again for ever."""
    server = server_of(host, ann.create())
    host.servers.pop(server.id)
    server.say("exited", exit_code=1, peak_memory=1, run_ms=1, tail="x" + "ä" * 5000 + "end")
    tail = world.api.get(f"/v1/servers/{server.id}")["exit"]["tail"]
    assert len(tail.encode()) <= 4096 and tail.endswith("äend")
    assert set(tail) == set("ände")


# --- changing


def audit_of(world):
    line = world.api.get("/v1/audit", limit=1)["items"][0]
    return line["action"], (line["target"] or {}).get("kind"), (line["target"] or {}).get("id")


def test_hosts_are_disabled_and_enabled(world, host, ann):
    (shown,) = world.api.all("/v1/hosts")
    assert world.api.post(f"/v1/hosts/{shown['id']}/disable")["enabled"] is False
    assert audit_of(world) == ("disable", "host", shown["id"])
    assert world.api.all("/v1/hosts", status="disabled", region="EU")
    answer = ann.ask("POST", "/create/arena/main/1.0", data={})
    assert (answer.status, answer.error["code"]) == (503, "no_host"), answer
    assert world.api.post(f"/v1/hosts/{shown['id']}/enable")["passed_over"] is None
    ann.create()
    world.api.refused("POST", "/v1/hosts/4711/disable", 404, "not_found")
    world.api.refused("POST", "/v1/hosts/4711/enable", 404, "not_found")


def test_a_player_is_kicked(world, host, ann):
    made = ann.create()
    server_of(host, made).joined(made["key"])
    kicked = world.api.post(f"/v1/seats/{made['slot']}/kick", reason="enough")
    assert kicked == {"seat": made["slot"]}
    assert audit_of(world) == ("kick", "seat", made["slot"])
    number, body = host.kicked.get(timeout=10)
    assert number == server_of(host, made).id
    assert body["key"] == made["key"] and "enough" in body["reason"]
    assert world.api.all("/v1/seats") == []
    world.api.refused("POST", f"/v1/seats/{made['slot']}/kick", 404, "not_found")


def test_a_server_is_terminated(world, host, ann):
    made = ann.create()
    server = server_of(host, made)
    assert world.api.post(f"/v1/servers/{server.id}/terminate")["status"] == "ending"
    assert audit_of(world) == ("terminate", "server", server.id)
    number, body = host.terminated.get(timeout=10)
    assert number == server.id and body["grace_ms"] == 5000 and body["why"]
    server.say("exited", exit_code=0, peak_memory=1, run_ms=1, tail="")
    assert world.api.get(f"/v1/rooms/{made['id']}")["end_reason"] == "by_operator"
    world.api.refused("POST", f"/v1/servers/{server.id}/terminate", 409, "already_over")
    world.api.refused("POST", "/v1/servers/4711/terminate", 404, "not_found")
    registered = world.server()
    why = world.api.refused("POST", f"/v1/servers/{registered.server_id}/terminate", 409,
                            "wrong_provider")
    assert "Drain it" in why


def test_a_room_is_ended_as_a_session(world, host, ann):
    made = ann.create()
    ended = world.api.post(f"/v1/sessions/{made['id']}/end")
    assert (ended["kind"], ended["state"]) == ("room", "ending")
    assert host.terminated.get(timeout=10)[0] == ended["server"]
    assert audit_of(world) == ("end", "session", made["id"])


def test_versions_are_turned_off_and_on(world, host, ann):
    names = {v["name"]: v for v in world.api.all("/v1/versions", fleet="arena")}
    assert names["1.0"]["enabled"] and not names["0.9"]["enabled"]
    assert names["1.0"]["hosts"] == 1
    off = world.api.post("/v1/versions/disable", fleet="arena", version="1.0")
    assert off["enabled"] is False
    assert audit_of(world)[:2] == ("disable", "version")
    answer = ann.ask("POST", "/join/arena/main/1.0", data={})
    assert (answer.status, answer.error["code"]) == (410, "version_disabled")
    assert world.api.post("/v1/versions/enable", fleet="arena", version="1.0")["enabled"] is True
    ann.create()
    assert world.api.all("/v1/versions", fleet="arena")[0]["rooms"] == 1
    for verb in ("enable", "disable"):
        path = f"/v1/versions/{verb}"
        world.api.refused("POST", path, 404, "no_such_version",
                          data={"fleet": "arena", "version": "7"})
        world.api.refused("POST", path, 400, "bad_argument", data={"fleet": "x", "version": "7"})
        world.api.refused("POST", path, 409, "wrong_provider",
                          data={"fleet": "default", "version": "1.0"})
    world.api.refused("POST", "/v1/versions/enable", 410, "version_disabled",
                      data={"fleet": "arena", "version": "0.9"})


def test_a_server_of_a_version_that_is_off_is_told_so(world, host, ann):
    server = server_of(host, ann.create())
    assert server.say("check_deployment") == {}
    world.api.post("/v1/versions/disable", fleet="arena", version="1.0")
    with pytest.raises(Refused) as refused:
        server.say("check_deployment")
    assert (refused.value.error["code"], refused.value.error["status"]) == ("version_disabled", 404)


def test_bans_are_listed(world):
    world.api.post("/ban/issue", account="eve", expires="2999-01-01 00:00:00", reason="cheats")
    world.api.post("/ban/issue", account="mallory", expires="2999-01-01 00:00:00", reason="lies")
    assert [b["account"] for b in world.api.all("/v1/bans", limit=1)] == ["eve", "mallory"]
    (ban,) = world.api.all("/v1/bans", account="eve", state="held")
    assert (ban["reason"], ban["address"], ban["expired"]) == ("cheats", None, False)
    assert world.api.all("/v1/bans", state="expired") == []


def test_deployments_that_are_not_there(world):
    assert world.api.all("/v1/deployments", fleet="arena") == []
    world.api.refused("GET", "/v1/deployments/1", 404, "not_found")
    world.api.refused("POST", "/v1/deployments/1/switch", 404, "not_found")


# --- output and input


def test_logs_are_asked_of_the_agent(world, host, ann):
    server = server_of(host, ann.create())
    host.logs[server.id] = [f"line {n}" for n in range(500)]
    answer = world.api.ask("GET", f"/v1/servers/{server.id}/logs", {"lines": 2})
    assert (answer.status, answer.body) == (200, b"line 498\nline 499\n")
    assert answer.head["content-type"] == "text/plain; charset=utf-8"
    assert len(world.api.ask("GET", f"/v1/servers/{server.id}/logs").body.splitlines()) == 200
    world.api.refused("GET", "/v1/servers/4711/logs", 404, "not_found")
    registered = world.server()
    world.api.refused("GET", f"/v1/servers/{registered.server_id}/logs", 409, "wrong_provider")


def test_logs_of_a_server_its_agent_forgot_are_its_last_lines(world, host, ann):
    server = server_of(host, ann.create())
    world.api.refused("GET", f"/v1/servers/{server.id}/logs", 404, "not_found")
    server.say("exited", exit_code=3, peak_memory=1, run_ms=1, tail="the end")
    host.servers.pop(server.id)
    answer = world.api.ask("GET", f"/v1/servers/{server.id}/logs")
    assert (answer.status, answer.body) == (200, b"the end\n")


def test_logs_are_followed_until_the_server_is_gone(world, host, ann):
    server = server_of(host, ann.create())
    host.logs[server.id] = ["first"]
    got = []
    follower = threading.Thread(target=lambda: got.append(world.api.ask(
        "GET", f"/v1/servers/{server.id}/logs", {"follow": "true"})))
    follower.start()
    for line in ("second", "third", None):
        host.following.put(line)
    follower.join(20)
    assert got[0].status == 200 and got[0].body == b"first\nsecond\nthird\n"


def test_a_follower_of_a_silent_server_is_not_kept_waiting(world, host, ann):
    """His answer begins before there is a line, so that he knows that all is well."""
    server = server_of(host, ann.create())
    host.logs[server.id] = []
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=20)
    connection.request("GET", f"/v1/servers/{server.id}/logs?follow=1",
                       headers={"Authorization": f"Bearer {admin_token(world.muster)}"})
    answer = connection.getresponse()  # the agent has said nothing yet
    assert answer.status == 200
    host.following.put("at last")
    assert answer.readline() == b"at last\n"
    host.following.put(None)
    assert answer.read() == b""


def test_a_follower_who_goes_away_is_forgotten(world, host, ann):
    server = server_of(host, ann.create())
    host.logs[server.id] = ["first"]
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=20)
    connection.request("GET", f"/v1/servers/{server.id}/logs?follow=1",
                       headers={"Authorization": f"Bearer {admin_token(world.muster)}"})
    answer = connection.getresponse()
    assert answer.readline() == b"first\n"
    answer.close()
    connection.close()

    def cut_off():
        host.following.put("somebody there?")
        return host.broken_off.is_set()

    world.wait(cut_off, "the end of the request to the agent")


def test_an_agent_that_is_not_there_is_said_so(world, host, ann):
    server = server_of(host, ann.create())
    host.url = "http://127.0.0.1:1"
    host.beat()
    why = world.api.refused("GET", f"/v1/servers/{server.id}/logs", 503, "host_away")
    assert "onnection refused" in why
    world.api.refused("POST", f"/v1/servers/{server.id}/stdin", 503, "host_away",
                      data={"line": "hello"})


def test_a_line_is_in_the_audit_before_it_is_written(world, host, ann):
    server = server_of(host, ann.create())
    assert world.api.post(f"/v1/servers/{server.id}/stdin", line="say hello") == {
        "server": server.id}
    assert host.written.get(timeout=10) == (server.id, "say hello")
    (line, *_) = world.api.get("/v1/audit")["items"]
    assert (line["action"], line["detail"]) == ("stdin", "say hello")
    world.api.refused("POST", f"/v1/servers/{server.id}/stdin", 400, "bad_argument",
                      data={"line": "two\nlines"})
    world.api.refused("POST", "/v1/servers/4711/stdin", 404, "not_found", data={"line": "x"})
    server.exited()
    world.api.refused("POST", f"/v1/servers/{server.id}/stdin", 409, "already_over",
                      data={"line": "x"})


# --- changes and figures


def test_changes_of_rooms_are_streamed(world, host):
    kinds = "host,room,room_seat,room_ticket,ban,version,note"
    reader = Reader(world, kinds=kinds).expect_open()

    def wait(look):
        return world.wait(lambda: next((e for e in reader.events if look(e)), None), "an event")

    made = Player(world, "ann").create({"secret": "settings"})
    server_of(host, made).joined(made["key"])
    world.api.post("/ban/issue", account="eve", expires="2999-01-01 00:00:00", reason="x")
    seat = wait(lambda e: e.type == "room_seat" and e.data.get("state") == "taken")
    ban = wait(lambda e: e.type == "ban")
    wait(lambda e: e.type == "note" and e.data["text"] == "seat taken")
    seen = reader.events
    reader.close()
    assert seat.data["account"] == "ann" and set(seat.data) == {
        "id", "room", "ticket", "fleet", "account", "address", "state", "multi", "reserved_at",
        "joined_at", "deadline_at"}
    assert ban.data["account"] == "eve"
    states = [e.data["state"] for e in seen if e.type == "room" and "state" in e.data]
    assert states[0] == "starting" and "open" in states
    assert [e.data["state"] for e in seen if e.type == "room_ticket"] == ["open", "done"]
    notes = [e.data for e in seen if e.type == "note"]
    opened = next(n for n in notes if n["text"] == "room open")
    assert (opened["session"], opened["server"]) == (made["id"], server_of(host, made).id)
    taken = next(n for n in notes if n["text"] == "seat taken")
    assert (taken["player"], taken["seat"]) == ("ann", made["slot"])
    everything = json.dumps([e.data for e in seen])
    assert made["key"] not in everything and "sealed" not in everything


def test_metrics_of_rooms(world, host, ann):
    made = ann.create()
    server = server_of(host, made)
    server.joined(made["key"])
    place = {"fleet": "arena", "region": "EU"}

    def looked():
        page = scrape(world.muster)
        return page if page.get("muster_room_seats", **place, state="taken") == 1 else None

    page = world.wait(looked, "a look at all rooms")
    assert page.get("muster_hosts", region="EU", status="healthy") == 1
    assert page.get("muster_rooms", **place, state="open") == 1
    assert page.get("muster_joins_total", **place, result="done", reason="ok") == 1
    assert page.get("muster_join_duration_seconds_count", **place) == 1
    assert page.sum("muster_allocations_total", fleet="arena") == 0
    assert page.get("muster_spawns_total", **place) == 1
    assert page.get("muster_spawn_results_total", **place, result="open") == 1
    assert page.get("muster_spawn_duration_seconds_count", **place) == 1
    assert page.get("muster_room_seats_taken_total", **place) == 1
    assert page.get("muster_placements_total", reason="ok") == 1
    assert page.get("muster_agent_calls_total", call="spawn", result="done") == 1
    server.exited()
    page = scrape(world.muster)
    assert page.get("muster_rooms_ended_total", **place, reason="exited") == 1
    assert page.get("muster_agent_event_batch_count") >= 3


# --- large hosts


def test_heartbeat_of_a_host_with_thousands_of_servers_is_taken(world):
    """2,000 servers are some 250 KB: more than anybody else may send."""
    servers = [
        {"id": str(900000 + n), "session": str(900000 + n), "pid": 100000 + n, "state": "running",
         "ports": [20000 + n], "since_ms": 1794807103000}
        for n in range(2000)
    ]
    beat = {"name": "large", "address": "127.0.0.1", "url": "http://127.0.0.1:1", "region": "EU",
            "slots": 2000, "cpu_percent": 1, "memory_percent": 1, "beat": 1, "deployments": [],
            "servers": servers}
    path = "/v1/agent/heartbeat"
    host = Api(world.muster, token_of(world, "large", "game_host"))
    assert host.ask("POST", path, data=beat).status == 200
    (shown,) = [h for h in world.api.all("/v1/hosts") if h["name"] == "large"]
    assert shown["servers"] == 2000
    player = Api(world.muster, token_of(world, "ann", "game"))
    assert player.ask("POST", path, data=beat).status == 413, "but of nobody who may not"
    assert host.ask("POST", "/v1/agent/events", data={"name": "large", "events": [], "x": "y" * 70000}
                    ).status == 413
