"""Rooms as players see them, on an agent that starts nothing: placing, filters, races, keys,
reservations, repeats and rates."""

import threading
import time

import jwt
import pytest
from fake_host import FakeHost, Refused
from http_api import Api
from players import Player, fleets, token_of

NO_RATES = {"create": [{"count": 100000, "seconds": 60}], "join": [{"count": 100000, "seconds": 60}]}


@pytest.fixture
def world(make_world):
    return make_world(default_region="EU", fleets=fleets(), rates=NO_RATES)


@pytest.fixture
def agent(world):
    with FakeHost(world.muster) as agent:
        yield agent


@pytest.fixture
def ann(world):
    return Player(world, "ann")


@pytest.fixture
def bob(world):
    return Player(world, "bob")


@pytest.fixture
def captain(world):
    return Player(world, "captain", scopes=("game", "game_multi"))


def all_at_once(*calls):
    """The results of calls that begin together, in order."""
    results = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(i, call):
        barrier.wait()
        results[i] = call()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def server_of(agent, placed):
    return next(s for s in agent.servers.values() if s.room == placed["id"])


# --- placing


def test_a_room_is_created_and_entered(agent, ann, bob):
    made = ann.create({"map": "dust", "mode": {"fast": True}})
    server = server_of(agent, made)
    assert made == {"id": server.room, "slot": made["slot"], "key": made["key"],
                    "location": {"host": "203.0.113.7", "ports": server.ports},
                    "settings": {"map": "dust", "mode": {"fast": True}}}
    assert server.spawn["room_settings"] == {"map": "dust", "mode": {"fast": True}}
    assert server.spawn["max_players"] == 4
    second = bob.enter(made["id"])
    assert (second["id"], second["location"]) == (made["id"], made["location"])
    assert second["slot"] != made["slot"] and second["key"] != made["key"]
    assert len(made["key"]) >= 43  # 256 bits
    assert [s["room"] for s in bob.seats()] == [made["id"]]
    assert Api(ann.muster).get("/status") == {"rooms": 1, "players": 2}


def test_what_the_server_says_stands_over_what_was_asked_for(world, ann):
    def script(server):
        server.inited(settings={"map": "goodone"})

    with FakeHost(world.muster, script=script):
        made = ann.create({"map": "badone", "mode": "x"})
        assert made["settings"] == {"map": "goodone", "mode": "x"}
        assert ann.rooms()[0]["settings"] == made["settings"]


def test_forms_and_json_do_the_same(agent, ann):
    answer = ann.ask("POST", "/create/arena/main/1.0",
                     form={"settings": '{"map":"a b"}', "info": '{"skin":"red"}'})
    made = answer.json
    assert made["settings"] == {"map": "a b"}
    told = server_of(agent, made).joined(made["key"])
    assert told["info"] == {"skin": "red"}


def test_settings_survive_what_json_allows(agent, ann):
    hostile = {"new\nline": 'a"b\\c\n\r\t', "": "ä€😀", "%s%n": "; rm -rf /", "deep": [[[{"a": None}]]],
               "number": 1.5, "big": 2**53, "yes": True}
    made = ann.create(hostile)
    assert made["settings"] == hostile
    assert server_of(agent, made).spawn["room_settings"] == hostile
    assert ann.rooms()[0]["settings"] == hostile


def test_joining_prefers_the_fullest_room(agent, ann, world):
    first = ann.create({"n": 1})
    second = Player(world, "bea").create({"n": 2})
    Player(world, "cat").enter(second["id"])
    assert Player(world, "dan").join()["id"] == second["id"]
    assert Player(world, "eve").join()["id"] == second["id"]
    assert Player(world, "fay").join()["id"] == first["id"]  # the other is full
    shown = {r["id"]: r["players"] for r in ann.rooms()}
    assert shown == {first["id"]: 2, second["id"]: 4}
    assert [r["id"] for r in ann.rooms(show_full="false")] == [first["id"]]


