"""The runner of `make test`: every step runs, what failed is listed with the command for just that,
and only a run that asks for it gives a failed test a second chance."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

STEPS = Path(__file__).resolve().parents[1] / "lib/steps.py"

PYTEST_FILE = """
from pathlib import Path
import pytest

def test_good():
    pass

@pytest.mark.skipif(not {bad}, reason="this run has no bad test")
@pytest.mark.parametrize("word", ["one word"])
def test_bad(word):
    assert False, "it is bad"

def test_unsteady():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "the first time it fails"
"""

DRIVER = """
import sys
sys.path.insert(0, "tests/lib")
import steps

def all_steps(run):
    run.step("lint")
    run.check("lint: names", "echo the name is wrong; exit {lint}", "build/lint.log")
    run.step("unit tests")
    programs = run.ctest("build", 2)
    run.step("integration")
    integration = run.pytest("tests/integration", 1, "build/pytest.log")
    run.step("browser")
    passed = run.node(["page.test.mjs"], 1)
    run.begin("tidy", "exit {tidy}", "build/tidy.said")
    return f"{{programs}} programs, {{integration}}, {{passed}} in a browser"

steps.run("make pretend", all_steps)
"""


class Tree:
    """A source tree with a few checks, some of which fail."""

    def __init__(self, folder, bad=False, lint=0, tidy=0):
        self.folder = folder
        self.names = folder / "names"
        self.write("tests/lib/steps.py", STEPS.read_text())
        self.write("tests/integration/pytest.ini", "[pytest]\n")
        self.write("tests/integration/test_some.py", PYTEST_FILE.format(bad=bad))
        unit = "add_test(room/test_good true)\n"
        unit += "add_test(room/test_bad false)\n" if bad else ""
        self.write("build/CTestTestfile.cmake", unit)
        fails = "assert.ok(false)" if bad else ""
        self.write("page.test.mjs", "import test from 'node:test'; import assert from 'node:assert';"
                   "test('a page shows it', () => {}); test('a page asks', () => { %s });" % fails)
        self.write("run.py", DRIVER.format(lint=lint, tidy=tidy))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, second_chance):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("PYTEST", "MUSTER_", "NODE_TEST"))}
        if second_chance:
            env["MUSTER_UNSTEADY"] = str(self.names)
        done = subprocess.run(["/usr/bin/python3", "run.py"], cwd=self.folder, env=env, text=True,
                              capture_output=True, timeout=100)
        assert done.stderr == ""
        return done.returncode, done.stdout


def listed(said):
    return dict(re.findall(r"^failed: (.*)\n  run just that: (.*)$", said, re.MULTILINE))


pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


def test_every_step_runs_and_what_failed_is_listed_with_its_command(tmp_path):
    code, said = Tree(tmp_path, bad=True, lint=1, tidy=1).run(second_chance=False)
    assert code == 1
    assert [line.split(" (")[0] for line in said.splitlines() if line.startswith("== ")] == [
        "== lint", "== unit tests", "== integration", "== browser"]
    failed = listed(said)
    assert list(failed) == [
        "lint: names", "room/test_bad (build)", "tests/integration/test_some.py::test_bad[one word]",
        "tests/integration/test_some.py::test_unsteady", "page.test.mjs: a page asks", "tidy"]
    assert re.search(r"^make pretend: 2 programs, .*; 6 failed; \d+ s$", said, re.MULTILINE)
    for name, command in failed.items():
        again = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, timeout=60)
        assert (again.returncode == 0) == name.endswith("test_unsteady"), command


def test_a_test_that_passes_twice_more_is_unsteady_and_the_run_passes(tmp_path):
    tree = Tree(tmp_path)
    code, said = tree.run(second_chance=True)
    name = "tests/integration/test_some.py::test_unsteady"
    assert code == 0, said
    assert said.splitlines()[-1] == f"unsteady: {name}"
    assert "all passed in the end" in said.splitlines()[-2]
    assert tree.names.read_text() == f"{name}\n"


def test_a_test_that_fails_once_more_fails_the_run(tmp_path):
    tree = Tree(tmp_path, bad=True)
    code, said = tree.run(second_chance=True)
    assert code == 1
    assert "tests/integration/test_some.py::test_unsteady" not in listed(said)
    assert "tests/integration/test_some.py::test_bad[one word]" in listed(said)
    assert tree.names.read_text() == "tests/integration/test_some.py::test_unsteady\n"


def test_by_hand_there_is_no_second_chance(tmp_path):
    tree = Tree(tmp_path)
    code, said = tree.run(second_chance=False)
    assert code == 1
    assert list(listed(said)) == ["tests/integration/test_some.py::test_unsteady"]
    assert not tree.names.exists()


def test_what_is_certain_to_fail_again_is_not_run_again(tmp_path):
    tree = Tree(tmp_path, lint=1)
    code, said = tree.run(second_chance=True)
    assert code == 1
    assert "alone" not in said
    assert list(listed(said)) == ["lint: names", "tests/integration/test_some.py::test_unsteady"]


def test_without_a_failure_the_run_passes(tmp_path):
    tree = Tree(tmp_path)
    (tmp_path / "seen").touch()
    code, said = tree.run(second_chance=True)
    assert code == 0
    assert re.search(r"all passed; \d+ s$", said.splitlines()[-1])
    assert not tree.names.exists()
