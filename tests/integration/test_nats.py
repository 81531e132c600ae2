"""Allocations through a real nats-server: asked for, answered, repeated, and over the ends of either
side."""

import json
import re
import time

import pytest
from fake_host import FakeHost, Server
from gate import Gate
from muster_proc import Muster, NotReady, run
from nats import DEAD, REQUEST, RESULT, STREAM, NatsServer, await_ready
from players import fleets
from secure import Authority

PATIENCE_S = 30.0


@pytest.fixture
def broker(tmp_path):
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def client(broker):
    with broker.client() as client:
        yield client


@pytest.fixture
def start(broker, make_world):
    """Makes a world that is connected with the broker; keywords: of the fleet, and nats."""

    def make(nats=None, env=None, **fleet):
        fleet = {"confirm": "none", "max_players": 1000, **fleet}
        world = make_world(default_region="EU", fleets=fleets(**fleet), env=env,
                           nats={"urls": [broker.url], "ack_wait_ms": 2000, **(nats or {})})
        await_ready(world)
        return world

    return make


@pytest.fixture
def world(start):
    return start()


@pytest.fixture
def agent(world):
    with FakeHost(world.muster) as agent:
        yield agent


def request(ticket, player, **more):
    return {"ticketId": ticket, "fleet": "arena", "playerId": player, **more}


def seats_of(world, player):
    return world.api.get(f"/player/{player}")["seats"]


