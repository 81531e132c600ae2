"""Many askers, few slots: exactly as many matches as there is room, none of them twice."""

import chat
import pytest
from chat import EU


def ask_all(askers, lobbies):
    """Every request in one write per asker, so that Muster reads them all in one go."""
    for asker in askers:
        asker.send(
            b"".join(chat.mgr_server_allocation_request(n, 6, 0, EU, 10, 1500) for n in lobbies)
        )


def replies(askers, lobbies):
    return [asker.reply(lobby) for asker in askers for lobby in lobbies]


def assert_sold_once(servers, answers, slots):
    placed = [a for a in answers if a.ok]
    assert len(placed) == slots
    assert {a.error for a in answers if not a.ok} == {"No servers available"}
    assert len({a.match_token for a in placed}) == slots
    for server in servers:
        mine = {a.lobby: a.match_token for a in placed if a.server_id == server.server_id}
        assert mine == server.matches
        assert len(mine) == server.capacity


def test_two_chat_servers_race_200_requests_for_the_last_slots(world):
    servers = [world.server(capacity=c) for c in (1, 2, 3, 5, 7, 8, 10, 1)]
    askers = [world.chat("chat-1"), world.chat("chat-2")]
    half = range(1, 101)
    ask_all(askers[:1], half)
    ask_all(askers[1:], range(101, 201))
    answers = replies(askers[:1], half) + replies(askers[1:], range(101, 201))
    assert_sold_once(servers, answers, 37)


def test_equal_lobby_ids_race_for_the_last_slots(world):
    """Each id is wanted by both, and may stand only once on each server."""
    servers = [world.server(capacity=100) for _ in range(3)]
    askers = [world.chat("chat-1"), world.chat("chat-2")]
    lobbies = range(1, 101)
    ask_all(askers, lobbies)
    answers = replies(askers, lobbies)
    assert all(a.ok for a in answers)
    held = [(lobby, token) for s in servers for lobby, token in s.matches.items()]
    assert sorted(held) == sorted((a.lobby, a.match_token) for a in answers)


def test_duplicated_requests_race_and_get_one_place_each(world):
    servers = [world.server(capacity=20) for _ in range(3)]
    asker = world.chat()
    lobbies = list(range(1, 41))
    ask_all([asker], lobbies * 5)
    places = {lobby: set() for lobby in lobbies}
    for lobby in lobbies:
        answer = asker.placed(lobby)
        places[lobby].add((answer.server_id, answer.match_token))
    asker.barrier()
    for answer in asker.inbox:
        assert answer.ok
        places[answer.lobby].add((answer.server_id, answer.match_token))
    assert all(len(place) == 1 for place in places.values())
    assert sum(len(s.matches) for s in servers) == 40
    assert sum(len(s.asked) for s in servers) == 40


def test_heartbeats_with_stale_counts_do_not_free_slots_in_the_race(world):
    servers = [world.server(capacity=10, count=0) for _ in range(4)]
    askers = [world.chat("chat-1"), world.chat("chat-2")]
    for first in range(1, 101, 20):
        lobbies = range(first, first + 20)
        ask_all(askers, [])
        askers[0].send(
            b"".join(chat.mgr_server_allocation_request(n, 6, 0, EU, 10, 1500) for n in lobbies)
        )
        for server in servers:
            server.send_beat()
    answers = replies(askers[:1], range(1, 101))
    assert_sold_once(servers, answers, 40)


@pytest.mark.muster(ack_ms=3000, cancel_repeat_ms=60000)
def test_slots_of_failed_attempts_come_back(world):
    """Half of the servers never answer; what was reserved there is given elsewhere, once."""
    silent = [world.server(capacity=10, on_allocate="silent") for _ in range(2)]
    good = [world.server(capacity=10) for _ in range(2)]
    askers = [world.chat("chat-1"), world.chat("chat-2")]
    ask_all(askers[:1], range(1, 31))
    ask_all(askers[1:], range(31, 61))
    answers = replies(askers[:1], range(1, 31)) + replies(askers[1:], range(31, 61))
    placed = [a for a in answers if a.ok]
    assert {a.server_id for a in placed} == {s.server_id for s in good}
    assert len(placed) == 20
    for server in silent:
        offers = {o.lobby: o.match_token for o in server.asked}
        world.wait(
            lambda: offers.keys() <= {m.lobby for m in server.inbox if m.name == "SV_CANCEL_MATCH"},
            "cancel of every offer",
        )
