"""`muster dev` on a terminal: one screen for everything, and the terminal given back whatever happens."""

import json
import os
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest
from muster_proc import binary, run
from terminal import Terminal


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def free_run(n):
    """The first of n ports in a row that nobody has."""
    first = 20000 + os.getpid() % 300 * 30
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


@pytest.fixture
def dev(tmp_path):
    """Starts it on a terminal, with everything of its own."""
    started = []

    def start(*options, columns=110, rows=40, **more):
        data = tmp_path / "data"
        own = ["--data", data, "--any-port", "--game-port", free_run(8)]
        started.append(Terminal("dev", *own, *options, columns=columns, rows=rows, **more))
        started[-1].data = data
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


def children_of(pid):
    return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def verb_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].decode()


def descendants_of(pid):
    own = children_of(pid)
    return own + [far for near in own for far in descendants_of(near)]


def arenas_of(agent):
    return [pid for pid in descendants_of(agent) if
            os.readlink(f"/proc/{pid}/exe").endswith("/arena")]


def child(terminal, verb):
    return next(pid for pid in children_of(terminal.process.pid) if verb_of(pid) == verb)


def hints(terminal):
    """The commands it shows, as a shell would read them."""
    text = terminal.shows(r"Try in another terminal(.|\n)*drain \d+")
    block = text[text.index("Try in another terminal") :].replace("\\\n", "")
    return [line.split() for line in block.splitlines()[1:] if line.strip()]


def test_screen_shows_regions_allocations_and_events(dev):
    terminal = dev()
    text = terminal.shows(r"[2-9] done")
    assert re.search(r"http://127\.0\.0\.1:\d+", text)
    for region in ("USE", "EU", "SG"):
        assert re.search(rf"^ *\d+  {region} +2 +0 +0 +0 ", text, re.MULTILINE)
    assert re.search(r"allocations/s, \d+ done, 0 failed; p50 \d+\.\d ms, p95 .*, p99 ", text)
    assert "chat: lobby" in text and re.search(r"game-server \d+ \w+: match \d+", text)
    assert terminal.screen.alternate is not None and terminal.screen.styled


def test_commands_it_shows_work_as_they_stand(dev):
    terminal = dev()
    terminal.shows("1 done")
    _, allocate, why, drain, room = hints(terminal)
    assert allocate[0] == why[0] == drain[0] == room[0] == binary()
    allocated = run(*allocate[1:])
    assert allocated.returncode == 0, allocated.stderr
    explained = run(*why[1:])
    assert explained.returncode == 0 and explained.stdout.startswith("Placed on server")
    drained = run(*drain[1:], "--no-wait")
    assert drained.returncode == 0, drained.stderr
    terminal.shows(r"EU +1 +0 +1 +0 ")
    terminal.shows("1 of 1 host healthy")
    seat = run(*room[1:])
    assert seat.returncode == 0, seat.stderr
    lines = dict(line.split(maxsplit=1) for line in seat.stdout.splitlines())
    with socket.create_connection((lines["host"], int(lines["port"]))) as game:
        game.sendall(lines["key"].encode() + b"\n")
        assert game.makefile().readline() == "welcome cli\n", "on a real process"


def test_refusals_are_shown_with_their_reason(dev):
    terminal = dev()
    terminal.shows("1 done")
    allocate = hints(terminal)[1]
    at = allocate.index("--region")
    assert run(*allocate[1:at], "--region", "BR", *allocate[at + 2 :]).returncode == 1
    terminal.shows(r"REFUSED BECAUSE(.|\n)*No servers available +\d+ +\d+ +cli +BR")


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM"])
def test_stopping_gives_the_terminal_back_and_ends_everything(dev, how):
    terminal = dev()
    terminal.shows("1 done")
    pids = children_of(terminal.process.pid)
    assert len(pids) == 10
    terminal.shows(r"rooms +[1-9] open")
    games = arenas_of(child(terminal, "agent"))
    assert games
    if how == "ctrl-c":
        terminal.press("\x03")
    else:
        terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ends() == 0
    assert terminal.is_as_before()
    assert terminal.screen.text.strip().endswith("dev: all stopped")
    assert not any(map(is_running, [*pids, *games]))


def test_rooms_appear_fill_and_vanish(dev):
    terminal = dev(rows=60)
    terminal.shows(r"rooms +[1-9] open, \d+ starting, \d+ ending; [1-9] player")
    room = hints(terminal)[4]
    there = room[room.index("--url") :]

    def has_ended():
        rooms = json.loads(run("rooms", *there, "-o", "json", "--state", "ended").stdout)
        return any(r["end_reason"] == "empty" for r in rooms)

    terminal.wait(has_ended, "an empty room that has ended", timeout_s=60)


def test_typing_does_not_disturb_the_screen(dev):
    terminal = dev()
    terminal.shows("1 done")
    terminal.press("rm -rf\n")
    terminal.shows("3 done")
    assert "rm -rf" not in terminal.screen.text


