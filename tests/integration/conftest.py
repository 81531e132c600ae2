"""Fixtures of the end-to-end tests: each test has a Muster of its own, on free ports, in a temporary
folder. What the test wants different it says with a mark:

    @pytest.mark.muster(ack_ms=300)
    def test_…(world): …
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import gate  # noqa: E402
import muster_proc  # noqa: E402
from muster_proc import binary  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def there_is_a_binary():
    assert Path(binary()).exists(), f"build first: {binary()} does not exist"
    if muster_proc.STORE == "postgres":
        muster_proc.database()


def pytest_collection_modifyitems(config, items):
    """On another store, what has to do with one: tests that start no Muster of the world's are the
    same there, and those about the embedded one say so, with a reason when it is not plain."""
    if not muster_proc.STORE:
        return
    gone = [item for item in items if "make_world" not in item.fixturenames]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if "make_world" in item.fixturenames]
    for item in items:
        mark = item.get_closest_marker("embedded")
        if mark:
            reason = mark.args[0] if mark.args else "is about the embedded store"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def gate_library(tmp_path_factory):
    return gate.build(tmp_path_factory.mktemp("gate"))


@pytest.fixture
def make_world(request, tmp_path):
    """Makes worlds that are stopped, and checked, when the test is over."""
    worlds = []

    def make(**options):
        folder = tmp_path / f"world{len(worlds)}"
        folder.mkdir()
        world = World(folder, **options)
        worlds.append(world)
        return world.start()

    request.node.muster_worlds = worlds
    yield make
    for world in worlds:
        world.stop()


@pytest.fixture
def world(request, make_world):
    mark = request.node.get_closest_marker("muster")
    return make_world(**(mark.kwargs if mark else {}))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what Muster said."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for world in getattr(item, "muster_worlds", []):
            report.sections.append(("muster's log", world.muster.log()[-6000:]))
