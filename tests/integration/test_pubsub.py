"""Google Pub/Sub as a bus: each request with its result, whatever fails meanwhile, and Google's
pushes with tokens of Google's and of others."""

import base64
import collections
import json
import random
import secrets
import threading
import urllib.error

import pytest
from fake_host import FakeHost
from http_api import Api
from muster_proc import Muster, NotReady
from players import fleets
from pubsub import Client, PubSub, emulator, private_key

REQUESTS, RESULTS, DEAD = "requests", "results", "dead"
AUDIENCE = "https://muster.example/v1/pubsub/push"
PUSHER = "pusher@demo.iam.gserviceaccount.com"


@pytest.fixture
def fake():
    fake = PubSub()
    fake.topic(RESULTS)
    fake.topic(DEAD)
    fake.subscription("muster", REQUESTS)
    yield fake
    fake.stop()


def settings(**changes):
    return {"project": "demo", "subscription": "muster", "topic": RESULTS, "dead_topic": DEAD,
            **changes}


@pytest.fixture
def make(make_world, fake):
    """A Muster at the fake, which is an emulator to it."""

    def make(players=4, env=None, **changes):
        env = {"PUBSUB_EMULATOR_HOST": fake.host} if env is None else env
        return make_world(default_region="EU", fleets=fleets(max_players=players), env=env,
                          pubsub=settings(**changes))

    return make


@pytest.fixture
def world(make):
    return make()


@pytest.fixture
def host(world):
    with FakeHost(world.muster) as host:
        yield host


def request(ticket, player=None, **more):
    return {"envelopeVersion": "1.0", "type": "allocation-request", "ticketId": ticket,
            "fleet": "arena", "playerId": player or f"p-{ticket}", **more}


def result_of(fake, ticket, n=1):
    """The n-th message about a ticket, as bytes."""

    def look():
        found = [m for m in fake.published[RESULTS] if m.attributes["ticketId"] == ticket]
        return found[n - 1].data if len(found) >= n else None

    return fake.wait(look)


def all_acknowledged(fake):
    fake.wait(lambda: fake.outstanding("muster") == 0)


def seats(world):
    return sum(len(room["seats"]) for room in
               (world.api.get(f"/v1/rooms/{r['id']}") for r in world.api.all("/v1/rooms")))


def is_ready(world, status):
    return Api(world.muster).ask("GET", "/readyz").status == status


# --- requests and results


def test_a_request_has_its_result(world, host, fake):
    fake.publish(REQUESTS, request("t-1", "ann"))
    result = json.loads(result_of(fake, "t-1"))
    assert (result["type"], result["status"]) == ("allocation-result", "Success")
    assert len(base64.b64decode(result["token"])) == 16
    assert result["address"] == "203.0.113.7"
    sent = fake.sent(RESULTS)[0]
    assert sent.attributes == {"type": "allocation-result", "ticketId": "t-1", "status": "Success"}
    all_acknowledged(fake)


def test_every_request_has_one_result(make, fake):
    world = make(players=50)
    with FakeHost(world.muster):
        for i in range(400):
            fake.publish(REQUESTS, request(f"t-{i}"))
        fake.wait(lambda: len(fake.published[RESULTS]) >= 400, 60)
        all_acknowledged(fake)
        results = fake.results(RESULTS)
        assert {r["ticketId"] for r in results} == {f"t-{i}" for i in range(400)}
        assert {r["status"] for r in results} == {"Success"} and len(results) == 400
        assert len({r["token"] for r in results}) == 400
        assert fake.requests["publish"] < 300  # in batches
        assert seats(world) == 400


