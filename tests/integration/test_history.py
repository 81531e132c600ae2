"""What happened to whom, and what changed: the history, over restarts and with hostile names."""

import json
import time
from datetime import datetime, timezone
from urllib.parse import quote

import chat
import pytest
import test_lobbies as lobbies
from allocations import Allocator
from fake_host import FakeHost, Refused
from players import Player, fleets, token_of

pytestmark = pytest.mark.timeout(120)

NO_RATES = {"create": [{"count": 100000, "seconds": 60}], "join": [{"count": 100000, "seconds": 60}]}
NEVER = "2099-12-31 23:59:59"


@pytest.fixture
def world(make_world):
    return make_world(default_region="EU", fleets=fleets(max_players=2), rates=NO_RATES)


@pytest.fixture
def agent(world):
    with FakeHost(world.muster, slots=1) as agent:
        yield agent


def journey(world, account, **query):
    return world.api.get(f"/v1/players/{quote(account, safe='')}/journey", **query)


def steps(world, account, **query):
    """Oldest first."""
    return [e["step"] for e in reversed(journey(world, account, **query)["entries"])]


def until_step(world, account, step):
    """The journey, once it has that step."""

    def look():
        entries = journey(world, account)["entries"]
        return entries if step in [e["step"] for e in entries] else None

    return world.wait(look, f"{step} in the journey of {account}")


def the_server(agent):
    server, = agent.servers.values()
    return server


def segments(world):
    return sorted((world.muster.data / "history").glob("*.jsonl"))


# --- journeys


def test_a_player_who_asked_joined_and_left(world, agent):
    ann = Player(world, "ann")
    seat = ann.join()
    server = the_server(agent)
    server.joined(seat["key"])
    server.left(seat["key"])
    told = journey(world, "ann")
    assert [e["step"] for e in reversed(told["entries"])] == ["asked", "reserved", "joined", "left"]
    left = told["entries"][0]
    assert left["room"] == seat["id"] and left["seat"] == seat["slot"]
    assert left["fleet"] == "arena" and left["server"] == server.id
    assert left["sentence"] == f"left room {seat['id']} of arena on server {server.id}"
    assert told["account"] == "ann" and told["more"] is False
    assert told["complete_since"] <= told["entries"][-1]["at"]
    assert journey(world, "an")["entries"] == []


def test_a_player_who_stood_in_line_first(world, agent):
    seeker = Allocator(world)
    for name in ("one", "two"):
        seeker.placed(name)
    seeker.queued("ann", ticket="t-ann")
    assert steps(world, "ann") == ["asked", "queued"]
    queued = journey(world, "ann")["entries"][0]
    assert queued["sentence"] == "stands in line for a place in arena, position 1"
    waiting, = world.api.get("/v1/players/ann")["waiting"]
    assert (waiting["state"], waiting["position"]) == ("waiting", 1)
    server = the_server(agent)
    seat, = world.api.all("/v1/seats", account="one")
    world.api.ask("DELETE", f"/v1/seats/{seat['id']}")
    seeker.look("t-ann", wait=20)
    assert steps(world, "ann") == ["asked", "queued", "reserved", "placed"]
    place, = world.api.get("/v1/players/ann")["places"]
    assert (place["state"], place["room"]) == ("reserved", server.room)
    assert steps(world, "one")[-1] == "kicked"


def test_a_party_has_one_journey_each(world, agent):
    captain = Player(world, "captain", scopes=("game", "game_multi"))
    tokens = [{"token": token_of(world, name, "game")} for name in ("ann", "bob")]
    captain.post("/join/multi/arena/main/1.0", accounts=tokens)
    for name in ("ann", "bob"):
        assert steps(world, name) == ["asked", "reserved"]


def test_a_seat_that_nobody_came_for(make_world):
    world = make_world(default_region="EU", fleets=fleets(reserve_s=1), rates=NO_RATES)
    with FakeHost(world.muster):
        Player(world, "ann").join()
        entries = until_step(world, "ann", "expired")
    assert entries[0]["sentence"].startswith("did not come in time, and lost the seat reserved")


