"""A server that does not take its match: the next best is asked, the first is told to forget it."""

import time

import pytest
from chat import READY

SHORT = {"ack_ms": 1500, "cancel_repeat_ms": 60000}
BACKING_OFF = "server passed over after a failure"


@pytest.mark.muster(**SHORT)
def test_silent_server_is_cancelled_and_the_next_best_asked(world):
    best = world.server(on_allocate="silent")
    next_best = world.server(cpu=10)
    world.server(cpu=20)
    asker = world.chat()
    asked_s = time.monotonic()
    asker.request(7)
    offer = best.expect_offer(7)
    answer = asker.placed(7)
    assert time.monotonic() - asked_s >= SHORT["ack_ms"] / 1000
    assert answer.server_id == next_best.server_id
    assert best.expect_cancel(7).match_token == offer.match_token
    assert answer.match_token != offer.match_token, "each attempt has its own token"


def test_refusing_server_is_passed_over_at_once(world):
    best = world.server(on_allocate="refuse")
    next_best = world.server(cpu=10)
    assert world.chat().allocate(7).server_id == next_best.server_id
    assert best.was_asked(7)


def test_server_that_drops_its_connection_is_passed_over_at_once(world):
    best = world.server(on_allocate="silent")
    next_best = world.server(cpu=10)
    asker = world.chat()
    asker.request(7)
    best.expect_offer(7)
    best.close()
    assert asker.placed(7).server_id == next_best.server_id


@pytest.mark.muster(**SHORT)
@pytest.mark.parametrize("how", ["silent", "refuse"])
def test_three_retries_and_no_more(world, how):
    """Best first, each once; the fifth is never asked, good as it is."""
    failing = [world.server(cpu=i, on_allocate=how) for i in range(4)]
    fifth = world.server(cpu=50)
    asker = world.chat()
    asker.request(7)
    sentence = asker.refused(7)
    assert [len(s.asked) for s in failing] == [1, 1, 1, 1]
    assert not fifth.was_asked(7)
    if how == "silent":
        assert sentence == "Server allocation timeout"


