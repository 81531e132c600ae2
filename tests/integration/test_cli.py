"""The other verbs of the binary, against a Muster of the test's own."""

import json
import re
import subprocess
import time

import chat
import pytest
from chat import EU, USE
from muster_proc import binary, run


class Running:
    """A muster command that runs until it is stopped; its output is read line by line."""

    def __init__(self, folder, *arguments):
        self.path = folder / f"{arguments[0]}.out"
        self.output = open(self.path, "wb")
        self.process = subprocess.Popen(
            [binary(), *map(str, arguments)], stdout=self.output, stderr=self.output
        )

    def text(self):
        return self.path.read_text(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.output.close()
        return code


@pytest.fixture
def running(tmp_path):
    """Starts commands, and stops what still runs when the test is over."""
    started = []

    def start(*arguments):
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield start
    for command in started:
        if not command.output.closed:
            command.stop()


def place(address):
    return f"{address[0]}:{address[1]}"


@pytest.fixture
def game_server(world, running):
    def start(*options):
        return running("game-server", "--server", place(world.muster.server_address), *options)

    return start


def allocate(world, *arguments):
    return run("allocate", "--manager", place(world.muster.manager_address), *arguments)


def test_version():
    result = run("--version")
    assert result.returncode == 0
    assert re.search(r"\d+\.\d+\.\d+", result.stdout)


def test_help_names_every_verb():
    result = run("--help")
    assert result.returncode == 0
    for verb in ("serve", "game-server", "allocate", "dump", "sim", "dev"):
        assert verb in result.stdout


@pytest.mark.parametrize("verb", ["serve", "game-server", "allocate", "dump", "sim", "dev"])
def test_help_of_each_verb(verb):
    result = run(verb, "--help")
    assert result.returncode == 0
    assert result.stdout.lower().startswith("usage") or "muster " + verb in result.stdout


def test_wrong_verb_suggests_the_nearest():
    result = run("alocate")
    assert result.returncode == 2
    assert "allocate" in result.stderr


def test_no_verb_prints_the_help():
    result = run()
    assert result.returncode == 2
    assert "serve" in result.stdout + result.stderr