def test_a_room_that_never_opened(world):
    def fail(server):
        server.agent.servers.pop(server.id, None)
        server.say("failed", text="no such file", exit_code=1, run_ms=1, tail="")

    with FakeHost(world.muster, script=fail):
        Player(world, "ann").cannot(503, "spawn_failed")
        entries = until_step(world, "ann", "refused")
    assert "failed" in [e["step"] for e in entries]
    refused = next(e for e in entries if e["step"] == "refused")
    assert refused["reason"] == "spawn_failed"


def test_a_room_whose_server_crashed(world, agent):
    ann = Player(world, "ann")
    seat = ann.join()
    server = the_server(agent)
    server.joined(seat["key"])
    server.exited(code=139)
    last = until_step(world, "ann", "ended")[0]
    assert last["reason"] == "exited"
    assert last["sentence"].endswith("its server ended by itself")


def test_a_player_who_moved(make_world):
    world = make_world(default_region="EU", fleets=fleets(max_players=2), rates=NO_RATES)
    with FakeHost(world.muster):
        ann = Player(world, "ann")
        ann.join()
        ann.create()
        assert steps(world, "ann") == ["asked", "reserved", "asked", "moved", "reserved"]


def test_a_player_who_was_banned(world, agent):
    ann = Player(world, "ann")
    ann.join()
    warden = Player(world, "warden", scopes=("game_ban",))
    ban = warden.post("/ban/issue", account="ann", reason="cheating", expires=NEVER)
    ann.cannot(423, "banned")
    assert steps(world, "ann") == ["asked", "reserved", "kicked", "banned", "refused"]
    entries = journey(world, "ann")["entries"]
    assert entries[0]["sentence"] == (
        "was refused a place in arena: player ann is banned: cheating")
    assert entries[1]["who"] == "warden"
    known = world.api.get("/v1/players/ann")
    assert known["banned"] and known["places"] == [] and known["bans"][0]["reason"] == "cheating"
    assert warden.ask("DELETE", f"/ban/{ban['id']}").status == 200
    assert steps(world, "ann")[-1] == "unbanned"
    assert not world.api.get("/v1/players/ann")["banned"]


def test_a_key_that_was_used_already(world, agent):
    seat = Player(world, "ann").join()
    server = the_server(agent)
    server.joined(seat["key"])
    with pytest.raises(Refused):
        server.joined(seat["key"])
    last = journey(world, "ann")["entries"][0]
    assert (last["step"], last["reason"], last["seat"]) == ("refused", "key_used", seat["slot"])


def test_a_match_of_a_chat_server(make_world):
    world = make_world()
    server, asker = world.server(), world.chat()
    asker.allocate(4711)
    server.validate(4711, 12)
    server.send(chat.sv_player_left(server.server_id, 4711, 12))
    entries = until_step(world, "12", "left")
    assert [e["step"] for e in reversed(entries)] == ["joined", "left"]
    assert (entries[0]["lobby"], entries[0]["server"]) == (4711, str(server.server_id))


def test_a_lobby_is_part_of_each_journey(make_world):
    world = make_world(ack_ms=3000)
    world.server(on_allocate="silent")
    players = [world.client(account) for account in (1, 2)]
    made = lobbies.create(world, (1, 2))
    loading = world.api.get("/v1/players")["items"]
    assert [(p["account"], p["state"], p["lobby"]) for p in loading] == [
        ("1", "loading", made["id"]), ("2", "loading", made["id"])]
    assert world.api.get("/v1/players/2")["places"] == [loading[1]]
    for player in players:
        player.aborted(lobby=int(made["id"]))
    for account in ("1", "2"):
        entries = until_step(world, account, "lobby_aborted")
        assert [e["step"] for e in reversed(entries)] == ["lobby_created", "lobby_aborted"]
        assert entries[0]["reason"] == "allocation_timeout" and entries[0]["lobby"] == int(made["id"])
    assert world.api.get("/v1/players")["items"] == []


# --- names


