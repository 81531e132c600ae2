"""Fleets of provider agones: a strict Kubernetes of ours stands in for the cluster, the real binary
speaks to it. Whatever the cluster does, no token is on two GameServers and none of them leaks."""

import base64
import contextlib
import os
import random
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kube import TOKENS, Kube
from muster_proc import Muster, NotReady, binary

PATIENCE_S = 30.0


@pytest.fixture
def kube():
    with Kube() as kube:
        yield kube
        assert not kube.faults


@pytest.fixture
def start(kube, make_world):
    """Makes a world whose fleet starx is in the cluster; keywords: of the fleet, and others of the
    configuration with a capital letter in front."""

    def make(ready=True, kubernetes=None, options=None, **fleet):
        fleet = {"name": "starx", "provider": "agones", "max_players": 4,
                 "agones": {"port": "game"}, **fleet}
        world = make_world(default_region="EU", fleets=[{"name": "default"}, fleet],
                           kubernetes={"url": kube.url, **(kubernetes or {})}, **(options or {}))
        if ready:
            await_ready(world)
        return world

    return make


def await_that(what, look):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.01)


def is_ready(world):
    hosts = world.api.get("/v1/hosts")["items"]
    return world.api.ask("GET", "/readyz").status == 200 and \
        any(h["name"] == "agones/starx" for h in hosts)


def await_ready(world):
    await_that("the cluster is seen", lambda: is_ready(world))


def ask(world, ticket, player, **more):
    answer = world.api.ask("POST", "/v1/allocations",
                           data={"ticketId": ticket, "fleet": "starx", "playerId": player, **more},
                           timeout_s=60)
    return answer.json


def allocate(world, ticket, player, **more):
    result = ask(world, ticket, player, **more)
    assert result["status"] == "Success", result
    return result


def seats_of(world, player):
    return world.api.get(f"/player/{player}")["seats"]


def player_token(player):
    return base64.b64encode(player.encode()[:16].ljust(16, b"\0")).decode()


def holders(kube, token):
    return [o["metadata"]["name"] for o in kube.all()
            if token in o["metadata"]["annotations"].get(TOKENS, "").split(",")]


# ── allocating ──────────────────────────────────────────────────────────────────────────────────


def test_an_allocation_is_one_post_with_token_and_marks(kube, start):
    names = kube.add("starx", 3)
    world = start()
    result = allocate(world, "t-1", "ann")
    server = kube.get(names[0])
    assert server["status"]["state"] == "Allocated"
    assert result["address"] == server["status"]["address"]
    assert result["port"] == server["status"]["ports"][1]["port"]  # the one named game
    marks = server["metadata"]["annotations"]
    assert marks[TOKENS] == result["token"]
    assert len(base64.b64decode(result["token"])) == 16
    assert marks["muster.dev/ticket"] == "t-1"
    assert marks["muster.dev/session"] == result["sessionId"]
    assert [w[0] for w in kube.writes] == ["allocate"]
    spec = kube.writes[0][2]["spec"]
    assert spec["selectors"] == [{"matchLabels": {"agones.dev/fleet": "starx"}}]
    assert len(kube.kinds("list")) == 1  # at the start, and never again


def test_a_repeat_takes_nothing_twice(kube, start):
    kube.add("starx", 3)
    world = start()
    assert allocate(world, "t-1", "ann") == allocate(world, "t-1", "ann")
    assert len(kube.writes) == 1


def test_a_friend_joins_by_one_patch(kube, start):
    (name, *_) = kube.add("starx", 2)
    world = start()
    ann = allocate(world, "t-1", "ann")
    bob = allocate(world, "t-2", "bob", joinOnIds=["ann"])
    assert bob["sessionId"] == ann["sessionId"]
    assert kube.tokens(name) == [ann["token"], bob["token"]]
    assert [w[0] for w in kube.writes] == ["allocate", "patch"]


def test_a_move_is_two_writes(kube, start):
    kube.add("starx", 2)
    world = start(max_players=1)
    ann = allocate(world, "t-1", "ann")
    bob = allocate(world, "t-2", "bob")
    release(world, "bob")
    kube.await_("bob's token is gone", lambda: not holders(kube, bob["token"]))
    before = len(kube.writes)
    moved = allocate(world, "t-3", "ann", rejoin=False)
    assert moved["sessionId"] == bob["sessionId"]
    kube.await_("the old one is gone", lambda: not holders(kube, ann["token"]))
    assert [w[0] for w in kube.writes[before:]] == ["patch", "patch"]
    assert len(holders(kube, moved["token"])) == 1


def release(world, player):
    (seat,) = seats_of(world, player)
    answer = world.api.ask("DELETE", f"/v1/seats/{seat['slot']}")
    assert answer.status == 200, answer


