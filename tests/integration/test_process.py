"""The process itself: how it starts, what it refuses to start with, how it ends."""

import re
import resource
import signal
import socket
import sqlite3
import stat
import subprocess

import pytest
from muster_proc import Muster, binary, run, write_config


def refused_start(*arguments):
    """Runs `muster serve` with arguments it cannot serve with; returns (exit code, what it says)."""
    result = run("serve", *arguments, timeout_s=15)
    assert result.returncode != 0
    assert not result.stdout.startswith("ready")
    assert result.stderr.strip(), "it must say why"
    return result.returncode, result.stderr


def logged_pairs(world, event):
    """The only log line of that event."""
    world.wait(lambda: world.muster.log_lines(event), f"a log line of {event}")
    (line,) = world.muster.log_lines(event)
    return line


def test_ready_line(world):
    assert re.fullmatch(
        r"ready http=127\.0\.0\.1:\d+ server=127\.0\.0\.1:\d+ manager=127\.0\.0\.1:\d+ "
        r"client=127\.0\.0\.1:\d+",
        world.muster.ready_line,
    )


def test_ready_means_ready(world):
    world.server()
    world.chat().allocate(1)


def test_development_mode_says_so_loudly(world):
    (line,) = (line for line in world.muster.log_lines() if "DEVELOPMENT" in line["msg"])
    assert line["level"] == "warn" and "every enrolment token is accepted" in line["msg"]


def test_development_mode_listens_on_loopback_only(world):
    muster = world.muster
    for address in (muster.server_address, muster.manager_address, muster.http_address):
        assert address[0] == "127.0.0.1"
        with socket.socket() as s:
            s.settimeout(2)
            assert s.connect_ex(("127.0.0.2", address[1])) != 0


def test_log_begins_with_what_was_started_and_ends_with_stopped(world):
    """After a restart the first line tells what was loaded."""
    world.server()
    world.chat().allocate(7)
    world.restart()
    first, last, again = (
        line for line in world.muster.log_lines() if line["msg"] in ("started", "stopped")
    )
    assert first["level"] == "info" and first["data"] == str(world.muster.data)
    assert (first["servers"], first["matches"]) == (0, 0)
    assert last["msg"] == "stopped"
    assert (again["servers"], again["matches"]) == (1, 1)


def test_sigterm_ends_it_with_0(world):
    world.server()
    world.chat()
    assert world.muster.term() == 0


def test_sigint_ends_it_with_0(world):
    world.muster.signal(signal.SIGINT)
    assert world.muster.finish() == 0


def test_sigpipe_and_a_closed_terminal_do_not_end_it(world):
    world.muster.signal(signal.SIGPIPE)
    world.server()
    assert world.muster.running


def test_given_ports_are_used(tmp_path):
    with Muster(tmp_path) as first:
        ports = first.server_address[1], first.manager_address[1]
        assert first.term() == 0
        first.start(*ports)
        assert (first.server_address[1], first.manager_address[1]) == ports


def test_port_in_use_is_named(world, tmp_path):
    taken = world.muster.server_address[1]
    _, why = refused_start(
        "--dev", "--data", tmp_path / "d", "--server-port", taken, "--manager-port", 0, "--client-port", 0
    )
    assert str(taken) in why


@pytest.mark.embedded
def test_second_process_on_the_same_folder_is_refused(world):
    code, why = refused_start(
        "--dev", "--data", world.muster.data, "--server-port", 0, "--manager-port", 0, "--client-port", 0
    )
    assert "in use" in why or "another process" in why
    assert str(world.muster.data) in why
    world.server()
    world.chat().allocate(1)


def test_folder_is_free_again_after_a_crash(world):
    world.crash()
    world.server()


