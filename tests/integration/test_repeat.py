"""The same lobby asked for again, in every state its ticket can be in."""

import pytest
from chat import ENDED

PLACE = ("server_id", "ip", "port", "match_token")


def place(answer):
    return tuple(getattr(answer, field) for field in PLACE)


def test_asked_again_while_open_gives_one_answer(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    for _ in range(3):
        asker.request(7)
    offer = server.expect_offer(7)
    asker.barrier()
    server.ack(7)
    assert asker.placed(7).match_token == offer.match_token
    asker.barrier()
    assert not asker.inbox
    assert len(server.asked) == 1


def test_asked_again_after_success_gives_the_same_place(world):
    server = world.server()
    world.server()
    asker = world.chat()
    first = asker.allocate(7)
    for _ in range(3):
        assert place(asker.allocate(7)) == place(first)
    assert len(server.asked) == 1


def test_repeat_with_other_arguments_is_still_the_same_match(world):
    world.server()
    asker = world.chat()
    first = asker.allocate(7, game_type=6, players=10)
    assert place(asker.allocate(7, game_type=3, players=4, rating=1)) == place(first)


def test_asked_again_after_failure_is_a_new_ticket(world):
    asker = world.chat()
    assert asker.refuse(7) == "No servers available"
    server = world.server()
    assert asker.allocate(7).server_id == server.server_id


@pytest.mark.muster(ack_ms=2000, backoff_first_ms=100)
def test_asked_again_after_a_timeout_is_a_new_ticket_with_a_new_token(world):
    failing = world.server(on_allocate="silent")
    asker = world.chat()
    assert asker.refuse(7) == "Server allocation timeout"
    failing.expect_cancel(7)
    good = world.server(cpu=90)
    answer = asker.allocate(7)
    assert answer.match_token != failing.asked[0].match_token
    assert answer.server_id in (good.server_id, failing.server_id)


def test_asked_again_after_a_cancel_is_a_new_ticket_with_a_new_token(world):
    server = world.server()
    asker = world.chat()
    first = asker.allocate(7)
    assert asker.cancel(7).ok
    server.expect_cancel(7)
    server.round_trip()  # its acknowledgement has arrived
    assert asker.allocate(7).match_token != first.match_token


def test_asked_again_after_the_match_ended_is_invalid(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    assert server.end(7).ok
    asker.expect_event(7, ENDED)
    for _ in range(2):
        assert asker.refuse(7) == "Invalid match lobby ID"


@pytest.mark.muster(keep_ms=500)
def test_lobby_id_is_usable_again_when_its_ticket_is_forgotten(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    assert server.end(7).ok

    def placed_again():
        asker.request(7)
        return asker.reply(7).ok

    world.wait(placed_again, "second life of the lobby id")


def test_same_lobby_of_another_chat_server_is_another_match(world):
    world.server()
    world.server()
    one, two = world.chat("chat-1"), world.chat("chat-2")
    a, b = one.allocate(7), two.allocate(7)
    assert a.match_token != b.match_token
    assert a.server_id != b.server_id, "an ACK carries only the lobby id"
    assert place(one.allocate(7)) == place(a)
    assert place(two.allocate(7)) == place(b)


def test_server_that_holds_a_lobby_id_is_no_candidate_for_its_twin(world):
    server = world.server(capacity=10)
    one, two = world.chat("chat-1"), world.chat("chat-2")
    one.allocate(7)
    assert two.refuse(7) == "No servers available"
    assert server.end(7).ok
    two.allocate(7)


def test_answer_for_a_chat_server_that_is_away_waits_until_it_asks_again(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    asker.close()
    server.accept(offer)
    server.barrier()
    asker.open()
    asker.register()
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE"), "nothing is pushed unasked"
    assert asker.allocate(7).match_token == offer.match_token


def test_chat_server_that_returns_before_the_ack_gets_the_answer_when_it_asks(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    asker.reconnect()
    asker.request(7)
    asker.barrier()
    server.accept(offer)
    assert asker.placed(7).match_token == offer.match_token
    assert len(server.asked) == 1


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_answer_is_the_same_after_a_restart(world, how):
    server = world.server()
    asker = world.chat()
    first = asker.allocate(7)
    getattr(world, how)()
    asker.reconnect()
    assert place(asker.allocate(7)) == place(first), "even before its server is back"
    server_id = server.server_id
    server.reconnect()
    assert server.server_id == server_id
    assert place(asker.allocate(7)) == place(first)
    assert server.validate(7, 1).ok


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_ended_lobby_stays_ended_after_a_restart(world, how):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    assert server.end(7).ok
    getattr(world, how)()
    asker.reconnect()
    assert asker.refuse(7) == "Invalid match lobby ID"


def test_lobby_ids_are_not_mixed_up_between_connections_of_one_chat_server(world):
    world.server()
    asker = world.chat("chat-1")
    first = asker.allocate(7)
    asker.reconnect()
    assert place(asker.allocate(7)) == place(first)