def test_the_last_token_takes_the_annotation_with_it(kube, start):
    (name,) = kube.add("starx")
    world = start()
    allocate(world, "t-1", "ann")
    release(world, "ann")
    kube.await_("no annotation", lambda: TOKENS not in kube.get(name)["metadata"]["annotations"])


def test_no_free_server_is_a_sentence(kube, start):
    world = start(when_full="fail")
    result = ask(world, "t-1", "ann")
    assert (result["status"], result["errorMessage"]) == ("Failure", "no capacity in fleet 'starx'")


def test_contention_is_tried_again(kube, start):
    kube.add("starx")
    world = start()
    kube.plan("allocate", "contention", "contention")
    allocate(world, "t-1", "ann")
    assert len(kube.kinds("allocate")) == 3


def test_contention_without_end_is_a_failure(kube, start):
    kube.add("starx")
    world = start(when_full="fail")
    kube.plan("allocate", *["contention"] * 50)
    assert ask(world, "t-1", "ann")["status"] == "Failure"
    assert len(kube.kinds("allocate")) < 10


def test_a_refusal_is_told_in_the_clusters_words(kube, start):
    kube.add("starx")
    world = start(when_full="fail")
    kube.plan("allocate", 403)
    result = ask(world, "t-1", "ann")
    assert (result["status"], result["errorMessage"]) == ("Failure", "planned 403")


def test_servers_may_come_in_another_order_than_they_were_asked_for(kube, start):
    kube.add("starx", 2)
    world = start(max_players=1)
    kube.plan("allocate", "slow")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(allocate, world, "t-1", "ann")
        kube.await_("it is asked for", lambda: kube.kinds("allocate"))
        allocate(world, "t-2", "bob")
        first.result()


def test_lists_and_counters_go_along(kube, start):
    kube.add("simple", 1)
    world = start(agones={"fleet": "simple", "list": "players", "counter": "sessions"})
    result = allocate(world, "t-1", "ann")
    spec = kube.writes[0][2]["spec"]
    assert spec["lists"] == {"players": {"addValues": [result["token"]]}}
    assert spec["counters"] == {"sessions": {"action": "Increment", "amount": 1}}
    (selector,) = spec["selectors"]
    assert selector["matchLabels"] == {"agones.dev/fleet": "simple"}
    assert selector["lists"] == {"players": {"minAvailable": 1}}
    assert selector["counters"] == {"sessions": {"minAvailable": 1}}


# ── answers that are lost ───────────────────────────────────────────────────────────────────────


def test_an_allocation_whose_answer_was_lost_is_recognised(kube, start):
    kube.add("starx", 3)
    world = start()
    kube.plan("allocate", "lost")
    result = allocate(world, "t-1", "ann")
    assert len(kube.all("Allocated")) == 1
    assert len(kube.kinds("allocate")) == 1
    assert len(holders(kube, result["token"])) == 1


def test_one_that_never_came_about_is_asked_again_after_a_list(kube, start):
    kube.add("starx", 3)
    world = start()
    lists = len(kube.kinds("list"))
    kube.plan("allocate", "drop")
    allocate(world, "t-1", "ann")
    kinds = [r[0] for r in kube.requests if r[0] in ("allocate", "list")]
    assert kinds[-2:] == ["list", "allocate"]
    assert len(kube.kinds("list")) == lists + 1
    assert len(kube.all("Allocated")) == 1


def test_an_internal_error_of_the_cluster_is_an_answer_that_says_nothing(kube, start):
    kube.add("starx", 3)
    world = start()
    kube.plan("allocate", 500, 504)
    allocate(world, "t-1", "ann")
    assert len(kube.all("Allocated")) == 1


def test_a_second_server_for_one_allocation_is_shut_down(kube, start):
    """The answer to the first POST is lost, and it comes about only after it was asked again."""
    names = kube.add("starx", 3)
    world = start()
    allocate(world, "t-1", "ann")
    marks = kube.get(names[0])["metadata"]["annotations"]
    late = {k: v for k, v in marks.items() if k != TOKENS}
    kube.annotate(names[1], late)
    kube.set_state(names[1], "Allocated")
    kube.await_("it is gone", lambda: kube.get(names[1]) is None)
    assert kube.get(names[0])["status"]["state"] == "Allocated"
    assert len(seats_of(world, "ann")) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_leaks_when_we_are_killed_while_we_allocate(kube, start, when):
    kube.add("starx", 4)
    world = start()

    def kill():
        world.muster.process.kill()
        world.muster.killed = True

    with ThreadPoolExecutor() as pool:
        kube.plan("allocate", kill if when == "before" else "lost")
        if when == "after":
            kube.plan("watch", *["drop"] * 2)
            kube.cut_watches()
        asked = pool.submit(lambda: pytest.raises(Exception, ask, world, "t-1", "ann"))
        kube.await_("it is asked", lambda: kube.kinds("allocate"))
        if when == "after":
            kill()
        asked.result()
        world.muster.finish()
    world.muster.restart()
    await_ready(world)
    result = allocate(world, "t-1", "ann")
    await_that("one plays", lambda: len(kube.all("Allocated")) == 1)
    assert len(holders(kube, result["token"])) == 1


