"""The verbs that ask a running Muster over HTTP: what they print, how they end, how they wait."""

import contextlib
import http.server
import itertools
import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import chat
import jwt
import pytest
import secure
import snapshot
from chat import EU, SG, USE
from muster_proc import REPO, binary, run
from terminal import Terminal

# Every such verb, with arguments it is content with.
VERBS = {
    "status": [],
    "top": ["--once"],
    "servers": [],
    "server": ["1"],
    "sessions": [],
    "session": ["1"],
    "tickets": [],
    "ticket": ["1"],
    "why": ["1"],
    "fleets": [],
    "regions": [],
    "audit": [],
    "events": [],
    "drain": ["1"],
    "undrain": ["1"],
    "end": ["1"],
    "token enrol": ["--role", "server", "--fleet", "default"],
    "token list": [],
    "token revoke": ["1"],
    "token rotate": ["1"],
    "token issue": ["--account", "a", "--scopes", "muster_read"],
}

# More of them, whose success is shown in test_cli_rooms.py.
VERBS_OF_ROOMS = {
    "rooms": [],
    "room create": ["arena"],
    "room join": ["arena"],
    "room show": ["1"],
    "hosts": [],
    "host": ["1"],
    "players": [],
    "player": ["alice"],
    "seats": [],
    "refusals": [],
    "changes": [],
    "ban issue": ["alice", "--reason", "cheating", "--expires", "30d"],
    "ban show": ["1"],
    "ban list": [],
    "ban update": ["1", "--expires", "30d"],
    "ban lift": ["1"],
    "logs": ["1"],
    "stdin": ["1", "hello"],
    "terminate": ["1"],
    "versions": ["arena"],
    "version enable": ["arena", "1.0"],
    "version disable": ["arena", "1.0"],
    "deployments": [],
    "host enable": ["1"],
    "host disable": ["1"],
    "kick": ["1"],
    "bots": ["arena"],
    "backup": ["-"],  # in test_backup.py
}

every_verb = pytest.mark.parametrize("verb", [*VERBS, *VERBS_OF_ROOMS])


def arguments_of(verb):
    return [*verb.split(), *{**VERBS, **VERBS_OF_ROOMS}[verb]]


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_ENROL_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def where(world):
    host, port = world.muster.http_address
    return ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]


@pytest.fixture
def cli(world):
    """Runs a verb against the test's Muster."""

    def ask(*arguments, code=0, **options):
        result = run(*arguments, *where(world), **options)
        assert result.returncode == code, result.stdout + result.stderr
        assert "\x1b" not in result.stdout + result.stderr, "colours in a pipe"
        return result

    return ask


