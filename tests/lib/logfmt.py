"""Lines of Muster's log, read strictly: what a careless parser would forgive is an error here."""

import json
import re

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PAIR = re.compile(r'([a-z][a-z0-9_]*)=(?:("(?:[^"\\\x00-\x1f\x7f]|\\.)*")|([^\s"=\x00-\x1f\x7f]+))')
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
LEVELS = ("error", "warn", "info", "debug")


class Malformed(AssertionError):
    pass


def check(line, pairs):
    """ts, level and msg come first, and nothing is said twice."""
    keys = [key for key, _ in pairs]
    if keys[:3] != ["ts", "level", "msg"] or len(set(keys)) != len(keys) or "malformed" in keys:
        raise Malformed(f"keys {keys}: {line!r}")
    fields = dict(pairs)
    if not STAMP.fullmatch(fields["ts"]) or fields["level"] not in LEVELS or not fields["msg"]:
        raise Malformed(line)
    return fields


def parse(line):
    """One line as a dict; numbers are numbers, quoted values always text."""
    pairs = []
    at = 0
    while at < len(line):
        match = PAIR.match(line, at)
        if not match:
            raise Malformed(f"column {at + 1}: {line!r}")
        key, quoted, bare = match.groups()
        if quoted:
            value = json.loads(quoted)
        else:
            value = json.loads(bare) if NUMBER.fullmatch(bare) else bare
        pairs.append((key, value))
        at = match.end()
        if at < len(line):
            if line[at] != " ":
                raise Malformed(f"column {at + 1}: {line!r}")
            at += 1
    return check(line, pairs)


def parse_json(line):
    """The same of a line in the JSON format."""
    value = json.loads(line, object_pairs_hook=lambda pairs: pairs)
    if not isinstance(value, list):
        raise Malformed(line)
    return check(line, value)


def parse_all(text):
    """Every line of a log, of either format, which must end with a whole one."""
    if text and not text.endswith("\n"):
        raise Malformed(f"the last line has no end: {text[-200:]!r}")
    lines = text.split("\n")[:-1]
    return [parse_json(line) if line.startswith("{") else parse(line) for line in lines]
