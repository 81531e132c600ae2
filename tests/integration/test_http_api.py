"""The HTTP API: every route, what it refuses, and that it shows nothing that is not durable."""

import json
import os
import re
import signal
import socket
import stat
import time

import chat
import pytest
from gate import Gate
from http_api import Api, admin_token
from muster_proc import Muster

ID = re.compile(r"[1-9][0-9]*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def anonymous(world):
    return Api(world.muster)


# --- how it is


def test_health_and_readiness_need_no_token(world):
    assert anonymous(world).get("/healthz") == {"status": "ok"}
    ready = anonymous(world).get("/readyz")
    assert ready["store"] == "writable"
    assert world.muster.ready_line.startswith(
        "ready http={http} server={server} manager={manager} client={client}".format(**ready["ports"]))


def test_metrics_are_open_in_development(world):
    answer = anonymous(world).ask("GET", "/metrics")
    assert answer.status == 200
    assert answer.head["content-type"].startswith("text/plain; version=0.0.4")
    assert b"# TYPE muster_allocations_total counter" in answer.body


def test_metrics_need_a_token_otherwise(make_world):
    world = make_world(dev=False)
    anonymous(world).refused("GET", "/metrics", 401, "no_access_token")
    assert world.api.ask("GET", "/metrics").status == 200


def test_requests_are_counted_under_their_operation(world):
    world.api.get("/v1/servers")
    world.api.ask("GET", "/nonsense")
    text = anonymous(world).ask("GET", "/metrics").body.decode()
    assert re.search(r'muster_http_requests_total\{[^}]*operation="list_servers"[^}]*\} 1', text)


def test_status(world):
    status = world.api.get("/v1/status")
    assert status["servers"] == {"available": 0, "full": 0, "draining": 0, "offline": 0}
    assert status["allocations"]["p50_ms"] is None
    assert TIME.fullmatch(status["started_at"])
    server, asker = world.server(capacity=3), world.chat()
    asker.allocate(1)
    asker.refuse(2, region=5)
    status = world.api.get("/v1/status")
    assert status["servers"]["available"] == 1
    assert status["slots"] == {"used": 1, "total": 3}
    assert status["sessions"] == status["chat_servers"] == 1
    assert status["tickets_open"] == 0
    assert status["allocations"]["done"] == 1
    assert 0 < status["allocations"]["p50_ms"] <= status["allocations"]["p99_ms"]
    (refusal, *_) = status["refusals"]
    assert refusal["chat_server"] == "chat-1" and refusal["lobby"] == 2
    assert refusal["code"] in ("region_not_supported", "no_servers") and refusal["message"]
    eu = next(r for r in status["regions"] if r["name"] == "EU")
    assert eu["servers"]["available"] == 1 and eu["slots"] == {"used": 1, "total": 3}
    assert server.server_id


@pytest.mark.embedded
def test_status_says_how_the_store_keeps_up(world):
    world.server(capacity=3)
    world.chat().allocate(1)
    storage = world.api.get("/v1/status")["storage"]
    assert storage["commits"] >= 3 and storage["batches_waiting"] in (0, 1, 2)
    assert 0 < storage["commit_p50_ms"] <= storage["commit_p99_ms"]
    assert storage["journal_bytes"] > 0 and storage["state_bytes"] > 0
    assert 0 < storage["disk_free_bytes"] <= storage["disk_bytes"]
    world.wait(lambda: world.api.get("/v1/status")["storage"]["fold_lag"] == 0, "the fold")
    text = anonymous(world).ask("GET", "/metrics").body.decode()
    assert re.search(r"^muster_store_disk_free_bytes \d+$", text, re.M)


# --- looking


def test_regions(world):
    regions = world.api.all("/v1/regions")
    assert len(regions) == 17
    eu = world.api.get("/v1/regions/eu")
    assert eu in regions and eu["name"] == "EU" and eu["code"] == chat.EU
    why = world.api.refused("GET", "/v1/regions/EUU", 404, "not_found")
    assert why == "There is no region 'EUU'. Did you mean 'EU'?"


def test_fleets(make_world):
    world = make_world(fleets=[{"name": "default"}, {"name": "duel", "ready_required": True}])
    world.server()
    fleets = {f["name"]: f for f in world.api.all("/v1/fleets")}
    assert set(fleets) == {"default", "duel"}
    assert fleets["duel"]["ready_required"] and not fleets["default"]["ready_required"]
    assert fleets["default"]["servers"]["available"] == 1
    assert world.api.get("/v1/fleets/duel") == fleets["duel"]
    assert world.api.get(f"/v1/fleets/{fleets['duel']['id']}") == fleets["duel"]
    why = world.api.refused("GET", "/v1/fleets/dual", 404, "not_found")
    assert why == "There is no fleet 'dual'. Did you mean 'duel'?"
    world.api.refused("GET", "/v1/fleets/99", 404, "not_found")


def test_servers(world):
    first = world.server(capacity=2, ip="10.1.2.3", port=4567)
    second = world.server(region=chat.EU + 1)
    world.chat().allocate(9)
    first.beat(cpu=12.5, memory=40.0)
    (shown, other) = world.api.all("/v1/servers")
    assert shown["id"] == str(first.server_id) and other["id"] == str(second.server_id)
    assert (shown["ip"], shown["port"], shown["region"]) == ("10.1.2.3", 4567, "EU")
    assert (shown["status"], shown["connected"], shown["draining_by"]) == ("available", True, [])
    assert (shown["max_sessions"], shown["load"], shown["sessions"], shown["open"]) == (2, 1, 1, 1)
    assert (shown["cpu_percent"], shown["memory_percent"]) == (12.5, 40)
    assert shown["passed_over"] is None and shown["backoff_left_ms"] == 0
    assert TIME.fullmatch(shown["registered_at"]) and TIME.fullmatch(shown["connected_at"])
    one = world.api.get(f"/v1/servers/{first.server_id}")
    assert one["id"] == shown["id"]
    why = world.api.refused("GET", "/v1/servers/999", 404, "not_found")
    assert why == "There is no server 999."


def test_servers_are_filtered(make_world):
    world = make_world(fleets=[{"name": "default"}, {"name": "duel"}])
    eu = world.server()
    full = world.server(capacity=1, region=0)
    world.chat(regions=(0,)).allocate(1, region=0)

    def ids(**query):
        return [int(s["id"]) for s in world.api.all("/v1/servers", **query)]

    assert ids(region="EU") == ids(region="eu") == [eu.server_id]
    assert ids(status="full") == [full.server_id]
    assert ids(status="offline") == ids(fleet="duel") == []
    assert ids(fleet="default") == ids(fleet="1") == [eu.server_id, full.server_id]
    assert ids(region="EU", status="full") == []


def test_sessions(world):
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    asker.allocate(8)
    server.end(8)
    sessions = world.api.all("/v1/sessions")
    one = next(s for s in sessions if s["lobby"] == 7)
    assert (one["state"], one["chat_server"], one["fleet"]) == ("open", "chat-1", "default")
    assert (one["game_type"], one["player_count"], one["end_reason"]) == (6, 10, None)
    assert one["server"] == str(server.server_id)
    assert world.api.get(f"/v1/sessions/{one['id']}") == one
    assert [s["id"] for s in world.api.all("/v1/sessions", lobby=7)] == [one["id"]]
    assert world.api.all("/v1/sessions", server=server.server_id, state="open") == [one]
    assert world.api.all("/v1/sessions", state="lost") == []
    assert world.api.all("/v1/sessions", server=999) == []
    world.api.refused("GET", "/v1/sessions/999999", 404, "not_found")


def test_tickets_and_why(world):
    server, asker = world.server(capacity=1), world.chat()
    asker.allocate(7)
    asker.refuse(8)
    (done, failed) = world.api.all("/v1/tickets")
    assert (done["state"], done["server"], done["tries"]) == ("done", str(server.server_id), 1)
    assert done["error"] is None and done["regions"] == ["EU"] and done["average_rating"] == 1650
    assert failed["state"] == "failed" and failed["session"] is None
    assert failed["error"] == {"code": "no_servers", "message": "No servers available"}
    assert world.api.all("/v1/tickets", state="failed") == [failed]
    assert world.api.all("/v1/tickets", lobby=7, chat_server="chat-1") == [done]
    assert world.api.all("/v1/tickets", chat_server="chat-2") == []
    assert world.api.get(f"/v1/tickets/{done['id']}") == done
    why = world.api.get(f"/v1/tickets/{done['id']}/why")
    assert why["ticket"] == done
    assert why["tries"][0]["server"] == done["server"]
    assert why["tries"][0]["outcome"] == "acknowledged"
    assert why["sentence"].startswith(f"Placed on server {server.server_id} (EU, 10.0.0.1:")
    why = world.api.get(f"/v1/tickets/{failed['id']}/why")
    assert why["passed_over"]["full"] == 1 and "1 full" in why["sentence"]
    world.api.refused("GET", "/v1/tickets/999", 404, "not_found")
    world.api.refused("GET", "/v1/tickets/999/why", 404, "not_found")


def test_why_tells_of_retries(world):
    first, second = world.server(on_allocate="refuse"), world.server(cpu=50.0)
    second.beat()
    world.chat().allocate(7)
    (ticket,) = world.api.all("/v1/tickets")
    why = world.api.get(f"/v1/tickets/{ticket['id']}/why")
    assert [t["outcome"] for t in why["tries"]] == ["refused", "acknowledged"]
    assert f"Before that server {first.server_id} refused." in why["sentence"]
    assert ticket["server"] == str(second.server_id)


# --- waiting


def test_wait_ends_with_the_ticket(world):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    (ticket,) = world.api.all("/v1/tickets")
    assert ticket["state"] == "open"
    calls = [
        world.api.begin(world.net, "GET", f"/v1/tickets/{ticket['id']}", {"wait": wait})
        for wait in (30, 60, 60)
    ]
    world.elapse(0.2)
    assert not any(call.answer_given for call in calls)
    server.accept(offer)
    for call in calls:
        assert call.answered().json["state"] == "done"


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_wait_ends_when_the_ticket(world, how):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    server.expect_offer(7)
    (ticket,) = world.api.all("/v1/tickets")
    call = world.api.begin(world.net, "GET", f"/v1/tickets/{ticket['id']}", {"wait": 60})
    if how == "fails":
        server.ack(7, success=0)
    else:
        asker.send_cancel(7)
    answer = call.answered().json
    assert answer["state"] == {"fails": "failed", "is cancelled": "cancelled"}[how]


def test_wait_ends_in_time(world):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    server.expect_offer(7)
    (ticket,) = world.api.all("/v1/tickets")
    began = time.monotonic()
    call = world.api.begin(world.net, "GET", f"/v1/tickets/{ticket['id']}", {"wait": 1})
    assert call.answered().json["state"] == "open"
    assert time.monotonic() - began >= 0.9


def test_wait_for_what_is_over_is_no_wait(world):
    world.server()
    world.chat().allocate(7)
    (ticket,) = world.api.all("/v1/tickets")
    assert world.api.get(f"/v1/tickets/{ticket['id']}", wait=60)["state"] == "done"


def test_client_that_leaves_while_it_waits_is_forgotten(world):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    (ticket,) = world.api.all("/v1/tickets")
    call = world.api.begin(world.net, "GET", f"/v1/tickets/{ticket['id']}", {"wait": 60})
    world.elapse(0.1)
    call.close()
    server.accept(offer)
    asker.placed(7)
    assert world.api.get(f"/v1/tickets/{ticket['id']}")["state"] == "done"


def test_stop_answers_those_who_wait(world):
    server, asker = world.server(on_allocate="silent"), world.chat()
    asker.request(7)
    server.expect_offer(7)
    (ticket,) = world.api.all("/v1/tickets")
    call = world.api.begin(world.net, "GET", f"/v1/tickets/{ticket['id']}", {"wait": 60})
    world.elapse(0.2)
    world.muster.signal(signal.SIGTERM)
    assert call.answered().json["state"] == "open"
    assert world.muster.finish() == 0


# --- pages


def test_pages_show_each_server_once_while_the_set_changes(world):
    servers = [world.server(capacity=1) for _ in range(25)]
    seen = []
    pages = world.api.pages("/v1/servers", limit=10)
    seen += next(pages)
    world.server()
    servers[0].close()  # it stays, for a while
    servers[24].close()
    seen += next(pages)
    late = world.server()
    for page in pages:
        seen += page
    ids = [int(s["id"]) for s in seen]
    assert ids == sorted(set(ids))
    assert set(ids) >= {s.server_id for s in servers}
    assert late.server_id in ids, "what comes before the end is shown"


@pytest.mark.muster(tickets_kept=20)
def test_pages_survive_what_is_forgotten_meanwhile(world):
    """The cursor is a number, not an object."""
    server, asker = world.server(capacity=100), world.chat()
    for lobby in range(1, 21):
        asker.allocate(lobby)
        server.end(lobby)
    pages = world.api.pages("/v1/tickets", limit=5)
    seen = [int(t["id"]) for t in next(pages)]
    for lobby in range(101, 116):
        asker.allocate(lobby)
        server.end(lobby)
    for page in pages:
        seen += [int(t["id"]) for t in page]
    assert seen == sorted(set(seen))
    assert len(seen) >= 20


def test_limits_of_a_page(world):
    for _ in range(3):
        world.server()
    page = world.api.get("/v1/servers", limit=2)
    assert len(page["items"]) == 2 and page["next"] == page["items"][1]["id"]
    page = world.api.get("/v1/servers", limit=3)
    assert page["next"] is None
    page = world.api.get("/v1/servers", cursor=page["items"][2]["id"])
    assert page == {"items": [], "next": None}
    world.api.refused("GET", "/v1/servers", 400, "bad_argument", query={"limit": 1001})
    world.api.refused("GET", "/v1/servers", 400, "bad_argument", query={"limit": 0})
    world.api.refused("GET", "/v1/servers", 400, "bad_argument", query={"cursor": "x"})


def test_newest_first(world):
    server, asker = world.server(capacity=20), world.chat()
    for lobby in range(1, 8):
        asker.allocate(lobby)
    seen = []
    for page in world.api.pages("/v1/tickets", limit=3, order="newest"):
        seen += [t["lobby"] for t in page]
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    assert world.api.get("/v1/sessions", limit=1, order="newest")["items"][0]["lobby"] == 7
    world.api.refused("GET", "/v1/tickets", 400, "bad_argument", query={"order": "latest"})


# --- changing


def test_drain_and_undrain(world):
    server, asker = world.server(), world.chat()
    asker.allocate(1)
    drained = world.api.post(f"/v1/servers/{server.server_id}/drain")
    assert drained["status"] == "draining" and drained["draining_by"] == ["operator"]
    assert drained["open"] == 1, "its match goes on"
    assert server.expect("SV_DRAIN").on
    assert asker.refuse(2) == "No servers available"
    again = world.api.post(f"/v1/servers/{server.server_id}/drain")
    assert again["draining_by"] == ["operator"]
    back = world.api.post(f"/v1/servers/{server.server_id}/undrain")
    assert back["status"] == "available" and back["draining_by"] == []
    asker.allocate(3)
    why = world.api.refused("POST", "/v1/servers/99/drain", 404, "not_found")
    assert why == "There is no server 99."


def test_drain_outlives_a_restart(world):
    server = world.server()
    world.api.post(f"/v1/servers/{server.server_id}/drain")
    world.crash()
    assert world.api.get(f"/v1/servers/{server.server_id}")["draining_by"] == ["operator"]


def test_end_of_a_session(world):
    server, asker = world.server(), world.chat()
    asker.allocate(7)
    (session,) = world.api.all("/v1/sessions")
    ended = world.api.post(f"/v1/sessions/{session['id']}/end")
    assert ended["state"] in ("cancelling", "ended") and ended["end_reason"] == "by_operator"
    server.expect_cancel(7)
    asker.expect_event(7, chat.ENDED)
    path = f"/v1/sessions/{session['id']}/end"
    answer = world.api.ask("POST", path)
    assert (answer.status, answer.error["code"]) in ((409, "already_over"), (404, "not_found"))
    world.api.refused("POST", "/v1/sessions/999999/end", 404, "not_found")


def test_audit_is_newest_first(world):
    server = world.server()
    path = f"/v1/servers/{server.server_id}"
    world.api.post(f"{path}/drain")
    world.api.post(f"{path}/undrain")
    world.api.post("/v1/access-tokens", account="bob", scopes=["muster_read"])
    issue, undrain, drain = world.api.all("/v1/audit")[:3]
    assert (issue["action"], undrain["action"], drain["action"]) == ("issue", "undrain", "drain")
    assert drain["target"] == {"kind": "server", "id": str(server.server_id)}
    assert (drain["who"], drain["address"]) == ("admin", "127.0.0.1")
    assert issue["target"] is None and issue["detail"] == "bob: muster_read"
    assert world.api.all("/v1/audit", limit=1)[:3] == [issue, undrain, drain]
    assert TIME.fullmatch(drain["at"])


# --- enrolment tokens


@pytest.fixture
def strict(make_world):
    return make_world(dev=False)


def test_enrolled_server_is_let_in(strict):
    made = strict.api.post("/v1/tokens", role="server", fleet="default", regions=["EU"], name="rack 1")
    assert made["role"] == "server" and made["regions"] == ["EU"] and made["name"] == "rack 1"
    assert made["generation"] == 1 and made["expires_at"] is None
    server = strict.server(token=made["token"])
    shown = strict.api.get(f"/v1/tokens/{made['id']}")
    assert shown["connections"] == 1 and "token" not in shown
    assert strict.api.all("/v1/tokens") == [shown]
    stranger = strict.unregistered_server(token=made["token"] + "x")
    stranger.say_hello()
    stranger.refusal("SV_HANDSHAKE_RESPONSE")
    elsewhere = strict.unregistered_server(token=made["token"], region=0)
    elsewhere.say_hello()
    elsewhere.refusal("SV_HANDSHAKE_RESPONSE")
    assert not server.closed


def test_revoked_token_cuts_and_admits_nobody(strict):
    made = strict.api.post("/v1/tokens", role="chat", fleet="default")
    asker = strict.chat(token=made["token"])
    shown = strict.api.post(f"/v1/tokens/{made['id']}/revoke")
    assert TIME.fullmatch(shown["revoked_at"])
    asker.expect_closed()
    again = strict.unregistered_chat(token=made["token"])
    again.say_hello()
    again.refusal("MGR_HANDSHAKE_RESPONSE")
    strict.api.refused("POST", f"/v1/tokens/{made['id']}/revoke", 409, "already_over")
    strict.api.refused("POST", f"/v1/tokens/{made['id']}/rotate", 409, "already_over")
    strict.api.refused("POST", "/v1/tokens/99/revoke", 404, "not_found")


def test_rotated_token_leaves_the_old_one_its_grace(strict):
    made = strict.api.post("/v1/tokens", role="server", fleet="default")
    fresh = strict.api.post(f"/v1/tokens/{made['id']}/rotate", grace_s=3600)
    assert fresh["token"] != made["token"] and fresh["generation"] == 2
    assert TIME.fullmatch(fresh["previous_until"])
    for token in (made["token"], fresh["token"]):
        strict.server(token=token)
    last = strict.api.post(f"/v1/tokens/{made['id']}/rotate", grace_s=0)
    old = strict.unregistered_server(token=fresh["token"])
    old.say_hello()
    old.refusal("SV_HANDSHAKE_RESPONSE")
    strict.server(token=last["token"])


def test_token_of_a_fleet_that_is_not(strict):
    why = strict.api.refused("POST", "/v1/tokens", 400, "bad_argument",
                             data={"role": "server", "fleet": "defualt"})
    assert why == "There is no fleet 'defualt'. Did you mean 'default'?"
    why = strict.api.refused("POST", "/v1/tokens", 400, "bad_argument",
                             data={"role": "server", "fleet": "default", "regions": ["UE"]})
    assert why.startswith("There is no region 'UE'.")
    answer = strict.api.ask("POST", "/v1/tokens", data={"role": "server"})
    assert answer.error == {
        "code": "bad_argument", "message": "fleet is missing.", "argument": "fleet"}


@pytest.mark.parametrize("how", ["json", "form", "query", "json text in a form"])
def test_arguments_come_as_the_client_likes(strict, how):
    wanted = {"role": "server", "fleet": "default", "regions": ["EU", "USE"], "expires_in_s": 60}
    flat = {**wanted, "regions": "EU,USE"}
    options = {
        "json": {"data": wanted},
        "form": {"form": flat},
        "query": {"query": flat},
        "json text in a form": {"form": {**wanted, "regions": json.dumps(wanted["regions"])}},
    }
    answer = strict.api.ask("POST", "/v1/tokens", **options[how])
    assert answer.status == 200, answer
    assert set(answer.json["regions"]) == {"EU", "USE"} and answer.json["expires_at"]


# --- repeats


def test_repeat_with_the_same_key_gets_the_same_answer(strict):
    first = strict.api.post("/v1/tokens", key="k1", role="server", fleet="default")
    again = strict.api.post("/v1/tokens", key="k1", role="server", fleet="default")
    assert again == first
    assert len(strict.api.all("/v1/tokens")) == 1
    strict.crash()
    assert strict.api.post("/v1/tokens", key="k1", role="server", fleet="default") == first
    assert strict.api.post("/v1/tokens", key="k2", role="server", fleet="default") != first
    assert strict.api.post("/v1/tokens", role="server", fleet="default")["id"] != first["id"]


def test_same_key_with_other_arguments_is_refused(strict):
    strict.api.post("/v1/tokens", key="k", role="server", fleet="default")
    strict.api.refused("POST", "/v1/tokens", 409, "key_conflict",
                       data={"role": "chat", "fleet": "default"}, headers={"Idempotency-Key": "k"})
    assert len(strict.api.all("/v1/tokens")) == 1


def test_key_belongs_to_account_and_operation(strict):
    bob = strict.api.with_token(
        strict.api.post("/v1/access-tokens", key="k", account="bob", scopes=["muster_admin"])["token"])
    one = strict.api.post("/v1/tokens", key="k", role="server", fleet="default")
    other = bob.post("/v1/tokens", key="k", role="chat", fleet="default")
    assert one["id"] != other["id"]


def test_refused_request_may_be_repeated(world):
    path = "/v1/servers/1/drain"
    world.api.refused("POST", path, 404, "not_found", headers={"Idempotency-Key": "k"})
    server = world.server()
    assert server.server_id == 1
    assert world.api.post(path, key="k")["draining_by"] == ["operator"]


def test_repeat_of_an_access_token_is_the_same_token(world):
    one = world.api.post("/v1/access-tokens", key="k", account="bob", scopes=["game"])
    world.restart()
    assert world.api.post("/v1/access-tokens", key="k", account="bob", scopes=["game"]) == one


@pytest.mark.parametrize("key", ["", "x" * 129])
def test_key_of_no_use_is_refused(world, key):
    answer = world.api.ask("POST", "/v1/servers/1/drain", headers={"Idempotency-Key": key})
    assert answer.status == 400 and answer.error["argument"] == "Idempotency-Key"


# --- what is not durable


@pytest.fixture
def gate(gate_library, tmp_path):
    return Gate(gate_library, tmp_path / "gated")


@pytest.fixture
def gated(gate, make_world):
    yield make_world(env=gate.env)
    gate.open()


@pytest.mark.embedded
def test_read_waits_for_what_it_shows(gated, gate):
    server, asker = gated.server(on_allocate="silent"), gated.chat()
    asker.request(7)
    offer = server.expect_offer(7)
    (ticket,) = gated.api.all("/v1/tickets")
    api = gated.api
    gate.close()
    server.accept(offer)
    gated.wait(lambda: gate.somebody_waits, "commit that waits for the disk")
    calls = [
        api.begin(gated.net, "GET", path)
        for path in (f"/v1/tickets/{ticket['id']}", "/v1/servers", "/v1/status", "/v1/tickets/999")
    ]
    assert Api(gated.muster).get("/healthz") == {"status": "ok"}, "monitors are answered"
    assert Api(gated.muster).ask("GET", "/metrics").status == 200
    gated.elapse(0.3)
    assert not any(call.answer_given for call in calls)
    gate.open()
    assert calls[0].answered().json["state"] == "done"
    assert [call.answered().status for call in calls[1:]] == [200, 200, 404]


@pytest.mark.embedded
def test_repeat_while_the_first_is_under_way_waits_for_it(gated, gate):
    server = gated.server()
    api = gated.api
    gate.close()
    path = f"/v1/servers/{server.server_id}/drain"
    calls = [
        api.begin(gated.net, "POST", path, headers={"Idempotency-Key": "k"}) for _ in range(3)
    ]
    gated.wait(lambda: gate.somebody_waits, "commit that waits for the disk")
    gated.elapse(0.3)
    assert not any(call.answer_given for call in calls)
    gate.open()
    for call in calls:
        assert call.answered().json["draining_by"] == ["operator"]
    assert len([a for a in api.all("/v1/audit") if a["action"] == "drain"]) == 1


@pytest.mark.embedded
def test_broken_disk_is_told(gated, gate):
    server, asker = gated.server(), gated.chat()
    asker.allocate(1)
    api = gated.api
    gate.break_disk()
    assert asker.refuse(2) == "Internal error"
    path = f"/v1/servers/{server.server_id}/drain"
    why = api.refused("POST", path, 503, "internal")
    assert why == "It cannot be stored now, so nothing was changed."
    assert Api(gated.muster).refused("GET", "/readyz", 503, "not_ready")
    assert Api(gated.muster).get("/healthz") == {"status": "ok"}
    assert api.get("/v1/status")["store"] == "read_only"
    assert api.get(path.removesuffix("/drain"))["draining_by"] == []
    gate.mend_disk()
    gated.wait(lambda: Api(gated.muster).ask("GET", "/readyz").status == 200, "a store that works")
    api.post(path)


# --- what is refused


def test_path_that_leads_nowhere(world):
    why = world.api.refused("GET", "/v1/sevrers", 404, "not_found")
    assert why == "There is no '/v1/sevrers'. GET /openapi.json lists what there is."


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "OPTIONS", "POST"])
def test_method_that_is_not_possible(world, method):
    answer = world.api.ask(method, "/v1/servers")
    assert answer.status == 405 and answer.error["code"] == "method_not_allowed"
    assert answer.head["allow"] == "GET, HEAD"


