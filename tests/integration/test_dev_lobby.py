"""`muster dev --lobby`: matches form, start and end before one's eyes, whatever goes wrong, and a
summary at the end that would say if one had not."""

import os
import re
import socket
import subprocess

import pytest
from muster_proc import binary, run
from terminal import Terminal


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def free_run(n):
    """The first of n ports in a row that nobody has."""
    first = 29000 + os.getpid() % 90 * 30
    while True:
        taken = []
        try:
            for port in range(first, first + n):
                taken.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            first += n
        finally:
            for one in taken:
                one.close()


def own(tmp_path):
    return ["--data", tmp_path / "data", "--any-port", "--game-port", free_run(8)]


def numbers(output):
    """Created, started, aborted, still open."""
    found = re.search(r"(\d+) lobbies created: (\d+) started, (\d+) aborted, (\d+) still open", output)
    assert found, output[-3000:]
    return tuple(map(int, found.groups()))


def is_content(output):
    return "each of them ended in exactly one of started and aborted" in output and \
        "WRONG" not in output


def test_matches_form_start_and_end(tmp_path):
    result = run("dev", "--lobby", "--for", "10", *own(tmp_path), timeout_s=120)
    assert result.returncode == 0, result.stdout[-3000:]
    created, started, aborted, still_open = numbers(result.stdout)
    assert created >= 3 and started == created and aborted == still_open == 0
    assert is_content(result.stdout)
    lobby = re.search(r"lobby (\d+) ended", result.stdout)[1]
    assert f"lobby {lobby} created" in result.stdout and f"lobby {lobby} started" in result.stdout
    assert re.search(rf"game-server \d+ \w+: match {lobby}: player \d+ entered", result.stdout)
    assert re.search(r"players let into their matches: [1-9]\d*, not let in: 0", result.stdout)
    assert "stats {" not in result.stdout


def test_with_faults_each_lobby_still_ends_in_exactly_one_way(tmp_path):
    result = run("dev", "--lobby", "--faults", "--for", "20", *own(tmp_path), timeout_s=180)
    assert result.returncode == 0, result.stdout[-5000:]
    created, started, aborted, still_open = numbers(result.stdout)
    assert created >= 5 and started + aborted == created and still_open == 0
    assert is_content(result.stdout)
    assert "dev: killing" in result.stdout and "dev: starting again:" in result.stdout


def test_screen_shows_lobbies_and_leaves_the_summary(tmp_path):
    with Terminal("dev", "--lobby", *own(tmp_path), columns=110, rows=60) as terminal:
        text = terminal.shows(r"Lobbies +\d+ loading, \d+ being played; [1-9]\d* started, 0 aborted")
        assert re.search(r"creation to start p50 \d+\.\d s, p95 \d+\.\d s, p99 \d+\.\d s", text)
        terminal.press("\x03")
        assert terminal.ends(timeout_s=60) == 0
        assert terminal.is_as_before()
        assert is_content(terminal.screen.text.replace("\n", " ").replace("  ", " ")) or \
            "exactly one of started and aborted" in terminal.raw


def test_faults_need_lobbies():
    result = run("dev", "--faults")
    assert result.returncode == 2
    assert "--faults goes with --lobby" in result.stderr


# --- the matchmaker by itself


def doors(world):
    return ["--url", "http://%s:%d" % world.muster.http_address, "--data", world.muster.data,
            "--client", "%s:%d" % world.muster.client_address]


def test_matchmaker_tells_aborts_by_reason(world):
    """There are no servers at all."""
    result = run("matchmaker", "--players", 6, "--team", 1, "--every", 200, "--for", 1,
                 *doors(world), timeout_s=60)
    assert result.returncode == 0, result.stdout
    created, started, aborted, _ = numbers(result.stdout)
    assert started == 0 and aborted == created > 0
    assert f"aborted {aborted}: Server allocation failed: No servers available" in result.stdout
    assert is_content(result.stdout)


@pytest.mark.muster(loading_ms=60000)
def test_matchmaker_complains_about_a_lobby_that_does_not_end(world):
    """Its server is silent for longer than the matchmaker waits."""
    world.server(on_allocate="silent")
    process = subprocess.Popen(
        [binary(), *map(str, ["matchmaker", "--players", 2, "--team", 1, "--for", 1, "--settle", 1,
                              *doors(world)])], stdout=subprocess.PIPE, text=True)
    try:
        world.wait(lambda: process.poll() is not None, "end of the matchmaker", timeout_s=30)
        output = process.stdout.read()
        assert process.returncode == 1, output
        assert numbers(output)[3] == 1
        assert re.search(r"WRONG: lobby \d+: it neither started nor was it aborted", output)
        assert not is_content(output)
    finally:
        process.kill()
        process.communicate()


def test_matchmaker_needs_an_administrator(world, tmp_path):
    result = run("matchmaker", *doors(world)[:2], "--data", tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("muster matchmaker: ")


def test_matchmaker_wants_an_address():
    result = run("matchmaker", "--client", "here")
    assert result.returncode == 2
    assert "--client takes HOST:PORT, or several with commas between them, not 'here'" in result.stderr
