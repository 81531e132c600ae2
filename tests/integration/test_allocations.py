"""Places for players: friends, lines, parties, tokens and repeats, on an agent that starts nothing."""

import base64
import threading

import pytest
import yaml
from allocations import Allocator, Later
from events import Reader
from fake_host import FakeHost
from muster_proc import write_config
from players import Player, fleets, token_of

pytestmark = pytest.mark.timeout(120)


def make(make_world, **fleet):
    options = fleet.pop("options", {})
    return make_world(default_region="EU", fleets=fleets(**fleet), **options)


@pytest.fixture
def world(make_world):
    """Rooms of two seats."""
    return make(make_world, max_players=2)


@pytest.fixture
def agent(world):
    with FakeHost(world.muster) as agent:
        yield agent


@pytest.fixture
def seeker(world, agent):
    return Allocator(world)


@pytest.fixture
def small(make_world):
    """One room of two seats, and no more."""
    world = make(make_world, max_players=2)
    with FakeHost(world.muster, slots=1) as agent:
        world.agent = agent
        world.seeker = Allocator(world)
        yield world


def rooms(world):
    return {s["account"]: s["room"] for s in world.api.all("/v1/seats")}


def leave(world, player, reason="left"):
    """His seat is given back."""
    seat, = world.api.all("/v1/seats", account=player)
    answer = world.api.ask("DELETE", f"/v1/seats/{seat['id']}", {"reason": reason})
    assert answer.status == 200, answer


def metric(world, name, **labels):
    text = world.api.ask("GET", "/metrics").body.decode()
    found = 0
    for line in text.splitlines():
        if line.startswith(name) and line[len(name)] in "{ " and all(
                f'{k}="{v}"' in line for k, v in labels.items()):
            found += float(line.rsplit(" ", 1)[1])
    return found


# --- one player


def test_a_player_gets_a_room_that_is_started_for_him(world, agent, seeker):
    result = seeker.placed("ann", ticket="t")
    server = next(iter(agent.servers.values()))
    assert set(result) == {"envelopeVersion", "type", "ticketId", "status", "token", "address",
                           "port", "sessionId", "expiresAt", "key"}
    assert (result["envelopeVersion"], result["type"], result["ticketId"]) == (
        "1.0", "allocation-result", "t")
    assert (result["address"], result["port"]) == (agent.address, server.ports[0])
    assert result["sessionId"] == server.room
    assert len(base64.b64decode(result["token"])) == 16
    assert rooms(world) == {"ann": server.room}
    assert server.joined(result["key"])["account"] == "ann"


def test_the_fullest_room_is_filled_first(world, seeker):
    first = seeker.placed("ann")
    second = seeker.placed("bob")
    third = seeker.placed("cat")
    assert first["sessionId"] == second["sessionId"] != third["sessionId"]
    assert len({r["token"] for r in (first, second, third)}) == 3


def test_a_fleet_may_spread_its_players(make_world):
    world = make(make_world, max_players=4, fill="spread")
    with FakeHost(world.muster):
        seeker = Allocator(world)
        one = seeker.placed("ann", friends=["nobody"], canJoinNotFound=True)["sessionId"]
        seeker.placed("bob", rejoin=False)
        other = Player(world, "cat").create()["id"]
        assert seeker.placed("dan")["sessionId"] == other != one


def test_who_has_a_place_and_asks_again_gets_the_same_answer(seeker):
    first = seeker.placed("ann")
    again = seeker.placed("ann")
    assert {**again, "ticketId": ""} | {"expiresAt": ""} == {**first, "ticketId": ""} | {
        "expiresAt": ""}


def test_who_does_not_want_to_stay_is_placed_anew(world, agent, seeker):
    first = seeker.placed("ann")
    server = next(s for s in agent.servers.values() if s.room == first["sessionId"])
    server.joined(first["key"])
    moved = seeker.placed("ann", rejoin=False)
    assert moved["sessionId"] != first["sessionId"]
    assert rooms(world) == {"ann": moved["sessionId"]}
    assert metric(world, "muster_token_moves_total", fleet="arena") == 1


# --- repeats