def test_whatever_fails_each_request_has_its_result_and_one_seat(make, fake):
    world = make(players=100, pull_messages=50)
    dice = random.Random(7)
    tickets = [f"t-{i}" for i in range(10000)]
    fake.subscriptions["muster"].deadline_s = 3
    for verb in ("pull", "acknowledge", "publish", "modifyAckDeadline"):
        for _ in range(15):
            dice.choice([lambda v: fake.fail(v, 503), lambda v: fake.cut(v, after=True),
                         lambda v: fake.faults[v].append(None)])(verb)
    with FakeHost(world.muster):
        for ticket in dice.choices(tickets, k=1000) + tickets:  # some come twice
            fake.publish(REQUESTS, request(ticket))
        fake.wait(lambda: len({m.attributes["ticketId"] for m in fake.published[RESULTS]}) == 10000,
                  120)
        fake.wait(lambda: fake.outstanding("muster") == 0, 60)
        same = collections.defaultdict(set)
        for message in fake.sent(RESULTS):
            same[message.attributes["ticketId"]].add(message.data)
        assert {len(v) for v in same.values()} == {1}
        assert {json.loads(v.pop())["status"] for v in same.values()} == {"Success"}
        assert seats(world) == 10000
        assert not fake.sent(DEAD)


def test_what_is_wrong_with_a_request_is_its_result(world, fake):
    fake.publish(REQUESTS, request("t-1", fleet="nowhere"))
    fake.publish(REQUESTS, {"ticketId": "t-2", "fleet": "arena"})
    assert json.loads(result_of(fake, "t-1"))["errorMessage"] == "fleet 'nowhere' not found"
    assert json.loads(result_of(fake, "t-2"))["errorMessage"] == "playerID is required for allocation"
    all_acknowledged(fake)
    assert not fake.sent(DEAD)


def test_what_is_not_for_us_is_left_alone(world, host, fake):
    fake.publish(REQUESTS, {**request("t-1"), "type": "allocation-result"})
    fake.publish(REQUESTS, {"type": "weather", "ticketId": "t-2"})
    fake.publish(REQUESTS, request("t-3"))
    result_of(fake, "t-3")
    all_acknowledged(fake)
    assert [r["ticketId"] for r in fake.results(RESULTS)] == ["t-3"]
    assert not fake.sent(DEAD)


@pytest.fixture(scope="session")
def googles(tmp_path_factory):
    with emulator(tmp_path_factory.mktemp("emulator")) as host:
        yield host


@pytest.fixture(params=["fake", "emulator"])
def client(request):
    """Of a Pub/Sub that knows nothing yet: ours, and Google's where there is one."""
    project = f"project-{secrets.token_hex(4)}"
    if request.param == "fake":
        fake = PubSub(project, hold_s=2)
        yield Client(fake.host, project)
        fake.stop()
        return
    host = request.getfixturevalue("googles")
    if not host:
        pytest.skip("no emulator: neither PUBSUB_EMULATOR nor gcloud")
    yield Client(host, project)


@pytest.fixture
def both(client, make):
    """A Muster at either."""
    client.create(REQUESTS, "muster")
    client.create(RESULTS, "reader")
    client.create(DEAD, "gravedigger")
    world = make(players=20, env={"PUBSUB_EMULATOR_HOST": client.host}, project=client.project)
    with FakeHost(world.muster):
        yield world


def test_our_pubsub_and_googles_do_the_same(client, both):
    asked = [request(f"t-{i}") for i in range(50)]
    client.publish(REQUESTS, *asked, b"poison", {"type": "weather"})
    results = [json.loads(r) for r in client.pull("reader", 50)]
    assert {r["ticketId"] for r in results} == {a["ticketId"] for a in asked}
    assert {r["status"] for r in results} == {"Success"}
    assert client.pull("gravedigger", 1) == [b"poison"]
    client.publish(REQUESTS, asked[7])
    (again,) = map(json.loads, client.pull("reader", 1))
    assert again in results
    assert seats(both) == 50
    both.wait(lambda: is_ready(both, 200), "Pub/Sub")


def test_a_crash_loses_no_request_of_either(client, both):
    asked = [request(f"t-{i}") for i in range(200)]
    client.publish(REQUESTS, *asked[:100])
    results = collections.defaultdict(set)

    def read(n):
        while len(results) < n:
            for body in client.pull("reader", 1):
                results[json.loads(body)["ticketId"]].add(body)

    read(10)
    client.publish(REQUESTS, *asked[100:])
    both.crash()
    read(200)
    assert {len(bodies) for bodies in results.values()} == {1}
    assert seats(both) == 200