def test_head_is_a_get_without_a_body(world):
    get = world.api.ask("GET", "/v1/servers")
    head = world.api.ask("HEAD", "/v1/servers")
    assert head.status == 200 and head.body == b""
    assert head.head["content-length"] == str(len(get.body))


@pytest.mark.parametrize("path, query, argument, why", [
    ("/v1/servers", {"limt": 3}, "limt", "There is no argument 'limt'. Did you mean 'limit'?"),
    ("/v1/servers", {"status": "ful"}, "status",
     "status is available, full, draining, offline, starting, running, ending or gone, not 'ful'."),
    ("/v1/servers", {"region": "EUX"}, "region", "There is no region 'EUX'. Did you mean 'EU'?"),
    ("/v1/servers", {"fleet": "x"}, "fleet", "There is no fleet 'x'."),
    ("/v1/servers/x", {}, "id", "id is a decimal number from 1 on, not 'x'."),
    ("/v1/tickets/1", {"wait": 61}, "wait", "wait is a whole number from 0 to 60, not '61'."),
    ("/v1/regions", {"a": "b"}, "a", "There is no argument 'a'; this takes none."),
    ("/v1/servers", [("limit", 1), ("limit", 2)], "limit", "limit is given twice."),
    ("/v1/sessions", {"lobby": "2147483648"}, "lobby",
     "lobby is a whole number from -2147483648 to 2147483647, not '2147483648'."),
])
def test_wrong_argument_is_named(world, path, query, argument, why):
    answer = world.api.ask("GET", path, query)
    assert answer.status == 400
    assert answer.error == {"code": "bad_argument", "message": why, "argument": argument}