def test_a_repeat_gets_the_same_bytes_and_takes_no_second_seat(world, seeker):
    bodies = {seeker.seek("ann", ticket="t").body for _ in range(3)}
    assert len(bodies) == 1
    assert len(world.api.all("/v1/seats")) == 1
    assert metric(world, "muster_player_allocation_requests_total") == 1


def test_a_repeat_after_a_crash_gets_the_same_bytes(world, seeker):
    first = seeker.seek("ann", ticket="t").body
    world.crash()
    assert seeker.seek("ann", ticket="t").body == first


def test_a_ticket_is_of_one_request(seeker):
    seeker.placed("ann", ticket="t")
    assert seeker.failed(409, "ticket_conflict", "bob", ticket="t") == (
        "this ticketId was used for another request")
    assert seeker.failed(409, "ticket_conflict", "ann", priority=1, ticket="t")


def test_the_order_of_members_makes_no_other_request(seeker):
    body = seeker.request("ann", friends=["bob"], ticket="t", canJoinNotFound=True)
    first = seeker.ask("POST", "/v1/allocations", data=body)
    again = seeker.ask("POST", "/v1/allocations", data=dict(reversed(list(body.items()))))
    assert (first.status, first.body) == (again.status, again.body)


# --- what cannot be


def test_refusals_in_the_seeds_words(world, seeker):
    assert seeker.failed(400, "no_such_fleet", "ann", fleet="starx") == "fleet 'starx' not found"
    assert seeker.failed(404, "friends_not_found", "ann", friends=["bob"]) == (
        "friends not found on any gameserver")
    body = seeker.request("ann")
    del body["playerId"]
    answer = seeker.ask("POST", "/v1/allocations", data=body)
    assert (answer.status, answer.json["errorMessage"], answer.error["code"]) == (
        400, "playerID is required for allocation", "player_required")
    assert seeker.failed(409, "wrong_provider", "ann", fleet="default")
    assert seeker.failed(400, "region_not_supported", "ann", region="MOON")
    assert world.api.all("/v1/seats") == []


def test_no_request_at_all(seeker):
    for body in (b"", b"{", b"[]", b'{"type":"allocation-result","ticketId":"a"}', b'{"fleet":"a"}'):
        answer = seeker.ask("POST", "/v1/allocations", body=body, content_type="application/json")
        assert (answer.status, answer.error["code"]) == (400, "bad_argument"), (body, answer)


def test_a_fleet_may_fail_instead_of_queueing(make_world):
    world = make(make_world, max_players=1, when_full="fail")
    with FakeHost(world.muster, slots=1):
        seeker = Allocator(world)
        seeker.placed("ann")
        assert seeker.failed(503, "no_capacity", "bob") == "no capacity in fleet 'arena'"


# --- who may ask


def test_a_player_may_ask_for_himself_only(world, agent):
    ann = Allocator(world)
    ann.token = token_of(world, "ann", "game")
    result = ann.placed("ann", ticket="t")
    assert ann.look("t")["result"] == result
    for body in (ann.request("bob"), ann.request("ann", partyIds=["bob"]),
                 ann.request("ann", moveParty=True), ann.request("ann", priority=1)):
        answer = ann.ask("POST", "/v1/allocations", data=body)
        assert (answer.status, answer.error["code"]) == (403, "forbidden"), answer
    bob = ann.with_token(token_of(world, "bob", "game"))
    bob.refused("GET", "/v1/allocations/t", 404, "not_found")
    bob.refused("DELETE", "/v1/allocations/t", 404, "not_found")
    reader = ann.with_token(token_of(world, "eve", "muster_read"))
    reader.refused("GET", "/v1/allocations/t", 403, "forbidden")
    reader.refused("GET", "/v1/allocations/t/why", 404, "not_found")
    why = reader.get("/v1/allocations/t/why", player="ann")
    assert why["sentence"].startswith("1 seat was given in room")