@pytest.mark.embedded
def test_unknown_format_of_the_folder_is_refused(world):
    world.server()
    assert world.muster.term() == 0
    for name in ("journal.db", "state.db"):
        with sqlite3.connect(world.muster.data / name) as db:
            db.execute("PRAGMA user_version = 9999")
    _, why = refused_start(
        "--dev", "--data", world.muster.data, "--server-port", 0, "--manager-port", 0, "--client-port", 0
    )
    assert "9999" in why and "format" in why.lower()


def test_damaged_journal_is_refused_not_overwritten(world):
    world.server()
    assert world.muster.term() == 0
    journal = world.muster.data / "journal.db"
    damaged = b"this is not a database" * 500
    journal.write_bytes(damaged)
    _, why = refused_start(
        "--dev", "--data", world.muster.data, "--server-port", 0, "--manager-port", 0, "--client-port", 0
    )
    assert "journal.db" in why
    assert journal.read_bytes() == damaged


@pytest.mark.embedded
def test_missing_secret_of_a_folder_with_data_is_refused(world):
    """It was made anew, and a repeated request got another token for the same lobby."""
    world.server()
    assert world.muster.term() == 0
    (world.muster.data / "secret").unlink()
    code, why = refused_start(
        "--dev", "--data", world.muster.data, "--server-port", 0, "--manager-port", 0, "--client-port", 0
    )
    assert code == 1 and "secret is missing" in why and "backup" in why
    assert not (world.muster.data / "secret").exists()


@pytest.mark.parametrize("n", range(6, 22))
def test_too_few_descriptors_are_named(tmp_path, n):
    """It aborted without a word, or advised to restore a backup."""
    result = subprocess.run(
        [binary(), "serve", "--dev", "--data", tmp_path / "d", "--server-port", "0",
         "--manager-port", "0", "--client-port", "0", "--http", "127.0.0.1:0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=15,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)),
    )
    assert result.returncode == 1
    assert "too few file descriptors" in result.stderr


def test_more_connections_than_descriptors_are_refused_in_the_log(tmp_path):
    """libuv turned them away without a word to the log."""
    limited = tmp_path / "muster"
    limited.write_text(f'#!/bin/sh\nulimit -n 32\nexec {binary()} "$@"\n')
    limited.chmod(0o700)
    muster = Muster(tmp_path)
    muster.binary = limited
    with muster:
        peers = [socket.create_connection(muster.server_address, timeout=5) for _ in range(40)]
        peers[-1].settimeout(5)
        assert peers[-1].recv(1) == b""
        for s in peers:
            s.close()
        assert muster.term() == 0
    assert "connection refused" in muster.log()


def test_folder_is_private(world):
    """It holds the secret that credentials are derived from."""
    secrets = [p for p in world.muster.data.iterdir() if "secret" in p.name]
    assert secrets
    for path in secrets:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_credential_is_stored(world):
    world.server(capacity=10)
    asker = world.chat()
    guids = [asker.allocate(n).match_token.split("_")[2] for n in range(1, 6)]
    assert world.muster.term() == 0
    kept = [p for p in world.muster.data.rglob("*") if p.is_file()]
    assert any(p.parent.name == "history" for p in kept)
    for path in kept:
        content = path.read_bytes()
        for guid in guids:
            assert guid.encode() not in content
            assert bytes.fromhex(guid.replace("-", "")) not in content


def test_no_credential_is_logged(make_world):
    tokens = [
        {"token": "server-token", "role": "server", "fleet": "default", "regions": ["EU"]},
        {"token": "chat-token", "role": "chat", "fleet": "default", "regions": ["EU"]},
    ]
    world = make_world(dev=False, tokens=tokens)
    world.server(token="server-token")
    match_token = world.chat(token="chat-token").allocate(7).match_token
    stranger = world.unregistered_server(token="guessed-token")
    stranger.say_hello()
    stranger.expect_closed()
    assert world.muster.term() == 0, "the whole log is then written"
    log = world.muster.log()
    for secret in ("server-token", "chat-token", "guessed-token", match_token):
        assert secret not in log


def test_every_allocation_is_in_the_log(world):
    """Placed or not: a line that names the ticket, the lobby and the server or the reason."""
    server = world.server(capacity=1)
    asker = world.chat()
    asker.allocate(7)
    asker.refuse(8)
    done = logged_pairs(world, "ticket done")
    assert done["ticket"] > 0
    assert (done["lobby"], done["server"]) == (7, server.server_id)
    failed = logged_pairs(world, "ticket failed")
    assert failed["ticket"] != done["ticket"]
    assert (failed["lobby"], failed["error"]) == (8, "no_servers")


def test_without_dev_and_without_tokens_nobody_gets_in(make_world):
    world = make_world(dev=False)
    server = world.unregistered_server()
    server.say_hello()
    assert server.refusal("SV_HANDSHAKE_RESPONSE") == "Invalid token"


# --- flags and configuration


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-flag"],
        ["--server-port", "70000"],
        ["--server-port", "-1"],
        ["--server-port", "abc"],
        ["--server-port", "12x"],
        ["--manager-port"],
        ["--client-port", "65536"],
        ["--config"],
        ["--data"],
        ["stray"],
    ],
    ids=" ".join,
)
def test_bad_flags_are_refused_by_name(tmp_path, arguments):
    code, why = refused_start("--data", tmp_path / "data", *arguments)
    assert code == 2
    assert arguments[0] in why
    assert not (tmp_path / "data").exists(), "nothing is made before the arguments are understood"


