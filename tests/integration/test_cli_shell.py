"""What shells and `man` are given: completion and manual pages, made of the tables of --help."""

import http.server
import json
import os
import re
import subprocess
import threading

import pytest
from chat import EU, USE
from muster_proc import REPO, binary, run
from terminal import Terminal

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_ENROL_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)



VERBS = re.findall(r"^### muster (.+)$", (REPO / "docs" / "cli.md").read_text(), re.MULTILINE)


def candidates(*words, env=None):
    """What is offered for the last of the words: {word: what it is}."""
    result = run("completion", "words", "--", *words, env=env)
    assert result.returncode == 0 and not result.stderr
    lines = [line.partition("\t") for line in result.stdout.splitlines()]
    return {word: about for word, _, about in lines}


def where(world):
    host, port = world.muster.http_address
    return ["--url", f"http://{host}:{port}", "--data", str(world.muster.data)]


# --- what is offered


def test_every_verb_is_offered_by_its_words():
    first = candidates("")
    for verb in VERBS:
        family, _, second = verb.partition(" ")
        assert family in first
        if second:
            assert candidates(family, "")[second]
        else:
            assert first[family]
    assert candidates("dra").keys() == {"drain"}
    assert candidates("help", "dra").keys() == {"drain"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_the_help_is_offered_and_no_other(verb):
    text = run(*verb.split(), "--help").stdout
    listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    assert sorted(candidates(*verb.split(), "--")) == sorted([*listed, "--help"])


@pytest.mark.parametrize(
    "words,offered",
    [
        (["servers", "-o", ""], {"table", "wide", "json"}),
        (["servers", "--output", "j"], {"json"}),
        (["servers", "--output=j"], {"--output=json"}),
        (["servers", "--output", "="], {"table", "wide", "json"}),
        (["servers", "--output", "=", "w"], {"wide"}),
        (["serve", "--log-level", "w"], {"warn"}),
        (["servers", "--watch", "--status", "f"], {"full"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["man", ""], {"1", "5"}),
        (["config", "check", ""], {":files"}),
        (["serve", "--data", "x"], {":folders"}),
        (["deploy", "arena", "1.0", ""], {":files"}),
        (["dump", "--hex", ""], {":files"}),
        (["servers", "--limit", ""], set()),
        (["no-such-verb", ""], set()),
        (["drain", "1", "2", ""], set()),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_values(words, offered):
    assert candidates(*words).keys() == offered


def test_names_are_asked_for(world):
    world.server(region=EU, port=20001)
    world.server(region=USE, port=20002)
    there = where(world)
    assert {"EU", "USE"} <= candidates("servers", *there, "--region", "").keys()
    assert candidates("servers", *there, "--region=EU").keys() == {"--region=EU"}
    assert candidates("servers", *there, "--fleet", "")["default"]
    assert candidates("drain", *there, "").keys() == {"1", "2"}
    both = candidates("token", "enrol", *there, "--regions", "EU,US")
    assert both.keys() == {"EU,USE", "EU,USW"}
    env = {"MUSTER_URL": there[1], "MUSTER_TOKEN": (world.muster.data / "admin.token").read_text().strip()}
    assert candidates("server", "", env=env)["1"] == "available"


def test_nobody_there_is_silence():
    nobody = ["--url", "http://127.0.0.1:1", "--token", "t"]
    assert candidates("servers", *nobody, "--region", "") == {}
    assert candidates("drain", *nobody, "") == {}
    assert candidates("drain", "--url", "ftp:what", "-").keys() >= {"--url"}


def test_names_that_a_shell_would_run_are_not_offered():
    """A name is somebody else's; an Enter after a Tab must not be his."""
    names = ["good-1", "$(touch x)", "a;b", "`id`", "two words", "esc\x1b[2J", "", "~root", "a\nb"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            items = [{"name": n, "provider": "\x1b[2Jchat"} for n in names]
            body = json.dumps({"items": items, "next": None}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        found = candidates("servers", "--url", url, "--token", "t", "--fleet", "")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found == {"good-1": "?[2Jchat"}


# --- the scripts, in real shells


@pytest.fixture
def scripts(tmp_path):
    """The scripts in files, and the program in the path by its name."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "muster").symlink_to(binary())
    for shell in SHELLS:
        (tmp_path / shell).write_text(run("completion", shell).stdout)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def in_shell(shell, *command):
        result = subprocess.run([shell, *command], env=env, cwd=tmp_path, capture_output=True,
                                text=True, timeout=30, stdin=subprocess.DEVNULL)
        assert result.returncode == 0 and not result.stderr, result.stderr
        return result.stdout.split("\n")[:-1]

    in_shell.folder = tmp_path
    in_shell.env = env
    return in_shell


@pytest.mark.parametrize(
    "words,offered",
    [
        (["servers", "--sta"], ["--status"]),
        (["token", "r"], ["revoke", "rotate"]),
        (["servers", "--output", "=", "j"], ["json"]),
        (["servers", "--status", ""], ["available", "full", "draining", "offline", "starting",
                                       "running", "ending", "gone"]),
        (["--ver"], ["--version"]),
    ],
    ids=lambda v: " ".join(v),
)
def test_bash(scripts, words, offered):
    line = " ".join(f"'{word}'" for word in ["muster", *words])
    out = scripts("bash", "--norc", "-c", f"source {scripts.folder}/bash; COMP_WORDS=({line}); "
                  f"COMP_CWORD={len(words)}; _muster; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    assert out == offered


def test_bash_completes_what_is_typed(scripts):
    with Terminal("--norc", "--noprofile", "-i", program="/bin/bash",
                  env={**scripts.env, "PS1": "> ", "INPUTRC": "/dev/null"}) as terminal:
        terminal.screen.feed = lambda text: None  # bash has codes of its own; the raw text will do
        see = lambda text: terminal.wait(lambda: text in terminal.raw, text)  # noqa: E731
        terminal.press(f"source {scripts.folder}/bash\n")
        see("> ")
        terminal.press("muster drai\t--time\t5\x01echo \n")
        see("\rmuster drain --timeout 5")


@pytest.mark.parametrize(
    "words,offered",
    [
        (["servers", "--sta"], ["--status:only in this status: available, full, draining, offline, "
                                "starting, running, ending or gone"]),
        (["man", ""], ["1:", "5:"]),
        (["servers", "--output=w"], ["--output=wide:"]),
    ],
    ids=lambda v: " ".join(v),
)
def test_zsh(scripts, words, offered):
    """compsys has no way to ask it from outside, so its last step is one of the test's own."""
    line = " ".join(f"'{word}'" for word in ["muster", *words])
    out = scripts("zsh", "-f", "-c", "compdef() {}; _describe() { print -rl -- ${(P)2} }; "
                  f"source {scripts.folder}/zsh; words=({line}); CURRENT={len(words) + 1}; "
                  f"PREFIX='{words[-1]}'; _muster")
    assert out == offered


def test_zsh_completes_what_is_typed(scripts):
    (scripts.folder / "_muster").write_text((scripts.folder / "zsh").read_text())
    with Terminal("-f", "-i", program="/bin/zsh", env={**scripts.env, "PS1": "> "}) as terminal:
        terminal.screen.feed = lambda text: None
        see = lambda text: terminal.wait(lambda: text in terminal.raw, text)  # noqa: E731
        terminal.press(f"fpath=({scripts.folder} $fpath); autoload -Uz compinit && compinit -u -D; echo set-up\n")
        see("\nset-up")
        terminal.press("muster drai\t--time\t5\x01echo \n")
        see("\nmuster drain --timeout 5")


@pytest.mark.parametrize(
    "line,offered",
    [
        ("muster tok", ["token"]),
        ("muster token ro", ["rotate\treplace a token by a new one; the old works a while longer"]),
        ("muster servers -o ", ["json", "table", "wide"]),
        ("muster servers --output=j", ["--output=json"]),
        ("muster config check bi", ["bin/"]),
    ],
)
def test_fish(scripts, line, offered):
    out = scripts("fish", "--no-config", "-c", f"source {scripts.folder}/fish; complete -C '{line}'")
    assert out == offered


@pytest.mark.parametrize("arguments", [[], ["csh"], ["bash", "zsh"], ["--no-such"]], ids=str)
def test_completion_refuses_what_it_has_not(arguments):
    result = run("completion", *arguments)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert not result.stdout


# --- manual pages


@pytest.mark.parametrize("page", ["1", "5"])
def test_manual_pages_have_no_mistake(page, tmp_path):
    """No date, so that the same tables give the same page; mandoc would like one."""
    path = tmp_path / f"muster.{page}"
    path.write_text(run("man", page).stdout)
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(path)],
                          capture_output=True, text=True, timeout=30)
    said = [line for line in (lint.stdout + lint.stderr).splitlines() if "missing date" not in line]
    assert said == []


def rendered(page, tmp_path):
    path = tmp_path / f"muster.{page}"
    path.write_text(run("man", page).stdout)
    text = subprocess.run(["mandoc", "-T", "ascii", "-O", "width=200", str(path)],
                          capture_output=True, text=True, timeout=30, check=True).stdout
    return re.sub(".\x08", "", text)


def test_manual_of_the_program_has_every_verb_and_option(tmp_path):
    text = rendered("1", tmp_path)
    for verb in VERBS:
        assert re.search(rf"^   muster {verb}\b", text, re.MULTILINE), verb
        for option in re.findall(r"^  ((?:-\w, )?--[\w-]+)", run(*verb.split(), "--help").stdout,
                                 re.MULTILINE):
            assert f"       {option}" in text, f"{verb} {option}"
    assert "source <(muster completion bash)" in text
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "NO_COLOR", "EXIT STATUS", "muster.yaml(5)"):
        assert name in text


def test_manual_of_the_configuration_has_every_key(tmp_path):
    text = rendered("5", tmp_path)
    keys = re.findall(r"^\| `([\w.]+)`", run("config", "keys").stdout, re.MULTILINE)
    assert len(keys) > 100
    for key in keys:
        assert re.search(rf"^       {re.escape(key)}\b", text, re.MULTILINE), key
    example = re.search(r"^( +)fleets:\n(?:.*\S\n)+", text, re.MULTILINE)
    config = tmp_path / "muster.yaml"
    config.write_text(re.sub(rf"^{example[1]}", "", example[0], flags=re.MULTILINE))
    assert run("config", "check", config).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["7"], ["1", "5"]], ids=str)
def test_man_refuses_what_it_has_not(arguments):
    result = run("man", *arguments)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert not result.stdout