@pytest.mark.parametrize("body, why", [
    (b"{", "The body is no JSON: "),
    (b"[]", "The body is no JSON object."),
    (b'{"role":"server","role":"chat"}', "The body is no JSON: "),
    (b"[" * 40 + b"]" * 40, "The body is no JSON: "),
    (b'{"role":"server","fleet":"default","regions":[7]}', "regions is a list of"),
    (b'{"role":"\xff"}', "The body is no JSON: "),
])
def test_bad_body_is_refused(world, body, why):
    answer = world.api.ask("POST", "/v1/tokens", body=body, content_type="application/json")
    assert answer.status == 400 and answer.error["message"].startswith(why)


def test_body_that_is_neither_json_nor_a_form(world):
    world.api.refused("POST", "/v1/tokens", 415, "unsupported_type", body=b"x",
                      content_type="text/plain")
    world.api.refused("POST", "/v1/tokens", 415, "unsupported_type", body=b"x")
    why = world.api.refused("POST", "/v1/tokens", 400, "bad_argument", body=b'{"role":"chat"}',
                            content_type="application/x-www-form-urlencoded")
    assert "Content-Type: application/json" in why


def test_body_that_is_too_large(world):
    body = b'{"role":"' + b"x" * (64 * 1024) + b'"}'
    world.api.refused("POST", "/v1/tokens", 413, "too_large", body=body,
                      content_type="application/json")


