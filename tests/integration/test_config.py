"""The configuration file: its mistakes by their full sentences, what is shown, and that the example
of the documentation is one."""

import json
import re
import subprocess

import pytest
from muster_proc import REPO, binary, run

SECTIONS = (
    "regions, fleets, tokens, default_region, rates, geo, history, cluster, timeouts, limits, listen, http, tls, "
    "log, access, nats, pubsub, routes, kubernetes"
)
NAME = "A-Z a-z 0-9 . _ -"

# What stands in the file, and every sentence about it.
MISTAKES = {
    "unknown section": (
        "colour: blue\n",
        [f"line 1: there is no setting 'colour'; known are {SECTIONS}"],
    ),
    "misspelt section": (
        "\ntimeout: {ack_ms: 5}\n",
        ["line 2: there is no setting 'timeout'; did you mean 'timeouts'?"],
    ),
    "misspelt key": (
        "limits:\n  servers: 5\n  chat_server: 5\n",
        ["line 3: limits: there is no setting 'chat_server'; did you mean 'chat_servers'?"],
    ),
    "misspelt key of an entry": (
        "fleets:\n  - name: a\n  - name: b\n    raedy_required: yes\n",
        [
            "line 4: fleets, entry 2: there is no setting 'raedy_required'; "
            "did you mean 'ready_required'?"
        ],
    ),
    "number with a unit": (
        "timeouts:\n  ack_ms: 5s\n",
        ["line 2: timeouts, ack_ms: must be a whole number from 1 to 604800000, not '5s'"],
    ),
    "negative number": (
        "limits: {servers: -1}\n",
        ["line 1: limits, servers: must be a whole number from 1 to 10000000, not '-1'"],
    ),
    "port too high": (
        "http: {port: 70000}\n",
        ["line 1: http, port: must be a whole number from 0 to 65535, not '70000'"],
    ),
    "no address": (
        "listen: {bind: localhost}\n",
        ["line 1: listen, bind: must be an IP address, not 'localhost'"],
    ),
    "unknown word": (
        "log:\n  level: verbose\n",
        ["line 2: log, level: must be error, warn, info or debug, not 'verbose'"],
    ),
    "unknown format": (
        "log: {format: xml}\n",
        ["line 1: log, format: must be logfmt or json, not 'xml'"],
    ),
    "metrics for nobody": (
        "http: {metrics: none}\n",
        ["line 1: http, metrics: must be token or open, not 'none'"],
    ),
    "region of the code that means any": (
        "regions:\n  - {code: 17, name: ANY}\n",
        [
            "line 2: regions, entry 1, code: must be a whole number from 0 to 63 without 17 "
            "(which means any), not '17'"
        ],
    ),
    "region code twice": (
        "regions:\n  - {code: 1, name: A}\n  - {code: 1, name: B}\n",
        ["line 3: regions, entry 2, code: 1 is already A"],
    ),
    "region name twice": (
        "regions:\n  - {code: 1, name: A}\n  - {code: 2, name: A}\n",
        ["line 3: regions, entry 2, name: A is there twice"],
    ),
    "half a location": (
        "regions:\n  - {code: 1, name: A, longitude: 8.68}\n",
        [
            "line 2: regions, entry 1: latitude is missing; a location has both latitude and "
            "longitude"
        ],
    ),
    "no such latitude": (
        "regions:\n  - code: 1\n    name: A\n    latitude: 90.5\n    longitude: 0\n",
        ["line 4: regions, entry 1, latitude: must be degrees from -90 to 90, not '90.5'"],
    ),
    "fleet name": (
        "fleets: [{name: 'my fleet'}]\n",
        [f"line 1: fleets, entry 1, name: must be 1 to 63 of {NAME}, not 'my fleet'"],
    ),
    "fleet twice": (
        "fleets: [{name: a}, {name: a}]\n",
        ["line 1: fleets, entry 2, name: a is there twice"],
    ),
    "fleet of agents without its program": (
        "fleets:\n  - name: a\n    provider: agent\n    game: g\n    server: s\n"
        "    max_players: 4\n",
        ["line 2: fleets, entry 1: binary is missing; a fleet of provider agent needs it"],
    ),
    "two fleets under one path": (
        "fleets:\n"
        "  - {name: a, provider: agent, game: g, server: s, binary: b, max_players: 4}\n"
        "  - {name: b, provider: agent, game: g, server: s, binary: b, max_players: 4}\n",
        ["line 3: fleets, entry 2, server: g/s is fleet a already"],
    ),
    "settings that are no JSON": (
        "fleets:\n  - name: a\n    provider: agent\n    game: g\n    server: s\n"
        "    binary: b\n    max_players: 4\n    server_settings: '{\"map\": dust}'\n",
        [
            "line 8: fleets, entry 1, server_settings: must be a JSON object; in it, line 1, "
            "column 12: invalid token near 'dust'"
        ],
    ),
    "settings that are YAML": (
        "fleets:\n  - {name: a, provider: agent, server_settings: {map: dust}}\n",
        [
            "line 2: fleets, entry 1, server_settings: must be one value, not a list or settings"
        ],
    ),
    "key of another provider": (
        "fleets:\n  - name: a\n    ports: 2\n",
        ["line 3: fleets, entry 1, ports: is for fleets of provider agent only"],
    ),
    "no such default region": (
        "default_region: XX\n",
        ["line 1: default_region: there is no region 'XX'"],
    ),
    "neither yes nor no": (
        "fleets: [{name: a, ready_required: sometimes}]\n",
        ["line 1: fleets, entry 1, ready_required: must be true or false, not 'sometimes'"],
    ),
    "role": (
        "tokens:\n  - {token: t, role: king}\n",
        ["line 2: tokens, entry 1, role: must be server or chat, not 'king'"],
    ),
    "no role": (
        "tokens:\n  - {token: t}\n",
        ["line 2: tokens, entry 1: role is missing"],
    ),
    "no token": (
        "tokens:\n  - {role: chat}\n",
        ["line 2: tokens, entry 1: token or hash is missing"],
    ),
    "token and hash": (
        "tokens:\n  - {role: chat, token: t, hash: t}\n",
        ["line 2: tokens, entry 1: token and hash are both there; one of them is enough"],
    ),
    "no hash": (
        "tokens:\n  - {role: chat, hash: secret}\n",
        [
            "line 2: tokens, entry 1, hash: must be 64 digits of 0-9 a-f "
            "(BLAKE2b of the token)"
        ],
    ),
    "token twice": (
        "tokens:\n  - {role: chat, token: t}\n  - {role: server, token: t}\n",
        ["line 3: tokens, entry 2: the same token as entry 1"],
    ),
    "unknown fleet": (
        "tokens:\n  - {role: chat, token: t, fleet: arena}\n",
        ["line 2: tokens, entry 1, fleet: there is no fleet 'arena'"],
    ),
    "unknown region": (
        "tokens:\n  - {role: chat, token: t, regions: [EU, XX]}\n",
        ["line 2: tokens, entry 1, regions, entry 2: there is no region 'XX'"],
    ),
    "no region at all": (
        "tokens:\n  - {role: chat, token: t, regions: []}\n",
        [
            "line 2: tokens, entry 1, regions: the list is empty; leave the setting out for the "
            "default"
        ],
    ),
    "certificate without its key": (
        "tls:\n  http:\n    certificate: a.pem\n",
        ["line 2: tls, http: key is missing; a certificate needs its key"],
    ),
    "authority without a certificate": (
        "tls: {manager: {client_ca: a.pem}}\n",
        [
            "line 1: tls, manager: certificate is missing; without it the port would be plain"
        ],
    ),
    "algorithm": (
        "access:\n  keys:\n    - {name: a, algorithm: none, file: a.pem}\n",
        ["line 3: access, keys, entry 1, algorithm: must be RS256 or ES256, not 'none'"],
    ),
    "back-off upside down": (
        "timeouts:\n  backoff_first_ms: 5000\n  backoff_max_ms: 1000\n",
        ["line 1: timeouts: backoff_first_ms is above backoff_max_ms"],
    ),
    "one value where a list belongs": (
        "fleets: arena\n",
        ["line 1: fleets: must be a list"],
    ),
    "list where one value belongs": (
        "listen: {server_port: [1, 2]}\n",
        ["line 1: listen, server_port: must be one value, not a list or settings"],
    ),
    "value where settings belong": (
        "timeouts: 5\n",
        ['line 1: timeouts: must be settings, each "name: value"'],
    ),
    "key twice": (
        "limits:\n  servers: 1\n  chat_servers: 2\n  servers: 3\n",
        ["line 4: limits, servers: is there twice"],
    ),
    "alias": (
        "limits: {servers: &n 5, chat_servers: *n}\n",
        [
            'line 1: limits, chat_servers: "*" for a value named elsewhere is not supported'
        ],
    ),
    "second document": (
        "limits: {}\n---\nlimits: {}\n",
        ["line 2: a second document begins here; the settings must be in one"],
    ),
    "tabulator": (
        "limits:\n\tservers: 5\n",
        ["line 2, column 1: found character that cannot start any token"],
    ),
    "chat ports that are one": (
        "listen:\n  server_port: 5000\n  manager_port: 5000\n",
        ["line 3: listen, manager_port: 5000 is taken by listen, server_port already"],
    ),
    "port that is the default of another": (
        "listen:\n  server_port: 11033\n",
        [
            "line 2: listen, server_port: 11033 is taken by listen, manager_port already, "
            "whose default it is"
        ],
    ),
    "HTTP port that is a chat port": (
        "listen: {server_port: 5000}\nhttp:\n  port: 5000\n",
        ["line 3: http, port: 5000 is taken by listen, server_port already"],
    ),
    "HTTP port that is a chat port of every address": (
        "listen: {bind: '::', manager_port: 5000}\nhttp: {bind: 127.0.0.1, port: 5000}\n",
        ["line 2: http, port: 5000 is taken by listen, manager_port already"],
    ),
    "several at once": (
        "fleets: [{name: '?'}]\ntimeouts:\n  list_ms: soon\nlog: {level: 3}\n",
        [
            f"line 1: fleets, entry 1, name: must be 1 to 63 of {NAME}, not '?'",
            "line 4: log, level: must be error, warn, info or debug, not '3'",
            "line 3: timeouts, list_ms: must be a whole number from 1 to 604800000, not 'soon'",
        ],
    ),
}