@pytest.mark.parametrize("name", [
    "a/b", "100%", "%2F", 'say "hi"', "back\\slash", "Zoë", "玩家", "a b", "+", "?x=1&y", "#", "..",
    "x" * 64, '","step":"joined', "{\"player\":\"ann\"}", "<script>alert(1)</script>", "'; drop--",
])
def test_hostile_names(world, agent, name):
    Player(world, "bystander").join()
    Player(world, name).join()
    assert steps(world, name) == ["asked", "reserved"]
    known = world.api.get(f"/v1/players/{quote(name, safe='')}")
    assert known["account"] == name and [p["state"] for p in known["places"]] == ["reserved"]
    found = world.api.get("/v1/players", search=name)["items"]
    assert [p["account"] for p in found] == [name]
    assert steps(world, "bystander") == ["asked", "reserved"]


def test_wrong_arguments(world):
    say = world.api.refused("GET", "/v1/players/ann/journey", 400, "bad_argument", query={"from": "soon"})
    assert say == ("from is a time ago such as 90s, 15m, 2h or 7d, or a date as "
                   "2026-11-16T03:12:00Z (UTC), not 'soon'.")
    world.api.refused("GET", "/v1/refusals", 400, "bad_argument", query={"since": "2026-11-16"})
    world.api.refused("GET", "/v1/changes", 400, "bad_argument", query={"since": "-1h"})
    long = quote("x" * 65)
    world.api.refused("GET", f"/v1/players/{long}/journey", 400, "bad_argument")


# --- who is where


