"""The client port: who is let in, who is thrown out, and what a client can do to others."""

import time

import chat
import jwt
import pytest
import secure
from cryptography.hazmat.primitives.asymmetric import rsa
from peers import Client
from players import Player, token_of
from prometheus import scrape
from proxy import Proxy
from test_http_access import keys, write_keys  # noqa: F401 (keys is a fixture)


def refused(world, account, token, **options):
    peer = world.unregistered_client(account, token=token, **options)
    peer.say_hello()
    sentence = peer.refusal("CL_CONNECT_RESPONSE")
    peer.expect_closed()
    return sentence


def why_refused(world, account, token):
    """The clause in the log, of a token that must be refused."""
    before = len(world.muster.log_lines("refused"))
    assert refused(world, account, token) == "Invalid token"
    lines = world.wait(lambda: world.muster.log_lines("refused")[before:], "word of the refusal")
    assert token not in world.muster.log()
    assert lines[0]["error"] == "invalid_token"
    return lines[0]["text"]


# --- tokens


def test_yes_carries_the_clock(world):
    before_ms = int(time.time() * 1000)
    hello = world.client(7).hello
    assert before_ms - 1 <= hello.time_ms <= time.time() * 1000 + 1


def test_yes_byte_for_byte(world):
    client = world.client(7)
    (raw,) = client.raw
    assert raw == bytes.fromhex("0b00 0106 01") + client.hello.time_ms.to_bytes(8, "little")


def test_token_of_another_account(world):
    token = token_of(world, "8", "game")
    assert why_refused(world, 7, token) == "it is account 8's, not 7's"
    world.client(8, token=token)


@pytest.mark.parametrize("account", ["07", "7 ", "+7", "seven"])
def test_account_is_compared_in_its_one_spelling(world, account):
    assert why_refused(world, 7, token_of(world, account, "game")).endswith(", not 7's")


def test_token_without_the_scope_of_players(world):
    token = token_of(world, "7", "muster_admin", "muster_allocate")
    assert why_refused(world, 7, token) == "it has no scope game"


def test_more_scopes_do_no_harm(world):
    world.client(7, token=token_of(world, "7", "game", "game_multi"))


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "e30.e30.e30", "t" * 1024])
def test_rubbish_for_a_token(world, token):
    assert why_refused(world, 7, token)


def test_no_token(world):
    assert refused(world, 7, "") == "Invalid token"


def outside_token(key, account, **changes):
    now = int(time.time())
    good = {"acc": str(account), "gms": "7", "sco": "game", "iat": now, "exp": now + 600}
    return jwt.encode({**good, **changes}, key, algorithm="RS256")


@pytest.fixture
def outside(make_world, keys, tmp_path):  # noqa: F811
    """A world that trusts an issuer outside, and his key."""
    world = make_world(access={"gamespace": "7", "keys": write_keys(tmp_path, keys)})
    return world, keys["RS256"]


def test_token_of_an_outside_issuer(outside):
    world, key = outside
    world.client(7, token=outside_token(key, 7))


def test_token_that_has_expired(outside):
    world, key = outside
    why = why_refused(world, 7, outside_token(key, 7, exp=int(time.time()) - 1))
    assert "expired" in why


def test_token_of_another_gamespace(outside):
    world, key = outside
    assert "gamespace" in why_refused(world, 7, outside_token(key, 7, gms="8"))


