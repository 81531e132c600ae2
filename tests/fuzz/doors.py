#!/usr/bin/python3
"""Fuzzes the doors of a running Muster and of a running agent at their sockets, below the libraries:
HTTP of both, the three ports of the chat protocol, the sockets of game servers.

  tests/fuzz/doors.py                  the kept corpus, then a fixed number of inputs of a fixed seed
  tests/fuzz/doors.py --seconds 60     new inputs of a new seed for so long at each door
  tests/fuzz/doors.py --replay FILE... only these

MUSTER_BIN says which Muster (build-asan/muster). What must hold: the process lives and no sanitizer
complains; each sound request has exactly one well-formed answer, with a status that the table of
operations knows for it; who has no token changes nothing; descriptors and memory do not grow; and
after each input everybody else is answered as ever. An input that breaks it is made shorter, written
to a file and named."""

import argparse
import json
import os
import random
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
sys.path.insert(0, str(REPO / "tests" / "lib"))
os.environ.setdefault("MUSTER_BIN", str(REPO / "build-asan" / "muster"))

import chat  # noqa: E402
from door_inputs import Input, bytes_of, stripped  # noqa: E402
from door_targets import DEADLINE_S, QUIET_S, TARGETS, Broken, Control, Host  # noqa: E402

CORPUS = HERE / "corpus" / "doors"
SEED = 17
FIXED = {"http": 2000, "server": 1000, "manager": 1000, "client": 1000, "agent": 1000, "game": 1000}
KNOWN_EVERY = 50
SHRINK_S = 60
OWN_STATUSES = {400, 405, 408, 411, 413, 414, 417, 431, 501, 505}  # what libmicrohttpd refuses itself


# ── one input ────────────────────────────────────────────────────────────────────────────────────



class Played:
    """The connections of one input, and what came on them."""

    def __init__(self, target, made):
        self.target = target
        self.made = made
        self.open = {}
        self.came = {}
        self.ended = set()  # connections that Muster has ended

    def connection(self, number):
        if number not in self.came:
            self.open[number] = self.target.connect(self.made.door)
            self.came[number] = b""
        return self.open.get(number)

    def run(self):
        try:
            for action in self.made.actions:
                getattr(self, "on_" + action[0])(*action[1:])
            for number in list(self.open):
                self.finish(number)
        finally:
            for number in list(self.open):
                self.on_reset(number)

    def on_send(self, number, text):
        connection = self.connection(number)
        if connection is None:
            return
        try:
            connection.sendall(bytes_of(text))
        except TimeoutError:
            raise Broken("it reads nothing") from None
        except OSError:
            self.read(number, QUIET_S)  # it has ended the connection; what it said first may be there

    def on_pause(self):
        self.target.alive()

    def on_await(self, number, n):
        while number in self.open and len(self.came[number]) < n and self.read(number, QUIET_S):
            pass

    def on_close(self, number):
        if number in self.open and self.target.may_be_left():
            self.open.pop(number).close()
        else:
            self.on_reset(number)

    def on_reset(self, number):
        if number in self.open:
            self.open[number].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.open.pop(number).close()

    def finish(self, number):
        """Reads what is owed; then says that nothing more comes, and reads to the end."""
        if number == 0 and self.made.answers:
            while len(answers_in(self.came[0], self.made.heads)[0]) < len(self.made.answers):
                if not self.read(number, DEADLINE_S):
                    return
        try:
            self.open[number].shutdown(socket.SHUT_WR)
        except OSError:
            pass
        while number in self.open and self.read(number, QUIET_S):
            pass

    def read(self, number, timeout_s):
        """False when nothing more is to be had."""
        connection = self.open[number]
        connection.settimeout(timeout_s)
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            return False
        except OSError:
            data = None  # reset: what was on its way may be lost
        if data:
            self.came[number] += data
            return True
        self.ended.add(number)
        self.open.pop(number).close()
        return False


# ── what came ────────────────────────────────────────────────────────────────────────────────────


def chunks_in(data):
    """(body, what stands behind it), or (None, data) when it is not all there."""
    body, rest = b"", data
    while True:
        line, found, rest = rest.partition(b"\r\n")
        if not found:
            return None, data
        size = int(line.split(b";")[0], 16)
        if len(rest) < size + 2:
            return None, data
        if rest[size:size + 2] != b"\r\n":
            raise Broken(f"a chunk does not end where it should: {rest[size:size + 20]!r}")
        if size == 0:
            return body, rest[2:]
        body, rest = body + rest[:size], rest[size + 2:]


def is_bare(rest):
    """Whether an answer has no body, when nobody knows if HEAD was asked: the next one follows."""
    return rest.startswith(b"HTTP/1.")


