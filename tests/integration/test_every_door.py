"""What holds through every door that places players: how often an account may ask, and in which
region its place is."""

import itertools

import pytest
from allocations import Allocator
from fake_host import FakeHost
from nats import REQUEST, RESULT, NatsServer, await_ready
from players import Player, fleets, token_of

pytestmark = pytest.mark.timeout(120)

REGIONS = [{"name": "EU", "code": 2, "latitude": 48.9, "longitude": 2.3},
           {"name": "USE", "code": 0, "latitude": 39.0, "longitude": -77.5},
           {"name": "ASIA", "code": 3, "latitude": 22.3, "longitude": 114.2}]
ADDRESSES = {"EU": "203.0.113.7", "USE": "203.0.113.8", "ASIA": "203.0.113.9"}
NO_RATES = {"create": [{"count": 100000, "seconds": 60}], "join": [{"count": 100000, "seconds": 60}]}

accounts = (f"player-{i}" for i in itertools.count(1))


# --- how often


@pytest.fixture
def limited(make_world):
    world = make_world(default_region="EU", fleets=fleets(max_players=1000, confirm="none"),
                       rates={"join": [{"count": 30, "seconds": 60}],
                              "create": [{"count": 5, "seconds": 60}]})
    with FakeHost(world.muster):
        yield world


def own(world, account, *scopes):
    """The door of /v1/allocations, opened with the account's own token."""
    asker = Allocator(world)
    asker.token = token_of(world, account, *(scopes or ("game",)))
    return asker


def test_an_account_asks_no_more_often_for_allocations_than_for_seats(limited):
    ann = own(limited, "ann")
    answers = [ann.seek("ann") for _ in range(80)]
    assert [a.status for a in answers] == [200] * 30 + [429] * 50
    refused = answers[-1]
    assert refused.error["code"] == "rate_limited", refused
    assert 50 <= refused.error["retry_after"] <= 60, refused
    assert refused.head["retry-after"] == str(refused.error["retry_after"])
    assert refused.json["status"] == "Failure"
    assert refused.json["errorMessage"].startswith("too many requests: try again in "), refused


def test_the_doors_of_one_account_share_its_rate(limited):
    ann, player = own(limited, "ann"), Player(limited, "ann")
    for _ in range(15):
        assert ann.seek("ann").status == 200
    room = player.join()["id"]
    for _ in range(14):
        player.enter(room)
    assert ann.seek("ann").status == 429
    player.cannot(429, "rate_limited")
    assert own(limited, "bob").seek("bob").status == 200


def test_a_repeated_allocation_does_not_count(limited):
    ann = own(limited, "ann")
    first = ann.seek("ann", ticket="mine")
    for _ in range(40):
        assert ann.seek("ann", ticket="mine").json == first.json
    for _ in range(29):
        assert ann.seek("ann").status == 200
    assert ann.seek("ann").status == 429
    assert ann.seek("ann", ticket="mine").json == first.json


def test_a_service_is_not_limited(limited):
    service = Allocator(limited)
    both = own(limited, "ann", "game", "muster_allocate")
    for asker in (service, both):
        assert [asker.seek("ann").status for _ in range(40)] == [200] * 40


# --- in which region


@pytest.fixture
def make_regions(make_world):
    """A world with three regions and hosts in those that are named."""
    hosts = []

    def make(*where, nats=None, **fleet):
        fleet = {"confirm": "none", "max_players": 1000, "when_full": "fail", **fleet}
        options = {"nats": nats} if nats else {}
        world = make_world(default_region="EU", fleets=fleets(**fleet), regions=REGIONS,
                           rates=NO_RATES, **options)
        for i, name in enumerate(where):
            host = FakeHost(world.muster, name=name.lower(), region=name, address=ADDRESSES[name],
                            first_port=40000 + 1000 * i)
            hosts.append(host.__enter__())
            setattr(world, name, hosts[-1])
        return world

    yield make
    for host in hosts:
        host.__exit__(None, None, None)


class Join:
    """POST /join."""

    def __init__(self, world):
        self.world = world

    def ask(self, **where):
        player = Player(self.world, next(accounts))
        return player.ask("POST", "/join/arena/main/1.0", data=where)

    def place(self, **where):
        answer = self.ask(**where)
        assert answer.status == 200, answer
        return answer.json["location"]["host"]

    def refusal(self, **where):
        answer = self.ask(**where)
        assert answer.status == 503, answer
        return answer.error["message"]


class Allocate(Join):
    """POST /v1/allocations."""

    def ask(self, **where):
        return Allocator(self.world).seek(next(accounts), **where)

    def place(self, **where):
        answer = self.ask(**where)
        assert answer.status == 200, answer
        return answer.json["address"]


DOORS = pytest.mark.parametrize("door", [Join, Allocate])


def open_room(world, region):
    Player(world, next(accounts)).create(region=region)


@DOORS
def test_a_near_host_comes_before_a_room_that_is_far(make_regions, door):
    world = make_regions("EU", "USE", fill="pack")
    open_room(world, "EU")
    assert door(world).place(latencies={"EU": 120, "USE": 10}) == ADDRESSES["USE"]
    assert door(world).place(latencies={"EU": 12, "USE": 100}) == ADDRESSES["EU"]
    assert world.EU.spawned.qsize() == 1


@DOORS
def test_a_region_that_is_named_comes_first(make_regions, door):
    world = make_regions("EU", "USE")
    open_room(world, "EU")
    assert door(world).place(region="USE") == ADDRESSES["USE"]
    assert door(world).place(region="EU") == ADDRESSES["EU"]
    assert door(world).place() == ADDRESSES["EU"]


