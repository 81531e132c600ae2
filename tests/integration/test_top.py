"""`muster top` on a terminal: what is wrong on top, and the terminal given back whatever happens."""

import http.server
import json
import re
import signal
import subprocess
import threading

import pytest
from chat import EU, SG, USE
from muster_proc import binary, run
from terminal import Terminal

NASTY = "a\x1b[2J\x07b\x9b31mc\x7f\u202ed\r\ne"
COMMANDS = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def where(world):
    host, port = world.muster.http_address
    return ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]


@pytest.fixture
def scene(world):
    """Two regions with servers, a match, and two refusals."""
    world.eu = world.server(region=EU, port=20001, capacity=4)
    world.use = world.server(region=USE, port=20002, capacity=1)
    world.asker = world.chat("lobby-1", regions=(EU, USE, SG))
    world.asker.allocate(101, region=EU)
    world.asker.refuse(104, region=SG)
    return world


@pytest.fixture
def top(scene):
    started = []

    def start(*options, columns=80, rows=24, **more):
        started.append(Terminal("top", *options, *where(scene), columns=columns, rows=rows, **more))
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


# --- what it shows


def test_everything_fits_the_smallest_terminal(top):
    terminal = top()
    terminal.shows(r"(?s)REFUSED BECAUSE\n.*No servers available")
    text = terminal.screen.text
    lines = text.splitlines()
    assert lines[0].startswith("muster top  http://127.0.0.1:") and "q quits" in lines[0]
    assert lines[1], "the sentence"
    assert re.search(r"\d+\.\d allocations/s, 1 failed, p50 .* ms, p95 .* ms, p99 .* ms", text)
    assert re.search(r"joins +none in the last 60 s", text)
    assert re.search(r"in line +nobody", text)
    assert re.search(r"store +writable, commit p50 .* ms, p99 .* ms, \d+ waiting, .* GiB free", text)
    assert re.search(r"^ +2  EU +1 +0 +0 +0 +1 +4 +1", text, re.MULTILINE)
    assert not re.search(r" SG +0 ", text), "a region without servers"
    assert len(lines) <= 24 and max(map(len, lines)) <= 80


def test_it_is_live(top, scene):
    terminal = top()
    terminal.shows(r"1 match; 1 of 5 slots used")
    scene.asker.allocate(102, region=EU)
    terminal.shows(r"2 matches; 2 of 5 slots used")


def test_it_follows_the_size(top):
    terminal = top(columns=200, rows=50)
    terminal.shows(r"SPREAD(.|\n)*CHAT SERVER")
    for columns, rows in ((60, 14), (20, 5), (1, 1), (300, 80), (80, 24)):
        terminal.size(columns, rows)
        assert len(terminal.screen.lines) <= rows
    assert "SPREAD" not in terminal.shows("REFUSED BECAUSE")


def test_keys(top, scene):
    terminal = top()
    terminal.shows("REFUSED BECAUSE")
    terminal.press("h")
    terminal.shows(r"sort hosts: worst first now")
    terminal.press("s")
    terminal.shows(r"sort hosts: by load now")
    terminal.press("h")
    terminal.shows("REFUSED BECAUSE")
    terminal.press("\x1b[A\x1b[qxyz\n")  # an arrow, and keys that mean nothing
    terminal.press("a")
    terminal.shows(r"... \d+ more")
    terminal.press("a")
    terminal.press("r")
    assert " EU " not in terminal.shows(r"only USE(.|\n)*AVAILABLE")
    terminal.press("r")
    terminal.shows(r"only EU")
    terminal.press("r")
    terminal.wait(lambda: "only" not in terminal.screen.text, "all regions")
    terminal.press("q")
    assert terminal.ends() == 0
    assert terminal.is_as_before()


def test_pause(top, scene):
    terminal = top()
    terminal.shows(r"1 match;")
    terminal.press("p")
    terminal.shows(r"paused(.|\n)*is 2 s old; p goes on")
    scene.asker.allocate(102, region=EU)
    terminal.shows(r"is 4 s old")
    assert "1 match;" in terminal.screen.text
    terminal.press("p")
    terminal.shows(r"2 matches;")
    assert "paused" not in terminal.screen.text