def test_one_that_core_does_not_know_is_shut_down(kube, start):
    """Its mark is ours, and its number was given away, but nobody has such a room."""
    names = kube.add("starx", 3)
    world = start()
    result = allocate(world, "t-1", "ann")
    marks = kube.get(names[0])["metadata"]["annotations"]
    world.api.ask("POST", f"/v1/sessions/{result['sessionId']}/end")
    kube.await_("it ends", lambda: kube.get(names[0]) is None)
    kube.annotate(names[2], {k: v for k, v in marks.items() if k != TOKENS})
    kube.set_state(names[2], "Allocated")
    kube.await_("it is gone", lambda: kube.get(names[2]) is None)


def test_what_somebody_else_allocated_is_left_alone(kube, start):
    kube.add("starx", 1, state="Allocated")
    kube.add("starx", 1, state="Allocated", annotations={
        "muster.dev/instance": "another", "muster.dev/server": "1", TOKENS: "AAAA"})
    kube.add("starx", 1)
    world = start()
    allocate(world, "t-1", "ann")
    world.elapse(1.0)
    assert len(kube.all("Allocated")) == 3
    assert len(kube.writes) == 1


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────


def test_nobodys_token_is_lost_in_a_storm_of_conflicts(kube, start):
    (name,) = kube.add("starx")
    world = start(max_players=32)
    first = allocate(world, "t-0", "p0")
    kube.plan("patch", *["race"] * 20)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: allocate(world, f"t-{n}", f"p{n}"), range(1, 24)))
    assert sorted(kube.tokens(name)) == sorted(r["token"] for r in [first, *results])
    assert kube.get(name)["metadata"]["annotations"]["somebody"]


def test_changes_that_wait_for_each_other_go_together(kube, start):
    kube.add("starx")
    world = start(max_players=64)
    allocate(world, "t-0", "p0")
    kube.plan("patch", "slow")
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda n: allocate(world, f"t-{n}", f"p{n}"), range(1, 33)))
    assert len(kube.kinds("patch")) < 12


@pytest.mark.parametrize("fault", ["lost", "drop", 500, 429])
def test_a_patch_without_an_answer_is_looked_after(kube, start, fault):
    (name,) = kube.add("starx")
    world = start()
    ann = allocate(world, "t-1", "ann")
    kube.plan("patch", fault)
    bob = allocate(world, "t-2", "bob", joinOnIds=["ann"])
    assert kube.tokens(name) == [ann["token"], bob["token"]]


def test_a_patch_that_is_forbidden_is_a_failure(kube, start):
    (name,) = kube.add("starx")
    world = start(when_full="fail")
    ann = allocate(world, "t-1", "ann")
    kube.plan("patch", 403)
    assert ask(world, "t-2", "bob", joinOnIds=["ann"])["status"] == "Failure"
    assert kube.tokens(name) == [ann["token"]]
    assert not seats_of(world, "bob")


def test_a_player_id_is_first_taken_from_where_it_was(kube, start):
    names = kube.add("starx", 2)
    world = start(max_players=2, token="player-id")
    allocate(world, "t-1", "ann")
    allocate(world, "t-2", "bob")
    allocate(world, "t-3", "cid")
    assert kube.tokens(names[0]) == [player_token("ann"), player_token("bob")]
    assert kube.tokens(names[1]) == [player_token("cid")]
    before = len(kube.writes)
    moved = allocate(world, "t-4", "bob", joinOnIds=["cid"])
    assert moved["token"] == player_token("bob")
    assert kube.tokens(names[0]) == [player_token("ann")]
    assert kube.tokens(names[1]) == [player_token("cid"), player_token("bob")]
    assert [w[:2] for w in kube.writes[before:]] == [("patch", names[0]), ("patch", names[1])]


def test_a_player_id_goes_back_when_it_cannot_be_added(kube, start):
    names = kube.add("starx", 2)
    world = start(max_players=2, token="player-id", when_full="fail")
    allocate(world, "t-1", "ann")
    allocate(world, "t-2", "bob")
    allocate(world, "t-3", "cid")

    def forbid():
        kube.plans["patch"] = [403]

    kube.plan("patch", forbid)  # the removal works, what follows does not
    assert ask(world, "t-4", "bob", joinOnIds=["cid"])["status"] == "Failure"
    kube.await_("it is back", lambda: holders(kube, player_token("bob")) == [names[0]])
    (seat,) = seats_of(world, "bob")
    assert seat["room"] == seats_of(world, "ann")[0]["room"]