def answers_in(data, heads=None):
    """The whole HTTP answers in it, as (status, fields, body), and what stands behind them. heads:
    the places of those without a body; None = unknown."""
    answers = []
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            break
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise Broken(f"no status line: {first!r}")
        status, fields = int(words[1]), {}
        for line in lines:
            name, colon, value = line.partition(": ")
            if not colon:
                raise Broken(f"no field: {line!r}")
            fields[name.lower()] = value
        if 100 <= status < 200:
            data = rest
            continue
        if status in (204, 304) or (len(answers) in heads if heads is not None else is_bare(rest)):
            body = b""
        elif fields.get("transfer-encoding") == "chunked":
            body, rest = chunks_in(rest)
        elif "content-length" in fields:
            size = int(fields["content-length"])
            body, rest = (rest[:size], rest[size:]) if len(rest) >= size else (None, rest)
        else:
            body, rest = None, rest  # until the end of the connection
        if body is None:
            break
        answers.append((status, fields, body))
        data = rest
    return answers, data


def check_answer(answer, allowed):
    status, fields, body = answer
    shown = f"{status} {body[:300]!r}"
    if status == 500 or (status >= 500 and b'"internal"' in body):
        raise Broken(f"Muster blames itself: {shown}")
    if allowed is not None and status not in allowed:
        raise Broken(f"the table of operations does not know {shown}, only {allowed}")
    if body and fields.get("content-type") == "application/json":
        try:
            said = json.loads(body)
        except ValueError:
            raise Broken(f"the answer is no JSON: {shown}") from None
        if status >= 400 and not (said.get("error") or {}).get("message") and "error" in said:
            raise Broken(f"a refusal without a sentence: {shown}")


def check_http(played):
    made = played.made
    for number, data in played.came.items():
        sound = number == 0 and made.answers
        answers, rest = answers_in(data, made.heads if sound else None)
        if not sound:
            for answer in answers:
                check_answer(answer, None)
            continue
        if made.refusable and not data and number in played.ended:
            continue
        if len(answers) != len(made.answers) or rest:
            raise Broken(f"{len(made.answers)} requests, {len(answers)} answers, then {rest[:200]!r}")
        for answer, allowed in zip(answers, made.answers):
            check_answer(answer, allowed)


def check_frames(played):
    for data in played.came.values():
        frames = bytearray(data)
        try:
            for code, payload, _ in chat.split(frames):
                chat.decode(code, payload)
        except chat.WrongBytes as e:
            raise Broken(f"it sends what the protocol does not have: {e}") from None


CHECKS = {"http": check_http, "agent": check_http, "game": lambda played: None}


def play(target, made):
    """Raises Broken when it does harm. Returns how many bytes came."""
    before = target.digest() if made.open else None
    played = Played(target, made)
    played.run()
    CHECKS.get(made.door, check_frames)(played)
    target.alive()
    if made.open and target.digest() != before:
        raise Broken("who has no token has changed what is stored")
    return sum(map(len, played.came.values()))


# ── an input that breaks it ──────────────────────────────────────────────────────────────────────


def broken_by(made, folder):
    """Why a new target is broken by it; None when it is not. `made` may be a list of inputs."""
    target = TARGETS[made[0].door](folder).start()
    try:
        for each in made:
            play(target, each)
        target.known(made[0].door)
    except (Broken, OSError) as e:
        return f"{e}\n" + tail(target)
    finally:
        target.kill()
    return "\n".join(target.reports()) or None


def shorter(made):
    """Inputs that lack a part of it, large parts first."""
    for n in range(len(made.actions)):
        if len(made.actions) > 1:
            yield Input(made.door, made.actions[:n] + made.actions[n + 1:], why=made.why)
    for n, action in enumerate(made.actions):
        if action[0] != "send":
            continue
        size = len(action[2]) // 2
        while size >= 1:
            for at in range(0, len(action[2]), size):
                text = action[2][:at] + action[2][at + size:]
                actions = made.actions[:n] + [["send", action[1], text]] + made.actions[n + 1:]
                yield Input(made.door, actions, why=made.why)
            size //= 4


def shrink(made, folder):
    """The shortest that was found in SHRINK_S and still breaks a target of its own."""
    deadline = time.monotonic() + SHRINK_S
    progress = True
    while progress:
        progress = False
        for candidate in shorter(made):
            if time.monotonic() > deadline:
                return made
            if broken_by([candidate], folder):
                made, progress = candidate, True
                break
    return made


def tail(target):
    """The end of its log, from the sanitizer's report on, when there is one."""
    text = target.log()
    begins = [text.find(word) for word in ("==ERROR", "runtime error:", "Assertion") if word in text]
    return text[max(0, min(begins) - 200):][:6000] if begins else text[-3000:]


