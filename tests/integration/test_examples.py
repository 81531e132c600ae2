"""Examples are run as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import muster_proc

ROOT = Path(__file__).resolve().parents[2]


def test_friends_over_nats_shows_three_successes():
    build = Path(muster_proc.binary()).parent
    run = subprocess.run([sys.executable, ROOT / "examples" / "friends_over_nats", build],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    successes = [line for line in run.stdout.splitlines() if '"status": "Success"' in line]
    assert len(successes) == 3
    # They are friends, so they are in one room.
    assert len({line.split('"sessionId": ')[1].split(",")[0] for line in successes}) == 1