def test_everybody_is_listed_page_by_page(world, agent, make_world):
    seeker = Allocator(world)
    for name in ("anna", "anton", "bert"):
        seeker.seek(name)
    everybody = world.api.all("/v1/players")
    assert {(p["account"], p["state"]) for p in everybody} == {
        ("anna", "reserved"), ("anton", "reserved"), ("bert", "waiting")}
    assert [p["account"] for p in world.api.get("/v1/players", search="ant")["items"]] == ["anton"]
    assert world.api.get("/v1/players", fleet="default")["items"] == []
    names, cursor = [], None
    while True:
        page = world.api.get("/v1/players", limit=1, **({"cursor": cursor} if cursor else {}))
        names += [p["account"] for p in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert sorted(names) == ["anna", "anton", "bert"]
    world.api.refused("GET", "/v1/players", 400, "bad_argument", query={"fleet": "nope"})


def test_players_of_matches_are_listed(make_world):
    world = make_world()
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    server.validate(7, 42)
    player, = world.api.get("/v1/players")["items"]
    assert (player["account"], player["state"], player["lobby"]) == ("42", "playing", "7")
    assert world.api.get("/v1/players/42")["places"] == [player]


# --- refusals


def test_who_is_refused_again_and_again(world, agent):
    Player(world, "warden", scopes=("game_ban",)).post(
        "/ban/issue", account="eve", reason="cheating", expires=NEVER)
    eve, ann = Player(world, "eve"), Player(world, "ann")
    for _ in range(4):
        eve.cannot(423, "banned")
    ann.refused("POST", "/room/arena/999/join", 404, "no_such_room")
    told = world.api.get("/v1/refusals")
    counts = {r["reason"]: (r["count"], r["players"]) for r in told["by_reason"]}
    assert counts["banned"] == (4, 1) and counts["no_such_room"] == (1, 1)
    assert told["total"] == 5
    assert told["by_reason"][0]["reason"] == "banned"
    once, = told["repeated"]
    assert (once["account"], once["count"], once["reason"]) == ("eve", 4, "banned")
    assert once["first_at"] <= once["last_at"]
    assert world.api.get("/v1/refusals", since="2999-01-01T00:00:00Z")["total"] == 0


def test_what_was_refused_at_the_door_is_told_without_what_was_sent(world, agent):
    ann = Player(world, "ann", scopes=("game", "game_multi"))
    path = "/join/arena/main/1.0"
    ann.refused("POST", path, 400, "bad_argument", data={"region": ann.token})
    ann.refused("POST", path, 400, "bad_argument", data={ann.token: "x"})
    ann.refused("POST", f"/join/{ann.token[:40]}/main/1.0", 404, "not_found", data={})
    ann.refused("POST", "/join/multi/arena/main/1.0", 400, "bad_argument",
                data={"accounts": [{"token": token_of(world, "bob", "game")},
                                   {"token": ann.token[:-8]}]})
    told = [e["sentence"] for e in reversed(journey(world, "ann")["entries"])]
    world.muster.term()
    text = "".join(path.read_text() for path in segments(world))
    assert ann.token[:10] not in text
    assert len(told) == 4
    assert told[0] == "was refused: the argument region is wrong"
    assert told[3] == "was refused: the argument accounts is wrong"


def test_a_flood_of_refusals_is_counted_and_not_written(world, agent):
    Player(world, "warden", scopes=("game_ban",)).post(
        "/ban/issue", account="eve", reason="cheating", expires=NEVER)
    eve = Player(world, "eve")
    for _ in range(50):
        eve.cannot(423, "banned")
    whole = [e for e in journey(world, "eve")["entries"] if e["step"] == "refused"]
    assert len(whole) == 5
    assert world.muster.term() == 0
    lines = [json.loads(line) for path in segments(world) for line in path.read_text().splitlines()]
    counted = [e for e in lines if e.get("count")]
    assert [e["count"] for e in counted] == [45]
    assert counted[0]["player"] == "eve" and counted[0]["reason"] == "banned"


# --- changes


def test_what_changed(world, agent):
    world.api.post("/v1/hosts/1/disable")
    changes = world.api.get("/v1/changes")["items"]
    assert [c["what"] for c in changes][:1] == ["disable"]
    assert changes[0]["who"] == "admin" and changes[0]["target"] == "1"
    what = [c["what"] for c in changes]
    assert what[-1] == "started" and "host_came" in what
    started = changes[-1]
    digest = world.api.get("/v1/status")["config_digest"]
    assert started["sentence"].endswith(f"started with the configuration {digest}")
    came = next(c for c in changes if c["what"] == "host_came")
    assert came["sentence"] == "host 1 (host-1) came" and came["host"] == "1"


def test_a_reload_is_a_change(make_world):
    world = make_world(ack_ms=4000)
    world.reload(ack_ms=5000)

    def look():
        found = [c for c in world.api.get("/v1/changes")["items"] if c["what"] == "configured"]
        return found

    configured, = world.wait(look, "the reload among the changes")
    digest = world.api.get("/v1/status")["config_digest"]
    assert configured["sentence"] == f"the configuration was read again: it is {digest} now"
    assert configured["who"] == "file"


def test_changes_come_page_by_page(world, agent):
    for _ in range(3):
        world.api.post("/v1/hosts/1/disable")
        world.api.post("/v1/hosts/1/enable")
    whole = world.api.get("/v1/changes")["items"]
    pages, cursor = [], None
    while True:
        page = world.api.get("/v1/changes", limit=2, **({"cursor": cursor} if cursor else {}))
        pages += page["items"]
        cursor = page["next"]
        if not cursor:
            break
    assert pages == whole and len(whole) >= 8


def test_more_changes_in_one_millisecond_than_a_page_holds(world):
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    name = f"00000900-{at[:19].replace('-', '').replace(':', '')}Z.jsonl"
    lines = (f'{{"at":"{at}","change":"server_offline","server":{i}}}\n' for i in range(1, 5001))
    folder = world.muster.data / "history"
    world.wait(folder.exists, "the folder, which its writer makes soon after the start")
    (folder / name).write_text("".join(lines))
    servers, cursors, cursor = [], [], None
    while True:
        page = world.api.get("/v1/changes", limit=1000, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) <= 1000
        servers += [c["server"] for c in page["items"] if c["what"] == "server_offline"]
        cursor = page["next"]
        if not cursor:
            break
        assert cursor not in cursors
        cursors.append(cursor)
    assert servers == [str(i) for i in range(5000, 0, -1)]


# --- files


def test_the_history_outlives_a_kill(world, agent):
    ann = Player(world, "ann")
    seat = ann.join()
    the_server(agent).joined(seat["key"])
    until_step(world, "ann", "joined")
    world.muster.kill9()
    assert len(segments(world)) == 1
    with segments(world)[0].open("a") as file:  # as if the end had been cut off in the middle
        file.write('{"at":"2026-11-16T00:00:00.000Z","step":"left","player":"ann","roo')
    world.muster.start_on_same_ports()
    assert steps(world, "ann") == ["asked", "reserved", "joined"]
    the_server(agent).left(seat["key"])
    assert [e["step"] for e in until_step(world, "ann", "left")][0] == "left"
    assert len(segments(world)) == 2
    what = [c["what"] for c in world.api.get("/v1/changes")["items"]]
    assert what.count("started") == 2


def test_no_credential_is_in_it(world, agent):
    ann = Player(world, "ann")
    seat = ann.join()
    the_server(agent).joined(seat["key"])
    until_step(world, "ann", "joined")
    world.muster.term()
    text = "".join(path.read_text() for path in segments(world))
    assert '"ann"' in text
    for secret in (seat["key"], ann.token, seat["key"].split(".")[1], world.muster.data.joinpath(
            "admin.token").read_text().strip()):
        assert secret not in text
    assert all(path.stat().st_mode & 0o077 == 0 for path in segments(world))


def test_a_broken_folder_loses_lines_and_nothing_else(make_world):
    world = make_world(default_region="EU", fleets=fleets(), rates=NO_RATES)
    world.muster.term()
    for path in segments(world):
        path.unlink()
    folder = world.muster.data / "history"
    folder.rmdir()
    folder.write_text("no folder")
    world.muster.start()
    with FakeHost(world.muster):
        Player(world, "ann").join()
        assert journey(world, "ann") == {
            "account": "ann", "entries": [], "complete_since": None, "more": False, "next": None}
        text = world.api.ask("GET", "/metrics").body.decode()
        assert "muster_history_failing 1" in text
        assert 'muster_history_lines_total{result="written"} 0' in text
        report = world.api.get("/v1/health")
        told, = [f for f in report["findings"] if f["code"] == "history_failing"]
        assert report["status"] == "degraded" and told["severity"] == "warning"
        assert told["sentence"].startswith("The history cannot be written: ")
    warned = [e for e in world.muster.log_lines() if "history cannot be written" in e["msg"]]
    assert len(warned) == 1 and warned[0]["level"] == "warn"


def test_it_can_be_turned_off(make_world):
    world = make_world(history={"max_mb": 0})
    for path in ("/v1/players/ann/journey", "/v1/refusals", "/v1/changes"):
        say = world.api.refused("GET", path, 409, "history_off")
        assert say == "No history is kept here: history.max_mb or history.days is 0."
    assert world.api.get("/v1/players")["items"] == []
    assert not (world.muster.data / "history").exists()


def test_pages_by_time(world, agent):
    ann = Player(world, "ann")
    for _ in range(6):
        ann.join()
        time.sleep(0.002)  # the pages are cut between two milliseconds
    whole = journey(world, "ann")["entries"]
    assert len(whole) == 12
    for argument, name in (("to", "complete_since"), ("cursor", "next")):
        pages, before = [], {}
        while True:
            page = journey(world, "ann", limit=3, **before)
            pages += page["entries"]
            assert page["more"] == (page["next"] is not None)
            if not page["more"]:
                break
            before = {argument: page[name]}
        assert pages == whole
    middle = whole[5]["at"]
    later = journey(world, "ann", **{"from": middle})["entries"]
    assert later == [e for e in whole if e["at"] >= middle]


def test_the_scope_is_that_of_readers(world):
    player = Player(world, "ann")
    for path in ("/v1/players", "/v1/players/ann", "/v1/players/ann/journey", "/v1/refusals",
                 "/v1/changes"):
        player.refused("GET", path, 403, "forbidden")