def test_a_player_id_is_nowhere_else_when_its_new_server_comes(kube, start):
    names = kube.add("starx", 2)
    world = start(max_players=2, token="player-id")
    allocate(world, "t-1", "ann")
    allocate(world, "t-2", "bob")
    before = len(kube.writes)
    allocate(world, "t-3", "bob", rejoin=False)
    assert kube.tokens(names[0]) == [player_token("ann")]
    assert kube.tokens(names[1]) == [player_token("bob")]
    assert [w[0] for w in kube.writes[before:]] == ["patch", "allocate"]


def test_a_player_id_goes_back_when_no_server_comes(kube, start):
    (name,) = kube.add("starx", 1)
    world = start(max_players=2, token="player-id", when_full="fail")
    allocate(world, "t-1", "ann")
    allocate(world, "t-2", "bob")
    assert ask(world, "t-3", "bob", rejoin=False)["status"] == "Failure"
    kube.await_("it is back", lambda: sorted(kube.tokens(name)) ==
                sorted([player_token("ann"), player_token("bob")]))


@pytest.fixture
def moving(kube, start):
    """ann and bob are on the first of three GameServers, cid on the second."""
    names = kube.add("starx", 3)
    world = start(max_players=2, token="player-id", when_full="fail")
    for n, player in enumerate(["ann", "bob", "cid"]):
        allocate(world, f"t-{n}", player)
    with ThreadPoolExecutor(4) as pool:
        yield world, names, lambda *asked, **more: pool.submit(ask, world, *asked, **more)


def await_patch(kube, name):
    seen = len(kube.requests)
    kube.await_(f"{name} is patched", lambda: any(r[:2] == ("patch", name)
                                                  for r in kube.requests[seen:]))


def await_starting(world):
    await_that("one is being started", lambda: any(
        room["state"] == "starting" for room in world.api.get("/v1/sessions")["items"]))


def test_a_player_id_does_not_go_back_while_its_new_server_comes(kube, moving):
    world, names, ask_later = moving
    kube.plan("patch", *[500] * 1000)
    joins = ask_later("t-4", "bob", joinOnIds=["cid"])
    await_patch(kube, names[0])  # to take his token from there
    kube.delete(names[1])
    assert joins.result()["status"] == "Failure"
    leaves = ask_later("t-5", "bob", rejoin=False)
    await_starting(world)
    kube.forget_plans()
    assert leaves.result()["status"] == "Success"
    world.elapse(1.0)
    assert holders(kube, player_token("bob")) == [names[2]]


def test_a_player_id_that_waits_to_go_back_lets_its_new_server_come_first(kube, moving):
    world, names, ask_later = moving
    kube.plan("patch", None, 500)  # it is taken from the first, and cannot be added
    kube.plan("get", *[500] * 1000)
    joins = ask_later("t-4", "bob", joinOnIds=["cid"])
    kube.await_("the second is read", lambda: kube.kinds("get"))
    assert world.api.ask("DELETE", "/v1/allocations/t-4").status == 200
    joins.result()
    kube.plans["get"][:0] = [403]  # what is to be added there is given up
    kube.await_("it is read again", lambda: 403 not in kube.plans["get"])
    ask_later("t-5", "dan", joinOnIds=["cid"])  # no place is left there
    await_that("he comes", lambda: world.api.ask("GET", "/v1/allocations/t-5").status == 200)
    leaves = ask_later("t-6", "bob", rejoin=False)
    await_starting(world)
    kube.forget_plans()
    assert leaves.result()["status"] == "Success"
    world.elapse(1.0)
    assert holders(kube, player_token("bob")) == [names[2]]


def test_a_player_id_is_looked_for_until_it_is_nowhere(kube, moving):
    """Where bob was first he is to be taken from once more, and there his token is not any more."""
    world, names, ask_later = moving
    names += kube.add("starx", 1)
    allocate(world, "t-4", "dan", joinOnIds=["cid"])
    kube.plan("allocate", *[429] * 1000)
    leaves = ask_later("t-5", "bob", rejoin=False)
    kube.await_("it was asked for", lambda: len(kube.kinds("allocate")) == 3)
    kube.plan("patch", *[500] * 1000)
    kube.plan("get", *[500] * 1000)
    release(world, "ann")
    ask_later("t-6", "eve", joinOnIds=["bob"])
    await_that("she comes", lambda: world.api.ask("GET", "/v1/allocations/t-6").status == 200)
    kube.plans["allocate"].clear()
    assert leaves.result()["status"] == "Success"
    assert holders(kube, player_token("bob")) == [names[2]]
    again = ask_later("t-7", "bob", partyIds=["gus"], rejoin=False)
    await_starting(world)
    kube.forget_plans()
    assert again.result()["status"] == "Success"
    assert holders(kube, player_token("bob")) == [names[3]]


