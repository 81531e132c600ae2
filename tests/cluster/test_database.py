"""What is below fails: PostgreSQL dies and its standby takes over, connections are cut in the middle
of commits, answers come late, one way only, or never."""

import contextlib
import os
import random
import time

import pytest
from history import now
from pg_proxy import CUTS, DOWN, UP, PgProxy

PROMOTIONS = int(os.environ.get("MUSTER_PROMOTIONS", "10"))
COMMIT_CUTS = int(os.environ.get("MUSTER_COMMIT_CUTS", "200"))
SEED = int(os.environ.get("MUSTER_CLUSTER_SEED", "1"))
SERVED_S = 10.0


def test_the_primary_dies_and_its_standby_takes_over(pair, make_cluster, make_bench, gate):
    cluster = make_cluster(pair)
    bench = make_bench(cluster, pair, seed=SEED)
    chance = random.Random(SEED)
    times_s = []
    for n in range(PROMOTIONS):
        bench.await_more(chance.randint(1, 60))
        node = cluster.leader if n % 3 == 2 else None
        began = now()
        if node:  # the machine that both ran on
            node.kill9()
        pair.fail_over()
        times_s.append(bench.first_success(now()) - began)
        pair.mend()
        if node:
            node.start()
            cluster.await_leader()
        cluster.await_standbys()
    gate.write("PostgreSQL primary killed, standby promoted, under load", PROMOTIONS,
               bench.violations(bench.witness), times_s, **bench.figures())
    assert sorted(times_s)[int(len(times_s) * 0.95)] <= SERVED_S, times_s


@contextlib.contextmanager
def proxied(postgres, make_cluster, **options):
    """A cluster each of whose nodes has a proxy of its own to the database."""
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(PgProxy(("127.0.0.1", postgres.port), SEED + n))
                   for n in range(2)]
        cluster = make_cluster(
            postgres, lambda database: [postgres.url(database).replace(str(postgres.port), str(p.port))
                                        for p in proxies], **options)
        yield cluster, dict(zip(cluster.nodes, proxies))
        cluster.__exit__()


def test_connections_are_cut_in_the_middle_of_commits(postgres, make_cluster, make_bench, gate):
    """Before, inside and behind the commit: the node must find out what became of it, once."""
    with proxied(postgres, make_cluster) as (cluster, proxies):
        bench = make_bench(cluster, postgres, seed=SEED)
        chance = random.Random(SEED)
        times_s = []
        for n in range(COMMIT_CUTS):
            leader = cluster.await_leader()
            fault = proxies[leader].plan(CUTS[n % len(CUTS)])
            assert fault.done.wait(30), cluster.story()
            times_s.append(bench.first_success(now()) - fault.at)
            if chance.random() < 0.5:
                bench.await_more(chance.randint(1, 10))
        happened = [how for p in proxies.values() for how in p.happened]
        assert len(happened) == COMMIT_CUTS and set(happened) == set(CUTS)
        gate.write("connection cut in the middle of a commit", COMMIT_CUTS,
                   bench.violations(bench.witness), times_s, **bench.figures())


@pytest.mark.parametrize("way", ["both", UP, DOWN])
def test_a_leader_that_does_not_reach_the_database_is_replaced(postgres, make_cluster, make_bench,
                                                              gate, way):
    with proxied(postgres, make_cluster) as (cluster, proxies):
        bench = make_bench(cluster, postgres, seed=SEED, loyal=1)
        times_s = []
        for _ in range(3):
            bench.await_more(20)
            leader = cluster.leader
            began = now()
            proxies[leader].swallow(*([UP, DOWN] if way == "both" else [way]))
            leads = cluster.await_leader(but=leader)
            times_s.append(bench.first_success(began, leads.name) - began)
            bench.await_more(20)
            proxies[leader].swallow()
            proxies[leader].cut()
            leader.await_word("standby")
            cluster.await_standbys()
        gate.write(f"leader cut off from the database ({way})", 3, bench.violations(bench.witness),
                   times_s)


def test_commits_whose_answer_never_comes(postgres, make_cluster, make_bench, gate):
    with proxied(postgres, make_cluster) as (cluster, proxies):
        bench = make_bench(cluster, postgres, seed=SEED)
        times_s = []
        for _ in range(5):
            bench.await_more(20)
            leader = cluster.await_leader()
            fault = proxies[leader].plan("silent")
            assert fault.done.wait(30), cluster.story()
            times_s.append(bench.first_success(now()) - fault.at)
        gate.write("answer to a commit never comes", 5, bench.violations(bench.witness), times_s)
        assert max(times_s) <= SERVED_S, times_s


def test_a_database_that_stands_still_for_a_while(postgres, make_cluster, make_bench, gate):
    """Both nodes see it: nobody can lead meanwhile, and somebody does afterwards."""
    with proxied(postgres, make_cluster) as (cluster, proxies):
        bench = make_bench(cluster, postgres, seed=SEED)
        times_s = []
        for stall_s in (0.5, 1.0, 5.0):
            bench.await_more(20)
            for proxy in proxies.values():
                proxy.stall(True)
            time.sleep(stall_s)
            began = now()
            for proxy in proxies.values():
                proxy.stall(False)
            times_s.append(bench.first_success(began) - began)
        gate.write("database stands still", 3, bench.violations(bench.witness), times_s)
        assert max(times_s) <= SERVED_S, times_s


def test_a_database_that_is_restarted(postgres, make_cluster, make_bench, gate):
    """Everybody's connection ends; nobody restarts a node."""
    cluster = make_cluster(postgres)
    bench = make_bench(cluster, postgres, seed=SEED)
    times_s = []
    for end in (postgres.stop, postgres.kill9, postgres.stop):
        bench.await_more(20)
        end()
        time.sleep(3.0)
        postgres.start()
        began = now()
        times_s.append(bench.first_success(began) - began)
    cluster.await_leader()
    gate.write("database restarted", 3, bench.violations(bench.witness), times_s)
    assert max(times_s) <= SERVED_S, times_s