def test_a_player_cannot_take_the_name_that_a_service_will_use(world, seeker):
    ann = Allocator(world)
    ann.token = token_of(world, "ann", "game")
    own = ann.placed("ann", ticket="match-7")
    bob = seeker.placed("bob", ticket="match-7")
    assert seeker.look("match-7")["player"] == "bob"
    assert (seeker.look("match-7")["result"], ann.look("match-7")["result"]) == (bob, own)
    assert seeker.get("/v1/allocations/match-7", player="ann")["result"] == own
    assert ann.get("/v1/allocations/match-7", player="ann")["result"] == own
    ann.refused("GET", "/v1/allocations/match-7?player=bob", 404, "not_found")
    doors = {a["player"]: a["bus"] for a in world.api.get("/v1/allocations")["items"]
             if a["ticket_id"] == "match-7"}
    assert doors == {"ann": "player", "bob": "http"}


def test_each_gives_up_what_is_his_by_a_name_that_two_have(make_world):
    world = make_world(default_region="EU", fleets=fleets(max_players=1, when_full="queue"))
    seeker, ann = Allocator(world), Allocator(world)
    ann.token = token_of(world, "ann", "game")
    with FakeHost(world.muster, slots=1):
        seeker.placed("zoe")
        seeker.queued("bob", ticket="t")
        seeker.queued("ann", ticket="for-ann")
        assert ann.look("for-ann")["state"] == "queued"  # a service asked for her
        ann.queued("ann", ticket="t")
        assert seeker.look("for-ann")["error"] == "superseded"
        assert ann.cancel("t").json["errorMessage"] == "the request was cancelled"
        assert seeker.look("t")["state"] == "queued"
        ann.queued("ann", ticket="u")
        seeker.refused("DELETE", "/v1/allocations/u", 404, "not_found")
        assert seeker.ask("DELETE", "/v1/allocations/u", {"player": "ann"}).status == 200
        assert ann.look("u")["state"] == "cancelled"


# --- friends


def test_a_friend_is_joined(world, seeker):
    ann = seeker.placed("ann")
    seeker.placed("zoe", rejoin=False)
    bob = seeker.placed("bob", friends=["nobody", "bob"], canJoinNotFound=True)
    assert bob["sessionId"] != ann["sessionId"]  # that one is full
    leave(world, "zoe")
    moved = seeker.placed("bob", friends=["ann"])
    assert moved["sessionId"] == ann["sessionId"]
    assert rooms(world) == {"ann": ann["sessionId"], "bob": ann["sessionId"]}
    assert metric(world, "muster_friend_joins_total", result="joined") == 1
    assert metric(world, "muster_friend_joins_total", result="not_found") == 1


def test_most_friends_first_then_most_free_seats(make_world):
    world = make(make_world, max_players=4)
    with FakeHost(world.muster):
        seeker = Allocator(world)
        one = [Player(world, p) for p in ("a1", "a2")]
        room_a = one[0].create()["id"]
        one[1].enter(room_a)
        two = [Player(world, p) for p in ("b1", "b2", "b3")]
        room_b = two[0].create()["id"]
        for player in two[1:]:
            player.enter(room_b)
        room_c = Player(world, "c1").create()["id"]
        assert seeker.placed("p1", friends=["c1", "a1", "b1", "b2"])["sessionId"] == room_b
        # b is full now: the next best
        assert seeker.placed("p2", friends=["c1", "a1", "a2", "b1", "b2", "b3"])["sessionId"] == room_a
        assert seeker.placed("p3", friends=["a1", "c1"])["sessionId"] == room_c


def test_friends_nowhere_and_any_place_will_do(seeker):
    assert seeker.placed("ann", friends=["bob"], canJoinNotFound=True)["token"]


def test_oneself_is_no_friend(seeker):
    assert seeker.placed("bob", friends=["bob"])  # so he asks for nobody
    assert seeker.failed(404, "friends_not_found", "bob", friends=["bob", "nobody"])


# --- lines


def fill(small):
    return [small.seeker.placed(p)["sessionId"] for p in ("ann", "bob")][0]


