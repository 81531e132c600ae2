"""The leader goes, in every way it can, and another node goes on: nothing answered is lost, nothing
is sold twice, and only the leader speaks. MUSTER_FAILOVERS says how often; a seed how it went."""

import os
import random

import pytest
from history import now

FAILOVERS = int(os.environ.get("MUSTER_FAILOVERS", "50"))
SEED = int(os.environ.get("MUSTER_CLUSTER_SEED", "1"))
DEAD_S = 3.0  # until somebody is served again, when the leader dies …
CLEAN_S = 1.0  # … and when it steps down


def fail_over(cluster, bench, chance, end):
    """How long it took until the next leader served somebody."""
    bench.await_more(chance.randint(1, 60))
    leader = cluster.leader
    began = now()
    end(leader)
    leads = cluster.await_leader(but=leader)
    return bench.first_success(began, leads.name) - began


def test_kill_9_of_the_leader_under_load(postgres, make_cluster, make_bench, gate):
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED)
    chance = random.Random(SEED)
    times_s = []
    for _ in range(FAILOVERS):
        leader = cluster.leader
        times_s.append(fail_over(cluster, bench, chance, lambda node: node.kill9()))
        leader.start()
        cluster.await_standbys()
    gate.write("kill -9 of the leader under load", FAILOVERS, bench.violations(bench.witness), times_s,
               **bench.figures())
    assert max(times_s) <= DEAD_S, times_s


def test_step_down_under_load(postgres, make_cluster, make_bench, gate):
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED)
    chance = random.Random(SEED)
    times_s = []

    def step_down(leader):
        answer = cluster.step_down(leader)
        assert answer.status == 200, answer

    for _ in range(FAILOVERS):
        leader = cluster.leader
        times_s.append(fail_over(cluster, bench, chance, step_down))
        leader.await_word("standby")
        cluster.await_standbys()
    gate.write("step-down under load", FAILOVERS, bench.violations(bench.witness), times_s,
               **bench.figures())
    assert max(times_s) <= CLEAN_S, times_s


def test_a_leader_that_is_told_to_end_hands_over(postgres, make_cluster, make_bench, gate):
    """SIGTERM, as a package upgrade does it: as clean as a step-down."""
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED)
    chance = random.Random(SEED)
    times_s = []

    def end(leader):
        assert leader.term() == 0, leader.log()[-3000:]

    for _ in range(max(4, FAILOVERS // 10)):
        leader = cluster.leader
        times_s.append(fail_over(cluster, bench, chance, end))
        leader.start()
        cluster.await_standbys()
    gate.write("SIGTERM of the leader under load", len(times_s), bench.violations(bench.witness),
               times_s)
    assert max(times_s) <= CLEAN_S + 0.5, times_s


def test_both_nodes_started_at_once(postgres, make_cluster, make_bench, gate):
    """On a database that is empty, and again on one that is not: one leads, one follows."""
    cluster = make_cluster(postgres, start=False)
    bench = None
    violations = []
    for n in range(5):
        for node in cluster.nodes:
            node.begin()
        for node in cluster.nodes:
            node.await_word("ready", "standby")
        leader = cluster.await_leader()
        other, = cluster.others(leader)
        other.await_word("standby")
        cluster.await_standbys()
        if (leader.leads(), other.leads()) != (True, False):
            violations.append(f"start {n}: {leader.leads()}, {other.leads()}")
        bench = bench or make_bench(cluster, postgres, seed=SEED)
        bench.await_more(20)
        if n < 4:
            for node in cluster.nodes:
                node.kill9()
    gate.write("both nodes started at once", 5, violations + bench.violations(bench.witness))


FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


@pytest.mark.parametrize("off", ["+1h", "-1h"])
def test_the_clock_of_one_node_is_off_by_an_hour(postgres, make_cluster, make_bench, gate, off):
    """The wall clock alone. Leases are measured on clocks that only run."""
    wrong = {"LD_PRELOAD": FAKETIME, "FAKETIME": off, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
             "DONT_FAKE_MONOTONIC": "1"}
    cluster = make_cluster(postgres, envs={"beta": wrong})
    # A token of the future is refused, rightly; one of an hour ago is not.
    early = cluster["alpha" if off == "+1h" else "beta"]
    bench = make_bench(cluster, postgres, seed=SEED, token=early.token())
    chance = random.Random(SEED)
    times_s = []
    def step_down(node):
        answer = cluster.step_down(node)
        assert answer.status == 200, answer

    for n in range(4):
        leader = cluster.leader
        if n % 2:
            times_s.append(fail_over(cluster, bench, chance, step_down))
            leader.await_word("standby")
        else:
            times_s.append(fail_over(cluster, bench, chance, lambda node: node.kill9()))
            leader.start()
        cluster.await_standbys()
    lines = cluster["beta"].log_lines()
    assert abs(ts_of(lines[0]) - ts_of(cluster["alpha"].log_lines()[0])) > 3000, "it was not off"
    gate.write(f"clock of one node off by {off}", 4, bench.violations(bench.witness), times_s)
    assert max(times_s) <= DEAD_S, times_s


def ts_of(line):
    from datetime import datetime
    return datetime.fromisoformat(line["ts"].replace("Z", "+00:00")).timestamp()
