"""What the database itself saw of a cell: every batch of the journal, also those that were folded and
trimmed since, and every moment the lease was taken. Triggers write it down in a schema of the
test's, in the same transactions."""

import json
import time

from events import decode_batch, row_fields
from history import Batch, Reign, now

# What was there before the witness came is copied; of that, nobody knows when.
INSTALL = """
BEGIN;
LOCK TABLE {cell}.journal, {cell}.lease IN EXCLUSIVE MODE;
CREATE SCHEMA bench;
CREATE TABLE bench.journal (seq bigint, epoch bigint, changes bytea);
ALTER TABLE bench.journal ALTER COLUMN changes SET STORAGE EXTERNAL;
CREATE TABLE bench.reign (n bigserial, epoch bigint, name text, at double precision);
INSERT INTO bench.journal SELECT seq, epoch, changes FROM {cell}.journal ORDER BY seq;
INSERT INTO bench.reign (epoch, name, at) SELECT epoch, name, 0 FROM {cell}.lease WHERE epoch > 0;
CREATE FUNCTION bench.on_batch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO bench.journal VALUES (NEW.seq, NEW.epoch, NEW.changes);
    RETURN NULL;
END $$;
CREATE FUNCTION bench.on_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO bench.reign (epoch, name, at)
    VALUES (NEW.epoch, NEW.name, extract(epoch FROM clock_timestamp()));
    RETURN NULL;
END $$;
CREATE TRIGGER bench AFTER INSERT ON {cell}.journal FOR EACH ROW
    EXECUTE FUNCTION bench.on_batch();
CREATE TRIGGER bench AFTER UPDATE ON {cell}.lease FOR EACH ROW
    WHEN (OLD.epoch <> NEW.epoch) EXECUTE FUNCTION bench.on_lease();
COMMIT;
"""
SESSION_OPEN, SESSION_LOST, SESSION_ENDED = 2, 3, 5
NUMBERS = ("i8", "i32", "i64")


class Witness:
    """postgres: a Postgres or a Pair. The cell must be there."""

    def __init__(self, postgres, database, cell):
        self.postgres = postgres
        self.database = database
        self.cell = f"muster_{cell}"
        postgres.rows(INSTALL.format(cell=self.cell), database)

    def reigns(self):
        """Times are of CLOCK_BOOTTIME, as everybody's here."""
        offset = now() - time.time()
        return [Reign(int(epoch), name, float(at) + offset if float(at) else 0.0)
                for epoch, name, at in self.postgres.rows(
                    "SELECT epoch, name, at FROM bench.reign ORDER BY n", self.database)]

    def look(self):
        """Of one moment: every batch there ever was, in its order, and what a node that starts now
        would load, which is the tables and the journal behind them."""
        kinds = row_fields()
        selects = [f"SELECT '{kind}', id, 0, row_to_json(t)::text FROM {self.cell}.{kind} t"
                   for kind, _ in kinds]
        selects += [
            f"SELECT 'behind', j.seq, j.epoch, encode(j.changes, 'hex') FROM {self.cell}.journal j,"
            f" {self.cell}.fold f WHERE j.seq > f.seq",
            "SELECT 'ever', seq, epoch, encode(changes, 'hex') FROM bench.journal"]
        state, batches = {}, {"behind": [], "ever": []}
        for what, number, epoch, text in self.postgres.rows(" UNION ALL ".join(selects), self.database):
            if what in batches:
                batches[what].append(Batch(int(number), int(epoch), bytes.fromhex(text)))
            else:
                state[what, int(number)] = json.loads(text)
        behind = [b.changes for b in sorted(batches["behind"])]
        return sorted(batches["ever"]), apply(state, behind, kinds)


def apply(state, blobs, kinds):
    """The rows that stand after all these batches: (kind, id) -> its fields."""
    for blob in blobs:
        for kind, gone, row in decode_batch(blob, kinds):
            if gone:
                state.pop((kind, row["id"]), None)
            else:
                state[kind, row["id"]] = row
    return state


def replay(journal):
    return apply({}, [b.changes for b in journal], row_fields())


def differences(one, other):
    """Sentences: rows that are not in both, and numbers that are not the same."""
    fields = dict(row_fields())
    for key in sorted(one.keys() | other.keys()):
        if key not in one or key not in other:
            yield f"{key[0]} {key[1]} is in {'the tables' if key in other else 'the journal'} only"
            continue
        for field_type, name in fields[key[0]]:
            if field_type in NUMBERS and int(one[key][name]) != int(other[key][name]):
                yield (f"{key[0]} {key[1]}: {name} is {one[key][name]} by the journal and "
                       f"{other[key][name]} by the tables")


def kept_matches(state):
    """key -> what stands, of the matches that chat servers have, as load.py names them."""
    names = {key[1]: row["name"] for key, row in state.items() if key[0] == "chat_server"}
    found = {}
    for (kind, _), row in state.items():
        if kind == "session" and row["state"] in (SESSION_OPEN, SESSION_LOST):
            found[names[row["chat_server"]], row["lobby"]] = {"server": row["server"]}
    return found


def ended_matches(journal):
    """The keys of matches that were open once and are over."""
    names, opened, found = {}, set(), set()
    kinds = row_fields()
    for batch in journal:
        for kind, gone, row in decode_batch(batch.changes, kinds):
            if kind == "chat_server" and not gone:
                names[row["id"]] = row["name"]
            elif kind == "session" and not gone:
                if row["state"] == SESSION_OPEN:
                    opened.add(row["id"])
                elif row["state"] == SESSION_ENDED and row["id"] in opened:
                    found.add((names[row["chat_server"]], row["lobby"]))
    return found


def kept_seats(state):
    """key -> what stands, of the seats in rooms."""
    return {("seat", row["account"]): {"room": row["room"]}
            for (kind, _), row in state.items() if kind == "room_seat"}
