"""Lobbies end to end: a matchmaker posts them, players load on the client port, game servers take
their matches. Every lobby starts once or is aborted with a word to everybody."""

import itertools
import resource
import time

import chat
import jwt
import pytest
from crowd import ABORTED, CREATED, LOADING, START, Crowd
from cryptography.hazmat.primitives.asymmetric import ec
from test_disk_full import disk, until_refused  # noqa: F401 (disk is a fixture)
from test_http_access import write_keys

FOUR = (1, 2, 3, 4)
BEAT_S = 0.2


def create(world, accounts=FOUR, **more):
    """The answer to a POST of those players, half of them in each team."""
    half = len(accounts) // 2
    teams = [[{"account": a} for a in part] for part in (accounts[:half], accounts[half:])]
    answer = world.api.ask(
        "POST", "/v1/lobbies", data={"region": "EU", "map": "caldavar", "teams": teams, **more})
    assert answer.status == 201, answer
    return answer.json


def number(made):
    return int(made["id"])


def get(world, made):
    return world.api.get(f"/v1/lobbies/{made['id']}")


def await_state(world, made, state, **options):
    return world.wait(lambda: (v := get(world, made))["state"] == state and v,
                      f"lobby that is {state}", **options)


def await_allocated(world, made):
    return world.wait(lambda: (v := get(world, made))["allocated"] and v, "server for the lobby")


def await_offer(world, server, made):
    return server.expect_offer(number(made))


def clients(world, accounts=FOUR):
    return [world.client(a) for a in accounts]


def all_load(players, made):
    for player in players:
        player.say_loaded(number(made))


def all_started(players, made):
    """Each hears it, and all hear the same. Returns what they heard."""
    heard = [player.started(lobby=number(made)) for player in players]
    assert len({(m.ip, m.port, m.match_token) for m in heard}) == 1
    return heard[0]


def all_aborted(players, made, reason, requeued=0):
    for player in players:
        message = player.aborted(lobby=number(made))
        assert (message.reason, message.requeued) == (reason, requeued)


def nothing_more(players):
    """What was decided until now has been heard, and none of it is a start or an end."""
    for player in players:
        player.round_trip()
    for player in players:
        assert not player.find("CL_MATCH_START") and not player.find("CL_MATCH_ABORTED"), player.inbox


def one_more_fits(world, server, players):
    """The slot is free again: the next lobby of the same players starts on this server."""
    server.set(on_allocate="ready")
    made = world.wait(lambda: (v := create(world))["state"] == "loading" and v,
                      "place for another lobby")
    for player in players:
        player.created(lobby=number(made))
    all_load(players, made)
    all_started(players, made)
    return made


# --- both orders


def test_players_load_before_there_is_a_server(world):
    server, players = world.server(on_allocate="silent"), clients(world)
    made = create(world)
    for player in players:
        card = player.created(lobby=number(made))
        assert (card.map, [p.account for p in card.team1 + card.team2]) == ("caldavar", list(FOUR))
    offer = await_offer(world, server, made)
    all_load(players, made)
    nothing_more(players)
    server.accept(offer)
    nothing_more(players)
    assert server.ready_answer(number(made)).ok
    heard = all_started(players, made)
    assert (heard.ip, heard.port, heard.match_token) == (server.ip, server.port, offer.match_token)
    nothing_more(players)
    shown = get(world, made)
    assert (shown["state"], shown["queue"]) == ("started", "in_match")