def test_a_player_id_is_not_added_where_it_is_wanted_no_more(kube, moving):
    world, names, ask_later = moving
    allocate(world, "t-4", "dan", joinOnIds=["cid"])
    kube.plan("allocate", "drop")  # whether a server comes nobody knows
    kube.plan("list", *[500] * 1000)
    leaves = ask_later("t-5", "bob", rejoin=False)
    kube.await_("it was asked for", lambda: len(kube.kinds("allocate")) == 3)
    release(world, "dan")
    joins = ask_later("t-6", "bob", joinOnIds=["cid"])
    assert leaves.result()["status"] == "Failure"
    assert world.api.ask("DELETE", "/v1/allocations/t-6").status == 200
    assert joins.result()["status"] == "Failure"
    kube.forget_plans()
    kube.await_("it is back", lambda: player_token("bob") in kube.tokens(names[0]))
    world.elapse(1.0)
    assert holders(kube, player_token("bob")) == [names[0]]
    assert not [body for _, name, body in kube.kinds("patch") if name == names[1] and
                player_token("bob") in (body["metadata"]["annotations"][TOKENS] or "")]


# ── the watch ───────────────────────────────────────────────────────────────────────────────────


def test_a_watch_that_was_cut_goes_on_where_it_was(kube, start):
    names = kube.add("starx", 2)
    world = start()
    allocate(world, "t-1", "ann")
    lists = len(kube.kinds("list"))
    kube.cut_watches()
    kube.await_("it watches again", lambda: len(kube.kinds("watch")) >= 2 and kube.watches)
    kube.set_state(names[0], "Unhealthy")
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))
    assert len(kube.kinds("list")) == lists


@pytest.mark.parametrize("how", ["event", "status"])
def test_a_version_that_is_too_old_means_a_new_list(kube, start, how):
    names = kube.add("starx", 2)
    world = start()
    allocate(world, "t-1", "ann")
    if how == "status":
        kube.plan("watch", 410)
        kube.cut_watches()
    else:
        kube.compact()
    kube.await_("it is listed again", lambda: len(kube.kinds("list")) >= 2)
    kube.set_state(names[0], "Unhealthy")
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))


@pytest.mark.parametrize("line", [b"no JSON\n", b'{"type":"WHAT","object":{}}\n', b'{"type":"ADDED"}\n',
                                  b"[]\n"])
def test_a_line_that_is_none_means_a_new_list(kube, start, line):
    kube.add("starx", 2)
    world = start()
    kube.plan("watch", line)
    kube.cut_watches()
    kube.await_("it is listed again", lambda: len(kube.kinds("list")) >= 2)
    allocate(world, "t-1", "ann")


def test_lines_may_come_in_small_pieces(kube, start):
    kube.piece = 7
    names = kube.add("starx", 2)
    world = start()
    allocate(world, "t-1", "ann")
    kube.set_state(names[0], "Unhealthy")
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))
    assert len(kube.kinds("list")) == 1


def test_a_large_fleet_is_listed_in_pages(kube, start):
    kube.add("starx", 1, state="Allocated")
    kube.add("starx", 350)
    world = start()
    assert len(kube.kinds("list")) == 4
    allocate(world, "t-1", "ann")


def test_a_page_that_is_too_old_means_a_list_from_the_beginning(kube, start):
    kube.add("starx", 250)
    kube.plan("list", None, 410)
    world = start()
    assert len(kube.kinds("list")) == 2 + 3
    allocate(world, "t-1", "ann")


def test_while_the_cluster_is_out_of_sight_seats_stand_still(kube, start):
    names = kube.add("starx", 2)
    world = start(options={"host_ms": 1000})
    allocate(world, "t-1", "ann")
    kube.plan("watch", *[503] * 1000)
    kube.plan("list", *[503] * 1000)
    kube.cut_watches()
    away = await_that("Muster says so", lambda: world.api.ask("GET", "/readyz").status == 503)
    assert away
    kube.set_state(names[0], "Unhealthy")
    assert len(seats_of(world, "ann")) == 1
    kube.forget_plans()
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))
    await_ready(world)


