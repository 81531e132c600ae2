"""Nothing leaves before what it rests on is durable. The disk here stands still on command."""

import signal
import time

import chat
import pytest
from gate import Gate

pytestmark = pytest.mark.embedded  # what is gated or filled is the data folder's disk


@pytest.fixture
def gate(gate_library, tmp_path):
    return Gate(gate_library, tmp_path / "gated")


@pytest.fixture
def world(request, gate, make_world):
    mark = request.node.get_closest_marker("muster")
    yield make_world(env=gate.env, **(mark.kwargs if mark else {}))
    gate.open()  # before Muster is asked to end


def await_stuck(world, gate):
    world.wait(lambda: gate.somebody_waits, "commit that waits for the disk")


def let_time_pass(world):
    """Long enough for whatever is not held back by the disk to arrive."""
    world.elapse(0.3)


def test_offer_leaves_when_its_reservation_is_durable(world, gate):
    server, asker = world.server(), world.chat()
    gate.close()
    asker.request(7)
    await_stuck(world, gate)
    let_time_pass(world)
    assert not server.asked
    gate.open()
    server.expect_offer(7)
    asker.placed(7)


def test_answer_leaves_when_it_is_durable(world, gate):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    gate.close()
    server.accept(offer)
    await_stuck(world, gate)
    let_time_pass(world)
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    gate.open()
    asker.placed(7)


def test_repeat_does_not_reveal_what_is_not_durable(world, gate):
    """The second request changes nothing, so it could be answered at once; it must not be."""
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    gate.close()
    server.accept(offer)
    await_stuck(world, gate)
    asker.request(7)
    asker.round_trip()
    let_time_pass(world)
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    gate.open()
    asker.placed(7)


def test_validation_does_not_reveal_what_is_not_durable(world, gate):
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    assert server.validate(7, 1).ok
    gate.close()
    server.send(chat.sv_validate_token(7, 2, server.matches[7]))
    await_stuck(world, gate)
    server.send(chat.sv_validate_token(7, 1, server.matches[7]))
    server.round_trip()
    let_time_pass(world)
    assert not server.find("SV_VALIDATE_TOKEN_RESPONSE")
    gate.open()
    for account in (2, 1):
        server.answer("SV_VALIDATE_TOKEN_RESPONSE", account=account)


def test_cancel_is_confirmed_when_it_is_durable(world, gate):
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    gate.close()
    asker.send_cancel(7)
    await_stuck(world, gate)
    let_time_pass(world)
    assert not asker.inbox and not server.find("SV_CANCEL_MATCH")
    gate.open()
    asker.answer("MGR_ALLOCATION_CANCEL_RESPONSE", lobby=7)
    server.expect_cancel(7)


def test_end_is_confirmed_when_it_is_durable(world, gate):
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    gate.close()
    server.send(chat.sv_match_ended(server.server_id, 7))
    await_stuck(world, gate)
    let_time_pass(world)
    assert not server.find("SV_MATCH_ENDED_RESPONSE")
    assert not asker.find("MGR_MATCH_EVENT")
    gate.open()
    server.answer("SV_MATCH_ENDED_RESPONSE", lobby=7)


def test_handshake_is_answered_when_the_server_is_durable(world, gate):
    server = world.unregistered_server()
    gate.close()
    server.say_hello()
    await_stuck(world, gate)
    let_time_pass(world)
    assert not server.find("SV_HANDSHAKE_RESPONSE")
    gate.open()
    server.answer("SV_HANDSHAKE_RESPONSE")


def test_heartbeats_and_pings_do_not_wait_for_the_disk(world, gate):
    server, asker = world.server(), world.chat()
    gate.close()
    asker.request(7)
    await_stuck(world, gate)
    assert server.beat().ok
    server.round_trip()
    asker.round_trip()
    asker.send(chat.mgr_heartbeat())
    asker.expect("MGR_HEARTBEAT_ACK")
    assert not server.asked, "the disk still stands"
    gate.open()
    asker.placed(7)


@pytest.mark.muster(heartbeat_ms=1500)
def test_heartbeat_in_flight_when_its_server_is_declared_offline(world, gate):
    """The end of the connection waits for the disk; a heartbeat before it hears the truth."""
    server, asker = world.server(), world.chat()
    last_beat_s = time.monotonic()
    gate.close()
    asker.request(7)
    await_stuck(world, gate)
    world.elapse(last_beat_s + 2.6 - time.monotonic())
    server.send_beat()
    assert server.refusal("SV_HEARTBEAT_ACK") == "Server disconnected"
    gate.open()
    server.expect_closed()


