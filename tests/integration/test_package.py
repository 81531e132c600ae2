"""The Debian package: what is in it, and that what it installs starts and runs a game. It is installed
into a folder, by dpkg and with its own scripts, which so create their user there and not here."""

import fcntl
import gzip
import os
import re
import shlex
import stat
import subprocess
from pathlib import Path

import players
import pytest
from agent_proc import MARK, Agent
from muster_proc import REPO, Muster, binary, run
from real_rooms import playing
from world import World

BUILD = Path(binary()).parent
PATIENCE_S = 120
ARENA = """
  - name: arena
    provider: agent
    game: arena
    server: main
    binary: {binary}
    max_players: 4
    env: [{{key: {mark}, value: {folder}}}]
    versions: [{{name: "1.0"}}]
default_region: EU
"""
SHELLS = {"bash": "bash-completion/completions/muster", "zsh": "zsh/vendor-completions/_muster",
          "fish": "fish/vendor_completions.d/muster.fish"}
EXPECTED = {
    "/etc/default/muster-agent", "/etc/muster/muster.yaml", "/usr/bin/muster",
    "/usr/lib/muster/muster-shim", "/usr/lib/muster/arena",
    "/usr/lib/systemd/system/muster.service", "/usr/lib/systemd/system/muster-agent.service",
    "/usr/lib/sysusers.d/muster.conf", "/usr/lib/tmpfiles.d/muster.conf",
    "/usr/share/man/man1/muster.1.gz", "/usr/share/man/man5/muster.yaml.5.gz",
    *(f"/usr/share/{place}" for place in SHELLS.values()),
    "/usr/share/muster/grafana/muster.json", "/usr/share/muster/prometheus/muster.rules.yml",
    "/usr/share/muster/sdk/c/muster.c", "/usr/share/muster/sdk/c/muster.h",
    "/usr/share/muster/sdk/c/muster_room.c", "/usr/share/muster/sdk/c/muster_room.h",
    "/usr/share/muster/sdk/python/muster_room.py", "/usr/share/lintian/overrides/muster",
    "/usr/share/doc/muster/copyright", "/usr/share/doc/muster/changelog.gz",
    "/usr/share/doc/muster/README.md", "/usr/share/doc/muster/examples/muster.yaml",
    "/usr/share/doc/muster/examples/arena/arena.c",
}


def ran(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          timeout=PATIENCE_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    """Made anew, one at a time: CPack works inside the build folder."""
    if not (BUILD / "CPackConfig.cmake").exists():
        pytest.skip("builds with sanitizers are not packaged")
    folder = tmp_path_factory.mktemp("deb")
    with open(BUILD / "package" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder, cwd=folder)
    (made,) = folder.glob("muster_*.deb")
    return made


@pytest.fixture(scope="module")
def root(deb, tmp_path_factory):
    return Root(tmp_path_factory.mktemp("root"), deb)


class Root:
    """A folder with the package installed in it, and no other."""

    def __init__(self, folder, deb):
        self.folder = folder
        for part in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"):
            (folder / part).mkdir(parents=True)
        for name in ("status", "available"):
            (folder / "var/lib/dpkg" / name).touch()
        self.dpkg("--install", deb)

    def dpkg(self, *arguments):
        fake = [] if os.geteuid() == 0 else ["fakeroot"]
        return ran(*fake, "dpkg", f"--root={self.folder}", "--force-script-chrootless",
                   "--force-depends", "--force-not-root", "--force-confold", "--log=/dev/null",
                   *arguments, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})

    def __truediv__(self, path):
        return self.folder / path.lstrip("/")

    def muster(self, *arguments):
        return ran(self / "/usr/bin/muster", *arguments)

    def unit(self, name):
        return (self / f"/usr/lib/systemd/system/{name}.service").read_text().replace("\\\n", "")

    def exec_start(self, name):
        return shlex.split(re.search(r"^ExecStart=(.*)$", self.unit(name), re.M)[1])


