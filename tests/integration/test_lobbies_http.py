"""Lobbies over HTTP: asking for one, looking at it, aborting it."""

import json
import threading

import chat
import pytest
from events import Reader
from http_api import FORM, JSON

pytestmark = pytest.mark.timeout(120)


def team(*accounts):
    return [{"account": a} for a in accounts]


def wanted(*teams, **more):
    return {"region": "EU", "type": 1, "map": "caldavar", "teams": list(teams or [team(7), team(8)]),
            **more}


def create(world, *teams, key=None, **more):
    """The lobby that was made."""
    headers = {"Idempotency-Key": key} if key else None
    answer = world.api.ask("POST", "/v1/lobbies", data=wanted(*teams, **more), headers=headers)
    assert answer.status == 201, answer
    assert answer.head["location"] == f"/v1/lobbies/{answer.json['id']}"
    return answer.json


def refused(world, status, code, data=None, **options):
    answer = world.api.ask("POST", "/v1/lobbies", data=data, **options)
    assert (answer.status, answer.error["code"]) == (status, code), answer
    assert world.api.all("/v1/lobbies") == []
    return answer.error


def get(world, lobby, **query):
    return world.api.get(f"/v1/lobbies/{lobby['id']}", **query)


def abort(world, lobby, **data):
    return world.api.post(f"/v1/lobbies/{lobby['id']}/abort", **data)


def token(world, *scopes):
    made = world.api.post("/v1/access-tokens", account="matchmaker", scopes=list(scopes))
    return made["token"]


# --- being made


def test_a_lobby_shows_who_is_in_it_and_what_was_asked(world):
    world.server()
    made = create(
        world,
        [{"account": 7, "name": "Ann", "slot": 3}, {"account": 8}],
        [{"account": 9, "name": "Łukasz"}],
        groups=[[8, 9]], mode=2, rating=1500, requeue=True)
    assert int(made["id"]) >= 1 << 30
    assert made["state"] == "loading"
    assert (made["fleet"], made["region"], made["type"], made["mode"]) == ("default", "EU", 1, 2)
    assert (made["map"], made["rating"], made["requeue"]) == ("caldavar", 1500, True)
    assert (made["size"], made["loaded"], made["connected"], made["moves"]) == (3, 0, 0, 0)
    assert made["cause"] is made["reason"] is made["error"] is None
    assert made["started_at"] is made["over_at"] is None
    assert made["created_at"] < made["deadline_at"]
    assert made["players"] == [
        {"account": 7, "name": "Ann", "team": 1, "slot": 3, "group": 2, "loaded": False,
         "connected": False},
        {"account": 8, "name": "8", "team": 1, "slot": 1, "group": 1, "loaded": False,
         "connected": False},
        {"account": 9, "name": "Łukasz", "team": 2, "slot": 0, "group": 1, "loaded": False,
         "connected": False},
    ]
    assert made["groups"] == [{"group": 1, "players": [8, 9], "queue": "in_lobby"},
                              {"group": 2, "players": [7], "queue": "in_lobby"}]
    assert {**get(world, made), "ticket": made["ticket"]} == made


def test_its_server_is_shown_when_it_holds_the_match(world):
    server = world.server(on_allocate="ready")
    made = create(world)
    server.expect_offer(int(made["id"]))
    held = world.wait(lambda: (v := get(world, made))["allocated"] and v, "server for the lobby")
    assert held["server"] == str(server.server_id)
    session = world.api.get(f"/v1/sessions/{held['session']}")
    assert (session["lobby"], session["server"]) == (int(made["id"]), held["server"])
    assert held["state"] == "loading"


def test_without_a_server_it_is_aborted_in_the_answer(world):
    made = create(world, requeue=True)
    assert (made["state"], made["cause"], made["queue"]) == ("aborted", "allocation", "queued")
    assert made["error"] and made["reason"] and made["over_at"]
    assert {g["queue"] for g in made["groups"]} == {"queued"}


def test_groups_of_one_that_was_aborted_are_not_queued_unless_it_was_asked_for(world):
    made = create(world)
    assert (made["state"], made["queue"]) == ("aborted", "not_queued")
    assert {g["queue"] for g in made["groups"]} == {"not_queued"}


def test_only_players_are_needed(world):
    world.server()
    answer = world.api.ask("POST", "/v1/lobbies", data={"teams": [team(7)]})
    assert answer.status == 201, answer
    made = answer.json
    assert (made["fleet"], made["region"], made["map"], made["requeue"]) == (
        "default", "AUTO", "", False)