@DOORS
@pytest.mark.parametrize("others", [False, True])
def test_measured_regions_come_by_latency_whatever_the_fleet_allows(make_regions, door, others):
    world = make_regions("EU", "USE", other_regions=others)
    measured = {"ASIA": 12, "USE": 40, "EU": 280}
    assert door(world).place(latencies=measured) == ADDRESSES["USE"]
    world.USE.cpu = world.USE.memory = 100.0
    world.USE.beat()
    assert door(world).place(latencies={"ASIA": 12, "EU": 280}) == ADDRESSES["EU"]


@DOORS
def test_regions_that_were_not_measured_are_not_taken(make_regions, door):
    world = make_regions("EU", other_regions=True)
    open_room(world, "EU")
    answer = door(world).ask(latencies={"ASIA": 12, "USE": 40})
    assert answer.status == 503, answer


def test_the_refusal_names_the_regions_that_were_tried(make_regions):
    world = make_regions("EU", other_regions=True)
    open_room(world, "EU")
    door = Join(world)
    assert door.refusal(region="USE", my_region_only=True) == \
        "No healthy host in USE: there is none."
    assert door.refusal(latencies={"ASIA": 12, "USE": 40}) == \
        "No healthy host in ASIA or USE: there is none."
    assert door.refusal(latencies={"ASIA": 12, "USE": 40}, auto_create=False) == \
        "There is no open room of arena 1.0 in ASIA or USE."


def test_a_named_region_is_the_only_one_for_an_allocation(make_regions):
    world = make_regions("EU", other_regions=True)
    open_room(world, "EU")
    assert Allocate(world).ask(region="USE").status == 503
    assert Join(world).place(region="USE") == ADDRESSES["EU"]


def test_without_other_regions_a_room_that_is_far_is_not_taken(make_regions):
    world = make_regions("EU")
    open_room(world, "EU")
    for door in (Join, Allocate):
        assert door(world).ask(region="USE").status == 503
        assert door(world).place() == ADDRESSES["EU"]


def test_friends_and_named_rooms_know_no_regions(make_regions):
    world = make_regions("EU", "USE")
    ann = Player(world, "ann")
    room = ann.create(region="EU")["id"]
    seeker = Allocator(world)
    assert seeker.placed("bob", friends=["ann"], region="USE")["address"] == ADDRESSES["EU"]
    assert seeker.placed("cat", friends=["ann"],
                         latencies={"USE": 10})["address"] == ADDRESSES["EU"]
    assert Player(world, "dan").enter(room)["location"]["host"] == ADDRESSES["EU"]
    assert seeker.placed("bob", region="USE")["address"] == ADDRESSES["EU"]  # their seat is there


def test_another_host_is_tried_in_the_same_regions(make_regions):
    def refuse(server):
        server.say("failed", text="no such file")

    world = make_regions("USE", "EU", other_regions=True)
    world.USE.script = refuse
    answer = Allocate(world).ask(region="USE")
    assert answer.status == 503, answer
    assert world.EU.spawned.qsize() == 0
    assert Allocate(world).place(latencies={"USE": 10, "EU": 50}) == ADDRESSES["EU"]


def test_whoever_waits_for_a_region_waits_over_a_restart(make_regions):
    world = make_regions("EU", other_regions=True, when_full="queue", queue_timeout_s=60)
    open_room(world, "EU")
    seeker = Allocator(world)
    seeker.queued("ann", ticket="near", region="USE")
    seeker.queued("bob", ticket="measured", latencies={"USE": 10, "ASIA": 80})
    world.crash()
    world.restart()
    assert seeker.placed("cat")["address"] == ADDRESSES["EU"]
    assert seeker.look("near")["state"] == seeker.look("measured")["state"] == "queued"
    why = [seeker.get(f"/v1/allocations/{name}/why")["sentence"] for name in ("near", "measured")]
    assert why[0].startswith("Waits at position 1 for 1 seat in any room of fleet arena in USE, ")
    assert why[1].startswith(
        "Waits at position 2 for 1 seat in any room of fleet arena in USE or ASIA, behind 1 player, ")
    ends = seeker.end("near"), seeker.end("measured")
    with FakeHost(world.muster, name="use", region="USE", address=ADDRESSES["USE"],
                  first_port=45000):
        assert [e.answer()["address"] for e in ends] == [ADDRESSES["USE"]] * 2


def test_a_bus_places_by_the_same_regions(make_regions, tmp_path):
    with NatsServer(tmp_path / "nats") as broker, broker.client() as client:
        world = make_regions("EU", "USE", nats={"urls": [broker.url]}, other_regions=True)
        await_ready(world)
        results = client.follow(RESULT)

        def ask(ticket, **where):
            client.store(REQUEST, {"ticketId": ticket, "fleet": "arena", "playerId": ticket, **where})
            return client.next(results).json

        assert ask("t1")["address"] == ADDRESSES["EU"]
        assert ask("t2", region="USE")["address"] == ADDRESSES["USE"]
        assert ask("t3", latencies={"EU": 120, "USE": 10})["address"] == ADDRESSES["USE"]
        assert ask("t4", latencies={"ASIA": 12, "USE": 40, "EU": 280})["address"] == ADDRESSES["USE"]
        assert ask("t5", region="ASIA")["errorMessage"] == "no capacity in fleet 'arena'"
