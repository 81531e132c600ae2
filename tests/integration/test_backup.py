"""Backups that are taken while Muster serves, and data folders that are made of them."""

import hashlib
import http.client
import io
import json
import os
import random
import signal
import socket
import sqlite3
import stat
import subprocess
import tarfile
import threading
import time

import pytest
from agent_proc import alive
from chat import ENDED
from gate import Gate
from http_api import admin_token
from muster_proc import binary, run
from players import token_of
from real_rooms import Rooms

NAMES = ["README", "manifest", "secret", "state.db"]


def where(world):
    return "--url", "http://%s:%d" % world.muster.http_address, "--data", world.muster.data


def take(world, path, *options):
    done = run("backup", path, *options, *where(world))
    assert done.returncode == 0, done
    assert not world.muster.log_lines("backup failed")
    return path


def restore(world, path, *options):
    return run("restore", path, "--data", world.muster.data, *options)


def set_back(world, path):
    """What an operator does: stop, restore, start."""
    assert world.muster.term() == 0
    done = restore(world, path, "--force")
    assert done.returncode == 0, done
    world.muster.start_on_same_ports()


def put_deployment(world, data):
    """As good as one that was uploaded; its name."""
    folder = world.muster.data / "deployments"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(data).hexdigest()
    (folder / name).write_bytes(data)
    return name


def sums_hold(folder):
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


# --- taking one


def test_anybody_can_look_into_a_backup(world, tmp_path):
    world.server()
    world.chat().allocate(7)
    path = take(world, tmp_path / "b.tar")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as tar:
        assert tar.getnames() == [*NAMES, "SHA256SUMS"]
        tar.extractall(tmp_path / "x")
    sums_hold(tmp_path / "x")
    db = sqlite3.connect(tmp_path / "x" / "state.db")
    assert db.execute("SELECT lobby FROM session").fetchall() == [(7,)]
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (tmp_path / "x" / "secret").read_bytes() == (world.muster.data / "secret").read_bytes()
    world.wait(lambda: not list(world.muster.data.glob(".backup-*")), "end of the copy")


def test_it_goes_to_standard_output_too(world):
    done = subprocess.run([binary(), "backup", "-", *where(world)], capture_output=True, timeout=30)
    assert done.returncode == 0, done
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        assert tar.getnames() == [*NAMES, "SHA256SUMS"]


def test_a_file_is_not_overwritten_unless_told(world, tmp_path):
    path = tmp_path / "b.tar"
    path.write_text("mine")
    done = run("backup", path, *where(world))
    assert done.returncode == 1 and "is there already" in done.stderr
    assert path.read_text() == "mine"
    take(world, path, "--force")
    assert path.read_bytes() != b"mine"


