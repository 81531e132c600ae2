"""Nodes of a cell: `muster serve --store` processes that stand by, lead, and stand by again. What
each says on its standard output is kept with the time at which it said it.

    cell = Cell(tmp_path, postgres.url())
    a = cell.node("a").start()
    a.await_leading()
"""

import json
import os
import subprocess
import threading
import time

from http_api import Api
from muster_proc import Muster, NotReady, READY_LINE, START_DEADLINE_S, address

LEADING = "ready"
STANDING_BY = "standby"


class Cell:
    """The nodes of one test. They have the secret of the first."""

    def __init__(self, folder, url, name="eu", **options):
        self.folder = folder
        self.url = url
        self.name = name
        self.options = options  # of every node
        self.nodes = []

    def node(self, name, **options):
        folder = self.folder / name
        folder.mkdir()
        node = Node(folder, self, name, **{**self.options, **options})
        self.nodes.append(node)
        return node

    def share_secret(self, node):
        data = node.data
        first = next((n.data / "secret" for n in self.nodes if (n.data / "secret").exists()), None)
        if first is None or (data / "secret").exists():
            return
        data.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(data / "secret", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(first.read_bytes())

    def pair(self):
        """a leads, and b could."""
        a = self.node("a").start().await_leading()
        b = self.node("b").start().await_ready_to_lead()
        a.await_standby_ready()
        return a, b

    def stop(self):
        """All end in good order; returns what they ended with."""
        codes = []
        for node in self.nodes:
            if node.running:
                codes.append(node.term())
            node.__exit__()
        return codes


class Node(Muster):
    def __init__(self, folder, cell, name, url=None, config=None, lease_ms=None, dev=True, env=None):
        config = dict(config or {})
        if lease_ms:
            config["cluster"] = {**config.get("cluster", {}), "lease_ms": lease_ms}
        super().__init__(folder, config or None, dev=dev, env=env, embedded=True)
        self.cell = cell
        self.name = name
        self.url = url or cell.url
        self.said = []  # (when, line)
        self.heard = threading.Condition()

    def __repr__(self):
        return f"node {self.name}"

    def arguments(self, **ports):
        return [*super().arguments(**ports), "--store", self.url, "--cell", self.cell.name, "--node",
                self.name]

    def start(self, **ports):
        """Returns when it stands by: its ports are open."""
        self.begin(**ports)
        try:
            self.await_said(STANDING_BY, 0)
        except BaseException:
            self.kill9()
            raise
        return self

    def start_on_same_ports(self):
        return self.start(server_port=self.server_address[1], manager_port=self.manager_address[1],
                          http_port=self.http_address[1], client_port=self.client_address[1])

    def begin(self, **ports):
        self.cell.share_secret(self)
        self.said = []
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, *map(str, self.arguments(**ports))], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, env={**os.environ, **self.env})
        threading.Thread(target=self.listen, args=(self.process, self.said), daemon=True).start()

    def listen(self, process, said):
        for line in process.stdout:
            with self.heard:
                said.append((time.monotonic(), line.decode().rstrip("\n")))
                self.heard.notify_all()
        with self.heard:
            self.heard.notify_all()

    def finish(self):
        return self.process.wait(20)

    def __exit__(self, *_):
        if self.running:
            self.kill9()
        self.let_go()

    def words(self):
        """The roles it had, in their order."""
        return [line.split()[0] for _, line in self.said if line.split()[0] in (LEADING, STANDING_BY)]

    def await_said(self, word, since, timeout_s=START_DEADLINE_S):
        """When it first said so after the since-th line."""
        deadline = time.monotonic() + timeout_s
        with self.heard:
            while True:
                for when, line in self.said[since:]:
                    if line.startswith(word + " "):
                        self.take_ports(line)
                        return when
                left = deadline - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    raise NotReady(f"{self} has not said {word} within {timeout_s} s\n{self.log()}")
                self.heard.wait(min(left, 0.1))

    def take_ports(self, line):
        match = READY_LINE.match(line)
        assert match, line
        ports = [address(match[i]) for i in (1, 2, 3, 4)]
        before = [self.http_address, self.server_address, self.manager_address, self.client_address]
        if len(self.words()) > 1:
            assert ports == before, "the ports stay through all roles"
        self.http_address, self.server_address, self.manager_address, self.client_address = ports

    def await_leading(self, since=0, timeout_s=START_DEADLINE_S):
        self.led_at = self.await_said(LEADING, since, timeout_s)
        return self

    def await_standing_by(self, since=0, timeout_s=START_DEADLINE_S):
        self.await_said(STANDING_BY, since, timeout_s)
        return self

    # --- what it says

    @property
    def api(self):
        return Api(self).as_admin()

    def leads(self):
        return Api(self).ask("GET", "/leader").status == 200

    def cluster(self):
        return self.api.get("/v1/cluster")

    def await_true(self, look, what, timeout_s=10.0):
        deadline = time.monotonic() + timeout_s
        while not (found := look()):
            assert time.monotonic() < deadline, f"{self}: no {what} within {timeout_s} s\n{self.log()}"
            time.sleep(0.01)
        return found

    def await_ready_to_lead(self, timeout_s=10.0):
        """A standby whose /readyz is a yes."""
        self.await_true(lambda: Api(self).ask("GET", "/readyz").status == 200, "yes of /readyz",
                        timeout_s)
        return self

    def await_standby_ready(self, timeout_s=10.0):
        """A leader that knows of a standby that could take over."""
        def look():
            return [n for n in self.cluster()["nodes"] if n["state"] == "standby" and n["ready"]]
        self.await_true(look, "standby that is ready", timeout_s)
        return self

    def step_down(self, force=False):
        answer = self.api.ask("POST", "/v1/cluster/step-down", data={"force": force})
        return answer.status, json.loads(answer.body)
