"""Outputs held against files. What differs from run to run (times, tokens, ports, durations) is made
alike first, and blanks are drawn together, because their number depends on it.

    MUSTER_UPDATE_SNAPSHOTS=1 /usr/bin/python3 -m pytest tests/integration/test_cli_remote.py

writes the files anew; look at the difference before you commit it."""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "integration" / "snapshots"

ALIKE = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>"),
    (r"\d+ commits? in 60 s; (.*); \d+ waiting, \d+ to fold; \d+\.\d GiB",
     r"<n> commits; \1; <n> waiting, <n> to fold; <n> GiB"),
    (r"\b(now|\d+ [smhd] ago|in \d+ [smhd])\b", "<when>"),
    (r"^Muster \d+\.\d+\.\d+, up .*?, store", "Muster <version>, up <lasted>, store"),
    (r"Muster \d+\.\d+\.\d+ started", "Muster <version> started"),
    (r"configuration [0-9a-f]*", "configuration <digest>"),
    (r"\d+\.\d allocations/s", "<rate> allocations/s"),
    (r"\b\d+\.\d ms\b", "<ms>"),
    (r"mse_\d+_[\w-]+", "<enrolment token>"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<access token>"),
    (r"http://127\.0\.0\.1:\d+", "<url>"),
    (r"  +", "  "),
]


def alike(text):
    for pattern, word in ALIKE:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


def check(name, text, aligned=False):
    """Holds a text against its file. aligned: it has nothing that differs, so all of it counts."""
    path = FOLDER / f"{name}.txt"
    text = text if aligned else alike(text)
    if os.environ.get("MUSTER_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{path} is missing; MUSTER_UPDATE_SNAPSHOTS=1 writes it"
    assert text == path.read_text(), f"{path} differs"