def test_what_was_there_before_is_not_taken_for_what_was_allocated_since(kube, start):
    (name,) = kube.add("starx", 1)
    world = start(max_players=2)
    allocate(world, "t-1", "ann")
    with kube.held_watches():
        allocate(world, "t-2", "bob")  # the watch will tell of it when the room is long over
        kube.set_state(name, "Ready")
        allocate(world, "t-3", "cid")
    lists = len(kube.kinds("list"))
    world.elapse(1.0)
    assert len(kube.kinds("list")) == lists
    assert len(seats_of(world, "cid")) == 1
    assert not seats_of(world, "ann") and not seats_of(world, "bob")
    assert len(kube.tokens(name)) == 1


def test_an_answer_of_before_an_allocation_says_nothing_about_it(kube, start):
    (name,) = kube.add("starx", 1)
    world = start()
    allocate(world, "t-1", "ann")
    answer = threading.Event()
    kube.plan("patch", answer)
    kube.set_state(name, "Ready")
    kube.await_("no marks", lambda: not kube.get(name)["metadata"]["annotations"])
    with kube.held_watches():
        allocate(world, "t-2", "bob")
        answer.set()
        world.elapse(1.0)
        assert len(seats_of(world, "bob")) == 1
    assert len(kube.tokens(name)) == 1


# ── servers that end ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", ["Unhealthy", "Shutdown", "Error", "deleted", "Ready"])
def test_a_server_that_ends_gives_its_seats_back(kube, start, end):
    names = kube.add("starx", 2)
    world = start()
    result = allocate(world, "t-1", "ann")
    if end == "deleted":
        kube.delete(names[0])
    else:
        kube.set_state(names[0], end)
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))
    room = world.api.get(f"/v1/sessions/{result['sessionId']}")
    assert room["state"] == "ended"
    again = allocate(world, "t-2", "ann")
    assert again["sessionId"] != result["sessionId"]


def test_one_that_goes_back_to_those_that_wait_carries_no_mark(kube, start):
    names = kube.add("starx", 1)
    world = start()
    allocate(world, "t-1", "ann")
    kube.set_state(names[0], "Ready")
    kube.await_("no marks", lambda: not kube.get(names[0])["metadata"]["annotations"])
    kube.set_state(names[0], "Allocated")  # by somebody else
    world.elapse(1.0)
    assert kube.get(names[0])["status"]["state"] == "Allocated"


def test_who_waits_is_placed_when_a_server_comes_free(kube, start):
    world = start()
    assert ask(world, "t-1", "ann")["status"] == "Queued"
    kube.add("starx", 1)
    await_that("it is placed", lambda: ask(world, "t-1", "ann")["status"] == "Success")


def test_an_empty_room_is_shut_down(kube, start):
    (name,) = kube.add("starx")
    world = start(empty_timeout_s=1)
    allocate(world, "t-1", "ann")
    release(world, "ann")
    kube.await_("it is gone", lambda: kube.get(name) is None)


def test_a_shutdown_that_collides_is_made_again(kube, start):
    (name,) = kube.add("starx")
    world = start()
    result = allocate(world, "t-1", "ann")
    kube.plan("patch", "race", 500, "drop")
    world.api.ask("POST", f"/v1/sessions/{result['sessionId']}/end")
    kube.await_("it is gone", lambda: kube.get(name) is None)


# ── restarts ────────────────────────────────────────────────────────────────────────────────────


def test_seats_outlive_a_restart(kube, start):
    kube.add("starx", 2)
    world = start()
    result = allocate(world, "t-1", "ann")
    world.crash()
    await_ready(world)
    again = allocate(world, "t-2", "ann")
    assert (again["sessionId"], again["token"]) == (result["sessionId"], result["token"])
    bob = allocate(world, "t-3", "bob", joinOnIds=["ann"])
    assert bob["sessionId"] == result["sessionId"]
    assert [w[0] for w in kube.writes] == ["allocate", "patch"]


def test_a_token_that_should_have_gone_when_we_were_killed_goes(kube, start):
    (name,) = kube.add("starx", 1)
    world = start()
    ann = allocate(world, "t-1", "ann")
    allocate(world, "t-2", "bob", joinOnIds=["ann"])

    def kill():
        world.muster.process.kill()
        world.muster.killed = True

    kube.plan("patch", kill)
    with contextlib.suppress(ConnectionError):  # the answer may come before the end, or not
        release(world, "bob")
    world.muster.finish()
    kube.annotate(name, {TOKENS: None})  # even that
    world.muster.restart()
    await_ready(world)
    await_that("only ann's is there", lambda: kube.tokens(name) == [ann["token"]])


