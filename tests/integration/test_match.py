"""The life of a match on its server: ready, players come and go, the end."""

import chat
import pytest
from chat import ENDED, READY


def open_match(world, lobby=7, players=10, **server_options):
    server = world.server(**server_options)
    asker = world.chat()
    asker.allocate(lobby, players=players)
    return server, asker


# --- READY


def test_ready_with_a_foreign_server_id(world):
    server, _ = open_match(world)
    token = server.matches[7]
    server.server_id += 1
    assert server.ready_answer(7, token).error == "Server not registered"


def test_ready_for_an_unknown_match(world):
    server = world.server()
    answer = server.ready_answer(99, "MATCH_99_x_1")
    assert (answer.ok, answer.lobby, answer.error) == (0, 99, "Match not found")


def test_ready_with_a_wrong_token(world):
    server, asker = open_match(world)
    assert server.ready_answer(7, server.matches[7] + "0").error == "Invalid match token"
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT", kind=READY)


def test_ready_of_a_server_that_was_not_chosen(world):
    server, asker = open_match(world)
    other = world.server()
    answer = other.ready_answer(7, server.matches[7])
    assert answer.error == "Server not allocated to this match"
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT", kind=READY)


def test_ready_answers_byte_for_byte(world):
    server, _ = open_match(world)
    server.ready_answer(7)
    assert server.raw[-1] == bytes.fromhex("07 00 07 10  01  07 00 00 00")
    server.ready_answer(8, "x")
    assert server.raw[-1] == bytes.fromhex("17 00 07 10  00  08 00 00 00") + b"Match not found\0"


# --- validating tokens


def test_wrong_tokens_are_refused(world):
    server, asker = open_match(world)
    token = server.matches[7]
    other_match = asker.allocate(8).match_token
    for wrong in ["", "x", token[:-1], token + "0", token.upper(), other_match, "a" * 1000]:
        server.send(chat.sv_validate_token(7, 1, wrong))
        answer = server.expect("SV_VALIDATE_TOKEN_RESPONSE", lobby=7, account=1)
        assert (answer.ok, getattr(answer, "error", None)) == (0, "Invalid match token"), wrong
    assert server.validate(7, 1, token).ok


def test_another_servers_token_is_refused(world):
    server, _ = open_match(world)
    thief = world.server()
    assert thief.validate(7, 1, server.matches[7]).error == "Invalid match token"


def test_token_of_an_attempt_that_failed_is_refused(world):
    failed = world.server(on_allocate="refuse")
    world.server(cpu=50)
    world.chat().allocate(7)
    assert failed.validate(7, 1, failed.asked[0].match_token).error == "Invalid match token"


def test_more_accounts_than_players_are_not_part_of_the_match(world):
    server, _ = open_match(world, players=2)
    assert server.validate(7, 1).ok
    assert server.validate(7, 2).ok
    assert server.validate(7, 3).error == "Not part of this match"


def test_same_account_gets_the_same_yes(world):
    server, _ = open_match(world, players=1)
    for _ in range(3):
        assert server.validate(7, 1).ok


def test_account_that_left_may_come_back_but_its_seat_is_not_another_ones(world):
    server, _ = open_match(world, players=1)
    assert server.validate(7, 1).ok
    server.send(chat.sv_player_left(server.server_id, 7, 1))
    assert server.validate(7, 2).error == "Not part of this match"
    assert server.validate(7, 1).ok


@pytest.mark.muster(token_ms=3000)
def test_token_expires_for_first_entries_only(world):
    server, _ = open_match(world, players=2)
    assert server.validate(7, 1).ok
    world.elapse(3.1)
    assert server.validate(7, 2).error == "Match token expired"
    assert server.validate(7, 1).ok, "a client may reconnect"


@pytest.mark.muster(token_ms=3000)
def test_expired_is_said_before_not_part_of_this_match(world):
    server, _ = open_match(world, players=1)
    assert server.validate(7, 1).ok
    assert server.validate(7, 2).error == "Not part of this match"
    world.wait(lambda: server.validate(7, 2).error == "Match token expired", "its end")
    assert server.validate(7, 2, "wrong").error == "Invalid match token"


