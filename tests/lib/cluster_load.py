"""Load on a cluster: game servers, chat servers, a host with rooms and those who seek places in them.
All of them find the leader by themselves, and write down what they ask and hear (history.py).

The peers have one thread, the seekers one each; a test's own thread kills and starts processes."""

import http.client
import itertools
import json
import random
import select
import threading
import time

import chat
import load
from chat import EU
from fake_host import FakeHost, Refused
from history import TRANSIENT, History, check, now
from http_api import JSON
from load import LoadChat, LoadServer
from peers import Net, Peer
from players import fleets
from witness import differences, ended_matches, kept_matches, kept_seats, replay

RETRY_S = 0.05
HELLO_S = 1.0  # for an answer to a greeting
SILENCE_S = 1.5  # then whoever we are connected to is given up
REQUEST_S = 3.0
PATIENCE_S = 60.0
PACE_S = 0.02  # a window of requests each
SEATS = 4  # in a room

# What the nodes must be configured with.
CONFIG = {"ack_ms": 2000, "cancel_repeat_ms": 200, "default_region": "EU",
          "host_backoff_ms": 100, "host_backoff_max_ms": 200,
          "fleets": fleets(max_players=SEATS, reserve_s=3600, empty_timeout_s=3600)}


class RovingNet(Net):
    """before: when it last looked whether there is anything to read."""

    def __init__(self):
        super().__init__()
        self.before = self.looked = now()
        self.rovers = []

    def pump(self, timeout_s):
        super().pump(timeout_s)
        for rover in self.rovers:
            rover.rove()

    def look_again(self):
        self.before, self.looked = self.looked, now()


class LookingSelector:
    """Tells the net when it looks."""

    def __init__(self, net):
        self.net, self.inner = net, net.selector

    def select(self, timeout_s):
        self.net.look_again()  # before it looks: nobody knows when it was run again afterwards
        return self.inner.select(timeout_s)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Rover(Peer):
    """A peer that goes from node to node until one greets it, and again when that one is gone."""

    door = greeting = None
    silence_s = SILENCE_S

    def __init__(self, cluster, net, *args, record, **options):
        self.cluster = cluster
        self.record = record
        self.turn = 0
        self.welcome = False
        self.retry_s = self.hello_s = self.heard_s = self.pinged_s = 0.0
        self.since = now()
        super().__init__(net, getattr(cluster.nodes[0], f"{self.door}_address"), *args, **options)
        net.rovers.append(self)

    @property
    def node(self):
        return self.cluster.nodes[self.turn % len(self.cluster.nodes)]

    def open(self):
        self.welcome = False
        self.address = getattr(self.node, f"{self.door}_address")
        try:
            super().open()
        except OSError:
            self.socket.close()
            self.closed = True
            self.go_on()
            return
        self.hello_s = self.heard_s = self.pinged_s = now()
        self.say_hello()

    def go_on(self):
        """To the next node, in a moment."""
        self.turn += 1
        self.retry_s = now() + RETRY_S

    def lost(self):
        if not self.closed:
            self.welcome = False
            self.go_on()
        super().lost()

    def read(self):
        self.since = self.net.before
        self.heard_s = now()
        super().read()

    def rove(self):
        moment = now()
        if self.closed:
            if moment >= self.retry_s and self.retry_s:
                self.open()
        elif not self.welcome:
            if moment > self.hello_s + HELLO_S:
                self.lost()
        elif moment > self.heard_s + self.silence_s:
            self.lost()
        elif moment > self.pinged_s + SILENCE_S / 4:
            self.pinged_s = moment
            self.send(chat.ping())

    def received(self, message):
        if message.name == "PONG":
            return
        if not self.welcome and message.name == self.greeting:
            if not message.ok:
                self.record.turned_away += 1
                self.lost()
                return
            self.welcome = True
            super().received(message)
            self.inbox.clear()
            self.greeted()
            return
        super().received(message)


class Expected(load.History):
    """A match may have been played and ended before its chat server, whose leader was lost, has heard
    of it: the database must know."""

    def __init__(self, net, seed):
        super().__init__(net, seed)
        self.unheard = []  # keys

    def no(self, key, sentence):
        if key not in self.answers and sentence == "Invalid match lobby ID":
            self.unheard.append(key)
            self.answered += 1
        else:
            super().no(key, sentence)


class RovingServer(Rover, LoadServer):
    door, greeting = "server", "SV_HANDSHAKE_RESPONSE"

    def greeted(self):
        self.send_list()
        self.send_beat("by itself")

    def hold(self, lobby, token):
        super().hold(lobby, token)
        self.record.book(self.name, self.capacity, token, True)

    def let_go(self, token):
        self.record.book(self.name, self.capacity, token, False)

    def end_oldest(self):
        lobby, token = next(iter(self.matches.items()))
        self.record.release(token)
        self.let_go(token)
        super().end_oldest()

    def received(self, message):
        if message.name == "SV_CANCEL_MATCH" and \
                self.matches.get(message.lobby) == message.match_token:
            self.let_go(message.match_token)
        super().received(message)


