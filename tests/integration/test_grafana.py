"""The Grafana dashboard that ships speaks of metrics and labels that exist, and Prometheus can read it."""

import json
import re
import subprocess

import promql
import pytest
from muster_proc import REPO

BOARD = json.loads((REPO / "packaging" / "grafana" / "muster.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in BOARD["templating"]["list"]}


def expressions():
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for note in BOARD["annotations"]["list"]:
        yield note["name"], note["expr"]


def test_every_metric_and_label_is_there():
    wrong = {title: promql.mistakes(text) for title, text in expressions() if promql.mistakes(text)}
    assert not wrong
    assert len({name for _, text in expressions() for name in promql.names(text)}) > 50


@pytest.mark.parametrize("text, mistake", [
    ("rate(muster_allocation_total[5m])", "there is no metric muster_allocation_total"),
    ('muster_servers{state="full"}', "muster_servers has no label state"),
    ("sum by (fleet) (muster_hosts)", "nothing here has a label fleet"),
    ("muster_allocation_duration_seconds", "there is no metric muster_allocation_duration_seconds"),
])
def test_a_mistake_would_be_found(text, mistake):
    assert promql.mistakes(text) == [mistake]


def test_prometheus_understands_every_expression(tmp_path):
    """As rules, so that its own parser judges; Grafana's variables get values first."""
    rules = []
    for i, (_, text) in enumerate(expressions()):
        plain = text.replace("$__rate_interval", "1m").replace("$fleet", ".*").replace("$region", ".*")
        assert "$" not in plain
        rules.append({"record": f"board:panel:{i}", "expr": plain})
    path = tmp_path / "board.yml"
    path.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_it_can_be_imported_anywhere():
    """No id of somebody's installation, and one choice of the source of data for all."""
    assert "id" not in BOARD and VARIABLES["datasource"]["type"] == "datasource"
    assert set(VARIABLES) == {"datasource", "fleet", "region"}
    for panel in PANELS:
        for place in [panel, *panel["targets"]]:
            assert place["datasource"]["uid"] == "${datasource}", panel["title"]
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_legends_show_labels_that_the_query_keeps():
    for panel in PANELS:
        for target in panel["targets"]:
            kept = {label for group in re.findall(r"\bby \(([^)]*)\)", target["expr"])
                    for label in re.split(r",\s*", group)}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_panels_do_not_overlap():
    taken = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
