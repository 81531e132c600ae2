"""A TCP proxy between a peer and Muster that can swallow what passes, driven by the same Net."""

import errno
import selectors
import socket


class Proxy:
    def __init__(self, net, target):
        self.net = net
        self.target = target
        self.swallows = False
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server_address = self.client_address = self.listener.getsockname()
        net.selector.register(self.listener, selectors.EVENT_READ, self)
        net.closing.append(self.close)

    def blackhole(self, on):
        """Both directions vanish while this is on; nothing is delivered later."""
        self.swallows = on

    def ready(self, _events):
        inner, _ = self.listener.accept()
        outer = socket.create_connection(self.target)
        pair = (Half(self, inner, outer), Half(self, outer, inner))
        self.pairs.append(pair)

    def cut(self):
        """Closes every connection that passes through."""
        for pair in self.pairs:
            for half in pair:
                half.close()
        self.pairs.clear()

    def close(self):
        self.cut()
        self.net.selector.unregister(self.listener)
        self.listener.close()


class Half:
    """One direction. Messages here are small, so a blocking sendall never waits for long."""

    def __init__(self, proxy, source, sink):
        self.proxy, self.source, self.sink = proxy, source, sink
        proxy.net.selector.register(source, selectors.EVENT_READ, self)

    def ready(self, _events):
        try:
            data = self.source.recv(1 << 16)
            if data and not self.proxy.swallows:
                self.sink.sendall(data)
        except OSError as e:
            if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.EBADF):
                raise
            data = b""
        if not data:
            # While the proxy swallows, the other side does not hear of the end either.
            self.close() if self.proxy.swallows else self.end_both()

    def end_both(self):
        for pair in self.proxy.pairs:
            if self in pair:
                for half in pair:
                    half.close()

    def close(self):
        if self.source.fileno() >= 0:
            self.proxy.net.selector.unregister(self.source)
            self.source.close()