class RovingChat(Rover, LoadChat):
    door, greeting = "manager", "MGR_HANDSHAKE_RESPONSE"

    def __init__(self, *args, **options):
        self.fill_s = 0.0
        self.later = []  # (when, lobby): what could not be stored is asked for again
        super().__init__(*args, **options)

    def greeted(self):
        for lobby in self.cancelling:
            self.send_cancel(lobby)
        self.fill()

    def fill(self):
        """Not at once: what is tested is the cluster, and this has no more than two processors."""
        if self.welcome and now() >= self.fill_s:
            self.fill_s = now() + PACE_S
            super().fill()

    def rove(self):
        super().rove()
        self.fill()
        while self.later and self.later[0][0] < now():
            _, lobby = self.later.pop(0)
            if lobby in self.cancelling:
                self.send_cancel(lobby)
            else:
                self.again.append(lobby)

    def cancelled(self, message):
        if not message.ok and message.error in TRANSIENT:
            self.later.append((now() + RETRY_S, message.lobby))
        else:
            super().cancelled(message)

    def answered(self, message):
        value = {"server": message.server_id, "token": message.match_token} if message.ok else None
        self.record.answer(self.key(message.lobby), self.node.name, self.since, value,
                           "" if message.ok else message.error)
        if value is None and message.error in TRANSIENT:
            self.under_way.pop(message.lobby, None)
            self.later.append((now() + RETRY_S, message.lobby))
        else:
            super().answered(message)

    @property
    def idle(self):
        return super().idle and not self.later

    def send_cancel(self, lobby):
        self.record.release(self.key(lobby))
        super().send_cancel(lobby)


class Away(OSError):
    """No node took it."""


class Caller:
    """Asks over HTTP whoever leads; one thread's."""

    def __init__(self, cluster, token, through=None):
        self.cluster = cluster
        self.token = token
        self.through = through  # the address of somebody between, who knows the leader
        self.turn = 0
        self.connection = None
        self.turned_away = 0

    @property
    def node(self):
        return self.cluster.nodes[self.turn % len(self.cluster.nodes)]

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def go_on(self):
        self.close()
        self.turn += 1

    def once(self, method, path, data, headers):
        """(status, body, since, at) of one try; OSError when there is no answer."""
        body = json.dumps(data).encode() if data is not None else None
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON, **(headers or {})}
        if not self.connection:
            where = self.through or self.node.http_address
            self.connection = http.client.HTTPConnection(*where, timeout=REQUEST_S)
        try:
            since = looked = now()
            self.connection.request(method, path, body, head)
            until = since + REQUEST_S
            while not select.select([self.connection.sock], [], [], 0.01)[0]:
                since = looked  # nothing was there then: read before it was looked, not after
                looked = now()
                if looked > until:
                    raise TimeoutError("no answer")
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.will_close:
                self.close()
            return answer.status, json.loads(text), since, now()
        except (http.client.HTTPException, ValueError) as e:
            raise OSError(f"{e!r}") from e

    def ask(self, method, path, data=None, headers=None, stop=lambda: False):
        """Until a node that leads has answered: (status, body, node's name, since, at)."""
        deadline = now() + PATIENCE_S
        while now() < deadline and not stop():
            name = None if self.through else self.node.name
            try:
                status, body, since, at = self.once(method, path, data, headers)
            except OSError:
                self.go_on()
                time.sleep(RETRY_S)
                continue
            if status != 307 and status < 500:
                return status, body, name, since, at
            code = body.get("error", {}).get("code")
            if status >= 500 and code in FINAL:
                return status, body, name, since, at
            self.turned_away += status == 307 or code == "no_leader"
            self.go_on()
            time.sleep(RETRY_S)
        raise Away(f"{method} {path} was not answered within {PATIENCE_S} s")


# Refusals with a status of 500 and more that are answers all the same.
FINAL = {"no_capacity", "queue_timeout", "friend_unavailable", "no_place", "host_away",
         "spawn_failed", "no_host"}


class RovingHost(FakeHost):
    """An agent whose control plane is whichever node leads."""

    def __init__(self, cluster, token, **options):
        self.caller = Caller(cluster, token)
        self.post_lock = threading.Lock()
        super().__init__(cluster, token=token, **options)

    def __enter__(self):
        super().__enter__()
        self.http.handle_error = lambda *_: None  # a node that is killed reads no answer
        return self

    def post(self, path, body):
        with self.post_lock:
            status, answer, *_ = self.caller.ask("POST", path, body, stop=self.stopping.is_set)
        assert status == 200, (path, body, status, answer)
        return answer