def test_nothing_fits_and_none_is_to_be_made(agent, ann, bob):
    ann.create({"map": "dust"})
    answer = bob.cannot(503, "no_place", data={"settings": {"map": "ice"}, "auto_create": False})
    assert int(answer.head["retry-after"]) >= 1
    made = bob.join({"map": "ice"}, create_settings={"map": "ice"})
    assert made["settings"] == {"map": "ice"}
    assert len(ann.rooms()) == 2


def test_a_full_room_is_full(agent, world, ann):
    made = ann.create()
    for name in ("b", "c", "d"):
        Player(world, name).enter(made["id"])
    answer = Player(world, "e").ask("POST", f"/room/arena/{made['id']}/join", data={})
    assert (answer.status, answer.error["code"]) == (503, "no_place")
    assert Player(world, "e").join()["id"] != made["id"]


def test_a_player_has_one_seat(agent, ann):
    first = ann.create()
    second = ann.create()
    assert [(s["room"], s["slot"]) for s in ann.seats()] == [(second["id"], second["slot"])]
    with pytest.raises(Refused) as refused:
        server_of(agent, first).joined(first["key"])
    assert refused.value.error["code"] == "bad_key"
    assert server_of(agent, second).joined(second["key"])["account"] == "ann"


def test_a_failed_attempt_leaves_the_old_seat(agent, ann):
    first = ann.create()
    ann.cannot(503, "no_place", data={"settings": {"x": 1}, "auto_create": False})
    answer = ann.ask("POST", "/room/arena/999999/join", data={})
    assert answer.status == 404
    assert [s["slot"] for s in ann.seats()] == [first["slot"]]


def test_where_players_are(agent, world, ann, bob):
    made = ann.create({"map": "dust"})
    bob.enter(made["id"])
    server_of(agent, made).joined(made["key"])
    seat, = bob.seats("ann")
    assert seat == {"account": "ann", "room": made["id"], "slot": made["slot"], "state": "taken",
                    "game": "arena", "server": "main", "version": "1.0", "region": "EU",
                    "location": made["location"], "settings": {"map": "dust"}}
    assert bob.seats()[0]["state"] == "reserved"
    assert {s["account"] for s in ann.all("/players")} == {"ann", "bob"}
    assert {s["account"] for s in ann.all("/players", limit=1)} == {"ann", "bob"}
    assert [s["account"] for s in ann.all("/players", accounts="bob,cat")] == ["bob"]
    assert ann.get("/player/nobody") == {"account": "nobody", "seats": []}


# --- what happens while the server starts


def test_a_starting_room_is_not_joinable(world, ann, bob):
    asked = threading.Event()
    go = threading.Event()

    def script(server):
        asked.set()
        assert go.wait(10)
        server.inited()

    with FakeHost(world.muster, script=script) as agent:
        made = []
        thread = threading.Thread(target=lambda: made.append(ann.create()))
        thread.start()
        assert asked.wait(10)
        room = next(iter(agent.servers.values())).room
        assert bob.rooms() == []
        answer = bob.ask("POST", f"/room/arena/{room}/join", data={})
        assert (answer.status, answer.error["code"]) == (409, "room_starting")
        bob.cannot(503, "no_place", data={"auto_create": False})
        assert not made
        go.set()
        thread.join()
        assert made[0]["id"] == room


def test_what_stopped_the_server_is_said(world, ann):
    def script(server):
        server.agent.servers.pop(server.id)
        server.say("failed", text="It exited with status 3 before it was ready.",
                   tail="no such map\nbye")

    with FakeHost(world.muster, script=script):
        answer = ann.cannot(503, "spawn_failed", "create")
        assert "status 3" in answer.error["message"]
        assert answer.error["output"] == "no such map\nbye"
        assert answer.error["ticket"].isdigit()
        assert answer.head["retry-after"] == str(answer.error["retry_after"])
        assert ann.seats() == [] and ann.rooms() == []


