"""The rules that ship for Prometheus are sound, fire when they must, and speak of metrics that exist."""

import re
import subprocess

import promql
import yaml
from muster_proc import REPO

RULES = REPO / "packaging" / "prometheus" / "muster.rules.yml"
TESTS = REPO / "tests" / "prometheus" / "muster.rules.test.yml"


def promtool(*arguments):
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_rules_are_sound():
    code, said = promtool("check", "rules", RULES)
    assert code == 0, said
    assert "SUCCESS" in said and "duplicate" not in said, said


def test_alerts_fire_and_keep_quiet():
    code, said = promtool("test", "rules", TESTS)
    assert code == 0, said


def test_each_alert_is_tested():
    alerts = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    tested = set(re.findall(r"alertname: (\w+)", TESTS.read_text()))
    assert alerts and tested == alerts


def test_rules_speak_of_metrics_there_are():
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    wrong = {rule["expr"]: promql.mistakes(rule["expr"]) for rule in rules}
    assert not {text: found for text, found in wrong.items() if found}
    assert len({name for rule in rules for name in promql.names(rule["expr"])}) > 15
