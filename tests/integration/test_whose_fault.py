"""Whose fault a failed start is: two fleets on one host, with real agents and game servers. Whatever
one of them does wrong, the other goes on."""

import signal
import threading
import time

import pytest
from real_rooms import RATES, Rooms

HANGS = {"arguments": ["--no-inited"], "spawn_timeout_s": 1}


@pytest.fixture
def make_rooms(make_world, tmp_path):
    """Rooms with one host, unless the test starts its own."""
    made = []

    def make(hosts=1, **options):
        rooms = Rooms(make_world, tmp_path, **options)
        made.append(rooms)
        for n in range(hosts):
            rooms.host(f"host-{n + 1}")
        return rooms

    yield make
    for rooms in made:
        rooms.close()


def host(rooms, name="host-1"):
    found, = [h for h in rooms.api.all("/v1/hosts") if h["name"] == name]
    return found


def the_other_game_starts(rooms, account="else"):
    assert rooms.host_state() == "well", host(rooms)
    placed = rooms.create(account)
    assert rooms.room(placed)["state"] == "open"


class Asking:
    """So many players who each create a room, at once, and wait."""

    def __init__(self, rooms, n, game="arena"):
        self.players = [rooms.player(f"asks-{game}-{i}", game) for i in range(n)]
        self.answers = [None] * n
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(n)]
        for thread in self.threads:
            thread.start()
        rooms.wait(lambda: self.under_way(rooms) >= n, "rooms that start")

    @staticmethod
    def under_way(rooms):
        return sum(r["state"] == "starting" for r in rooms.api.all("/v1/rooms"))

    def ask(self, i):
        player = self.players[i]
        self.answers[i] = player.ask("POST", f"/create/{player.game}", data={}, timeout_s=60)

    def come_back(self):
        for thread in self.threads:
            thread.join(60)
        return self.answers


# ── the build ─────────────────────────────────────────────────────────────────────────────────


def test_a_build_that_is_never_ready_closes_no_other_game(make_rooms):
    rooms = make_rooms(others={"hangs": HANGS})
    for n in range(3):
        answer = rooms.player(f"p{n}", "hangs").ask("POST", "/create/hangs/main/1.0", data={})
        assert answer.status in (503, 504), answer
        the_other_game_starts(rooms, f"else-{n}")
    assert answer.status == 503
    assert "Build 1.0 of hangs failed to start on 1 host" in answer.error["message"], answer.error
    assert "next try in" in answer.error["message"]
    assert 0 < int(answer.head["retry-after"]) <= 10


def test_a_fleet_without_a_deployment_closes_no_other_game(make_rooms):
    rooms = make_rooms(others={"empty": {"binary": "bin/server"}})
    for n in range(3):
        answer = rooms.player("ann", "empty").cannot(503, "spawn_failed", "create")
        assert "no deployment" in answer.error["message"], "it is told what is wrong, each time"
        the_other_game_starts(rooms, f"else-{n}")


def test_a_build_that_fails_everywhere_is_tried_without_a_player(make_rooms, tmp_path):
    """Two hosts, and a file that is missing until somebody mends it."""
    broken = tmp_path / "broken"
    broken.touch()
    rooms = make_rooms(hosts=2, backoff_ms=1500, world={"host_backoff_max_ms": 6000},
                       others={"exits": {"arguments": ["--exit-while", str(broken)]}})
    answer = rooms.player("ann", "exits").cannot(503, "spawn_failed", "create")
    assert "status 3" in answer.error["message"]
    answer = rooms.player("ben", "exits").cannot(503, "no_host", "create")
    assert "Build 1.0 of exits failed to start on 2 hosts" in answer.error["message"]
    assert answer.error["message"].endswith("the shader cache is missing."), answer.error
    version, = [v for v in rooms.api.all("/v1/versions") if v["fleet"] == "exits" and v["id"]]
    assert version["quarantined"] and "the shader cache is missing" in version["reason"], version
    codes = [p["code"] for p in rooms.api.get("/v1/health")["findings"]]
    assert "version_quarantined" in codes, codes
    the_other_game_starts(rooms)

    def trials():
        return [r for r in rooms.api.all("/v1/rooms") if r["fleet"] == "exits" and not r["ticket"]]

    rooms.wait(trials, "a trial that nobody asked for")
    broken.unlink()
    rooms.wait(lambda: any(r["state"] == "open" for r in trials()), "a trial that works")
    assert rooms.create("ann", game="exits")["server"]
    version, = [v for v in rooms.api.all("/v1/versions") if v["fleet"] == "exits" and v["id"]]
    assert not version["quarantined"], version


# ── the player's settings ─────────────────────────────────────────────────────────────────────