@pytest.mark.muster(**SHORT)
def test_retries_go_from_best_to_worst(world):
    order = []
    for cpu in (30, 10, 20, 0):
        world.server(cpu=cpu, on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    for _ in range(4):
        asked = world.wait(
            lambda: [s for s in world.net.peers if getattr(s, "asked", []) and s.cpu not in order],
            "next server asked",
        )
        order += [s.cpu for s in asked]
    assert order == [0, 10, 20, 30]
    assert asker.refused(7) == "Server allocation timeout"


@pytest.mark.muster(**SHORT)
def test_timeout_is_the_reason_when_the_last_try_timed_out(world):
    world.server(on_allocate="silent")
    assert world.chat().refuse(7) == "Server allocation timeout"


def test_nobody_left_is_the_reason_when_all_refused(world):
    for _ in range(2):
        world.server(on_allocate="refuse")
    assert world.chat().refuse(7) == "No servers available"


@pytest.mark.muster(ack_ms=20000, ticket_ms=800)
def test_whole_ticket_has_a_deadline(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    assert asker.refuse(7) == "Server allocation timeout"
    server.expect_cancel(7)


@pytest.mark.muster(**SHORT, backoff_first_ms=300)
def test_failed_ticket_leaves_no_slot_taken(world):
    server = world.server(capacity=1, on_allocate="silent")
    asker = world.chat()
    assert asker.refuse(7) == "Server allocation timeout"
    server.expect_cancel(7)
    server.on_allocate = "ack"
    answer = retry_until_placed(world, asker, range(100, 200))
    assert answer.server_id == server.server_id


def retry_until_placed(world, asker, lobbies):
    """Asks for one lobby after the other until a server is out of its back-off."""
    for lobby in lobbies:
        asker.request(lobby)
        answer = asker.reply(lobby)
        if answer.ok:
            return answer
        world.elapse(0.1)
    raise AssertionError("never placed again")


@pytest.mark.muster(**SHORT)
def test_late_ack_is_answered_with_a_cancel(world):
    """The ACK crosses the CANCEL on the wire."""
    late = world.server(on_allocate="silent", acks_cancel=False)
    other = world.server(cpu=10)
    asker = world.chat()
    asker.request(7)
    offer = late.expect_offer(7)
    first = asker.placed(7)
    late.expect_cancel(7)

    late.ack(7)
    assert late.expect_cancel(7).match_token == offer.match_token
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    again = asker.allocate(7)
    assert (again.server_id, again.match_token) == (other.server_id, first.match_token)


@pytest.mark.muster(**SHORT)
def test_late_ack_of_a_failed_ticket_opens_nothing(world):
    late = world.server(on_allocate="silent", acks_cancel=False)
    asker = world.chat()
    assert asker.refuse(7) == "Server allocation timeout"
    late.expect_cancel(7)
    late.ack(7)
    late.expect_cancel(7)
    assert late.validate(7, 1, late.asked[0].match_token).error == "Invalid match token"


def test_unasked_ack_is_answered_with_a_cancel(world):
    server = world.server()
    server.ack(99)
    server.expect_cancel(99)


def test_ack_of_a_server_that_was_not_asked_does_not_count(world):
    asked = world.server(on_allocate="silent")
    other = world.server(cpu=50)
    asker = world.chat()
    asker.request(7)
    asked.expect_offer(7)
    other.ack(7)
    other.expect_cancel(7)
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    asked.ack(7)
    assert asker.placed(7).server_id == asked.server_id


def test_ready_before_the_ack_counts_as_the_ack(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    assert server.ready_answer(7, offer.match_token).ok
    assert asker.placed(7).match_token == offer.match_token
    asker.expect_event(7, READY)
    server.ack(7)
    server.barrier()
    assert not server.find("SV_CANCEL_MATCH"), "the ACK behind it is a repeated one"


def test_repeated_ack_is_ignored(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    server.ack(7)
    server.barrier()
    assert not server.find("SV_CANCEL_MATCH")
    asker.barrier()
    assert not asker.inbox


def test_ready_with_a_wrong_token_is_no_ack(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    server.expect_offer(7)
    assert server.ready_answer(7, "MATCH_7_x_1").error == "Invalid match token"
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")


# --- a failing server must not eat the first try of every ticket


@pytest.mark.muster(**SHORT, backoff_first_ms=60000, backoff_max_ms=60000)
@pytest.mark.parametrize("how", ["silent", "refuse"])
def test_failing_server_is_passed_over_for_a_while(world, how):
    failing = world.server(on_allocate=how, capacity=100)
    working = world.server(cpu=90, capacity=100)
    asker = world.chat()
    for lobby in range(1, 6):
        assert asker.allocate(lobby).server_id == working.server_id
    assert len(failing.asked) == 1


@pytest.mark.muster(backoff_first_ms=400)
def test_back_off_doubles(world):
    failing = world.server(on_allocate="refuse")
    world.server(cpu=90, capacity=1000)
    asker = world.chat()
    asked_s = []  # between which two times
    for lobby in range(1, 1000):
        before_s = time.monotonic()
        asker.allocate(lobby)
        if len(failing.asked) > len(asked_s):
            asked_s.append((before_s, time.monotonic()))
            if len(asked_s) == 3:
                break
        world.elapse(0.01)
    first, second = asked_s[1][1] - asked_s[0][0], asked_s[2][1] - asked_s[1][0]
    assert first >= 0.4 and second >= 0.8
    world.wait(lambda: len(world.muster.log_lines(BACKING_OFF)) >= 3, "word about each back-off")
    assert [line["for_ms"] for line in world.muster.log_lines(BACKING_OFF)] == [400, 800, 1600]


@pytest.mark.muster(backoff_first_ms=400)
def test_success_resets_the_back_off(world):
    server = world.server(on_allocate="refuse", capacity=1000)
    asker = world.chat()
    for _ in range(2):  # the second failure would be followed by 800 ms without the reset
        first = 1 + len(server.asked) * 1000
        server.on_allocate = "refuse"
        asker.refuse(first)
        server.on_allocate = "ack"
        retry_until_placed(world, asker, range(first + 1, first + 100))
    assert [line["for_ms"] for line in world.muster.log_lines(BACKING_OFF)] == [400, 400]


# --- fleets where a match counts as allocated only when its server is ready

READY_REQUIRED = {"fleets": [{"name": "default", "ready_required": True}]}


@pytest.mark.muster(**READY_REQUIRED)
def test_where_ready_is_required_the_answer_waits_for_it(world):
    server = world.server(on_allocate="ack")
    asker = world.chat()
    asker.request(7)
    server.expect_offer(7)
    server.barrier()
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    assert server.ready_answer(7).ok
    asker.placed(7)
    asker.expect_event(7, READY)


@pytest.mark.muster(**READY_REQUIRED, ready_ms=2000, cancel_repeat_ms=60000)
def test_where_ready_is_required_a_server_that_never_is_loses_the_match(world):
    never = world.server(on_allocate="ack")
    good = world.server(on_allocate="ready", cpu=50)
    asker = world.chat()
    assert asker.allocate(7).server_id == good.server_id
    assert never.expect_cancel(7).match_token == never.asked[0].match_token