def test_a_full_room_has_a_line_with_positions(small):
    room = fill(small)
    seeker = small.seeker
    queued = [seeker.queued(p, friends=["ann"], ticket=f"q-{p}") for p in ("cat", "dan", "eve")]
    assert [q["queuePosition"] for q in queued] == [1, 2, 3]
    assert {q["queueId"] for q in queued} == {f"room-{room}"}
    assert seeker.queued("fox")["queueId"] == "fleet-arena"
    line = [(q["fleet"], q["room"], q["entries"]) for q in small.api.get("/v1/queues")["items"]]
    assert sorted(line, key=lambda q: q[2]) == [("arena", None, 1), ("arena", room, 3)]
    assert [a["player"] for a in small.api.all("/v1/allocations", state="queued")] == [
        "cat", "dan", "eve", "fox"]
    why = small.api.get("/v1/allocations/q-dan/why")["sentence"]
    assert why.startswith(f"Waits at position 2 for 1 seat in room {room} (arena, EU, 2 of 2 seats "
                          "in use), behind 1 player, for ")
    assert metric(small, "muster_queue_length") == 4
    assert metric(small, "muster_friend_joins_total", result="queued") == 3


def test_who_leaves_is_followed_by_the_head_of_the_line_even_while_others_ask(small):
    room = fill(small)
    seeker = small.seeker
    seeker.queued("cat", friends=["ann"], ticket="cat")
    seeker.queued("dan", friends=["ann"], ticket="dan")
    end = seeker.end("cat")
    asking = [Later(lambda p=f"p{i}": seeker.seek(p, friends=["ann"])) for i in range(8)]
    leave(small, "bob")
    result = end.answer()
    assert (result["status"], result["sessionId"]) == ("Success", room)
    assert all(a.answer().json["status"] == "Queued" for a in asking)
    assert set(rooms(small)) == {"ann", "cat"}
    assert seeker.look("dan")["position"] == 1


def test_a_request_may_wait_for_its_place(small):
    room = fill(small)
    waiting = Later(lambda: small.seeker.seek("cat", friends=["ann"], ticket="cat", wait=30))
    small.wait(lambda: small.api.get("/v1/queues")["items"], "a line")
    leave(small, "bob")
    answer = waiting.answer()
    assert (answer.status, answer.json["sessionId"]) == (200, room)
    assert small.seeker.seek("cat", friends=["ann"], ticket="cat").body == answer.body


def test_priority_comes_before_arrival(small):
    fill(small)
    seeker = small.seeker
    seeker.queued("normal", friends=["ann"], ticket="normal")
    vip = seeker.queued("vip", friends=["ann"], ticket="vip", priority=5)
    assert vip["queuePosition"] == 1
    assert seeker.look("normal")["position"] == 2
    end = seeker.end("vip")
    leave(small, "bob")
    assert end.answer()["status"] == "Success"
    assert seeker.look("normal")["state"] == "queued"


def test_waiting_ends(make_world):
    world = make(make_world, max_players=1, queue_timeout_s=1)
    with FakeHost(world.muster, slots=1):
        seeker = Allocator(world)
        seeker.placed("ann")
        answer = seeker.seek("bob", wait=20)
        assert (answer.status, answer.error["code"]) == (504, "queue_timeout")
        assert answer.json["errorMessage"] == "queue timeout after 1 s"
        assert metric(world, "muster_queue_abandoned_total", reason="queue_timeout") == 1


def test_who_gives_up_is_out_of_the_line(small):
    fill(small)
    seeker = small.seeker
    seeker.queued("cat", ticket="cat")
    seeker.queued("dan", ticket="dan")
    answer = seeker.cancel("cat")
    assert (answer.status, answer.json["status"]) == (200, "Failure")
    assert seeker.look("dan")["position"] == 1
    assert seeker.look("cat")["state"] == "cancelled"
    assert seeker.cancel("cat").error["code"] == "already_over"
    assert seeker.cancel("nobody").error["code"] == "not_found"


def test_a_name_with_slashes_is_found_by_its_path(small):
    fill(small)
    seeker = small.seeker
    seeker.queued("cat", ticket="eu/cat/100%")
    assert seeker.look("eu%2Fcat%2f100%25")["player"] == "cat"
    assert seeker.cancel("eu%2Fcat%2F100%25").json["ticketId"] == "eu/cat/100%"
    assert seeker.cancel("eu/cat/100%25").error["code"] == "not_found"


