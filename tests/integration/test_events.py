"""GET /v1/events: every durable change once, in order, across everything that can happen."""

import random

import pytest
from events import Reader, journal_events, list_all, metric, place
from gate import Gate
from test_crash import SEED, Crashes

TICKET_STATES = [None, "open", "done", "failed", "cancelled", "ended"]
SESSION_STATES = [None, "opening", "open", "lost", "cancelling", "ended"]


def reader(world, **options):
    return Reader(world, **options).expect_open()


def assert_all_seen(world, who, after="0"):
    """What he has is what the journal has: the same changes, in the same order, each once. The
    journal is ahead of him while what is durable is on its way."""

    def both():
        seen = [(e.id, e.type, e.data.get("gone", False), int(e.data["id"])) for e in who.changes()]
        stored = [(i, kind, gone, row["id"]) for i, kind, gone, row in
                  journal_events(world.muster, after)]
        return (seen, stored) if len(seen) == len(stored) else None

    seen, stored = world.wait(both, "change that is stored")
    assert seen == stored


def assert_rows_are_told_truly(world, who):
    """The words of each event are the numbers of its row."""
    rows = {i: row for i, _, gone, row in journal_events(world.muster) if not gone}
    compared = 0
    for event in who.of("ticket", "session"):
        if event.data.get("gone"):
            continue
        row = rows[event.id]
        states = TICKET_STATES if event.type == "ticket" else SESSION_STATES
        assert event.data["state"] == states[row["state"]]
        assert event.data["lobby"] == row["lobby"]
        refused = event.data["state"] in ("failed", "cancelled")
        assert (event.data.get("error") is not None) == (refused and event.type == "ticket")
        assert event.data["fleet"] == "default" and event.data["chat_server"].startswith("chat-")
        compared += 1
    assert compared > 100


def latest(who, kind):
    """What somebody knows who believes the events."""
    known = {}
    for event in who.of(kind):
        if event.data.get("gone"):
            known.pop(event.data["id"], None)
        else:
            known[event.data["id"]] = event.data
    return known


def assert_knows_what_is(world, who):
    """The last event of each object is what its list shows. Times aside, which are shown to the
    millisecond by the clock of who looks, and a session that is gone since, which a list shows no
    more."""
    sessions = latest(who, "session")
    for kind, path in (("ticket", "tickets"), ("session", "sessions"), ("server", "servers")):
        known = latest(who, kind)
        listed = {item["id"]: item for item in list_all(world, path)}
        assert known.keys() == listed.keys()
        for object_id, event in known.items():
            if kind == "ticket" and event["session"] not in sessions:
                event = {**event, "session": None, "server": None}
            for key, value in event.items():
                if not key.endswith("_at"):
                    assert listed[object_id][key] == value, (kind, object_id, key)


@pytest.mark.muster(ack_ms=2000, cancel_repeat_ms=200)
def test_reader_who_resumes_sees_each_change_once_across_kill_9(world):
    """Twenty times: load, some reconnects of the reader, kill -9, restart."""
    who = reader(world, last_id="0")
    crashes = Crashes(world)
    chance = random.Random(SEED)
    for _ in range(20):
        crashes.load_until(crashes.history.answered + chance.randint(0, 60))
        if chance.random() < 0.5:
            who.reconnect()
        crashes.kill_9()
        world.wait(lambda: who.closed, "end of the stream")
        who.open()
        who.expect_open()
    crashes.come_to_rest()
    who.expect_everything()
    assert not who.of("gap")
    assert_all_seen(world, who)
    assert_rows_are_told_truly(world, who)
    assert_knows_what_is(world, who)
    print(f"{len(who.changes())} changes seen, {crashes.history.answered} answers")
    assert len(who.changes()) > 5000


@pytest.mark.muster(ack_ms=2000, cancel_repeat_ms=200)
def test_sigterm_ends_the_stream_whole_and_it_goes_on_afterwards(world):
    who = reader(world, last_id="0")
    crashes = Crashes(world)
    for _ in range(4):
        crashes.end_in_good_order()
        world.wait(lambda: who.closed, "end of the stream")
        assert who.ended, "the stream was cut, not ended"
        who.open()
        who.expect_open()
    crashes.come_to_rest()
    who.expect_everything()
    assert_all_seen(world, who)


