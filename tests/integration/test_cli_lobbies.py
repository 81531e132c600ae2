"""The verbs for lobbies: what a person is told of one, and what he can do."""

import json
import re

import pytest
from muster_proc import run

TEAMS = '[[{"account": 7, "name": "Ann"}], [{"account": 8, "name": "Bob"}]]'


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(world):
    host, port = world.muster.http_address
    where = ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]

    def ask(*arguments, code=0):
        result = run(*arguments, *where)
        assert result.returncode == code, result.stdout + result.stderr
        return result

    return ask


def make(cli, *options):
    """Its number."""
    said = cli("lobby", "create", "--region", "EU", "--teams", TEAMS, *options, "-o", "json").stdout
    return json.loads(said)["id"]


def rows(text):
    """The lines of a table by their columns; two blanks part them."""
    head, *lines = [re.split(r" {2,}", line.strip()) for line in text.strip().splitlines()]
    return [dict(zip(head, line)) for line in lines]


def test_lobby_of_one_is_counted_right(world, cli):
    world.server(on_allocate="silent")
    alone = ["--teams", '[[{"account": 9}]]']
    number = json.loads(cli("lobby", "create", "--region", "EU", *alone, "-o", "json").stdout)["id"]
    assert "It waits for a server and for 1 of 1 player to load, " in cli("lobby", number).stdout


def test_it_says_what_it_waits_for(world, cli):
    server = world.server(on_allocate="silent")
    ann = world.client(7)
    number = make(cli, "--map", "caldavar")
    sentence, players, fields = cli("lobby", number).stdout.split("\n\n")
    assert re.fullmatch(
        rf"lobby {number} is loading\n"
        r"It waits for a server and for 2 of 2 players to load, 1 of whom is not connected\.\n"
        r"Unless it starts it is aborted in (1 m|\d+ s)\.", sentence), sentence
    assert rows(players) == [
        {"TEAM": "1", "SLOT": "0", "ACCOUNT": "7", "NAME": "Ann", "GROUP": "1", "LOADED": "no",
         "CONNECTED": "yes"},
        {"TEAM": "2", "SLOT": "0", "ACCOUNT": "8", "NAME": "Bob", "GROUP": "2", "LOADED": "no",
         "CONNECTED": "no"}]
    assert re.search(r"^map +caldavar$", fields, re.M)
    offer = server.expect_offer(int(number))
    server.accept(offer)
    assert server.ready_answer(int(number)).ok
    ann.say_loaded(int(number))
    ann.round_trip()
    assert "It waits for 1 of 2 players to load, 1 of whom is not connected." in (
        cli("lobby", number).stdout)
    bob = world.client(8)
    assert "It waits for 1 of 2 players to load.\n" in cli("lobby", number).stdout
    bob.say_loaded(int(number))
    bob.started()
    assert re.search(rf"^It started .+ on server {server.server_id}, as session \d+\.$",
                     cli("lobby", number).stdout, re.M)
    said = cli("lobby", "abort", number).stdout
    assert said.startswith(f"lobby {number} is ")
    bob.aborted()
    server.expect_cancel(int(number))
    assert "Its match ended " in cli("lobby", number).stdout


def test_it_says_why_it_was_aborted(world, cli):
    number = make(cli, "--requeue", "true")
    said = cli("lobby", number).stdout
    assert said.startswith(f"lobby {number} is aborted\nIt was aborted ")
    assert ": Server allocation failed: " in said
    assert "Its groups are to be queued again.\n" in said
    assert "2 players have not heard of it yet.\n" in said
    assert cli("why", "--lobby", number).stdout
    again = cli("lobby", "abort", number, code=1)
    assert again.stderr == f"muster lobby abort: The lobby {number} is over already.\n"


def test_an_abort_has_a_reason(world, cli):
    world.server()
    number = make(cli)
    said = cli("lobby", "abort", number, "--reason", "Wrong map").stdout
    assert re.match(rf"lobby {number} is aborted\nIt was aborted .+: Wrong map\.\n"
                    r"Its groups are not queued again\.\n", said), said
    row, = rows(cli("lobbies").stdout)
    assert (row["ID"], row["STATE"], row["QUEUE"], row["BECAUSE"]) == (
        number, "aborted", "not_queued", "Wrong map")


def test_lists(world, cli):
    world.server()
    number = make(cli)
    row, = rows(cli("lobbies").stdout)
    assert (row["ID"], row["FLEET"], row["REGION"], row["STATE"], row["PLAYERS"], row["LOADED"]) == (
        number, "default", "EU", "loading", "2", "0")
    assert cli("lobbies", "--state", "started", "-o", "json").stdout == "[]\n"
    assert [v["id"] for v in json.loads(cli("lobbies", "-o", "json").stdout)] == [number]
    assert json.loads(cli("lobby", number, "-o", "json").stdout)["id"] == number
    assert "MOVES" in cli("lobbies", "-o", "wide").stdout
    status = cli("status").stdout
    assert ("lobbies    1 loading, 0 started; 0 players connected; "
            "0 started and 0 aborted since the start\n") in status


def test_a_status_without_lobbies_does_not_mention_them(cli):
    assert "lobbies" not in cli("status").stdout


def test_what_is_wrong_is_said(world, cli):
    assert cli("lobby", "12", code=1).stderr == "muster lobby: There is no lobby 12.\n"
    assert cli("lobby", "create", code=2).stderr.startswith("muster lobby create: --teams is needed")
    assert cli("lobby", "create", "--teams", "[[7]]", code=1).stderr == (
        'muster lobby create: teams[0][0] is a player, as {"account": 7}, not 7.\n')
    assert "Did you mean 'lobby abort'?" in cli("lobby", "abrot", "12", code=2).stderr
    assert "LOBBY is a number, not 'x'" in cli("lobby", "x", code=2).stderr
    assert "Did you mean 'lobbies'?" in cli("lobbis", code=2).stderr
    assert "loading" in cli("lobbies", "--state", "laoding", code=2).stderr


def test_names_do_not_command_the_terminal(world, cli):
    world.server()
    said = cli("lobby", "create", "--teams", '[[{"account": 7, "name": "a\\u202eb"}]]').stdout
    number = said.split()[1]
    assert "a?b" in cli("lobby", number).stdout


def test_it_waits(world, cli):
    number = make(cli)
    assert cli("lobby", number, "--wait", "30").stdout.startswith(f"lobby {number} is aborted\n")