def test_write_from_another_page_is_refused(world):
    server = world.server()
    path = f"/v1/servers/{server.server_id}/drain"
    host = "{}:{}".format(*world.muster.http_address)
    why = world.api.refused("POST", path, 403, "forbidden", headers={"Origin": "http://evil.example"})
    assert "Origin" in why
    world.api.refused("POST", path, 403, "forbidden", headers={"Origin": "null"})
    world.api.refused("POST", path, 403, "forbidden", headers={"Origin": f"http://{host}.evil"})
    assert world.api.ask("POST", path, headers={"Origin": f"http://{host}"}).status == 200
    read = world.api.ask("GET", "/v1/servers", headers={"Origin": "http://evil.example"})
    assert read.status == 200


def test_connection_is_kept_and_requests_follow_each_other(world):
    head = f"Host: x\r\nAuthorization: Bearer {admin_token(world.muster)}\r\n\r\n"
    with socket.create_connection(world.muster.http_address, timeout=5) as s:
        for _ in range(20):
            s.sendall(f"GET /v1/status HTTP/1.1\r\n{head}".encode())
            answer = b""
            while b'"refusals":' not in answer or not answer.endswith(b"}"):
                data = s.recv(65536)
                assert data
                answer += data
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


# --- the administrator's token


def test_admin_token_is_for_its_owner_only(world):
    path = world.muster.data / "admin.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (line,) = world.muster.log_lines("the administrator's access token is in admin.token")
    assert admin_token(world.muster) not in world.muster.log()
    assert line["data"] == str(world.muster.data)