def test_reader_who_was_away_at_the_start_may_come_back_to_it(world):
    """He has had no event yet, but an id."""
    who = reader(world, kinds="ticket")
    assert not who.changes() and who.last_id
    who.close()
    world.server()
    world.chat().allocate(7)
    who.reconnect()
    assert who.expect_event("ticket", lobby=7, state="open")
    assert who.expect_event("ticket", lobby=7, state="done").data["server"] == "1"


def test_last_id_as_an_argument(world):
    world.server()
    world.chat().allocate(7)
    who = reader(world, query_id="0", kinds="ticket")
    assert who.expect_event("ticket", lobby=7, state="done")
    late = reader(world, query_id=who.last_id, kinds="ticket")
    world.chat("chat-2").allocate(8)
    late.expect_event("ticket", lobby=8, state="done")
    assert not [e for e in late.events if e.data.get("lobby") == 7]


@pytest.mark.embedded
def test_nothing_is_shown_before_it_is_durable(make_world, gate_library, tmp_path):
    """The disk stands still while a ticket is opened: nobody hears of it, not even in the load."""
    folder = tmp_path / "disk"
    folder.mkdir()
    gate = Gate(gate_library, folder)
    world = make_world(data=folder / "data", env=gate.env, ack_ms=60000, heartbeat_ms=60000)
    world.server()
    asker = world.chat()
    who = reader(world)
    who.expect_event("load", tickets_open=0)
    gate.close()
    asker.request(7)
    world.wait(lambda: gate.somebody_waits, "commit under way")
    world.elapse(1.5)
    assert not who.of("ticket", "session", "note")
    assert all(e.data["tickets_open"] == 0 for e in who.of("load"))
    gate.open()
    assert asker.reply(7).ok
    who.expect_event("ticket", lobby=7, state="open")
    who.expect_event("note", text="ticket done", lobby=7)
    who.expect_event("ticket", lobby=7, state="done")