class Seeker(threading.Thread):
    """Asks for places for players, and again for what it got; some play and leave."""

    def __init__(self, number, bench, through=None):
        super().__init__(daemon=True)
        self.number = number
        self.bench = bench
        self.caller = Caller(bench.cluster, bench.token, through)
        self.chance = random.Random(f"{bench.seed} {number}")
        self.mine = []  # tickets that were answered
        self.waiting = []  # … that stand in line, for as long as the host is not known
        self.tickets = itertools.count(1)
        self.mistake = None
        self.pause_s = 0.02

    def run(self):
        try:
            while not self.bench.ending.is_set():
                self.one()
                self.bench.ending.wait(self.pause_s)
        except Away as e:
            if not self.bench.ending.is_set():
                self.mistake = repr(e)
        except BaseException as e:  # noqa: BLE001
            self.mistake = repr(e)

    def one(self):
        if self.waiting and self.chance.random() < 0.5:
            ticket = self.waiting.pop(0)
        elif self.mine and self.chance.random() < 0.3:
            ticket = self.chance.choice(self.mine)
        else:
            ticket = f"s{self.number}-{next(self.tickets)}"
        answer = self.seek(ticket)
        if answer and ticket not in self.mine:
            self.mine.append(ticket)
            if self.chance.random() < 0.4:
                self.play(ticket, answer)

    def seek(self, ticket):
        """The result of a Success, else None."""
        key, record = ("ticket", ticket), self.bench.record
        record.ask(key)
        status, body, node, since, at = self.caller.ask(
            "POST", "/v1/allocations",
            {"ticketId": ticket, "fleet": "arena", "playerId": f"player-{ticket}"},
            stop=self.bench.ending.is_set)
        if body.get("status") == "Queued":
            self.waiting.append(ticket)
            return None
        if body.get("status") != "Success":
            record.answer(key, node, since, None, f"{status} {body}", at)
            return None
        fresh = key not in record.promised
        record.answer(key, node, since, {"room": int(body["sessionId"]), "key": body["key"],
                                         "token": body["token"], "port": body["port"]}, at=at)
        if fresh:
            record.book(f"room {body['sessionId']}", SEATS, ticket, True)
        return body

    def play(self, ticket, placed):
        """He joins, and leaves at once: what he was given must be good, whoever leads by now."""
        record, host = self.bench.record, self.bench.host
        server = next((s for s in list(host.servers.values()) if s.room == placed["sessionId"]), None)
        if server is None:
            self.bench.violation(f"{ticket} was placed in room {placed['sessionId']}, which no "
                                 "server has")
            return
        try:
            server.joined(placed["key"])
            record.release(("ticket", ticket))
            record.book(f"room {placed['sessionId']}", SEATS, ticket, False)
            server.left(placed["key"])
            self.bench.played += 1
        except Refused as e:
            self.bench.violation(f"{ticket}: the key it was given is refused: {e.error}")


