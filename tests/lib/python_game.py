#!/usr/bin/python3
"""The arena's smaller sister, on the Python SDK: lets players in by their keys and echoes."""

import select
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "python"))

from muster_room import Room  # noqa: E402


class Player:
    def __init__(self, connection):
        self.connection = connection
        self.rest = b""
        self.key = None

    def fileno(self):
        return self.connection.fileno()

    def say(self, text):
        self.connection.sendall((text + "\n").encode())

    def lines(self):
        """What came, or None when he is gone."""
        more = self.connection.recv(4096)
        *lines, self.rest = (self.rest + more).split(b"\n")
        return [line.decode() for line in lines] if more else None

    def on_joined(self, answer):
        self.say(f"welcome {answer.account}" if answer.code == 0 else f"bye: {answer.text}")


def serve(room, players, player):
    lines = player.lines()
    if lines is None:
        players.remove(player)
        if player.key:
            room.left(player.key)
        return
    for line in lines:
        if player.key is None:
            player.key = line
            room.joined(line, player.on_joined)
        elif line.startswith("/echo "):
            player.say(line[1:])


def main():
    players = []

    def kick(key, reason):
        for player in players:
            if player.key == key:
                player.say(f"bye: kicked: {reason}")

    room = Room(on_kick=kick)
    listener = socket.create_server(("127.0.0.1", room.ports[0]))
    room.ready({"map": "pit"})
    while not room.refused:
        readable, _, _ = select.select([listener, room.fd, *players], [], [], room.timeout())
        for source in readable:
            if source is listener:
                players.append(Player(listener.accept()[0]))
            elif isinstance(source, Player):
                serve(room, players, source)
        room.poll()


main()