def test_a_server_that_ended_while_we_were_away_is_over(kube, start):
    names = kube.add("starx", 2)
    world = start()
    allocate(world, "t-1", "ann")
    world.muster.kill9()
    kube.delete(names[0])
    world.muster.restart()
    await_ready(world)
    await_that("the seat is given back", lambda: not seats_of(world, "ann"))


# ── who we are ──────────────────────────────────────────────────────────────────────────────────


def test_a_token_is_read_again_when_it_changes(kube, start, tmp_path):
    kube.token = "first"
    kube.add("starx", 2)
    file = tmp_path / "token"
    file.write_text("first\n")
    world = start(kubernetes={"token_file": str(file)})
    allocate(world, "t-1", "ann")
    kube.token = "second"
    file.write_text("second\n")
    allocate(world, "t-2", "bob")


def test_a_token_that_is_not_known_makes_us_not_ready(kube, start, tmp_path):
    kube.token = "right"
    file = tmp_path / "token"
    file.write_text("wrong")
    world = start(ready=False, kubernetes={"token_file": str(file)})
    kube.await_("it was refused", lambda: kube.kinds("unauthorized"))
    answer = await_that("Muster says so", lambda: world.api.ask("GET", "/readyz"))
    assert answer.status == 503
    await_that("it says why", lambda: "Unauthorized" in
               world.api.ask("GET", "/readyz").error["message"])
    file.write_text("right")
    await_ready(world)


def test_a_kubeconfig_says_where_and_who(kube, start, tmp_path, make_world):
    kube.token = "kubectl's"
    kube.add("starx", 1)
    config = tmp_path / "kubeconfig"
    config.write_text(f"""
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: there
  context: {{cluster: none, user: none}}
- name: here
  context: {{cluster: ours, user: me, namespace: games}}
clusters:
- name: ours
  cluster:
    server: {kube.url}
users:
- name: me
  user:
    token: kubectl's
""")
    world = start(kubernetes={"url": "", "kubeconfig": str(config)})
    allocate(world, "t-1", "ann")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """One that signed itself, for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "2", "-subj", "/CN=kubernetes", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    return folder


def kubeconfig(url, cluster="", user=""):
    return (f"current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
            f"clusters: [{{name: k, cluster: {{server: '{url}'{cluster}}}}}]\n"
            f"users: [{{name: u, user: {{{user}}}}}]\n")


def test_a_cluster_is_known_by_its_authority_and_we_by_our_certificate(make_world, certificate,
                                                                        tmp_path):
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    with Kube(tls=(cert, key), clients=cert) as kube:
        kube.add("starx", 1)
        data = {name: base64.b64encode(file.read_bytes()).decode()
                for name, file in (("cert", cert), ("key", key))}
        config = tmp_path / "kubeconfig"
        config.write_text(kubeconfig(
            kube.url, f", certificate-authority-data: {data['cert']}",
            f"client-certificate-data: {data['cert']}, client-key-data: {data['key']}"))
        world = make_world(default_region="EU", kubernetes={"kubeconfig": str(config)}, fleets=[
            {"name": "default"}, {"name": "starx", "provider": "agones", "max_players": 4}])
        await_ready(world)
        allocate(world, "t-1", "ann")
        assert not kube.faults


def test_a_cluster_of_another_authority_is_not_believed(make_world, certificate, tmp_path):
    with Kube(tls=(certificate / "cert.pem", certificate / "key.pem")) as kube:
        file = tmp_path / "token"
        file.write_text("secret")
        world = make_world(default_region="EU", kubernetes={
            "url": kube.url, "token_file": str(file)}, fleets=[
            {"name": "default"}, {"name": "starx", "provider": "agones", "max_players": 4}])
        await_that("it says so", lambda: "certificate" in
                   world.api.ask("GET", "/readyz").error["message"].lower())
        assert not kube.requests


def in_a_pod(folder, binary):
    """A program that sees the folder where a pod finds its service account, and starts Muster."""
    program = folder / "in-a-pod"
    program.write_text(f"""#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
    ln -s {folder}/account /run/secrets/kubernetes.io/serviceaccount && exec "$0" "$@"' {binary} "$@"