def test_a_form_has_lists_as_json(world):
    world.server()
    form = {"region": "auto", "teams": json.dumps([team(7), []]), "groups": "[[7]]"}
    answer = world.api.ask("POST", "/v1/lobbies", form=form)
    assert answer.status == 201, answer
    assert [p["account"] for p in answer.json["players"]] == [7]


def test_a_hundred_players_fit(world):
    world.server()
    made = create(world, team(*range(1, 51)), team(*range(51, 101)))
    assert made["size"] == len(made["players"]) == len(made["groups"]) == 100


# --- refusals


@pytest.mark.parametrize("change, argument, message", [
    ({"teams": None}, "teams", "teams is missing."),
    ({"teams": []}, "teams", "teams is a list of 1 to 2 JSON lists, not of 0."),
    ({"teams": [team(1), team(2), team(3)]}, "teams",
     "teams is a list of 1 to 2 JSON lists, not of 3."),
    ({"teams": [{"account": 7}]}, "teams",
     'teams is a list of 1 to 2 JSON lists, not \'[{\\"account\\":7}]\'.'),
    ({"teams": "7"}, "teams", "teams is a list of 1 to 2 JSON lists, not '7'."),
    ({"teams": [[]]}, "teams", "teams have no player at all."),
    ({"teams": [team(*range(1, 102))]}, "teams", "teams have at most 100 players."),
    ({"teams": [[{"name": "ann"}]]}, "teams[0][0].account", "teams[0][0].account is missing."),
    ({"teams": [team(7, -1)]}, "teams[0][1].account",
     "teams[0][1].account is a whole number from 1 to 2147483647, not -1."),
    ({"teams": [team(7), team(7)]}, "teams[1][0].account",
     "teams[1][0].account is 7, who is named twice."),
    ({"teams": [[{"account": 7, "slot": 1}, {"account": 8}]]}, "teams[0][1].slot",
     "teams[0][1].slot is 1, which player 7 of this team has."),
    ({"teams": [[{"account": 7, "name": "x" * 65}]]}, "teams[0][0].name", None),
    ({"teams": [[{"account": 7, "nmae": "x"}]]}, "teams[0][0]",
     "teams[0][0] has a member that is not known. Did you mean 'name'?"),
    ({"groups": [[7], [7, 8]]}, "groups[1][0]", "groups[1][0] is 7, who is in a group already."),
    ({"groups": [[9]]}, "groups[0][0]", "groups[0][0] is 9, who is in no team."),
    ({"groups": [[]]}, "groups[0]", "groups[0] is empty."),
    ({"groups": [7]}, "groups", "groups is a list of 0 to 100 JSON lists, not '[7]'."),
    ({"type": 11}, "type", "type is a whole number from 0 to 10, not '11'."),
    ({"mode": 128}, "mode", "mode is a whole number from 0 to 127, not '128'."),
    ({"rating": -1}, "rating", "rating is a whole number from 0 to 1000000, not '-1'."),
    ({"map": "x" * 65}, "map", None),
    ({"requeue": "often"}, "requeue", "requeue is true or false, not 'often'."),
    ({"team": []}, "team", "There is no argument 'team'. Did you mean 'teams'?"),
])
def test_what_is_wrong_is_named(world, change, argument, message):
    error = refused(world, 400, "bad_argument", {**wanted(), **change})
    assert error["argument"] == argument
    assert error["message"] == message or (message is None and argument in error["message"])


def test_a_fleet_and_a_region_must_be_there(world):
    error = refused(world, 400, "no_such_fleet", wanted(fleet="defualt"))
    assert error["message"] == "There is no fleet 'defualt'. Did you mean 'default'?"
    assert error["argument"] == "fleet"
    error = refused(world, 400, "region_not_supported", wanted(region="EUU"))
    assert error["message"] == "There is no region 'EUU'. Did you mean 'EU'?"
    assert error["argument"] == "region"


def test_a_fleet_of_rooms_takes_no_lobby(make_world):
    from players import fleets
    world = make_world(fleets=fleets(max_players=2))
    error = refused(world, 409, "wrong_provider", wanted(fleet="arena"))
    assert error["message"] == "Fleet arena has no servers that take matches."