def test_it_cannot_be_written(world, tmp_path):
    done = run("backup", tmp_path / "no" / "b.tar", *where(world))
    assert done.returncode == 1 and "cannot make" in done.stderr
    done = subprocess.run(f"exec {binary()} backup - --url http://%s:%d --data {world.muster.data} "
                          "> /dev/full" % world.muster.http_address, shell=True,
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "no space left" in done.stderr


def test_only_an_administrator_may(world, tmp_path):
    token = token_of(world, "ann", "muster_read")
    done = run("backup", tmp_path / "b.tar", *where(world), "--token", token)
    assert done.returncode == 1 and "muster_admin" in done.stderr, done
    assert not list(tmp_path.glob("b.tar*"))


def test_it_stands_in_the_audit(world, tmp_path):
    take(world, tmp_path / "b.tar", "--deployments", "false")
    line = world.api.all("/v1/audit")[0]
    assert (line["action"], line["detail"]) == ("backup", "without deployments")


def test_allocations_go_on_while_it_is_taken(world, tmp_path):
    """Ten backups, one after the other; each is whole, and whatever it holds was answered."""
    for _ in range(20):
        world.server(capacity=100)
    asker = world.chat()
    failed = []

    def take_all():
        for i in range(10):
            done = run("backup", tmp_path / f"{i}.tar", *where(world))
            failed.extend([done] if done.returncode else [])

    thread = threading.Thread(target=take_all)
    thread.start()
    lobby = longest = 0
    while thread.is_alive():
        lobby += 1
        began = time.monotonic()
        asker.allocate(lobby)
        longest = max(longest, time.monotonic() - began)
    thread.join()
    assert not failed
    assert lobby > 20 and longest < 2, (lobby, longest)
    held = []
    for i in range(10):
        with tarfile.open(tmp_path / f"{i}.tar") as tar:
            (tmp_path / "one.db").write_bytes(tar.extractfile("state.db").read())
        db = sqlite3.connect(tmp_path / "one.db")
        held.append(db.execute("SELECT count(*) FROM session").fetchone()[0])
    assert held == sorted(held) and held[-1] <= lobby and held[-1] > held[0]


def test_one_at_a_time_and_a_client_who_does_not_read_leaves_nothing(world, tmp_path):
    put_deployment(world, bytes(20 << 20))  # more than the sockets hold
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(world.muster.http_address)
    slow.sendall(f"GET /v1/backup HTTP/1.1\r\nHost: muster\r\nAuthorization: Bearer "
                 f"{admin_token(world.muster)}\r\n\r\n".encode())
    assert slow.recv(12) == b"HTTP/1.1 200"
    world.wait(lambda: list(world.muster.data.glob(".backup-*/state.db")), "copy")
    done = run("backup", tmp_path / "b.tar", *where(world))
    assert done.returncode == 1 and "Another backup is being made" in done.stderr
    asked = [line for line in world.api.all("/v1/audit") if line["action"] == "backup"]
    assert len(asked) == 1, "who was refused took none"
    slow.close()
    world.wait(lambda: not list(world.muster.data.glob(".backup-*")), "end of the copy")
    take(world, tmp_path / "b.tar")


def test_whoever_has_one_can_take_the_next_at_once(make_world, gate_library, tmp_path):
    """That a backup is whole is told when its copy is removed, however long that takes."""
    gate = Gate(gate_library, tmp_path / "gated")
    world = make_world(env=gate.env)
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=30)
    gate.keep()
    for _ in range(2):
        connection.request("GET", "/v1/backup",
                           headers={"Authorization": f"Bearer {admin_token(world.muster)}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        if gate.sign(".kept").exists():
            world.wait(lambda: gate.somebody_waits, "copy that is to be removed")
            threading.Timer(0.5, gate.let_go).start()
        assert answer.read()[-1024:] == bytes(1024)
    connection.close()


def test_a_disk_that_hangs_holds_up_nobody_else(world):
    """The second archive is a pipe that nobody writes to by the time it is opened."""
    names = {put_deployment(world, bytes([i]) * (20 << 20)) for i in range(2)}
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=3)
    connection.request("GET", "/v1/backup",
                       headers={"Authorization": f"Bearer {admin_token(world.muster)}"})
    answer = connection.getresponse()
    with tarfile.open(fileobj=answer, mode="r|") as tar:
        first = next(member for member in tar if member.name.startswith("deployments/"))
        hanging = names - {first.name.removeprefix("deployments/")}
        pipe = world.muster.data / "deployments" / hanging.pop()
        pipe.unlink()
        os.mkfifo(pipe)
        with pytest.raises(TimeoutError):
            while answer.read(1 << 20):
                pass
    assert world.api.get("/v1/status")
    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))  # the one who opened it goes on
    connection.close()
    world.wait(lambda: not list(world.muster.data.glob(".backup-*")), "end of the copy")


def test_a_copy_that_a_killed_muster_has_left_is_removed(world):
    left = world.muster.data / ".backup-abcdef"
    left.mkdir()
    (left / "state.db").write_text("half")
    world.crash()
    assert not left.exists()


# --- and back


@pytest.mark.embedded
def test_what_was_answered_before_the_backup_is_there(world, tmp_path):
    server, asker = world.server(capacity=3), world.chat()
    before = asker.allocate(7)
    path = take(world, tmp_path / "b.tar")
    lost = asker.allocate(8)
    set_back(world, path)
    server.reconnect()
    asker.reconnect()
    assert server.validate(7, 1, before.match_token).ok, "tokens of before are good"
    assert not server.validate(8, 1, lost.match_token).ok, "of the other nothing is known"
    after = asker.allocate(9)
    assert after.match_token not in (before.match_token, lost.match_token)
    assert asker.refuse(10) == "No servers available", "the match that nobody knows has its slot"


@pytest.mark.embedded
def test_a_match_that_ended_meanwhile_is_closed(world, tmp_path):
    server, asker = world.server(capacity=1), world.chat()
    asker.allocate(7)
    path = take(world, tmp_path / "b.tar")
    server.end(7)
    asker.expect_event(7, ENDED)
    set_back(world, path)
    server.reconnect()
    asker.reconnect()
    asker.expect_event(7, ENDED)
    asker.allocate(8)


def first_event(world, last_id):
    """Its name and data, of a reader who goes on after that id."""
    connection = http.client.HTTPConnection(*world.muster.http_address, timeout=20)
    connection.request("GET", "/v1/events", headers={
        "Authorization": f"Bearer {admin_token(world.muster)}", "Last-Event-ID": last_id})
    answer = connection.getresponse()
    while not (line := answer.readline()).startswith(b"event: "):
        assert line
    name, data = line[7:].strip().decode(), answer.readline()[6:]
    connection.close()
    return name, json.loads(data)