def test_an_operator_takes_somebody_out_of_the_line(small):
    fill(small)
    small.seeker.queued("cat", ticket="cat")
    answer = small.api.ask("DELETE", "/v1/queues/players/cat")
    assert (answer.status, answer.json["state"], answer.json["ticket_id"]) == (
        200, "cancelled", "cat")
    assert small.api.get("/v1/queues")["items"] == []
    assert small.api.ask("DELETE", "/v1/queues/players/cat").status == 404
    assert small.api.get("/v1/audit")["items"][0]["action"] == "dequeue"


def test_who_is_banned_waits_no_more(small):
    fill(small)
    small.seeker.queued("cat", ticket="cat")
    end = small.seeker.end("cat")
    small.api.post("/ban/issue", account="cat", expires="2999-01-01 00:00:00", reason="cheats")
    result = end.answer()
    assert result["status"] == "Failure"
    assert "banned" in result["errorMessage"]
    assert small.seeker.failed(423, "banned", "cat")


def test_a_player_stands_in_one_line(small):
    fill(small)
    small.seeker.queued("cat", ticket="one")
    small.seeker.queued("cat", friends=["ann"], ticket="two")
    assert small.seeker.look("one")["state"] == "cancelled"
    assert len(small.api.all("/v1/allocations", state="queued")) == 1


def test_a_line_outlives_a_crash(small):
    room = fill(small)
    for player in ("cat", "dan"):
        small.seeker.queued(player, friends=["ann"], ticket=player)
    small.crash()
    assert [small.seeker.look(p)["position"] for p in ("cat", "dan")] == [1, 2]
    end = small.seeker.end("cat")
    leave(small, "bob")
    assert end.answer()["sessionId"] == room


def test_the_room_of_a_line_ends(small):
    room = fill(small)
    small.seeker.queued("cat", friends=["ann"], ticket="strict")
    small.seeker.queued("dan", friends=["ann"], ticket="easy", canJoinNotFound=True)
    ends = [small.seeker.end(t) for t in ("strict", "easy")]
    small.api.post(f"/v1/sessions/{room}/end")
    strict, easy = [e.answer() for e in ends]
    assert strict["errorMessage"] == "friends not found on any gameserver"
    assert (easy["status"], easy["sessionId"] != room) == ("Success", True)


# --- parties


@pytest.fixture
def party_world(make_world):
    world = make(make_world, max_players=4)
    with FakeHost(world.muster, slots=2) as agent:
        world.agent = agent
        world.seeker = Allocator(world)
        yield world


def test_a_party_comes_together(party_world):
    result = party_world.seeker.placed("ann", partyIds=["bob", "cat"])
    assert [m["playerId"] for m in result["party"]] == ["bob", "cat"]
    assert len({result["token"], *(m["token"] for m in result["party"])}) == 3
    assert len({result["key"], *(m["key"] for m in result["party"])}) == 3
    assert set(rooms(party_world).values()) == {result["sessionId"]}
    seat = party_world.api.all("/v1/seats", account="bob")[0]
    party = party_world.api.get(f"/v1/parties/{seat['multi']}")
    assert {s["account"] for s in party["seats"]} == {"ann", "bob", "cat"}
    party_world.api.refused("GET", "/v1/parties/999999", 404, "not_found")


def test_a_party_is_too_large(party_world):
    assert party_world.seeker.failed(503, "no_capacity", "ann", partyIds=["b", "c", "d", "e"])


def test_a_banned_member_keeps_all_of_them_out(party_world):
    party_world.api.post("/ban/issue", account="bob", expires="2999-01-01 00:00:00", reason="x")
    assert party_world.seeker.failed(423, "banned", "ann", partyIds=["bob"])
    assert rooms(party_world) == {}