def test_a_refusal_says_when_a_host_is_back(make_world):
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES, host_backoff_ms=60000)
    ann = Player(world, "ann")

    def fail(server):
        server.agent.servers.pop(server.id)
        server.say("failed", text="no", tail="")

    with FakeHost(world.muster, script=fail):
        for code in ("spawn_failed", "no_host"):
            answer = ann.cannot(503, code, "create")
            assert 50 <= answer.error["retry_after"] <= 60
            assert answer.head["retry-after"] == str(answer.error["retry_after"])


def test_a_failed_spawn_is_tried_on_another_host(world, ann):
    def fail(server):
        server.agent.servers.pop(server.id)
        server.say("failed", text="no", tail="")

    with FakeHost(world.muster, name="bad", script=fail, cpu=1.0, memory=1.0) as bad:
        with FakeHost(world.muster, name="good", address="203.0.113.8", cpu=50.0,
                       first_port=41000) as good:
            made = ann.create()
            assert made["location"]["host"] == "203.0.113.8"
            assert bad.spawned.qsize() == 1 and good.spawned.qsize() == 1


def test_a_server_that_never_is_ready(make_world):
    world = make_world(default_region="EU", fleets=fleets(spawn_timeout_s=1), rates=NO_RATES, spawn_retry_ms=100)
    ann = Player(world, "ann")
    with FakeHost(world.muster, script=lambda server: None) as agent:
        answer = ann.cannot(504, "spawn_timeout", "create")
        assert answer.error["ticket"].isdigit()
        agent.terminated.get(timeout=10)


def test_placing_is_refused_when_muster_stops(world, ann):
    asked = threading.Event()

    with FakeHost(world.muster, script=lambda server: asked.set()) as agent:
        agent.beating = False
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(ann.ask("POST", "/create/arena/main/1.0", data={})))
        thread.start()
        assert asked.wait(10)
        world.muster.term()
        thread.join()
    assert (answers[0].status, answers[0].error["code"]) == (503, "busy")
    assert answers[0].head["retry-after"] == str(answers[0].error["retry_after"])


# --- filters


SETTINGS = {"map": "dust", "level": 5, "ranked": False, "title": "b", "tags": {"mode": "duel", "max": 2.5}}
FITS = [
    {},
    {"map": "dust"},
    {"level": 5.0},
    {"ranked": False},
    {"map": ["ice", "dust"]},
    {"level": {"@func": "=", "@value": 5}},
    {"level": {"@func": "!=", "@value": 6}},
    {"level": {"@func": ">", "@value": 4}},
    {"level": {"@func": "<", "@value": 5.5}},
    {"level": {"@func": ">=", "@value": 5}},
    {"level": {"@func": "<=", "@value": 5}},
    {"level": {"@func": "between", "@a": 5, "@b": 9}},
    {"level": {"@func": "in", "@values": [4, 5]}},
    {"title": {"@func": ">", "@value": "a"}},
    {"tags.mode": "duel"},
    {"tags.max": {"@func": "<", "@value": 3}},
    {"map": "dust", "level": {"@func": "in", "@values": [5, 6]}, "tags.mode": ["duel", "team"]},
]
FITS_NOT = [
    {"map": "ice"},
    {"map": ["ice", "sand"]},
    {"level": "5"},
    {"ranked": 0},
    {"level": {"@func": "=", "@value": 6}},
    {"level": {"@func": "!=", "@value": 5}},
    {"level": {"@func": ">", "@value": 5}},
    {"level": {"@func": "<", "@value": 5}},
    {"level": {"@func": ">=", "@value": 6}},
    {"level": {"@func": "<=", "@value": 4}},
    {"level": {"@func": "between", "@a": 6, "@b": 9}},
    {"level": {"@func": "in", "@values": [4, 6]}},
    {"level": {"@func": ">", "@value": "a"}},
    {"missing": "x"},
    {"missing": {"@func": "!=", "@value": 1}},
    {"missing": {"@func": "in", "@values": [1, 2]}},
    {"tags.mode": "team"},
    {"tags.none": "duel"},
    {"tags.mode.more": "duel"},
    {"level": {"@func": "in", "@values": [5, 6]}, "map": "ice"},
    {"map": "ice", "level": {"@func": "in", "@values": [5, 6]}},
]


