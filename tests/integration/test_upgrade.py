"""Another binary takes over: under load, with matches and rooms that are being played. Nothing is
lost, games go on as the same processes, and everybody is back within two seconds."""

import hashlib
import io
import shutil
import sqlite3
import tarfile
import time
from pathlib import Path

import pytest
from agent_proc import alive
from muster_proc import binary, run
from real_rooms import Rooms

BACK_S = 2.0


def another_binary(tmp_path):
    """The same program under another path, with its shim beside it: what an installation leaves."""
    folder = tmp_path / "new" / "bin"
    folder.mkdir(parents=True)
    for name in ("muster", "muster-shim"):
        shutil.copy2(Path(binary()).with_name(name), folder / name)
    return str(folder / "muster")


def exe(pid):
    return Path(f"/proc/{pid}/exe").resolve()


@pytest.fixture
def rooms(make_world, tmp_path):
    made = Rooms(make_world, tmp_path)
    made.host()
    yield made
    made.close()


def upgrade(world, path):
    """Returns how long nobody could be asked."""
    began = time.monotonic()
    assert world.muster.term() == 0
    world.muster.binary = path
    world.muster.start_on_same_ports()
    return time.monotonic() - began


def test_no_match_is_lost_and_servers_are_back(world, tmp_path):
    servers = [world.server(capacity=20) for _ in range(5)]
    asker = world.chat()
    placed = {lobby: asker.allocate(lobby) for lobby in range(1, 61)}
    new = another_binary(tmp_path)
    assert upgrade(world, new) < BACK_S
    assert str(exe(world.muster.pid)) == new
    began = time.monotonic()
    asker.reconnect()
    for server in servers:
        server.reconnect()
    asker.allocate(100)
    assert time.monotonic() - began < BACK_S
    by_id = {server.server_id: server for server in servers}
    for lobby, answer in placed.items():
        server = by_id[answer.server_id]
        assert server.validate(lobby, lobby, answer.match_token).ok, lobby
    open_now = {s["lobby"] for s in world.api.all("/v1/sessions") if s["state"] == "open"}
    assert open_now == {*placed, 100}


def test_ten_swaps_under_load_lose_no_match(world, tmp_path):
    """Half of the requests are on their way when the old one ends: each is asked again, as chat
    servers do, and gets one answer."""
    servers = [world.server(capacity=100) for _ in range(4)]
    asker = world.chat()
    binaries = [another_binary(tmp_path), binary()]
    answers = {}
    lobby = 0
    for swap in range(10):
        for _ in range(10):
            lobby += 1
            answers[lobby] = asker.allocate(lobby).match_token
        late = range(lobby + 1, lobby + 6)
        lobby += 5
        for number in late:
            asker.request(number)
        assert upgrade(world, binaries[swap % 2]) < BACK_S
        for server in servers:
            server.reconnect()
        asker.reconnect()
        for number in late:
            answers[number] = asker.allocate(number).match_token
    open_now = {s["lobby"] for s in world.api.all("/v1/sessions") if s["state"] == "open"}
    assert open_now == set(answers)
    assert len(set(answers.values())) == len(answers)


def test_rooms_go_on_while_muster_is_replaced(rooms, tmp_path):
    placed = [rooms.create(f"player-{i}") for i in range(4)]
    for one in placed:
        rooms.joined(one)
    pids = [rooms.pid(one) for one in placed]
    assert upgrade(rooms.world, another_binary(tmp_path)) < BACK_S
    began = time.monotonic()
    rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
    assert time.monotonic() - began < BACK_S
    assert [rooms.pid(one) for one in placed] == pids and all(map(alive, pids))
    assert {rooms.room(one)["state"] for one in placed} == {"open"}
    assert {s["state"] for s in rooms.api.all("/v1/seats")} == {"taken"}
    late = rooms.player("late").join()
    assert late["id"] in {one["id"] for one in placed}, "there is room with them"


def test_rooms_go_on_while_their_agent_is_replaced(rooms, tmp_path, monkeypatch):
    """As systemd does it with KillMode=process: SIGTERM to the agent alone."""
    placed = [rooms.create(f"player-{i}") for i in range(3)]
    for one in placed:
        rooms.joined(one)
    pids = [rooms.pid(one) for one in placed]
    agent = rooms.agent
    new = another_binary(tmp_path)
    began = time.monotonic()
    assert agent.term() == 0
    assert all(map(alive, pids)), "only the agent ends"
    monkeypatch.setenv("MUSTER_BIN", new)
    agent.start()
    assert agent.adopted == len(placed)
    assert str(exe(agent.process.pid)) == new
    rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
    assert time.monotonic() - began < BACK_S + 1, "with ending the old one"
    assert [rooms.pid(one) for one in placed] == pids and all(map(alive, pids))
    assert {rooms.room(one)["state"] for one in placed} == {"open"}
    assert rooms.code(placed[0], "left", key=placed[0]["key"]) == 0
    rooms.joined(rooms.create("late"))


@pytest.mark.embedded
@pytest.mark.parametrize("file", ["journal.db", "state.db"])
def test_a_folder_of_a_newer_format_is_refused(world, file):
    assert world.muster.term() == 0
    path = world.muster.data / file
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 999")
    db.commit()
    db.close()
    before = path.read_bytes()
    done = run("serve", "--dev", "--data", world.muster.data)
    assert done.returncode == 1 and f"{file} has format version 999" in done.stderr
    assert "Start the Muster version that wrote it" in done.stderr
    assert path.read_bytes() == before


def test_a_backup_of_a_newer_format_is_refused(world, tmp_path):
    """Its sums are right; what it holds is none of our business."""
    path = tmp_path / "b.tar"
    url = "http://%s:%d" % world.muster.http_address
    assert run("backup", path, "--url", url, "--data", world.muster.data).returncode == 0
    with tarfile.open(path) as tar:
        files = {name: tar.extractfile(name).read() for name in tar.getnames()}
    files["manifest"] = files["manifest"].replace(b"format: ", b"format: 99")
    files["SHA256SUMS"] = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()
        if name != "SHA256SUMS").encode()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    done = run("restore", path, "--data", tmp_path / "restored")
    assert done.returncode == 1 and "Restore it with that version" in done.stderr, done
