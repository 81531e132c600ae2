"""Two brokers at once: each is answered where it asked, and one player has one seat whichever of
them he comes by."""

import json

import pytest
from fake_host import FakeHost
from nats import REQUEST, RESULT, NatsServer
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
        client.url = server.url
        yield client


@pytest.fixture
def world(make_world, nats, google):
    world = make_world(default_region="EU", fleets=fleets(max_players=8),
                       env={"PUBSUB_EMULATOR_HOST": google.host}, nats={"urls": [nats.url]},
                       pubsub={"project": "demo", "subscription": "muster", "topic": "results",
                               "dead_topic": "dead"})
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