def test_death_of_a_game_server_is_told_and_survived(dev):
    terminal = dev()
    terminal.shows("1 done")
    os.kill(child(terminal, "game-server"), signal.SIGKILL)
    terminal.shows(r"dev: game-server EU \(pid \d+\) was killed by signal 9")
    assert terminal.process.poll() is None


def test_death_of_muster_ends_it_with_what_was_said_last(dev):
    terminal = dev()
    terminal.shows("1 done")
    pids = children_of(terminal.process.pid)
    os.kill(child(terminal, "serve"), signal.SIGKILL)
    assert terminal.ends() == 1
    assert terminal.is_as_before()
    assert "serve (pid" in terminal.screen.text and "killed by signal 9" in terminal.screen.text
    assert "Muster has ended" in terminal.screen.text
    assert not any(map(is_running, pids))


def test_stopped_muster_does_not_stop_the_screen(dev):
    """It says what is wrong, ctrl-c works, and it goes on when Muster does."""
    terminal = dev()
    terminal.shows("1 done")
    serve = child(terminal, "serve")
    os.kill(serve, signal.SIGSTOP)
    try:
        terminal.shows("cannot reach Muster.*no answer in time")
    finally:
        os.kill(serve, signal.SIGCONT)
    terminal.shows(r"allocations/s")


def test_its_own_crash_gives_the_terminal_back_and_leaves_nothing(dev):
    terminal = dev()
    terminal.shows("1 done")
    terminal.shows(r"rooms +[1-9] open")
    pids = children_of(terminal.process.pid)
    pids += arenas_of(child(terminal, "agent"))
    assert len(pids) > 10
    terminal.process.send_signal(signal.SIGSEGV)
    assert terminal.ends() == -signal.SIGSEGV
    assert terminal.is_as_before()
    terminal.wait(lambda: not any(map(is_running, pids)), "end of the children")


def test_any_size_fits(dev):
    terminal = dev(columns=200, rows=60)
    terminal.shows("1 done")
    for columns, rows in ((60, 14), (20, 5), (1, 1), (110, 40)):
        terminal.size(columns, rows)
        assert len(terminal.screen.lines) <= rows
    terminal.shows(r"(?s)allocations/s.*Try in another terminal")


def test_the_console_is_one_click_away(dev):
    """On the screen behind its short address, as a line where there are lines; and it logs in."""
    terminal = dev()
    terminal.shows(r"http://127\.0\.0\.1:\d+ \(the console: click it\)")
    link, = terminal.screen.links
    url, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", link).groups()
    asked = urllib.request.Request(f"{url}/v1/me", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert "muster_admin" in json.load(answer)["scopes"]
    assert ["console", "--url", url] == hints(terminal)[0][1:4]


def test_failed_start_is_told_on_the_ordinary_screen(dev, tmp_path):
    (tmp_path / "data").write_text("not a folder")
    terminal = dev()
    assert terminal.ends() == 1
    assert terminal.is_as_before()
    assert "Muster did not start" in terminal.screen.text
    assert "data" in terminal.screen.text.split("Muster did not start")[0]


def test_plain_lines_when_asked_for(dev):
    terminal = dev("--plain", "--seconds", "3")
    assert terminal.ends() == 0
    assert terminal.screen.alternate is None and "\x1b" not in terminal.raw
    assert "Try in another terminal" in terminal.raw and "dev: all stopped" in terminal.raw
    assert re.search(r"^  http://127\.0\.0\.1:\d+/#token=\S+\r?$", terminal.raw, re.MULTILINE)
    assert "whoever has this link is administrator for 12 h" in terminal.raw


def test_no_colours_where_they_are_not_wanted(dev):
    terminal = dev(env={"NO_COLOR": "1"})
    terminal.shows("1 done")
    assert not terminal.screen.styled


def test_second_one_beside_the_first_takes_free_ports(dev, tmp_path):
    """Its hints name the ports it has."""
    first = dev()
    first.shows("1 done")
    of_its_own = ["--data", tmp_path / "other", "--game-port", free_run(8), "--seconds", "3"]
    second = run("dev", *of_its_own)
    assert second.returncode == 0, second.stdout + second.stderr
    ready = re.search(r"ready http=(\S+)", second.stdout)[1]
    usual = ready == "127.0.0.1:9508"
    assert usual or f"--url http://{ready}" in second.stdout
    assert f"Its HTTP API is at http://{ready}" in second.stdout


def test_status_says_what_the_screen_shows(dev):
    terminal = dev()
    terminal.shows("1 done")
    url, data = re.search(r"--url (\S+) --data (\S+)", " ".join(hints(terminal)[3])).groups()
    status = json.loads(run("status", "--url", url, "--data", data, "-o", "json").stdout)
    assert status["servers"]["available"] == 6
    assert status["allocations"]["done"] >= 1
