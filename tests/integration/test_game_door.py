"""`muster game-server --door`: players of a lobby that has started are let into its match, and nobody
else; and servers in a mood."""

import itertools
import re
import socket

import pytest
from test_cli import game_server, place, running  # noqa: F401 (fixtures)
from test_player_client import number, post


def knock(address, line):
    """What the server answers to that line."""
    with socket.create_connection(address, timeout=8) as door:
        door.sendall(line.encode() + b"\n")
        return door.makefile().readline().rstrip("\n")


@pytest.fixture
def match(world, game_server):
    """A lobby of players 7 and 8 that has started: its number, its server's address, its token."""
    server = game_server("--region", "EU", "--door", "--match-seconds", 1)
    world.wait(lambda: "registered" in server.text(), "game server")
    players = [world.client(7), world.client(8)]
    lobby = number(post(world, [7], [8]))
    for player in players:
        player.created(lobby=lobby)
        player.say_loaded(lobby)
    start = [player.started(lobby=lobby) for player in players][0]
    return lobby, (start.ip, start.port), start.match_token


def test_players_of_the_lobby_are_let_in(world, match):
    lobby, address, token = match
    assert knock(address, f"{lobby} 7 {token}") == "welcome"
    assert knock(address, f"{lobby} 8 {token}") == "welcome"
    world.wait(lambda: world.api.get(f"/v1/lobbies/{lobby}")["state"] == "ended",
               "end of a match whose time began with its first player")


def test_others_are_not(match):
    lobby, address, token = match
    assert knock(address, f"{lobby} 9 {token}") == "refused: Not part of this match"
    assert knock(address, f"{lobby} 7 {token}x") == "refused: Invalid match token"


@pytest.mark.parametrize("line", ["", "hello", "7", "0 7 token", "-1 7 token", "x y z"])
def test_what_is_no_ticket(match, line):
    assert knock(match[1], line) == "refused: a line is LOBBY ACCOUNT TOKEN"


def test_who_says_nothing_and_who_leaves_disturb_nobody(match):
    lobby, address, token = match
    silent = [socket.create_connection(address) for _ in range(20)]
    for one in silent[:10]:
        one.close()
    assert knock(address, f"{lobby} 7 {token}") == "welcome"
    for one in silent:
        one.close()


@pytest.mark.muster(ack_ms=200, ready_ms=200, backoff_first_ms=50, backoff_max_ms=50,
                    ticket_ms=2000)
def test_moody_server_fails_some_and_takes_others(world, game_server):
    server = game_server("--region", "EU", "--max", 50, "--moody", 60)
    world.wait(lambda: "registered" in server.text(), "game server")
    chatter = world.chat()
    lobbies = itertools.count(1)

    def did_both():
        """After one more request."""
        lobby = next(lobbies)
        chatter.request(lobby)
        chatter.reply(lobby)
        said = server.text()
        return re.search(r"refused|not answering|never ready|dropping", said) and \
            "allocated\n" in said

    world.wait(did_both, "a failure and a success", timeout_s=30)


def test_port_that_is_taken_is_said(world, running):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = running("game-server", "--region", "EU", "--door", "--port", port,
                         "--server", place(world.muster.server_address))
        world.wait(lambda: server.process.poll() is not None, "its end")
        assert server.stop() == 1
        assert f"port {port}: Address already in use" in server.text()