def in_folder(folder, *arguments):
    return subprocess.run(
        [binary(), *arguments], cwd=folder, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("text, sentences", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(tmp_path, text, sentences):
    (tmp_path / "m.yaml").write_text(text)
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    assert checked.returncode == 1
    assert checked.stdout == ""
    assert checked.stderr.splitlines() == [
        f"muster config check: m.yaml: {sentence}" for sentence in sentences
    ]


@pytest.mark.parametrize(
    "text",
    [
        "listen: {server_port: 0, manager_port: 0}\nhttp: {port: 0}\n",
        "listen: {bind: 10.0.0.1}\nhttp: {bind: 10.0.0.2, port: 11032}\n",
        "listen: {bind: 0.0.0.0}\nhttp: {bind: '::1', port: 11032}\n",
    ],
)
def test_ports_that_do_not_meet_are_fine(tmp_path, text):
    (tmp_path / "m.yaml").write_text(text)
    assert in_folder(tmp_path, "config", "check", "m.yaml").returncode == 0


def test_a_start_names_the_same_mistakes(tmp_path):
    text, sentences = MISTAKES["several at once"]
    (tmp_path / "m.yaml").write_text(text)
    refused = in_folder(tmp_path, "serve", "--data", "d", "--config", "m.yaml")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [f"muster serve: m.yaml: {s}" for s in sentences]
    assert not (tmp_path / "d").exists()


def test_more_mistakes_than_anybody_reads_are_counted(tmp_path):
    (tmp_path / "m.yaml").write_text("fleets:\n" + "- {name: '!'}\n" * 14)
    lines = in_folder(tmp_path, "config", "check", "m.yaml").stderr.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "muster config check: and 4 more"


def test_files_that_are_named_are_looked_at(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "tls:\n  http:\n    key: k.pem\n    certificate: tls/absent.pem\n"
        "access:\n  keys:\n  - name: login\n    algorithm: RS256\n    file: login.pem\n"
    )
    (tmp_path / "login.pem").write_text("no key\n")
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    assert checked.returncode == 1
    first, second = checked.stderr.splitlines()
    assert first.startswith(
        "muster config check: m.yaml: line 4: tls, http, certificate: TLS of the http port: "
    )
    assert "tls/absent.pem" in first and "No such file" in first
    assert second == (
        "muster config check: m.yaml: line 9: access, keys, entry 1, file: access key login: "
        "login.pem: it is no public key in PEM (-----BEGIN PUBLIC KEY-----)"
    )
    (started,) = in_folder(
        tmp_path, "serve", "--data", "d", "--config", "m.yaml"
    ).stderr.splitlines()
    assert started == first.replace("config check", "serve"), "a start says the same"


def test_a_database_of_places_must_be_there(tmp_path):
    (tmp_path / "m.yaml").write_text("log: {}\ngeo:\n  file: places.mmdb\n")
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    assert checked.returncode == 1
    assert checked.stderr == (
        "muster config check: m.yaml: line 3: geo, file: places.mmdb: "
        "Error opening the specified MaxMind DB file\n"
    )


def test_key_of_another_certificate_is_named_with_its_line(tmp_path):
    assert in_folder(tmp_path, "cert", "dev", "--out", "a").returncode == 0
    (tmp_path / "m.yaml").write_text(
        "tls:\n  server: {certificate: a/server.pem,\n    key: a/client-key.pem,\n"
        "    client_ca: a/ca.pem}\n  manager:\n    certificate: a/server.pem\n"
        "    key: a/server-key.pem\n    client_ca: absent.pem\n"
    )
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    first, second = checked.stderr.splitlines()
    assert first.startswith("muster config check: m.yaml: line 3: tls, server, key: ")
    assert "does not belong to certificate" in first
    assert second.startswith("muster config check: m.yaml: line 8: tls, manager, client_ca: ")


def test_a_file_that_is_not_there(tmp_path):
    checked = in_folder(tmp_path, "config", "check", "absent.yaml")
    assert checked.returncode == 1
    assert checked.stderr == (
        "muster config check: Cannot read absent.yaml: No such file or directory\n"
    )


def test_usage():
    assert run("config", "check").returncode == 2
    assert run("config", "check", "a", "b").returncode == 2
    assert run("config", "show", "--confg", "a").returncode == 2
    assert "Did you mean 'config check'?" in run("config", "chek").stderr


EVERYTHING = {
    "regions": [
        {"code": 2, "name": "EU", "latitude": 50.11, "longitude": 8.68},
        {"code": 40, "name": "MOON"},
    ],
    "fleets": [
        {"name": "default"},
        {"name": "arena", "ready_required": True},
        {
            "name": "rooms",
            "provider": "agent",
            "game": "g",
            "server": "s",
            "binary": "b",
            "max_players": 4,
            "server_settings": '{"a": "\\""}',
            "versions": [{"name": "1.0"}],
            "fill": "spread",
            "queue_timeout_s": 5,
        },
        {
            "name": "cluster",
            "provider": "agones",
            "max_players": 4,
            "regions": ["EU"],
            "token": "player-id",
            "agones": {"fleet": "simple", "list": "players"},
        },
    ],
    "default_region": "MOON",
    "rates": {"create": [{"count": 1, "seconds": 2}]},
    "tokens": [
        {"token": "open sesame", "role": "server", "fleet": "arena", "regions": ["MOON"]},
        {"token": "abracadabra", "role": "chat"},
    ],
    "timeouts": {"ack_ms": 1234},
    "limits": {"servers": 77},
    "listen": {"bind": "::1", "server_port": 0, "connections": 5},
    "http": {"port": 0, "metrics": "open"},
    "log": {"level": "debug", "format": "json"},
    "access": {"gamespace": "arena", "login_url": "https://login.example"},
    "routes": {"quilkin_file": "/srv/quilkin.yaml"},
    "kubernetes": {"url": "https://kube.example:6443"},
    "nats": {"urls": ["nats://a.example:4222", "tls://b.example:4222"], "user": "m u",
             "password": "hush", "max_deliver": 3},
    "pubsub": {"project": "games", "topic": "results", "subscription": "requests", "pulls": 1},
}


def digest_of(text):
    return re.search(r"digest ([0-9a-f]{16})", text)[1]


@pytest.mark.parametrize("config", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_what_is_shown_can_be_checked_and_shown_again(tmp_path, config):
    (tmp_path / "m.yaml").write_text(json.dumps(config))
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    shown = in_folder(tmp_path, "config", "show", "--config", "m.yaml").stdout
    again = run("config", "check", "-", stdin=shown)
    assert again.returncode == 0, again.stderr
    assert digest_of(again.stdout) == digest_of(checked.stdout) == digest_of(shown)
    (tmp_path / "shown.yaml").write_text(shown)
    assert in_folder(tmp_path, "config", "show", "--config", "shown.yaml").stdout == shown


def test_check_says_what_there_is(tmp_path):
    (tmp_path / "m.yaml").write_text(json.dumps(EVERYTHING))
    checked = in_folder(tmp_path, "config", "check", "m.yaml")
    assert re.fullmatch(
        r"m\.yaml is fine: 2 regions, 4 fleets, 2 tokens, 0 access keys; digest [0-9a-f]{16}\n",
        checked.stdout,
    )


def test_defaults_are_shown_without_a_file():
    shown = run("config", "show").stdout
    assert "  ack_ms: 5000 " in shown
    assert '  - {code: 2, name: "EU", latitude: 50.11, longitude: 8.68}\n' in shown


def test_no_token_is_shown(tmp_path):
    (tmp_path / "m.yaml").write_text(json.dumps(EVERYTHING))
    shown = in_folder(tmp_path, "config", "show", "--config", "m.yaml").stdout
    for token in ("open sesame", "abracadabra"):
        assert token not in shown
        summed = subprocess.run(
            ["b2sum", "-l", "256"], input=token.encode(), capture_output=True, check=True
        )
        assert summed.stdout.decode().split()[0] in shown


# --- the documentation is true


def test_the_example_is_fine():
    checked = run("config", "check", REPO / "docs/examples/muster.yaml")
    assert checked.returncode == 0, checked.stderr


def test_the_example_has_every_section():
    text = (REPO / "docs/examples/muster.yaml").read_text()
    for section in SECTIONS.split(", "):
        assert re.search(rf"^#? ?{section}:", text, re.MULTILINE), section


def test_the_table_of_keys_is_in_the_documentation():
    assert run("config", "keys").stdout in (REPO / "docs/configuration.md").read_text()