def await_acknowledged(client):
    """Until the consumer has nothing on its way."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        info = client.consumer()
        if info["num_ack_pending"] == 0 and info["num_pending"] == 0:
            return info
        assert time.monotonic() < deadline, info
        time.sleep(0.02)


# --- asking and answering


def test_the_seeds_three_requests_get_three_results(world, agent, client):
    results = client.follow(RESULT)
    client.store(REQUEST, request("player-123-req-1", "player-123"))
    first = client.next(results)
    assert first.head == {"Nats-Msg-Id": "player-123-req-1:Success"}
    assert first.json["envelopeVersion"] == "1.0"
    assert first.json["type"] == "allocation-result"
    assert first.json["status"] == "Success"
    assert len(first.json["token"]) == 24
    client.store(REQUEST, request("player-456-req-1", "player-456", joinOnIds=["player-123"],
                                  canJoinNotFound=True))
    assert client.next(results).json["sessionId"] == first.json["sessionId"]
    client.store(REQUEST, request("player-789-req-1", "player-789",
                                  joinOnIds=["player-123", "player-456", "player-999"]))
    third = client.next(results).json
    assert (third["ticketId"], third["sessionId"]) == ("player-789-req-1", first.json["sessionId"])
    assert await_acknowledged(client)["ack_floor"]["consumer_seq"] == 3


def test_one_name_may_fail_twice_for_different_reasons(world, agent, client):
    """The broker would drop the second as a repeat of the first."""
    results = client.follow(RESULT)
    client.store(REQUEST, request("a", "ann", fleet="nope"))
    assert client.next(results).json["errorMessage"] == "fleet 'nope' not found"
    client.store(REQUEST, request("a", "ann", joinOnIds=["nobody"]))
    second = client.next(results)
    assert second.json["errorMessage"] == "friends not found on any gameserver"
    assert second.head["Nats-Msg-Id"] == "a:Failure"


def test_what_is_wrong_is_answered_in_a_sentence(world, client):
    results = client.follow(RESULT)
    client.store(REQUEST,
                 {"ticketId": "a", "fleet": "arena"},
                 request("b", "ann", fleet="nope"),
                 request("c", "ann", priority="high"),
                 request("d", "ann", region="Atlantis"),
                 request("e", "ann", joinOnIds=["bob"]))
    said = {m.json["ticketId"]: m.json for m in client.take(results, 5)}
    assert {m["status"] for m in said.values()} == {"Failure"}
    assert said["a"]["errorMessage"] == "playerID is required for allocation"
    assert said["b"]["errorMessage"] == "fleet 'nope' not found"
    assert said["c"]["errorMessage"] == "priority must be a whole number from 0 to 100"
    assert "Atlantis" in said["d"]["errorMessage"]
    assert said["e"]["errorMessage"] == "friends not found on any gameserver"
    assert all(set(m) == {"envelopeVersion", "type", "ticketId", "status", "errorMessage"}
               for m in said.values())
    await_acknowledged(client)


def test_other_types_are_left_alone(world, agent, client):
    results = client.follow(RESULT)
    client.store(REQUEST,
                 {"type": "allocation-result", "ticketId": "x", "status": "Success"},
                 {"type": "chat", "text": "hi"},
                 request("mine", "ann", type="allocation-request"))
    assert client.next(results).json["ticketId"] == "mine"
    await_acknowledged(client)
    assert client.nothing_more(results) == []
    assert client.nothing_more(client.follow(DEAD)) == []
    shown = world.api.ask("GET", "/metrics").body.decode()
    assert 'muster_broker_passed_over_total{bus="nats",reason="foreign"} 2\n' in shown
    assert 'muster_broker_received_total{bus="nats"} 3\n' in shown


def test_requests_and_results_may_share_a_subject(start, client):
    world = start(nats={"result_subject": REQUEST})
    with FakeHost(world.muster):
        both = client.follow(REQUEST)
        client.store(REQUEST, request("t", "ann"))
        assert [m.json.get("type") for m in client.take(both, 2)] == [None, "allocation-result"]
        await_acknowledged(client)
        assert client.nothing_more(both) == []


def test_poison_goes_to_the_dead_letters_and_never_loops(start, client):
    start(nats={"ack_wait_ms": 300})
    dead = client.follow(DEAD)
    poison = [b"{", b"\xff\xfe\x00", b'{"ticketId":""}', b"[]", b"", b'{"ticketId":"' + b"x" * 129 + b'"}']
    client.store(REQUEST, *poison)
    buried = client.take(dead, len(poison))
    assert sorted(m.body for m in buried) == sorted(poison)
    assert all(m.head["Muster-Error"] for m in buried)
    info = await_acknowledged(client)
    assert info["delivered"]["consumer_seq"] == len(poison)  # each came once
    assert client.nothing_more(dead, 1.0) == []


def test_the_line_about_poison_can_be_read_by_machines(start, client):
    """What is wrong with it is said in its own words, which may be anything."""
    world = start()
    dead = client.follow(DEAD)
    poison = b'{"ticketId":"t" "fleet":"arena"}'
    client.store(REQUEST, poison)
    why = client.next(dead).head["Muster-Error"]
    line, = world.wait(lambda: world.muster.log_lines("a message cannot be read"), "a line")
    assert '"' in why
    assert (line["why"], line["bytes"], line["begins"]) == (why, len(poison), poison.decode())


def test_a_message_that_came_too_often_is_a_dead_letter(broker, start, client):
    """Whoever took it before us never acknowledged: it may be what crashes him."""
    client.make_stream()
    client.api(f"CONSUMER.DURABLE.CREATE.{STREAM}.muster", {"stream_name": STREAM, "config": {
        "durable_name": "muster", "ack_policy": "explicit", "ack_wait": 50_000_000,
        "filter_subject": REQUEST, "max_deliver": -1}})
    client.store(REQUEST, request("bad", "ann"))
    for _ in range(3):
        came = client.subscribe(client.inbox + "pull")
        client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.muster", b"1", client.inbox + "pull")
        assert client.next(came).json["ticketId"] == "bad"
        client.send(f"UNSUB {came}\r\n".encode())
    start(nats={"max_deliver": 3})
    buried = client.next(client.follow(DEAD))
    assert buried.json["ticketId"] == "bad"
    assert buried.head["Muster-Error"] == "it came 4 times"
    await_acknowledged(client)
    assert client.nothing_more(client.follow(RESULT)) == []


# --- repeats


def test_a_redelivered_request_gives_the_same_bytes_and_one_seat(broker, client, make_world):
    client.make_stream(duplicate_window=100_000_000)  # so that the repeat is seen at all
    world = make_world(default_region="EU", fleets=fleets(confirm="none"), nats={"urls": [broker.url]})
    with FakeHost(world.muster):
        results = client.follow(RESULT)
        client.store(REQUEST, request("t", "ann", info={"a": 1, "b": 2}))
        first = client.next(results)
        client.await_forgotten_ids()
        client.store(REQUEST, json.dumps(request("t", "ann", info={"b": 2, "a": 1}), indent=2).encode())
        again = client.next(results)
        assert again.body == first.body
        assert again.head == first.head
        assert len(seats_of(world, "ann")) == 1
        client.await_forgotten_ids()
        client.store(REQUEST, {"ticketId": "wrong"})
        wrong = client.next(results)
        client.await_forgotten_ids()
        client.store(REQUEST, {"ticketId": "wrong"})
        assert client.next(results).body == wrong.body
        await_acknowledged(client)


def test_the_same_name_for_something_else_is_refused(world, agent, client):
    results = client.follow(RESULT)
    client.store(REQUEST, request("t", "ann"))
    assert client.next(results).json["status"] == "Success"
    client.store(REQUEST, request("t", "bob"))
    refused = client.next(results).json
    assert (refused["ticketId"], refused["status"]) == ("t", "Failure")
    assert seats_of(world, "bob") == []
    await_acknowledged(client)


def test_a_conflict_does_not_swallow_the_failure_of_whom_it_is_about(start, client):
    """Both would be "t:Failure", and the broker drops the second of one id."""
    start(when_full="queue", queue_timeout_s=2)
    results = client.follow(RESULT)
    client.publish_at_once(REQUEST, request("t", "ann"), request("t", "bob"))
    said = client.take(results, 3)
    queued, = (m for m in said if m.json["status"] == "Queued")
    late, = (m for m in said if m.head.get("Nats-Msg-Id") == "t:Failure")
    conflict, = (m for m in said if m is not queued and m is not late)
    assert late.json["errorMessage"] == "queue timeout after 2 s"
    assert (conflict.json["status"], conflict.head) == ("Failure", {})
    assert await_acknowledged(client)["delivered"]["consumer_seq"] == 2
    assert client.nothing_more(results) == []


def test_a_request_that_came_over_http_first_is_answered_here_too(world, agent, client):
    asked = request("t", "ann")
    over_http = world.api.post("/v1/allocations", **asked)
    client.store(REQUEST, asked)
    result = client.next(client.follow(RESULT))
    assert {k: v for k, v in over_http.items() if k in result.json} == result.json
    await_acknowledged(client)
    assert len(seats_of(world, "ann")) == 1


def test_a_request_that_takes_long_stays_ours(start, client):
    """A room that is being started for longer than ack_wait: the broker does not give it again."""
    world = start(nats={"ack_wait_ms": 400})
    with FakeHost(world.muster, script=lambda server: None) as agent:
        results = client.follow(RESULT)
        client.store(REQUEST, request("t", "ann"))
        server = agent.spawned.get(timeout=PATIENCE_S)
        assert client.nothing_more(results, 1.5) == []
        Server.inited(server)
        assert client.next(results).json["status"] == "Success"
        assert await_acknowledged(client)["delivered"]["consumer_seq"] == 1
        assert len(seats_of(world, "ann")) == 1


def test_a_queued_request_is_acknowledged_and_answered_later(start, client):
    world = start(max_players=1, when_full="queue")
    with FakeHost(world.muster, slots=1):
        results = client.follow(RESULT)
        client.store(REQUEST, request("first", "ann"))
        assert client.next(results).json["status"] == "Success"
        client.store(REQUEST, request("second", "bob"))
        queued = client.next(results)
        assert queued.head["Nats-Msg-Id"] == "second:Queued"
        assert (queued.json["status"], queued.json["queuePosition"]) == ("Queued", 1)
        await_acknowledged(client)
        seat = seats_of(world, "ann")[0]["slot"]
        world.api.ask("DELETE", f"/v1/seats/{seat}")
        later = client.next(results)
        assert later.head["Nats-Msg-Id"] == "second:Success"
        assert later.json["ticketId"] == "second"


# --- ends


def test_a_broker_that_is_away_is_said_and_waited_for(broker, make_world):
    broker.stop()
    world = make_world(default_region="EU", fleets=fleets(confirm="none"), nats={"urls": [broker.url]})
    answer = await_ready(world, 503)
    assert answer.error["message"] == "NATS is away: nobody can ask for an allocation through it."
    with FakeHost(world.muster):
        broker.start()
        await_ready(world)
        with broker.client() as client:
            client.store(REQUEST, request("t", "ann"))
            assert client.next(client.follow(RESULT)).json["status"] == "Success"


def test_status_says_how_the_broker_is(broker, world, agent, client):
    def brokers():
        host, port = world.muster.http_address
        said = run("status", "--url", f"http://{host}:{port}", "--data", world.muster.data).stdout
        return re.search(r"^brokers    (.*)$", said, re.M)[1]

    world.wait(lambda: brokers() == "nats connected, 0 requests to fetch; 0 results owed",
               "a broker that is there")
    broker.stop()
    world.wait(lambda: brokers() == "nats away; 0 results owed", "a broker that is away")


def test_a_stream_that_is_deleted_is_made_again(world, agent, client):
    client.api(f"STREAM.DELETE.{STREAM}")
    deadline = time.monotonic() + PATIENCE_S
    while "error" in client.ask(f"$JS.API.CONSUMER.INFO.{STREAM}.muster"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.store(REQUEST, request("t", "ann"))
    assert client.next(client.follow(RESULT)).json["status"] == "Success"


@pytest.mark.parametrize("hard", [False, True])
def test_a_broker_that_starts_anew_mid_load_loses_nothing(broker, world, agent, hard):
    requests = [request(f"t{i}", f"p{i}") for i in range(900)]
    with broker.client() as client:
        results = client.follow(RESULT)
        client.store(REQUEST, *requests[:450])
        client.take(results, 100)
    broker.stop(hard=hard)
    await_ready(world, 503)
    broker.start()
    with broker.client() as client:
        client.store(REQUEST, *requests[450:])
        said = answers_of_all(client, len(requests))
        assert set(said) == {r["ticketId"] for r in requests}
        assert {m["status"] for m in said.values()} == {"Success"}
        await_ready(world)
        await_acknowledged(client)
    assert world.api.get("/status")["players"] == len(requests)


def answers_of_all(client, count):
    """ticketId -> result, when that many have one; a repeat must say the same."""
    said = {}
    results = client.follow(RESULT)
    while len(said) < count:
        result = client.next(results).json
        assert said.setdefault(result["ticketId"], result) == result
    return said


def test_a_kill_between_commit_and_publish_publishes_after_the_start(broker, world, agent, client):
    """The broker is gone when the room is ready, so the result is committed and cannot leave."""
    agent.script = lambda server: None
    client.store(REQUEST, request("t", "ann"))
    server = agent.spawned.get(timeout=PATIENCE_S)
    broker.stop()
    await_ready(world, 503)
    Server.inited(server)
    assert [s["state"] for s in seats_of(world, "ann")] == ["taken"]
    world.muster.kill9()
    world.muster.restart()
    assert seats_of(world, "ann") != []
    broker.start()
    with broker.client() as after:
        results = after.follow(RESULT)
        result = after.next(results)
        assert (result.json["ticketId"], result.json["status"]) == ("t", "Success")
        await_acknowledged(after)
        assert {m.body for m in after.nothing_more(results)} <= {result.body}
        assert len(seats_of(world, "ann")) == 1


def test_kills_mid_load_lose_nothing_and_seat_nobody_twice(broker, world, agent, client):
    requests = [request(f"t{i}", f"p{i}") for i in range(600)]
    results = client.follow(RESULT)
    for part in range(3):
        client.store(REQUEST, *requests[200 * part:200 * (part + 1)])
        client.next(results)
        world.muster.kill9()
        world.muster.restart()
    said = answers_of_all(client, len(requests))
    assert {m["status"] for m in said.values()} == {"Success"}
    assert len({m["key"] for m in said.values()}) == len(requests)
    await_acknowledged(client)
    assert world.api.get("/status")["players"] == len(requests)


def test_ten_thousand_requests_have_ten_thousand_answers(start, client):
    world = start(max_players=10000)
    count = 10000
    with FakeHost(world.muster):
        for i in range(0, count, 1000):
            client.store(REQUEST, *[request(f"t{n}", f"p{n}") for n in range(i, i + 1000)],
                         *[request(f"t{n}", f"p{n}") for n in range(i, i + 1000, 10)])
        said = answers_of_all(client, count)
        assert {m["status"] for m in said.values()} == {"Success"}
        assert len({m["token"] for m in said.values()}) == count
        await_acknowledged(client)
        assert world.api.get("/status")["players"] == count


@pytest.fixture
def gate(gate_library, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    return Gate(gate_library, folder)


@pytest.fixture
def gated(gate, broker, make_world):
    """A world on a disk that obeys."""
    world = make_world(default_region="EU", fleets=fleets(confirm="none"), env=gate.env,
                       data=gate.folder / "data", nats={"urls": [broker.url], "ack_wait_ms": 2000})
    await_ready(world)
    with FakeHost(world.muster):
        yield world
        gate.open()


@pytest.mark.embedded
def test_nothing_is_published_before_it_is_durable(gate, gated, client):
    results = client.follow(RESULT)
    client.store(REQUEST, request("first", "ann"))
    assert client.next(results).json["status"] == "Success"
    gate.close()
    client.store(REQUEST, request("second", "bob"))
    gated.wait(lambda: gate.somebody_waits, "commit that waits for the disk")
    assert client.nothing_more(results) == []
    gated.muster.kill9()
    gate.open()
    gated.muster.restart()
    assert client.next(results).json["ticketId"] == "second"
    await_acknowledged(client)
    assert len(seats_of(gated, "bob")) == 1


@pytest.mark.embedded
def test_requests_wait_for_a_disk_that_is_broken(gate, gated, client):
    results = client.follow(RESULT)
    client.store(REQUEST, request("first", "ann"))
    assert client.next(results).json["status"] == "Success"
    gate.break_disk()
    client.store(REQUEST, *[request(f"t{i}", f"p{i}") for i in range(3)])
    await_ready(gated, 503)
    client.store(REQUEST, *[request(f"t{i}", f"p{i}") for i in range(3, 6)])
    assert client.nothing_more(results, 1.0) == []
    gate.mend_disk()
    said = {m.json["ticketId"]: m.json["status"] for m in client.take(results, 6)}
    assert said == {f"t{i}": "Success" for i in range(6)}
    await_acknowledged(client)
    assert gated.api.get("/status")["players"] == 7


# --- as whom


def secured(folder, *options):
    """A broker that lets nobody in who only looks. The port is its own choice: one that we looked
    for beforehand may be somebody else's by the time the broker listens."""
    return NatsServer(folder, *options, lets_us_in=False)