def test_filters(agent, ann, bob):
    made = ann.create(SETTINGS)
    for wanted in FITS:
        assert [r["id"] for r in bob.rooms(wanted)] == [made["id"]], wanted
        assert bob.join(wanted, auto_create=False)["id"] == made["id"], wanted
    for unwanted in FITS_NOT:
        assert bob.rooms(unwanted) == [], unwanted
        bob.cannot(503, "no_place", data={"settings": unwanted, "auto_create": False})


# --- races


def test_two_hundred_race_for_the_last_seat(make_world):
    """One wins it. The others are told so, and those who may have another room get one; no room ever
    holds more than it has seats."""
    world = make_world(default_region="EU", fleets=fleets(max_players=2), rates=NO_RATES,
                       http={"connections": 1000, "connections_per_address": 1000})
    with FakeHost(world.muster) as agent:
        made = Player(world, "host").create()
        players = [Player(world, f"p{i}") for i in range(200)]
        enter = f"/room/arena/{made['id']}/join"
        answers = all_at_once(*(
            (lambda p=p: p.ask("POST", enter, data={})) for p in players[:100]),
            *((lambda p=p: p.ask("POST", "/join/arena/main/1.0", data={})) for p in players[100:]))
        by_room = {}
        for answer in answers:
            if answer.status == 200:
                by_room.setdefault(answer.json["id"], []).append(answer.json["slot"])
            else:
                assert (answer.status, answer.error["code"]) == (503, "no_place"), answer
        assert len(by_room.pop(made["id"])) == 1
        assert all(len(slots) <= 2 for slots in by_room.values())
        # Whoever asked for any room has a seat, but for one of them at most who may have the last.
        assert 99 <= sum(map(len, by_room.values())) <= 100
        slots = [slot for room in by_room.values() for slot in room]
        assert len(set(slots)) == len(slots)
        assert len(agent.servers) == 1 + len(by_room)


def test_one_player_many_times_at_once(agent, world, ann):
    """However many of his requests are answered, one seat is his in the end."""
    answers = all_at_once(*[lambda: ann.ask("POST", "/join/arena/main/1.0", data={})] * 20)
    assert any(a.status == 200 for a in answers)
    seats = ann.seats()
    assert len(seats) == 1
    assert seats[0]["slot"] in {a.json["slot"] for a in answers if a.status == 200}


# --- keys and reservations


def test_a_key_opens_one_seat_once(agent, world, ann, bob):
    made, other = ann.create(), bob.create()
    server, wrong = server_of(agent, made), server_of(agent, other)

    def refused(server, key, code):
        with pytest.raises(Refused) as fault:
            server.joined(key)
        assert fault.value.error["code"] == code, fault.value.error

    refused(wrong, made["key"], "bad_key")
    refused(server, "x" * len(made["key"]), "bad_key")
    refused(server, made["key"][:-1], "bad_key")
    told = server.joined(made["key"], seq=None)
    assert told["account"] == "ann" and told["scopes"] == ["game"]
    assert jwt.decode(told["access_token"], options={"verify_signature": False})["acc"] == "ann"
    refused(server, made["key"], "key_used")
    assert server.left(made["key"]) == {}
    assert server.left(made["key"]) == {}
    refused(server, made["key"], "bad_key")
    assert ann.seats() == []


def test_a_repeated_joined_gets_the_same_answer(agent, ann):
    made = ann.create()
    server = server_of(agent, made)
    number = next(server.seq)
    first = server.joined(made["key"], seq=number)
    assert server.joined(made["key"], seq=number) == first


