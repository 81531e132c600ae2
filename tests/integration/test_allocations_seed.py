"""The friend-joining seed, paragraph by paragraph, where no other test shows it whole: tokens that do
not pile up, lines under many hands, game servers that say who left, and what is counted."""

import base64
import json
import threading

import pytest
import yaml
from allocations import Allocator, Later
from fake_host import FakeHost
from muster_proc import run
from players import Player, fleets

pytestmark = pytest.mark.timeout(120)

EXAMPLES = [
    {"ticketId": "player-123-req-1", "fleet": "starx", "playerId": "player-123"},
    {"ticketId": "player-456-req-1", "fleet": "starx", "playerId": "player-456",
     "joinOnIds": ["player-123"], "canJoinNotFound": True},
    {"ticketId": "player-789-req-1", "fleet": "starx", "playerId": "player-789",
     "joinOnIds": ["player-123", "player-456", "player-999"], "canJoinNotFound": False},
]


@pytest.fixture
def make(make_world):
    """A world with one fleet of agents, and an agent that starts nothing."""
    hosts = []

    def make(slots=4096, options=None, **fleet):
        world = make_world(default_region="EU", fleets=fleets(**fleet), **(options or {}))
        world.agent = FakeHost(world.muster, slots=slots).__enter__()
        hosts.append(world.agent)
        world.seeker = Allocator(world, fleet.get("name", "arena"))
        return world

    yield make
    for host in hosts:
        host.__exit__(None, None, None)


def ask(world, body):
    return world.seeker.ask("POST", "/v1/allocations", data=body)


def rooms(world):
    return {s["account"]: s["room"] for s in world.api.all("/v1/seats")}


def server_of(world, room):
    return next(s for s in world.agent.servers.values() if s.room == room)


def metric(world, name, **labels):
    found = 0
    for line in world.api.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name) and line[len(name)] in "{ " and all(
                f'{k}="{v}"' in line for k, v in labels.items()):
            found += float(line.rsplit(" ", 1)[1])
    return found


# --- the examples


def test_the_seeds_examples_over_http(make):
    world = make(name="starx", max_players=8)
    results = [ask(world, body) for body in EXAMPLES]
    assert [r.status for r in results] == [200, 200, 200], results
    assert [r.json["ticketId"] for r in results] == [e["ticketId"] for e in EXAMPLES]
    assert {r.json["status"] for r in results} == {"Success"}
    assert len({r.json["sessionId"] for r in results}) == 1
    assert len({r.json["token"] for r in results}) == 3


def test_the_seeds_examples_while_nobody_is_there(make):
    """The second goes anywhere, the third nowhere, when friends are not found."""
    world = make(name="starx", max_players=8)
    alone = ask(world, EXAMPLES[2])
    assert (alone.status, alone.json["errorMessage"]) == (
        404, "friends not found on any gameserver")
    assert rooms(world) == {}
    anywhere = ask(world, EXAMPLES[1])
    assert (anywhere.status, anywhere.json["status"]) == (200, "Success")


def test_what_a_result_has_not_is_absent(make):
    world = make(slots=1, max_players=1)
    success = world.seeker.placed("ann", ticket="a")
    queued = world.seeker.queued("bob", friends=["ann"], ticket="b")
    failure = world.seeker.seek("cat", friends=["nobody"], ticket="c").json
    always = {"envelopeVersion", "type", "ticketId", "status"}
    assert set(success) == always | {"token", "address", "port", "sessionId", "expiresAt", "key"}
    assert set(queued) == always | {"queuePosition", "queueId"}
    assert set(failure) == always | {"errorMessage", "error"}
    assert None not in [*success.values(), *queued.values(), *failure.values()]


# --- tokens


