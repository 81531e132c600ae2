"""Debian's HAProxy with the configuration of docs/examples, before the nodes of a test's cluster."""

import re
import subprocess
import time
from pathlib import Path

from cluster import DOORS, end_with_parent
from muster_proc import REPO
from ports import free_ports

CONFIG = REPO / "docs/examples/haproxy.cfg"
PORTS = {"http": 9508, "server": 11032, "manager": 11033, "client": 11031}
HOSTS = ("10.0.0.1", "10.0.0.2")
START_S = 20.0


class Front:
    """The cluster as those see it who know HAProxy alone: one node, whose name nobody knows."""

    name = None

    def __init__(self, cluster, ports):
        self.cluster = cluster
        self.nodes = [self]
        for door in DOORS:
            setattr(self, f"{door}_address", ("127.0.0.1", ports[door]))

    def token(self):
        return self.cluster.nodes[0].token()

    def story(self):
        return self.cluster.story()

    @property
    def data(self):
        return self.cluster.data


class HAProxy:
    def __init__(self, folder, cluster):
        self.folder = Path(folder)
        self.ports = {door: free_ports() for door in DOORS}
        self.front = Front(cluster, self.ports)
        self.text = self.configure(CONFIG.read_text(), cluster)

    def configure(self, text, cluster):
        """The file as it is, with the addresses of this test: every one must be there."""
        for door, port in PORTS.items():
            text, n = re.subn(rf"bind :{port}$", f"bind 127.0.0.1:{self.ports[door]}", text,
                              flags=re.M)
            assert n == 1, (door, n)
            for host, node in zip(HOSTS, cluster.nodes):
                text, n = re.subn(rf"{host}:{port} port {PORTS['http']}$",
                                  f"127.0.0.1:{node.ports[door]} port {node.ports['http']}", text,
                                  flags=re.M)
                assert n == 1, (door, host, n)
        return text

    def __enter__(self):
        path = self.folder / "haproxy.cfg"
        path.write_text(self.text)
        checked = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", path], capture_output=True,
                                 text=True, timeout=START_S)
        assert checked.returncode == 0 and "WARNING" not in checked.stderr.upper(), checked
        self.log = open(self.folder / "haproxy.log", "w")
        self.process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", path], stdout=self.log,
                                        stderr=self.log, preexec_fn=end_with_parent)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(START_S)
        self.log.close()

    def await_leader(self, caller):
        """Until somebody is served through it."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                if caller.once("GET", "/leader", None, None)[0] == 200:
                    return
            except OSError:
                caller.close()
            time.sleep(0.02)
        raise AssertionError("nobody is reached through HAProxy")
