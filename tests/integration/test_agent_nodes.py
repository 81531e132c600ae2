"""`muster agent` beside a control plane of several nodes: it finds whoever leads, soon, and tells it
what it has to tell once, in order; its token goes to nobody it should not."""

import hashlib
import io
import tarfile
import time

import pytest
from agent_proc import Agent
from fake_control import FakeControl
from test_agent import call, result, started

SOON_S = 1.3  # a second, and what two shared cores cost


@pytest.fixture
def nodes():
    with FakeControl() as first, FakeControl() as second:
        yield first, second


@pytest.fixture
def agent(nodes, tmp_path, request):
    """Its heartbeats are far apart, as they are in earnest."""
    urls = ",".join(node.url for node in nodes)
    with Agent(tmp_path, urls, **{"heartbeat-ms": 5000}) as agent:
        request.node.agents = [agent]
        yield agent


def beats_within(node, seconds, since=None):
    """How long it took to the next heartbeat there."""
    since = since or time.monotonic()
    node.wait(lambda: node.beats, "heartbeat", seconds + 10)
    took = time.monotonic() - since
    assert took < seconds, took
    return took


def asked(node):
    return len(node.shown)


# ── failovers ─────────────────────────────────────────────────────────────────────────────────


def test_a_leader_that_is_killed(agent, nodes):
    """Nobody leads for a while; the agent is with the next leader within a second of its being there,
    however far apart its heartbeats are."""
    first, second = nodes
    first.wait(lambda: first.beats, "heartbeat")
    second.nobody_leads = True
    first.stop()
    second.wait(lambda: asked(second) >= 3, "standby that is asked again and again")
    assert not second.beats
    with second.changed:
        second.nobody_leads = False
    beats_within(second, SOON_S)
    started(agent, second, 12)


def test_a_leader_that_steps_down(agent, nodes):
    first, second = nodes
    second.redirect = first.url
    first.wait(lambda: first.beats, "heartbeat")
    with first.changed, second.changed:
        first.redirect, second.redirect = second.url, None
    beats_within(second, SOON_S)
    second.wait(lambda: second.probes, "question whether it leads")  # it has read the answer
    assert agent.log_lines("another node leads")[-1]["url"] == second.url


def test_a_leader_that_is_frozen(agent, nodes):
    """What is under way to it is not waited for: it is told to the next one, in order."""
    first, second = nodes
    with started(agent, first, 12) as log:
        first.thawed.clear()
        for number in range(2, 8):
            agent.say(12, call("left", number, key="k"))
        second.await_event(12, "left", n=6, timeout_s=8)
        for number in range(2, 8):
            assert log.answer_to(number) == result(number, {})
    assert [e["seq"] for e in second.of(12)] == list(range(2, 8))
    first.thawed.set()


def test_events_are_told_once_and_in_order_across_failovers(agent, nodes):
    """Each node has what the other was told, as it is with one store behind both."""
    first, second = nodes
    second.answers, second.events = first.answers, first.events
    second.redirect = first.url
    leader, other = first, second
    with started(agent, first, 12) as log:
        number = 1
        for _ in range(4):
            for _ in range(5):
                number += 1
                agent.say(12, call("left", number, key="k"))
            leader.stop()
            for _ in range(5):
                number += 1
                agent.say(12, call("left", number, key="k"))
            with other.changed:
                other.redirect = None
            other.await_event(12, "left", n=number - 1)
            leader.redirect = other.url
            leader.start()
            leader, other = other, leader
        for n in range(2, number + 1):
            assert log.answer_to(n) == result(n, {})
    assert [e["seq"] for e in first.of(12)] == list(range(1, number + 1))


def test_a_deployment_is_fetched_from_the_next_leader(agent, nodes):
    """A new leader sends the spawns that are owed before it is heard of."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        script = b"#!/bin/sh\nexec sleep 60\n"
        info = tarfile.TarInfo("bin/server")
        info.mode, info.size = 0o755, len(script)
        archive.addfile(info, io.BytesIO(script))
    digest = hashlib.sha256(out.getvalue()).hexdigest()
    first, second = nodes
    second.archives[digest] = out.getvalue()
    first.wait(lambda: first.beats, "heartbeat")
    second.nobody_leads = True
    first.stop()
    assert agent.spawn(12, deployment=digest, binary="bin/server") == (202, {})
    second.wait(lambda: asked(second) >= 2, "question for who leads")
    with second.changed:
        second.nobody_leads = False
    second.await_beat(lambda beat: beat["deployments"] == [digest], timeout_s=10)
    second.await_beat(lambda beat: beat["servers"] and beat["servers"][0]["pid"], timeout_s=10)


def test_the_last_heartbeat_finds_the_leader(agent, nodes):
    first, second = nodes
    first.wait(lambda: first.beats, "heartbeat")
    with first.changed:
        first.redirect = second.url
    assert agent.term() == 0
    assert second.beats[-1]["leaving"] is True


# ── standbys that are wrong ───────────────────────────────────────────────────────────────────


def test_two_standbys_that_name_each_other(nodes, tmp_path):
    first, second = nodes
    first.redirect, second.redirect = second.url, first.url
    with Agent(tmp_path, f"{first.url},{second.url}") as agent:
        time.sleep(3)  # what it does in that time is the test
        assert asked(first) + asked(second) < 60
        with first.changed:
            first.redirect = None
        beats_within(first, SOON_S)
        first.await_beat()  # so it has read the answer to the one before
        assert agent.log_lines("the control plane is back")


def test_a_standby_that_names_a_dead_leader(nodes, tmp_path):
    first, second = nodes
    second.redirect = first.url
    first.stop()
    with Agent(tmp_path, second.url):
        time.sleep(2)
        assert 2 <= asked(second) < 30
        with second.changed:
            second.redirect = None
        beats_within(second, SOON_S)


def test_the_token_goes_to_nobody_whom_a_stranger_names(nodes, tmp_path):
    """A configured node may name anybody, for it has the token anyway; whom that one names is nobody."""
    first, second = nodes
    with FakeControl() as stranger:
        first.redirect, stranger.redirect = stranger.url, second.url
        with Agent(tmp_path, first.url):
            first.wait(lambda: asked(first) >= 4, "question")
            assert stranger.shown and all(t == "Bearer agents-token" for _, t in stranger.shown)
            assert not second.shown


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/", "file:///etc/passwd", "//127.0.0.1:1", ""])
def test_where_nobody_can_be_sent(nodes, tmp_path, location):
    first, second = nodes
    first.nobody_leads = True
    first.stand_by = lambda request: (307, {}, {"Location": location} if location else {})
    with Agent(tmp_path, f"{first.url},{second.url}"):
        beats_within(second, 5)