@pytest.mark.parametrize(
    "config, named",
    [
        ({"no_such_key": 1}, "no_such_key"),
        ({"timeouts": {"ack_msec": 1}}, "ack_msec"),
        ({"limits": {"severs": 1}}, "severs"),
        ({"fleets": [{"name": "a", "raedy": True}]}, "raedy"),
        ({"timeouts": {"ack_ms": "soon"}}, "ack_ms"),
        ({"timeouts": {"ack_ms": -5}}, "ack_ms"),
        ({"tokens": [{"token": "t", "role": "king", "fleet": "default", "regions": ["EU"]}]}, "king"),
        (
            {"tokens": [{"token": "t", "role": "chat", "fleet": "default", "regions": ["XX"]}]},
            "XX",
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bad_configuration_names_what_is_wrong(tmp_path, config, named):
    path = write_config(tmp_path / "bad.yaml", config)
    _, why = refused_start("--data", tmp_path / "data", "--config", path)
    assert named in why
    assert "bad.yaml" in why


def test_absent_configuration_is_named(tmp_path):
    _, why = refused_start("--data", tmp_path / "data", "--config", tmp_path / "absent.yaml")
    assert "absent.yaml" in why


def test_unparsable_configuration_is_named(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("fleets: [ {")
    _, why = refused_start("--data", tmp_path / "data", "--config", path)
    assert "broken.yaml" in why


def test_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    _, why = refused_start("--dev", "--data", tmp_path / "file" / "data")
    assert "file" in why


def test_ports_of_the_configuration_are_used(make_world, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        free = s.getsockname()[1]
    write_config(tmp_path / "ports.yaml", {"listen": {"server_port": free, "manager_port": 0,
                                                      "client_port": 0}})
    muster = Muster(tmp_path)
    muster.arguments = lambda *_: [
        "serve", "--dev", "--data", tmp_path / "data", "--config", tmp_path / "ports.yaml",
        "--http", "127.0.0.1:0",
    ]
    with muster:
        assert muster.server_address == ("127.0.0.1", free)
        assert muster.term() == 0


def test_log_that_cannot_be_written_is_no_reason_to_die(tmp_path):
    """/dev/full takes nothing."""
    muster = Muster(tmp_path)
    muster.log_path = "/dev/full"
    muster.log = lambda: ""
    with muster:
        with socket.create_connection(muster.server_address) as s:
            s.sendall(b"\x02\x00\x00\x2a")
            s.settimeout(5)
            assert s.recv(4) == b"\x02\x00\x01\x2a"
        assert muster.term() == 0
