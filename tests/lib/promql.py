"""Which metrics a PromQL expression speaks of, held against the table of those that Muster has."""

import re

from muster_proc import REPO

TABLE = REPO / "src" / "api" / "metrics.def"
# What Prometheus adds by itself.
EVERYWHERE = {"job", "instance"}
FOREIGN = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
RECORDED = re.compile(r"\b\w+:\w+:\w+")


def declared():
    """{name as in an expression: labels}; a histogram is there with its three."""
    metrics = {}
    row = re.compile(r'M\(\w+, (\w+), "(\w+)", "([\w,]*)"')
    for kind, name, labels in row.findall(TABLE.read_text()):
        labels = set(filter(None, labels.split(",")))
        if kind == "histogram":
            metrics[f"{name}_bucket"] = labels | {"le"}
            metrics[f"{name}_sum"] = metrics[f"{name}_count"] = labels
        else:
            metrics[name] = labels
    assert len(metrics) > 100
    return {**metrics, **FOREIGN}


METRICS = declared()


def names(expression):
    """The metrics it speaks of, without rules that are recorded elsewhere."""
    plain = re.sub(r'"[^"]*"', '""', RECORDED.sub("", expression))
    return set(re.findall(r"\b(?:muster|process)_\w+|\bup\b|\bALERTS\b", plain))


def mistakes(expression):
    """What it says of metrics or labels that Muster does not have."""
    found = [f"there is no metric {name}" for name in names(expression) - METRICS.keys()]
    known = set().union(EVERYWHERE, *(METRICS.get(name, set()) for name in names(expression)))
    for name, selector in re.findall(r"\b(\w+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            if label not in METRICS.get(name, set()) | EVERYWHERE:
                found.append(f"{name} has no label {label}")
    if not RECORDED.search(expression):
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            found += [f"nothing here has a label {label}"
                      for label in re.split(r",\s*", group) if label not in known]
    return found
