"""Load for crash and race tests: chat servers that always have requests under way, game servers that
play and end matches, and a history that knows what Muster must never contradict.

A match is named by its token. What the history holds against Muster:
  - one (chat server, lobby) was answered with two different places;
  - an answer was not repeated, or forgotten after a crash;
  - a match that was confirmed as ended or cancelled was sold again;
  - a refusal that nothing explains.
Game servers themselves notice a lobby id given twice and a match too many (peers.GameServer)."""

import random
from collections import deque

import chat
from peers import ChatServer, GameServer

FINE_REFUSALS = {"No servers available", "Server allocation timeout"}


class History:
    def __init__(self, net, seed):
        self.violations = net.violations
        self.random = random.Random(seed)
        self.answers = {}  # (chat id, lobby) -> (server id, token)
        self.over = set()  # tokens of matches somebody has begun to end or cancel
        self.confirmed = set()  # tokens whose end Muster has confirmed
        self.answered = 0  # answers of any kind
        self.repeats = 0  # … that repeated an earlier one

    def violation(self, sentence):
        self.violations.append(sentence)

    def is_over(self, key):
        """Whether the end of its match has been confirmed: whoever asks from now on hears so."""
        return key in self.answers and self.answers[key][1] in self.confirmed

    def yes(self, key, place, over_when_asked):
        self.answered += 1
        known = self.answers.get(key)
        if known is None:
            self.answers[key] = place
        elif known == place:
            self.repeats += 1
            if over_when_asked:
                self.violation(f"{key}: over, and yet answered with {place}")
        else:
            self.violation(f"{key}: answered with {known}, later with {place}")

    def no(self, key, sentence):
        self.answered += 1
        known = self.answers.get(key)
        if known and known[1] not in self.over:
            self.violation(f"{key}: was placed at {known}, is refused now: {sentence}")
        if sentence == "Invalid match lobby ID" and self.may_be_over(key):
            self.repeats += 1
        elif not known and sentence not in FINE_REFUSALS:
            self.violation(f"{key}: refused with '{sentence}'")

    def may_be_over(self, key):
        """Its match, or one of that lobby whose answer nobody heard: it was stored, and the connection
        was gone before it left; then its server played and ended it."""
        if key in self.answers:
            return self.answers[key][1] in self.over
        heard = {token for _, token in self.answers.values()}
        return any(token.startswith(f"MATCH_{key[1]}_") for token in self.over - heard)

    def standing(self):
        """Keys whose answer must be repeated, word for word."""
        return [key for key, place in self.answers.items() if place[1] not in self.over]


class LoadServer(GameServer):
    """Takes matches; when it is nearly full it ends its oldest. With some trouble (a probability) it
    refuses, stays silent, or drops its connection before or behind its ACK."""

    def __init__(self, *args, history, trouble=0.0, **script):
        self.history = history
        self.trouble = trouble
        self.ends_matches = True
        super().__init__(*args, **script)

    def register(self):
        """No trouble before it is in."""
        trouble, self.trouble = self.trouble, 0.0
        super().register()
        self.trouble = trouble
        return self

    def take_on(self, lobby, token):
        if lobby in self.matches or self.history.random.random() >= self.trouble:
            super().take_on(lobby, token)
            return
        how = self.history.random.choice(["refuse", "silent", "drop", "ack and drop"])
        if how == "refuse":
            self.ack(lobby, success=0)
        elif how == "ack and drop":
            super().take_on(lobby, token)
        if "drop" in how:
            self.close()

    def received(self, message):
        super().received(message)
        if message.name in ("SV_MATCH_ENDED_RESPONSE", "SV_ALLOCATE_MATCH", "SV_CANCEL_MATCH"):
            self.inbox.pop()
        if message.name == "SV_MATCH_ENDED_RESPONSE":
            self.ended(message)
        elif message.name == "SV_ALLOCATE_MATCH":
            self.asked.clear()
            if self.ends_matches and not self.closed and len(self.matches) > self.capacity * 3 // 4:
                self.end_oldest()

    def open(self):
        super().open()
        self.ending = {}  # lobby -> token, asked to end and not answered yet

    def end_oldest(self):
        lobby, token = next(iter(self.matches.items()))
        del self.matches[lobby]
        self.history.over.add(token)
        self.ending[lobby] = token
        self.send(chat.sv_match_ended(self.server_id, lobby, 1, 60))

    def ended(self, message):
        token = self.ending.pop(message.lobby, None)
        if message.ok and token:
            self.history.confirmed.add(token)


class LoadChat(ChatServer):
    """Keeps `window` requests under way. Lobby ids count up from 1 on every chat server, so that equal
    ids of different owners are the rule."""

    def __init__(self, *args, history, window=16, cancels=0.03, **options):
        self.history = history
        self.window = window
        self.cancels = cancels
        self.next_lobby = 1
        self.under_way = {}  # lobby -> its match was over when we asked; in order
        self.again = deque()  # lobbies to ask for before new ones
        self.cancelling = set()  # lobbies given up whose cancel is not confirmed yet
        self.active = False
        super().__init__(*args, **options)

    def key(self, lobby):
        return self.chat_id, lobby

    def lost(self):
        if not self.closed:
            self.again.extendleft(reversed(self.under_way))
            self.under_way.clear()
        super().lost()

    def register(self):
        """What was given up before the connection broke is given up again: nobody confirmed it."""
        super().register()
        for lobby in self.cancelling:
            self.send_cancel(lobby)
        return self

    def go(self):
        """Starts asking, or goes on."""
        self.active = True
        self.fill()

    def fill(self):
        frames = bytearray()
        while self.active and len(self.under_way) < self.window:
            if self.again:
                lobby = self.again.popleft()
            elif self.next_lobby is not None:
                lobby = self.next_lobby
                self.next_lobby += 1
            else:
                break
            if lobby not in self.under_way:
                self.under_way[lobby] = self.history.is_over(self.key(lobby))
                frames += chat.mgr_server_allocation_request(lobby, 6, 0, chat.EU, 10, 1500)
        if frames:
            self.send(frames)

    def received(self, message):
        super().received(message)
        if message.name == "MGR_SERVER_ALLOCATION_RESPONSE":
            self.inbox.pop()
            self.answered(message)
        elif message.name == "MGR_ALLOCATION_CANCEL_RESPONSE":
            self.inbox.pop()
            self.cancelled(message)
        elif message.name == "MGR_MATCH_EVENT":
            self.inbox.pop()

    def cancelled(self, message):
        self.cancelling.discard(message.lobby)
        key = self.key(message.lobby)
        if message.ok:
            self.history.confirmed.add(self.history.answers[key][1])
        else:
            self.history.violation(f"{key}: was placed, cannot be cancelled: {message.error}")

    def answered(self, message):
        over = self.under_way.pop(message.lobby, False)
        key = self.key(message.lobby)
        if message.ok:
            fresh = key not in self.history.answers
            self.history.yes(key, (message.server_id, message.match_token), over)
            if fresh and self.history.random.random() < self.cancels:
                self.history.over.add(message.match_token)
                self.cancelling.add(message.lobby)
                self.send_cancel(message.lobby)
        else:
            self.history.no(key, message.error)
        self.fill()

    @property
    def idle(self):
        return not self.under_way and not self.again and not self.cancelling