def test_a_party_moves_as_one(party_world):
    seeker = party_world.seeker
    first = seeker.placed("ann", partyIds=["bob"])
    friend = seeker.placed("fred", partyIds=["x1", "x2"])["sessionId"]  # no place with these
    assert friend != first["sessionId"]
    # room for one only: nobody moves
    moved = seeker.queued("ann", friends=["fred"], moveParty=True, ticket="move")
    assert moved["queueId"] == f"room-{friend}"
    assert rooms(party_world)["bob"] == first["sessionId"]
    end = seeker.end("move")
    leave(party_world, "x1")
    assert end.answer()["sessionId"] == friend
    assert rooms(party_world)["ann"] == rooms(party_world)["bob"] == friend


def test_seats_are_held_for_a_party_that_has_waited_for_long(make_world):
    """A party of four for three seats is passed over, until it has been the first for 30 s."""
    world = make(make_world, max_players=4, reserve_s=300)
    with FakeHost(world.muster, slots=1):
        seeker = Allocator(world)
        seeker.placed("a1", partyIds=["a2", "a3", "a4"])
        seeker.queued("p1", friends=["a1"], partyIds=["p2", "p3"], ticket="party")
        seeker.queued("solo", friends=["a1"], ticket="solo")
        end = seeker.end("solo")
        leave(world, "a2")
        assert end.answer()["status"] == "Success"  # one seat: the party does not fit
        held = lambda: [q for q in world.api.get("/v1/queues")["items"] if q["held"] > 0]
        seeker.queued("late", friends=["a1"], ticket="late")
        world.elapse(31)
        leave(world, "solo")
        world.wait(held, "a seat that is held")
        assert seeker.look("late")["state"] == "queued"
        end = seeker.end("party")
        leave(world, "a3")
        leave(world, "a4")
        assert end.answer()["status"] == "Success"
        assert set(rooms(world)) == {"a1", "p1", "p2", "p3"}


# --- routes


def routes_in(path):
    """token -> endpoint, and that no token is on two."""
    document = yaml.safe_load(path.read_text())
    assert document["version"] == "v1alpha1"
    found = {}
    for cluster in document["clusters"]:
        for endpoint in cluster["endpoints"]:
            for token in endpoint["metadata"]["quilkin.dev"]["tokens"]:
                assert token not in found, (token, document)
                found[token] = endpoint["address"]
    return found


def test_a_proxy_reads_who_may_pass(make_world, tmp_path):
    path = tmp_path / "quilkin.yaml"
    world = make(make_world, max_players=2, options={"routes": {"quilkin_file": str(path)}})
    world.wait(path.exists, "the file")
    assert yaml.safe_load(path.read_text()) == {
        "version": "v1alpha1", "clusters": [{"endpoints": []}]}
    with FakeHost(world.muster) as agent:
        seeker = Allocator(world)
        results = [seeker.placed(p) for p in ("ann", "bob", "cat")]
        expected = {r["token"]: f"{agent.address}:{r['port']}" for r in results}
        world.wait(lambda: routes_in(path) == expected, "three routes")
        inode = path.stat().st_ino
        assert {r["token"]: f"{r['address']}:{r['port']}"
                for r in world.api.all("/v1/routes")} == expected
        leave(world, "bob")
        del expected[results[1]["token"]]
        world.wait(lambda: routes_in(path) == expected, "two routes")
        assert path.stat().st_ino == inode  # its data is watched
        path.write_text("version: v1alpha1\nclusters: []\n")
        world.crash()
        world.wait(lambda: routes_in(path) == expected, "the file is written again")


def test_tokens_of_player_ids(make_world, tmp_path):
    """The seed's example, byte for byte; a token that moves is never on two endpoints."""
    path = tmp_path / "quilkin.yaml"
    world = make(make_world, max_players=2, token="player-id",
                 options={"routes": {"quilkin_file": str(path), "quilkin_filters": "suffix"}})
    world.wait(path.exists, "the file")
    capture, router = yaml.safe_load(path.read_text())["filters"]
    assert capture["config"] == {"suffix": {"size": 16, "remove": True}}
    assert router == {"name": "quilkin.filters.token_router.v1alpha1.TokenRouter"}
    with FakeHost(world.muster):
        seeker = Allocator(world)
        assert seeker.placed("lRTSKLe4sKQYbqo0")["token"] == "bFJUU0tMZTRzS1FZYnFvMA=="
        assert seeker.placed("ab")["token"] == base64.b64encode(b"ab".ljust(16, b"\0")).decode()
        long = "0123456789abcdef-and-more"
        assert seeker.placed(long)["token"] == base64.b64encode(b"0123456789abcdef").decode()
        assert seeker.failed(409, "token_taken", "0123456789abcdef-but-another")
        assert metric(world, "muster_token_collisions_total") == 1
        before = world.api.all("/v1/routes", player=long)[0]["port"]
        leave(world, "ab")
        moved = seeker.placed(long, friends=["lRTSKLe4sKQYbqo0"])
        assert moved["port"] != before
        world.wait(lambda: routes_in(path).get(moved["token"], "").endswith(f":{moved['port']}"),
                   "the token at its new place")