def test_a_player_loads_in_one_lobby_only(world):
    world.server()
    made = create(world)
    answer = world.api.ask("POST", "/v1/lobbies", data=wanted(team(9), team(8)))
    assert (answer.status, answer.error["code"]) == (409, "in_lobby")
    assert answer.error["message"] == f"Player 8 is in lobby {made['id']} already."
    assert [v["id"] for v in world.api.all("/v1/lobbies")] == [made["id"]]


def test_who_is_banned_is_in_no_lobby(world):
    issued = world.api.ask("POST", "/ban/issue", form={
        "account": "8", "reason": "cheat", "expires": "2099-01-01 00:00:00"})
    assert issued.status == 200, issued
    error = refused(world, 423, "banned", wanted())
    assert error["message"] == "Player 8 is banned."


def test_too_many_are_refused(make_world):
    world = make_world(limits={"lobbies": 1})
    world.server()
    create(world)
    answer = world.api.ask("POST", "/v1/lobbies", data=wanted(team(9)))
    assert (answer.status, answer.error["code"]) == (429, "too_many")
    assert answer.head["retry-after"] == "1"


def test_bodies_that_are_none(world):
    refused(world, 400, "bad_argument", body=b'{"teams":', content_type=JSON)
    refused(world, 400, "bad_argument", body=b"teams=%5B7", content_type=FORM)
    refused(world, 400, "bad_argument", body=b'{"teams":[[{"account":1,"account":2}]]}',
            content_type=JSON)
    refused(world, 415, "unsupported_type", body=b"x", content_type="text/plain")
    refused(world, 413, "too_large", body=b" " * 65537, content_type=JSON)


def test_scopes(world):
    world.server()
    player, reader, maker, admin = (world.api.with_token(token(world, s)) for s in (
        "game", "muster_read", "muster_allocate", "muster_admin"))
    made = maker.ask("POST", "/v1/lobbies", data=wanted(team(1)))
    assert made.status == 201
    path = f"/v1/lobbies/{made.json['id']}"
    assert admin.ask("POST", "/v1/lobbies", data=wanted(team(2))).status == 201
    for none in (player, reader):
        none.refused("POST", "/v1/lobbies", 403, "forbidden", data=wanted(team(3)))
        none.refused("POST", f"{path}/abort", 403, "forbidden")
    for one in (reader, maker, admin):
        assert len(one.all("/v1/lobbies")) == 2
        assert one.get(path)["id"] == made.json["id"]
    player.refused("GET", "/v1/lobbies", 403, "forbidden")
    player.refused("GET", path, 403, "forbidden")
    world.api.with_token(None).refused("GET", path, 401, "no_access_token")
    assert maker.post(f"{path}/abort")["state"] == "aborted"


# --- repeats


def test_a_repeat_with_the_same_key_makes_no_second_one(world):
    world.server()
    first = create(world, key="k")
    again = create(world, key="k")
    assert again["id"] == first["id"]
    assert len(world.api.all("/v1/lobbies")) == 1
    world.crash()
    assert create(world, key="k")["id"] == first["id"]


def test_a_key_is_of_one_request(world):
    world.server()
    create(world, key="k")
    answer = world.api.ask("POST", "/v1/lobbies", data=wanted(team(9)),
                           headers={"Idempotency-Key": "k"})
    assert (answer.status, answer.error["code"]) == (409, "key_conflict")


# --- looking


def test_lists_are_filtered_and_paged(world):
    world.server(capacity=8)
    made = [create(world, team(n), team(n + 100)) for n in range(1, 6)]
    abort(world, made[1])

    def ids(**query):
        return [v["id"] for v in world.api.all("/v1/lobbies", **query)]

    order = [m["id"] for m in made]
    assert ids() == ids(limit=2) == order
    assert ids(order="newest", limit=2) == order[::-1]
    assert ids(state="aborted") == [order[1]]
    assert ids(state="loading") == [i for i in order if i != order[1]]
    assert ids(account=3) == ids(account=103) == [order[2]]
    assert ids(account=999) == []
    assert ids(fleet="default") == order
    world.api.refused("GET", "/v1/lobbies", 400, "bad_argument", query={"fleet": "nowhere"})
    world.api.refused("GET", "/v1/lobbies", 400, "bad_argument", query={"state": "open"})
    assert "players" not in world.api.get("/v1/lobbies")["items"][0]