REFUSED = {
    "nothing to publish": ("topics/results:publish", {"messages": []}, 400),
    "an empty message": ("topics/results:publish", {"messages": [{}]}, 400),
    "no base64": ("topics/results:publish", {"messages": [{"data": "!"}]}, 400),
    "a member that is not known": ("topics/results:publish", {"messages": [], "x": 1}, 400),
    "no such topic": ("topics/nowhere:publish", {"messages": [{"data": "YQ=="}]}, 404),
    "no such subscription": ("subscriptions/nowhere:pull", {"maxMessages": 1}, 404),
    "nothing to pull": ("subscriptions/reader:pull", {"maxMessages": 0}, 400),
    "nothing to acknowledge": ("subscriptions/reader:acknowledge", {"ackIds": []}, 400),
    "a deadline that is too long": ("subscriptions/reader:modifyAckDeadline",
                                    {"ackIds": ["ack:x"], "ackDeadlineSeconds": 601}, 400),
}


def test_both_refuse_the_same(client):
    client.create(RESULTS, "reader")
    for what, (path, body, status) in REFUSED.items():
        with pytest.raises(urllib.error.HTTPError) as refusal:
            client.ask("POST", path, body)
        assert refusal.value.code == status, what
        assert json.load(refusal.value)["error"]["code"] == status, what


# --- redelivery


def test_a_repeat_gets_the_same_bytes_and_no_second_seat(world, host, fake):
    fake.publish(REQUESTS, request("t-1", "ann"))
    first = result_of(fake, "t-1")
    fake.publish(REQUESTS, request("t-1", "ann"))
    assert result_of(fake, "t-1", 2) == first
    all_acknowledged(fake)
    assert seats(world) == 1


def test_an_acknowledgement_that_is_lost_brings_the_message_again(world, host, fake):
    fake.fail("acknowledge", 503, times=2)
    fake.publish(REQUESTS, request("t-1", "ann"))
    first = result_of(fake, "t-1")
    fake.deliver_again("muster")
    assert result_of(fake, "t-1", 2) == first
    all_acknowledged(fake)
    assert seats(world) == 1


def test_an_answer_to_publish_that_is_lost_repeats_the_same_bytes(world, host, fake):
    fake.cut("results:publish", after=True)
    fake.publish(REQUESTS, request("t-1", "ann"))
    first = result_of(fake, "t-1")
    assert result_of(fake, "t-1", 2) == first
    all_acknowledged(fake)
    assert seats(world) == 1


def test_a_crash_between_commit_and_publish_publishes_after_the_restart(world, host, fake):
    fake.subscriptions["muster"].deadline_s = 3
    fake.fail("results:publish", 503, times=1000)
    fake.publish(REQUESTS, request("t-1", "ann"))
    world.wait(lambda: world.api.ask("GET", "/v1/allocations/t-1").json.get("state") == "done",
               "a seat that is durable")
    fake.wait(lambda: fake.requests["results:publish"] > 0)
    assert not fake.sent(RESULTS)
    token = world.api.get("/v1/allocations/t-1")["result"]["token"]
    world.muster.kill9()
    fake.heal()
    world.muster.restart()
    result = json.loads(result_of(fake, "t-1"))
    assert (result["status"], result["token"]) == ("Success", token)
    all_acknowledged(fake)
    assert {m.data for m in fake.sent(RESULTS)} == {result_of(fake, "t-1")}
    assert seats(world) == 1


def test_what_takes_long_stays_ours(make, fake):
    go_on = threading.Event()

    def script(server):
        go_on.wait(20)
        server.inited()

    world = make()
    with FakeHost(world.muster, script=script):
        fake.publish(REQUESTS, request("t-1", "ann"))
        fake.wait(lambda: fake.requests["modifyAckDeadline"] > 0)
        with fake.changed:
            (delivery,) = fake.subscriptions["muster"].out.values()
        go_on.set()
        result_of(fake, "t-1")
        all_acknowledged(fake)
        assert delivery.attempts == 1 and len(fake.sent(RESULTS)) == 1


# --- a broker that fails


