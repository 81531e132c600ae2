"""The verbs for rooms, hosts, players and bans, against a host that starts nothing; logs and input
against one that starts real arenas."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
import snapshot
from fake_host import FakeHost
from muster_proc import binary, run
from players import Player, fleets
from terminal import Terminal

arena = pytest.mark.muster(fleets=fleets(binary="game"), default_region="EU")


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
        assert "\x1b" not in result.stdout, "colours in a pipe"
        return result

    return ask


@pytest.fixture
def host(world):
    with FakeHost(world.muster) as fake:
        yield fake


# Beside what snapshots make alike: what the next heartbeat changes.
SOMETHING_ELSE_EACH_TIME = [
    (r"^(servers|load_percent) +[\d.]+$", r"\1  <n>"),
    (r" \d+%( +\d+% +\d+%)", r" <load>\1"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b", "<date>"),
    (r"the oldest since \d+ s", "the oldest since <s>"),
]


def sheet(cli, *commands):
    """What a person would see who typed these, for a snapshot."""
    text = ""
    for command in commands:
        result = cli(*command)
        text += f"$ muster {' '.join(command)}\n{result.stdout}{result.stderr}\n"
    for pattern, word in SOMETHING_ELSE_EACH_TIME:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


# --- seats


@arena
def test_a_room_is_created_and_its_place_is_printed(host, cli):
    made = cli("room", "create", "arena", "--settings", '{"map": "dust"}')
    lines = dict(line.split(maxsplit=1) for line in made.stdout.splitlines())
    assert lines["room"] == "1" and lines["host"] == "203.0.113.7" and lines["port"] == "40000"
    assert len(lines["key"]) >= 32 and json.loads(lines["settings"]) == {"map": "dust"}
    assert "given back" in made.stderr
    server = host.spawned.get(timeout=10)
    assert server.spawn["version"] == "1.0", "the newest that is enabled"
    assert server.joined(lines["key"])["account"] == "cli"


@arena
def test_a_room_is_joined_by_filter_and_by_its_number(host, cli):
    cli("room", "create", "arena", "--settings", '{"map": "dust"}')
    fits = cli("room", "join", "arena", "--filter", '{"map": "dust"}', "--account", "anna", "-o",
               "json")
    assert json.loads(fits.stdout)["id"] == "1"
    none = cli("room", "join", "arena/main", "--filter", '{"map": "aztec"}', "--auto-create",
               "false", "--account", "ben", code=1)
    assert none.stderr.startswith("muster room join: ")
    entered = cli("room", "join", "1", "--account", "cleo", "-o", "json")
    assert json.loads(entered.stdout)["id"] == "1"
    seats = json.loads(cli("players", "-o", "json").stdout)
    assert [s["account"] for s in seats] == ["cli", "anna", "cleo"]


@arena
def test_a_players_own_token_is_used_as_it_is(world, host, cli):
    player = Player(world, "dora")
    result = run("room", "create", "arena/main", "--version", "1.0", *where(world), "--token",
                 player.token)
    assert result.returncode == 0, result.stderr
    assert [s["account"] for s in json.loads(cli("players", "-o", "json").stdout)] == ["dora"]


@arena
def test_waiting_is_shown_on_a_terminal(world):
    """The host says nothing until the line was seen."""
    with FakeHost(world.muster, script=lambda server: None) as host:
        with Terminal("room", "create", "arena", "--watch", *where(world)) as terminal:
            terminal.shows(r"room 1 is starting on host-1 in EU, \d+ s")
            host.spawned.get(timeout=10).inited()
            assert terminal.ends() == 0
            assert "is starting" not in terminal.screen.text
            assert re.search(r"key +\S{32}", terminal.screen.text)


@arena
def test_waiting_is_said_once_in_a_pipe(world):
    with FakeHost(world.muster, script=lambda server: None) as host:
        waiting = subprocess.Popen(
            [binary(), "room", "create", "arena", "-w", *where(world)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr.readline() == "room 1 is starting on host-1 in EU\n"
        host.spawned.get(timeout=10).inited()
        out, errors = waiting.communicate(timeout=20)
        assert waiting.returncode == 0 and out.startswith("room ")
        assert errors == "The seat is given back unless the key is used soon.\n"


@arena
def test_refusals_are_the_apis_sentence(world, cli):
    nowhere = cli("room", "create", "arena", code=1)
    assert "no healthy host" in nowhere.stderr.lower()
    assert "no room 99" in cli("room", "show", "99", code=1).stderr
    assert "no host 99" in cli("host", "99", code=1).stderr
    assert "no fleet 'arean'" in cli("room", "create", "arean", code=1).stderr
    assert "has no rooms" in cli("room", "create", "default", code=1).stderr
    assert "no server 99" in cli("terminate", "99", code=1).stderr
    assert "no server 99" in cli("logs", "99", code=1).stderr
    assert cli("ban", "show", "99", code=1).stderr == "muster ban show: There is no such ban.\n"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["room", "create"], "needs a FLEET"),
        (["room", "create", "a/b/c"], "GAME/SERVER"),
        (["room", "join", "12", "--region", "EU"], "region is for a room that is chosen"),
        (["player"], "needs an ACCOUNT"),
        (["player", "a", "--at", "noon"], "--at takes a time of the day as 03:12 in UTC"),
        (["player", "a", "--at", "03:12", "--since", "2h"], "takes --at or --since, not both"),
        (["ban", "issue", "--reason", "x", "--expires", "1d"], "needs a ACCOUNT"),
        (["ban", "issue", "a", "--reason", "x"], "--expires is needed"),
        (["stdin", "3"], "needs a LINE"),
        (["bots", "arena", "--players", "0"], "--players takes a number"),
        (["logs"], "needs a SERVER"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_usage_says_what_is_right(arguments, sentence):
    result = run(*arguments, "--url", "http://127.0.0.1:1", "--token", "t")
    assert result.returncode == 2, result.stderr
    assert sentence in result.stderr


# --- looking


@pytest.fixture
def scene(world, host, cli):
    """Two rooms, one of them over, a player in the other and one on his way."""
    cli("room", "create", "arena", "--account", "anna", "--settings", '{"map": "dust"}')
    first = host.spawned.get(timeout=10)
    key = json.loads(cli("room", "join", "1", "--account", "ben", "-o", "json").stdout)["key"]
    first.joined(key)
    cli("room", "create", "arena", "--account", "cleo")
    second = host.spawned.get(timeout=10)
    host.servers.pop(second.id)
    second.say("exited", exit_code=3, peak_memory=4096, run_ms=1500, dropped_bytes=1048576,
               tail="loading\nout of \x1b[31mbullets\n")
    return host


@arena
def test_what_lists_and_objects_look_like(scene, cli):
    snapshot.check("rooms", sheet(
        cli, ["rooms"], ["rooms", "--state", "open", "-o", "wide"], ["room", "show", "1"],
        ["hosts"], ["host", "1"], ["players"], ["player", "ben"], ["player", "nobody"],
        ["seats"], ["refusals"], ["changes"],
        ["sessions"], ["tickets"], ["why", "1"], ["fleets"]))


@arena
def test_server_says_how_it_ended(scene, cli):
    room = json.loads(cli("room", "show", "2", "-o", "json").stdout)
    shown = cli("server", room["server"]).stdout
    assert re.search(r"^exit\.code +3$", shown, re.MULTILINE)
    assert re.search(r"^exit\.dropped_bytes +1048576$", shown, re.MULTILINE)
    assert shown.endswith("The last lines of its output\nloading\nout of ?[31mbullets\n")


@arena
def test_status_counts_rooms(scene, cli):
    assert (
        "rooms      1 open, 0 starting, 0 ending; 1 player, 1 coming; 1 of 1 host healthy\n"
        in cli("status").stdout
    )


@arena
def test_json_is_what_the_api_answers(scene, cli):
    both = json.loads(cli("player", "ben", "-o", "json").stdout)
    assert [s["room"] for s in both["player"]["places"]] == ["1"]
    assert both["player"]["bans"] == []
    assert [e["step"] for e in both["journey"]["entries"]] == ["joined", "reserved", "asked"]


# --- bans


@arena
def test_life_of_a_ban(scene, cli):
    snapshot.check("bans", sheet(
        cli, ["ban", "issue", "ben", "--reason", "cheating", "--expires", "30d"], ["ban", "list"],
        ["ban", "update", "1", "--reason", "really cheating", "--expires", "2099-12-31 23:59:59"],
        ["ban", "show", "1"], ["player", "ben"]))
    assert scene.kicked.get(timeout=10)[1]["key"], "he was playing"
    refused = cli("room", "join", "arena", "--account", "ben", code=1)
    assert "really cheating" in refused.stderr
    assert cli("ban", "lift", "1").stdout == "ban 1 is lifted\n"
    cli("room", "join", "arena", "--account", "ben")


# --- hosts, versions, seats


def executable(name):
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    return info


@arena
def test_a_version_that_is_not_switched_to_is_not_the_one_played(host, world, cli, tmp_path):
    with tarfile.open(tmp_path / "game.tar.gz", mode="w:gz") as out:
        out.addfile(executable("game"))
    cli("deploy", "arena", "2.0", str(tmp_path / "game.tar.gz"))
    cli("room", "create", "arena")
    assert host.spawned.get(timeout=10).spawn["version"] == "1.0"
    shown = {v["name"]: v["enabled"] for v in json.loads(cli("versions", "arena", "-o", "json").stdout)}
    assert (shown["1.0"], shown["2.0"]) == (True, False)


@arena
def test_which_version_runs_where(scene, cli):
    """Of two rooms one is over: it runs nowhere."""
    def where(*more):
        return json.loads(cli("version", "where", *more, "-o", "json").stdout)

    (place,) = where()
    assert (place["fleet"], place["version"], place["rooms"], place["players"]) == ("arena", "1.0", 1, 1)
    assert place["host_name"] == scene.name
    cli("room", "create", "arena", "--account", "dora")
    (place,) = where("arena")
    assert (place["rooms"], place["players"]) == (2, 1)
    assert where("--version", "9") == []
    assert "no fleet 'nope'" in cli("version", "where", "nope", code=1).stderr
    table = cli("version", "where").stdout.split("\n")
    assert table[0].split() == ["FLEET", "VERSION", "HOST", "REGION", "DEPLOYMENT", "ROOMS", "PLAYERS"]
    assert table[1].split()[-2:] == ["2", "1"]


@arena
def test_what_operators_turn_off_and_on(scene, world, cli):
    query = {"fleet": "arena", "version": "1.0"}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as out:
        out.addfile(executable("game"))
    world.api.ask("POST", "/v1/deployments", query, body=archive.getvalue(),
                  content_type="application/octet-stream")
    snapshot.check("operators", sheet(
        cli, ["versions"], ["versions", "arena", "-o", "wide"], ["deployments"],
        ["version", "disable", "arena", "1.0"], ["version", "enable", "arena", "1.0"],
        ["host", "disable", "1"], ["host", "enable", "1"]))
    cli("version", "disable", "arena", "1.0")
    assert "turned off" in cli("room", "create", "arena", "--version", "1.0", code=1).stderr
    cli("version", "enable", "arena", "1.0")
    cli("host", "disable", "1")
    assert "host" in cli("room", "create", "arena", code=1).stderr
    assert json.loads(cli("host", "enable", "1", "-o", "json").stdout)["enabled"] is True


@arena
def test_a_host_has_a_name(scene, world, cli):
    by_number, by_name = (json.loads(cli("host", host, "-o", "json").stdout)
                          for host in ("1", scene.name))
    assert by_name["id"] == by_number["id"] == "1"
    assert cli("host", scene.name).stdout.startswith("May it be taken away now? No: ")
    assert "no more game servers" in cli("host", "disable", scene.name).stdout
    assert world.api.get("/v1/hosts/1")["enabled"] is False
    cli("host", "enable", scene.name)
    assert world.api.get("/v1/hosts/1")["enabled"] is True
    assert cli("host", "elsewhere", code=1).stderr == \
        "muster host: There is no host 'elsewhere'; 'muster hosts' lists them.\n"
    assert "HOST is a number" in cli("host", "", code=2).stderr
    assert [h["id"] for h in world.api.get("/v1/hosts?name=elsewhere")["items"]] == []


@arena
def test_a_player_is_thrown_out(scene, cli):
    (seat,) = json.loads(cli("players", "--search", "ben", "-o", "json").stdout)
    said = cli("kick", seat["seat"], "--reason", "asleep").stdout
    assert said == f"seat {seat['seat']} is free, and its player is thrown out\n"
    assert scene.kicked.get(timeout=10)[1]["reason"] == "asleep"
    assert json.loads(cli("players", "--search", "ben", "-o", "json").stdout) == []
    assert "There is no seat" in cli("kick", seat["seat"], code=1).stderr


# --- servers


@arena
def test_a_server_is_ended(scene, cli):
    room = json.loads(cli("room", "show", "1", "-o", "json").stdout)
    told = cli("terminate", room["server"])
    assert told.stdout.startswith(f"server {room['server']} is told to end")
    assert scene.terminated.get(timeout=10)[0] == room["server"]


# --- bots


class Arena:
    """Game servers of a host as far as bots can tell: TCP, and the first line is a key."""

    def __init__(self):
        self.doors = []
        self.players = []

    def start(self, server):
        door = socket.create_server(("127.0.0.1", 0))
        self.doors.append(door)
        server.ports = [door.getsockname()[1]]
        threading.Thread(target=self.serve, args=(server, door), daemon=True).start()
        server.inited()

    def serve(self, server, door):
        with contextlib.suppress(OSError):
            while True:
                player = threading.Thread(
                    target=self.play, args=(server, door.accept()[0]), daemon=True)
                player.start()
                self.players.append(player)

    def play(self, server, connection):
        with connection, connection.makefile("rw") as lines:
            key = lines.readline().strip()
            server.joined(key)
            for _ in lines:
                pass
            server.left(key)

    def end(self):
        """When the bots are gone: Muster is told so while it is there."""
        for door in self.doors:
            door.close()
        for player in self.players:
            player.join(10)


@arena
def test_bots_come_and_go(world):
    game = Arena()
    with FakeHost(world.muster, address="127.0.0.1", script=game.start):
        bots = subprocess.Popen(
            [binary(), "bots", "--players", "2", "--seconds", "1", *where(world)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            seen = ""
            while not ("anna leaves room" in seen and "ben is in room" in seen):
                line = bots.stdout.readline()
                assert line, bots.stderr.read()
                seen += line
            bots.send_signal(signal.SIGINT)
            assert bots.wait(20) == 0
        finally:
            bots.kill()
            bots.wait()
            game.end()
    assert re.match(r"anna is in room 1\n", seen)


@arena
def test_bots_say_why_they_get_no_seat(world):
    bots = subprocess.Popen([binary(), "bots", "arena", *where(world)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        assert bots.stdout.readline().lower().startswith("anna gets no seat: no healthy host in eu")
        world.muster.term()
        assert bots.wait(20) == 3
    finally:
        bots.kill()
        bots.wait()


# --- real processes


@arena
def test_an_upload_shows_bytes_and_rate(cli, world, tmp_path):
    path = tmp_path / "game.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=0) as archive:
        info = executable("game")
        info.size = 8 << 20
        archive.addfile(info, io.BytesIO(bytes(8 << 20)))
    with Terminal("deploy", "arena", "2.0", path, *where(world), columns=80) as terminal:
        assert terminal.ends() == 0
        bars = re.findall(r"\r\x1b\[K\[[# ]{30}\] +\d+ %, \d+\.\d of 8\.0 MiB, \d+\.\d MiB/s",
                          terminal.raw)
        assert bars and "MiB" not in terminal.screen.text
        assert terminal.screen.text.startswith("deployment 1 (")
    assert "%" not in cli("deploy", "arena", "2.0", path).stdout, "too short for a line"


@arena
def test_a_disabled_host_is_waited_for(host, cli, world):
    """Rooms and players that are left are shown until there are none."""
    seat = json.loads(cli("room", "create", "arena", "--account", "anna", "-o", "json").stdout)
    server = host.spawned.get(timeout=10)
    server.joined(seat["key"])
    gave_up = cli("host", "disable", "1", "--timeout", "1s", code=1)
    assert "stopped waiting with 1 room left (1 player); host 1 stays disabled" in gave_up.stderr
    assert "'muster host enable 1' takes that back" in gave_up.stderr
    with subprocess.Popen([binary(), "host", "disable", "1", "--wait", *where(world)],
                          stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "host 1 gets nothing new: 1 room left (1 player)\n"
        cli("terminate", server.id)
        assert waiting.stdout.read().splitlines()[-1] == "host 1 is empty: no room is there"
        assert waiting.wait(10) == 0


@arena
def test_a_ban_is_watched(host, cli, world):
    cli("ban", "issue", "alice", "--reason", "cheating", "--expires", "30d")
    with subprocess.Popen([binary(), "ban", "show", "1", "--watch", *where(world)],
                          stdout=subprocess.PIPE, text=True) as watching:
        assert any(re.match(r"reason +cheating$", line) for line in watching.stdout)
        cli("ban", "update", "1", "--reason", "forgiven", "--expires", "30d")
        assert any(re.match(r"reason +forgiven$", line) for line in watching.stdout)
        watching.terminate()
        assert watching.wait(10) == 0


@pytest.fixture
def arena_host(make_world, tmp_path):
    """A Muster and a host that starts real arenas. Returns the world."""
    program = Path(binary()).with_name("arena")
    assert program.exists(), f"build first: {program} does not exist"
    world = make_world(fleets=fleets(binary=str(program)), default_region="EU")
    url = where(world)[1]
    token = run("token", "issue", "--account", "h", "--scopes", "game_host", *where(world)).stdout
    agent = subprocess.Popen(
        [binary(), "agent", "--control", url, "--region", "EU", "--listen", "127.0.0.1:0",
         "--data", tmp_path / "agent", "--heartbeat-ms", "200", "--uids", "none",
         "--end-servers"],
        env={**os.environ, "MUSTER_TOKEN": token.strip()}, stdout=subprocess.PIPE)
    try:
        assert agent.stdout.readline().startswith(b"ready "), "it starts"
        world.wait(lambda: world.api.get("/v1/hosts")["items"], "the host's first heartbeat")
        yield world
    finally:
        agent.terminate()
        agent.wait(30)
        agent.stdout.close()


def test_logs_input_and_end_of_a_real_server(arena_host):
    def ask(*arguments):
        result = run(*arguments, *where(arena_host))
        assert result.returncode == 0, result.stderr
        return result.stdout

    seat = json.loads(ask("room", "create", "arena", "--account", "anna", "-o", "json"))
    server = json.loads(ask("room", "show", seat["id"], "-o", "json"))["server"]
    with subprocess.Popen([binary(), "logs", server, "--watch", *where(arena_host)],
                          stdout=subprocess.PIPE, text=True) as following, \
            socket.create_connection(
                (seat["location"]["host"], seat["location"]["ports"][0])) as game:
        lines = game.makefile()
        game.sendall(seat["key"].encode() + b"\n")
        assert lines.readline() == "welcome anna\n"
        assert any("anna" in line for line in following.stdout), "it is printed as it happens"
        objects = [json.loads(x) for x in ask("logs", server, "-o", "json").splitlines()]
        assert any("anna" in x["line"] for x in objects)
        assert ask("stdin", server, "five minutes") == f"server {server} has been given the line\n"
        assert "operator: five minutes\n" in lines
        assert "anna" in ask("logs", server, "--lines", "50")
        ask("terminate", server)
        following.stdout.read()
        assert following.wait(20) == 0, "it ends with the server"
    ended = lambda: '"exit":{' in ask("server", server, "-o", "json")  # noqa: E731
    arena_host.wait(ended, "the report of its end")
    assert re.search(r"^exit\.code +0$", ask("server", server), re.MULTILINE)