def test_admin_token_stays_as_long_as_it_is_good(world):
    token = admin_token(world.muster)
    world.restart()
    assert admin_token(world.muster) == token
    assert len(world.muster.log_lines("the administrator's access token is in admin.token")) == 1


@pytest.mark.parametrize("how", ["garbage", "missing", "readable by others", "a folder's worth"])
def test_admin_token_that_is_no_good_is_replaced(tmp_path, how):
    muster = Muster(tmp_path)
    path = muster.data / "admin.token"
    with muster:
        first = admin_token(muster)
        assert muster.term() == 0
    if how == "garbage":
        path.write_text("rubbish\n")
    elif how == "missing":
        path.unlink()
    elif how == "readable by others":
        os.chmod(path, 0o644)
    else:
        path.write_bytes(b"x" * 100_000)
    with muster:
        assert Api(muster).as_admin().get("/v1/servers") == {"items": [], "next": None}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert admin_token(muster).count(".") == 2 and first
        assert muster.term() == 0


# --- the port


def test_http_port_that_is_taken_is_named(tmp_path, make_world):
    other = make_world()
    taken = "127.0.0.1:{}".format(other.muster.http_address[1])
    muster = Muster(tmp_path)
    muster.arguments = lambda *_: [
        "serve", "--dev", "--data", tmp_path / "data", "--server-port", 0, "--manager-port", 0, "--client-port", 0,
        "--http", taken]
    with pytest.raises(AssertionError) as refusal:
        muster.start()
    assert f"Cannot listen for HTTP on {taken}: address already in use" in str(refusal.value)