def give_up(target, made, error, recent, options, why):
    """Says all there is to know about it, and ends."""
    said = tail(target)
    target.kill()
    print(f"\nbroken at door {made.door} ({why}): {error}\n{said}", file=sys.stderr, flush=True)
    kept = [made]
    if broken_by([made], options.folder) is None:
        kept = recent
        print("it does no harm alone: the inputs before it are kept, too", file=sys.stderr)
    elif not options.replay and not made.answers:
        kept = [shrink(made, options.folder)]
    path = options.keep / f"{made.door}-{why.replace(' ', '-')}.json"
    options.keep.mkdir(parents=True, exist_ok=True)
    write(path, kept)
    print(f"replay: {sys.argv[0]} --replay {path}", file=sys.stderr)
    sys.exit(1)


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def write(path, inputs):
    path.write_text(json.dumps([each.to_json() for each in inputs], indent=1) + "\n")


def read(path):
    """In a send, [text, n] is the text n times."""
    made = [Input(**each) for each in json.loads(path.read_text())]
    for each in made:
        for action in each.actions:
            if action[0] == "send" and isinstance(action[2], list):
                action[2] = "".join(p if isinstance(p, str) else p[0] * p[1] for p in action[2])
    return made


# ── the whole ────────────────────────────────────────────────────────────────────────────────────


class Run:
    def __init__(self, kind, options):
        self.options = options
        self.target = kind(options.folder)
        try:
            self.target.start()
        except (Broken, OSError, AssertionError) as e:
            said = tail(self.target)
            self.target.kill()
            sys.exit(f"broken at its start: {e}\n{said}")
        self.recent = []

    def play(self, made, why):
        self.recent = [*self.recent[-30:], made]
        try:
            return play(self.target, made)
        except (Broken, OSError) as e:
            return give_up(self.target, made, e, self.recent, self.options, why)

    def known(self, door, why):
        try:
            self.target.known(door)
        except (Broken, OSError) as e:
            give_up(self.target, self.recent[-1], e, self.recent, self.options, why)

    def fuzz(self, door, seed):
        """The first tenth has no token, while nothing else changes anything either."""
        rng = random.Random(f"{seed} {door}")
        began, n, heard = time.monotonic(), 0, 0
        while self.goes_on(door, n, began):
            made = self.target.make(rng, door, sound=n % 3 == 0)
            if door == "http" and n * 10 < FIXED[door]:
                made = stripped(made)
                made.open = not self.lets_in(made)
            else:
                made.open = False
            heard += self.play(made, f"seed {seed} input {n}") > 0
            n += 1
            if n % KNOWN_EVERY == 0:
                self.known(door, f"seed {seed} input {n}")
            if n == 200:
                self.target.warmed_up()
        print(f"  {door}: {n} inputs, {heard} of them answered, in {time.monotonic() - began:.1f} s", flush=True)

    def lets_in(self, made):
        return any("/v1/pubsub" in a[2] for a in made.actions if a[0] == "send")

    def goes_on(self, door, n, began):
        if self.options.seconds:
            return time.monotonic() - began < self.options.seconds
        return n < int(FIXED[door] * self.options.scale)

    def end(self):
        """What is not the fault of one input: nothing grew, nothing leaks."""
        try:
            self.target.nothing_grew()
            self.target.stop()
        except Broken as e:
            said = tail(self.target)
            self.target.kill()
            sys.exit(f"broken: {e}\n{said}")


def files_of(door):
    return sorted((CORPUS / door).glob("*.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--door", choices=TARGETS, action="append", help="only this one")
    parser.add_argument("--seconds", type=float, help="at each door, with a new seed")
    parser.add_argument("--seed", help="of all inputs")
    parser.add_argument("--scale", type=float, default=1.0, help="of the fixed number of inputs")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--keep", type=Path, default=REPO / "build-asan" / "doors", metavar="FOLDER",
                        help="where inputs go that break it")
    options = parser.parse_args()
    seed = options.seed or (str(random.SystemRandom().randrange(1 << 32)) if options.seconds else SEED)
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        options.folder = folder
        fuzz(options, seed) if not options.replay else replay(options)


def replay(options):
    for path in options.replay:
        inputs = read(path)
        run = Run(TARGETS[inputs[0].door], options)
        for made in inputs:
            run.play(made, path.stem)
        run.known(inputs[0].door, path.stem)
        run.end()
        print(f"{path}: nothing broke")


def fuzz(options, seed):
    print(f"doors: seed {seed}", flush=True)
    began = time.monotonic()
    for kind in (Control, Host):
        doors = [door for door in kind.doors if door in (options.door or TARGETS)]
        if not doors:
            continue
        run = Run(kind, options)
        for door in doors:
            for path in files_of(door):
                for made in read(path):
                    run.play(made, path.stem)
                run.known(door, path.stem)
            run.fuzz(door, seed)
        run.end()
    print(f"doors: all held, {time.monotonic() - began:.1f} s", flush=True)


main()
