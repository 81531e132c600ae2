"""Servers that come back, the match list that says what they still hold, and draining."""

import chat
import pytest
from chat import BACK, ENDED, LOST


def two_matches(world, **options):
    server = world.server(capacity=2, **options)
    asker = world.chat()
    asker.allocate(7)
    asker.allocate(8)
    return server, asker


# --- coming back


def test_reconnect_keeps_the_server_id(world):
    server = world.server()
    server_id = server.server_id
    for _ in range(3):
        server.reconnect()
        assert server.server_id == server_id


def test_mere_reconnect_keeps_the_matches(world):
    server, asker = two_matches(world)
    server.reconnect()
    assert asker.refuse(9) == "No servers available", "both slots are still taken"
    assert server.validate(7, 1).ok and server.validate(8, 2).ok
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


def test_restarted_process_with_no_matches_has_ended_them(world):
    server, asker = two_matches(world)
    server.matches.clear()
    server.reconnect()
    asker.expect_event(7, ENDED)
    asker.expect_event(8, ENDED)
    assert asker.refuse(7) == "Invalid match lobby ID"
    asker.allocate(9)


def test_match_list_decides_which_matches_ended(world):
    server, asker = two_matches(world)
    del server.matches[7]
    server.reconnect()
    asker.expect_event(7, ENDED)
    assert server.validate(8, 1).ok
    asker.allocate(9)


def test_nothing_is_placed_on_a_returned_server_before_its_list(world):
    server = world.server(capacity=2)
    asker = world.chat()
    asker.allocate(7)
    server.close()
    server.open()
    server.lists = False
    server.register()
    server.expect("SV_MATCH_LIST")
    assert asker.refuse(8) == "No servers available"
    server.send_list()
    server.round_trip()
    assert asker.allocate(9).server_id == server.server_id


@pytest.mark.muster(list_ms=400)
def test_server_that_cannot_list_is_placed_again_after_its_time(world):
    server = world.server(capacity=2, lists=False)
    asker = world.chat()
    asker.allocate(7)
    server.reconnect()

    def placed():
        asker.request(8)
        return asker.reply(8).ok

    world.wait(placed, "placement on a server without a list")
    assert server.validate(7, 1).ok, "and its match goes on"


def test_match_whose_acknowledgement_was_lost_with_the_connection_is_cancelled(world):
    """The server plays it, Muster never heard so and gave it to another: the list shows both."""
    server = world.server(on_allocate="silent")
    other = world.server(cpu=50)
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    server.hold(7, offer.match_token)
    server.reconnect()
    assert asker.placed(7).server_id == other.server_id
    assert server.expect_cancel(7).match_token == offer.match_token
    assert not server.matches and 7 in other.matches


def test_server_that_comes_back_larger_has_more_room(world):
    server = world.server(capacity=1)
    asker = world.chat()
    asker.allocate(7)
    assert asker.refuse(8) == "No servers available"
    server.capacity = 2
    server.reconnect()
    asker.allocate(9)


def test_server_that_comes_back_smaller_keeps_what_it_holds_and_gets_no_more(world):
    server, asker = two_matches(world)
    server.capacity = 1
    server.reconnect()
    assert server.validate(7, 1).ok and server.validate(8, 2).ok
    assert server.end(7).ok
    server.beat()
    assert asker.refuse(9) == "No servers available"
    assert server.end(8).ok
    server.beat()
    asker.allocate(10)


def test_server_that_comes_back_elsewhere_is_placed_there(world):
    server = world.server(region=chat.EU)
    asker = world.chat(regions=(chat.EU, chat.USE))
    server.region = chat.USE
    server.reconnect()
    assert asker.refuse(7, region=chat.EU) == "No servers available"
    assert asker.allocate(8, region=chat.USE).server_id == server.server_id


def test_match_nobody_knows_takes_a_slot_of_the_server_that_lists_it(world):
    server = world.unregistered_server(capacity=1)
    server.matches[99] = "from another life"
    server.register()
    assert world.chat().refuse(7) == "No servers available"


def test_match_list_with_a_foreign_id_ends_nothing(world):
    server, asker = two_matches(world)
    liar = world.server(region=chat.USE)
    liar.send(chat.sv_match_list(server.server_id, []))
    liar.barrier()
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")
    assert server.validate(7, 1).ok


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_matches_outlive_muster(world, how):
    server, asker = two_matches(world)
    getattr(world, how)()
    server_id = server.server_id
    server.reconnect()
    assert server.server_id == server_id
    assert server.validate(7, 1).ok and server.validate(8, 2).ok
    asker.reconnect()
    assert asker.refuse(9) == "No servers available"
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_who_asks_before_the_servers_are_back_waits_for_them(world, how):
    server = world.server()
    asker = world.chat()
    getattr(world, how)()
    asker.reconnect()
    asker.request(7)
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE")
    server.reconnect()
    assert asker.placed(7).server_id == server.server_id


