"""A world for one test: a Muster, and the game servers, chat servers and players that speak to it."""

import itertools
import signal
import time
from datetime import datetime, timezone

import chat
import logfmt
from http_api import Api
from muster_proc import Muster, write_config
from peers import ChatServer, Client, GameServer, Net, Peer
from players import token_of

RELOADED = (
    "configuration in force",
    "configuration unchanged",
    "configuration refused; nothing has changed",
)


def config_of(options):
    """Keyword options of a test as a configuration: names ending in _ms are timeouts, the names of
    core's limits are limits, anything else is a key of its own."""
    limits = {"tickets_open", "tickets_kept", "servers", "chat_servers"}
    config = {}
    for key, value in options.items():
        if key.endswith("_ms"):
            config.setdefault("timeouts", {})[key] = value
        elif key in limits:
            config.setdefault("limits", {})[key] = value
        else:
            config[key] = value
    return config or None


class World:
    def __init__(self, folder, dev=True, env=None, data=None, wrap=(), **options):
        self.muster = Muster(folder, config_of(options), dev=dev, env=env, data=data, wrap=wrap)
        self.net = Net()
        self.ports = itertools.count(20001)

    def start(self):
        self.muster.start()
        return self

    # --- peers

    def connect(self, door, **options):
        """A connection to a port ("server", "manager" or "client") that has said nothing yet."""
        address = getattr(self.muster, f"{door}_address")
        return Peer(self.net, address, name=f"{door} port peer", **options)

    def unregistered_server(
        self,
        region=chat.EU,
        capacity=4,
        ip="10.0.0.1",
        port=None,
        token="any",
        through=None,
        **script,
    ):
        """through: a Proxy to connect to instead of Muster."""
        port = next(self.ports) if port is None else port
        address = (through or self.muster).server_address
        return GameServer(self.net, address, ip, port, region, capacity, token, **script)

    def server(self, **options):
        return self.unregistered_server(**options).register()

    def unregistered_chat(self, chat_id="chat-1", regions=(chat.EU,), token="any", **options):
        address = self.muster.manager_address
        return ChatServer(self.net, address, chat_id, regions, token, **options)

    def chat(self, *args, **options):
        return self.unregistered_chat(*args, **options).register()

    def unregistered_client(self, account, token=None, through=None, **options):
        """token: None = one that is good; through: as of a server."""
        token = token_of(self, str(account), "game") if token is None else token
        address = (through or self.muster).client_address
        return Client(self.net, address, account, token, **options)

    def client(self, account, **options):
        return self.unregistered_client(account, **options).register()

    @property
    def api(self):
        """The HTTP API with the administrator's token."""
        return Api(self.muster).as_admin()

    def reload(self, text=None, **options):
        """Replaces the configuration file, by keyword options or by its text, and sends SIGHUP.
        Returns the log lines of the reload: the last says what came of it."""
        path = self.muster.folder / "muster.yaml"
        if text is None:
            self.muster.config = config_of(options) or {}
            write_config(path, self.muster.config)
        else:
            path.write_text(text)
        before = len(self.muster.log_lines())
        time.sleep(0.002)  # lines of this millisecond may still be on their way to the file
        begin = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self.muster.signal(signal.SIGHUP)

        def look():
            lines = [e for e in self.muster.log_lines()[before:] if e["ts"][:23] >= begin[:23]]
            ends = [n for n, line in enumerate(lines) if line["msg"] in RELOADED]
            return lines[: ends[0] + 1] if ends else None

        return self.wait(look, "word about the reload")

    # --- time and death

    def wait(self, look, what, **options):
        return self.net.wait(look, what, **options)

    def elapse(self, seconds):
        self.net.elapse(seconds)

    def restart(self):
        """Ends Muster in good order and starts it again on the same ports; peers are cut."""
        self.muster.restart()

    def crash(self):
        """kill -9, then start again on the same ports."""
        self.muster.kill9()
        self.muster.restart()

    def stop(self):
        """Ends everything; complains about whatever no peer should ever have seen."""
        running = self.muster.running
        try:
            code = self.muster.term() if running else None
        finally:
            self.net.close()
            self.muster.__exit__()
        assert code in (None, 0), f"exit code {code}\n{self.muster.log()}"
        assert not self.net.violations, self.net.violations
        if not self.muster.killed:  # a kill may cut a line
            logfmt.parse_all(self.muster.log())