@pytest.mark.embedded
def test_reader_on_a_full_disk_sees_what_was_kept_and_nothing_else(make_world, gate_library, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    gate = Gate(gate_library, folder)
    world = make_world(data=folder / "data", env=gate.env)
    who = reader(world, last_id="0")
    server, asker = world.server(capacity=100), world.chat()
    kept = {lobby for lobby in range(1, 10) if asker.allocate(lobby)}
    gate.fill()
    refused = set()
    for lobby in range(20, 60):
        asker.request(lobby)
        (kept if asker.reply(lobby).ok else refused).add(lobby)
    assert refused, "the disk was not full"
    late = reader(world, last_id="0")  # comes while it is full
    gate.free()

    def works_again():
        asker.request(100)
        return asker.reply(100).ok

    world.wait(works_again, "recovery by itself", timeout_s=15)
    kept.add(100)
    for one in (who, late):
        one.expect_event("ticket", lobby=100, state="done")
        placed = {e.data["lobby"] for e in one.of("ticket") if e.data.get("state") == "done"}
        assert placed == kept
        assert_all_seen(world, one)
    assert server.matches.keys() == kept


def test_kinds(world):
    quiet = reader(world, kinds="audit")
    some = reader(world, kinds="server,ticket")
    notes = reader(world, kinds="note")
    loads = reader(world, kinds="load")
    world.server()
    world.chat().allocate(7)
    some.expect_event("ticket", lobby=7, state="done")
    notes.expect_event("note", text="ticket done", lobby=7, ticket="1", server="1")
    loads.expect_event("load", sessions=1)
    group = loads.of("load")[-1].data["groups"][0]
    assert (group["fleet"], group["region"], group["servers"]["available"]) == ("default", "EU", 1)
    assert {e.type for e in some.events} == {"server", "ticket"}
    assert {e.type for e in notes.events} == {"note"}
    assert {e.type for e in loads.events} == {"load"}
    assert all(e.id is None for e in notes.events + loads.events)
    assert not quiet.events


@pytest.mark.parametrize("wrong", ["x", "1.x", "1.", "-1", "99999999999999999999"])
def test_what_is_no_id_is_refused(world, wrong):
    status, error = Reader(world, last_id=wrong).expect_refused()
    assert (status, error["code"], error["argument"]) == (400, "bad_argument", "last_event_id")


def test_unknown_kind_is_refused(world):
    status, error = Reader(world, kinds="ticket,tickets").expect_refused()
    assert (status, error["code"], error["argument"]) == (400, "bad_argument", "kinds")
    assert "tickets" in error["message"] and "chat_server" in error["message"]


def test_without_a_token_nothing_is_shown(world):
    status, error = Reader(world, token="").expect_refused()
    assert (status, error["code"]) == (401, "no_access_token")


def test_id_that_was_not_reached_yet_is_a_gap(world):
    """Of another folder, or one that was set back: he must read everything anew."""
    world.server()
    who = reader(world, last_id="4711.3")
    gap = who.expect_event("gap")
    assert gap.data["why"] == "ahead" and gap.data["from"] == "4711.3"
    assert gap.id == gap.data["to"] and place(gap.id) < place("4711")
    world.chat().allocate(7)
    who.expect_event("ticket", lobby=7, state="done")


def test_id_that_is_no_longer_held_is_a_gap(world):
    server, asker = world.server(capacity=100), world.chat()
    for lobby in range(1, 30):
        asker.allocate(lobby)
    who = reader(world, last_id="2.0")
    who.expect_event("ticket", lobby=29, state="done")
    who.close()
    who.last_id = "2.0"
    seen = len(who.changes())
    world.wait(lambda: world.muster.folded() >= 60, "fold of the journal")
    assert world.muster.term() == 0
    world.muster.forget_journal(40)
    world.muster.restart()
    who.reconnect()
    gap = who.expect_event("gap")
    assert gap.data == {"from": "2.0", "to": "40", "why": "forgotten"}
    assert metric(world, "muster_feed_gaps_total") == 1
    asker.reconnect()
    server.reconnect()
    asker.allocate(100)
    who.expect_event("ticket", lobby=100, state="done")
    later = who.changes()[seen + 1 :]
    assert place(later[0].id) > place("40")
    assert [e.id for e in later] == [i for i, *_ in journal_events(world.muster, "40")]


def test_slow_readers_cost_no_memory_and_miss_nothing(world):
    """They read nothing while a thousand matches come and go; then they have all of it."""
    server, asker = world.server(capacity=1000), world.chat()
    asker.allocate(1)
    slow = [reader(world, last_id="0", receive_buffer=4096) for _ in range(20)]
    quick = reader(world, last_id="0")
    for one in slow:
        one.stop_reading()
    before_kib = world.muster.resident_kib()
    for first in range(10, 1010, 100):
        lobbies = range(first, first + 100)
        for lobby in lobbies:
            asker.request(lobby)
        for lobby in lobbies:
            assert asker.reply(lobby).ok
        for lobby in lobbies:
            server.end(lobby)
    quick.expect_event("ticket", lobby=1009, state="ended")
    grown_kib = world.muster.resident_kib() - before_kib
    text_kib = sum(len(str(e)) for e in quick.events) // 1024
    assert all(len(one.changes()) < len(quick.changes()) / 2 for one in slow), "who was slow?"
    # The newest batches and the finished tickets are held, once; of what the slow have not read,
    # nothing.
    assert grown_kib < 12 * 1024 and len(slow) * text_kib > 24 * 1024
    for one in slow:
        one.resume_reading()
    for one in slow:
        one.expect_event("ticket", lobby=1009, state="ended", timeout_s=30)
        assert not one.of("gap")
        assert one.changes() == quick.changes()[: len(one.changes())]


@pytest.mark.muster(http={"connections_per_address": 300})
def test_many_readers_see_the_same(world):
    server, asker = world.server(capacity=100), world.chat()
    readers = [Reader(world, last_id="0") for _ in range(256)]
    for one in readers:
        one.expect_open()
    assert metric(world, "muster_feed_readers") == 256
    status, error = Reader(world).expect_refused()
    assert (status, error["code"]) == (503, "busy")
    readers.pop().close()
    world.wait(lambda: replace_one(world, readers), "room for another reader")
    for lobby in range(1, 20):
        asker.allocate(lobby)
    for lobby in range(1, 20):
        server.end(lobby)
    for one in readers:
        one.expect_event("ticket", lobby=19, state="ended")
    changes = readers[0].changes()
    assert all(one.changes() == changes for one in readers)
    assert_all_seen(world, readers[0])


def replace_one(world, readers):
    """The server notices a closed connection in its own time."""
    one = Reader(world, last_id="0")
    world.wait(lambda: one.blocks > 0 or one.status not in (None, 200), "answer")
    if one.status != 200:
        one.close()
        return False
    readers.append(one)
    return True
