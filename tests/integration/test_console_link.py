"""`muster console`: a link that opens the console, logged in, with a token made for that."""

import json
import re
import subprocess
import time
import urllib.request
from datetime import datetime

import pytest
import snapshot
from muster_proc import binary, run

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=([\w.-]+)\n?")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def url_of(world):
    return "http://%s:%d" % world.muster.http_address


def where(world):
    return ["--url", url_of(world), "--data", str(world.muster.data)]


def me(link):
    url, token = LINK.fullmatch(link).groups()
    asked = urllib.request.Request(f"{url}/v1/me", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return json.load(answer)


def left_s(shown):
    return datetime.fromisoformat(shown["expires_at"].replace("Z", "+00:00")).timestamp() - time.time()


def test_the_link_is_alone_on_its_line_and_logs_in_as_administrator(world):
    made = run("console", *where(world))
    assert made.returncode == 0, made.stderr
    url, token = LINK.fullmatch(made.stdout).groups()
    assert url == url_of(world)
    shown = me(made.stdout)
    assert shown["account"] == "admin"
    assert {"muster_admin", "muster_read", "muster_allocate", "game_ban"} <= set(shown["scopes"])
    assert 11.9 * 3600 < left_s(shown) <= 12 * 3600 + 1
    assert "Whoever has this link is administrator, until 20" in made.stderr
    assert token not in made.stderr
    newest = world.api.all("/v1/audit")[0]
    assert (newest["action"], newest["who"]) == ("issue", "admin")


def test_one_for_who_only_looks_lasts_as_long_as_asked(world):
    made = run("console", "--read-only", "--expires", "30d", *where(world))
    shown = me(made.stdout)
    assert shown["scopes"] == ["muster_read"]
    assert 29.9 * 86400 < left_s(shown) <= 30 * 86400 + 1
    assert "Whoever has this link sees everything, until 20" in made.stderr


def test_as_json_for_scripts(world):
    made = json.loads(run("console", "-o", "json", *where(world)).stdout)
    assert made.keys() == {"url", "account", "expires_at"}
    assert me(made["url"])["expires_at"] == made["expires_at"]


def test_who_may_make_no_token_gets_no_link(world):
    looker = run("token", "issue", "--account", "looker", "--scopes", "muster_read", *where(world)).stdout.strip()
    made = run("console", "--url", url_of(world), "--token", looker)
    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr == "muster console: This needs the scope muster_admin, which the access token has not.\n"
    wrong = run("console", "--url", url_of(world), "--token", "guess")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "The access token is not valid" in wrong.stderr


@pytest.mark.parametrize("arguments, code, said", [
    (["--url", "http://127.0.0.1:1"], 3, "cannot reach Muster"),
    (["--expires", "5"], 2, "--expires takes 60 to 31622400 seconds, not '5'"),
    (["--readonly"], 2, "--read-only"),
])
def test_what_cannot_be_is_said(arguments, code, said):
    made = run("console", *arguments)
    assert (made.returncode, made.stdout) == (code, "")
    assert said in made.stderr


def test_help():
    snapshot.check("help_of_console", run("console", "--help").stdout, aligned=True)


@pytest.mark.parametrize("mode", ["--dev", None])
def test_serve_in_development_mode_prints_a_link_that_logs_in(tmp_path, mode):
    ports = ["--http", "127.0.0.1:0", "--server-port", "0", "--manager-port", "0", "--client-port", "0"]
    log = tmp_path / "log"
    with open(log, "w") as errors:
        serve = subprocess.Popen([binary(), "serve", *filter(None, [mode]), "--data", tmp_path / "data", *ports],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        ready = serve.stdout.readline()
        if mode:
            line = serve.stdout.readline()
            link, said = re.fullmatch(r"console (\S+) \((.*)\)\n", line).groups()
            assert said == "whoever has this link is administrator for 12 h"
            assert LINK.fullmatch(link)[1] == "http://" + re.search(r"http=(\S+)", ready)[1]
            shown = me(link)
            assert "muster_admin" in shown["scopes"] and left_s(shown) <= 12 * 3600 + 1
            assert LINK.fullmatch(link)[2] not in log.read_text()
    finally:
        serve.terminate()
        rest = serve.communicate(timeout=20)[0]
    assert "token" not in rest