# --- Muster goes away, and comes back


def test_killed_muster_is_said_and_waited_for(top, scene):
    terminal = top()
    terminal.shows("1 match;")
    scene.muster.kill9()
    terminal.shows(r"Muster is away for 2 s; what is shown is [23] s old")
    assert "cannot reach" in terminal.screen.text
    assert "1 match;" in terminal.screen.text, "what was known stays"
    scene.muster.restart()
    terminal.wait(lambda: "Muster is away" not in terminal.screen.text, "Muster again")
    assert "slots used" in terminal.screen.text


def test_stopped_muster_does_not_stop_it(top, scene):
    terminal = top()
    terminal.shows("1 match;")
    scene.muster.signal(signal.SIGSTOP)
    try:
        terminal.shows(r"Muster is away for(.|\n)*no answer in time")
        terminal.press("q")
        assert terminal.ends() == 0
    finally:
        scene.muster.signal(signal.SIGCONT)
    assert terminal.is_as_before()


@pytest.mark.parametrize(
    "arguments,code,sentence",
    [
        (["--url", "http://127.0.0.1:1", "--token", "t"], 3, "http://127.0.0.1:1"),
        (["--every", "0"], 2, "--every takes 1 to 3600 seconds"),
        (["now"], 2, "takes no word"),
    ],
)
def test_nobody_to_wait_for_is_said_on_the_ordinary_screen(arguments, code, sentence):
    with Terminal("top", *arguments) as terminal:
        assert terminal.ends() == code
        assert sentence in terminal.screen.text and "\x1b[?1049h" not in terminal.raw


# --- the terminal is given back


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM", "SIGHUP", "SIGSEGV"])
def test_terminal_is_given_back(top, how):
    terminal = top()
    terminal.shows("1 match;")
    assert terminal.screen.alternate is not None and not terminal.screen.cursor_shown
    if how == "ctrl-c":
        terminal.press("\x03")
    else:
        terminal.process.send_signal(getattr(signal, how))
    killed = how in ("SIGHUP", "SIGSEGV")
    assert terminal.ends() == (-getattr(signal, how) if killed else 0)
    assert terminal.is_as_before()


# --- lines