def test_a_seat_keeps_its_token_when_the_configuration_changes(make_world, tmp_path):
    """Proxies and players know a seat by it: a reload and a restart change those of new seats."""
    path = tmp_path / "quilkin.yaml"
    options = {"default_region": "EU", "routes": {"quilkin_file": str(path)}}
    world = make_world(fleets=fleets(max_players=50), **options)
    with FakeHost(world.muster):
        seeker = Allocator(world)
        before = {p: seeker.placed(p)["token"] for p in ("ann", "bob")}
        lines = world.reload(fleets=fleets(max_players=50, token="player-id"), **options)
        assert lines[-1]["msg"] == "configuration in force"
        names = (f"0123456789abcd{i:02}" for i in range(40))
        tokens = {p: base64.b64encode(p.encode()).decode() for p in names}
        given = {}

        def new_seats_have_the_new_kind():
            player = list(tokens)[len(given)]
            given[player] = seeker.placed(player)["token"]
            return given[player] == tokens[player] and player

        last = world.wait(new_seats_have_the_new_kind, "a token of a player's id")
        assert {p: seeker.placed(p)["token"] for p in before} == before
        expected = set(before.values()) | set(given.values())
        world.wait(lambda: set(routes_in(path)) == expected, "the routes")
        write_config(world.muster.folder / "muster.yaml",
                     {"fleets": fleets(max_players=50), **options})
        world.crash()
        world.wait(lambda: set(routes_in(path)) == expected, "the same routes after a restart")
        assert {p: seeker.placed(p)["token"] for p in before} == before
        assert seeker.placed(last)["token"] == tokens[last]


def test_a_token_that_moves_is_never_on_two_endpoints(make_world, tmp_path):
    """Somebody reads the file all the time, as a proxy might."""
    path = tmp_path / "quilkin.yaml"
    world = make(make_world, max_players=8, token="player-id",
                 options={"routes": {"quilkin_file": str(path)}})
    world.wait(path.exists, "the file")
    seen, mistakes, over = set(), [], threading.Event()

    def read_on():
        while not over.is_set():
            try:
                seen.update(routes_in(path).items())
            except (AssertionError, yaml.YAMLError, KeyError, TypeError) as mistake:
                mistakes.append(mistake)

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        with FakeHost(world.muster):
            seeker = Allocator(world)
            homes = [Player(world, p).create()["id"] for p in ("north", "south")]
            movers = [f"mover-{i}" for i in range(4)]
            for turn in range(12):
                for player in movers:
                    to = turn % 2
                    result = seeker.placed(player, friends=[("north", "south")[to]])
                    assert result["sessionId"] == homes[to]
            tokens = {r["token"] for r in world.api.all("/v1/routes")}
            world.wait(lambda: set(routes_in(path)) == tokens, "the last routes")
    finally:
        over.set()
        reader.join()
    assert not mistakes, mistakes[0]
    moved = {t for t, _ in seen if len({e for u, e in seen if u == t}) == 2}
    assert len(moved) == len(movers)  # it did see them move


# --- following


def test_changes_are_followed(world, seeker):
    reader = Reader(world, kinds="allocation,note").expect_open()
    seeker.placed("ann", ticket="t")
    reader.expect_event("allocation", ticket_id="t", player="ann", state="done")
    reader.expect_event("note", text="allocation done", player="ann", how="spawn")
