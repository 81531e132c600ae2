"""TLS for tests: certificates good and bad, made without Muster's own code, and peers that speak it."""

import datetime
import ipaddress
import selectors
import socket
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from peers import ChatServer, GameServer, Peer


class Authority:
    """Signs certificates and writes them as PEM files into a folder."""

    def __init__(self, folder, name="authority"):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self.sign(self.key, self.subject, self.subject, -1, 30, authority=True)
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, key, subject, issuer, first_day, last_day, authority=False, client=False):
        now = datetime.datetime.utcnow()
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=first_day))
            .not_valid_after(now + datetime.timedelta(days=last_day))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if not authority and not client:
            hosts = [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, name, first_day=-1, last_day=7, client=False):
        """(certificate, key) as paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self.sign(key, subject, self.subject, first_day, last_day, client=client)
        certificate_path = self.folder / f"{name}.pem"
        key_path = self.folder / f"{name}-key.pem"
        certificate_path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate_path, key_path


def context(authority, pair=None):
    """A client's: believes the authority, and shows the pair where asked."""
    made = ssl.create_default_context(cafile=authority)
    if pair:
        made.load_cert_chain(*pair)
    return made


class SecureSocket:
    """A TLS socket that says "not now" as a plain one does, for Peer."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def recv(self, size):
        try:
            return self.wrapped.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def send(self, data):
        try:
            return self.wrapped.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def __getattr__(self, name):
        return getattr(self.wrapped, name)


class Secure:
    """Makes TLS of a Peer's connection; the class's `tls` is the context."""

    tls = None

    def open(self):
        super().open()
        self.net.selector.unregister(self.socket)
        self.socket.settimeout(8)
        wrapped = self.tls.wrap_socket(self.socket, server_hostname="localhost")
        wrapped.setblocking(False)
        self.socket = SecureSocket(wrapped)
        self.net.selector.register(self.socket, self.interest, self)


def secured(kind, tls):
    """That kind of Peer, speaking TLS with this context."""
    return type(f"Secure{kind.__name__}", (Secure, kind), {"tls": tls})


def peers(tls):
    """(Peer, GameServer, ChatServer) that speak TLS with this context."""
    return secured(Peer, tls), secured(GameServer, tls), secured(ChatServer, tls)


class Impostor:
    """A TLS server that shakes hands with whoever comes, one after the other, and says nothing."""

    def __init__(self, pair):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*pair)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.spoken_to = b""  # what clients said in confidence
        self.wake, self.waker = socket.socketpair()
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            selector.register(self.wake, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self.wake in ready:
                    return
                connection, _ = self.listener.accept()
                connection.settimeout(8)
                try:
                    with self.context.wrap_socket(connection, server_side=True) as wrapped:
                        self.spoken_to += wrapped.recv(4096)
                except OSError:
                    connection.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.waker.send(b"x")
        self.thread.join()
        for each in (self.listener, self.wake, self.waker):
            each.close()
