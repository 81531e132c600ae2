"""A reader of Prometheus' text format that accepts nothing it does not know, and what promtool says."""

import re
import subprocess
import urllib.request
from collections import defaultdict

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"^({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)$")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def unescape(text):
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


class Page:
    """types: name -> type; samples: (name, frozenset of label pairs) -> value."""

    def __init__(self, text):
        self.text = text
        self.types = {}
        self.samples = {}
        assert text.endswith("\n")
        family = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = line.split(" ", 3)[2]
                assert family not in self.types, f"{family} twice"
                assert line.split(" ", 3)[3]
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name == family, line
                self.types[name] = kind
            else:
                self.read_sample(family, line)
        self.check_histograms()

    def read_sample(self, family, line):
        match = SAMPLE.match(line)
        assert match, f"not a sample: {line!r}"
        name, labels = match[1], match[2] or ""
        assert name in [family + s for s in SUFFIXES[self.types[family]]], line
        pairs = [(k, unescape(v)) for k, v in re.findall(LABEL, labels)]
        assert len(dict(pairs)) == len(pairs), line
        key = (name, frozenset(pairs))
        assert key not in self.samples, f"twice: {line}"
        self.samples[key] = float(match.groups()[-1])

    def check_histograms(self):
        buckets = defaultdict(list)
        for (name, pairs), value in self.samples.items():
            if name.endswith("_bucket"):
                labels = dict(pairs)
                le = float(labels.pop("le"))
                buckets[name[:-7], frozenset(labels.items())].append((le, value))
        for (name, pairs), bounds in buckets.items():
            counts = [count for _, count in sorted(bounds)]
            assert counts == sorted(counts), f"{name} is not cumulative"
            assert max(bounds)[0] == float("inf")
            assert counts[-1] == self.samples[name + "_count", pairs], name

    def get(self, name, **labels):
        """The value of exactly this sample, or None."""
        return self.samples.get((name, frozenset(labels.items())))

    def sum(self, name, **labels):
        """Over all samples of that name with at least these labels."""
        wanted = set(labels.items())
        return sum(v for (n, pairs), v in self.samples.items() if n == name and wanted <= pairs)


def scrape(muster, token=None):
    host, port = muster.http_address
    request = urllib.request.Request(f"http://{host}:{port}/metrics")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return Page(answer.read().decode())


def promtool_says(text):
    """What `promtool check metrics` has to say about a page; "" when it is content."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == (said == ""), (done.returncode, said)
    return said