@pytest.mark.embedded
def test_a_reader_of_changes_hears_of_a_gap(world, tmp_path):
    """His id is of the lost time: nothing that has it, or a later one, is given again."""
    world.server()
    path = take(world, tmp_path / "b.tar")
    world.server()
    db = sqlite3.connect(f"file:{world.muster.data}/journal.db?mode=ro", uri=True)
    tip = db.execute("SELECT max(seq) FROM journal").fetchone()[0]
    db.close()
    set_back(world, path)
    name, data = first_event(world, f"{tip}.0")
    assert (name, data["why"], data["from"]) == ("gap", "forgotten", f"{tip}.0")


def test_a_running_muster_keeps_its_folder(world, tmp_path):
    path = take(world, tmp_path / "b.tar")
    done = restore(world, path, "--force")
    assert done.returncode == 1 and "in use by another Muster process" in done.stderr


@pytest.mark.embedded
def test_a_folder_with_data_is_refused_or_moved_aside(world, tmp_path):
    path = take(world, tmp_path / "b.tar")
    assert world.muster.term() == 0
    before = sorted(p.name for p in world.muster.data.iterdir())
    done = restore(world, path)
    assert done.returncode == 1 and "holds data already" in done.stderr
    assert sorted(p.name for p in world.muster.data.iterdir()) == before
    done = restore(world, path, "--force")
    assert done.returncode == 0, done
    aside = next(world.muster.data.glob("before-restore-*"))
    assert {"secret", "state.db", "journal.db", "admin.token"} <= {p.name for p in aside.iterdir()}


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "text", "stranger"])
def test_a_backup_that_is_not_whole_is_refused(world, tmp_path, damage):
    path = take(world, tmp_path / "b.tar")
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[len(data) // 2:]
    elif damage == "bit":
        data[20000] ^= 1
    elif damage == "empty":
        data.clear()
    elif damage == "text":
        data = bytearray(b"this is no archive\n" * 100)
    else:
        with tarfile.open(path, "w") as tar:
            info = tarfile.TarInfo("../../etc/passwd")
            tar.addfile(info)
        data = bytearray(path.read_bytes())
    path.write_bytes(data)
    done = run("restore", path, "--data", tmp_path / "new")
    assert done.returncode == 1 and "no whole backup" in done.stderr, done
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["lock"]


@pytest.mark.embedded
def test_a_restore_that_is_killed_leaves_the_old_folder_or_the_new(world, tmp_path):
    """Wherever it dies, the next start has all of one of them."""
    world.server()
    world.chat().allocate(7)
    path = take(world, tmp_path / "b.tar")
    world.chat("chat-2").allocate(8)
    assert world.muster.term() == 0
    dice = random.Random(11)
    seen = set()
    for _ in range(12):
        process = subprocess.Popen(
            [binary(), "restore", path, "--data", world.muster.data, "--force"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(dice.uniform(0, 0.06))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        world.muster.start()
        lobbies = {s["lobby"] for s in world.api.all("/v1/sessions")}
        assert lobbies in ({7, 8}, {7}), lobbies
        seen.add(len(lobbies))
        assert world.muster.term() == 0
    assert seen


# --- rooms


@pytest.fixture
def rooms(make_world, tmp_path):
    made = Rooms(make_world, tmp_path)
    made.host()
    yield made
    made.close()


@pytest.mark.embedded
def test_rooms_and_their_games_go_on_after_a_restore(rooms, tmp_path):
    """ann's room is in the backup and goes on; ben's is not, and goes on without us."""
    world = rooms.world
    ann = rooms.create("ann")
    rooms.joined(ann)
    path = take(world, tmp_path / "b.tar")
    ben = rooms.create("ben")
    pids = rooms.pid(ann), rooms.pid(ben)
    set_back(world, path)
    rooms.wait(lambda: rooms.host_state() == "well", "heartbeat of the host")
    rooms.wait(lambda: world.muster.log_lines("host runs a server that nobody here knows"),
               "word about the unknown room")
    assert rooms.room(ann)["state"] == "open"
    assert [s["account"] for s in world.api.all("/v1/seats")] == ["ann"]
    assert all(map(alive, pids)), "no game was ended"
    cid = rooms.create("cid")
    assert cid["id"] != ben["id"] and cid["server"] > ben["server"] and cid["key"] != ben["key"]
    rooms.joined(cid)
    assert rooms.player("dan").join()["id"] != ann["id"], "who sits there now is not known"


def test_deployments_come_along(rooms, tmp_path):
    world = rooms.world
    name = put_deployment(world, b"as good as an archive")
    take(world, tmp_path / "with.tar")
    take(world, tmp_path / "without.tar", "--deployments", "false")
    for kind, there in (("with", True), ("without", False)):
        done = run("restore", tmp_path / f"{kind}.tar", "--data", tmp_path / kind)
        assert done.returncode == 0, done
        assert (tmp_path / kind / "deployments" / name).exists() == there
        assert ("without archives of deployments" in done.stdout) != there
