#!/usr/bin/python3
"""A game server on the Python SDK that says what it was given, and does what it is told on its
standard input: "flood MIB", "exit CODE", "write PATH", "deployment". It can be deployed: the SDK is
beside it then."""

import json
import os
import resource
import select
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "sdk" / "python"))

from muster_room import Room  # noqa: E402

MIB = 1 << 20
BLOCK = (b"x" * 1023 + b"\n") * 64


def say(**what):
    print(json.dumps(what), flush=True)


def status(*names):
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: line.split()[1:] for line in lines for name in [line.split(":")[0]] if name in names}


def limit(name):
    return resource.getrlimit(getattr(resource, "RLIMIT_" + name))


def introduce():
    say(who="probe", version=sys.argv[3:4], env=dict(os.environ), cwd=os.getcwd(), folder=sys.path[0],
        files=sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1],
        status=status("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                      "NoNewPrivs"),
        limits={name: limit(name) for name in ("NOFILE", "NPROC", "CORE", "FSIZE")})


def obey(room, line):
    verb, _, rest = line.partition(" ")
    if verb == "exit":
        sys.exit(int(rest))
    elif verb == "flood":
        for _ in range(int(rest)):
            for _ in range(MIB // len(BLOCK)):
                os.write(1, BLOCK)
        room.update_settings({"flooded": int(rest)})  # what it prints now may be dropped
    elif verb == "write":
        try:
            Path(rest).write_text("mine")
            say(wrote=rest, why=None)
        except OSError as e:
            say(wrote=rest, why=e.strerror)
    elif verb == "deployment":
        room.check_deployment(lambda answer: say(deployment=answer.code, text=answer.text))


def main():
    introduce()
    if "--crash" in sys.argv:
        print("no such map", file=sys.stderr, flush=True)
        sys.exit(7)
    room = Room(on_kick=lambda key, reason: say(kick=key, reason=reason))
    room.ready()
    rest = b""
    while not room.refused:
        ready, _, _ = select.select([room.fd, 0], [], [], room.timeout())
        room.poll()
        if 0 in ready:
            *lines, rest = (rest + os.read(0, 4096)).split(b"\n")
            for line in lines:
                obey(room, line.decode())


main()