def test_one_that_is_not_there(world):
    assert world.api.refused("GET", "/v1/lobbies/12", 404, "not_found") == "There is no lobby 12."
    assert world.api.refused("POST", "/v1/lobbies/12/abort", 404, "not_found") == (
        "There is no lobby 12.")
    world.api.refused("GET", "/v1/lobbies/x", 400, "bad_argument")


def test_who_waits_is_answered_when_it_no_longer_loads(world):
    world.server()
    made = create(world)
    call = world.api.begin(world.net, "GET", f"/v1/lobbies/{made['id']}", {"wait": 30})
    world.api.get("/v1/status")  # the other one is asked before this is answered
    abort(world, made, reason="No match today")
    answer = call.answered().json
    assert (answer["state"], answer["cause"]) == ("aborted", "operator")
    assert answer["reason"] == "No match today"
    assert get(world, made, wait=30)["state"] == "aborted"  # at once


@pytest.mark.muster(loading_ms=300)
def test_not_all_loaded_in_time(world):
    world.server()
    made = create(world, requeue=True)
    over = get(world, made, wait=30)
    assert (over["state"], over["cause"], over["reason"]) == (
        "aborted", "loading", "Loading timeout")
    assert {g["queue"] for g in over["groups"]} == {"queued"}


# --- aborting


def test_an_aborted_one_gives_its_server_back(world):
    server = world.server(capacity=1)
    made = create(world)
    number = int(made["id"])
    server.expect_offer(number)
    over = abort(world, made)
    assert (over["state"], over["cause"], over["reason"]) == (
        "aborted", "operator", "Ended by an operator")
    server.expect_cancel(number)
    again = create(world)
    server.expect_offer(int(again["id"]))


def test_what_is_over_cannot_be_aborted_again(world):
    made = create(world)
    message = world.api.refused("POST", f"/v1/lobbies/{made['id']}/abort", 409, "already_over")
    assert message == f"The lobby {made['id']} is over already."


def test_a_reason_has_a_length(world):
    world.server()
    made = create(world)
    world.api.refused("POST", f"/v1/lobbies/{made['id']}/abort", 400, "bad_argument",
                      data={"reason": "x" * 121})
    assert get(world, made)["state"] == "loading"


def test_an_abort_is_in_the_audit_and_a_creation_is_not(world):
    world.server()
    made = create(world)
    abort(world, made, reason="No match today")
    entry, = (e for e in world.api.all("/v1/audit") if e["target"]["kind"] == "lobby")
    assert (entry["action"], entry["target"]["id"]) == ("abort", made["id"])
    assert entry["detail"] == "No match today"


def test_a_lost_server_makes_it_move(world):
    first = world.server(ip="10.0.0.1", on_allocate="ready")
    made = create(world)
    first.expect_offer(int(made["id"]))
    world.wait(lambda: get(world, made)["allocated"], "a server")
    second = world.server(ip="10.0.0.2", on_allocate="ready")
    first.close()
    second.expect_offer(int(made["id"]), timeout_s=20)
    moved = world.wait(lambda: (v := get(world, made))["moves"] and v, "the move")
    assert (moved["state"], moved["moves"]) == ("loading", 1)


def test_it_is_there_after_a_crash(world):
    world.server()
    made = create(world, requeue=True)
    world.crash()
    again = get(world, made)
    for key in ("id", "state", "players", "groups", "map", "requeue"):
        assert again[key] == made[key]


def test_many_at_once_are_all_made(world):
    world.server(capacity=40)
    made = []

    def run(first):
        for n in range(first, first + 10):
            made.append(create(world, team(n), team(n + 1000)))

    threads = [threading.Thread(target=run, args=(100 * k + 1,)) for k in range(4)]
    for thread in threads:
        thread.start()
    world.wait(lambda: len(made) == 40, "all lobbies", timeout_s=30)
    for thread in threads:
        thread.join()
    assert len({m["id"] for m in made}) == 40


def test_chat_servers_cannot_name_a_lobby_of_ours(world):
    """Numbers from 2^30 on are ours: their requests under these are another chat server's."""
    world.server(capacity=4)
    made = create(world)
    other = world.chat(regions=(chat.EU,))
    other.allocate(int(made["id"]) % 1000 + 1)
    assert get(world, made)["state"] == "loading"


# --- events, metrics, the log