def test_one_players_settings_take_the_game_from_nobody(make_rooms):
    rooms = make_rooms(spawn_timeout_s=1)
    for n in range(2):
        data = {"settings": {"map": f"hangs-{n}"}}
        rooms.player("eve").cannot(504, "spawn_timeout", "create", data=data)
        the_other_game_starts(rooms, f"else-{n}")


def test_the_same_settings_from_two_say_nothing_of_the_build(make_rooms):
    rooms = make_rooms(spawn_timeout_s=1)
    for account in ("eve", "mal"):
        data = {"settings": {"map": "hangs"}}
        rooms.player(account).cannot(504, "spawn_timeout", "create", data=data)
    the_other_game_starts(rooms)


def test_different_settings_from_two_are_the_builds_fault(make_rooms):
    rooms = make_rooms(spawn_timeout_s=1)
    for account in ("ann", "ben"):
        data = {"settings": {"map": f"hangs-{account}"}}
        rooms.player(account).cannot(504, "spawn_timeout", "create", data=data)
    answer = rooms.player("cid").cannot(503, "no_host", "create")
    assert "Build 1.0 of arena failed to start on 1 host" in answer.error["message"], answer


# ── the host ──────────────────────────────────────────────────────────────────────────────────


def test_one_outage_of_an_agent_counts_once(make_rooms):
    """Eight requests are on their way to it when it is killed."""
    rooms = make_rooms(world={"host_ms": 60000})
    rooms.agent.process.send_signal(signal.SIGSTOP)
    asking = Asking(rooms, 8)
    rooms.agent.kill9()
    for answer in asking.come_back():
        assert (answer.status, answer.error["code"]) == (503, "spawn_failed"), answer
        assert "cannot be reached" in answer.error["message"]
    seen = host(rooms)
    assert seen["passed_over"] == "failing", seen
    assert seen["backoff_left_ms"] <= 10_000
    answer = rooms.player("ann").cannot(503, "no_host", "create")
    assert "cannot be reached" in answer.error["message"], answer
    rooms.agent.start()
    rooms.wait(lambda: rooms.host_state() == "well", "the first heartbeat")
    the_other_game_starts(rooms)


def test_a_host_that_stalled_is_used_as_soon_as_it_is_back(make_rooms):
    """Five rooms are on their way to it."""
    rooms = make_rooms(world={"host_ms": 2000, "host_lost_ms": 600_000})
    rooms.agent.process.send_signal(signal.SIGSTOP)
    asking = Asking(rooms, 5)
    for answer in asking.come_back():
        assert (answer.status, answer.error["code"]) == (503, "spawn_failed"), answer
    assert rooms.host_state() == "silent"
    rooms.agent.process.send_signal(signal.SIGCONT)
    rooms.wait(lambda: rooms.host_state() != "silent", "a heartbeat")
    the_other_game_starts(rooms)


# ── Muster itself ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.embedded("a node of a cell that stands still for so long leads no more, and answers nobody")
def test_the_time_in_which_muster_stood_still_is_nobodys(make_rooms):
    rooms = make_rooms(spawn_timeout_s=3, world={"host_ms": 2000, "place_ms": 3000},
                       others={"slow": {"arguments": ["--delay", "1"]}})
    asking = Asking(rooms, 3, "slow")
    rooms.wait(lambda: len(rooms.agent.pids()) >= 6, "game servers and their shims")
    muster = rooms.world.muster.process
    muster.send_signal(signal.SIGSTOP)
    try:
        time.sleep(14)  # longer than any deadline, place_ms and what is added to it included
    finally:
        muster.send_signal(signal.SIGCONT)
    answers = asking.come_back()
    assert [a.status for a in answers] == [200] * 3, answers
    assert host(rooms)["passed_over"] is None, host(rooms)
    the_other_game_starts(rooms)


# ── the player's rate ─────────────────────────────────────────────────────────────────────────


def test_what_no_game_server_ran_for_is_given_back(make_rooms):
    rates = {**RATES, "create": [{"count": 2, "seconds": 600}]}
    rooms = make_rooms(world={"rates": rates}, others={
        "empty": {"binary": "bin/server"}, "hangs": HANGS})
    for _ in range(5):
        rooms.player("ann", "empty").cannot(503, "spawn_failed", "create")
    rooms.create("ann")
    rooms.player("ann", "empty").cannot(503, "spawn_failed", "create")  # the sixth in a minute
    rooms.player("ann").cannot(429, "rate_limited", "create")
    rooms.player("ben", "hangs").cannot(504, "spawn_timeout", "create")
    rooms.create("ben")
    rooms.player("ben").cannot(429, "rate_limited", "create")
