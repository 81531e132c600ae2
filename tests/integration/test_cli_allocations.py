"""The verbs for places of players: asking for one, lines, parties and routes."""

import json
import re
import subprocess

import pytest
from allocations import Allocator
from fake_host import FakeHost
from muster_proc import binary, run
from players import fleets

pytestmark = pytest.mark.muster(fleets=fleets(max_players=2), default_region="EU")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def where(world):
    host, port = world.muster.http_address
    return ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]


@pytest.fixture
def cli(world):
    def ask(*arguments, code=0):
        result = run(*arguments, *where(world))
        assert result.returncode == code, result.stdout + result.stderr
        return result

    return ask


@pytest.fixture
def host(world):
    """One room of two seats, and no more."""
    with FakeHost(world.muster, slots=1) as fake:
        yield fake


def place(cli, player, *options, code=0):
    return cli("allocate-player", "--fleet", "arena", "--player", player, *options, code=code)


def rows(text):
    """The lines of a table by their columns; two blanks part them."""
    head, *lines = [re.split(r" {2,}", line.strip()) for line in text.strip().splitlines()]
    return [dict(zip(head, line)) for line in lines]


def test_a_player_gets_a_place(world, cli, host):
    said = place(cli, "ann").stdout
    seat, = world.api.all("/v1/seats")
    route, = world.api.all("/v1/routes")
    assert re.fullmatch(
        rf"ann: room {seat['room']} at {re.escape(host.address)}:{route['port']}, "
        rf"token {re.escape(route['token'])}, key \S+\n", said), said
    result = json.loads(place(cli, "bob", "--friends", "ann,nobody", "-o", "json").stdout)
    assert (result["status"], result["sessionId"]) == ("Success", seat["room"])


def test_the_same_ticket_gets_the_same_answer(world, cli, host):
    first, again = (place(cli, "ann", "--ticket", "t", "-o", "json").stdout for _ in range(2))
    assert first == again
    refused = place(cli, "bob", "--ticket", "t", code=1)
    assert refused.stderr == (
        "muster allocate-player: this ticketId was used for another request\n")


def test_what_is_missing(cli):
    assert "--fleet is needed" in cli("allocate-player", "--player", "ann", code=2).stderr
    assert "--player is needed" in cli("allocate-player", "--fleet", "arena", code=2).stderr
    assert place(cli, "ann", "--friends", "bob", code=1).stderr == (
        "muster allocate-player: friends not found on any gameserver\n")


@pytest.mark.parametrize("name", ["", "x" * 129])
def test_a_ticket_is_never_cut(cli, host, name):
    said = place(cli, "ann", "--ticket", name, code=2).stderr
    assert f"--ticket takes 1 to 128 bytes, not {len(name)}" in said
    assert place(cli, "ann", "--ticket", "x" * 128).stdout.startswith("ann: room ")


def test_a_slip_in_the_second_word_of_a_verb(cli):
    assert cli("queue", "remvoe", "ann", code=2).stderr == (
        "muster: there is no verb 'queue remvoe'. Did you mean 'queue remove'? "
        "'muster queue --help' lists them.\n")
    assert "takes no word of its own" in cli("queue", "everybody", code=2).stderr


def test_who_stands_in_line(world, cli, host):
    assert cli("queue").stdout == "Nobody stands in line.\n"
    room = re.search(r"room (\d+)", place(cli, "ann", "--party", "bob").stdout)[1]
    assert re.fullmatch(rf"cat stands in line at position 1 of room-{room}, as allocation cli-\w+\n",
                        place(cli, "cat", "--friends", "ann").stdout)
    place(cli, "dan", "--friends", "ann", "--priority", "3", "--ticket", "vip")
    lines, entries = cli("queue").stdout.split("\n\n")
    assert [(q["FLEET"], q["ROOM"], q["WAITING"]) for q in rows(lines)] == [("arena", room, "2")]
    assert {e["PLAYER"]: e["POSITION"] for e in rows(entries)} == {"cat": "2", "dan": "1"}
    assert [e["STILL ABOUT"] for e in rows(entries)] == ["-", "-"]  # no seat came free yet
    told = json.loads(cli("queue", "-o", "json").stdout)
    assert [q["entries"] for q in told["lines"]] == [2]
    assert sorted(a["player"] for a in told["waiting"]) == ["cat", "dan"]
    assert json.loads(cli("queue", "--fleet", "default", "-o", "json").stdout) == {
        "lines": [], "waiting": []}
    assert cli("queue", "remove", "dan").stdout == (
        "dan stands in line no more: allocation vip was cancelled\n")
    assert "stands in no line" in cli("queue", "remove", "dan", code=1).stderr
    states = {a["PLAYER"]: a["STATE"] for a in rows(cli("allocations").stdout)}
    assert states == {"ann": "done", "cat": "queued", "dan": "cancelled"}


def test_status_says_who_stands_in_line(world, cli, host):
    place(cli, "ann", "--party", "bob")
    quiet = cli("status").stdout
    assert "in line" not in quiet and "brokers" not in quiet
    place(cli, "cat", "--friends", "ann")
    assert re.search(r"^in line    1 request, waiting for \d+ s$", cli("status").stdout, re.M)
    place(cli, "dan", "--friends", "ann", "--party", "eve")
    assert re.search(r"^in line    2 requests of 3 players, the oldest waiting for \d+ s$",
                     cli("status").stdout, re.M)
    status = json.loads(cli("status", "-o", "json").stdout)
    assert (status["queues"]["entries"], status["queues"]["players"]) == (2, 3)
    assert (status["brokers"], status["results_owed"]) == ([], 0)


def test_waiting_for_a_place(world, cli, host):
    place(cli, "ann", "--party", "bob")
    waiting = subprocess.Popen(
        [binary(), "allocate-player", "--fleet", "arena", "--player", "cat", "--friends", "ann",
         "--wait", *where(world)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    world.wait(lambda: world.api.get("/v1/queues")["items"], "a line")
    seat, = world.api.all("/v1/seats", account="bob")
    world.api.ask("DELETE", f"/v1/seats/{seat['id']}")
    said, meanwhile = waiting.communicate(timeout=20)
    assert meanwhile.startswith(f"cat stands in line at position 1 of room-{seat['room']}, as ")
    assert (waiting.returncode, said.startswith(f"cat: room {seat['room']} at ")) == (0, True), said


def test_parties_and_routes(world, cli, host):
    first, second = place(cli, "ann", "--party", "bob").stdout.splitlines()
    party = re.search(r", party (\d+)$", first)[1]
    assert party == world.api.all("/v1/seats", account="bob")[0]["multi"]
    assert re.fullmatch(r"bob: token \S+, key \S+", second)
    assert {r["ACCOUNT"] for r in rows(cli("party", party).stdout)} == {"ann", "bob"}
    assert cli("party", "999", code=1).stderr == "muster party: There is no party 999.\n"
    routes = rows(cli("routes").stdout)
    assert {r["PLAYER"] for r in routes} == {"ann", "bob"}
    assert len({r["TOKEN"] for r in routes}) == 2


def test_why_an_allocation_stands_as_it_does(world, cli, host):
    Allocator(world).placed("ann", ticket="a ticket")
    said = cli("why", "a ticket").stdout
    assert re.match(r"1 seat was given in room \d+ \(arena, EU, 1 of 2 seats in use\)\.\n", said)
    assert "There is no allocation 'nothing'" in cli("why", "nothing", code=1).stderr