def metric(world, name, **labels):
    found = 0
    for line in world.api.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name) and line[len(name)] in "{ " and all(
                f'{k}="{v}"' in line for k, v in labels.items()):
            found += float(line.rsplit(" ", 1)[1])
    return found


def test_events_say_all_that_a_matchmaker_needs(world):
    world.server()
    reader = Reader(world, kinds="lobby,note")
    made = create(world, team(7, 8), team(9), groups=[[7, 9]], requeue=True)
    first = reader.expect_event("lobby", id=made["id"], state="loading")
    assert (first.data["fleet"], first.data["region"], first.data["size"]) == ("default", "EU", 3)
    abort(world, made, reason="No match today")
    over = reader.expect_event("lobby", id=made["id"], state="aborted").data
    assert (over["cause"], over["reason"], over["requeue"]) == ("operator", "No match today", True)
    assert over["groups"] == [{"group": 1, "players": [7, 9], "queue": "queued"},
                              {"group": 2, "players": [8], "queue": "queued"}]
    note = reader.expect_event("note", text="lobby aborted").data
    assert (note["lobby"], note["cause"], note["requeued"]) == (int(made["id"]), "operator", True)
    again = Reader(world, kinds="lobby", last_id=first.id)
    assert again.expect_event("lobby", id=made["id"], state="aborted").data == over


def test_events_are_resumed_after_a_crash(world):
    world.server()
    reader = Reader(world, kinds="lobby")
    made = create(world)
    first = reader.expect_event("lobby", id=made["id"], state="loading")
    abort(world, made)
    over = reader.expect_event("lobby", id=made["id"], state="aborted")
    world.crash()
    again = Reader(world, kinds="lobby", last_id=first.id)
    resumed = again.expect_event("lobby", id=made["id"], state="aborted")
    assert (resumed.id, resumed.data) == (over.id, over.data)


def test_without_a_server_one_event_says_why(world):
    reader = Reader(world, kinds="lobby")
    reader.expect_open()
    made = create(world)
    over = reader.expect_event("lobby", id=made["id"]).data
    assert (over["state"], over["cause"], over["error"]) == ("aborted", "allocation", made["error"])
    assert {g["queue"] for g in over["groups"]} == {"not_queued"}


def test_metrics_count_what_came_of_them(world):
    before = metric(world, "muster_allocations_total", result="failed")
    failed = create(world)
    world.server(capacity=4)
    made = create(world)
    assert metric(world, "muster_lobbies", state="loading") == 1
    abort(world, made)
    assert metric(world, "muster_lobbies", state="loading") == 0
    assert metric(world, "muster_lobbies_created_total", fleet="default", region="EU") == 2
    assert metric(world, "muster_lobbies_total", result="aborted", reason=failed["error"]) == 1
    assert metric(world, "muster_lobbies_total", result="aborted", reason="operator") == 1
    assert metric(world, "muster_lobbies_total", result="started") == 0
    assert metric(world, "muster_lobby_players_total", result="asked") == 4
    # Their requests for servers are requests as any other, with their answers and times.
    assert metric(world, "muster_allocations_total", result="failed") == before + 1
    assert metric(world, "muster_allocations_total", result="cancelled") == 1
    assert metric(world, "muster_allocation_duration_seconds_count", result="failed") == before + 1
    status = world.api.get("/v1/status")
    assert status["lobbies"] == {"loading": 0, "started": 0, "ever_started": 0, "ever_aborted": 2,
                                 "clients": 0}
    assert status["chat_servers"] == 0  # the one that asks for lobbies is nobody


def test_the_log_has_their_ids_and_no_token(world):
    server = world.server(on_allocate="ready")
    made = create(world)
    offer = server.expect_offer(int(made["id"]))
    abort(world, made, reason="No match today")
    number = int(made["id"])

    def logged(msg, **fields):
        return world.wait(lambda: [line for line in world.muster.log_lines(msg)
                                   if fields.items() <= line.items()], f"line: {msg}")[0]

    assert logged("lobby created", lobby=number)["players"] == 2
    line = logged("lobby aborted", lobby=number, cause="operator", requeued="false")
    assert line["text"] == "No match today"
    assert logged("operator", action="abort")["lobby"] == number
    assert offer.match_token not in world.muster.log()


# --- with players


