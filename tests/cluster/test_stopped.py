"""A leader that stands still for longer than its lease and then goes on: it has been replaced, and
must notice before it writes or says anything."""

import json
import os
import socket
import threading
import time

import pytest
from history import now

STOPS_S = [float(s) for s in os.environ.get("MUSTER_STOPS_S", "5 5 5 5").split()]
SEED = int(os.environ.get("MUSTER_CLUSTER_SEED", "1"))


class Asker:
    """Requests that reach a node while it stands still, and what it says to them later."""

    def __init__(self, node, count=6):
        self.node = node
        self.sockets = []
        token = node.token()
        for n in range(count):
            body = json.dumps({"ticketId": f"late-{now()}-{n}", "fleet": "arena",
                               "playerId": f"late-{now()}-{n}"}) if n % 2 else ""
            line = "POST /v1/allocations" if n % 2 else "GET /v1/servers"
            s = socket.create_connection(node.http_address, 5)
            s.sendall((f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                       f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                       f"Connection: close\r\n\r\n{body}").encode())
            self.sockets.append(s)

    def answers(self):
        """The status of each; None for one that was closed without."""
        found = []
        for s in self.sockets:
            s.settimeout(10)
            try:
                first = s.recv(1 << 16)
            except ConnectionResetError:
                first = b""
            found.append(int(first.split()[1]) if first else None)
            s.close()
        return found


def stop_and_go_on(cluster, bench, stop_s):
    leader = cluster.leader
    bench.await_more(10)
    began = now()
    leader.pause()
    asker = Asker(leader)
    leads = cluster.await_leader(but=leader)
    served_s = bench.first_success(began, leads.name) - began
    time.sleep(max(0.0, stop_s - (now() - began)))
    bench.await_more(5)
    leader.resume()
    statuses = asker.answers()
    leader.await_word("standby")
    found = [f"a node that was stopped for {stop_s} s answered with {status}"
             for status in statuses if status not in (None, 307, 503)]
    return served_s, found


@pytest.mark.parametrize("stops_s", [STOPS_S, [45.0]], ids=["again and again", "45 s"])
def test_a_leader_that_was_stopped_says_and_writes_nothing(postgres, make_cluster, make_bench, gate,
                                                          stops_s):
    if stops_s == [45.0] and "MUSTER_STOPS_S" in os.environ:
        pytest.skip("MUSTER_STOPS_S says how long")
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED, loyal=2)
    times_s, violations = [], []
    for stop_s in stops_s:
        served_s, found = stop_and_go_on(cluster, bench, stop_s)
        times_s.append(served_s)
        violations += found
        cluster.await_standbys()
    gate.write(f"leader stopped and continued, for {stops_s[0]:g} s", len(stops_s),
               violations + bench.violations(bench.witness), times_s)


def test_a_leader_that_was_stopped_for_less_than_its_lease_goes_on(postgres, make_cluster, make_bench,
                                                                  gate):
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED, loyal=1)
    leader = cluster.leader
    for _ in range(5):
        bench.await_more(5)
        leader.pause()
        time.sleep(0.5)
        leader.resume()
        bench.await_more(5)
    assert cluster.leader is leader
    gate.write("leader stopped for less than its lease", 5, bench.violations(bench.witness))


def test_a_standby_that_is_stopped_disturbs_nobody(postgres, make_cluster, make_bench, gate):
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED)
    leader, standby = cluster.leader, cluster.standby
    standby.pause()
    ended = threading.Event()
    slowest = [0.0]

    def watch():
        before = now()
        while not ended.is_set():
            found = bench.record.successes(before)
            if found:
                slowest[0] = max(slowest[0], found[0].at - before)
                before = found[-1].at
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(6)
    ended.set()
    watcher.join()
    standby.resume()
    cluster.await_standbys()
    assert cluster.leader is leader
    assert slowest[0] < 1.0, f"nobody was served for {slowest[0]:.3f} s"
    gate.write("standby stopped and continued", 1, bench.violations(bench.witness))
