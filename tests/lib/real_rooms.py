"""A control plane, its hosts and their game servers, all of them real processes."""

import contextlib
import itertools
import json
import socket
from pathlib import Path

import players
from agent_proc import GAME, MARK, Agent
from muster_proc import binary

ARENA = Path(binary()).with_name("arena")
PROBE = Path(__file__).with_name("probe_game.py")
RATES = {verb: [{"count": 100000, "seconds": 60}] for verb in ("create", "join")}
PATIENCE_S = 30.0


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[1])


class Rooms:
    """fleet: the arena's, changed so. Others are games beside it: their names and changes.
    backoff_ms: the first pause after a failed start; None = as long as it really is."""

    def __init__(self, make_world, folder, binary=GAME, others=None, world=None, backoff_ms=None,
                 **fleet):
        self.folder = Path(folder)
        self.agents = []
        self.numbers = itertools.count(100)
        mark = {"env": [{"key": MARK, "value": str(folder)}]}
        first = {"binary": str(binary), "status_period_s": 3600, **mark, **fleet}
        list_of = players.fleets(**first)
        for name, changes in (others or {}).items():
            list_of.append({**players.ARENA, **first, "name": name, "game": name, **changes})
        pause = {} if backoff_ms is None else {
            "host_backoff_ms": backoff_ms, "host_backoff_max_ms": 2 * backoff_ms}
        self.world = make_world(**{"default_region": "EU", "rates": RATES, "fleets": list_of,
                                   **pause, **(world or {})})
        self.api = self.world.api

    @property
    def agent(self):
        return self.agents[0]

    def host(self, name="host-1", **options):
        """One more, that has been heard of."""
        folder = self.folder / name
        folder.mkdir()
        agent = Agent(folder, "http://%s:%d" % self.world.muster.http_address,
                      players.token_of(self.world, name, "game_host"), name=name, **options)
        agent.folder = self.folder  # its servers have that in their environment
        self.agents.append(agent.start())
        self.wait(lambda: self.host_state(name) == "well", "heartbeat of the host")
        return agent

    def host_state(self, name="host-1"):
        found = [h["passed_over"] or "well" for h in self.api.all("/v1/hosts") if h["name"] == name]
        return found[0] if found else None

    def close(self):
        for agent in self.agents:
            agent.__exit__()

    def wait(self, look, what):
        return self.world.wait(look, what, timeout_s=PATIENCE_S)

    # ── players ──────────────────────────────────────────────────────────────────────────────

    def player(self, account, game="arena"):
        return players.Player(self.world, account, game=f"{game}/main/1.0")

    def create(self, account, settings=None, game="arena", **options):
        """A room that he has a seat in: what he was told, with the number of its server."""
        placed = self.player(account, game).create(settings, **options)
        placed["server"] = int(self.room(placed)["server"])
        return placed

    def room(self, placed):
        return self.api.get(f"/v1/rooms/{placed['id']}")

    def ended(self, placed, within_s=PATIENCE_S):
        return self.world.wait(lambda: self.room(placed)["exit"] and self.room(placed),
                               "end of a room", timeout_s=within_s)

    def seats(self, account):
        return self.player(account).seats()

    # ── game servers ─────────────────────────────────────────────────────────────────────────

    def pid(self, placed):
        return self.agent.show(placed["server"])["pid"]

    def call(self, placed, method, **params):
        """What its game server, which must be GAME, was answered."""
        number = next(self.numbers)
        with self.agent.follow(placed["server"], lines=0) as log:
            self.agent.say(placed["server"], {
                "jsonrpc": "2.0", "method": method, "params": params, "id": number})
            log.answer_to(number)
        return self.heard(placed, lambda m: m.get("id") == number and "method" not in m)

    def heard(self, placed, condition):
        """From the file on the host: what the agent hands out has no keys and tokens in it."""
        log = self.agent.data / "servers" / str(placed["server"]) / "log"
        messages = (json.loads(line[4:]) for line in log.read_text().splitlines()
                    if line.startswith("got "))
        return next(filter(condition, messages))

    def code(self, placed, method, **params):
        """0 or that of the error."""
        return self.call(placed, method, **params).get("error", {"code": 0})["code"]

    def joined(self, placed, key=None):
        return self.call(placed, "joined", key=key or placed["key"])["result"]

    def first_line(self, placed):
        """What GAME and PROBE say of themselves."""
        with self.agent.follow(placed["server"]) as log:
            return json.loads(log.line())

    def tell(self, placed, line, until):
        """PROBE is told to do that; what it says of it."""
        with self.agent.follow(placed["server"], lines=0) as log:
            self.agent.say(placed["server"], line)
            return log.until(lambda said: until in said and json.loads(said))


@contextlib.contextmanager
def playing(placed):
    """A connection to the arena, as a player who has shown his key; lines of text."""
    where = (placed["location"]["host"], placed["location"]["ports"][0])
    with socket.create_connection(where, PATIENCE_S) as connection:
        with connection.makefile("rw") as lines:
            lines.write(placed["key"] + "\n")
            lines.flush()
            yield lines