def await_away(world):
    deadline = time.monotonic() + PATIENCE_S
    while not world.muster.log_lines("NATS is away; we try on"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert world.api.ask("GET", "/readyz").status == 503


def test_a_user_and_his_password(tmp_path, make_world):
    with secured(tmp_path / "nats", "--user", "muster", "--pass", "s3cret") as broker:
        nats = {"urls": [broker.url], "user": "muster"}
        right = make_world(fleets=fleets(), nats={**nats, "password": "s3cret"})
        await_ready(right)
        wrong = make_world(fleets=fleets(), nats={**nats, "password": "guess"})
        await_away(wrong)
        assert "s3cret" not in right.muster.log() and "guess" not in wrong.muster.log()


def test_a_token(tmp_path, make_world):
    with secured(tmp_path / "nats", "--auth", "s3cret") as broker:
        await_ready(make_world(fleets=fleets(), nats={"urls": [broker.url], "token": "s3cret"}))
        await_away(make_world(fleets=fleets(), nats={"urls": [broker.url]}))


def test_tls_and_whom_it_trusts(tmp_path, make_world):
    trusted = Authority(tmp_path, "trusted")
    other = Authority(tmp_path, "other")
    certificate, key = trusted.issue("broker")
    with secured(tmp_path / "nats", "-a", "0.0.0.0", "--tls", "--tlscert", certificate,
                 "--tlskey", key) as broker:
        url = f"tls://localhost:{broker.port}"
        await_ready(make_world(fleets=fleets(), nats={"urls": [url], "ca_file": str(trusted.path)}))
        await_away(make_world(fleets=fleets(), nats={"urls": [url], "ca_file": str(other.path)}))
        await_away(make_world(fleets=fleets(), nats={"urls": [url]}))
        elsewhere = f"tls://127.0.0.2:{broker.port}"  # which the certificate is not for
        await_away(make_world(fleets=fleets(),
                              nats={"urls": [elsewhere], "ca_file": str(trusted.path)}))


def test_a_ca_file_without_certificates_is_refused_at_the_start(tmp_path):
    (tmp_path / "ca.pem").write_text("nothing\n")
    nats = {"urls": ["tls://127.0.0.1:1"], "ca_file": str(tmp_path / "ca.pem")}
    with pytest.raises(NotReady, match="holds no certificates"):
        Muster(tmp_path, {"nats": nats}).start()