# ── what is in it ─────────────────────────────────────────────────────────────────────────────


def test_every_file_has_its_place(deb):
    listed = [line.split(None, 5) for line in ran("dpkg-deb", "--contents", deb).splitlines()]
    paths = {line[5].lstrip(".") for line in listed}
    assert EXPECTED <= paths, EXPECTED - paths
    for mode, owner, _, _, _, path in listed:
        assert re.match(r"\./(etc/(default|muster)/|usr/(bin|lib|share)/|etc/$|usr/$|$)", path), path
        assert owner == "root/root" and mode[5] != "w" and mode[8] != "w", path
        assert "__pycache__" not in path


def test_it_says_what_it_needs(deb):
    """Also the libraries that are loaded late, which nothing finds by itself."""
    needs = ran("dpkg-deb", "--field", deb, "Depends")
    for name in ("libarchive13", "libcurl3-gnutls", "libzmq5", "libuv1", "libsqlite3-0", "libc6"):
        assert re.search(rf"(^|, ){name}( \(|,|$)", needs), needs
    suggests = ran("dpkg-deb", "--field", deb, "Suggests")
    source = "".join(path.read_text() for path in (REPO / "src").rglob("*.c"))
    named = re.findall(r'cannot be loaded; install the package ([^"]+?)\.?"', source)
    assert len(named) >= 3 and all(name in needs + suggests for name in named), named
    assert ran("dpkg-deb", "--field", deb, "Version").strip() == run("--version").stdout.split()[1]
    conffiles = ran("dpkg-deb", "--info", deb, "conffiles").split()
    assert conffiles == ["/etc/default/muster-agent", "/etc/muster/muster.yaml"]


# ── what is installed ─────────────────────────────────────────────────────────────────────────


def test_its_scripts_make_the_user_and_turn_on_the_service(root):
    (user,) = [line for line in (root / "/etc/passwd").read_text().splitlines()
               if line.startswith("muster:")]
    assert user.endswith(":/var/lib/muster:/usr/sbin/nologin")
    assert stat.S_IMODE((root / "/var/lib/muster").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "/etc/muster/muster.yaml").stat().st_mode) == 0o640
    enabled = list((root / "/etc/systemd/system/multi-user.target.wants").iterdir())
    assert [link.name for link in enabled] == ["muster.service"]


def test_manual_and_completion_are_what_the_program_says(root):
    for section, page in (("1", "muster.1"), ("5", "muster.yaml.5")):
        packed = (root / f"/usr/share/man/man{section}/{page}.gz").read_bytes()
        assert gzip.decompress(packed).decode() == root.muster("man", section)
    for shell, place in SHELLS.items():
        assert (root / f"/usr/share/{place}").read_text() == root.muster("completion", shell)


def test_units_are_sound_and_start_what_there_is(root, tmp_path):
    for name in ("muster", "muster-agent"):
        program = root.exec_start(name)[0]
        assert os.access(root / program, os.X_OK)
        here = tmp_path / f"{name}.service"
        here.write_text(root.unit(name).replace(f"={program} ", f"={root / program} "))
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", here], capture_output=True,
                              text=True, timeout=PATIENCE_S)
        assert said.returncode == 0 and name not in said.stderr, said.stderr
    agent = root.unit("muster-agent")
    assert "\nKillMode=process\n" in agent and "\nOOMPolicy=continue\n" in agent
    for option in re.findall(r"--[a-z-]+", " ".join(root.exec_start("muster-agent"))):
        assert f" {option} " in root.muster("agent", "--help"), option


def test_the_configuration_is_sound_and_lets_nobody_in(root):
    path = root / "/etc/muster/muster.yaml"
    assert "is fine" in root.muster("config", "check", path)
    shown = root.muster("config", "show", "--config", path)
    assert len(re.findall(r"bind: [\"']?127\.0\.0\.1", shown)) == 2
    assert re.search(r"^tokens: \[\]", shown, re.M)