def start(world, accounts=(7, 8), **more):
    """(server, players, the lobby, started)"""
    server = world.server(on_allocate="ready")
    players = [world.client(a) for a in accounts]
    made = create(world, team(*accounts[:1]), team(*accounts[1:]), **more)
    for player in players:
        player.created(lobby=int(made["id"]))
        player.say_loaded(int(made["id"]))
    for player in players:
        player.started(lobby=int(made["id"]))
    return server, players, get(world, made)


def test_who_is_there_and_who_has_loaded_is_shown(world):
    world.server(on_allocate="silent")
    ann = world.client(7)
    made = create(world, team(7), team(8))
    number = int(made["id"])
    assert (made["connected"], made["loaded"]) == (1, 0)
    call = world.api.begin(world.net, "GET", f"/v1/lobbies/{number}", {"wait": 1})
    ann.say_loaded(number)
    shown = world.wait(lambda: (v := get(world, made))["loaded"] and v, "a player who has loaded")
    assert [(p["loaded"], p["connected"]) for p in shown["players"]] == [(True, True), (False, False)]
    assert call.answered().json["state"] == "loading"  # nobody else came in that second


def test_a_started_lobby_shows_its_match(world):
    reader = Reader(world, kinds="lobby,note")
    server, _, lobby = start(world)
    assert (lobby["state"], lobby["queue"], lobby["loaded"], lobby["allocated"]) == (
        "started", "in_match", 2, True)
    assert lobby["server"] == str(server.server_id)
    assert lobby["started_at"] and lobby["deadline_at"] is None
    started = reader.expect_event("lobby", id=lobby["id"], state="started").data
    assert (started["server"], started["session"]) == (lobby["server"], lobby["session"])
    assert {g["queue"] for g in started["groups"]} == {"in_match"}
    assert reader.expect_event("note", text="lobby started").data["players"] == 2
    assert metric(world, "muster_lobbies", state="started") == 1
    assert metric(world, "muster_clients") == 2
    assert metric(world, "muster_lobbies_total", result="started", region="EU", reason="ok") == 1
    assert metric(world, "muster_lobby_start_duration_seconds_count", region="EU") == 1
    assert metric(world, "muster_lobby_duration_seconds_count", region="EU") == 1
    assert metric(world, "muster_lobby_players_total", result="started") == 2
    server.end(int(lobby["id"]))
    ended = reader.expect_event("lobby", id=lobby["id"], state="ended").data
    assert (ended["cause"], ended["reason"]) == (None, None)
    assert reader.expect_event("note", text="lobby ended").data["reason"] == "match_ended"
    assert metric(world, "muster_lobbies_ended_total") == 1


def test_aborting_a_started_one_ends_its_match(world):
    reader = Reader(world, kinds="lobby,server")
    server, players, lobby = start(world)
    number = int(lobby["id"])
    abort(world, lobby)
    server.expect_cancel(number)
    for player in players:
        player.aborted(lobby=number)
    over = world.wait(lambda: (v := get(world, lobby))["state"] == "ended" and v, "end of the match")
    assert (over["cause"], over["queue"]) == ("operator", "not_queued")
    assert over["reason"]
    world.wait(lambda: get(world, lobby)["untold"] == 0, "word to all that it is over")
    reader.expect_everything()
    states = [e.data["state"] for e in reader.of("lobby")]
    assert (states.count("started"), states.count("ended")) == (1, 1)
    world.api.refused("POST", f"/v1/lobbies/{number}/abort", 409, "already_over")


@pytest.mark.muster(heartbeat_ms=3000)
def test_a_server_that_is_lost_after_the_start_is_a_note(world):
    reader = Reader(world, kinds="note")
    server, _, lobby = start(world)
    server.close()
    lost = reader.expect_event("note", text="started lobby lost its server", timeout_s=20).data
    assert (lost["lobby"], lost["session"]) == (int(lobby["id"]), lobby["session"])
    server.open()
    server.register()
    back = reader.expect_event("note", text="started lobby has its server back").data
    assert back["lobby"] == int(lobby["id"])
    assert metric(world, "muster_lobbies_lost_total") == 1
    assert metric(world, "muster_lobbies_back_total") == 1


def test_who_waits_hears_of_the_start(world):
    world.server(on_allocate="ready")
    ann = world.client(7)
    made = create(world, team(7))
    call = world.api.begin(world.net, "GET", f"/v1/lobbies/{made['id']}", {"wait": 30})
    ann.created()
    ann.say_loaded(int(made["id"]))
    assert call.answered().json["state"] == "started"
