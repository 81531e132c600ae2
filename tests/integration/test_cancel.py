"""A chat server gives a lobby up."""

import pytest
from chat import ENDED


def test_cancel_of_an_open_match_tells_its_server_and_frees_the_slot(world):
    server = world.server(capacity=1)
    asker = world.chat()
    first = asker.allocate(7)
    assert asker.refuse(8) == "No servers available"
    assert asker.cancel(7).ok
    assert server.expect_cancel(7).match_token == first.match_token
    asker.allocate(9)


def test_cancel_byte_for_byte(world):
    server = world.server()
    asker = world.chat()
    token = asker.allocate(0x01020304).match_token.encode()
    asker.send(bytes.fromhex("06 00 06 20  04 03 02 01"))
    asker.answer("MGR_ALLOCATION_CANCEL_RESPONSE", lobby=0x01020304)
    assert asker.raw[-1] == bytes.fromhex("07 00 07 20  01  04 03 02 01")
    server.expect_cancel(0x01020304)
    body = bytes.fromhex("08 10  04 03 02 01") + token + b"\0"
    assert server.raw[-1] == len(body).to_bytes(2, "little") + body


def test_cancel_of_a_ticket_that_waits_for_its_server(world):
    server = world.server(capacity=1, on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    assert asker.cancel(7).ok
    assert server.expect_cancel(7).match_token == offer.match_token
    assert asker.refused(7) == "Allocation cancelled", "the request is answered, too"
    server.ack(7)
    server.expect_cancel(7)
    server.on_allocate = "ack"
    asker.allocate(8)


def test_cancel_of_an_unknown_lobby(world):
    answer = world.chat().cancel(7)
    assert (answer.ok, answer.lobby, answer.error) == (0, 7, "Match not found")


def test_cancel_of_another_chat_servers_lobby(world):
    server = world.server()
    one, two = world.chat("chat-1"), world.chat("chat-2")
    one.allocate(7)
    assert two.cancel(7).error == "Match not found"
    server.barrier()
    assert not server.find("SV_CANCEL_MATCH")


def test_repeated_cancel_is_a_yes(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    for _ in range(3):
        assert asker.cancel(7).ok
    server.barrier()
    assert server.take("SV_CANCEL_MATCH") and not server.take("SV_CANCEL_MATCH")


def test_cancelled_match_admits_nobody(world):
    server = world.server()
    asker = world.chat()
    token = asker.allocate(7).match_token
    assert server.validate(7, 1).ok
    assert asker.cancel(7).ok
    server.expect_cancel(7)
    assert server.validate(7, 1, token).error == "Invalid match token"


def test_cancelled_match_is_no_ended_match(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    assert asker.cancel(7).ok
    server.expect_cancel(7)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT", kind=ENDED)


@pytest.mark.muster(cancel_repeat_ms=200)
def test_cancel_is_repeated_until_it_is_acknowledged(world):
    server = world.server(acks_cancel=False)
    asker = world.chat()
    asker.allocate(7)
    assert asker.cancel(7).ok
    for _ in range(3):
        server.expect_cancel(7)
    server.acks_cancel = True
    server.expect_cancel(7)
    server.round_trip()
    server.inbox.clear()
    world.elapse(0.6)
    assert not server.find("SV_CANCEL_MATCH"), "acknowledged, yet repeated"


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_cancel_is_owed_to_a_server_that_was_away_even_across_a_restart(world, how):
    server = world.server(capacity=1)
    asker = world.chat()
    token = asker.allocate(7).match_token
    server.close()
    assert asker.cancel(7).ok
    getattr(world, how)()
    server.open()
    server.register()
    assert server.expect_cancel(7).match_token == token
    asker.reconnect()
    asker.allocate(8)


def test_slot_of_a_cancelled_match_is_free_when_cancel_is_on_its_way(world):
    """Not before: nobody knows whether a server that is away still plays the match. Nor must it be
    acknowledged: whatever follows on that connection arrives after it."""
    server = world.server(capacity=1, acks_cancel=False)
    asker = world.chat()
    asker.allocate(7)
    server.close()
    assert asker.cancel(7).ok
    server.open()
    server.lists = False
    server.register()
    assert asker.refuse(8) == "No servers available"
    server.send_list()
    server.expect_cancel(7)
    server.beat()  # reports none, so only what Muster itself holds could be in the way
    asker.allocate(9)
