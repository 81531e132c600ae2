"""Writes MaxMind DB files small enough to understand: a binary tree over address bits whose leaves
point at maps. Enough for tests of whoever reads them."""

import ipaddress
import struct
import time
from typing import NamedTuple

MARKER = b"\xab\xcd\xefMaxMind.com"
SEPARATOR = bytes(16)


class Unsigned(NamedTuple):
    bits: int
    number: int


def control(kind, size):
    """The byte or bytes that say what follows and how long it is."""
    assert size < 29 + 256
    first, more = (size, b"") if size < 29 else (29, bytes([size - 29]))
    if kind <= 7:
        return bytes([kind << 5 | first]) + more
    return bytes([first, kind - 7]) + more


def encode(value):
    if isinstance(value, str):
        text = value.encode()
        return control(2, len(text)) + text
    if isinstance(value, float):
        return control(3, 8) + struct.pack(">d", value)
    if isinstance(value, Unsigned):
        raw = value.number.to_bytes((value.number.bit_length() + 7) // 8, "big")
        return control({16: 5, 32: 6, 64: 9}[value.bits], len(raw)) + raw
    if isinstance(value, list):
        return control(11, len(value)) + b"".join(map(encode, value))
    assert isinstance(value, dict)
    return control(7, len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())


class Tree:
    """Nodes of two records; a record is a node's number, None, or a place in the data."""

    def __init__(self):
        self.nodes = [[None, None]]

    def put(self, network, leaf):
        network = ipaddress.ip_network(network)
        bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
        if network.version == 4:  # lives below ::/96
            bits = "0" * 96 + bits
        node = 0
        for bit in bits[:-1]:
            record = self.nodes[node][int(bit)]
            if not isinstance(record, int):
                self.nodes.append([record, record])  # what was known of the larger network stays
                record = self.nodes[node][int(bit)] = len(self.nodes) - 1
            node = record
        self.nodes[node][int(bits[-1])] = leaf


def write(path, places):
    """places: {"192.0.2.0/24": {"location": {"latitude": 50.1, "longitude": 8.7}}, …}"""
    tree, data = Tree(), b""
    for network, value in places.items():
        tree.put(network, (len(data),))
        data += encode(value)
    count = len(tree.nodes)

    def record(value):
        number = count if value is None else count + 16 + value[0] if isinstance(value, tuple) else value
        return number.to_bytes(3, "big")

    metadata = {
        "node_count": Unsigned(32, count), "record_size": Unsigned(16, 24),
        "ip_version": Unsigned(16, 6), "database_type": "Test", "languages": ["en"],
        "binary_format_major_version": Unsigned(16, 2),
        "binary_format_minor_version": Unsigned(16, 0),
        "build_epoch": Unsigned(64, int(time.time())), "description": {"en": "for tests"},
    }
    path.write_bytes(b"".join(record(r) for node in tree.nodes for r in node)
                     + SEPARATOR + data + MARKER + encode(metadata))
    return path


def place(latitude, longitude):
    return {"location": {"latitude": float(latitude), "longitude": float(longitude)}}