def test_lines_in_a_pipe(scene):
    result = run("top", "--once", *where(scene))
    assert result.returncode == 0 and "\x1b" not in result.stdout
    assert "q quits" not in result.stdout and "REFUSED BECAUSE" in result.stdout
    whole = json.loads(run("top", "--once", "-o", "json", *where(scene)).stdout)
    assert whole["status"]["slots"]["total"] == 5 and whole["hosts"] == []
    assert " SG " in run("top", "--once", "-o", "wide", *where(scene)).stdout
    command = [binary(), "top", *where(scene)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        blocks = 0
        for line in process.stdout:
            blocks += line.startswith("muster top ")
            if blocks == 3:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


@pytest.mark.parametrize("options,env", [(["--plain"], {}), ([], {"TERM": "dumb"})], ids=str)
def test_plain_lines_on_a_terminal(top, options, env):
    terminal = top(*options, columns=200, env=env)
    terminal.shows(r"(?s)muster top .*muster top ")
    assert terminal.screen.alternate is None
    terminal.press("\x03")
    assert terminal.ends() == 0


@pytest.mark.parametrize("options,env", [(["--no-color"], {}), ([], {"NO_COLOR": "1"})], ids=str)
def test_no_colours_where_they_are_not_wanted(top, options, env):
    terminal = top(*options, env=env)
    terminal.shows("1 match;")
    assert not terminal.screen.styled


# --- answers of the test's choice


@pytest.fixture
def answers():
    """A Muster that says what the test wants: {path: body}. What is missing is not found."""
    said = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = said.get(self.path.split("?")[0])
            text = json.dumps(body or {"error": {"code": "not_found", "message": "no"}}).encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    said["where"] = ["--url", f"http://127.0.0.1:{server.server_address[1]}", "--token", "t"]
    yield said
    server.shutdown()
    thread.join()
    server.server_close()


def host(number, **more):
    return {"id": str(number), "name": f"host-{number}", "region": "EU", "load_percent": number,
            "cpu_percent": number, "memory_percent": 1, "rooms": 100 - number, "slots": 64,
            "passed_over": None, "heard_at": "2026-11-16T17:13:16.477Z", **more}


STATUS = {
    "version": "1", "uptime_s": 5, "store": "writable", "sessions": 0,
    "joins": {"done": 997, "failed": 2},
    "queues": {"entries": 3, "players": 5, "oldest_ms": 92000},
    "rooms": {"open": 1, "taken": 2, "reserved": 0},
    "regions": [{"code": 2, "name": "EU", "servers": {"available": 1}}],
    "refusals": [],
}


def test_what_is_wrong_stands_on_top_with_what_to_do(answers):
    answers["/v1/status"] = STATUS
    answers["/v1/health"] = {
        "status": "broken", "sentence": "2 things are wrong.", "at": "2026-11-16T17:13:16.477Z",
        "findings": [
            {"code": "host_silent", "severity": "critical", "sentence": "Host host-7 is silent.",
             "advice": "Look at it.", "command": "muster host 7", "page": "#/hosts/7"},
            {"code": "queue_old", "severity": "warning", "sentence": "Players wait for 92 s.",
             "advice": "", "command": "muster queue", "page": "#/queue"},
        ]}
    answers["/v1/hosts"] = {"items": [host(n) for n in range(1, 41)] + [
        host(50, passed_over="silent"), host(60, passed_over="disabled")], "next": None}
    with Terminal("top", *answers["where"], columns=80, rows=24) as terminal:
        terminal.shows("HOST +NAME")
        lines = terminal.screen.text.splitlines()
        assert lines[1] == "2 things are wrong."
        assert lines[2] == "  Host host-7 is silent.  muster host 7"
        assert lines[3] == "  Players wait for 92 s.  muster queue"
        text = terminal.screen.text
        assert re.search(r"joins +99\.7 % of 999 succeeded, 2 failed", text)
        assert re.search(r"in line +3 requests of 5 players, the oldest for 1 m 32 s", text)
        first = re.search(r"HOST .*\n +(\d+) .*silent\n +(\d+) ", text)
        assert first.groups() == ("50", "40"), "in trouble first, then by load"
        terminal.press("s")
        terminal.shows(r"HOST .*\n +60 ")
        terminal.press("s")
        terminal.shows(r"HOST .*\n +1 ")


def test_control_characters_of_others_do_not_reach_the_terminal(answers):
    answers["/v1/status"] = {**STATUS, "store": NASTY, "regions": [
        {"code": 2, "name": NASTY, "servers": {"available": 1}}], "refusals": [
        {"at": "2026-11-16T17:13:16.477Z", "message": NASTY, "region": NASTY, "ticket": NASTY}]}
    answers["/v1/health"] = {"status": NASTY, "sentence": NASTY, "findings": [
        {"sentence": NASTY, "command": NASTY, "severity": NASTY}]}
    answers["/v1/hosts"] = {"items": [host(1, name=NASTY, passed_over=NASTY, region=NASTY)],
                            "next": None}
    with Terminal("top", *answers["where"], columns=180, rows=40) as terminal:
        terminal.shows("HOST +NAME")  # the screen refuses what is no code of ours
        terminal.press("r")
        terminal.shows("only a")
        terminal.press("q")
        assert terminal.ends() == 0
    for output in ("table", "json"):
        result = run("top", "--once", "-o", output, *answers["where"])
        assert result.returncode == 0 and not COMMANDS.search(result.stdout)


def test_hosts_of_many_pages(answers):
    answers["/v1/status"] = STATUS
    answers["/v1/hosts"] = {"items": [host(n) for n in range(1, 6)], "next": "more"}
    whole = run("top", "--once", "-o", "json", *answers["where"])
    assert len(json.loads(whole.stdout)["hosts"]) == 5 * 100, "as many pages as are read at most"