""")
    program.chmod(0o755)
    return program


@pytest.mark.skipif(os.geteuid() != 0, reason="a pod's folder is made by a mount")
def test_in_a_pod_everything_is_found(make_world, certificate, tmp_path, monkeypatch):
    account = tmp_path / "account"
    account.mkdir()
    (account / "ca.crt").write_bytes((certificate / "cert.pem").read_bytes())
    (account / "token").write_text("first")
    with Kube(tls=(certificate / "cert.pem", certificate / "key.pem"), token="first") as kube:
        kube.add("starx", 2)
        host, port = kube.url.removeprefix("https://").rsplit(":", 1)
        monkeypatch.setenv("MUSTER_BIN", str(in_a_pod(tmp_path, binary())))
        world = make_world(default_region="EU", env={
            "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, fleets=[
            {"name": "default"}, {"name": "starx", "provider": "agones", "max_players": 1}])
        await_ready(world)
        allocate(world, "t-1", "ann")
        # Kubernetes writes a new token there before the old one ends.
        (account / "token").write_text("second")
        kube.token = "second"
        allocate(world, "t-2", "bob")


def test_a_kubeconfig_that_cannot_be_used_is_a_sentence(tmp_path):
    config = tmp_path / "kubeconfig"
    config.write_text(kubeconfig("https://127.0.0.1:1", user="exec: {command: aws}"))
    muster = Muster(tmp_path, {"kubernetes": {"kubeconfig": str(config)}, "default_region": "EU",
                               "fleets": [{"name": "default"}, {"name": "starx", "max_players": 4,
                                                                "provider": "agones"}]})
    with pytest.raises(NotReady, match="other ways to log in are not supported"):
        muster.start()


# ── everything at once ──────────────────────────────────────────────────────────────────────────


def random_fault(dice, kube):
    """What may go wrong with the next request of some kind."""
    kind = dice.choice(["allocate", "patch", "patch", "get", "watch", "list", "cut", "compact", "end"])
    if kind == "cut":
        kube.cut_watches()
    elif kind == "compact":
        kube.compact()
    elif kind == "end":
        playing = kube.all("Allocated")
        if playing:
            kube.set_state(dice.choice(playing)["metadata"]["name"],
                           dice.choice(["Unhealthy", "Shutdown", "Ready"]))
    else:
        faults = {"allocate": ["lost", "drop", "contention", 500, 429], "watch": ["drop", 503, 410],
                  "patch": ["lost", "drop", "race", 500, 409], "get": ["drop", 500], "list": [500, 410]}
        kube.plan(kind, dice.choice(faults[kind]))


def play(world, dice, players, n):
    """Somebody asks for something; whatever the answer is, it is one."""
    player = dice.choice(players)
    if dice.random() < 0.2:
        for seat in seats_of(world, player):
            world.api.ask("DELETE", f"/v1/seats/{seat['slot']}")
        return
    friends = dice.sample(players, 2) if dice.random() < 0.4 else []
    result = ask(world, f"t-{n}", player, joinOnIds=friends, canJoinNotFound=True,
                 rejoin=dice.random() < 0.5)
    assert result["status"] in ("Success", "Failure", "Queued"), result


def state_of_cluster(world, kube, players):
    """Who is where to core, and to a proxy."""
    rooms = {}
    for player in players:
        for seat in seats_of(world, player):
            rooms.setdefault(seat["room"], []).append(seat["slot"])
    core = sorted((room, len(seats)) for room, seats in rooms.items())
    proxy = []
    for o in kube.all("Allocated"):
        marks = o["metadata"]["annotations"]
        if marks.get(TOKENS):
            proxy.append((marks["muster.dev/session"], len(marks[TOKENS].split(","))))
    return core, sorted(proxy)


@pytest.mark.parametrize("token", ["opaque", "player-id"])
@pytest.mark.parametrize("seed", [1, 2])
def test_core_and_cluster_agree_in_the_end_whatever_happens(kube, start, token, seed):
    dice = random.Random(f"{token}-{seed}")
    players = [f"player-{n}" for n in range(24)]
    kube.replenish = True
    kube.add("starx", 12)
    world = start(max_players=3, token=token, when_full="fail", spawn_timeout_s=8)
    with ThreadPoolExecutor(6) as pool:
        games = []
        for n in range(240):
            games.append(pool.submit(play, world, random.Random(dice.random()), players, n))
            if dice.random() < 0.3:
                random_fault(dice, kube)
            if n == 120:
                [g.result() for g in games]
                kube.forget_plans()  # a cluster that is tried ever less often takes too long to find
                world.crash()
                await_ready(world)
        [g.result() for g in games]
    kube.forget_plans()
    await_ready(world)

    def agree():
        core, proxy = state_of_cluster(world, kube, players)
        return core == proxy

    await_that("they agree", agree)
    open_rooms = [r for r in world.api.get("/v1/sessions", limit=1000)["items"]
                  if r["state"] in ("open", "starting") and r.get("fleet") == "starx"]
    await_that("nothing leaks", lambda: len(kube.all("Allocated")) <= len(open_rooms))
    assert len(holders_of_many(kube)) == 0


def holders_of_many(kube):
    seen, twice = set(), set()
    for o in kube.all("Allocated"):
        for t in filter(None, o["metadata"]["annotations"].get(TOKENS, "").split(",")):
            (twice if t in seen else seen).add(t)
    return twice