# --- a busy place


def test_long_search_is_cut_into_pages(world):
    """No request looks at more than 10,000 objects; the cursor leads on."""
    asker = world.chat()
    n = 12_000
    for first in range(1, n + 1, 500):
        for lobby in range(first, first + 500):
            asker.request(lobby)
        for lobby in range(first, first + 500):
            asker.refused(lobby)
    page = world.api.get("/v1/tickets", state="done")
    assert page["items"] == [] and int(page["next"]) == 10_000
    assert world.api.get("/v1/tickets", state="done", cursor=page["next"]) == {
        "items": [], "next": None}
    assert len(world.api.all("/v1/tickets", limit=1000)) == n


@pytest.mark.embedded
def test_request_during_the_stop_is_told(gated, gate):
    """Muster waits for the disk, and a client with an open connection asks for something."""
    api, asker = gated.api, gated.chat()
    with socket.create_connection(gated.muster.http_address, timeout=8) as s:
        head = f"Host: x\r\nAuthorization: Bearer {api.token}\r\n\r\n"
        s.sendall(f"GET /v1/regions HTTP/1.1\r\n{head}".encode())
        assert s.recv(65536).startswith(b"HTTP/1.1 200")
        gate.close()
        asker.request(1)
        gated.wait(lambda: gate.somebody_waits, "commit that waits for the disk")
        gated.muster.signal(signal.SIGTERM)
        gated.wait(lambda: gated.muster.log_lines("stopping"), "stop")
        s.sendall(f"GET /v1/status HTTP/1.1\r\n{head}".encode())
        answer = s.recv(65536)
        while answer and b"\r\n\r\n" not in answer:
            answer += s.recv(65536)
        assert b"503" in answer.split(b"\r\n")[0]
        gate.open()
    assert gated.muster.finish() == 0
