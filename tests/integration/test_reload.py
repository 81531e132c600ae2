"""SIGHUP: each kind of change is seen working on a live Muster, what cannot change is said and
stays, and a mistake changes nothing."""

import signal
import socket
import ssl
import subprocess
import time

import jwt
import pytest
from chat import EU
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fake_host import FakeHost
from http_api import Api
from muster_proc import Muster, run, write_config
from players import Player, fleets
from world import World

CHANGED = "configuration changed"
STAYS = "configuration cannot change without a restart"
IN_FORCE = "configuration in force"
UNCHANGED = "configuration unchanged"
REFUSED = "configuration refused; nothing has changed"


def token(name, role="server", fleet="default", regions=("EU",)):
    return {"token": name, "role": role, "fleet": fleet, "regions": list(regions)}


FILE = {"limits": {}}  # there is one, and it says nothing
CLOSED = {"dev": False, "tokens": [token("one"), token("asker", "chat")]}


def changes(lines):
    """What the lines of a reload say: key -> line."""
    return {line["what"]: line for line in lines if line["msg"] == CHANGED}


def knock(world, token, region=EU):
    """The answer to a newcomer with that token; None = come in."""
    stranger = world.unregistered_server(token=token, region=region)
    stranger.say_hello()
    answer = stranger.expect("SV_HANDSHAKE_RESPONSE")
    stranger.close()
    return None if answer.ok else answer.error


# --- who may come


@pytest.mark.muster(**CLOSED)
def test_new_token_is_accepted(world):
    assert knock(world, "two") == "Invalid token"
    lines = world.reload(tokens=[*CLOSED["tokens"], token("two")])
    assert changes(lines)["tokens"]["n"] == 1
    assert knock(world, "two") is None
    assert knock(world, "one") is None


@pytest.mark.muster(**CLOSED)
def test_removed_token_lets_nobody_in_and_throws_nobody_out(world):
    server = world.server(token="one")
    asker = world.chat(token="asker")
    lines = world.reload(tokens=[token("asker", "chat")])
    assert changes(lines)["tokens"]["names"].startswith("-")
    assert knock(world, "one") == "Invalid token"
    assert asker.allocate(7).server_id == server.server_id
    assert server.end(7).ok
    server.close()
    server.open()
    server.say_hello()
    assert server.refusal("SV_HANDSHAKE_RESPONSE") == "Invalid token"


@pytest.mark.muster(**CLOSED)
def test_token_for_other_regions(world):
    world.reload(tokens=[token("one", regions=["USE"]), token("asker", "chat")])
    assert knock(world, "one") == "Invalid region"
    assert knock(world, "one", region=0) is None


@pytest.mark.muster(**FILE)
def test_new_region_is_accepted(world):
    assert knock(world, "any", region=40) == "Invalid region"
    lines = world.reload(regions=[{"code": 2, "name": "EU"}, {"code": 40, "name": "MOON"}])
    assert "+MOON" in changes(lines)["regions"]["names"]
    moon = world.server(region=40)
    assert world.chat(regions=(40,)).allocate(7, region=40).server_id == moon.server_id


@pytest.mark.muster(**FILE)
def test_region_that_moves_is_seen_by_the_api(world):
    def location():
        (region,) = (r for r in world.api.all("/v1/regions") if r["name"] == "EU")
        return region["latitude"], region["longitude"]

    assert location() == (50.11, 8.68)
    lines = world.reload(
        regions=[{"code": 2, "name": "EU", "latitude": 52.37, "longitude": 4.9}]
    )
    assert "~EU" in changes(lines)["regions"]["names"].split()
    assert location() == (52.37, 4.9)