def test_a_token_is_extended(agent, world, ann):
    made = ann.create()
    server = server_of(agent, made)
    master = token_of(world, "arena", "game_host", "game_ban")
    told = server.joined(made["key"], extend_token=master, extend_scopes="game_ban,muster_admin")
    assert sorted(told["scopes"]) == ["game", "game_ban"]
    stronger = Api(world.muster, told["access_token"])
    assert stronger.ask("GET", "/ban/find/eve").status == 404  # and not 403
    assert ann.ask("GET", "/ban/find/eve").status == 403


def test_a_failed_extension_leaves_the_seat_reserved(agent, ann):
    made = ann.create()
    server = server_of(agent, made)
    with pytest.raises(Refused) as fault:
        server.joined(made["key"], extend_token="rubbish", extend_scopes="*")
    assert fault.value.error["code"] == "bad_access_token"
    assert ann.seats()[0]["state"] == "reserved"
    assert server.joined(made["key"])["account"] == "ann"


@pytest.mark.parametrize("end", ["restart", "crash", None])
def test_a_reservation_ends_at_its_deadline(make_world, end):
    world = make_world(default_region="EU", fleets=fleets(reserve_s=5), rates=NO_RATES)
    ann, bob = Player(world, "ann"), Player(world, "bob")
    with FakeHost(world.muster) as agent:
        began = time.monotonic()
        made = ann.create()
        second = bob.enter(made["id"])
        server = server_of(agent, made)
        server.joined(second["key"])
        if end:
            getattr(world, end)()
            assert [s["slot"] for s in ann.seats()] == [made["slot"]]
            agent.beat()
        world.wait(lambda: ann.seats() == [], "end of a reservation")
        assert time.monotonic() - began > 4.5
        assert [s["state"] for s in bob.seats()] == ["taken"]
        with pytest.raises(Refused) as fault:
            server.joined(made["key"])
        assert fault.value.error["code"] == "bad_key"


def test_rooms_and_keys_survive_a_restart(agent, world, ann, bob):
    made = ann.create({"map": "dust"})
    world.crash()
    agent.beat()
    assert [r["id"] for r in bob.rooms()] == [made["id"]]
    told = server_of(agent, made).joined(made["key"])
    assert told["account"] == "ann"  # his sealed token can still be read
    assert jwt.decode(told["access_token"], options={"verify_signature": False})["acc"] == "ann"


def test_a_ban_takes_the_seat(agent, world, ann):
    made = ann.create()
    server_of(agent, made).joined(made["key"])
    warden = Player(world, "warden", scopes=("game_ban",))
    warden.post("/ban/issue", account="ann", reason="cheats", expires="2099-01-01 00:00:00")
    server, body = agent.kicked.get(timeout=10)
    assert (server, body["key"]) == (server_of(agent, made).id, made["key"])
    world.wait(lambda: warden_sees_nobody(world), "end of a seat")


def warden_sees_nobody(world):
    return Player(world, "looker").seats("ann") == []


# --- repeats


def test_a_repeat_gets_the_first_answer(agent, world, ann):
    first = ann.create({"map": "dust"}, key="k1")
    assert ann.create({"map": "dust"}, key="k1") == first
    assert agent.spawned.qsize() == 1
    world.crash()
    agent.beat()
    assert ann.create({"map": "dust"}, key="k1") == first
    bob = Player(world, "bob")
    assert bob.create({"map": "dust"}, key="k1")["id"] != first["id"]  # a key is an account's


def test_a_key_with_other_arguments_is_refused(agent, ann):
    ann.create({"map": "dust"}, key="k1")
    answer = ann.cannot(409, "key_conflict", "create", data={"settings": {"map": "ice"}},
                        headers={"Idempotency-Key": "k1"})
    assert "Idempotency-Key" in answer.error["message"]


def test_a_key_is_the_askers(agent, world, captain, ann):
    """Who is placed by another may have used the same key for himself."""
    own = ann.create(key="k1")
    asked = {"accounts": [{"token": ann.token}]}
    placed = captain.post("/create/multi/arena/main/1.0", "k1", **asked)
    assert placed["id"] != own["id"]
    assert captain.post("/create/multi/arena/main/1.0", "k1", **asked) == placed
    assert ann.join(key="k1")["id"] == placed["id"]  # and another operation's is another


