"""kill -9 under load, again and again: nothing answered is lost or changed, nothing is sold twice."""

import os
import random

import pytest
from chat import EU
from load import History, LoadChat, LoadServer

SEED = int(os.environ.get("MUSTER_CRASH_SEED", "1"))
CRASHES = int(os.environ.get("MUSTER_CRASHES", "32"))


class Crashes:
    """A world under load, to be killed as often as one likes."""

    def __init__(self, world, trouble=0.0):
        self.world = world
        self.chance = random.Random(SEED)
        self.history = History(world.net, SEED)
        self.servers = [self.make_server(capacity, trouble) for capacity in (8, 16, 24, 40, 60, 100)]
        self.askers = [self.make_asker(n, window) for n, window in enumerate((4, 16, 32))]

    def make_server(self, capacity, trouble):
        address = self.world.muster.server_address
        port = next(self.world.ports)
        server = LoadServer(
            self.world.net, address, "10.0.0.1", port, EU, capacity,
            history=self.history, trouble=trouble, beat_every_s=0.5,
        )
        return server.register()

    def make_asker(self, number, window):
        address = self.world.muster.manager_address
        asker = LoadChat(
            self.world.net, address, f"chat-{number}", [EU], history=self.history, window=window
        )
        return asker.register()

    def ask_again(self, keys):
        for asker in self.askers:
            asker.again.extend(lobby for chat_id, lobby in keys if chat_id == asker.chat_id)

    def bring_back(self, peers):
        for peer in peers:
            if peer.closed:
                known_id = getattr(peer, "server_id", None)
                peer.reconnect()
                assert getattr(peer, "server_id", None) == known_id

    def load_until(self, target):
        """New requests, and a sample of old ones, until so many answers have come."""
        standing = self.history.standing()
        self.ask_again(self.chance.sample(standing, min(60, len(standing))))
        for asker in self.askers:
            asker.go()

        def enough():
            self.bring_back(self.servers)  # those that dropped their connection
            return self.history.answered >= target

        self.world.wait(enough, "progress under load", timeout_s=30)

    def kill_9(self):
        self.end_under_load(self.world.muster.kill9)

    def end_in_good_order(self):
        def end():
            assert self.world.muster.term() == 0

        self.end_under_load(end)

    def end_under_load(self, end):
        self.load_until(self.history.answered + self.chance.randint(20, 500))
        for _ in range(self.chance.randint(0, 3)):
            self.world.net.pump(0.001)
        end()
        peers = self.servers + self.askers
        self.world.wait(lambda: all(p.closed for p in peers), "end of every connection")
        assert not self.world.net.violations
        self.world.muster.restart()
        self.bring_back(peers)

    def come_to_rest(self):
        """Asks once more for everything that stands, and for nothing new."""
        self.ask_again(self.history.standing())
        for server in self.servers:
            server.ends_matches = False
            server.trouble = 0.0
        for asker in self.askers:
            asker.next_lobby = None
            asker.cancels = 0
            asker.go()

        def idle():
            self.bring_back(self.servers)
            return all(asker.idle for asker in self.askers)

        self.world.wait(idle, "answers to everything asked", timeout_s=30)

    def assert_nothing_lost_or_doubled(self):
        """What was answered is what is played, and nothing else is."""
        standing = {self.history.answers[key] for key in self.history.standing()}

        def held():
            return {(s.server_id, token) for s in self.servers for token in s.matches.values()}

        for server in self.servers:
            server.barrier()
        assert standing <= held(), "a match that was answered is not played"
        self.world.wait(lambda: held() <= standing, f"end of {held() - standing}, which nobody has")
        print(
            f"seed {SEED}: {self.history.answered} answers, {self.history.repeats} of them repeats,"
            f" {len(standing)} matches standing"
        )


@pytest.mark.muster(ack_ms=2000, cancel_repeat_ms=200)
def test_kill_9_under_load_loses_and_doubles_nothing(world):
    crashes = Crashes(world)
    for _ in range(CRASHES):
        crashes.kill_9()
    crashes.come_to_rest()
    crashes.assert_nothing_lost_or_doubled()
    assert crashes.history.repeats > 10 * CRASHES


@pytest.mark.muster(ack_ms=300, cancel_repeat_ms=200, backoff_first_ms=20, backoff_max_ms=100)
def test_kill_9_among_misbehaving_servers_loses_and_doubles_nothing(world):
    crashes = Crashes(world, trouble=0.02)
    for _ in range(CRASHES // 2):
        crashes.kill_9()
    crashes.come_to_rest()
    crashes.assert_nothing_lost_or_doubled()


@pytest.mark.muster(ack_ms=2000, cancel_repeat_ms=200)
def test_sigterm_under_load_loses_and_doubles_nothing(world):
    crashes = Crashes(world)
    for _ in range(8):
        crashes.end_in_good_order()
    crashes.come_to_rest()
    crashes.assert_nothing_lost_or_doubled()
