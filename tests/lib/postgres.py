"""Debian's PostgreSQL for tests: in a temporary folder, on a port of 127.0.0.1 that it keeps over
restarts, with fsync on, never as root. It ends with the thread that started it, however that ends,
so start it in the test's own. A Pair has a synchronous standby beside it, that can take over.

    with Postgres() as pg:
        url = pg.url(pg.make_database("cell"))
"""

import csv
import ctypes
import glob
import io
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from ports import free_ports

DEADLINE_S = 30.0
USER = "muster"
PASSWORD = "open/sesame"  # %2F in a URL
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    # A server that is stopped hard is not waited for.
    "wal_sender_timeout": "5s",
    "wal_receiver_timeout": "5s",
    "wal_retrieve_retry_interval": "200ms",
}

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
csv.field_size_limit(1 << 30)


def folder_of_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    assert found, "PostgreSQL is not installed: the package is postgresql-15"
    return Path(found[-1])


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Failed(AssertionError):
    pass


def pidfds_of(pids):
    for pid in pids:
        try:
            yield os.pidfd_open(pid)
        except ProcessLookupError:
            pass


def await_ends(pidfds):
    """Until each of these processes has ended; closes them."""
    deadline = time.monotonic() + DEADLINE_S
    for fd in pidfds:
        ended, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        os.close(fd)
        if not ended:
            raise Failed(f"a process of PostgreSQL does not end within {DEADLINE_S} s")


