"""A chat server asks for a game server and gets the best one, or hears why not."""

import re
import struct
import time

import pytest
from chat import AU, AUTO, BR, EU, READY, USE

GUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def test_happy_path_byte_for_byte(world):
    server = world.server(ip="192.168.1.100", port=21235, on_allocate="silent")
    asker = world.chat()
    before_ms = int(time.time() * 1000)

    asker.send(bytes.fromhex("0e 00 02 20  39 30 00 00  06 03 02 0a  72 06 00 00"))
    offer = server.expect_offer(12345)
    token = offer.match_token.encode()
    assert server.raw[-1] == (
        struct.pack("<H", 2 + 4 + 1 + 1 + len(token) + 1)
        + bytes.fromhex("04 10  39 30 00 00  06 03")
        + token
        + b"\0"
    )

    server.send(bytes.fromhex("07 00 05 10  01  39 30 00 00"))
    answer = asker.placed(12345)
    body = (
        bytes.fromhex("03 20  01  39 30 00 00")
        + struct.pack("<i", server.server_id)
        + b"192.168.1.100\0"
        + struct.pack("<i", 21235)
        + token
        + b"\0"
        + struct.pack("<q", answer.allocation_time_ms)
    )
    assert asker.raw[-1] == struct.pack("<H", len(body)) + body
    assert before_ms - 1 <= answer.allocation_time_ms <= time.time() * 1000 + 1


def test_token_names_the_lobby_a_guid_and_the_time(world):
    world.server()
    before_s = int(time.time())
    token = world.chat().allocate(777).match_token
    match = re.fullmatch(f"MATCH_777_{GUID}_([0-9]+)", token)
    assert match, token
    assert before_s <= int(match[1]) <= time.time() + 1


def test_every_match_has_another_token(world):
    world.server(capacity=20)
    asker = world.chat()
    guids = {asker.allocate(lobby).match_token.split("_")[2] for lobby in range(1, 21)}
    assert len(guids) == 20


def test_refusal_byte_for_byte(world):
    asker = world.chat()
    asker.request(12345)
    asker.refused(12345)
    assert asker.raw[-1] == bytes.fromhex("1c 00 03 20  00  39 30 00 00") + b"No servers available\0"


def test_game_type_and_mode_reach_the_server(world):
    server = world.server(capacity=20)
    asker = world.chat()
    for lobby, (game_type, game_mode) in enumerate([(0, 0), (10, 24), (3, 6)], start=1):
        asker.allocate(lobby, game_type=game_type, game_mode=game_mode)
        offer = server.expect_offer(lobby)
        assert (offer.game_type, offer.game_mode) == (game_type, game_mode)