def test_a_broker_that_is_away_and_comes_back(make, fake):
    world = make(players=50)
    with FakeHost(world.muster):
        world.wait(lambda: is_ready(world, 200), "Pub/Sub")
        for i in range(100):
            fake.publish(REQUESTS, request(f"t-{i}"))
        fake.wait(lambda: len(fake.published[RESULTS]) >= 20)
        fake.stop()
        world.wait(lambda: is_ready(world, 503), "word that it is away")
        why = Api(world.muster).ask("GET", "/readyz").error["message"]
        assert "Pub/Sub" in why
        for i in range(100, 200):
            fake.publish(REQUESTS, request(f"t-{i}"))
        fake.start()
        fake.wait(lambda: {m.attributes["ticketId"] for m in fake.published[RESULTS]}
                  == {f"t-{i}" for i in range(200)}, 60)
        world.wait(lambda: is_ready(world, 200), "Pub/Sub again")
        fake.deliver_again("muster")
        all_acknowledged(fake)
        same = collections.defaultdict(set)
        for message in fake.sent(RESULTS):
            same[message.attributes["ticketId"]].add(message.data)
        assert {len(v) for v in same.values()} == {1}
        assert seats(world) == 200


@pytest.mark.parametrize("verb", ["pull", "acknowledge", "publish"])
def test_each_kind_of_request_is_tried_again(world, host, fake, verb):
    world.wait(lambda: is_ready(world, 200), "Pub/Sub")
    for status in (500, 503, 429, 504):
        fake.fail(verb, status)
    fake.cut(verb)
    for i in range(5):
        fake.publish(REQUESTS, request(f"t-{i}"))
    fake.wait(lambda: {m.attributes["ticketId"] for m in fake.published[RESULTS]}
              == {f"t-{i}" for i in range(5)}, 30)
    fake.deliver_again("muster")
    all_acknowledged(fake)
    world.wait(lambda: is_ready(world, 200), "Pub/Sub again")
    assert seats(world) == 5


def test_what_an_operator_can_do_is_said(make, fake):
    fake.forbidden.add("muster")
    world = make()

    def said(**wanted):
        lines = world.muster.log_lines("Pub/Sub refused a request")
        return [e for e in lines if all(e.get(k) == v for k, v in wanted.items())]

    world.wait(lambda: said(request="pull", name="muster", status=403), "a line")
    (line, *_) = said(status=403)
    assert line["help"] == "the account needs roles/pubsub.subscriber on this subscription"
    assert is_ready(world, 503)
    fake.forbidden.clear()
    world.wait(lambda: is_ready(world, 200), "Pub/Sub")
    del fake.topics[RESULTS]
    fake.publish(REQUESTS, request("t-1", fleet="nowhere"))
    world.wait(lambda: said(request="publish", name=RESULTS, status=404), "a line")
    (line, *_) = said(status=404)
    assert line["help"] == "there is no such topic"
    world.wait(lambda: is_ready(world, 503), "word of it")
    fake.topic(RESULTS)
    result_of(fake, "t-1")
    world.wait(lambda: is_ready(world, 200), "Pub/Sub")


# --- what cannot be read


def test_the_line_about_an_answer_that_is_no_json_can_be_read_by_machines(world, host, fake):
    fake.garble("pull", b'{"receivedMessages":[] "x":1}')
    fake.publish(REQUESTS, request("t-1"))  # the pull under way is over
    line, *_ = world.wait(
        lambda: world.muster.log_lines("Pub/Sub answered a pull with what is no JSON"), "a line")
    assert '"' in line["why"]
    assert set(line) == {"ts", "level", "msg", "why"}
    assert result_of(fake, "t-1")


POISON = {"no json": "no json", "no ticket": '{"fleet":"arena"}', "no name": '{"ticketId":7}',
          "no text": b"\xff\xfe", "a list": "[]", "null": "null", "nothing": "", "long": "x" * 200000}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
def test_poison_goes_to_the_dead_letters_once(world, host, fake, poison):
    fake.publish(REQUESTS, poison, {"some": "attribute"})
    (dead,) = fake.wait(lambda: fake.published[DEAD])
    assert dead.data == (poison if isinstance(poison, bytes) else poison.encode())
    assert dead.attributes["subscription"] == "muster" and dead.attributes["why"]
    all_acknowledged(fake)
    fake.publish(REQUESTS, request("t-1"))  # and life goes on
    result_of(fake, "t-1")
    all_acknowledged(fake)
    assert len(fake.sent(DEAD)) == 1