class Recorder:
    """Reads the proxy's file again and again, as a proxy may at any time. What was caught in the
    middle of a write and cannot be read is passed over, as a proxy does."""

    def __init__(self, path):
        self.path = path
        self.over = threading.Event()
        self.seen = {}  # text -> token -> endpoint
        self.last = None
        self.doubled = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.is_set():
            text = self.path.read_bytes()
            if text not in self.seen:
                self.seen[text] = self.look(text)
            self.last = self.seen[text]

    def look(self, text):
        where = {}
        try:
            clusters = yaml.safe_load(text)["clusters"]
        except yaml.YAMLError:
            return None
        for endpoint in clusters[0]["endpoints"]:
            for token in endpoint["metadata"]["quilkin.dev"]["tokens"]:
                if where.setdefault(token, endpoint["address"]) != endpoint["address"]:
                    self.doubled.append((token, text))
        return where

    def stop(self):
        self.over.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("token", ["opaque", "player-id"])
def test_no_token_is_on_two_endpoints_at_any_instant(make, tmp_path, token):
    """Players follow one another through four rooms; a reader of the file never finds a token twice,
    and none is left behind."""
    path = tmp_path / "quilkin.yaml"
    world = make(max_players=40, token=token, options={"routes": {"quilkin_file": str(path)}})
    for number in range(4):
        Player(world, f"host{number}").create()
    world.wait(lambda: path.exists() and len(path.read_text().splitlines()) > 4, "the file")
    recorder = Recorder(path)
    try:
        for turn in range(1, 13):
            for player in range(8):
                world.seeker.placed(f"p{player}", friends=[f"host{(player + turn) % 4}"])
        routes = {r["token"]: f"{r['address']}:{r['port']}" for r in world.api.all("/v1/routes")}
        assert len(routes) == 12
        world.wait(lambda: recorder.last == routes, "the file as it is in the end")
    finally:
        recorder.stop()
    assert recorder.doubled == []
    assert len(recorder.seen) > 4
    assert metric(world, "muster_token_moves_total") >= 8 * 11


def test_a_player_who_cannot_be_placed_keeps_his_token(make):
    """Nothing is cleaned up before the new place is there."""
    world = make(max_players=2)
    world.seeker.placed("ann")
    before = world.api.all("/v1/routes")
    assert world.seeker.failed(404, "friends_not_found", "ann", friends=["nobody"])
    assert world.api.all("/v1/routes") == before


def test_members_of_a_party_need_tokens_of_their_own(make):
    world = make(max_players=4, token="player-id")
    assert world.seeker.failed(409, "token_taken", "0123456789abcdef-ann",
                               partyIds=["0123456789abcdef-bob"])
    assert rooms(world) == {}


def test_who_creates_a_room_needs_a_token_of_his_own(make):
    """The players' own API hands out seats, and so routes, too."""
    world = make(max_players=4, token="player-id")
    world.seeker.placed("0123456789abcdef-ann")
    Player(world, "0123456789abcdef-bob").cannot(409, "token_taken", verb="create")
    assert len(world.api.all("/v1/routes")) == 1


# --- friends


def test_friends_are_found_however_many_play():
    """By name: a hundred times as many players may cost caches, but no search."""
    said = run("bench", "friends", "--few", 1000, "--many", 100000, "--runs", 3, "--json",
               timeout_s=100)
    assert said.returncode == 0, said.stderr
    assert 0 < json.loads(said.stdout)["growth"] < 10


# --- seats


def test_a_seat_that_nobody_confirms_stays(make):
    """confirm: none, as on Agones: taken at once, until somebody gives it back."""
    world = make(max_players=2, confirm="none", reserve_s=1)
    result = world.seeker.placed("ann")
    assert "expiresAt" not in result
    seat, = world.api.all("/v1/seats")
    assert seat["state"] == "taken"
    world.elapse(2)
    assert len(world.api.all("/v1/seats")) == 1
    assert world.api.ask("DELETE", f"/v1/seats/{seat['id']}").status == 200
    assert world.api.all("/v1/seats") == []


# --- lines


def fill(world, *players):
    results = [world.seeker.placed(p) for p in players]
    server = server_of(world, results[0]["sessionId"])
    for result in results:
        server.joined(result["key"])
    return server, results


