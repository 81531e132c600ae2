"""Examples are run as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import muster_proc

ROOT = Path(__file__).resolve().parents[2]


def of_examples():
    """Processes that were started with a path in an example's folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"/muster-example-" in path.read_bytes():
                found.add(path.parent.name)
        except OSError:  # it has ended meanwhile
            pass
    return found


def test_friends_over_nats_shows_three_successes():
    before = of_examples()
    build = Path(muster_proc.binary()).parent
    run = subprocess.run([sys.executable, ROOT / "examples" / "friends_over_nats", build],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    successes = [line for line in run.stdout.splitlines() if '"status": "Success"' in line]
    assert len(successes) == 3
    # They are friends, so they are in one room.
    assert len({line.split('"sessionId": ')[1].split(",")[0] for line in successes}) == 1
    assert not of_examples() - before, "it leaves its game servers running"