def test_crash_while_the_disk_hangs_loses_nothing_that_was_answered(world, gate):
    server, asker = world.server(capacity=10), world.chat()
    before = asker.allocate(7)
    gate.close()
    asker.request(8)
    await_stuck(world, gate)
    world.muster.kill9()
    gate.open()
    world.muster.restart()
    asker.reconnect()
    server.reconnect()
    assert asker.allocate(7).match_token == before.match_token
    asker.allocate(8)


def test_sigterm_finishes_the_batch_and_sends_what_it_answers(world, gate):
    server, asker = world.server(), world.chat()
    gate.close()
    asker.request(7)
    await_stuck(world, gate)
    world.muster.signal(signal.SIGTERM)
    let_time_pass(world)
    assert world.muster.running and not server.asked, "it waits for the disk"
    gate.open()
    server.expect_offer(7)
    server.expect_closed()
    assert world.muster.finish() == 0


def test_a_disk_that_hangs_for_ever_does_not_keep_us_from_stopping(world, gate):
    server, asker = world.server(), world.chat()
    gate.close()
    asker.request(7)
    await_stuck(world, gate)
    world.muster.signal(signal.SIGTERM)
    assert world.muster.finish() == 1, "the commit was not finished"
    assert "the disk hangs" in world.muster.log()
    assert not server.asked
    gate.open()


# --- commits that fail


def refused_for_the_disk(world, asker, lobbies):
    """Asks until a commit fails, which is soon."""
    for lobby in lobbies:
        asker.request(lobby)
        answer = asker.reply(lobby)
        if not answer.ok:
            assert answer.error == "Internal error"
            return lobby
    raise AssertionError("no commit failed")


def test_failing_disk_is_a_clear_refusal_and_passes(world, gate):
    server, asker = world.server(capacity=100), world.chat()
    first = asker.allocate(1)
    assert server.validate(1, 100).ok

    gate.break_disk()
    refused = refused_for_the_disk(world, asker, range(2, 20))
    assert server.beat().ok
    assert asker.refuse(refused + 1) == "Internal error"
    assert not server.closed and not asker.closed, "connections stay"

    gate.mend_disk()

    def works_again():
        asker.request(refused)
        return asker.reply(refused).ok

    world.wait(works_again, "normal work after the disk was mended")
    assert asker.allocate(1).match_token == first.match_token
    assert server.validate(1, 100).ok


def test_refused_request_reserves_nothing(world, gate):
    server, asker = world.server(capacity=1), world.chat()
    gate.break_disk()
    assert asker.refuse(7) == "Internal error"
    gate.mend_disk()

    def works_again():
        asker.request(8)
        return asker.reply(8).ok

    world.wait(works_again, "normal work after the disk was mended")
    assert list(server.matches) == [8]


def test_ack_that_could_not_be_kept_is_settled_when_the_disk_is_back(world, gate):
    """The offer was durable, its acknowledgement was not: the match ends up in one place."""
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    gate.break_disk()
    server.accept(offer)
    world.elapse(0.5)
    server.on_allocate = "ack"
    gate.mend_disk()

    def placed():
        answer = asker.take("MGR_SERVER_ALLOCATION_RESPONSE", lobby=7)
        if answer and answer.ok:
            return answer
        if answer or not placed.asked:
            placed.asked = True
            asker.request(7)
        world.net.pump(0.05)
        return None

    placed.asked = False
    answer = world.wait(placed, "place for the lobby", timeout_s=20)
    assert server.matches == {7: answer.match_token}


def test_crash_while_the_disk_fails_loses_nothing_that_was_answered(world, gate):
    server, asker = world.server(capacity=100), world.chat()
    kept = {lobby: asker.allocate(lobby).match_token for lobby in range(1, 6)}
    gate.break_disk()
    refused_for_the_disk(world, asker, range(6, 20))
    world.muster.kill9()
    gate.mend_disk()
    world.muster.restart()
    asker.reconnect()
    server.reconnect()
    assert {lobby: asker.allocate(lobby).match_token for lobby in kept} == kept
