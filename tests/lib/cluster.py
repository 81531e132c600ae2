"""The nodes of a cell, each a `muster serve` process on ports that stay its own, and who leads them."""

import ctypes
import os
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path

from history import now
from http_api import Api
from muster_proc import Muster, NotReady, write_config
from ports import free_ports
from postgres import PR_SET_PDEATHSIG
from world import config_of

START_S = 30.0
DOORS = ("server", "manager", "http", "client")
libc = ctypes.CDLL(None)


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Node(Muster):
    """What it prints is kept with the time it was read: "ready …" when it leads, "standby …"."""

    def __init__(self, folder, name, url, cell, secret, lease_ms=None, env=None, **options):
        super().__init__(folder, config_of(options) or {}, env=env)
        self.name = name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data.mkdir(mode=0o700, exist_ok=True)
        path = self.data / "secret"
        path.write_bytes(secret)
        path.chmod(0o600)
        self.config["cluster"] = {"store": url, "cell": cell, "node": name,
                                  **({"lease_ms": lease_ms} if lease_ms else {})}
        self.ports = {door: free_ports() for door in DOORS}
        for door in DOORS:
            setattr(self, f"{door}_address", ("127.0.0.1", self.ports[door]))
        self.said = []  # (when it was read, line)
        self.reader = None
        self.stopped = False

    def __repr__(self):
        return self.name

    def arguments(self, *_):
        return ["serve", "--data", self.data, "--dev", "--config",
                write_config(self.folder / "muster.yaml", self.config),
                "--server-port", self.ports["server"], "--manager-port", self.ports["manager"],
                "--client-port", self.ports["client"], "--http", f"127.0.0.1:{self.ports['http']}"]

    def begin(self):
        """Starts it, and does not wait."""
        self.said = []
        self.killed = self.stopped = False
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, *map(str, self.arguments())], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, env={**os.environ, **self.env},
                preexec_fn=end_with_parent)
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout, self.said),
                                       daemon=True)
        self.reader.start()
        return self

    def start(self, *_):
        return self.begin().await_word("ready", "standby")

    def read(self, stdout, said):
        for line in stdout:
            if line.startswith((b"ready ", b"standby ")):
                said.append((now(), line.decode().strip()))

    @property
    def word(self):
        """What it said last that it is: "ready", "standby" or None."""
        said = self.said
        return said[-1][1].split(" ")[0] if said and self.running else None

    def await_word(self, *words, timeout_s=START_S):
        """Until it says so, from now on or last."""
        deadline = time.monotonic() + timeout_s
        while self.word not in words:
            if not self.running:
                raise NotReady(f"{self} ended with {self.process.returncode}\n{self.log()[-3000:]}")
            if time.monotonic() > deadline:
                raise NotReady(f"{self} does not say {words} within {timeout_s} s, but "
                               f"{self.said[-1:]}\n{self.log()[-3000:]}")
            time.sleep(0.002)
        return self

    def finish(self):
        code = self.process.wait(START_S)
        self.reader.join(START_S)
        self.process.stdout.close()
        return code

    def pause(self):
        self.signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        self.signal(signal.SIGCONT)
        self.stopped = False

    def kill9(self):
        return super().kill9()  # ends a stopped one, too

    def ask(self, method, path, timeout_s=5, **options):
        return Api(self, self.token()).ask(method, path, timeout_s=timeout_s, **options)

    def token(self):
        return (self.data / "admin.token").read_text().strip()

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz", timeout_s=1).status == 200
        except OSError:
            return False

    def leads(self):
        """What a load balancer sees: the status of GET /leader, None when there is no answer."""
        try:
            return self.ask("GET", "/leader", timeout_s=1).status == 200
        except OSError:
            return None


class Cluster:
    """urls: one of the database, or one for each node. Use it in a with block; the nodes are started
    one after the other, so that the first leads."""

    def __init__(self, folder, urls, cell="main", names=("alpha", "beta"), envs=None, **options):
        self.folder = Path(folder)
        self.secret = secrets.token_bytes(32)
        urls = [urls] * len(names) if isinstance(urls, str) else urls
        self.nodes = [Node(self.folder / name, name, url, cell, self.secret,
                           env=(envs or {}).get(name), **options)
                      for name, url in zip(names, urls)]

    def __getitem__(self, name):
        return next(node for node in self.nodes if node.name == name)

    def __enter__(self):
        try:
            for node in self.nodes:
                node.start()
                self.await_leader()
            self.await_standbys()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            if node.process is not None and not node.process.stdout.closed:
                node.kill9()

    # --- who leads

    @property
    def leader(self):
        """By their own words; None when none says so, or when it is stopped."""
        return next((n for n in self.nodes if n.word == "ready" and not n.stopped), None)

    @property
    def standby(self):
        return next((n for n in self.nodes if n.word == "standby" and not n.stopped), None)

    def others(self, node):
        return [n for n in self.nodes if n is not node]

    def await_leader(self, but=None, timeout_s=START_S):
        deadline = time.monotonic() + timeout_s
        while (leader := self.leader) in (None, but):
            if time.monotonic() > deadline:
                raise NotReady(f"nobody leads within {timeout_s} s: {self.story()}")
            time.sleep(0.002)
        return leader

    def await_standbys(self, timeout_s=START_S):
        """Until the leader knows every other running node, and that it could lead."""
        deadline = time.monotonic() + timeout_s
        wanted = sum(n.running and not n.stopped for n in self.nodes) - 1
        while self.ready_standbys() < wanted:
            if time.monotonic() > deadline:
                raise NotReady(f"no standby is ready within {timeout_s} s: {self.story()}")
            time.sleep(0.02)

    def view(self):
        leader = self.leader
        answer = leader and leader.ask("GET", "/v1/cluster")
        return answer.json if answer and answer.status == 200 else None

    def ready_standbys(self):
        try:
            view = self.view()
        except OSError:
            return 0
        if not view:
            return 0
        # The row of a node that was killed and started again may be of its last life.
        themselves = {n.name for n in self.nodes if n.word == "standby" and n.running
                      and not n.stopped and n.is_ready()}
        return sum(n["state"] == "standby" and n["ready"] and n["heard_ms"] < 3000
                   and n["name"] in themselves for n in view["nodes"])

    def step_down(self, node):
        return node.ask("POST", "/v1/cluster/step-down", data={})

    def story(self):
        return "; ".join(f"{n}: {n.said[-3:]} {n.log()[-1500:]}" for n in self.nodes)

    @property
    def http_address(self):
        """As of one Muster, for those who know only one."""
        return self.await_leader().http_address

    @property
    def data(self):
        return self.nodes[0].data

    @property
    def api(self):
        return Api(self, self.nodes[0].token())

    def log(self):
        return "\n".join(f"--- {node}\n{node.log()[-4000:]}" for node in self.nodes)