class Installed(Muster):
    """As the unit starts it, with its configuration and a fleet, in folders of this test."""

    def __init__(self, folder, root):
        super().__init__(folder)
        self.binary = root / root.exec_start("muster")[0]
        self.command = root.exec_start("muster")[1:]
        self.yaml = folder / "muster.yaml"
        self.yaml.write_text((root / "/etc/muster/muster.yaml").read_text() +
                             ARENA.format(binary=root / "/usr/lib/muster/arena", mark=MARK,
                                          folder=folder))

    def arguments(self, *_):
        changed = {"/etc/muster/muster.yaml": self.yaml, "/var/lib/muster": self.data}
        ports = ["--server-port", 0, "--manager-port", 0, "--client-port", 0, "--http", "127.0.0.1:0"]
        assert set(changed) <= set(self.command)
        return [*(changed.get(word, word) for word in self.command), *ports]


def test_it_starts_and_runs_a_game(root, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSTER_BIN", str(root / "/usr/bin/muster"))
    world = World(tmp_path)
    world.muster = Installed(tmp_path, root)
    world.start()
    try:
        token = players.token_of(world, "host", "game_host")
        with Agent(tmp_path, "http://%s:%d" % world.muster.http_address, token) as agent:
            world.wait(lambda: world.api.all("/v1/hosts"), "heartbeat of the host")
            with playing(players.Player(world, "ann").create()) as lines:
                assert lines.readline() == "welcome ann\n"
            programs = {os.readlink(f"/proc/{pid}/exe") for pid in agent.pids()}
            wanted = ("/usr/lib/muster/muster-shim", "/usr/lib/muster/arena")
            assert programs == {str(root / path) for path in wanted}
    finally:
        world.stop()


# ── its life ──────────────────────────────────────────────────────────────────────────────────


def test_an_upgrade_keeps_what_was_changed_and_purging_keeps_data(deb, tmp_path):
    root = Root(tmp_path / "root", deb)
    changed = root / "/etc/muster/muster.yaml"
    changed.write_text(changed.read_text() + "default_region: EU\n")
    changed.chmod(0o600)
    (root / "/var/lib/muster/secret").write_text("kept")
    (root / "/etc/muster/agent.token").touch()

    root.dpkg("--install", deb)
    assert changed.read_text().endswith("default_region: EU\n")
    assert stat.S_IMODE(changed.stat().st_mode) == 0o600

    root.dpkg("--remove", "muster")
    assert changed.exists() and not (root / "/usr/bin/muster").exists()

    said = root.dpkg("--purge", "muster")
    assert "what was kept in /var/lib/muster stays" in said
    assert (root / "/var/lib/muster/secret").read_text() == "kept"
    for gone in ("/etc/muster", "/etc/default/muster-agent", "/usr/share/muster",
                 "/etc/systemd/system/multi-user.target.wants/muster.service"):
        assert not os.path.lexists(root / gone), gone


def test_make_install_goes_below_its_prefix(tmp_path):
    def install():
        with open(BUILD / "package" / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ran("cmake", "--install", BUILD, "--prefix", "/opt/muster",
                env={**os.environ, "DESTDIR": str(tmp_path)})

    install()
    prefix = tmp_path / "opt/muster"
    assert os.access(prefix / "bin/muster", os.X_OK)
    assert os.access(prefix / "lib/muster/muster-shim", os.X_OK)
    unit = (prefix / "lib/systemd/system/muster.service").read_text()
    assert "\nExecStart=/opt/muster/bin/muster serve " in unit
    assert sorted(path.name for path in tmp_path.iterdir()) == ["etc", "opt"]
    config = tmp_path / "etc/muster/muster.yaml"
    config.write_text("{}\n")
    install()
    assert config.read_text() == "{}\n"