class Bench:
    """Everything that asks, on one cluster. Use it in a with block. loyal: so many chat servers more,
    which stay with a node that is silent and hear whatever it says when it is back."""

    def __init__(self, cluster, capacities=(8, 16, 40), windows=(2, 6), seekers=3, seed=1,
                 through=None, loyal=0, token=None):
        self.cluster = cluster
        self.seed = seed
        self.record = History()
        self.ending = threading.Event()
        self.mistake = None
        self.played = 0
        self.token = token or cluster.nodes[0].token()
        self.net = RovingNet()
        self.net.selector = LookingSelector(self.net)
        self.expected = Expected(self.net, seed)
        self.host = RovingHost(cluster, self.token)
        self.servers = [RovingServer(cluster, self.net, "10.0.0.1", 20001 + n, EU, capacity,
                                     record=self.record, history=self.expected, beat_every_s=0.5)
                        for n, capacity in enumerate(capacities)]
        self.chats = [RovingChat(cluster, self.net, f"chat-{n}", [EU], record=self.record,
                                 history=self.expected, window=window)
                      for n, window in enumerate(windows)]
        for n in range(loyal):
            self.chats.append(RovingChat(cluster, self.net, f"loyal-{n}", [EU], record=self.record,
                                         history=self.expected, window=2))
            self.chats[-1].silence_s = float("inf")
        self.seekers = [Seeker(n, self, through) for n in range(seekers)]
        self.calls = []  # for the thread of the peers
        self.repeats_due = 0.0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def violation(self, sentence):
        self.net.violations.append(sentence)

    def run(self):
        try:
            while not self.ending.is_set():
                self.net.pump(0.01)
                self.repeat_some()
                while self.calls:
                    self.calls.pop(0)()
        except BaseException as e:  # noqa: BLE001
            self.mistake = repr(e)
            raise

    def repeat_some(self):
        """Old answers are asked for again all the time, whoever gave them."""
        if now() < self.repeats_due:
            return
        self.repeats_due = now() + 0.2
        standing = self.expected.standing()
        for key in self.expected.random.sample(standing, min(4, len(standing))):
            self.ask_again([key])

    def ask_again(self, keys):
        for asker in self.chats:
            asker.again.extend(lobby for chat_id, lobby in keys if chat_id == asker.chat_id)

    def __enter__(self):
        self.thread.start()
        self.host.__enter__()
        self.calls.append(lambda: [asker.go() for asker in self.chats])
        for seeker in self.seekers:
            seeker.start()
        self.await_more(20)
        return self

    def __exit__(self, kind, *_):
        self.ending.set()
        for seeker in self.seekers:
            seeker.join(PATIENCE_S)
        self.host.__exit__(kind or Exception)
        self.thread.join(PATIENCE_S)
        self.net.close()

    # --- what a test waits for

    def wait(self, look, what, timeout_s=PATIENCE_S):
        deadline = now() + timeout_s
        while not (found := look()):
            assert self.mistake is None, self.mistake
            assert not any(s.mistake for s in self.seekers), [s.mistake for s in self.seekers]
            assert now() < deadline, f"no {what} within {timeout_s} s; {self.cluster.story()}"
            time.sleep(0.003)
        return found

    def await_more(self, count, after=None, node=None):
        """So many first answers from now on."""
        after = now() if after is None else after
        return self.wait(lambda: (found := self.record.successes(after, node))
                         if len(self.record.successes(after, node)) >= count else None,
                         f"{count} answers")

    def first_success(self, after, node=None, timeout_s=PATIENCE_S):
        """When the first answer to something new was read, after a moment."""
        return self.wait(lambda: self.record.successes(after, node), "answer", timeout_s)[0].at

    def figures(self):
        """For a gate: how much there was that could have gone wrong."""
        return {"answers": len(self.record.answers), "promises": len(self.record.fresh),
                "played": self.played, "unheard": len(self.expected.unheard)}

    # --- the end

    def come_to_rest(self):
        """Nothing new is asked; everything that stands is asked for once more."""
        for seeker in self.seekers:
            seeker.pause_s = 3600
        self.ending_seekers()
        self.calls.append(self.peers_come_to_rest)
        self.wait(lambda: not self.calls and all(asker.idle and asker.welcome for asker in self.chats),
                  "answers to everything asked")

    def ending_seekers(self):
        """Their threads end; what they were promised is asked for by ours."""
        asked_before = {s: s.mine for s in self.seekers}
        for seeker in self.seekers:
            seeker.one = lambda: None
        for seeker, mine in asked_before.items():
            last = Seeker(100 + seeker.number, self, seeker.caller.through)
            for ticket in list(mine):
                last.seek(ticket)

    def peers_come_to_rest(self):
        for server in self.servers:
            server.ends_matches = False
        for asker in self.chats:
            asker.next_lobby = None
            asker.cancels = 0
        self.repeats_due = float("inf")
        self.ask_again(self.expected.standing())

    def settle(self):
        """Game servers speak of matches by their tokens alone."""
        releases = self.record.releases
        for answer in self.record.fresh:
            at = releases.get(answer.value["token"])
            if at is not None:
                releases[answer.key] = min(at, releases.get(answer.key, at))

    def violations(self, witness):
        """Of everything: the load's own, the history's, and the database's."""
        self.come_to_rest()
        self.settle()
        journal, by_tables = witness.look()
        by_journal = replay(journal)
        kept = {**kept_matches(by_tables)}
        seats = kept_seats(by_tables)
        for key, answer in self.record.standing().items():
            if key[0] == "ticket" and ("seat", f"player-{key[1]}") in seats:
                kept[key] = seats["seat", f"player-{key[1]}"]
        found = [*self.net.violations,
                 *check(self.record, witness.reigns(), journal, kept),
                 *differences(by_journal, by_tables)]
        found += self.held_and_not_promised(by_tables)
        over = ended_matches(journal)
        found += [f"{key}: was never answered, and is refused as if it was over"
                  for key in self.expected.unheard if key not in over]
        return found

    def held_and_not_promised(self, state):
        """What game servers hold is what the database says they hold."""
        by_server = {}
        for (kind, _), row in state.items():
            if kind == "session" and row["state"] in (2, 3):
                by_server[row["server"]] = by_server.get(row["server"], 0) + 1
        for server in self.servers:
            kept, held = by_server.get(server.server_id, 0), len(server.matches)
            if kept != held:
                yield f"{server} holds {held} matches, the database has {kept} on it"