def test_a_game_server_that_says_who_left_serves_the_line(make):
    world = make(slots=1, max_players=2)
    server, (_, bob) = fill(world, "ann", "bob")
    world.seeker.queued("cat", friends=["ann"], ticket="cat")
    end = world.seeker.end("cat")
    server.left(bob["key"])
    result = end.answer()
    assert (result["status"], result["sessionId"]) == ("Success", server.room)
    assert set(rooms(world)) == {"ann", "cat"}


def test_many_hands_on_one_line(make):
    """Forty come at once and half of them give up at once: positions are 1..n, each once, and who
    stays is served in that order."""
    world = make(slots=1, max_players=2)
    server, (_, bob) = fill(world, "ann", "bob")
    names = [f"p{i}" for i in range(40)]
    coming = [Later(lambda n=n: world.seeker.queued(n, friends=["ann"], ticket=n)) for n in names]
    positions = [c.answer()["queuePosition"] for c in coming]
    assert all(1 <= p <= 40 for p in positions)
    look = lambda: {n: world.seeker.look(n)["position"] for n in names}
    assert sorted(look().values()) == list(range(1, 41))
    going = [Later(lambda n=n: world.seeker.cancel(n).status) for n in names[::2]]
    assert {g.answer() for g in going} == {200}
    del names[::2]
    places = look()
    assert sorted(places.values()) == list(range(1, 21))
    order = sorted(names, key=places.get)
    end = world.seeker.end(order[0])
    server.left(bob["key"])
    assert end.answer()["status"] == "Success"
    assert look() == {order[0]: 0, **{n: i for i, n in enumerate(order[1:], 1)}}


def test_how_long_it_takes_is_guessed_by_how_it_went(make):
    world = make(slots=1, max_players=2)
    server, (_, gone) = fill(world, "ann", "bob")
    for name in ("p1", "p2", "p3"):
        assert "etaSeconds" not in world.seeker.queued(name, friends=["ann"], ticket=name)
    for name in ("p1", "p2"):
        end = world.seeker.end(name)
        world.elapse(0.3)
        server.left(gone["key"])
        gone = end.answer()
        server.joined(gone["key"])
    assert world.seeker.queued("p4", friends=["ann"])["etaSeconds"] >= 1
    assert world.api.get("/v1/queues")["items"][0]["freed_per_min"] > 0


# --- what is counted


def test_the_seeds_monitoring_list(make):
    world = make(slots=2, max_players=2, token="player-id", queue_timeout_s=1)
    server, (_, bob) = fill(world, "ann", "bob")
    joins = lambda result: metric(world, "muster_friend_joins_total", fleet="arena", result=result)
    assert world.seeker.seek("cat", friends=["nobody"]).status == 404
    world.seeker.queued("cat", friends=["ann"], ticket="cat")
    assert metric(world, "muster_queue_length") == 1
    end = world.seeker.end("cat")
    server.left(bob["key"])
    assert end.answer()["status"] == "Success"
    assert world.seeker.seek("dan", friends=["ann"], wait=20).status == 504
    assert metric(world, "muster_queue_length") == 0
    world.seeker.placed("0123456789abcdef-eve")
    world.seeker.placed("fay", friends=["0123456789abcdef-eve"])
    assert (joins("not_found"), joins("queued"), joins("joined")) == (1, 2, 1)
    assert metric(world, "muster_queue_wait_seconds_count", result="served") == 1
    assert metric(world, "muster_queue_wait_seconds_count", result="abandoned") == 1
    assert metric(world, "muster_queue_abandoned_total", reason="queue_timeout") == 1
    assert metric(world, "muster_token_moves_total") == 0
    assert metric(world, "muster_token_collisions_total") == 0
    assert world.seeker.failed(409, "token_taken", "0123456789abcdef-eva")
    assert metric(world, "muster_token_collisions_total") == 1


def test_short_ids_are_filled_up_with_zeros(make):
    world = make(max_players=2, token="player-id")
    token = world.seeker.placed("player-123")["token"]
    assert base64.b64decode(token) == b"player-123\0\0\0\0\0\0"
    assert len(token) == 24
