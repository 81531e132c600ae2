"""Deployments: archives come in over HTTP, hostile ones are refused, and agents can have them."""

import hashlib
import io
import random
import socket
import tarfile
import threading
import time
import zipfile

import pytest
from http_api import Api
from players import fleets, token_of


@pytest.fixture
def world(make_world):
    return make_world(fleets=fleets(binary="bin/server"))


def tar_of(files, mode="w:gz"):
    """An archive of (name, kind, content or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, kind, content in files:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = 0o755
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                archive.addfile(info)
    return out.getvalue()


def zip_of(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o100755 << 16
            archive.writestr(info, content)
    return out.getvalue()


GOOD = tar_of([("bin/server", tarfile.REGTYPE, b"#!/bin/sh\nexec sleep 60\n")])


OCTETS = "application/octet-stream"


def upload(world, archive, fleet="arena", version="1.0"):
    query = {"fleet": fleet, "version": version}
    return world.api.ask("POST", "/v1/deployments", query, body=archive, content_type=OCTETS,
                         timeout_s=90)


def kept(world):
    folder = world.muster.data / "deployments"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("archive", [GOOD, zip_of(**{"bin/server": "x" * 100000})], ids=["tar.gz", "zip"])
def test_archive_is_kept_by_its_digest_and_given_to_agents(world, archive):
    digest = hashlib.sha256(archive).hexdigest()
    answer = upload(world, archive)
    assert answer.status == 200, answer.body
    assert answer.json["digest"] == digest and answer.json["size"] == len(archive)
    assert kept(world) == [digest]
    host = Api(world.muster, token_of(world, "host", "game_host"))
    fetched = host.ask("GET", f"/v1/deployments/{digest}/archive")
    assert fetched.status == 200 and fetched.body == archive
    again = upload(world, archive)
    assert again.json["id"] == answer.json["id"], "the same archive is the same deployment"
    world.restart()
    assert world.api.get(f"/v1/deployments/{answer.json['id']}")["digest"] == digest


HOSTILE = {
    "dotdot": [("../evil", tarfile.REGTYPE, b"x")],
    "absolute": [("/tmp/evil", tarfile.REGTYPE, b"x")],
    "symlink": [("link", tarfile.SYMTYPE, "/etc/passwd")],
    "through a link": [("way", tarfile.SYMTYPE, ".."), ("way/evil", tarfile.REGTYPE, b"x")],
    "hard link": [("a", tarfile.REGTYPE, b"x"), ("b", tarfile.LNKTYPE, "a")],
    "device": [("null", tarfile.CHRTYPE, "")],
    "twice": [("a", tarfile.REGTYPE, b"x"), ("a", tarfile.REGTYPE, b"y")],
    "bomb": [("zeros", tarfile.REGTYPE, bytes(64 << 20))],
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archive_is_refused_and_leaves_nothing(world, files):
    answer = upload(world, tar_of(files))
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_archive")
    assert kept(world) == []


@pytest.mark.parametrize(
    "archive", [b"", b"no archive", GOOD[: len(GOOD) // 2]], ids=["nothing", "text", "a half"]
)
def test_what_is_no_archive_is_refused(world, archive):
    answer = upload(world, archive)
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_archive")
    assert kept(world) == []


LACKING = {
    "nothing of it": ([("bin/other", tarfile.REGTYPE, b"x")], "which is not in the archive"),
    "a folder": ([("bin/server/x", tarfile.REGTYPE, b"x")], "which is not in the archive"),
}


@pytest.mark.parametrize("files, why", LACKING.values(), ids=LACKING.keys())
def test_an_archive_without_the_fleets_binary_is_refused(world, files, why):
    answer = upload(world, tar_of(files))
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_archive")
    assert answer.json["error"]["message"] == f"The fleet starts bin/server, {why}.", answer
    assert kept(world) == []


def test_a_binary_that_is_not_executable_is_refused(world):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as out:
        info = tarfile.TarInfo("bin/server")
        info.mode = 0o644
        out.addfile(info)
    answer = upload(world, archive.getvalue())
    assert answer.json["error"]["message"] == (
        "The fleet starts bin/server, which is not executable."), answer


def first_words(world, token, fleet):
    """What is said to the head of an upload of which nothing has been sent."""
    with socket.create_connection(world.muster.http_address, timeout=10) as peer:
        head = (
            f"POST /v1/deployments?fleet={fleet}&version=1.0 HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: {OCTETS}\r\n"
            f"Content-Length: {1 << 30}\r\nExpect: 100-continue\r\n\r\n"
        )
        peer.sendall(head.encode())
        return int(peer.recv(64).split()[1])


def test_refusals_come_before_the_archive_is_sent(world):
    assert first_words(world, "nonsense", "arena") == 401
    assert first_words(world, token_of(world, "ann", "game"), "arena") == 403
    assert first_words(world, world.api.token, "nobody") == 400
    assert first_words(world, world.api.token, "default") == 409
    assert first_words(world, world.api.token, "arena") == 100
    world.wait(lambda: kept(world) == [], "the end of the upload that was left")


def test_only_archives_are_taken(world):
    query = {"fleet": "arena", "version": "1.0"}
    for kind in ("application/json", "text/plain", None):
        answer = world.api.ask("POST", "/v1/deployments", query, body=b"{}", content_type=kind)
        assert answer.status == 415


def test_who_has_no_token_is_told_that_first(world):
    nobody = Api(world.muster, None)
    query = {"fleet": "arena", "version": "1.0"}
    for kind in (None, "text/plain", OCTETS):
        answer = nobody.ask("POST", "/v1/deployments", query, body=b"{}", content_type=kind)
        assert (answer.status, answer.error["code"]) == (401, "no_access_token")
    assert kept(world) == []


def test_what_a_crash_left_is_swept(world):
    upload(world, GOOD)
    (world.muster.data / "deployments" / ".upload-abc").write_bytes(b"half")
    world.muster.kill9()
    world.muster.restart()
    assert kept(world) == [hashlib.sha256(GOOD).hexdigest()]


def test_nobody_waits_for_an_upload(world):
    """Heartbeats are answered while 100 MiB come in."""
    server = world.server(beat_every_s=0.05)
    noise = random.Random(1).randbytes(100 << 20)
    blob = tar_of([("bin/server", tarfile.REGTYPE, noise)], "w")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(upload(world, blob)))
    thread.start()
    began, slowest, beats = time.monotonic(), 0.0, 0
    while thread.is_alive():
        asked = time.monotonic()
        server.beat()
        slowest = max(slowest, time.monotonic() - asked)
        beats += 1
    thread.join()
    lasted = time.monotonic() - began
    assert answers and answers[0].status == 200, answers
    assert beats >= 10 and slowest < lasted / 3, "the loop waited for the disk"