class Postgres:
    """One server. Start it with start(), or use it in a with block."""

    def __init__(self, settings=None, port=None):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-postgres-"))
        self.data = self.folder / "data"
        self.port = port or free_ports()
        self.settings = {**SETTINGS, **(settings or {})}
        self.process = None
        self.stopped = False  # by SIGSTOP
        self.as_user = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def __repr__(self):
        return f"postgres at {self.port}"

    # --- programs

    def popen(self, program, *arguments, **options):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("PG")}
        env.update(LC_ALL="C.UTF-8", PGPASSWORD=PASSWORD, **options.pop("env", {}))
        return subprocess.Popen(
            [folder_of_programs() / program, *map(str, arguments)],
            cwd=self.folder, env=env, preexec_fn=end_with_parent, **self.as_user,
            **{"stdin": subprocess.DEVNULL, **options})

    def run(self, program, *arguments, stdin=None, timeout_s=DEADLINE_S):
        """A program that ends by itself; returns what it printed."""
        process = self.popen(program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(stdin, timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"{self}: {program} does not end within {timeout_s} s") from None
        if process.returncode != 0:
            raise Failed(f"{self}: {program} ended with {process.returncode}: {err}")
        return out

    # --- its life

    def make_data(self):
        secret = self.folder / "password"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o644)
        self.run("initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256", "-E", "UTF8",
                 "--no-sync", f"--pwfile={secret}")

    def start(self):
        """Returns when it takes connections."""
        if not self.data.exists():
            self.make_data()
        path = self.folder / "notify"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as said:
            said.bind(str(path))
            path.chmod(0o777)
            said.settimeout(0.1)
            options = [f"-c{key}={value}" for key, value in self.settings.items()]
            with open(self.folder / "log", "ab") as log:
                self.process = self.popen("postgres", "-D", self.data, "-p", self.port, "-k",
                                          self.folder, *options, stdout=log, stderr=log,
                                          env={"NOTIFY_SOCKET": str(path)})
            try:
                self.await_ready(said)
            except BaseException:
                self.kill9()
                raise
        return self

    def await_ready(self, said):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                if b"READY=1" in said.recv(4096):
                    return
            except TimeoutError:
                if self.process.poll() is not None:
                    raise Failed(f"{self} ended with {self.process.returncode}\n{self.log()}") \
                        from None
        raise Failed(f"{self} is not ready within {DEADLINE_S} s\n{self.log()}")

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def children(self):
        return [int(p) for p in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def signal_all(self, number):
        """The server and all of its processes, which are none of one group."""
        self.process.send_signal(signal.SIGSTOP)  # it makes no new ones meanwhile
        for pid in self.children():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        if number != signal.SIGSTOP:
            self.process.send_signal(number)

    def kill9(self):
        """As when its machine loses power: all of it at once. What waits for the disk ends later than
        the rest, and a server that is started meanwhile finds its memory in use."""
        if self.running:
            self.process.send_signal(signal.SIGSTOP)
            ends = list(pidfds_of(self.children()))
            self.signal_all(signal.SIGKILL)
            self.process.wait(DEADLINE_S)
            await_ends(ends)
        self.stopped = False

    def stop(self, number=signal.SIGINT):
        """SIGINT lets nobody finish, SIGTERM waits for all who are connected, SIGQUIT is a crash."""
        if self.running:
            self.resume()
            self.process.send_signal(number)
            self.process.wait(DEADLINE_S)

    def restart(self, number=signal.SIGINT):
        self.stop(number)
        return self.start()

    def pause(self):
        """It neither answers nor ends."""
        self.signal_all(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        if self.stopped:
            self.signal_all(signal.SIGCONT)
            self.stopped = False

    def close(self):
        self.kill9()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    # --- what is in it

    def url(self, database="postgres", *others, **parameters):
        """Others are servers that are tried behind this one, in their order."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self, *others))
        rest = "&".join(f"{key}={quote(str(value))}" for key, value in parameters.items())
        return (f"postgres://{USER}:{quote(PASSWORD, safe='')}@{hosts}/{database}"
                + (f"?{rest}" if rest else ""))

    def rows(self, sql, database="postgres"):
        """What the last statement gave, as tuples of texts; NULL and the empty text are both ''."""
        out = self.run("psql", "-X", "-q", "--csv", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                       "-p", self.port, "-U", USER, "-d", database, "-f", "-", stdin=sql)
        return [tuple(row) for row in csv.reader(io.StringIO(out))]

    def value(self, sql, database="postgres"):
        """The first field of the first row, or None."""
        rows = self.rows(sql, database)
        return rows[0][0] if rows else None

    def make_database(self, name):
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        self.rows(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        return name

    def await_value(self, sql, wanted, timeout_s=DEADLINE_S):
        deadline = time.monotonic() + timeout_s
        while (found := self.value(sql)) != wanted:
            if time.monotonic() > deadline:
                raise Failed(f"{self}: {sql} gives {found!r} and not {wanted!r}\n{self.log()}")
            time.sleep(0.02)

    # --- two of them

    def follow(self, primary):
        """Starts as a standby of the other; what this one had is forgotten."""
        self.kill9()
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "--no-sync",
                 "-h", "127.0.0.1", "-p", primary.port, "-U", USER)
        # A primary that waits for standbys does so when it is one, and not before.
        with open(self.data / "postgresql.auto.conf", "a") as f:
            f.write("synchronous_standby_names = ''\n")
        return self.start()

    def set_synchronous(self, on):
        """With on, every commit waits from now on until a standby has it too."""
        wanted = "*" if on else ""
        self.rows(f"ALTER SYSTEM SET synchronous_standby_names = '{wanted}'")
        self.rows("SELECT pg_reload_conf()")
        if on:
            self.await_value("SELECT sync_state FROM pg_stat_replication", "sync")
        self.await_value("SHOW synchronous_standby_names", wanted)

    def promote(self):
        """A standby becomes a primary; returns when it takes writes."""
        assert self.value(f"SELECT pg_promote(true, {int(DEADLINE_S)})") == "t", self.log()

    @property
    def is_standby(self):
        return self.value("SELECT pg_is_in_recovery()") == "t"


class Pair:
    """A primary and its synchronous standby. Their addresses stay, their roles change."""

    def __init__(self, settings=None):
        self.primary = Postgres(settings)
        self.standby = Postgres(settings)
        self.both = (self.primary, self.standby)  # as they stand in the URL

    def start(self):
        self.primary.start()
        self.mend()
        return self

    def url(self, database="postgres", **parameters):
        return self.both[0].url(database, self.both[1], **parameters)

    def mend(self):
        """The standby is made anew from the primary, and waited for by commits."""
        self.standby.follow(self.primary)
        self.primary.set_synchronous(True)

    def fail_over(self):
        """The primary dies and the standby takes over, alone until mend()."""
        self.primary.kill9()
        self.primary, self.standby = self.standby, self.primary
        self.primary.promote()

    def rows(self, sql, database="postgres"):
        return self.primary.rows(sql, database)

    def value(self, sql, database="postgres"):
        return self.primary.value(sql, database)

    def make_database(self, name):
        return self.primary.make_database(name)

    def close(self):
        for server in self.both:
            server.close()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()