def test_longest_token_that_fits(make_world, tmp_path):
    """A key of 4,096 bits, and as many other claims as the protocol's 1,024 bytes leave room for."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=4096)
    world = make_world(access={"gamespace": "7", "keys": write_keys(tmp_path, {"RS256": key})})
    sizes = {len(outside_token(key, 7, more="x" * n)): n for n in range(200)}
    world.client(7, token=outside_token(key, 7, more="x" * sizes[1024]))
    long = world.unregistered_client(7, token=outside_token(key, 7, more="x" * sizes[1025]))
    long.say_hello()
    assert long.expect_error() == "Protocol error: frame too long"


def test_refusals_are_counted(world):
    refused(world, 7, "x")
    refused(world, 7, token_of(world, "8", "game"))
    world.wait(lambda: scrape(world.muster).sum(
        "muster_refusals_total", reason="invalid_token") == 2,
        "both refusals counted")


@pytest.mark.parametrize("account", [0, -1, -(2**31)])
def test_account_that_cannot_be(world, account):
    assert refused(world, account, token_of(world, str(account), "game")) == "Invalid request"


def test_banned_player(world):
    warden = Player(world, "warden", scopes=("game_ban",))
    expires = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 3600))
    ban = warden.post("/ban/issue", account="7", reason="cheats", expires=expires)
    token = token_of(world, "7", "game")
    assert refused(world, 7, token) == "This player is banned"
    world.client(8)
    warden.ask("DELETE", f"/ban/{ban['id']}")
    world.client(7, token=token)


# --- connections


def test_second_connection_replaces_the_first(world):
    token = token_of(world, "7", "game")
    first = world.client(7, token=token)
    second = world.client(7, token=token)
    assert first.expect_error() == "Replaced by a new connection"
    second.round_trip()
    (line,) = world.wait(lambda: world.muster.log_lines("player connected again"), "word of it")
    assert line["account"] == 7


def test_refused_connection_replaces_nobody(world):
    first = world.client(7)
    refused(world, 7, token_of(world, "8", "game"))
    first.round_trip()


def test_crowd_of_connections_of_one_player(world):
    """All at once; one stays, and it is one that was greeted."""
    token = token_of(world, "7", "game")
    crowd = [world.unregistered_client(7, token=token) for _ in range(50)]
    for client in crowd:
        client.say_hello()
    world.wait(lambda: sum(c.closed for c in crowd) == 49, "49 of 50 closed")
    (last,) = [c for c in crowd if not c.closed]
    last.answer("CL_CONNECT_RESPONSE")
    last.round_trip()
    assert all(c.find("ERROR", message="Replaced by a new connection")
               for c in crowd if c is not last)


def test_ping_is_answered_before_the_handshake(world):
    client = world.unregistered_client(7)
    client.round_trip()
    client.register()


@pytest.mark.parametrize("early", [
    chat.cl_player_loading_status(1 << 30, 7, 1),
    chat.sv_handshake("any", "10.0.0.1", 20000, chat.EU, 4),
    chat.mgr_handshake("any", "chat-1", [chat.EU]),
    chat.frame(0x7777),
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x01\x00\x00\x06",
    chat.frame(0x0600),
    chat.frame(0x0600, b"\x07\x00\x00\x00token"),
    chat.frame(0x0600, b"\x07\x00\x00\x00\xff\xfe\x00"),
    chat.frame(0x0600, b"\x07\x00\x00\x00x\x00\x00"),
], ids=["status", "server", "chat server", "unknown", "tls", "http", "short", "empty", "no NUL",
        "not UTF-8", "more behind it"])
def test_garbage_before_the_handshake_is_a_protocol_error(world, early):
    peer = world.connect("client")
    peer.send(early)
    peer.expect_error("Protocol error: ")
    world.client(7)


def test_second_handshake_is_a_protocol_error(world):
    client = world.client(7)
    client.say_hello()
    assert client.expect_error() == "Protocol error: CL_CONNECT is a second handshake"


def test_no_handshake_in_time(world):
    begin = time.monotonic()
    peer = world.connect("client")
    assert peer.expect_error() == "Protocol error: no handshake within 5 s"
    assert time.monotonic() - begin > 4.5


def test_unknown_command_is_skipped_and_logged_once(world):
    client = world.client(7)
    client.send(3 * chat.frame(0x7777, b"abc") + chat.mgr_heartbeat())
    client.round_trip()
    lines = world.wait(lambda: world.muster.log_lines("unknown command; further ones are not logged"),
                       "word of it")
    assert [(line["port"], line["command"]) for line in lines] == [("client", "0x7777")]


@pytest.mark.parametrize("bad", [
    chat.frame(0x0603, b"\x00" * 8),
    chat.frame(0x0603, b"\x00" * 8 + b"\x02"),
    chat.frame(0x0603, b"\x00" * 10),
], ids=["too short", "flag is 2", "too long"])
def test_bad_loading_status_is_a_protocol_error(world, bad):
    client = world.client(7)
    client.send(bad)
    client.expect_error("Protocol error: CL_PLAYER_LOADING_STATUS")


def test_loading_status_of_a_lobby_nobody_knows_is_ignored(world):
    client = world.client(7)
    for lobby in (-1, 0, 1, 1 << 30, 2**31 - 1):
        client.say_loaded(lobby)
    client.round_trip()
    assert not client.inbox


def test_nobody_speaks_for_another(world):
    """It is counted; the log is not filled with it."""
    client = world.client(7)
    client.send(500 * chat.cl_player_loading_status(1 << 30, 8, 1))
    world.wait(lambda: scrape(world.muster).get("muster_spoofed_frames_total") == 500, "it counted")
    client.round_trip()
    assert not client.inbox
    world.wait(lambda: world.muster.log_lines("refused"), "a line of the log")
    assert len(world.muster.log_lines("refused")) == 1


# --- slow, silent and many


def test_player_who_does_not_read_is_cut_off_and_costs_little(world):
    deaf = world.client(7, receive_buffer=4096)
    good = world.client(8)
    before_kib = world.muster.resident_kib()
    deaf.stop_reading()

    def cut():
        if len(deaf.outgoing) < 100_000:
            deaf.send(20_000 * chat.ping())
        good.round_trip()
        return deaf.send_failed

    world.wait(cut, "end of a player who does not read", timeout_s=20)
    world.wait(lambda: scrape(world.muster).get("muster_connections_cut_total", port="client") == 1,
               "it counted")
    assert world.muster.resident_kib() - before_kib < 8 * 1024


def test_half_open_player_is_gone_within_half_a_minute(world):
    """His end vanished without a word; the kernel would take a minute to notice."""
    proxy = Proxy(world.net, world.muster.client_address)
    world.client(7, through=proxy)
    answering = world.client(8)
    begin = time.monotonic()
    proxy.blackhole(True)
    world.wait(lambda: world.muster.log_lines("peer does not answer"),
               "end of the half-open connection", timeout_s=40)
    assert time.monotonic() - begin > 15
    assert scrape(world.muster).get("muster_connections_silent_total", port="client") == 1
    assert answering.pings >= 2
    answering.round_trip()


@pytest.mark.muster(listen={"client_connections_per_address": 3})
def test_players_of_one_address_are_not_too_many(world):
    inside = [world.client(n, source="127.0.0.7") for n in (1, 2, 3)]
    token = token_of(world, "4", "game")
    late = world.unregistered_client(4, token=token, source="127.0.0.7")
    late.expect_closed()
    other = world.client(4, token=token, source="127.0.0.8")
    assert scrape(world.muster).get("muster_connections_refused_total", port="client") == 1
    inside[0].close()
    other.close()

    def let_in():
        peer = world.unregistered_client(4, token=token, source="127.0.0.7")
        peer.say_hello()
        world.wait(lambda: peer.closed or peer.find("CL_CONNECT_RESPONSE"), "either")
        return not peer.closed

    world.wait(let_in, "room for one more")


@pytest.mark.muster(listen={"connections": 2, "client_connections": 3})
def test_players_cannot_take_the_places_of_servers(world):
    strangers = [world.connect("client") for _ in range(6)]
    world.wait(lambda: sum(s.closed for s in strangers) == 3, "end of those who are too many")
    server, asker = world.server(), world.chat()
    assert asker.allocate(1).server_id == server.server_id
    late = world.connect("manager")
    late.expect_closed()
    [s for s in strangers if not s.closed][0].round_trip()


def test_hundred_players_cost_little(world):
    tokens = [token_of(world, str(n), "game") for n in range(1, 101)]
    before_kib = world.muster.resident_kib()
    crowd = [world.unregistered_client(n, token=token) for n, token in enumerate(tokens, 1)]
    for client in crowd:
        client.say_hello()
    for client in crowd:
        client.answer("CL_CONNECT_RESPONSE")
    assert scrape(world.muster).get("muster_connections", port="client") == 100
    assert world.muster.resident_kib() - before_kib < 100 * 16


# --- around it


def test_players_hear_of_the_end(world):
    client = world.client(7)
    assert world.muster.term() == 0
    client.expect_closed()


def test_tls(make_world, tmp_path):
    authority = secure.Authority(tmp_path)
    certificate, key = authority.issue("server")
    world = make_world(tls={"client": {"certificate": str(certificate), "key": str(key)}})
    token = token_of(world, "7", "game")
    kind = secure.secured(Client, secure.context(authority.path))
    client = kind(world.net, world.muster.client_address, 7, token).register()
    client.round_trip()
    second = kind(world.net, world.muster.client_address, 7, token).register()
    assert client.expect_error() == "Replaced by a new connection"
    second.round_trip()
    assert scrape(world.muster).get("muster_tls_certificate_expires_seconds", port="client") > 0