@pytest.mark.muster(**FILE)
def test_region_that_goes_keeps_its_matches(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    world.reload(regions=[{"code": 0, "name": "USE"}])
    assert server.validate(7, 100).ok
    assert server.end(7).ok
    assert knock(world, "any") == "Invalid region"


# --- fleets

FLEETS = {
    "dev": False,
    "fleets": [{"name": "old"}, {"name": "kept"}],
    "tokens": [
        token(f"{role}-{fleet}", role, fleet)
        for role in ("server", "chat")
        for fleet in ("old", "kept")
    ],
}


@pytest.mark.muster(**FLEETS)
def test_removed_fleet_drains(world):
    """Its matches go on, it gets no new ones, and the others do not notice."""
    old, kept = world.server(token="server-old"), world.server(token="server-kept")
    old_chat = world.chat("old", token="chat-old")
    kept_chat = world.chat("kept", token="chat-kept")
    old_chat.allocate(7)
    lines = world.reload(
        fleets=[{"name": "kept"}, {"name": "arena"}],
        tokens=[t for t in FLEETS["tokens"] if t["fleet"] == "kept"]
        + [token("server-arena", fleet="arena"), token("chat-arena", "chat", "arena")],
    )
    assert changes(lines)["fleets"]["names"] == "+arena -old"
    assert old_chat.refuse(8) == "No servers available"
    assert old.validate(7, 100).ok
    assert old.end(7).ok
    assert kept_chat.allocate(9).server_id == kept.server_id
    arena = world.server(token="server-arena")
    arena_chat = world.chat("arena", token="chat-arena")
    assert arena_chat.allocate(10).server_id == arena.server_id
    fleets = {fleet["name"]: fleet for fleet in world.api.all("/v1/fleets")}
    assert not fleets["old"]["configured"]
    assert fleets["arena"]["configured"]

    world.reload(**{key: value for key, value in FLEETS.items() if key != "dev"})
    assert old_chat.allocate(11).server_id == old.server_id, "and comes back"


@pytest.mark.muster(**FILE)
def test_ready_can_be_made_required(world):
    server = world.server()
    asker = world.chat()
    asker.allocate(7)
    lines = world.reload(fleets=[{"name": "default", "ready_required": True}])
    assert changes(lines)["fleets"]["names"] == "~default"
    asker.request(8)
    server.expect_offer(8)
    asker.barrier()
    assert not asker.find("MGR_SERVER_ALLOCATION_RESPONSE", lobby=8)
    server.say_ready(8)
    assert asker.placed(8).server_id == server.server_id


# --- timeouts and limits


@pytest.mark.muster(ack_ms=600_000, ticket_ms=604_800_000)
def test_new_timeout_holds_for_what_begins_from_now_on(world):
    """A server that never answers is given up after the new time."""
    silent = world.server(on_allocate="silent")
    lines = world.reload(ack_ms=200, ticket_ms=604_800_000)
    line = changes(lines)["timeouts.ack_ms"]
    assert (line["before"], line["now"]) == ("600000", "200")
    good = world.server(cpu=99)
    assert world.chat().allocate(7).server_id == good.server_id
    silent.expect_cancel(7)


@pytest.mark.muster(servers=1)
def test_limit_is_raised_and_lowered(world):
    first = world.server()
    assert knock(world, "any") == "Internal error"
    world.reload(servers=2)
    second = world.server()
    world.reload(servers=1)
    assert knock(world, "any") == "Internal error"
    assert first.beat().ok and second.beat().ok, "nobody is sent away"


# --- the log


@pytest.mark.muster(**FILE)
def test_log_level(world):
    assert not [line for line in world.muster.log_lines() if line["level"] == "debug"]
    lines = world.reload(log={"level": "debug"})
    assert changes(lines)["log.level"]["now"] == "debug"
    world.server().close()
    world.wait(
        lambda: [line for line in world.muster.log_lines() if line["msg"] == "disconnected"],
        "line of level debug",
    )
    world.reload(log={"level": "error"})
    before = len(world.muster.log_lines())
    world.server().close()
    assert world.muster.term() == 0
    assert len(world.muster.log_lines()) == before, "not even that it has stopped"


@pytest.mark.muster(**FILE)
def test_log_format(world):
    world.reload(log={"format": "json"})
    world.server()
    assert world.muster.term() == 0
    last = world.muster.log().splitlines()[-1]
    assert last.startswith('{"ts":"20') and '"msg":"stopped"' in last
    (line,) = world.muster.log_lines("server registered")
    assert isinstance(line["server"], int)


def test_command_line_wins_over_the_file(tmp_path):
    world = World(tmp_path)
    world.muster.config = {}
    arguments = world.muster.arguments
    world.muster.arguments = lambda *ports: [*arguments(*ports), "--log-level", "debug",
                                             "--log-format", "json"]
    with world.muster:
        lines = world.reload(log={"level": "error", "format": "logfmt"})
        assert not changes(lines)
        assert lines[-1]["msg"] == UNCHANGED
        assert all(line.startswith("{") for line in world.muster.log().splitlines())
        assert world.muster.term() == 0
    world.net.close()


# --- HTTP


@pytest.mark.muster(dev=False, **FILE)
def test_metrics_are_opened(world):
    stranger = Api(world.muster)
    assert stranger.ask("GET", "/metrics").status == 401
    world.reload(http={"metrics": "open"})
    assert stranger.ask("GET", "/metrics").status == 200
    world.reload(http={"metrics": "token"})
    assert stranger.ask("GET", "/metrics").status == 401


def signer(path):
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    now = int(time.time())
    claims = {"acc": "7", "gms": "1", "sco": "muster_read", "iat": now - 5, "exp": now + 600}
    return jwt.encode(claims, key, algorithm="ES256")


@pytest.mark.muster(dev=False, **FILE)
def test_access_keys_come_and_go(world):
    """Also the file behind the same name."""
    path = world.muster.folder / "login.pem"
    keys = {"keys": [{"name": "login", "algorithm": "ES256", "file": "login.pem"}]}
    first = Api(world.muster, signer(path))
    assert first.ask("GET", "/v1/regions").status == 401
    lines = world.reload(access=keys)
    assert changes(lines)["access.keys"]["names"] == "+login"
    assert first.ask("GET", "/v1/regions").status == 200

    second = Api(world.muster, signer(path))
    assert second.ask("GET", "/v1/regions").status == 401
    assert world.reload(access=keys)[-1]["changes"] == 0
    assert second.ask("GET", "/v1/regions").status == 200
    assert first.ask("GET", "/v1/regions").status == 401

    world.reload()
    assert second.ask("GET", "/v1/regions").status == 401


def make_certificate(folder, name):
    """Self-signed; returns the PEM text."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "30", "-subj", f"/CN={name}", "-keyout", folder / "tls.key",
         "-out", folder / "tls.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return (folder / "tls.pem").read_text()


def shown(address):
    return ssl.get_server_certificate(address, timeout=8).strip()


def test_renewed_certificates_are_shown_without_a_restart(tmp_path, make_world):
    files = {"certificate": str(tmp_path / "tls.pem"), "key": str(tmp_path / "tls.key")}
    first = make_certificate(tmp_path, "first")
    world = make_world(tls={"http": files, "server": files, "manager": files})
    doors = (
        world.muster.http_address, world.muster.server_address, world.muster.manager_address
    )
    for door in doors:
        assert shown(door) == first.strip()
    second = make_certificate(tmp_path, "second")
    lines = world.reload(tls={"http": files, "server": files, "manager": files})
    assert lines[-1]["msg"] == UNCHANGED, "the file says the same, its certificates do not"
    for door in doors:
        assert shown(door) == second.strip()

    (tmp_path / "tls.key").write_text("nonsense\n")
    lines = world.reload(servers=5, tls={"http": files, "server": files, "manager": files})
    assert lines[-1]["msg"] == REFUSED
    assert "TLS of the http port" in lines[-1]["why"]
    assert not changes(lines)
    for door in doors:
        assert shown(door) == second.strip()


# --- what cannot change


class FromFile(Muster):
    """Everything is in its file, nothing on the command line."""

    def __init__(self, folder, **config):
        super().__init__(folder, config={
            "listen": {"bind": "127.0.0.1", "server_port": 0, "manager_port": 0,
                       "client_port": 0},
            "http": {"port": 0},
            **config,
        }, dev=False)

    def arguments(self, *_):
        path = write_config(self.folder / "muster.yaml", self.config)
        return ["serve", "--data", self.data, "--config", path]


@pytest.fixture
def from_file(tmp_path):
    world = World(tmp_path)
    world.muster = FromFile(tmp_path)
    yield world.start()
    world.stop()


def test_ports_and_addresses_stay(from_file):
    world = from_file
    lines = world.reload(
        listen={"bind": "127.0.0.2", "server_port": 5000, "manager_port": 0, "client_port": 0,
                "connections": 7},
        http={"port": 5001, "connections_per_address": 3},
        access={"gamespace": "other"},
        servers=9,
    )
    stays = {line["what"]: (line["stays"], line["wanted"]) for line in lines
             if line["msg"] == STAYS}
    assert stays == {
        "listen.bind": ("127.0.0.1", "127.0.0.2"),
        "listen.server_port": ("0", "5000"),
        "listen.connections": ("20000", "7"),
        "http.bind": ("127.0.0.1", "127.0.0.2"),
        "http.port": ("0", "5001"),
        "http.connections_per_address": ("128", "3"),
        "access.gamespace": ("1", "other"),
    }
    assert all(line["level"] == "warn" for line in lines if line["msg"] == STAYS)
    assert list(changes(lines)) == ["limits.servers"]
    for address in (world.muster.server_address, world.muster.http_address):
        socket.create_connection(address, timeout=5).close()
    assert world.api.all("/v1/regions"), "the administrator's token is good as ever"


def test_port_does_not_begin_to_speak_tls(from_file, tmp_path):
    world = from_file
    make_certificate(tmp_path, "any")
    files = {"certificate": str(tmp_path / "tls.pem"), "key": str(tmp_path / "tls.key")}
    lines = world.reload(**world.muster.config, tls={"server": files})
    (line,) = (line for line in lines if line["msg"] == STAYS)
    assert (line["what"], line["stays"], line["wanted"]) == ("tls.server", "plain", "TLS")
    with socket.create_connection(world.muster.server_address, timeout=5) as s:
        s.sendall(b"\x02\x00\x00\x2a")
        assert s.recv(4) == b"\x02\x00\x01\x2a"


# --- the digest


def test_digest_is_that_of_the_file(from_file):
    world = from_file

    def in_service():
        return Api(world.muster).get("/readyz")["config_digest"]

    def of_the_file():
        checked = run("config", "check", world.muster.folder / "muster.yaml")
        return checked.stdout.split()[-1]

    (started,) = world.muster.log_lines("started")
    assert started["digest"] == in_service() == of_the_file()
    lines = world.reload(**world.muster.config, servers=9)
    assert lines[-1]["digest"] == in_service() == of_the_file() != started["digest"]
    world.reload(**{**world.muster.config, "http": {"port": 1}})
    assert in_service() == lines[-1]["digest"] != of_the_file(), "the port has stayed"


# --- mistakes


@pytest.mark.muster(**CLOSED)
def test_mistake_changes_nothing(world):
    world.server(token="one")
    before = Api(world.muster).get("/readyz")["config_digest"]
    lines = world.reload(
        text="tokens: [{token: two, role: server}]\nlimits: {servers: 1}\nfleets: [{name: '!'}]\n"
    )
    assert [line["msg"] for line in lines] == [REFUSED]
    assert lines[0]["level"] == "error"
    assert lines[0]["why"] == (
        f"{world.muster.folder}/muster.yaml: line 3: fleets, entry 1, name: must be 1 to 63 of "
        "A-Z a-z 0-9 . _ -, not '!'"
    )
    assert lines[0]["mistakes"] == 2, "and no fleet default for the token"
    assert knock(world, "two") == "Invalid token"
    assert knock(world, "one") is None
    assert Api(world.muster).get("/readyz")["config_digest"] == before
    assert world.reload(**{k: v for k, v in CLOSED.items() if k != "dev"})[-1]["msg"] == UNCHANGED


@pytest.mark.muster(**CLOSED)
def test_file_that_is_gone_changes_nothing(world):
    path = world.muster.folder / "muster.yaml"
    path.unlink()
    world.muster.signal(signal.SIGHUP)
    world.wait(lambda: world.muster.log_lines(REFUSED), "word about the reload")
    (line,) = world.muster.log_lines(REFUSED)
    assert line["why"] == f"Cannot read {path}: No such file or directory"
    assert knock(world, "one") is None


def test_fleet_of_development_mode_stays(make_world):
    world = make_world(fleets=[{"name": "default"}])
    lines = world.reload(fleets=[{"name": "arena"}])
    assert lines[-1]["msg"] == REFUSED
    assert '--dev puts every server into fleet "default"' in lines[-1]["why"]


def test_without_a_file_there_is_nothing_to_read(world):
    world.muster.signal(signal.SIGHUP)
    msg = "there is no configuration file to read again"
    world.wait(lambda: world.muster.log_lines(msg), "word about it")
    world.server()
    world.chat().allocate(7)


# --- under load, and for good


@pytest.mark.muster(**FILE)
def test_reloads_under_load_disturb_nobody(world):
    server = world.server(capacity=300)
    asker = world.chat()
    for lobby in range(1, 201):
        if lobby % 10 == 0:
            timeouts = {"ack_ms": 5000 + lobby}
            write_config(world.muster.folder / "muster.yaml", {"timeouts": timeouts})
            world.muster.signal(signal.SIGHUP)
        assert asker.allocate(lobby).server_id == server.server_id
    assert not server.closed and not asker.closed
    lines = world.muster.log_lines(IN_FORCE)
    assert len(lines) > 1 and lines[-1]["changes"] == 1


@pytest.mark.muster(**CLOSED)
def test_what_was_read_again_holds_after_a_crash(world):
    world.reload(tokens=[token("two")])
    world.crash()
    assert knock(world, "two") is None
    assert knock(world, "one") == "Invalid token"


def test_audit_knows_of_it(make_world):
    world = make_world(servers=5)
    world.reload(servers=6)
    # It is stored with the first tick on which something can be.
    world.wait(lambda: world.api.all("/v1/audit"), "a line in the audit")
    actions = [line["action"] for line in world.api.all("/v1/audit")]
    assert actions[:1] == ["configure"]


def test_nothing_new_is_no_change(make_world):
    """One line, and nothing in the audit; a comment changes nothing either."""
    world = make_world(servers=5)
    before = world.api.all("/v1/audit")
    lines = world.reload(servers=5)
    assert [line["msg"] for line in lines] == [UNCHANGED]
    assert lines[0]["digest"] == Api(world.muster).get("/readyz")["config_digest"]
    (line,) = world.reload(text="# five\nlimits: {servers: 5}\n")
    assert line["msg"] == UNCHANGED
    assert world.api.all("/v1/audit") == before


# --- rooms


def rooms(settings, **more):
    return {"fleets": fleets(server_settings=settings, **more), "default_region": "EU"}


@pytest.mark.muster(**rooms('{"tick": 30}', arguments=["--slow"]))
def test_servers_are_started_as_the_file_says_now(world):
    """Also after reloads that find nothing new: what is borrowed then is still there."""
    player = Player(world, "anna")
    with FakeHost(world.muster) as host:

        def started():
            player.create()
            spawn = host.spawned.get(timeout=10).spawn
            return spawn["server_settings"], spawn["arguments"]

        assert started() == ({"tick": 30}, ["--slow"])
        same = rooms('{"tick": 30}', arguments=["--slow"])
        assert [line["msg"] for line in world.reload(**same)] == [UNCHANGED]
        assert started() == ({"tick": 30}, ["--slow"])
        lines = world.reload(**rooms('{"tick": 60}'))
        assert changes(lines)["fleets"]["names"] == "~arena"
        assert started() == ({"tick": 60}, [])
        assert world.reload(**rooms('{"tick": '))[-1]["msg"] == REFUSED
        assert started() == ({"tick": 60}, [])


@pytest.mark.muster(**rooms("{}"))
def test_new_rates_hold_at_once(world):
    player = Player(world, "anna")
    lines = world.reload(**rooms("{}"), rates={"create": [{"count": 1, "seconds": 600}]})
    assert changes(lines)["rates.create"]["now"] == "1/600"
    with FakeHost(world.muster):
        player.create()
        player.cannot(429, "rate_limited", verb="create")