def test_server_is_there_before_the_players_have_loaded(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    await_allocated(world, made)
    all_load(players[:3], made)
    nothing_more(players)
    players[3].say_loaded(number(made))
    all_started(players, made)
    nothing_more(players)
    assert server.matches.keys() == {number(made)}


def test_everybody_sees_who_has_loaded(world):
    world.server()
    players = clients(world)
    made = create(world)
    players[0].say_loaded(number(made))
    for other in players[1:]:
        other.expect("CL_PLAYER_LOADING_STATUS", account=1, loaded=1, lobby=number(made))
    players[0].say_loaded(number(made), 0)
    for other in players[1:]:
        other.expect("CL_PLAYER_LOADING_STATUS", account=1, loaded=0)
    nothing_more(players)
    assert not players[0].find("CL_PLAYER_LOADING_STATUS")
    assert get(world, made)["loaded"] == 0


def test_player_who_comes_later_gets_what_he_is_owed(world):
    server, players = world.server(on_allocate="ready"), clients(world, (1, 2, 3))
    made = create(world)
    all_load(players, made)
    world.wait(lambda: get(world, made)["loaded"] == 3, "three who have loaded")
    late = world.client(4)
    late.created(lobby=number(made))
    for account in (1, 2, 3):
        late.expect("CL_PLAYER_LOADING_STATUS", account=account, loaded=1)
    late.say_loaded(number(made))
    first = all_started([*players, late], made)
    again = late.reconnect().started(lobby=number(made))
    assert vars(again) == vars(first), "who crashed can return"
    assert server.validate(number(made), 4).ok


def test_strangers_are_not_part_of_the_match(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    all_load(players, made)
    all_started(players, made)
    assert server.validate(number(made), 99).error == "Not part of this match"
    assert all(server.validate(number(made), account).ok for account in FOUR)
    assert server.validate(number(made), 99).error == "Not part of this match"


def test_nobody_loads_for_another(world):
    world.server(on_allocate="ready")
    players = clients(world)
    made = create(world)
    stranger = world.client(5)
    for account in FOUR:
        stranger.send(chat.cl_player_loading_status(number(made), account, 1))
    stranger.say_loaded(number(made))
    stranger.round_trip()
    all_load(players[:3], made)
    players[0].send(chat.cl_player_loading_status(number(made), 4, 1))
    nothing_more([*players, stranger])
    assert get(world, made)["loaded"] == 3


# --- answers nobody waits for


@pytest.mark.muster(ack_ms=2000, backoff_first_ms=60000, backoff_max_ms=60000)
def test_late_ack_of_a_server_that_was_given_up(world):
    late = world.server(on_allocate="silent")
    good = world.server(on_allocate="ready", cpu=50, beat_every_s=BEAT_S)
    late.beat(cpu=0)
    players = clients(world)
    made = create(world)
    offer = await_offer(world, late, made)
    await_offer(world, good, made)
    all_load(players, made)
    heard = all_started(players, made)
    assert heard.port == good.port
    late.ack(number(made))
    late.expect_cancel(number(made), match_token=offer.match_token)
    late.barrier()
    nothing_more(players)
    assert good.matches.keys() == {number(made)}


def test_repeated_ready_and_ack_start_nothing_twice(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    all_load(players, made)
    all_started(players, made)
    for _ in range(3):
        server.ack(number(made))
        assert server.ready_answer(number(made)).ok
    all_load(players, made)
    nothing_more(players)


def test_ack_of_a_lobby_that_was_aborted_meanwhile(world):
    server, players = world.server(on_allocate="silent", capacity=1), clients(world)
    made = create(world)
    offer = await_offer(world, server, made)
    world.api.post(f"/v1/lobbies/{made['id']}/abort", reason="The matchmaker changed its mind")
    all_aborted(players, made, "The matchmaker changed its mind")
    server.accept(offer)
    assert not server.ready_answer(number(made), offer.match_token).ok
    server.matches.clear()
    server.expect_cancel(number(made))
    nothing_more(players)
    one_more_fits(world, server, players)


def test_answers_for_lobbies_nobody_knows_are_harmless(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    for unknown in (1, 1 << 30, (1 << 30) + 7, 2**31 - 1):
        server.ack(unknown)
        assert server.ready_answer(unknown, "no token").error == "Match not found"
        server.expect_cancel(unknown)
        assert server.end(unknown).error == "Match not found"
    one_more_fits(world, server, players)


# --- no server


@pytest.mark.parametrize("requeue", [False, True])
def test_no_servers_available(world, requeue):
    players = clients(world)
    made = create(world, requeue=requeue)
    assert (made["state"], made["cause"], made["error"]) == ("aborted", "allocation", "no_servers")
    all_aborted(players, made, "Server allocation failed: No servers available", int(requeue))
    assert {g["queue"] for g in made["groups"]} == {"queued" if requeue else "not_queued"}
    one_more_fits(world, world.server(capacity=1), players)


@pytest.mark.parametrize("script, error", [
    ("silent", "Server allocation timeout"),
    ("ack", "Server allocation timeout"),
    ("refuse", "No servers available"),
], ids=["no ACK", "no READY", "refused"])
@pytest.mark.muster(ack_ms=2000, ready_ms=2000, backoff_first_ms=50, backoff_max_ms=50)
def test_server_that_does_not_take_it(world, script, error):
    server = world.server(on_allocate=script, capacity=1)
    players = clients(world)
    made = create(world, requeue=True)
    all_aborted(players, made, f"Server allocation failed: {error}", 1)
    for player in players:
        assert player.take("CL_MATCH_LOBBY_CREATED", lobby=number(made))
    shown = await_state(world, made, "aborted")
    assert (shown["cause"], shown["queue"]) == ("allocation", "queued")
    one_more_fits(world, server, players)


def test_full_servers_are_none(world):
    server = world.server(capacity=1, on_allocate="ready")
    players, others = clients(world), clients(world, (5, 6))
    first = one_more_fits(world, server, players)
    made = create(world, (5, 6))
    all_aborted(others, made, "Server allocation failed: No servers available")
    assert server.end(number(first)).ok
    again = create(world, (5, 6))
    all_load(others, again)
    all_started(others, again)


def test_region_that_is_not_supported_is_refused_at_once(world):
    world.server()
    players = clients(world)
    answer = world.api.ask("POST", "/v1/lobbies", data={
        "region": "MOON", "teams": [[{"account": 1}], [{"account": 2}]]})
    assert (answer.status, answer.error["code"]) == (400, "region_not_supported")
    nothing_more(players)
    assert not any(player.inbox for player in players)


# --- players who do not load, or go


@pytest.mark.muster(loading_ms=3000)
def test_loading_timeout(world):
    server = world.server(on_allocate="ready", capacity=1, beat_every_s=BEAT_S)
    players = clients(world)
    made = create(world, requeue=True)
    all_load(players[:3], made)
    all_aborted(players, made, "Loading timeout", 1)
    server.expect_cancel(number(made))
    assert await_state(world, made, "aborted")["cause"] == "loading"
    one_more_fits(world, server, players)


@pytest.mark.muster(loading_ms=3000)
def test_nobody_ever_connects(world):
    server = world.server(on_allocate="ready", capacity=1, beat_every_s=BEAT_S)
    made = create(world)
    await_state(world, made, "aborted")
    players = clients(world)
    all_aborted(players, made, "Loading timeout")
    one_more_fits(world, server, players)


@pytest.mark.muster(player_gone_ms=500)
def test_player_who_stays_away(world):
    server = world.server(on_allocate="ready", capacity=1, beat_every_s=BEAT_S)
    players = clients(world)
    made = create(world)
    all_load(players[:3], made)
    players[3].close()
    all_aborted(players[:3], made, "Player disconnected")
    assert await_state(world, made, "aborted")["cause"] == "disconnected"
    players[3].open()
    players[3].register()
    all_aborted(players[3:], made, "Player disconnected")
    players[3].reconnect()
    nothing_more(players[3:])
    one_more_fits(world, server, players)


@pytest.mark.muster(player_gone_ms=5000)
def test_player_who_returns_in_time(world):
    world.server(on_allocate="ready")
    players = clients(world)
    made = create(world)
    all_load(players[:3], made)
    players[3].reconnect()
    players[3].created(lobby=number(made))
    nothing_more(players)
    players[0].reconnect()
    players[0].created(lobby=number(made))
    players[3].say_loaded(number(made))
    all_started(players, made)


@pytest.mark.muster(player_gone_ms=500)
def test_replacing_ones_connection_is_not_leaving(world):
    server = world.server(on_allocate="ready", beat_every_s=BEAT_S)
    players = clients(world)
    made = create(world)
    await_allocated(world, made)
    second = world.client(4, token=players[3].token)
    assert players[3].expect_error() == "Replaced by a new connection"
    second.created(lobby=number(made))
    world.elapse(0.9)
    players[3] = second
    all_load(players, made)
    all_started(players, made)
    assert len(server.asked) == 1


@pytest.mark.muster(player_gone_ms=300)
def test_who_goes_after_the_start_aborts_nothing(world):
    server = world.server(on_allocate="ready", beat_every_s=BEAT_S)
    players = clients(world)
    made = one_more_fits(world, server, players)
    for player in players:
        player.close()
    world.elapse(0.6)
    assert get(world, made)["state"] == "started"
    players[0].open()
    players[0].register()
    players[0].started(lobby=number(made))


# --- servers that die


@pytest.mark.muster(ack_ms=2000)
def test_server_lost_before_the_start_is_replaced(world):
    first = world.server(on_allocate="ready")
    second = world.server(on_allocate="ready", cpu=50, beat_every_s=BEAT_S)
    second.beat()
    players = clients(world)
    made = create(world)
    await_offer(world, first, made)
    await_allocated(world, made)
    all_load(players[:3], made)
    first.close()
    await_offer(world, second, made)
    players[3].say_loaded(number(made))
    heard = all_started(players, made)
    assert heard.port == second.port
    shown = get(world, made)
    assert (shown["server"], shown["moves"]) == (str(second.server_id), 1)
    nothing_more(players)


@pytest.mark.muster(heartbeat_ms=3000, lost_ms=800)
def test_server_lost_after_the_start(world):
    server = world.server(on_allocate="ready", beat_every_s=BEAT_S)
    players = clients(world)
    made = one_more_fits(world, server, players)
    server.close()
    nothing_more(players)
    all_aborted(players, made, "Server lost")
    shown = get(world, made)
    assert (shown["state"], shown["cause"], shown["queue"]) == ("ended", "server", "not_queued")


@pytest.mark.muster(heartbeat_ms=3000, lost_ms=20000)
def test_server_that_comes_back_keeps_its_match(world):
    server = world.server(on_allocate="ready", beat_every_s=BEAT_S)
    players = clients(world)
    made = one_more_fits(world, server, players)
    server.close()
    world.wait(lambda: world.muster.log_lines("started lobby lost its server"), "word of the loss")
    server.open()
    server.register()
    world.wait(lambda: world.muster.log_lines("started lobby has its server back"), "word of the return")
    assert server.end(number(made)).ok
    await_state(world, made, "ended")
    nothing_more(players)


def test_match_that_ends_is_over(world):
    server, players = world.server(capacity=1), clients(world)
    made = one_more_fits(world, server, players)
    assert server.end(number(made)).ok
    shown = get(world, made)
    assert (shown["state"], shown["cause"], shown["reason"]) == ("ended", None, None)
    nothing_more(players)
    one_more_fits(world, server, players)


# --- our own death


def crash(world, players, server):
    world.crash()
    server.reconnect()
    for player in players:
        player.reconnect()


@pytest.mark.muster(ack_ms=2000)
def test_crash_while_a_server_is_looked_for(world):
    server, players = world.server(on_allocate="silent"), clients(world)
    made = create(world)
    await_offer(world, server, made)
    all_load(players[:2], made)
    world.wait(lambda: get(world, made)["loaded"] == 2, "two who have loaded")
    server.set(on_allocate="ready")
    crash(world, players, server)
    for player in players:
        player.created(lobby=number(made))
    assert get(world, made)["loaded"] == 2
    all_load(players[2:], made)
    all_started(players, made)
    nothing_more(players)


@pytest.mark.parametrize("loaded", [0, 3])
def test_crash_while_players_load(world, loaded):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    await_allocated(world, made)
    all_load(players[:loaded], made)
    world.wait(lambda: get(world, made)["loaded"] == loaded, "those who have loaded")
    crash(world, players, server)
    for player in players:
        player.created(lobby=number(made))
    all_load(players[loaded:], made)
    all_started(players, made)
    nothing_more(players)
    assert len(server.asked) == 1, "it kept its server"


def test_crash_before_the_servers_ready(world):
    server, players = world.server(on_allocate="ack"), clients(world)
    made = create(world)
    await_offer(world, server, made)
    all_load(players, made)
    world.wait(lambda: get(world, made)["loaded"] == 4, "all who have loaded")
    crash(world, players, server)
    nothing_more(players)
    server.set(on_allocate="ready")
    if number(made) in server.matches:
        server.say_ready(number(made))
    all_started(players, made)
    nothing_more(players)


def test_crash_after_the_start(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    all_load(players, made)
    before = all_started(players, made)
    crash(world, players, server)
    assert vars(all_started(players, made)) == vars(before)
    nothing_more(players)
    assert server.validate(number(made), 1).ok
    assert server.validate(number(made), 99).error == "Not part of this match"
    assert server.end(number(made)).ok
    assert get(world, made)["state"] == "ended"


def test_crash_after_an_abort_that_not_all_have_heard(world):
    server, players = world.server(on_allocate="ready", capacity=1), clients(world)
    made = create(world, requeue=True)
    for player in players[2:]:
        player.close()
    world.api.post(f"/v1/lobbies/{made['id']}/abort")
    all_aborted(players[:2], made, "Ended by an operator", 1)
    world.crash()
    server.reconnect()
    for player in players:
        player.reconnect()
    all_aborted(players[2:], made, "Ended by an operator", 1)
    for player in players:
        player.reconnect()
    nothing_more(players)
    one_more_fits(world, server, players)


@pytest.mark.muster(loading_ms=1500, player_gone_ms=60000)
def test_crash_after_which_nobody_returns(world):
    server, players = world.server(on_allocate="ready", capacity=1), clients(world)
    made = create(world)
    all_load(players[:3], made)
    world.wait(lambda: get(world, made)["loaded"] == 3, "three who have loaded")
    world.crash()
    server.reconnect()
    assert await_state(world, made, "aborted")["cause"] == "loading"
    for player in players:
        player.reconnect()
    all_aborted(players, made, "Loading timeout")
    one_more_fits(world, server, players)


@pytest.mark.muster(ticket_ms=1500, ack_ms=1000, loading_ms=3000)
def test_crash_after_which_the_server_stays_away(world):
    server, players = world.server(on_allocate="silent"), clients(world)
    made = create(world)
    await_offer(world, server, made)
    all_load(players, made)
    world.wait(lambda: get(world, made)["loaded"] == 4, "all who have loaded")
    server.close()
    world.crash()
    for player in players:
        player.reconnect()
    heard = [player.aborted(lobby=number(made)).reason for player in players]
    assert len(set(heard)) == 1 and heard[0].startswith("Server allocation failed: ")


def test_stop_in_good_order_is_no_end_of_a_lobby(world):
    server, players = world.server(on_allocate="ready"), clients(world)
    made = create(world)
    await_allocated(world, made)
    world.restart()
    server.reconnect()
    for player in players:
        player.reconnect().created(lobby=number(made))
    all_load(players, made)
    all_started(players, made)


# --- others, and the disk


def test_external_chat_servers_beside_lobbies(world):
    server = world.server(on_allocate="ready", capacity=3)
    asker, players = world.chat(), clients(world)
    made = one_more_fits(world, server, players)
    asker.allocate(7)
    asker.expect_event(7, chat.READY)
    asker.allocate(8)
    asker.expect_event(8, chat.READY)
    assert asker.refuse(9) == "No servers available"
    assert asker.cancel(8).ok
    server.expect_cancel(8)
    for lobby in (number(made), 1 << 30, 2**31 - 1, 0):
        assert asker.refuse(lobby) == "Invalid match lobby ID"
        assert asker.cancel(lobby).error == "Match not found"
    assert server.end(7).ok
    asker.expect_event(7, chat.ENDED)
    assert get(world, made)["state"] == "started"
    assert server.end(number(made)).ok
    asker.barrier()
    assert not asker.find("MGR_MATCH_EVENT"), "of lobbies that are not his he hears nothing"


@pytest.mark.embedded
def test_full_disk_while_players_load(make_world, disk):  # noqa: F811
    world = make_world(data=disk.folder / "data", env=disk.env)
    disk.process = world.muster
    server, asker = world.server(on_allocate="ready", capacity=1000), world.chat()
    players = clients(world)
    made = create(world)
    await_allocated(world, made)
    all_load(players[:3], made)
    world.wait(lambda: get(world, made)["loaded"] == 3, "three who have loaded")
    disk.fill()
    until_refused(asker, range(100, 900))
    answer = world.api.ask("POST", "/v1/lobbies", data={"teams": [[{"account": 9}]]})
    assert (answer.status, answer.error["code"]) == (503, "internal")
    players[3].say_loaded(number(made))
    nothing_more(players)
    assert not any(player.closed for player in players)
    disk.free()
    for player in players:
        player.started(lobby=number(made), timeout_s=15)
    nothing_more(players)
    players[0].reconnect().started(lobby=number(made))


# --- very many


LOBBIES, TEAM, OTHERS = 1000, 5, 1000  # descriptors that are not players'


@pytest.fixture
def lobbies_that_fit():
    """A thousand, or as many as fit: each player needs a descriptor, and three of four are his."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fit = min(LOBBIES, (hard * 3 // 4 - OTHERS) // (2 * TEAM))
    assert fit >= 100, f"only {hard} descriptors are allowed here"
    needed = (fit * 2 * TEAM + OTHERS) * 4 // 3
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield fit
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def players_tokens(key, n):
    now = int(time.time())
    claims = {"gms": "1", "sco": "game", "iat": now, "exp": now + 600}
    return {a: jwt.encode({"acc": str(a), **claims}, key, algorithm="ES256")
            for a in range(1, n + 1)}


@pytest.mark.timeout(180)
def test_thousand_lobbies_of_ten_thousand_players(make_world, tmp_path, lobbies_that_fit):
    n_lobbies, n_players = lobbies_that_fit, lobbies_that_fit * 2 * TEAM
    key = ec.generate_private_key(ec.SECP256R1())
    world = make_world(access={"keys": write_keys(tmp_path, {"ES256": key})})
    servers = [world.server(on_allocate="ready", capacity=100, beat_every_s=2)
               for _ in range(-(-n_lobbies // 100))]
    before_kib = world.muster.resident_kib()
    crowd = Crowd(world.muster.client_address, players_tokens(key, n_players))
    try:
        crowd.wait(lambda: crowd.total(0x0601) == n_players, "greeting of everybody", 60)
        connected_kib = world.muster.resident_kib() - before_kib
        accounts = itertools.count(1)
        for n in range(n_lobbies):
            made = create(world, tuple(itertools.islice(accounts, 2 * TEAM)))
            assert made["state"] == "loading"
            crowd.pump(0)
            world.net.pump(0)
        crowd.wait(lambda: crowd.total(START) >= n_players, "start of every lobby", 60,
                   beside=lambda: world.net.pump(0))
        crowd.pump(0.3)
        most_kib = world.muster.resident_kib() - before_kib
        assert all(h[CREATED] == h[START] == 1 and h[ABORTED] == 0 for h in crowd.heard.values())
        assert all(h[LOADING] == 2 * TEAM - 1 for h in crowd.heard.values())
        assert not crowd.lost
        lobbies = {account: lobby for account, (lobby,) in crowd.starts.items()}
        assert len(set(lobbies.values())) == n_lobbies
        assert sum(len(server.matches) for server in servers) == n_lobbies
    finally:
        crowd.close()
    assert connected_kib < n_players * 3, f"{connected_kib} KiB for {n_players} idle players"
    assert most_kib < n_players * 6, f"{most_kib} KiB with {n_lobbies} lobbies"
