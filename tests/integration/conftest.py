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
from muster_proc import binary  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def there_is_a_binary():
    assert Path(binary()).exists(), f"build first: {binary()} does not exist"


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