def test_poison_waits_for_its_topic_and_holds_up_nobody(world, host, fake):
    fake.fail("dead:publish", 503, times=3)
    fake.publish(REQUESTS, "poison")
    fake.publish(REQUESTS, request("t-1"))
    result_of(fake, "t-1")
    fake.wait(lambda: fake.published[DEAD])
    all_acknowledged(fake)


def test_poison_that_its_topic_refuses_is_forgotten(world, host, fake):
    fake.fail("dead:publish", 400)
    fake.publish(REQUESTS, "poison")
    all_acknowledged(fake)
    assert not fake.sent(DEAD)
    world.wait(lambda: world.muster.log_lines("a dead letter could not be kept and is forgotten"),
               "a line")


def test_without_a_dead_topic_poison_is_logged_and_forgotten(make, fake):
    world = make(dead_topic="")
    fake.publish(REQUESTS, "poison")
    all_acknowledged(fake)
    (line,) = world.wait(lambda: world.muster.log_lines("a message cannot be read"), "a line")
    assert line["begins"] == "poison"


def test_messages_too_long_for_one_answer_come_in_several(make, fake):
    for letter in "abc":
        fake.publish(REQUESTS, letter * 6_000_000)
    world = make(pull_messages=4, pulls=1)
    (line,) = world.wait(lambda: world.muster.log_lines("Pub/Sub did not answer"), "a line")
    assert line["why"] == "the answer is too long"
    fake.deliver_again("muster")
    fake.wait(lambda: len({m.data[:1] for m in fake.published[DEAD]}) == 3, 60)
    fake.wait(lambda: fake.outstanding("muster") == 0, 60)


# --- tokens


def test_a_service_account_signs_for_its_token(make, fake, tmp_path):
    fake.auth = True
    world = make(env={}, endpoint=fake.url,
                 credentials_file=str(fake.credentials(tmp_path / "key.json")))
    fake.publish(REQUESTS, request("t-1", fleet="nowhere"))
    result_of(fake, "t-1")
    all_acknowledged(fake)
    assert dict(fake.tokens_given) == {"account": 1}
    fake.forget_tokens()  # 401 from now on: a new one is got
    fake.publish(REQUESTS, request("t-2", fleet="nowhere"))
    result_of(fake, "t-2")
    assert dict(fake.tokens_given) == {"account": 2}
    assert "ya29" not in world.muster.log()


def test_a_machine_has_a_token(make, fake):
    fake.auth = True
    make(env={"GCE_METADATA_HOST": fake.host}, endpoint=fake.url)
    fake.publish(REQUESTS, request("t-1", fleet="nowhere"))
    result_of(fake, "t-1")
    assert dict(fake.tokens_given) == {"metadata": 1}


def test_an_account_that_google_does_not_know_is_not_ready(make, fake, tmp_path):
    fake.auth = True
    other = private_key("another account")
    world = make(env={}, endpoint=fake.url,
                 credentials_file=str(fake.credentials(tmp_path / "key.json", other)))
    (line, *_) = world.wait(lambda: world.muster.log_lines("Google gave no access token"), "a line")
    assert line["why"] == "it answered 400"
    assert is_ready(world, 503)
    assert not fake.requests["pull"]


@pytest.mark.parametrize("changes, sentence", [
    ({"credentials_file": "/nowhere/key.json"}, "Cannot use the Google credentials /nowhere/key.json"),
    ({"topic": "a/b"}, "this is no name for a topic: a/b"),
])
def test_what_cannot_be_used_is_said_at_the_start(tmp_path, changes, sentence):
    muster = Muster(tmp_path, {"default_region": "EU", "fleets": fleets(),
                               "pubsub": settings(**changes)})
    with pytest.raises(NotReady) as refusal:
        muster.start()
    assert sentence in str(refusal.value)


# --- pushes


@pytest.fixture
def pushed(make, fake):
    """A Muster that nothing is pulled by."""
    world = make(subscription="", push_audience=AUDIENCE, push_account=PUSHER,
                 push_keys=fake.url + "/oauth2/v3/certs")
    world.wait(lambda: is_ready(world, 200), "Pub/Sub")
    return world


