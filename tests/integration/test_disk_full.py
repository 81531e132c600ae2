"""The disk is full: new tickets are refused clearly, everything else goes on, and when there is room
again Muster recovers by itself."""

import os
import subprocess

import pytest

FILL = 1 << 16


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True, timeout=10)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True, timeout=10)


@pytest.fixture
def disk_world(small_disk, make_world):
    """Its store is on the small disk, its log is not. Made after the disk, so stopped before it."""
    return make_world(data=small_disk / "data")


def fill(folder):
    ballast = folder / "ballast"
    with open(ballast, "ab", buffering=0) as file:
        for size in (FILL, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return ballast


def until_refused(asker, lobbies):
    """SQLite has some room left in files it already owns, so the first few may succeed."""
    kept = {}
    for lobby in lobbies:
        asker.request(lobby)
        answer = asker.reply(lobby)
        if not answer.ok:
            assert answer.error == "Internal error"
            return kept, lobby
        kept[lobby] = answer.match_token
    raise AssertionError("the disk is full and nobody noticed")


def test_full_disk_is_survived(disk_world, small_disk):
    world = disk_world
    server, asker = world.server(capacity=1000), world.chat()
    kept = {lobby: asker.allocate(lobby).match_token for lobby in range(1, 20)}
    assert server.validate(1, 100).ok

    ballast = fill(small_disk)
    more, refused = until_refused(asker, range(100, 900))
    kept.update(more)
    for lobby in range(1000, 1020):
        assert asker.refuse(lobby) == "Internal error"
    for _ in range(5):
        assert server.beat().ok
    assert not server.closed and not asker.closed
    assert asker.allocate(1).match_token == kept[1], "what was answered is answered again"
    assert server.validate(1, 100).ok, "who was admitted is admitted again"

    os.unlink(ballast)

    def works_again():
        asker.request(refused)
        return asker.reply(refused).ok

    world.wait(works_again, "recovery by itself", timeout_s=15)
    kept[refused] = asker.allocate(refused).match_token
    kept[2000] = asker.allocate(2000).match_token

    world.crash()
    asker.reconnect()
    server.reconnect()
    assert {lobby: asker.allocate(lobby).match_token for lobby in kept} == kept
    assert server.matches == kept


def test_crash_on_a_full_disk_loses_nothing_that_was_answered(disk_world, small_disk):
    world = disk_world
    server, asker = world.server(capacity=1000), world.chat()
    kept = {lobby: asker.allocate(lobby).match_token for lobby in range(1, 20)}
    ballast = fill(small_disk)
    more, _ = until_refused(asker, range(100, 900))
    kept.update(more)
    world.muster.kill9()
    os.unlink(ballast)
    world.muster.restart()
    asker.reconnect()
    server.reconnect()
    assert {lobby: asker.allocate(lobby).match_token for lobby in kept} == kept


def test_match_that_ends_while_the_disk_is_full_has_ended_afterwards(disk_world, small_disk):
    """Its end cannot be kept now, and must not be confirmed; said again later, it counts."""
    world = disk_world
    server, asker = world.server(capacity=1000), world.chat()
    asker.allocate(1)
    ballast = fill(small_disk)
    until_refused(asker, range(100, 900))
    answer = server.end(1)
    assert not answer.ok and answer.error == "Internal error"
    os.unlink(ballast)
    world.wait(lambda: server.end(1).ok, "confirmed end", timeout_s=15)
    assert asker.refuse(1) == "Invalid match lobby ID"
