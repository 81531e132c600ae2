"""kill -9 under load, again and again: nothing answered is lost or changed, nothing is sold twice."""

import os
import random

import pytest
from load import History, LoadChat, LoadServer

CRASHES = 32
SEED = int(os.environ.get("MUSTER_CRASH_SEED", "1"))


def make_load(world, history):
    servers = [
        LoadServer(
            world.net,
            world.muster.server_address,
            "10.0.0.1",
            next(world.ports),
            2,
            capacity,
            history=history,
            beat_every_s=0.5,
        ).register()
        for capacity in (8, 16, 24, 40, 60, 100)
    ]
    askers = [
        LoadChat(
            world.net, world.muster.manager_address, f"chat-{n}", [2], history=history, window=window
        ).register()
        for n, window in enumerate((4, 16, 32))
    ]
    return servers, askers


def bring_back(world, servers, askers):
    world.muster.restart()
    for server in servers:
        server_id = server.server_id
        server.reconnect()
        assert server.server_id == server_id
    for asker in askers:
        asker.reconnect()


def ask_again(history, asker, keys):
    asker.again.extend(lobby for chat_id, lobby in keys if chat_id == asker.chat_id)


def quiesce(world, servers, askers):
    """No new requests; waits until every request under way is answered."""
    for server in servers:
        server.ends_matches = False
    for asker in askers:
        asker.next_lobby = None
        asker.cancels = 0
    world.wait(lambda: all(a.idle for a in askers), "answers to everything asked", timeout_s=30)


@pytest.mark.timeout(180)
@pytest.mark.muster(ack_ms=2000, cancel_repeat_ms=200)
def test_kill_9_under_load_loses_and_doubles_nothing(world):
    chance = random.Random(SEED)
    history = History(world.net, SEED)
    servers, askers = make_load(world, history)
    for _ in range(CRASHES):
        for asker in askers:
            ask_again(history, asker, chance.sample(history.standing(), min(60, len(history.standing()))))
            asker.go()
        target = history.answered + chance.randint(20, 500)
        world.wait(lambda: history.answered >= target, "progress under load", timeout_s=20)
        for _ in range(chance.randint(0, 3)):
            world.net.pump(0.001)
        world.muster.kill9()
        world.wait(lambda: all(p.closed for p in servers + askers), "end of every connection")
        assert not world.net.violations
        bring_back(world, servers, askers)

    for asker in askers:
        ask_again(history, asker, history.standing())
        asker.go()
    quiesce(world, servers, askers)
    for server in servers:
        server.barrier()

    standing = {history.answers[key] for key in history.standing()}
    held = {(s.server_id, token) for s in servers for token in s.matches.values()}
    assert standing == held, "what was answered is what is played, and nothing else is"
    print(
        f"seed {SEED}: {CRASHES} crashes, {history.answered} answers, {history.repeats} repeats, "
        f"{len(standing)} matches standing"
    )
    assert history.repeats > 1000