def test_a_repeat_waits_for_the_same_answer(world, ann):
    asked, go = threading.Event(), threading.Event()

    def script(server):
        asked.set()
        assert go.wait(10)
        server.inited()

    with FakeHost(world.muster, script=script) as agent:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(ann.create(key="k1")))
                   for _ in range(5)]
        for thread in threads:
            thread.start()
        assert asked.wait(10)
        go.set()
        for thread in threads:
            thread.join()
        assert len(answers) == 5 and all(a == answers[0] for a in answers)
        assert agent.spawned.qsize() == 1


# --- rates


def test_too_many_joins_are_refused_for_a_while(make_world):
    world = make_world(default_region="EU", fleets=fleets(), rates={"join": [{"count": 3, "seconds": 2}],
                                               "create": [{"count": 100, "seconds": 60}]})
    ann, bob = Player(world, "ann"), Player(world, "bob")
    with FakeHost(world.muster):
        for _ in range(3):
            ann.join()
        answer = ann.cannot(429, "rate_limited")
        assert 1 <= int(answer.head["retry-after"]) <= 3  # later is fine, much later is not
        assert answer.error["retry_after"] == int(answer.head["retry-after"])
        bob.join()
        world.wait(lambda: ann.ask("POST", "/join/arena/main/1.0", data={}).status == 200,
                   "end of a limit")


def test_too_many_rooms_are_refused(make_world):
    world = make_world(default_region="EU", fleets=fleets())
    ann = Player(world, "ann")
    with FakeHost(world.muster):
        for _ in range(5):
            ann.create()
        answer = ann.cannot(429, "rate_limited", "create")
        assert 50 <= int(answer.head["retry-after"]) <= 66
        ann.join()  # which has limits of its own


# --- several together


def accounts(world, *names):
    return [{"token": token_of(world, name, "game"), "ip": f"192.0.2.{i + 1}",
             "info": {"name": name}} for i, name in enumerate(names)]


def test_several_are_placed_together(agent, world, captain):
    made = captain.post("/create/multi/arena/main/1.0", accounts=accounts(world, "a", "b", "c"),
                        settings={"map": "dust"})
    assert set(made) == {"id", "location", "settings", "slots", "multi_id"}
    assert set(made["slots"]) == {"a", "b", "c"} and made["settings"] == {"map": "dust"}
    server = server_of(agent, made)
    for name, slot in made["slots"].items():
        told = server.joined(slot["key"])
        assert told["account"] == name
        assert told["info"] == {"name": name, "multi_id": made["multi_id"]}
    assert captain.seats() == []  # who asks does not play


def test_several_get_seats_or_none_does(agent, world, captain, ann, bob):
    made = ann.create({"map": "dust"})
    bob.enter(made["id"])
    answer = captain.ask("POST", "/join/multi/arena/main/1.0", data={
        "accounts": accounts(world, "a", "b", "c"), "auto_create": False})
    assert (answer.status, answer.error["code"]) == (503, "no_place")
    assert all(Player(world, "looker").seats(n) == [] for n in "abc")
    together = captain.post("/join/multi/arena/main/1.0", accounts=accounts(world, "a", "b"))
    assert together["id"] == made["id"]
    other = captain.post("/join/multi/arena/main/1.0", accounts=accounts(world, "c", "d", "e"))
    assert other["id"] != made["id"]


def test_one_banned_stops_all(agent, world, captain):
    warden = Player(world, "warden", scopes=("game_ban",))
    warden.post("/ban/issue", account="b", reason="cheats", expires="2099-01-01 00:00:00")
    answer = captain.ask("POST", "/create/multi/arena/main/1.0",
                         data={"accounts": accounts(world, "a", "b", "c")})
    assert (answer.status, answer.error["code"]) == (423, "banned")
    assert [p["account"] for p in answer.error["players"]] == ["b"]
    assert agent.spawned.qsize() == 0