def test_match_counts_as_ready_when_its_server_says_so(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(5)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")
    assert server.ready_answer(5).ok
    asker.expect_event(5, READY)
    assert server.ready_answer(5).ok, "said again"
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT"), "told once"


# --- which server is best: score = 100 - 50*load/max - 0.2*cpu - 0.1*memory

BETTER_FIRST = {
    "fewer matches": ({"capacity": 4, "count": 1}, {"capacity": 4, "count": 2}),
    "load is relative to capacity": ({"capacity": 10, "count": 4}, {"capacity": 2, "count": 1}),
    "less cpu": ({"cpu": 20}, {"cpu": 21}),
    "less memory": ({"memory": 20}, {"memory": 21}),
    "cpu weighs more than memory": ({"memory": 59}, {"cpu": 30}),
    "cpu weighs twice as much": ({"cpu": 30}, {"memory": 61}),
    "cpu against load": ({"cpu": 62}, {"capacity": 4, "count": 1}),
    "load against cpu": ({"capacity": 4, "count": 1}, {"cpu": 63}),
    "memory against load": ({"capacity": 10, "count": 1}, {"memory": 51}),
    "all together": (
        {"capacity": 4, "count": 2, "cpu": 10, "memory": 10},  # 72
        {"capacity": 4, "count": 1, "cpu": 60, "memory": 40},  # 71.5
    ),
}


@pytest.mark.parametrize("better_registers_first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("case", BETTER_FIRST)
def test_better_score_wins(world, case, better_registers_first):
    better, worse = BETTER_FIRST[case]
    if better_registers_first:
        winner = world.server(**better)
        world.server(**worse)
    else:
        world.server(**worse)
        winner = world.server(**better)
    assert world.chat().allocate(1).server_id == winner.server_id


def test_rating_is_not_scored(world):
    better = world.server()
    world.server(cpu=10)
    asker = world.chat()
    for lobby, rating in [(1, 0), (2, 3000)]:
        assert asker.allocate(lobby, rating=rating).server_id == better.server_id
        assert better.end(lobby).ok


def test_tie_goes_to_the_server_idle_longest(world):
    first, second = world.server(), world.server()
    asker = world.chat()
    world.elapse(0.005)
    turns = []
    for lobby in range(1, 5):
        turns.append(asker.allocate(lobby).server_id)
        server = first if turns[-1] == first.server_id else second
        assert server.end(lobby).ok
        server.beat()
        world.elapse(0.005)  # idleness is counted in milliseconds
    assert turns == [first.server_id, second.server_id] * 2


def test_tie_of_equals_goes_to_the_lowest_id(world):
    """Nobody ever had a match: the first to register has been idle longest and has the lowest id."""
    servers = [world.server() for _ in range(4)]
    assert world.chat().allocate(1).server_id == min(s.server_id for s in servers)


def test_requests_spread_over_equal_servers(world):
    servers = [world.server(capacity=4) for _ in range(4)]
    asker = world.chat()
    for lobby in range(1, 9):
        asker.allocate(lobby)
    assert [len(s.matches) for s in servers] == [2, 2, 2, 2]


# --- regions


def test_server_of_another_region_is_no_candidate(world):
    world.server(region=USE)
    eu = world.server(region=EU, cpu=90)
    assert world.chat(regions=(EU, USE)).allocate(1, region=EU).server_id == eu.server_id


def test_auto_takes_the_best_of_the_connections_regions(world):
    world.server(region=AU)  # the best, but not one of the connection's regions
    world.server(region=EU, cpu=30)
    use = world.server(region=USE, cpu=20)
    assert world.chat(regions=(EU, USE)).allocate(1, region=AUTO).server_id == use.server_id


def test_auto_without_a_server_in_the_connections_regions(world):
    world.server(region=AU)
    assert world.chat(regions=(EU, USE)).refuse(1, region=AUTO) == "No servers available"


@pytest.mark.parametrize("region", [-128, -1, 18, 63, 64, 127])
def test_unknown_region_is_not_supported(world, region):
    world.server()
    assert world.chat().refuse(1, region=region) == "Region not supported"


def test_region_the_connection_did_not_name_is_not_supported(world):
    world.server(region=BR)
    assert world.chat(regions=(EU,)).refuse(1, region=BR) == "Region not supported"


# --- requests that make no sense


@pytest.mark.parametrize("lobby", [0, -1, -(2**31), 2**30, 2**31 - 1])
def test_invalid_lobby_id(world, lobby):
    world.server()
    assert world.chat().refuse(lobby) == "Invalid match lobby ID"


@pytest.mark.parametrize("lobby", [1, 2**30 - 1])
def test_the_outermost_lobby_ids_are_valid(world, lobby):
    world.server()
    world.chat().allocate(lobby)


@pytest.mark.parametrize("players", [-1, 0, 101, 127])
def test_invalid_player_count(world, players):
    world.server()
    assert world.chat().refuse(1, players=players) == "Invalid request"


@pytest.mark.parametrize("players", [1, 100])
def test_the_outermost_player_counts_are_valid(world, players):
    world.server()
    world.chat().allocate(1, players=players)


@pytest.mark.parametrize("game_type", [-1, 11, 127])
def test_invalid_game_type(world, game_type):
    world.server()
    assert world.chat().refuse(1, game_type=game_type) == "Invalid request"


# --- capacity


def test_no_servers_at_all(world):
    assert world.chat().refuse(1) == "No servers available"


def test_full_servers(world):
    servers = [world.server(capacity=2) for _ in range(2)]
    asker = world.chat()
    for lobby in range(1, 5):
        asker.allocate(lobby)
    assert asker.refuse(5) == "No servers available"
    assert servers[0].end(next(iter(servers[0].matches))).ok
    assert asker.allocate(6).server_id == servers[0].server_id


def test_slot_is_taken_when_the_server_is_chosen(world):
    """Not when it has acknowledged: two requests must not both see the last slot."""
    server = world.server(capacity=1, on_allocate="silent")
    asker = world.chat()
    asker.request(1)
    server.expect_offer(1)
    assert asker.refuse(2) == "No servers available"
    server.ack(1)
    asker.placed(1)


def test_server_that_reports_more_than_we_know_is_that_full(world):
    server = world.server(capacity=2)
    asker = world.chat()
    server.beat(count=2)
    assert asker.refuse(1) == "No servers available"
    server.beat(count=1)
    asker.allocate(2)
    server.beat(count=2)
    assert asker.refuse(3) == "No servers available", "one of its own and one of ours"


def test_heartbeat_does_not_overwrite_a_reservation(world):
    server = world.server(capacity=2, on_allocate="silent")
    asker = world.chat()
    for lobby in (1, 2):
        asker.request(lobby)
        server.expect_offer(lobby)
        server.beat(count=0)
    assert asker.refuse(3) == "No servers available"
    for lobby in (1, 2):
        server.ack(lobby)
        asker.placed(lobby)
    server.beat(count=0)
    assert asker.refuse(4) == "No servers available"


@pytest.mark.muster(tickets_open=3)
def test_too_many_open_requests(world):
    world.server(capacity=10, on_allocate="silent")
    asker = world.chat()
    for lobby in range(1, 4):
        asker.request(lobby)
    assert asker.refuse(4) == "Too many open requests"


def test_pipelined_requests_are_each_answered_once(world):
    for _ in range(5):
        world.server(capacity=20)
    asker = world.chat()
    lobbies = range(1, 101)
    for lobby in lobbies:
        asker.request(lobby)
    for lobby in lobbies:
        asker.placed(lobby)
    asker.barrier()
    assert not asker.inbox
