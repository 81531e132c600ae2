#!/usr/bin/python3
"""A game server as the seed's Python example has it: a PAIR socket that is connected to the path in
its first argument. What it is sent it prints; a line of its standard input it sends as it is."""

import argparse
import json
import os
import signal
import sys
import time

import zmq


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("ports")
    parser.add_argument("--no-inited", action="store_true")
    parser.add_argument("--settings", type=json.loads)
    parser.add_argument("--sent", help="a file that it makes when it has sent inited")
    parser.add_argument("--exit", type=int, help="at once, with that status")
    parser.add_argument("--exit-while", help="with status 3, as long as there is that file")
    parser.add_argument("--delay", type=float, default=0, help="seconds until it says inited")
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--status", default="ok", help='what it answers; "" = nothing')
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--token", help="something that it prints and nobody may read")
    options = parser.parse_args()

    print(json.dumps({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}), flush=True)
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.exit is not None:
        print("that was all", flush=True)
        sys.exit(options.exit)
    if options.exit_while and os.path.exists(options.exit_while):
        print("the shader cache is missing", flush=True)
        sys.exit(3)
    if options.crash:
        os.kill(os.getpid(), signal.SIGSEGV)

    socket = zmq.Context().socket(zmq.PAIR)
    prefix = "" if options.endpoint.startswith("ipc://") else "ipc://"
    socket.connect(prefix + options.endpoint)
    time.sleep(options.delay)
    map_name = json.loads(os.environ.get("room_settings", "{}")).get("map", "")
    if not options.no_inited and not map_name.startswith("hangs"):
        params = {"settings": options.settings} if options.settings else {}
        socket.send_json({"jsonrpc": "2.0", "method": "inited", "params": params, "id": 1})
        if options.sent:
            open(options.sent, "x").close()

    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready == socket:
                hear(socket, options)
            else:
                speak(socket, poller)


def hear(socket, options):
    text = socket.recv().decode()
    message = json.loads(text)
    print("got " + text, flush=True)
    if message.get("method") == "status" and options.status:
        socket.send_json(
            {"jsonrpc": "2.0", "result": {"status": options.status}, "id": message["id"]})


said = bytearray()


def speak(socket, poller):
    data = os.read(sys.stdin.fileno(), 1 << 16)
    if not data:
        poller.unregister(sys.stdin.fileno())
    said.extend(data)
    while b"\n" in said:
        line, _, rest = bytes(said).partition(b"\n")
        said[:] = rest
        send(socket, line)


def send(socket, line):
    if line.startswith(b"hex "):
        line = bytes.fromhex(line[4:].decode())
    if line.startswith(b"parts "):
        socket.send_multipart(line[6:].split())
    elif line.startswith(b"big "):
        socket.send(b"x" * int(line[4:]))
    else:
        socket.send(line)


main()
