"""Everybody who speaks to Muster, through real failovers: two nodes on one PostgreSQL, of which the
leader is killed with -9 again and again, or steps down, while game servers, a chat server, players, an
agent with rooms and commands go on. No match is lost, what is in flight is answered once."""

import contextlib
import hashlib
import json
import subprocess
import threading
import time

import players
import pytest
from agent_proc import MARK, Agent
from muster_proc import binary, run
from nodes import Cell
from postgres import Postgres
from real_rooms import ARENA, RATES, playing

FAILOVERS = 3
LEASE_MS = 4000
SERVERS = 3


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as server:
        yield server


@pytest.fixture
def cell(postgres, tmp_path, request):
    name = "f" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    fleet = {"binary": str(ARENA), "status_period_s": 3600,
             "env": [{"key": MARK, "value": str(tmp_path)}]}
    config = {"default_region": "EU", "rates": RATES,
              "fleets": players.fleets(**fleet)}
    made = Cell(tmp_path, postgres.url(), name, config=config, lease_ms=LEASE_MS)
    yield made
    made.stop()


class Pair:
    """Who leads, who stands by, and how they change places."""

    def __init__(self, cell):
        self.leader, self.standby = cell.pair()

    @property
    def api(self):
        return self.leader.api

    @property
    def muster(self):
        return self.leader

    def all(self, what):
        nodes = sorted((self.leader, self.standby), key=lambda node: node.name)
        return ",".join("%s:%d" % getattr(node, f"{what}_address") for node in nodes)

    @property
    def urls(self):
        return ",".join(f"http://{address}" for address in self.all("http").split(","))

    def change(self, kill):
        """Returns when the other leads; since when is in led_at."""
        self.leader, self.standby = self.standby, self.leader
        since = len(self.leader.said)
        if kill:
            self.standby.kill9()
        else:
            assert self.standby.step_down()[0] == 200
        self.leader.await_leading(since)
        return self.leader.led_at

    def mend(self):
        """… and the first stands by, and could lead again."""
        if not self.standby.running:
            self.standby.start_on_same_ports()
        self.standby.await_ready_to_lead()
        self.leader.await_standby_ready()


@pytest.fixture
def pair(cell):
    return Pair(cell)


