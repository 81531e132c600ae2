"""Fleets keep to themselves, and every table has a limit with a defined behaviour at it."""

import pytest
from chat import EU


def token(role, fleet):
    return {"token": f"{role}-{fleet}", "role": role, "fleet": fleet, "regions": ["EU"]}


TWO_FLEETS = {
    "dev": False,
    "fleets": [{"name": "alpha"}, {"name": "beta"}],
    "tokens": [token(role, fleet) for role in ("server", "chat") for fleet in ("alpha", "beta")],
}


@pytest.mark.muster(**TWO_FLEETS)
def test_server_of_another_fleet_is_no_candidate(world):
    beta = world.server(token="server-beta")
    alpha_chat = world.chat("alpha-chat", token="chat-alpha")
    assert alpha_chat.refuse(7) == "No servers available"
    alpha = world.server(token="server-alpha", cpu=99)
    assert alpha_chat.allocate(8).server_id == alpha.server_id
    assert not beta.asked


@pytest.mark.muster(**TWO_FLEETS)
def test_chat_server_sees_only_the_servers_of_its_fleet(world):
    alpha = world.server(token="server-alpha")
    world.server(token="server-beta")
    hello = world.chat("alpha-chat", token="chat-alpha").hello
    assert [entry.server_id for entry in hello.servers] == [alpha.server_id]


@pytest.mark.muster(**TWO_FLEETS)
def test_chat_servers_of_different_fleets_may_have_the_same_id(world):
    world.server(token="server-alpha")
    world.server(token="server-beta")
    one = world.chat("chat", token="chat-alpha")
    two = world.chat("chat", token="chat-beta")
    assert one.allocate(7).match_token != two.allocate(7).match_token


@pytest.mark.muster(**TWO_FLEETS)
def test_player_may_sit_in_two_fleets(world):
    one, two = world.server(token="server-alpha"), world.server(token="server-beta")
    world.chat("chat", token="chat-alpha").allocate(7)
    world.chat("chat", token="chat-beta").allocate(7)
    assert one.validate(7, 100).ok and two.validate(7, 100).ok
    one.barrier()
    assert not one.find("SV_KICK_PLAYER")


@pytest.mark.muster(regions=[{"code": 2, "name": "EU"}, {"code": 40, "name": "MOON"}])
def test_configured_regions_are_the_only_ones(world):
    moon = world.server(region=40)
    assert world.chat(regions=(40, EU)).allocate(7, region=40).server_id == moon.server_id
    stranger = world.unregistered_server(region=0)
    stranger.say_hello()
    assert stranger.refusal("SV_HANDSHAKE_RESPONSE") == "Invalid region"


@pytest.mark.muster(servers=2)
def test_server_too_many_is_refused(world):
    known = [world.server(), world.server()]
    stranger = world.unregistered_server()
    stranger.say_hello()
    assert stranger.refusal("SV_HANDSHAKE_RESPONSE") == "Internal error"
    stranger.expect_closed()
    known[0].reconnect()


@pytest.mark.muster(chat_servers=1)
def test_chat_server_too_many_is_refused(world):
    known = world.chat("known")
    stranger = world.unregistered_chat("stranger")
    stranger.say_hello()
    assert stranger.refusal("MGR_HANDSHAKE_RESPONSE") == "Internal error"
    known.reconnect()


@pytest.mark.muster(tickets_kept=3)
def test_only_the_newest_finished_tickets_are_kept(world):
    server = world.server(capacity=10)
    asker = world.chat()
    for lobby in range(1, 6):
        asker.allocate(lobby)
        assert server.end(lobby).ok
    for kept in (3, 4, 5):
        assert asker.refuse(kept) == "Invalid match lobby ID"
    asker.allocate(1)


@pytest.mark.muster(heartbeat_ms=800, forget_ms=500)
def test_server_that_stays_away_is_forgotten(world):
    """Its id is not given to anybody else."""
    gone = world.server()
    gone.expect_closed()
    listener = world.chat()
    world.wait(lambda: "forgotten" in world.muster.log(), "forgotten server")
    assert listener.reconnect().hello.servers == []
    gone_id = gone.server_id
    assert gone.reconnect().server_id != gone_id
