"""The disk is full, or files may not grow: new tickets are refused clearly, everything else goes on, and when there is room
again Muster recovers by itself."""

import subprocess

import pytest
from gate import Gate, SmallDisk, SmallFiles
from muster_proc import run
from peers import Late

pytestmark = pytest.mark.embedded  # what is gated or filled is the data folder's disk


@pytest.fixture(params=["small tmpfs", "shim", "file size limit"])
def disk(request, tmp_path, gate_library):
    """A real small disk; for where nobody may mount one, libc saying that the disk is full; and a
    limit for files, which is no disk but stops the same writes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "shim":
        yield Gate(gate_library, folder)
        return
    if request.param == "file size limit":
        yield SmallFiles(folder)
        return
    try:
        small = SmallDisk(folder)
    except subprocess.CalledProcessError as e:
        pytest.skip(f"cannot mount here; the shim stands in: {e.stderr.decode().strip()}")
    yield small
    small.unmount()


@pytest.fixture
def world(disk, make_world):
    """Its store is on that disk, its log is not. Made after the disk, so stopped before it."""
    world = make_world(data=disk.folder / "data", env=disk.env)
    disk.process = world.muster
    return world


def until_refused(asker, lobbies):
    """SQLite has some room left in files it already owns, so the first few may succeed. When it ends
    between a server's choice and its ACK, that request is stored, and waits: the next is refused."""
    kept, waiting = {}, []
    for lobby in lobbies:
        asker.request(lobby)
        try:
            answer = asker.reply(lobby, timeout_s=2)
        except Late:
            assert not waiting, "one at most is under way"
            waiting.append(lobby)
            continue
        if not answer.ok:
            assert answer.error == "Internal error"
            return kept, lobby, waiting
        assert not waiting
        kept[lobby] = answer.match_token
    raise AssertionError("the disk is full and nobody noticed")


def test_full_disk_is_survived(world, disk):
    server, asker = world.server(capacity=1000), world.chat()
    kept = {lobby: asker.allocate(lobby).match_token for lobby in range(1, 20)}
    assert server.validate(1, 100).ok

    disk.fill()
    more, refused, waiting = until_refused(asker, range(100, 900))
    kept.update(more)
    for lobby in range(1000, 1020):
        assert asker.refuse(lobby) == "Internal error"
    for _ in range(5):
        assert server.beat().ok
    assert not server.closed and not asker.closed
    assert asker.allocate(1).match_token == kept[1], "what was answered is answered again"
    assert server.validate(1, 100).ok, "who was admitted is admitted again"

    disk.free()

    def works_again():
        asker.request(refused)
        return asker.reply(refused).ok

    world.wait(works_again, "recovery by itself", timeout_s=15)
    kept.update({lobby: asker.placed(lobby).match_token for lobby in waiting})
    kept[refused] = asker.allocate(refused).match_token
    kept[2000] = asker.allocate(2000).match_token

    world.crash()
    asker.reconnect()
    server.reconnect()
    assert {lobby: asker.allocate(lobby).match_token for lobby in kept} == kept
    assert server.matches == kept


def test_crash_on_a_full_disk_loses_nothing_that_was_answered(world, disk):
    server, asker = world.server(capacity=1000), world.chat()
    kept = {lobby: asker.allocate(lobby).match_token for lobby in range(1, 20)}
    disk.fill()
    more, *_ = until_refused(asker, range(100, 900))
    kept.update(more)
    world.muster.kill9()
    disk.free()
    world.muster.restart()
    asker.reconnect()
    server.reconnect()
    assert {lobby: asker.allocate(lobby).match_token for lobby in kept} == kept


def test_match_that_ends_while_the_disk_is_full_has_ended_afterwards(world, disk):
    """Its end cannot be kept now, and must not be confirmed; said again later, it counts."""
    server, asker = world.server(capacity=1000), world.chat()
    asker.allocate(1)
    disk.fill()
    until_refused(asker, range(100, 900))
    answer = server.end(1)
    assert not answer.ok and answer.error == "Internal error"
    disk.free()
    world.wait(lambda: server.end(1).ok, "confirmed end", timeout_s=15)
    assert asker.refuse(1) == "Invalid match lobby ID"


@pytest.mark.parametrize("disk", ["small tmpfs", "shim"], indirect=True)
def test_start_on_a_full_disk_names_the_cause(disk):
    """It spoke of an I/O error. With a limit for files: test_file_size.py."""
    disk.fill()
    result = run("serve", "--dev", "--data", disk.folder / "data", "--server-port", 0,
                 "--manager-port", 0, "--client-port", 0, "--http", "127.0.0.1:0", env=disk.env, timeout_s=15)
    assert result.returncode == 1
    assert "no space left on the device" in result.stderr.lower()