@pytest.mark.parametrize("verb, more", [("create", {}), ("join", {}), ("join", {"auto_create": False})])
def test_more_than_a_room_holds(agent, world, captain, verb, more):
    answer = captain.ask("POST", f"/{verb}/multi/arena/main/1.0",
                         data={"accounts": accounts(world, *"abcde"), **more})
    assert (answer.status, answer.error["code"]) == (400, "bad_argument"), answer
    assert answer.error["message"] == "A room of arena holds at most 4 players, not 5."
    assert "retry-after" not in answer.head
    assert agent.spawned.qsize() == 0


# --- regions


def test_rooms_of_the_own_region_come_first(make_world):
    regions = [{"name": "EU", "code": 2, "latitude": 48.9, "longitude": 2.3},
               {"name": "AS", "code": 3, "latitude": 22.3, "longitude": 114.2}]
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES, regions=regions)
    ann, bob = Player(world, "ann"), Player(world, "bob")
    with FakeHost(world.muster, name="eu", region="EU"), FakeHost(
            world.muster, name="as", region="AS", address="203.0.113.9", first_port=42000):
        near = ann.create(latencies={"EU": 20, "AS": 200})
        far = bob.create(region="AS")
        assert near["location"]["host"] == "203.0.113.7"
        assert far["location"]["host"] == "203.0.113.9"
        cat = Player(world, "cat")
        assert [r["region"] for r in cat.rooms(latencies='{"AS": 9, "EU": 90}')] == ["AS", "EU"]
        assert [r["region"] for r in cat.rooms(latencies='{"AS": 99, "EU": 90}')] == ["EU", "AS"]
        assert [r["region"] for r in cat.rooms(region="AS", my_region_only="true")] == ["AS"]
        assert cat.join(latencies={"AS": 9, "EU": 90})["id"] == far["id"]
        assert cat.join(latencies={"EU": 9}, my_region_only=True)["id"] == near["id"]


# --- hosts


def silent_hosts(world):
    return [h["name"] for h in world.api.all("/v1/hosts") if h["passed_over"] == "silent"]


def test_while_the_host_is_away_reservations_stand_still(make_world):
    world = make_world(default_region="EU", fleets=fleets(reserve_s=2), rates=NO_RATES, host_ms=1000)
    ann, bob = Player(world, "ann"), Player(world, "bob")
    with FakeHost(world.muster) as agent:
        made = ann.create()
        agent.beating = False
        world.wait(lambda: silent_hosts(world) == ["host-1"], "silent host")
        assert bob.rooms() == []
        answer = bob.ask("POST", f"/room/arena/{made['id']}/join", data={})
        assert (answer.status, answer.error["code"]) == (503, "host_away")
        answer = bob.cannot(503, "no_host")
        assert answer.error["message"].startswith("No healthy host in EU: 1 silent for ")
        world.elapse(2.5)
        assert [s["slot"] for s in ann.seats()] == [made["slot"]]
        agent.beat()
        agent.beating = True
        assert server_of(agent, made).joined(made["key"])["account"] == "ann"
        assert [r["id"] for r in bob.rooms()] == [made["id"]]


def test_overloaded_hosts_are_named(world, ann):
    with FakeHost(world.muster, name="a", memory=97.0), FakeHost(world.muster, name="b", memory=99.5):
        answer = ann.cannot(503, "no_host", "create")
        assert answer.error["message"] == "No healthy host in EU: 2 overloaded."
        assert int(answer.head["retry-after"]) >= 1


def test_who_moves_leaves_his_seat(agent, ann):
    first = ann.create()
    server = server_of(agent, first)
    server.joined(first["key"])
    second = ann.create()
    number, body = agent.kicked.get(timeout=10)
    assert (number, body["key"]) == (server.id, first["key"])
    assert [s["room"] for s in ann.seats()] == [second["id"]]
