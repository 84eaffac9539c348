# SPDX-License-Identifier: Apache-2.0
"""Rules and dashboard: promtool takes them, every alert has its test, and no name in them is one that nobody tells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.export.tools import needed

from muster.domain.model.policy import Policy
from muster.export.families import families
from muster.interfaces.ingest.meters import Meters
from muster.interfaces.ingest.opened import figures
from muster.services.inventory import Inventory
from muster.store import open_store

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "muster-rules.yaml"
TESTS = ROOT / "deploy" / "prometheus" / "muster-rules-test.yaml"
DASHBOARD = ROOT / "deploy" / "dashboards" / "muster-fleet.json"
_ROLL = Inventory(open_store(None).writer, Policy(), 0.0).figures()
SERVER = {f"muster_{name}" for name in (*figures(Meters()), *_ROLL)} | {"muster_certificate_ends_timestamp_seconds"}
"""What the server tells of itself at its own `/metrics`."""
NAME = re.compile(r"\bmuster[a-z0-9_:]+")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def asked() -> Iterator[tuple[str, str]]:
    """Where, and the expression."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    for panel in panels():
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([needed("promtool"), *words], capture_output=True, text=True, check=False, timeout=120, cwd=RULES.parent)


def test_promtool_takes_the_rules() -> None:
    ran = promtool("check", "rules", RULES.name)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(rules())} rules found" in ran.stdout


def test_the_rules_do_what_their_tests_say() -> None:
    ran = promtool("test", "rules", TESTS.name)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_rule_has_a_test() -> None:
    told = TESTS.read_text(encoding="utf-8")

    assert [name for rule in rules() if (name := rule.get("alert") or rule["record"]) not in told and not name.startswith("muster:memory_")] == []


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("critical", "warning", "info")
            assert set(rule["annotations"]) == {"summary", "description"}


def test_promtool_takes_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    told = [{"record": f"panel_{number}", "expr": target["expr"]} for number, target in enumerate(t for panel in panels() for t in panel.get("targets", []))]
    file = tmp_path / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": told}]}), encoding="utf-8")
    ran = promtool("check", "rules", str(file))

    assert len(told) > 20
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_series_that_is_asked_for_is_told() -> None:
    known = {each.name for each in families()} | {rule["record"] for rule in rules() if "record" in rule} | SERVER
    unknown = {(at, name) for at, expression in asked() for name in NAME.findall(TEXT.sub('""', expression)) if name not in known}

    assert unknown == set()


def test_every_label_and_state_that_is_asked_for_is_told() -> None:
    labels = {each.name: set(each.labels) for each in families()}
    states = {state for each in families() for state in each.states} | {"known", "stale", "absent"}
    for at, expression in asked():
        for name, chosen in re.findall(r"(muster_[a-z0-9_]+)\{([^}]*)\}", expression):
            for label, words in re.findall(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', chosen):
                assert name not in labels or label in labels[name], (at, name, label)
                assert label not in ("state", "presence") or set(words.split("|")) <= states, (at, words)


def test_unknown_is_drawn_apart() -> None:
    told = " ".join(expression for _, expression in asked())

    assert 'muster_cards{presence="unknown"}' in told
    assert 'muster_readings{state!="known"}' in told
    assert not re.search(r"muster_(?!source_state)[a-z_]+(\{[^}]*\})?\s+or\s+vector\(0\)", told), "an absence would be drawn as 0"
    assert all(panel["fieldConfig"]["defaults"]["noValue"] == "not known" for panel in panels() if panel["type"] != "row")
    assert all(not panel["fieldConfig"]["defaults"]["custom"].get("spanNulls") for panel in panels() if panel["type"] == "timeseries")


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not mine & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= mine
    assert len({panel["id"] for panel in panels()}) == len(panels())


@pytest.mark.parametrize("tool", ["gen_metrics.py", "gen_dashboard.py"])
def test_what_is_generated_is_what_the_code_says(tool: str) -> None:
    ran = subprocess.run([sys.executable, f"tools/{tool}", "--check"], cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": "src"})

    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_family_stands_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")

    assert [each.name for each in families() if f"`{each.name}`" not in page] == []
