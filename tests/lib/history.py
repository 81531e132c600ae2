"""What a cluster was asked and what it answered, and whether that can all be true.

Whoever puts load on a cluster writes every request and answer down here, with the node it came from
and the time; game servers and rooms keep books of what they hold. The database's own witness
(witness.py) has every batch and every leadership. `check` holds all of it together, and returns a
sentence for whatever contradicts something else.

Times are seconds of CLOCK_BOOTTIME. An answer has two: `since`, when its connection was last seen
with nothing to read, and `at`, when it was read. It was sent in between, or it was sent before and
was long in coming: an answer that cannot have left while its node led is one whose whole span lies
outside every leadership of that node."""

import itertools
import json
import threading
import time
from collections import defaultdict
from typing import NamedTuple

FOR_EVER = float("inf")
# A refusal that says nothing about what was asked: it could not be stored now.
TRANSIENT = {"Internal error"}


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Answer(NamedTuple):
    key: tuple
    node: str | None  # None: somebody stands between, and nobody knows
    since: float
    at: float
    value: dict | None  # None = a refusal …
    why: str = ""  # … and its sentence


class Book(NamedTuple):
    """An entry of somebody who holds things: a game server its matches, a room its seats."""
    holder: str
    capacity: int
    what: str
    at: float
    held: bool  # from now on; else no more


class Reign(NamedTuple):
    """A leadership, as the database saw it taken."""
    epoch: int
    node: str
    at: float


class Batch(NamedTuple):
    seq: int
    epoch: int
    changes: bytes = b""


class History:
    """May be written by several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked = {}  # key -> when first
        self.answers = []
        self.fresh = []  # the first yes to each key
        self.promised = set()  # keys
        self.releases = {}  # key -> when it was first asked to end
        self.books = []
        self.turned_away = 0  # by nodes that do not lead
        self.failed = 0  # requests without an answer

    def ask(self, key):
        with self.lock:
            self.asked.setdefault(key, now())

    def answer(self, key, node, since, value, why="", at=None):
        with self.lock:
            given = Answer(key, node, since, at or now(), value, why)
            self.answers.append(given)
            if value is not None and key not in self.promised:
                self.promised.add(key)
                self.fresh.append(given)

    def release(self, key):
        """It is about to be ended by whoever holds it: from now on it need not stand."""
        with self.lock:
            self.releases.setdefault(key, now())

    def book(self, holder, capacity, what, held):
        with self.lock:
            self.books.append(Book(holder, capacity, what, now(), held))

    # --- looking, while it grows

    def successes(self, after=0.0, node=None):
        """First answers to what was asked, that were read after a moment."""
        with self.lock:
            return [a for a in itertools.takewhile(lambda a: a.at > after, reversed(self.fresh))
                    if node in (None, a.node)][::-1]

    def standing(self):
        """key -> answer, of what was promised and not released."""
        with self.lock:
            return {a.key: a for a in self.answers
                    if a.value is not None and a.key not in self.releases}

    def dump(self, path):
        """For whoever must find out what happened."""
        with self.lock, open(path, "w") as f:
            for kind in ("answers", "books"):
                for entry in getattr(self, kind):
                    f.write(json.dumps({"kind": kind, **entry._asdict()}, default=str) + "\n")
            for key, at in self.releases.items():
                f.write(json.dumps({"kind": "release", "key": key, "at": at}) + "\n")


# --- what must hold


def one_answer_for_each_key(h):
    """A key that was answered is answered so again, and is not refused while it stands."""
    first = {}
    for a in h.answers:
        known = first.get(a.key)
        if a.value is not None:
            first.setdefault(a.key, a)
            if known and known.value != a.value:
                yield (f"{a.key}: {known.node} answered {known.value}, "
                       f"{a.node} {a.value} {a.at - known.at:.3f} s later")
        elif known and a.why not in TRANSIENT and a.at < h.releases.get(a.key, FOR_EVER):
            yield (f"{a.key}: {known.node} answered {known.value}, "
                   f"{a.node} refused it later: {a.why}")


def nobody_holds_too_much(h):
    """At no moment, by the books of those who hold."""
    held = defaultdict(set)
    for b in sorted(h.books, key=lambda b: (b.at, b.held)):
        if not b.held:
            held[b.holder].discard(b.what)
            continue
        held[b.holder].add(b.what)
        if len(held[b.holder]) > b.capacity:
            yield (f"{b.holder} holds {len(held[b.holder])} at {b.at:.3f}, its capacity is "
                   f"{b.capacity}: {b.what} was one too many")


def nothing_is_sold_twice(h):
    """Whatever two keys were both promised under one name ("what"), they were not at one time. What
    a key had is its own from its first answer until its release."""
    owners = defaultdict(list)
    for key, a in first_answers(h).items():
        if "what" in a.value:
            owners[a.value["what"]].append((a.at, h.releases.get(key, FOR_EVER), key))
    for what, spans in owners.items():
        spans.sort()
        for (_, until, one), (begin, _, other) in zip(spans, spans[1:]):
            if begin < until:
                yield f"{what} was sold to {one} and, before that was over, to {other}"


def first_answers(h):
    found = {}
    for a in h.answers:
        if a.value is not None:
            found.setdefault(a.key, a)
    return found


def only_the_leader_speaks(h, reigns):
    """Every answer left its node while that led."""
    spans = defaultdict(list)
    for reign, after in zip(reigns, [*reigns[1:], None]):
        spans[reign.node].append((reign.at, after.at if after else FOR_EVER))
    for a in h.answers:
        if a.node is not None and not any(
                begin <= a.at and a.since <= end for begin, end in spans[a.node]):
            yield (f"{a.key}: {a.node} answered between {a.since:.3f} and {a.at:.3f}, and led "
                   f"{spans[a.node]} only")


def the_journal_has_no_gap(journal):
    """Batches follow each other, and a later epoch is never followed by an earlier one."""
    for before, b in zip(journal, journal[1:]):
        if b.seq != before.seq + 1:
            yield f"batch {b.seq} comes after batch {before.seq}"
        if b.epoch < before.epoch:
            yield f"batch {b.seq} is of epoch {b.epoch}, the one before it of {before.epoch}"


def epochs_ascend(reigns, journal):
    known = {r.epoch for r in reigns}
    for before, r in zip(reigns, reigns[1:]):
        if r.epoch != before.epoch + 1:
            yield f"epoch {r.epoch} ({r.node}) comes after epoch {before.epoch} ({before.node})"
        if r.at < before.at:
            yield f"epoch {r.epoch} began before epoch {before.epoch}"
    for epoch in sorted({b.epoch for b in journal} - known):
        yield f"batches of epoch {epoch}, which nobody took"


def nothing_is_lost(h, kept):
    """What was promised and not released is in the database. kept: key -> what stands there."""
    for key, a in h.standing().items():
        if key not in kept:
            yield f"{key}: {a.node} answered {a.value}, and the database does not know it"
            continue
        for field, value in kept[key].items():
            if a.value.get(field) != value:
                yield (f"{key}: {a.node} answered {field} {a.value.get(field)}, the database has "
                       f"{value}")


def check(h, reigns=(), journal=(), kept=None):
    """Sentences, the worst that can be said of it; none = it can all be true."""
    found = [*one_answer_for_each_key(h), *nobody_holds_too_much(h), *nothing_is_sold_twice(h)]
    if reigns:
        found += [*only_the_leader_speaks(h, reigns), *epochs_ascend(reigns, journal)]
    found += the_journal_has_no_gap(journal)
    if kept is not None:
        found += nothing_is_lost(h, kept)
    return found