@pytest.mark.muster(heartbeat_ms=1500)
def test_who_asks_after_a_restart_is_refused_when_nobody_came_back(world):
    world.server()
    asker = world.chat()
    world.crash()
    asker.reconnect()
    assert asker.refuse(7) == "No servers available"


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_offer_under_way_is_made_again_after_a_restart(world, how):
    """OPENING owes its server ALLOCATE_MATCH; the server takes (lobby, token) as the same offer."""
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    getattr(world, how)()
    asker.reconnect()
    asker.request(7)
    server.on_allocate = "ack"
    server.reconnect()
    again = server.expect_offer(7)
    assert again.match_token == offer.match_token
    assert asker.placed(7).match_token == offer.match_token


@pytest.mark.muster(heartbeat_ms=1500)
def test_after_a_restart_servers_get_a_full_timeout_to_report(world):
    _, asker = two_matches(world)
    world.crash()
    asker.reconnect()
    asker.expect_event(7, LOST)  # it never came back
    asker.expect_event(8, LOST)


@pytest.mark.muster(heartbeat_ms=1500, list_ms=3000)
def test_lost_match_of_a_restarted_process_has_ended(world):
    server, asker = two_matches(world)
    server.expect_closed()
    asker.expect_event(7, LOST)
    del server.matches[7]
    server.reconnect()
    asker.expect_event(7, ENDED)
    asker.expect_event(8, BACK)


# --- fewer matches than we know of


def test_shortfall_over_two_heartbeats_asks_for_the_list_which_decides(world):
    server, asker = two_matches(world)
    del server.matches[8]
    server.beat()
    server.barrier()
    assert not server.find("SV_MATCH_LIST"), "one report is weak evidence"
    server.beat()
    server.expect("SV_MATCH_LIST")
    asker.expect_event(8, ENDED)
    assert server.validate(7, 1).ok
    asker.allocate(9)


def test_list_that_shows_everything_ends_nothing(world):
    server, asker = two_matches(world)
    for _ in range(2):
        server.beat(count=1)
    server.expect("SV_MATCH_LIST")
    server.barrier()
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")
    assert asker.refuse(9) == "No servers available"


@pytest.mark.muster(zero_report_ms=300, list_ms=200)
def test_two_zero_reports_end_old_matches_of_a_server_that_cannot_list(world):
    server, asker = two_matches(world, lists=False)
    world.elapse(0.4)

    def ended():
        server.beat(count=0)
        world.elapse(0.05)
        return asker.take("MGR_MATCH_EVENT", lobby=7, kind=ENDED)

    world.wait(ended, "end of the matches")
    asker.expect_event(8, ENDED)


@pytest.mark.muster(zero_report_ms=60000, list_ms=200)
def test_zero_reports_do_not_end_young_matches(world):
    server, asker = two_matches(world, lists=False)
    for _ in range(6):
        server.beat(count=0)
        world.elapse(0.1)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")
    assert server.validate(7, 1).ok


@pytest.mark.muster(zero_report_ms=100, list_ms=200)
def test_other_shortfalls_of_a_server_that_cannot_list_end_nothing(world):
    server, asker = two_matches(world, lists=False)
    for _ in range(6):
        server.beat(count=1)
        world.elapse(0.1)
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT")
    assert server.validate(7, 1).ok and server.validate(8, 2).ok
    assert asker.refuse(9) == "No servers available"


# --- draining


def test_draining_server_finishes_its_matches_and_gets_no_new_ones(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    server.send(chat.sv_drain(1))
    assert server.expect("SV_DRAIN_ACK").on == 1
    assert asker.refuse(8) == "No servers available"
    assert server.validate(7, 1).ok
    assert server.end(7).ok
    server.beat()
    assert asker.refuse(9) == "No servers available"

    server.send(chat.sv_drain(0))
    assert server.expect("SV_DRAIN_ACK").on == 0
    asker.allocate(10)


@pytest.mark.parametrize("how", ["reconnect", "restart", "crash"])
def test_draining_is_remembered(world, how):
    """While it plays what it had; the same process need not say it again."""
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    server.send(chat.sv_drain(1))
    server.expect("SV_DRAIN_ACK")
    if how != "reconnect":
        getattr(world, how)()
        asker.reconnect()
    server.reconnect()
    assert asker.refuse(8) == "No servers available"
    server.end(7)
    assert asker.refuse(8) == "No servers available"


def test_drain_does_not_bind_the_next_process_at_that_address(world):
    """It lists nothing and does not say that it drains: the one that did is gone."""
    server = world.server()
    server.send(chat.sv_drain(1))
    server.expect("SV_DRAIN_ACK")
    asker = world.chat()
    assert asker.refuse(7) == "No servers available"
    server.reconnect()
    asker.allocate(7)


def test_offer_under_way_when_a_server_starts_to_drain_still_counts(world):
    server = world.server(on_allocate="silent")
    asker = world.chat()
    asker.request(7)
    server.expect_offer(7)
    server.send(chat.sv_drain(1))
    server.expect("SV_DRAIN_ACK")
    server.ack(7)
    assert asker.placed(7).server_id == server.server_id