@pytest.fixture
def background(world):
    """Starts a verb that goes on; its lines are read with lines()."""
    started = []

    class Background:
        def __init__(self, *arguments):
            self.process = subprocess.Popen(
                [binary(), *map(str, arguments), *where(world)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self.out = b""
            os.set_blocking(self.process.stdout.fileno(), False)

        def text(self):
            with contextlib.suppress(BlockingIOError):
                while piece := os.read(self.process.stdout.fileno(), 65536):
                    self.out += piece
            return self.out.decode()

        def shows(self, pattern, timeout_s=20):
            look = lambda: re.search(pattern, self.text())  # noqa: E731
            return world.wait(look, f"{pattern!r} in {self.out!r}", timeout_s=timeout_s)

        def ends(self, timeout_s=20):
            world.wait(lambda: self.process.poll() is not None, "end", timeout_s=timeout_s)
            self.text()
            return self.process.returncode

        def errors(self):
            return self.process.stderr.read().decode()

    def start(*arguments):
        started.append(Background(*arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        one.process.stdout.close()
        one.process.stderr.close()


@pytest.fixture
def scene(world):
    """Two regions with servers, a match in each, and two refusals: one full, one without servers."""
    world.eu = world.server(region=EU, ip="10.0.0.1", port=20001, capacity=4, cpu=10, memory=20)
    world.use = world.server(region=USE, ip="10.0.0.2", port=20002, capacity=1, cpu=50, memory=60)
    asker = world.asker = world.chat("lobby-1", regions=(EU, USE, SG))
    asker.allocate(101, region=EU)
    asker.allocate(102, region=USE)
    assert asker.refuse(103, region=USE) == "No servers available"
    assert asker.refuse(104, region=SG) == "No servers available"
    return world


# --- what they print


def sheet(cli, *commands):
    """What a person would see who typed these, for a snapshot."""
    text = ""
    for command in commands:
        result = cli(*command)
        text += f"$ muster {' '.join(command)}\n{result.stdout}{result.stderr}\n"
    return text


@pytest.mark.embedded
def test_status(scene, cli):
    snapshot.check("status", sheet(cli, ["status"]))


def test_status_without_servers(cli):
    assert "No game server has registered yet." in cli("status").stdout


def test_servers(scene, cli):
    snapshot.check(
        "servers",
        sheet(
            cli,
            ["servers"],
            ["servers", "-o", "wide"],
            ["servers", "--region", "use"],
            ["servers", "--status", "offline"],
            ["server", "1"],
        ),
    )


def test_sessions(scene, cli):
    snapshot.check(
        "sessions",
        sheet(
            cli,
            ["sessions"],
            ["sessions", "--server", "2", "-o", "wide"],
            ["sessions", "--lobby", "101"],
            ["sessions", "--state", "lost"],
            ["session", "1"],
        ),
    )


def test_tickets(scene, cli):
    snapshot.check(
        "tickets",
        sheet(
            cli,
            ["tickets"],
            ["tickets", "--state", "failed", "-o", "wide"],
            ["tickets", "--limit", "1"],
            ["tickets", "--chat-server", "nobody"],
            ["ticket", "3"],
        ),
    )


def test_fleets_and_regions(scene, cli):
    snapshot.check("fleets_and_regions", sheet(cli, ["fleets"], ["regions"]), aligned=True)


def test_why(scene, cli):
    """Placed, full, and nobody there at all; by ticket and by lobby."""
    snapshot.check(
        "why",
        sheet(cli, ["why", "1"], ["why", "3"], ["why", "--lobby", "104"]),
    )


@pytest.mark.muster(ack_ms=2000)
def test_why_after_failures(world, cli):
    """Three servers that fail in their own ways before the fourth agrees."""
    world.server(port=20001, cpu=0, on_allocate="refuse")
    world.server(port=20002, cpu=10, on_allocate="silent")
    world.server(port=20003, cpu=20, on_allocate="refuse")
    world.server(port=20004, cpu=90)
    world.chat().allocate(7)
    text = cli("why", "--lobby", "7").stdout
    outcomes = re.findall(r"^ +(\d+)  (\w+)", text, re.MULTILINE)
    assert outcomes == [
        ("1", "refused"),
        ("2", "timed_out"),
        ("3", "refused"),
        ("4", "acknowledged"),
    ]


def test_why_names_the_newest_request_of_a_lobby(world, cli):
    asker = world.chat()
    asker.refuse(7)
    world.server()
    asker.allocate(7)
    assert json.loads(cli("why", "--lobby", "7", "-o", "json").stdout)["ticket"]["state"] == "done"
    assert "nobody has asked for lobby 99" in cli("why", "--lobby", "99", code=1).stderr
    asked_by = cli("why", "--lobby", "7", "--chat-server", "nobody", code=1).stderr
    assert "as chat server nobody" in asked_by


@pytest.mark.parametrize("arguments", [[], ["1", "--lobby", "2"]], ids=str)
def test_why_needs_one_of_two(cli, arguments):
    assert "TICKET or --lobby" in cli("why", *arguments, code=2).stderr


def test_ticket_waits_for_its_answer(world, cli, background):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    waiting = background("ticket", "1", "--wait", "20s", "-o", "json")
    assert json.loads(cli("ticket", "1", "-o", "json").stdout)["state"] == "open"
    assert waiting.process.poll() is None
    server.accept(offer)
    assert waiting.ends() == 0
    assert json.loads(waiting.text())["state"] == "done"


def test_json_is_what_the_api_answers(scene, cli):
    servers = json.loads(cli("servers", "-o", "json").stdout)
    assert [s["id"] for s in servers] == ["1", "2"]
    assert servers[0]["ip"] == "10.0.0.1" and servers[0]["cpu_percent"] == 10
    assert json.loads(cli("server", "1", "-o", "json").stdout) == servers[0]
    assert json.loads(cli("servers", "--status", "offline", "-o", "json").stdout) == []
    status = json.loads(cli("status", "-o", "json").stdout)
    assert status["sessions"] == 2 and len(status["refusals"]) == 2
    assert set(json.loads(cli("why", "3", "-o", "json").stdout)) == {
        "ticket",
        "sentence",
        "tries",
        "hosts",
        "passed_over",
    }


def test_lists_have_all_pages(world, cli):
    """More than the API gives at once."""
    asker = world.chat()
    n = 1003
    for lobby in range(1, n + 1):
        asker.request(lobby)
    for lobby in range(1, n + 1):
        asker.refused(lobby)
    ids = [t["id"] for t in json.loads(cli("tickets", "-o", "json").stdout)]
    assert ids == [str(i) for i in range(n, 0, -1)], "the newest first"
    oldest = json.loads(cli("tickets", "-o", "json", "--order", "oldest").stdout)
    assert [t["id"] for t in oldest] == ids[::-1]
    assert len(json.loads(cli("tickets", "-o", "json", "--limit", "1001").stdout)) == 1001
    lines = cli("tickets", "--limit", "2000").stdout.splitlines()
    assert len(lines) == n + 1 and lines[0].split()[0] == "ID"
    assert len({line.index("default") for line in lines[1:]}) == 1, "aligned across pages"
    *lines, last = cli("tickets").stdout.splitlines()
    assert len(lines) == 101 and lines[1].split()[0] == str(n)
    assert last == "More are kept; --limit N shows more of them."


# --- changing


def test_changes(scene, cli):
    snapshot.check(
        "changes",
        sheet(
            cli,
            ["drain", "2", "--no-wait"],
            ["undrain", "2"],
            ["end", "2"],
            ["drain", "2", "--no-wait", "-o", "json"],
            ["audit"],
        )
        .replace('"heard_at":null', '"heard_at":"<time>"')
        .replace(str(scene.muster.http_address[1]), "<port>"),
    )


def test_drain_waits_and_shows_what_is_left(scene, background):
    scene.asker.allocate(105, region=EU)
    draining = background("drain", "1")
    draining.shows(r"server 1 is draining: 2 matches left \(20 players\)\n")
    scene.eu.end(101)
    draining.shows(r"1 match left \(10 players\)\n")
    assert draining.process.poll() is None
    scene.eu.end(105)
    assert draining.ends() == 0
    assert draining.text().splitlines() == [
        "server 1 is draining: 2 matches left (20 players)",
        "server 1 is draining: 1 match left (10 players)",
        "server 1 is drained: it holds no match",
    ]
    assert scene.asker.refuse(106, region=EU) == "No servers available"


def test_drain_on_a_terminal_writes_over_its_line(scene):
    with Terminal("drain", "1", *where(scene)) as terminal:
        terminal.shows(r"server 1 is draining: 1 match left \(\d+ players\), [1-9] s")
        scene.eu.end(101)
        assert terminal.ends() == 0
        assert terminal.screen.text.strip() == "server 1 is drained: it holds no match"


def test_drain_stops_waiting_after_its_timeout(scene, cli):
    result = cli("drain", "1", "--timeout", "1s", code=1)
    assert "stopped waiting with 1 match left" in result.stderr
    assert "'muster undrain 1'" in result.stderr
    assert json.loads(cli("server", "1", "-o", "json").stdout)["draining_by"] == ["operator"]


def test_interrupted_drain_says_that_it_goes_on(scene, background):
    draining = background("drain", "1")
    draining.shows("1 match left")
    draining.process.send_signal(signal.SIGINT)
    assert draining.ends() == 1
    assert "goes on draining" in draining.errors()


def test_drain_outlives_a_restart(scene, background):
    draining = background("drain", "1")
    draining.shows("1 match left")
    assert scene.muster.term() == 0
    errors = draining.process.stderr
    assert b"does not answer; asking again" in errors.readline()
    scene.muster.restart()
    scene.eu.reconnect()
    scene.eu.end(101)
    assert draining.ends() == 0, draining.errors()
    assert draining.text().endswith("server 1 is drained: it holds no match\n")
    assert draining.errors() == "", "one line about it"


def test_drain_whose_muster_stays_away_says_that_it_is_stored(scene, background):
    draining = background("drain", "1", "--timeout", "2s")
    draining.shows("1 match left")
    assert scene.muster.term() == 0
    assert draining.ends() == 3
    first, second = draining.errors().splitlines()
    assert "asking again" in first
    assert "the drain of server 1 is stored and goes on" in second
    assert "'muster undrain 1'" in second


def test_drain_as_json_prints_the_server_when_it_is_empty(scene, background):
    draining = background("drain", "1", "-o", "json")
    scene.wait(lambda: scene.eu.take("SV_DRAIN"), "drain")
    scene.eu.end(101)
    assert draining.ends() == 0
    assert json.loads(draining.text())["sessions"] == 0


def test_undrain_of_a_server_that_drains_itself(world, cli):
    server = world.server()
    server.send(chat.sv_drain(1))
    server.expect("SV_DRAIN_ACK")
    assert cli("drain", "1").stdout == "server 1 is drained: it holds no match\n"
    assert cli("undrain", "1").stdout == "server 1 is available\n"


@pytest.mark.parametrize(
    "arguments,sentence",
    [
        (["server", "99"], "no server 99"),
        (["session", "99"], "no session 99"),
        (["ticket", "99"], "no ticket 99"),
        (["why", "99"], "no ticket 99"),
        (["drain", "99"], "no server 99"),
        (["undrain", "99"], "no server 99"),
        (["end", "99"], "no session 99"),
        (["token", "revoke", "99"], "no token 99"),
        (["token", "rotate", "99"], "no token 99"),
        (["servers", "--fleet", "defualt"], "Did you mean 'default'?"),
        (["servers", "--region", "EUU"], "no region"),
        (["token", "enrol", "--role", "chat", "--fleet", "x"], "no fleet 'x'"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_refusals_are_the_apis_sentence(cli, arguments, sentence):
    result = cli(*arguments, code=1)
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not result.stdout


# --- tokens


LOCKED = {"dev": False, "tokens": [{"token": "c", "role": "chat"}]}


@pytest.mark.muster(**LOCKED)
def test_life_of_an_enrolment_token(world, cli, background, tmp_path):
    """Made, used by a real game server, rotated, revoked: the server is cut off."""
    made = cli("token", "enrol", "--role", "server", "--fleet", "default", "--regions", "EU",
               "--name", "rack 4", "--expires", "30d")
    token = made.stdout.strip()
    assert token and "\n" not in token
    assert "token 1 for role server, fleet default" in made.stderr

    def game_server(with_token, port):
        host, server_port = world.muster.server_address
        out = open(tmp_path / f"game-{port}", "wb")
        process = subprocess.Popen(
            [binary(), "game-server", "--server", f"{host}:{server_port}", "--region", "EU",
             "--port", str(port)],
            stdout=out, stderr=out, env={**os.environ, "MUSTER_ENROL_TOKEN": with_token})
        out.close()
        return process, tmp_path / f"game-{port}"

    def connections():
        return json.loads(cli("token", "list", "-o", "json").stdout)[0]["connections"]

    first, first_says = game_server(token, 31001)
    second = None
    try:
        world.wait(lambda: connections() == 1, "connected game server")
        snapshot.check("token_list", sheet(cli, ["token", "list"], ["token", "list", "-o", "wide"]))

        newer = cli("token", "rotate", "1", "--grace", "1h").stdout.strip()
        assert newer != token
        second, second_says = game_server(newer, 31002)
        world.wait(lambda: connections() == 2, "the old and the new token at work")

        assert cli("token", "revoke", "1").stdout == "token 1 is revoked\n"
        world.wait(lambda: connections() == 0, "end of the connections")
        assert "over already" in cli("token", "revoke", "1", code=1).stderr
        world.wait(lambda: "Invalid token" in first_says.read_text(), "refusal on return")
        world.wait(lambda: "Invalid token" in second_says.read_text(), "refusal on return")
    finally:
        for process in filter(None, (first, second)):
            process.terminate()
            process.wait(10)


def test_access_token_allows_what_it_was_issued_for(world, cli):
    world.server()
    issued = cli("token", "issue", "--account", "eye", "--scopes", "muster_read", "--expires", "1h")
    url, token = where(world)[:2], issued.stdout.strip()
    looking = run("servers", *url, "--token", token)
    assert looking.returncode == 0, looking.stderr
    steering = run("drain", "1", *url, "--token", token)
    assert steering.returncode == 1 and "muster_admin" in steering.stderr
    by_environment = run("servers", *url, env={"MUSTER_TOKEN": token})
    assert by_environment.returncode == 0


def test_tokens_are_alone_on_standard_output(cli):
    issued = cli("token", "issue", "--account", "a", "--scopes", "muster_read,muster_admin")
    assert re.fullmatch(r"[\w.-]+\n", issued.stdout)
    assert json.loads(cli("token", "issue", "--account", "a", "--scopes", "muster_read", "-o",
                          "json").stdout)["scopes"] == ["muster_read"]


def test_scopes_of_other_services_can_be_issued(cli):
    """The seed's game server extends a player's token by profile_write, which is none of ours."""
    issued = cli("token", "issue", "--account", "a", "--scopes", "game,profile_write,muster_raed")
    claims = jwt.decode(issued.stdout.strip(), options={"verify_signature": False})
    assert claims["sco"] == "game,profile_write,muster_raed"
    assert issued.stderr.splitlines()[1:] == [
        "muster token issue: warning: profile_write is no scope of Muster's; it allows nothing here",
        "muster token issue: warning: muster_raed is no scope of Muster's (did you mean muster_read?);"
        " it allows nothing here",
    ]
    for wrong in ("a b", "a\u00e4", "x" * 65, '["a,b"]'):
        refused = cli("token", "issue", "--account", "a", "--scopes", wrong, code=1)
        assert "A scope is at most 64 letters" in refused.stderr


# --- how they end


@pytest.mark.parametrize("verb", VERBS)
def test_success(verb, scene, cli, background):
    if verb == "events":
        following = background("events", "--limit", "1")
        scene.wait(lambda: happens(scene, following), "event")
        assert following.process.returncode == 0
        return
    if verb.startswith("token r"):
        cli("token", "enrol", "--role", "server", "--fleet", "default")
    more = ["--no-wait"] if verb == "drain" else []
    assert cli(*arguments_of(verb), *more).stdout


lobbies = itertools.count(5000)


def happens(world, following):
    """Makes something happen; true when that was enough for whoever follows."""
    world.asker.refuse(next(lobbies), region=SG)
    return following.process.poll() is not None


@every_verb
def test_wrong_usage_exits_2(verb):
    result = run(*arguments_of(verb), "--no-such-option")
    assert result.returncode == 2
    assert "--no-such-option" in result.stderr and "--help" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@every_verb
def test_refused_exits_1(verb, world):
    result = run(*arguments_of(verb), *where(world), "--token", "not-a-token")
    assert result.returncode == 1
    assert "access token is not valid" in result.stderr and "--token" in result.stderr
    assert not result.stdout


@every_verb
def test_unreachable_exits_3(verb):
    result = run(*arguments_of(verb), "--url", "http://127.0.0.1:1", "--token", "t")
    assert result.returncode == 3
    assert "http://127.0.0.1:1" in result.stderr and "muster serve" in result.stderr
    assert "MUSTER_URL" in result.stderr
    assert not result.stdout and len(result.stderr.splitlines()) == 1


@every_verb
def test_help_has_an_example(verb):
    result = run(*verb.split(), "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"Usage: muster {verb}")
    for part in ("Example:\n  muster ", "--url URL", "Exit: 0 done"):
        assert part in result.stdout
    assert run("help", *verb.split()).stdout == result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "typed,meant",
    [
        (["stauts"], "status"),
        (["serverss"], "servers"),
        (["token", "enroll"], "token enrol"),
        (["tokne"], "token"),
        (["servers", "--fleat", "x"], "--fleet"),
        (["servers", "-o", "jsn"], "json"),
        (["servers", "--status", "availabel"], "available"),
        (["drain", "1", "--nowait"], "--no-wait"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_words_suggest_the_right_one(typed, meant):
    result = run(*typed)
    assert result.returncode == 2
    assert f"id you mean '{meant}'?" in result.stderr


@pytest.mark.parametrize(
    "arguments,sentence",
    [
        (["server"], "needs a SERVER"),
        (["server", "abc"], "SERVER is a number"),
        (["server", "1", "2"], "one SERVER at a time"),
        (["servers", "1"], "takes no word"),
        (["servers", "--limit", "0"], "--limit takes a number"),
        (["ticket", "1", "--wait", "1w"], "--wait takes a time"),
        (["token", "enrol"], "--role is needed"),
        (["status", "--url", "ftp://x"], "--url takes a URL as"),
        (["status", "--token", "a b"], "no access token"),
        (["token"], "token enrol"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_usage_says_what_is_right(arguments, sentence):
    result = run(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["servers"],
        ["status", "-o", "json"],
        ["servers", "--watch"],
        ["drain", "1", "--no-wait"],
        ["token", "enrol", "--role", "server", "--fleet", "default"],
        ["--version"],
        ["help"],
        ["openapi"],
        ["config", "show"],
    ],
    ids=" ".join,
)
def test_full_disk_is_noticed(world, arguments):
    world.server()
    there = where(world) if arguments[0] in VERBS or arguments[0] == "token" else []
    with open("/dev/full", "w") as full:
        result = subprocess.run([binary(), *arguments, *there], stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=30)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "muster: cannot write to standard output: no space left on the device; make room"
    )


def test_full_disk_is_noticed_by_those_who_print_much():
    with open("/dev/full", "w") as full:
        result = subprocess.run([binary(), "help", "--markdown"], stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=30)
    assert result.returncode == 1
    assert result.stderr.startswith("muster: cannot write to standard output: ")


@pytest.mark.parametrize("arguments", [["servers"], ["servers", "--watch"], ["help"]], ids=" ".join)
@pytest.mark.parametrize("ignored", [False, True])
def test_reader_that_has_enough_is_no_mistake(world, arguments, ignored):
    """With SIGPIPE, and where whoever started us has it ignored."""
    there = where(world) if arguments[0] in VERBS else []
    unread, pipe = os.pipe()
    os.close(unread)
    result = subprocess.run([binary(), *arguments, *there], stdout=pipe, stderr=subprocess.PIPE,
                            restore_signals=not ignored, text=True, timeout=30)
    os.close(pipe)
    assert result.returncode == (0 if ignored else -signal.SIGPIPE)
    assert not result.stderr


def test_help_groups_verbs():
    snapshot.check("help_of_token_enrol", run("token", "enrol", "--help").stdout, aligned=True)
    text = run("--help").stdout
    groups = re.findall(r"^(\w+)\n((?:  .*\n)+)", text, re.MULTILINE)
    assert [title for title, _ in groups] == ["Run", "Look", "Change", "Tools"]
    assert "  drain " in dict(groups)["Change"] and "  why " in dict(groups)["Look"]


def test_page_about_the_command_line_is_current():
    page = run("help", "--markdown").stdout
    assert page == (REPO / "docs" / "cli.md").read_text(), "muster help --markdown > docs/cli.md"


# --- which Muster, with which token


def test_url_and_token_from_the_environment(world, tmp_path):
    url, data = where(world)[1], Path(where(world)[3])
    token = (data / "admin.token").read_text().strip()
    assert run("status", env={"MUSTER_URL": url, "MUSTER_TOKEN": token}).returncode == 0
    assert run("status", "--url", url, "--data", data).returncode == 0
    without = run("status", "--url", url, "--data", tmp_path / "nowhere")
    assert without.returncode == 1
    assert "nowhere/admin.token cannot be read" in without.stderr


def test_folder_of_this_place_is_the_default(world):
    """./data, as 'muster serve' has it."""
    muster = os.path.abspath(binary())
    result = subprocess.run([muster, "status", *where(world)[:2]], cwd=world.muster.data.parent,
                            capture_output=True, text=True, timeout=30)
    assert world.muster.data.name == "data"
    assert result.returncode == 0, result.stderr


class Liar(http.server.BaseHTTPRequestHandler):
    """Something that is not Muster."""

    answer = (200, "application/json", b"{}")
    seen = []

    def do_GET(self):
        status, kind, body = self.answer
        self.seen.append(dict(self.headers))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def liar():
    """Serves answers of the test's choice; a function that sets them and returns the port."""

    class Handler(Liar):
        seen = []

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()

    def says(status, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        Handler.answer = (status, kind, body)
        return server.server_address[1]

    says.handler = Handler
    yield says
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "status,body",
    [
        (200, b"<html>hello</html>"),
        (404, b"<html>not here</html>"),
        (404, b"{}"),
        (500, b""),
        (302, b""),
        (200, b'{"items":[}'),
        (200, b'{"a":1,"a":2}'),
        (200, b"[" * 100 + b"]" * 100),
    ],
    ids=str,
)
def test_what_is_not_muster_is_unreachable(liar, status, body):
    port = liar(status, body)
    result = run("servers", "--url", f"http://127.0.0.1:{port}", "--token", "t")
    assert result.returncode == 3
    assert f"127.0.0.1:{port} is not Muster" in result.stderr


def test_ports_that_speak_something_else_are_named(world):
    host, port = world.muster.server_address
    result = run("status", "--url", f"http://{host}:{port}", "--token", "t")
    assert result.returncode == 3
    assert "is that Muster's HTTP port" in result.stderr
    host, port = world.muster.http_address
    result = run("status", "--url", f"https://{host}:{port}", "--token", "t")
    assert result.returncode == 3 and "https" in result.stderr


def test_token_of_the_folder_is_not_sent_to_other_machines(liar, tmp_path):
    """Only when the folder was named. 0.0.0.0 leads here, but is no address of this machine."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin.token").write_text("very-secret\n")
    port = liar(401, {"error": {"code": "no_access_token", "message": "A token is needed."}})
    muster = os.path.abspath(binary())

    def asks(url, *arguments):
        liar.handler.seen.clear()
        result = subprocess.run([muster, "status", "--url", url, *arguments], cwd=tmp_path,
                                capture_output=True, text=True, timeout=30)
        assert result.returncode == 1
        return liar.handler.seen[0].get("Authorization"), result.stderr

    assert asks(f"http://127.0.0.1:{port}")[0] == "Bearer very-secret"
    sent, said = asks(f"http://0.0.0.0:{port}")
    assert sent is None and "--data DIR" in said
    assert asks(f"http://0.0.0.0:{port}", "--data", "data")[0] == "Bearer very-secret"


@pytest.mark.parametrize(
    "host", ["127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1-x"]
)
def test_token_of_the_folder_is_not_sent_to_names_that_look_local(liar, tmp_path, host):
    """A proxy stands for whoever the name leads to; nothing local goes through one."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin.token").write_text("very-secret\n")
    port = liar(401, {"error": {"code": "no_access_token", "message": "A token is needed."}})
    result = subprocess.run(
        [os.path.abspath(binary()), "status", "--url", f"http://{host}"], cwd=tmp_path,
        env={**os.environ, "http_proxy": f"http://127.0.0.1:{port}", "no_proxy": ""},
        capture_output=True, text=True, timeout=30)
    assert result.returncode == 1, result.stderr
    assert "--data DIR" in result.stderr
    assert [headers["Host"] for headers in liar.handler.seen] == [host]
    assert "Authorization" not in liar.handler.seen[0]


def test_loopback_needs_no_proxy(world, cli):
    cli("status", env={"http_proxy": "http://127.0.0.1:1"})


# --- TLS


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    authority = secure.Authority(tmp_path_factory.mktemp("certs"))
    server, client = authority.issue("server"), authority.issue("client", client=True)
    stranger = secure.Authority(tmp_path_factory.mktemp("other")).issue("client", client=True)
    return SimpleNamespace(ca=authority.path, server=server, client=client, stranger=stranger)


@pytest.fixture
def over_tls(make_world, certs):
    """A Muster with that certificate; returns a function that asks it for its status."""

    def start(pair, **more):
        door = {"certificate": str(pair[0]), "key": str(pair[1]), **more}
        world = make_world(tls={"http": door})
        url = f"https://127.0.0.1:{world.muster.http_address[1]}"
        return lambda *options: run("status", "--url", url, "--data", world.muster.data, *options)

    return start


def test_https_with_the_authority(over_tls, certs):
    status = over_tls(certs.server)
    assert status("--tls-ca", certs.ca).returncode == 0
    unknown = status()
    assert unknown.returncode == 3 and "--tls-ca FILE" in unknown.stderr


def test_https_with_a_certificate_of_our_own(over_tls, certs):
    status = over_tls(certs.server, client_ca=str(certs.ca))
    own = ["--tls-cert", certs.client[0], "--tls-key", certs.client[1]]
    assert status("--tls-ca", certs.ca, *own).returncode == 0
    for _ in range(5):  # which call notices is a matter of chance
        without = status("--tls-ca", certs.ca)
        assert without.returncode == 3 and "https://127.0.0.1" in without.stderr
        assert "it may want our certificate: --tls-cert and --tls-key" in without.stderr
    wrong = ["--tls-cert", certs.stranger[0], "--tls-key", certs.stranger[1]]
    refused = status("--tls-ca", certs.ca, *wrong)
    assert refused.returncode == 3 and "it may not accept our certificate" in refused.stderr


@pytest.mark.parametrize(
    "options,sentence",
    [
        (["--tls-ca", "/nowhere/ca"], "cannot read /nowhere/ca"),
        (["--tls-cert", "/dev/null"], "belong together"),
    ],
    ids=str,
)
def test_wrong_tls_options(options, sentence):
    result = run("status", "--url", "https://127.0.0.1:1", *options)
    assert result.returncode == 2 and sentence in result.stderr


# --- what others wrote


NASTY = "a\x1b[2J\x07b\x9b31mc\x7f\u202ed\r\ne"


@pytest.mark.parametrize("output", ["table", "wide", "json"])
def test_control_characters_of_the_server_never_reach_the_terminal(liar, output):
    item = {"id": NASTY, "fleet": NASTY, "status": NASTY, NASTY: NASTY, "draining_by": [NASTY]}
    port = liar(200, {"items": [item], "next": None})
    there = ["--url", f"http://127.0.0.1:{port}", "--token", "t", "--no-color", "-o", output]
    with Terminal("servers", *there) as terminal:
        assert terminal.ends() == 0
        assert "\x1b" not in terminal.raw and "\x07" not in terminal.raw
        assert "\x9b" not in terminal.raw and "\u202e" not in terminal.raw
    port = liar(200, item)
    with Terminal("session", "1", *there) as terminal:
        assert terminal.ends() == 0
        assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", terminal.raw)


def test_control_characters_in_a_refusal_do_not_either(liar):
    port = liar(404, {"error": {"code": "x", "message": NASTY}})
    with Terminal("server", "1", "--url", f"http://127.0.0.1:{port}", "--token", "t") as terminal:
        assert terminal.ends() == 1
        assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", terminal.raw)


# --- terminals, colours, watching


ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.mark.parametrize("verb", ["status", "servers", "server", "why"])
def test_colours_on_a_terminal(scene, verb):
    with Terminal(*arguments_of(verb), *where(scene)) as terminal:
        assert terminal.ends() == 0
        assert terminal.screen.styled


@pytest.mark.parametrize(
    "options,env", [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})], ids=str
)
def test_no_colours_where_they_are_not_wanted(scene, options, env):
    with Terminal("status", *options, *where(scene), env=env) as terminal:
        assert terminal.ends() == 0
        assert not terminal.screen.styled


def test_watch_draws_over_a_terminal(world):
    """New things appear, ctrl-c gives the terminal back."""
    world.server(port=20001)
    with Terminal("servers", "--watch", *where(world)) as terminal:
        terminal.shows("20001")
        assert terminal.screen.alternate is not None and not terminal.screen.cursor_shown
        world.server(port=20002)
        terminal.shows("20002")
        assert terminal.screen.text.count("STATUS") == 1, "drawn over, not appended"
        terminal.press("\x03")
        assert terminal.ends() == 0
        assert terminal.is_as_before()


def test_watch_on_a_terminal_that_cannot_be_drawn_over_prints_blocks(world):
    with Terminal("servers", "--watch", *where(world), env={"TERM": "dumb"}) as terminal:
        terminal.wait(lambda: terminal.raw.count("STATUS") == 2, "two blocks")
        assert "\x1b" not in terminal.raw
        terminal.press("\x03")
        assert terminal.ends() == 0


def test_watch_fits_any_size(scene):
    for lobby in range(200, 220):
        scene.asker.refuse(lobby, region=SG)
    with Terminal("tickets", "--watch", *where(scene), columns=40, rows=8) as terminal:
        terminal.shows(r"\.\.\. \d+ more")
        terminal.size(120, 40)
        terminal.shows(r"REFUSED BECAUSE(.|\n)* 219 ")
        terminal.size(20, 4)
        assert len(terminal.screen.lines) <= 4


def test_watch_outlives_muster(world):
    world.server(port=20001)
    with Terminal("servers", "--watch", *where(world)) as terminal:
        terminal.shows("20001")
        assert world.muster.term() == 0
        terminal.shows("cannot reach Muster")
        assert "20001" in terminal.screen.text, "what was known last stays"
        world.muster.restart()
        terminal.wait(lambda: "cannot reach" not in terminal.screen.text, "return")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV])
def test_terminal_is_given_back_whatever_ends_it(world, number):
    with Terminal("status", "--watch", *where(world)) as terminal:
        terminal.shows("Muster")
        terminal.process.send_signal(number)
        assert terminal.ends() == (0 if number == signal.SIGTERM else -number)
        assert terminal.is_as_before()


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it(world):
    """In a shell with job control, as it must be: a process alone in its session cannot stop."""
    command = " ".join([os.path.abspath(binary()), "status", "--watch", *where(world)])
    with Terminal("-mc", f"{command}; echo BACK; fg; echo END", program="sh") as terminal:
        terminal.shows("Muster")
        terminal.press("\x1a")
        terminal.wait(lambda: "BACK" in terminal.raw, "shell")
        stopped = terminal.raw.index("BACK")
        assert LEAVE in terminal.raw[:stopped]
        terminal.wait(lambda: ENTER in terminal.raw[stopped:], "screen again")
        terminal.shows("Muster")
        terminal.press("\x03")
        terminal.ends()
        assert "END" in terminal.raw and terminal.is_as_before()


def test_watch_appends_blocks_elsewhere(scene, background):
    watching = background("fleets", "--watch")
    watching.shows(r"(?s)(NAME.*\n\n.*){2}NAME")
    watching.process.send_signal(signal.SIGINT)
    assert watching.ends() == 0
    assert "\x1b" not in watching.text()


def test_watched_blocks_outlive_muster(scene, background):
    watching = background("fleets", "--watch")
    watching.shows("NAME")
    assert scene.muster.term() == 0
    assert b"cannot reach Muster" in watching.process.stderr.readline()
    scene.muster.restart()
    blocks = watching.text().count("NAME")
    scene.wait(lambda: watching.text().count("NAME") > blocks + 1, "blocks again")
    watching.process.send_signal(signal.SIGINT)
    assert watching.ends() == 0
    assert "\n\n\n" not in watching.text() and watching.errors() == ""


def test_watch_as_json_is_one_document_after_another(scene, background):
    watching = background("servers", "--watch", "-o", "json")
    watching.shows(r"(?s)\]\n\[.*\]\n")
    watching.process.send_signal(signal.SIGTERM)
    assert watching.ends() == 0
    rest, documents = watching.text(), 0
    while rest.strip():
        items, end = json.JSONDecoder().raw_decode(rest)
        assert [s["id"] for s in items] == ["1", "2"]
        rest, documents = rest[end:].lstrip(), documents + 1
    assert documents >= 2


def test_reader_who_leaves_ends_it_quietly(scene):
    """muster servers | head -1"""
    process = subprocess.Popen([binary(), "servers", "--watch", *where(scene)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"ID" in process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) in (0, -signal.SIGPIPE)
    assert process.stderr.read() == b""
    process.stderr.close()


# --- events


def test_events_are_lines(scene, background):
    following = background("events", "--kinds", "ticket,server")
    until_it_follows(scene, following)
    scene.asker.allocate(300, region=EU)
    line = following.shows(r"(?m)^\d\d:\d\d:\d\d  ticket \d+  state=done  lobby=300 .*$")[0]
    assert "regions=EU" in line and "server=1" in line
    following.process.send_signal(signal.SIGINT)
    assert following.ends() == 0


def until_it_follows(world, following):
    """The stream begins with what happens after it was opened; so something must happen until it
    shows."""
    world.wait(lambda: world.asker.refuse(next(lobbies), region=SG) and following.text(),
               "first event")


def test_events_go_on_after_a_crash_without_gap_or_repeat(scene, background):
    following = background("events", "--kinds", "ticket", "--json")
    until_it_follows(scene, following)
    first = range(300, 310)
    for lobby in first:
        scene.asker.refuse(lobby, region=SG)
    scene.crash()
    scene.asker.reconnect()
    for lobby in range(310, 320):
        scene.asker.refuse(lobby, region=SG)

    def failed():
        events = [json.loads(line) for line in following.text().splitlines(True) if line[-1] == "\n"]
        return [e["data"]["lobby"] for e in events
                if e["event"] == "ticket" and e["data"]["state"] == "failed"
                and 300 <= e["data"]["lobby"] < 320]

    scene.wait(lambda: 319 in failed(), "the last event", timeout_s=30)
    assert failed() == list(range(300, 320))
    following.process.send_signal(signal.SIGTERM)
    assert following.ends() == 0
    assert "the connection is lost" in following.errors()


def test_events_from_a_given_one(scene, cli, background):
    following = background("events", "--kinds", "ticket", "--json", "--limit", "1")
    scene.wait(lambda: happens(scene, following), "event")
    event = json.loads(following.text())
    scene.asker.refuse(700, region=SG)
    rest = background("events", "--kinds", "ticket", "-o", "json", "--from", event["id"])
    rest.shows('"lobby":700')
    assert event["id"] not in {json.loads(x)["id"] for x in rest.text().splitlines()}


def test_wrong_kind_of_event_is_refused(cli):
    assert "'tikcet'" in cli("events", "--kinds", "tikcet", code=1).stderr
