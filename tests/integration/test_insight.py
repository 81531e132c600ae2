"""What tells an operator how things go: trends, and what is wrong, in words."""

import shlex
import signal
import subprocess
from datetime import datetime

import chat
import pytest
from fake_host import FakeHost
from gate import Gate
from muster_proc import binary


def at(point):
    return datetime.fromisoformat(point["at"].replace("Z", "+00:00")).timestamp()


def trends(world, **query):
    return world.api.get("/v1/trends", **query)


# --- trends


def test_trends_show_what_happened_second_by_second(world):
    world.server(capacity=5)
    asker = world.chat()
    for lobby in (1, 2, 3):
        asker.allocate(lobby)
    asker.refuse(4, region=chat.EU + 5)

    def counted():
        points = trends(world)["points"]
        return points if sum(p["allocations"] for p in points) == 3 else None

    points = world.wait(counted, "three allocations")
    busy = next(p for p in points if p["allocations"])
    assert 0 < busy["p50_ms"] <= busy["p95_ms"] <= busy["p99_ms"]
    assert busy["commit_p99_ms"] > 0
    last = world.wait(lambda: trends(world, limit=1)["points"][0]["sessions"] == 3
                      and trends(world, limit=1)["points"][0], "three matches")
    assert last["servers"] == 1 and last["rooms"] == last["queue"] == last["oldest_wait_ms"] == 0
    assert trends(world)["step_ms"] == 1000
    day = trends(world, window="day")
    assert day["step_ms"] == 60000
    # A minute may have ended meanwhile, and then it has what happened in it.
    assert [p["allocations"] for p in day["points"]] in ([], [0], [1], [2], [3])


@pytest.mark.embedded
def test_a_stop_is_a_gap_in_the_trends(world):
    world.wait(lambda: trends(world)["points"], "a point")
    world.muster.signal(signal.SIGSTOP)
    world.elapse(3.5)
    world.muster.signal(signal.SIGCONT)

    def gaps():
        times = [at(p) for p in trends(world)["points"]]
        return [b - a for a, b in zip(times, times[1:]) if b - a > 2.5]

    assert len(world.wait(gaps, "a gap")) == 1


def test_trends_refuse_what_they_do_not_know(world):
    world.api.refused("GET", "/v1/trends", 400, "bad_argument", query={"window": "year"})
    world.api.refused("GET", "/v1/trends", 400, "bad_argument", query={"limit": "0"})


# --- what is wrong


def health(world):
    return world.api.get("/v1/health")


def finding(world, code):
    return next((f for f in health(world)["findings"] if f["code"] == code), None)


@pytest.mark.embedded
def test_a_fresh_muster_is_healthy_and_says_what_to_do_first(make_world):
    world = make_world(fleets=[{"name": "default"}, ROOMS])
    report = health(world)
    assert (report["status"], report["findings"]) == ("healthy", [])
    assert "nothing has come yet" in report["sentence"]
    assert [h["code"] for h in report["hints"]] == ["no_servers_yet", "no_hosts_yet"]
    assert world.api.get("/v1/status")["health"]["hints"] == report["hints"]
    for hint in report["hints"]:
        runs(world, hint["command"])


ROOMS = {"name": "arena", "provider": "agent", "game": "arena", "server": "main", "max_players": 8,
         "binary": "game", "versions": [{"name": "1.0"}]}


def runs(world, command):
    """A command that is advised can be typed as it stands."""
    where = ["--url", "http://{}:{}".format(*world.muster.http_address), "--data", world.muster.data]
    result = subprocess.run([binary(), *shlex.split(command)[1:], *where], capture_output=True,
                            text=True, timeout=20)
    assert result.returncode == 0, (command, result.stderr)
    return result.stdout


@pytest.mark.embedded
def test_a_full_fleet_is_broken_until_there_is_room(world):
    world.server(capacity=1)
    assert health(world)["sentence"].startswith("All is well: 1 game server registered")
    world.chat().allocate(1)
    full = world.wait(lambda: finding(world, "fleet_full"), "a full fleet")
    assert full["sentence"] == "No server of default can take a match: 1 full."
    assert health(world)["status"] == "broken"
    assert "full" in runs(world, full["command"])
    shown = runs(world, "muster status")
    assert shown.startswith("critical: No server of default can take a match: 1 full.\n  Start more")
    world.server(capacity=1, port=21236)
    assert health(world)["status"] == "healthy"


@pytest.mark.embedded
def test_a_silent_host_is_named_with_how_long(make_world):
    world = make_world(fleets=[{"name": "default"}, ROOMS], timeouts={"host_ms": 2000})
    with FakeHost(world.muster, "eu-1") as host, FakeHost(world.muster, "eu-2"):
        assert health(world)["status"] == "healthy"
        removal = world.api.get("/v1/hosts/1")["removal"]
        assert removal == {"now": True, "sentence": "Yes: nothing runs on it. Disable it first, "
                           "so that nothing is started there meanwhile."}
        assert removal["sentence"] in " ".join(runs(world, "muster host 1").split())
        host.beating = False
        silent = world.wait(lambda: finding(world, "hosts_silent"), "a silent host")
        assert silent["sentence"].startswith("1 of 2 hosts in EU is silent: eu-1 for ")
        assert silent["page"] == "#/hosts/1" and "eu-1" in runs(world, silent["command"])
        host.beating = True
        world.wait(lambda: health(world)["status"] == "healthy", "its return")


@pytest.mark.embedded
def test_health_and_trends_are_answered_while_the_disk_hangs(gate_library, make_world, tmp_path):
    gate = Gate(gate_library, tmp_path / "gated")
    world = make_world(env=gate.env)
    api = world.api
    gate.close()
    try:
        world.unregistered_server().say_hello()
        world.wait(lambda: gate.somebody_waits, "a commit that waits for the disk")
        hangs = world.wait(lambda: finding(world, "store_hangs"), "word about the disk")
        assert "a commit has been under way for" in hangs["sentence"]
        assert api.get("/v1/trends")["step_ms"] == 1000
    finally:
        gate.open()
    world.wait(lambda: health(world)["status"] == "healthy", "a disk that works again")


def test_refusals_that_are_nobodys_fault_but_ours_are_told(world):
    asker = world.chat()
    for lobby in range(1, 8):
        asker.refuse(lobby)
    refused = world.wait(lambda: finding(world, "refusals"), "word about refusals")
    assert refused["sentence"] == (
        "7 of 7 requests of the last minute could not be served (100 %), mostly because: "
        "No servers available (7 times).")
    assert refused["severity"] == "critical"


def test_health_needs_a_token(world):
    for path in ("/v1/health", "/v1/trends"):
        world.api.with_token(None).refused("GET", path, 401, "no_access_token")