def push(world, token, data, wrap=True, **more):
    if isinstance(data, dict) and wrap:
        data = json.dumps(data)
    if isinstance(data, str):
        data = data.encode()
    body = {"message": {"data": base64.b64encode(data).decode(), "messageId": "1",
                        "attributes": {"a": "b"}, "publishTime": "2026-11-16T00:00:00Z"},
            "subscription": "projects/demo/subscriptions/push", **more} if wrap else data
    api = Api(world.muster, token)

    def answer():
        answer = api.ask("POST", "/v1/pubsub/push", data=body)
        return None if answer.status == 503 else answer  # Google asks again, too

    return world.wait(answer, "an answer that is for good")


@pytest.fixture
def google(fake):
    return fake.oidc(AUDIENCE, PUSHER)


def test_a_push_is_answered_when_its_result_is_published(pushed, fake, google):
    with FakeHost(pushed.muster):
        answer = push(pushed, google, request("t-1", "ann"))
        assert (answer.status, answer.body) == (204, b"")
        first = result_of(fake, "t-1")
        assert json.loads(first)["status"] == "Success"
        assert push(pushed, google, request("t-1", "ann"), deliveryAttempt=2).status == 204
        assert result_of(fake, "t-1", 2) == first
        assert seats(pushed) == 1
        assert not fake.requests["pull"] and not fake.requests["acknowledge"]


def test_a_push_waits_for_its_result_to_be_published(pushed, fake, google):
    fake.fail("results:publish", 503, times=3)
    assert push(pushed, google, request("t-1", fleet="nowhere")).status == 204
    assert fake.requests["results:publish"] == 4 and len(fake.sent(RESULTS)) == 1


def test_what_is_not_for_us_or_cannot_be_read_is_not_pushed_again(pushed, fake, google):
    assert push(pushed, google, {"type": "weather"}).status == 204
    assert push(pushed, google, "poison").status == 204
    assert push(pushed, google, "x" * 300000).status == 204  # longer than other bodies may be
    assert [m.data[:1] for m in fake.sent(DEAD)] == [b"p", b"x"]
    assert not fake.sent(RESULTS)


@pytest.mark.parametrize("body", [{}, {"message": 7}, {"message": {"data": 7}}, [], 7,
                                  {"message": {"data": "no base64!"}}])
def test_a_push_that_is_none_is_refused(pushed, google, body):
    answer = push(pushed, google, body, wrap=False)
    assert (answer.status, answer.error["code"]) == (400, "bad_argument")


def flawed(fake):
    stranger = private_key("stranger")
    return {
        "nobody": None,
        "no token": "x",
        "no Google": fake.oidc(AUDIENCE, PUSHER, iss="https://accounts.example"),
        "another audience": fake.oidc("https://elsewhere", PUSHER),
        "no audience": fake.oidc(None, PUSHER),
        "another account": fake.oidc(AUDIENCE, "else@demo.iam.gserviceaccount.com"),
        "no account": fake.oidc(AUDIENCE, None),
        "an address that is not verified": fake.oidc(AUDIENCE, PUSHER, email_verified=False),
        "an address that is said to be verified": fake.oidc(AUDIENCE, PUSHER,
                                                            email_verified="true"),
        "old": fake.oidc(AUDIENCE, PUSHER, exp=1),
        "no end": fake.oidc(AUDIENCE, PUSHER, exp=None),
        "another's signature": fake.oidc(AUDIENCE, PUSHER, signer=stranger),
        "a secret": fake.oidc(AUDIENCE, PUSHER, signer="secret", algorithm="HS256"),
        "no signature": fake.oidc(AUDIENCE, PUSHER).rsplit(".", 1)[0] + ".",
    }


def test_only_google_may_push(pushed, fake, google):
    for flaw, token in flawed(fake).items():
        answer = push(pushed, token, request("t-1"))
        code = "no_access_token" if token is None else "bad_access_token"
        assert (answer.status, answer.error["code"]) == (401, code), flaw
    assert push(pushed, pushed.api.token, request("t-1")).status == 401  # ours, and an admin's
    assert not fake.sent(RESULTS) and not fake.sent(DEAD)
    assert push(pushed, google, {"type": "weather"}).status == 204


def test_nobody_may_push_where_it_is_not_configured(world, fake, google):
    answer = push(world, google, request("t-1"))
    assert (answer.status, answer.error["code"]) == (404, "not_found")
