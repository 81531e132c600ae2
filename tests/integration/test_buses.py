"""Two brokers at once: each is answered where it asked, and one player has one seat whichever of
them he comes by."""

import json

import pytest
from fake_host import FakeHost
from nats import REQUEST, RESULT, NatsServer, await_ready
from players import fleets
from pubsub import PubSub


@pytest.fixture
def google():
    fake = PubSub()
    fake.topic("results")
    fake.topic("dead")
    fake.subscription("muster", "requests")
    yield fake
    fake.stop()


@pytest.fixture
def nats(tmp_path):
    with NatsServer(tmp_path / "nats") as server, server.client() as client:
        client.url, client.server = server.url, server
        yield client


@pytest.fixture
def world(make_world, nats, google):
    world = make_world(default_region="EU", fleets=fleets(max_players=8),
                       env={"PUBSUB_EMULATOR_HOST": google.host}, nats={"urls": [nats.url]},
                       pubsub={"project": "demo", "subscription": "muster", "topic": "results",
                               "dead_topic": "dead"})
    await_ready(world)
    with FakeHost(world.muster):
        yield world


def request(ticket, player, **more):
    return {"ticketId": ticket, "fleet": "arena", "playerId": player, **more}


def results_of(google, n):
    google.wait(lambda: len(google.published["results"]) >= n)
    return [json.loads(m.data) for m in google.published["results"]]


def test_friends_meet_though_they_come_by_different_brokers(world, nats, google):
    results = nats.follow(RESULT)
    nats.store(REQUEST, request("n-1", "ann"))
    ann = nats.next(results).json
    google.publish("requests", request("g-1", "bob", joinOnIds=["ann"]))
    bob, = results_of(google, 1)
    assert (ann["status"], bob["status"]) == ("Success", "Success")
    assert (bob["ticketId"], bob["sessionId"]) == ("g-1", ann["sessionId"])
    nats.nothing_more(results)


def test_one_player_by_two_brokers_has_one_seat(world, nats, google):
    results = nats.follow(RESULT)
    nats.store(REQUEST, request("n-1", "ann"))
    first = nats.next(results).json
    google.publish("requests", request("g-1", "ann"))
    second, = results_of(google, 1)
    assert second["token"] == first["token"]
    assert len(world.api.get("/player/ann")["seats"]) == 1


# --- a request that is repeated through another door


@pytest.fixture
def full(make_world, nats, google):
    """A room with one seat, and ann in it."""
    world = make_world(default_region="EU", fleets=fleets(max_players=1, when_full="queue"),
                       env={"PUBSUB_EMULATOR_HOST": google.host}, nats={"urls": [nats.url]},
                       pubsub={"project": "demo", "subscription": "muster", "topic": "results",
                               "dead_topic": "dead"})
    await_ready(world)
    with FakeHost(world.muster, slots=1):
        world.api.post("/v1/allocations", **request("first", "ann"))
        yield world


def free_the_seat(world):
    seat, = world.api.get("/player/ann")["seats"]
    world.api.ask("DELETE", f"/v1/seats/{seat['slot']}")


@pytest.mark.parametrize("doors", ["nats google", "google nats", "http nats", "http google",
                                   "nats http google"])
def test_who_waits_in_line_is_answered_through_every_door(full, nats, google, doors):
    results = nats.follow(RESULT)
    asked = request("t", "bob")
    for door in doors.split():
        if door == "nats":
            nats.store(REQUEST, asked)
            assert nats.next(results).json["status"] == "Queued"
        elif door == "google":
            google.publish("requests", asked)
            assert results_of(google, 1)[0]["status"] == "Queued"
        else:
            assert full.api.ask("POST", "/v1/allocations", None, asked).json["status"] == "Queued"
    free_the_seat(full)
    said = []
    if "nats" in doors:
        said.append(nats.next(results).json)
    if "google" in doors:
        said.append(results_of(google, 2)[1])
    said.append(full.api.post("/v1/allocations", **asked))
    assert said[0]["status"] == "Success"
    assert all(one == said[0] for one in said)


def test_a_kill_between_commit_and_publish_publishes_through_every_door(full, nats, google):
    """Google takes nothing when the seat comes free, and NATS is gone."""
    results = nats.follow(RESULT)
    asked = request("t", "bob")
    nats.store(REQUEST, asked)
    assert nats.next(results).json["status"] == "Queued"
    google.publish("requests", asked)
    assert results_of(google, 1)[0]["status"] == "Queued"
    google.wait(lambda: google.outstanding("muster") == 0)
    google.fail("results:publish", 503, times=1000)
    nats.server.stop()
    free_the_seat(full)
    assert full.api.get("/v1/allocations/t")["state"] == "done"
    full.muster.kill9()
    google.heal()
    nats.server.start()
    full.muster.restart()
    with nats.server.client() as after:
        results = after.follow(RESULT)
        assert after.next(results).json["status"] == "Queued"
        later = after.next(results)
        assert (later.json["ticketId"], later.json["status"]) == ("t", "Success")
    google.wait(lambda: [m for m in google.results("results") if m["status"] == "Success"])
    assert google.results("results")[-1] == later.json
    assert full.api.get("/v1/allocations/t")["bus"] == "nats+pubsub"
