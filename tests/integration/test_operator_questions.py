"""docs/operator-questions.md: each command of the page runs and answers, each page is one of the console's."""

import json
import re
import shlex
from pathlib import Path

import pytest
from fake_host import FakeHost
from muster_proc import run
from players import fleets

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (.+\?) \| `muster (.+?)` \| `#/(.*?)` \|$", re.M)
QUESTIONS = ROW.findall((ROOT / "docs/operator-questions.md").read_text())
arena = pytest.mark.muster(fleets=fleets(), default_region="EU")
NAMES = {"TICKET": "1", "ROOM": "1", "HOST": "1", "ACCOUNT": "cli"}


def test_there_are_twelve():
    assert len(QUESTIONS) == 12


def test_the_pages_are_the_console_s():
    paths = re.findall(r"path: '([^']*)'", (ROOT / "web/src/pages.tsx").read_text())
    assert {page.split("/")[0] for _, _, page in QUESTIONS} <= set(paths)


@pytest.fixture
def asked(world):
    """A Muster with a host, a room, a seat in it, a ticket and a ban."""
    host, port = world.muster.http_address
    where = ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]

    def ask(command):
        words = re.sub("|".join(NAMES), lambda m: NAMES[m[0]], command)
        done = run(*shlex.split(words), *where)
        assert done.returncode == 0, (command, done)
        return done.stdout

    with FakeHost(world.muster):
        ask("room create arena")
        ask("ban issue somebody --reason cheats --expires 1d")
        yield ask


@arena
@pytest.mark.parametrize("question, command, page", QUESTIONS, ids=[q for q, _, _ in QUESTIONS])
def test_a_question_has_its_answer(asked, question, command, page):
    assert asked(command).strip()
    assert json.loads(asked(command + " -o json")) is not None
