"""Real agents and real game servers while the leader changes: no room dies, keys stay good, and who
comes with one is let in by whoever leads then."""

import pytest
from agent_proc import Agent, alive
from history import now
from muster_proc import NotReady
from peers import Late
from players import Player, token_of
from real_rooms import ARENA, Rooms, playing

CHANGES = 8


class Cell:
    """A cluster as the World that Rooms know."""

    def __init__(self, cluster):
        self.muster = cluster
        self.cluster = cluster

    @property
    def api(self):
        return self.cluster.api

    def wait(self, look, what, timeout_s):
        deadline = now() + timeout_s
        while now() < deadline:
            try:
                found = look()
            except (OSError, NotReady):
                found = None
            if found:
                return found
        raise Late(f"no {what} within {timeout_s} s")


class CellRooms(Rooms):
    def host(self, name="host-1", **options):
        folder = self.folder / name
        folder.mkdir()
        urls = ",".join("http://%s:%d" % node.http_address for node in self.world.cluster.nodes)
        agent = Agent(folder, urls, token_of(self.world, name, "game_host"), name=name, **options)
        agent.folder = self.folder
        self.agents.append(agent.start())
        self.wait(lambda: self.host_state(name) == "well", "heartbeat of the host")
        return agent


@pytest.fixture
def rooms(postgres, make_cluster, tmp_path):
    made = CellRooms(lambda **options: Cell(make_cluster(postgres, **options)), tmp_path,
                     binary=ARENA, max_players=4, reserve_s=600)
    made.host()
    yield made
    made.close()


def change_leader(cluster, n):
    leader = cluster.leader
    began = now()
    if n % 2:
        assert cluster.step_down(leader).status == 200
    else:
        leader.kill9()
    cluster.await_leader(but=leader)
    return leader, began


def test_rooms_play_on_while_the_leader_changes(rooms, gate):
    cluster = rooms.world.cluster
    placed = rooms.create("ann")
    pid = rooms.pid(placed)
    violations, times_s = [], []
    with playing(placed) as lines:
        assert lines.readline() == "welcome ann\n"
        for n in range(CHANGES):
            name = f"p{n}"
            given = Player(rooms.world, name).enter(placed["id"])
            leader, began = change_leader(cluster, n)
            with playing(given) as his:
                said = his.readline()
            times_s.append(now() - began)
            if said != f"welcome {name}\n":
                violations.append(f"{name} came with his key after change {n} and heard {said!r}")
            if not alive(pid):
                violations.append(f"the room died at change {n}")
            if not leader.running:
                leader.start()
            leader.await_word("standby")
            cluster.await_standbys()
            rooms.wait(lambda who=name: rooms.seats(who) == [], "end of the seat of who left")
    room = rooms.room(placed)
    if room["end_reason"] or int(room["server"]) != placed["server"]:
        violations.append(f"the room is {room}")
    # The host is of use still: a room that is asked for now is started there.
    other = rooms.create("bob")
    with playing(other) as lines:
        assert lines.readline() == "welcome bob\n"
    assert alive(pid) and rooms.pid(placed) == pid
    gate.write("leader changes under real rooms, until a key is taken", CHANGES, violations, times_s)