def test_player_has_one_seat_and_a_new_one_moves_him(world):
    one, two = world.server(), world.server()
    asker = world.chat()
    asker.allocate(7)
    asker.allocate(8)
    assert one.validate(7, 100).ok
    assert two.validate(8, 100).ok
    kick = one.expect("SV_KICK_PLAYER")
    assert (kick.lobby, kick.account) == (7, 100) and kick.reason
    two.barrier()
    assert not two.find("SV_KICK_PLAYER")


def test_validate_answers_byte_for_byte(world):
    server, _ = open_match(world)
    server.validate(7, 0x0A0B0C0D)
    assert server.raw[-1] == bytes.fromhex("0b 00 0b 10  01  07 00 00 00  0d 0c 0b 0a")
    server.validate(7, 1, "x")
    assert (
        server.raw[-1]
        == bytes.fromhex("1f 00 0b 10  00  07 00 00 00  01 00 00 00") + b"Invalid match token\0"
    )


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_seats_outlive_a_restart(world, how):
    server, _ = open_match(world, players=2)
    assert server.validate(7, 1).ok and server.validate(7, 2).ok
    getattr(world, how)()
    server.reconnect()
    assert server.validate(7, 1).ok
    assert server.validate(7, 3).error == "Not part of this match"


# --- the end


def test_match_ended_frees_the_slot_and_tells_the_chat_server(world):
    server, asker = open_match(world, capacity=1)
    assert asker.refuse(8) == "No servers available"
    assert server.end(7).ok
    event = asker.expect_event(7, ENDED)
    assert event.reason
    asker.allocate(8)


def test_repeated_match_ended_is_a_yes(world):
    server, asker = open_match(world)
    for _ in range(3):
        assert server.end(7).ok
    asker.expect_event(7, ENDED)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT"), "told once"


def test_end_of_an_unknown_match(world):
    server = world.server()
    answer = server.end(99)
    assert (answer.ok, answer.lobby, answer.error) == (0, 99, "Match not found")


def test_end_with_a_foreign_server_id(world):
    server, asker = open_match(world)
    server.server_id += 1
    assert server.end(7).error == "Server not registered"
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


def test_another_server_cannot_end_the_match(world):
    server, asker = open_match(world)
    other = world.server()
    assert not other.end(7).ok
    assert server.validate(7, 1).ok


def test_ended_match_admits_nobody(world):
    server, _ = open_match(world)
    token = server.matches[7]
    assert server.validate(7, 1).ok
    assert server.end(7).ok
    assert server.validate(7, 1, token).error == "Invalid match token"


@pytest.mark.parametrize("spoofed", [False, True], ids=["own", "spoofed"])
def test_player_left_counts_only_from_the_server_itself(world, spoofed):
    """Whether the seat is still taken shows when the player takes another one."""
    one, two = world.server(), world.server()
    asker = world.chat()
    asker.allocate(7)
    asker.allocate(8)
    assert one.validate(7, 100).ok
    speaker = two if spoofed else one
    speaker.send(chat.sv_player_left(one.server_id, 7, 100))
    speaker.barrier()
    assert two.validate(8, 100).ok
    one.barrier()
    assert bool(one.find("SV_KICK_PLAYER")) == spoofed


@pytest.mark.muster(session_ms=800)
def test_no_match_is_open_for_ever(world):
    _, asker = open_match(world)
    asker.expect_event(7, ENDED)
    assert asker.refuse(7) == "Invalid match lobby ID"


def test_events_wait_for_a_chat_server_that_is_away(world):
    server, asker = open_match(world)
    asker.close()
    assert server.ready_answer(7).ok
    assert server.end(7).ok
    asker.open()
    asker.register()
    asker.expect_event(7, READY)
    asker.expect_event(7, ENDED)


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_events_are_owed_across_a_restart(world, how):
    server, asker = open_match(world)
    asker.close()
    assert server.ready_answer(7).ok
    assert server.end(7).ok
    getattr(world, how)()
    asker.open()
    asker.register()
    asker.expect_event(7, READY)
    asker.expect_event(7, ENDED)


# --- what a chat server has heard


def test_what_was_told_before_an_orderly_end_is_not_told_again(world):
    """That it has left is stored with the next batch; an orderly end does not wait for one."""
    server, asker = open_match(world)
    server.ready_answer(7)
    asker.expect_event(7, READY)
    world.restart()
    asker.reconnect()
    asker.barrier()
    world.elapse(0.3)
    assert not asker.find("MGR_MATCH_EVENT", kind=READY)
