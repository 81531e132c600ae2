"""Fixtures of the cluster's tests: databases, nodes under load, and gates.

A gate is one line of JSON: what was done, how often, how many violations were found, how long it
took until somebody was served again, and how long the whole took. They stay in GATES and are shown
when all is over."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))

from cluster import Cluster  # noqa: E402
from cluster_load import CONFIG, Bench  # noqa: E402
from postgres import Pair, Postgres  # noqa: E402
from witness import Witness  # noqa: E402

GATES = Path(os.environ.get("MUSTER_GATES", ROOT / "build" / "cluster-gates.jsonl"))


def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        GATES.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter):
    if GATES.exists():
        terminalreporter.section("gates")
        terminalreporter.write(GATES.read_text())


def at_most(times_s, share):
    """The time that so large a share of them does not exceed, in ms."""
    ordered = sorted(times_s)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000)


class Gate:
    """violations are VIOLATION lines of a failed test, so that a planted bug is seen to be caught."""

    def __init__(self):
        self.began = time.monotonic()

    def write(self, what, n, violations, times_s=(), **more):
        line = {"what": what, "n": n, "violations": len(violations)}
        if times_s:
            line.update(p50_ms=at_most(times_s, 0.5), p95_ms=at_most(times_s, 0.95),
                        max_ms=at_most(times_s, 1.0))
        line.update(more, seconds=round(time.monotonic() - self.began, 1))
        with open(GATES, "a") as f:
            f.write(json.dumps(line) + "\n")
        assert not violations, "\n".join(f"VIOLATION: {v}" for v in violations[:20])


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture(scope="session")
def postgres():
    with Postgres() as server:
        yield server


@pytest.fixture
def pair():
    with Pair() as both:
        yield both


@pytest.fixture
def make_cluster(request, tmp_path):
    """Nodes on a database of their own; what they said is shown when the test fails."""
    made = []

    def make(postgres, urls=None, start=True, **options):
        database = f"cell{os.getpid()}_{time.monotonic_ns()}"
        postgres.make_database(database)
        urls = urls(database) if urls else postgres.url(database)
        cluster = Cluster(tmp_path / f"cluster{len(made)}", urls, **{**CONFIG, **options})
        cluster.database = database
        made.append(cluster)
        return cluster.__enter__() if start else cluster

    request.node.clusters = made
    yield make
    for cluster in made:
        cluster.__exit__()


@pytest.fixture
def make_bench(request):
    """Load on a cluster, with the database as its witness."""
    made = []

    def make(cluster, postgres, **options):
        bench = Bench(cluster, **options)
        bench.witness = Witness(postgres, cluster.database, "main")
        made.append(bench)
        return bench.__enter__()

    yield make
    failed = getattr(request.node, "failed", False)
    for bench in made:
        if failed:
            bench.record.dump(Path(request.node.clusters[0].folder) / "history.jsonl")
        bench.__exit__(AssertionError if failed else None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.failed = True
        for cluster in getattr(item, "clusters", []):
            report.sections.append(("the nodes' logs", cluster.log()))