class Talker:
    """A command that runs along; its lines are kept with the time at which they came."""

    def __init__(self, *arguments):
        self.lines = []
        self.heard = threading.Condition()
        self.process = subprocess.Popen([binary(), *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def listen(self):
        for line in self.process.stdout:
            with self.heard:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.heard.notify_all()
        with self.heard:
            self.heard.notify_all()

    def wait(self, words, since=0, timeout_s=30, n=1):
        """When the n-th line with these words came after that time."""
        def found():
            times = [t for t, line in self.lines if t >= since and words in line]
            return times[n - 1] if len(times) >= n else None
        with self.heard:
            assert self.heard.wait_for(found, timeout_s), (words, self.lines[-5:])
            return found()

    def objects(self):
        return [json.loads(line) for _, line in self.lines if line.startswith("{")]


def game_server(pair, number):
    return Talker("game-server", "--region", "EU", "--max", 200, "--port", 41000 + number, "--server",
                  pair.all("server"))


@pytest.mark.parametrize("kill", [True, False], ids=["kill-9", "step-down"])
def test_chat_servers_and_game_servers(pair, kill):
    """A stream of requests over all of it. How long each of them takes is bounded by the time in which
    nobody leads; the game servers are back soon after."""
    count = 400
    with contextlib.ExitStack() as stack:
        games = [stack.enter_context(game_server(pair, n)) for n in range(SERVERS)]
        for game in games:
            game.wait("registered")
        asker = stack.enter_context(Talker(
            "allocate", "--lobby", 1000, "--region", "EU", "--json", "--every", 40, "--count", count,
            "--manager", pair.all("manager")))
        asker.wait('"ok":true')
        back = []
        for _ in range(FAILOVERS):
            led = pair.change(kill)
            back += [game.wait("registered", since=led - 0.5) - led for game in games]
            pair.mend()
        asker.process.wait(60)
        answers = asker.objects()
        assert sorted(a["lobby"] for a in answers) == list(range(1000, 1000 + count))
        # A chat server may be back sooner than the first game server; that is said, and is all that is.
        refused = [a for a in answers if not a["ok"]]
        assert {a["error"] for a in refused} <= {"No servers available"}
        told = {a["lobby"]: a["server"] for a in answers if a["ok"]}
        assert len({a["token"] for a in answers if a["ok"]}) == len(told)
        sessions = pair.api.all("/v1/sessions")
        assert {s["lobby"]: int(s["server"]) for s in sessions} == told
        assert {s["state"] for s in sessions} == {"open"}
        assert not any("cancelled" in line for game in games for _, line in game.lines)
        print("game servers back after", sorted(f"{s:.2f}" for s in back), "refused", len(refused))
        assert max(back) < 4  # 1.6 s, and a machine that is busy


class Host:
    """An agent beside both nodes, and rooms on it."""

    def __init__(self, pair, folder):
        self.pair = pair
        token = players.token_of(pair, "host-1", "game_host")
        self.agent = Agent(folder, pair.urls, token, **{"heartbeat-ms": 5000})
        self.agent.start()

    def passed_over(self):
        return [h["passed_over"] for h in self.pair.api.all("/v1/hosts")]

    def await_heard(self, timeout_s=15):
        """When the leader would place rooms there."""
        deadline = time.monotonic() + timeout_s
        while self.passed_over() != [None]:
            assert time.monotonic() < deadline, (self.passed_over(), self.agent.log())
            time.sleep(0.02)
        return time.monotonic()

    def create(self, account):
        return players.Player(self.pair, account).create({}, key=account)


def say(lines, text):
    lines.write(text + "\n")
    lines.flush()


def hears(lines, words):
    for line in lines:
        if words in line:
            return
    raise AssertionError(f"the room ended before {words}")


def test_agents_and_rooms(pair, tmp_path):
    """Those who play go on playing; who leaves and joins while nobody leads is let in by the next
    leader; a new room can be had soon after."""
    folder = tmp_path / "host"
    folder.mkdir()
    host = Host(pair, folder)
    host.agent.folder = tmp_path
    try:
        host.await_heard()
        placed = [host.create(f"ann{n}") for n in range(3)]
        servers = {p["id"]: pair.api.get(f"/v1/rooms/{p['id']}")["server"] for p in placed}
        late = []
        with contextlib.ExitStack() as stack:
            rooms = [stack.enter_context(playing(p)) for p in placed]
            for lines in rooms:
                hears(lines, "welcome")
            for n in range(FAILOVERS):
                joiner = players.Player(pair, f"joe{n}").enter(placed[0]["id"])
                change = threading.Thread(target=pair.change, args=(n % 2 == 0,))
                change.start()
                with playing(joiner) as lines:
                    hears(lines, "welcome")
                change.join()
                late.append(host.await_heard() - pair.leader.led_at)
                host.create(f"eve{n}")
                for lines in rooms:
                    say(lines, f"still here {n}")
                    hears(lines, f"still here {n}")
                pair.mend()
        assert {p["id"]: pair.api.get(f"/v1/rooms/{p['id']}")["server"] for p in placed} == servers
        print("the host is used again after", [f"{s:.2f}" for s in late])
        assert max(late) < 3  # a second, and a machine that is busy
    finally:
        host.agent.__exit__()


def test_players_and_their_lobbies(pair):
    """A matchmaker with players of its own: its books are right at the end."""
    with contextlib.ExitStack() as stack:
        games = [stack.enter_context(game_server(pair, n)) for n in range(SERVERS)]
        for game in games:
            game.wait("registered")
        maker = stack.enter_context(Talker(
            "matchmaker", "--players", 16, "--team", 2, "--every", 300, "--for", "25s", "--settle", "60s",
            "--client", pair.all("client"), "--url", pair.urls, "--data", pair.leader.data))
        maker.wait("started")
        for kill in (True, False):
            maker.wait("started", since=pair.change(kill))
            pair.mend()
        assert maker.process.wait(120) == 0, "\n".join(line for _, line in maker.lines[-30:])


def test_commands_follow(pair):
    """Events without a gap, changes done once, through every failover."""
    data = pair.leader.data
    with Talker("events", "--json", "--from", "0", "--kinds", "audit", "--url", pair.urls, "--data",
                data) as events:
        for n in range(FAILOVERS):
            changes = [threading.Thread(target=run, args=(
                "token", "enrol", "--role", "server", "--fleet", "default", "--name", f"n{n}-{i}",
                "--url", pair.urls, "--data", str(data))) for i in range(4)]
            for change in changes:
                change.start()
            pair.change(n % 2 == 0)
            for change in changes:
                change.join()
            pair.mend()
        names = [t["name"] for t in pair.api.all("/v1/tokens")]
        assert sorted(names) == sorted(f"n{n}-{i}" for n in range(FAILOVERS) for i in range(4))
        audits = [a for a in pair.api.all("/v1/audit") if a["action"] == "enrol"]
        assert len(audits) == 4 * FAILOVERS
        events.wait('"action":"enrol"', n=4 * FAILOVERS)
        ids = [e["id"] for e in events.objects()]
        assert len(set(ids)) == len(ids)
