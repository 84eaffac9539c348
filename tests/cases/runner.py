# SPDX-License-Identifier: Apache-2.0
"""Runs a case of the roll against the real path: reports through the inventory service into a store, answers out of the store's reader."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.decide.choose import Shown
from muster.domain.decide.view import CardView, PartView, grown, total, view
from muster.domain.model.attributes import Compare
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.observation import Role
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import Finding, FindingKind, Presence
from muster.domain.model.source import Channel, WitnessClass
from muster.services.inventory import Inventory
from muster.store import Store, open_store
from muster.wire.report import ActDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

EPOCH = 1_750_000_000.0
PREFIX = {Channel.IN_BAND: "agent", Channel.OUT_OF_BAND: "bmc", Channel.CLUSTER: "cluster"}
COMPARED = set(FindingKind) - {FindingKind.SOURCE_HUNG, FindingKind.SHAPE_UNKNOWN}


def policy_of(defaults: Mapping[str, Any], override: Mapping[str, Any]) -> tuple[Policy, dict[str, Any]]:
    """The policy and sources of a case: the file's defaults, overridden key by key."""
    merged = dict(defaults)
    for key, value in override.items():
        merged[key] = _deep(merged.get(key), value)
    policy = Policy(
        settle=merged["settle_s"],
        stale_floor=merged["stale_floor_s"],
        clock_tolerance=merged["clock_tolerance_s"],
        compare_within=merged["compare_within_s"],
        placeholder_nodes=merged["placeholder_nodes"],
        placeholders=frozenset(merged["placeholders"]),
        known_vendors=frozenset(str(v) for v in merged["known_vendors"]),
        precedence={k: tuple(WitnessClass(c) for c in v) for k, v in merged["precedence"].items()},
        compare={k: _compare(v) for k, v in merged["compare"].items()},
    )
    return policy, merged["sources"]


def _deep(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{k: _deep(old.get(k), v) for k, v in new.items()}}
    return new


def _compare(told: Mapping[str, float]) -> Compare:
    if "relative" in told:
        return Compare("tolerance", told["relative"])
    return Compare("near", told["absolute"]) if "absolute" in told else Compare("exact")


@dataclass
class Case:
    """One case, run step by step."""

    case: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def run(self, restart: bool = False) -> list[str]:
        """Runs the steps; returns what did not fit, in words. ``restart`` opens the service anew before each step."""
        self.policy, self.sources = policy_of(self.defaults, self.case.get("policy") or {})
        self.store: Store = open_store(None)
        self.next: dict[tuple[str, str], int] = defaultdict(int)
        self.inventory = Inventory(self.store.writer, self.policy, EPOCH)
        faults: list[str] = []
        for step in self.case["steps"]:
            now = EPOCH + step["at"]
            if restart:
                self.inventory = Inventory(self.store.writer, self.policy, now)
            answers = [self.inventory.report(self._report(r, step["at"]), now).answer for r in step.get("reports") or []]
            for act in step.get("acts") or []:
                self.inventory.act(self._act(act), now)
            self.inventory.tick(now)
            if "then" in step:
                faults += [f"at {step['at']}: {f}" for f in Then(self, step["then"], now, answers).faults()]
        self.store.close()
        return faults

    def _report(self, told: Mapping[str, Any], at: float) -> ReportDoc:
        node = told["node"] if isinstance(told["node"], dict) else {"name": told["node"]}
        source = self.sources[told["source"]]
        channel = Channel(source["channel"])
        reporter = told.get("reporter") or f"{PREFIX[channel]}@{node['name']}"
        incarnation = told.get("incarnation", "i1")
        number = told.get("seq", self.next[reporter, incarnation] + 1)
        self.next[reporter, incarnation] = max(number, self.next[reporter, incarnation])
        sent = told.get("sent_at", at)
        observed = told.get("observed_at", sent)
        rows: list[ObservationDoc] = []
        for ordinal, each in enumerate(told.get("observations") or []):
            rows += list(observation(each, ordinal))
        listing = ListingDoc(
            source=told["source"],
            channel=source["channel"],
            witness=source["class"],
            cadence=source["cadence_s"],
            outcome=told.get("outcome", "devices"),
            standing_by=told.get("standing_by", False),
            complete=told["complete"],
            observed_at=EPOCH + observed,
            observed_mono=1000.0 + observed,
            boot_id="b",
            counts=dict(told.get("counts") or {}),
            observations=rows,
        )
        return ReportDoc(
            reporter=reporter,
            incarnation=incarnation,
            sequence=number,
            node=NodeDoc(name=node["name"], machine_id=node.get("machine_id", ""), system=node.get("system", "")),
            sent_at=EPOCH + sent,
            sent_mono=1000.0 + sent,
            boot_id="b",
            listings=[listing],
        )

    @staticmethod
    def _act(told: Mapping[str, Any]) -> ActDoc:
        return ActDoc(
            what=told["act"],
            by=told["by"],
            card={k: str(v) for k, v in (told.get("card") or {}).items()},
            other={k: str(v) for k, v in (told.get("other") or {}).items()},
            node=told.get("node", ""),
            source=told.get("source", ""),
            values=dict(told.get("facts") or {}),
            place=told.get("place", ""),
            reason="case",
        )


def observation(told: Mapping[str, Any], ordinal: int, level: str = "card", parent: Iterable[tuple[str, str]] = ()) -> Iterable[ObservationDoc]:
    """An observation of the case form, and its devices and partitions under it."""
    ids = [(k, str(v)) for k, v in (told.get("ids") or {}).items()]
    readings: dict[str, dict[str, Any]] = {k: {"v": v} for k, v in (told.get("facts") or {}).items()}
    readings |= {k: {"a": why} for k, why in (told.get("absent") or {}).items()}
    level = told.get("level", level)
    above = [(k, str(v)) for k, v in (told.get("parent") or {}).items()] or list(parent)
    if level == "card" and not ids and (told.get("devices") or told.get("partitions")):
        ids = [("index", f"#{ordinal}")]
    yield ObservationDoc(level=level, ids=ids, parent=above, ordinal=ordinal, role=told.get("role", ""), readings=readings)
    for kind, name in (("device", "devices"), ("partition", "partitions")):
        for place, part in enumerate(told.get(name) or []):
            yield from observation(part, place, kind, ids)


class Then:
    """What a step expects, held against the store."""

    def __init__(self, case: Case, then: Mapping[str, Any], now: float, answers: Sequence[str]) -> None:
        self.then, self.now, self.answers, self.policy = then, now, answers, case.policy
        reader = case.store.reader
        self.reader = reader
        apart: dict[str, dict[tuple[str, str], dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
        for value in reader.current():
            apart[value.subject][value.node, value.source][value.key] = value.word
        self.views = [view(c, apart, case.policy, now) for c in reader.cards()]
        self.findings: list[Finding] = [r.finding for r in reader.findings()]

    def faults(self) -> list[str]:
        """Everything that differs."""
        found = list(self._counts())
        for wanted in self.then.get("cards") or []:
            mine = [v for v in self.views if self._is(v, wanted)]
            if len(mine) != 1:
                found.append(f"{len(mine)} cards fit {wanted['ids']} {wanted.get('where', '')}")
                continue
            found += [f"{wanted['ids']}: {f}" for f in self._card(mine[0], wanted)]
        return found

    def _counts(self) -> Iterable[str]:
        shown = [v.record for v in self.views if v.record.presence is not Presence.RETIRED]
        count = sum(1 for r in shown if r.role is Role.ACCELERATOR and not r.aside)
        displays = sum(1 for r in shown if r.role is Role.DISPLAY)
        if "count" in self.then and count != self.then["count"]:
            yield f"count {count}, want {self.then['count']}: " + "; ".join(f"{dict(r.ids)} {r.presence} {r.node_name}" for r in shown)
        if "count" in self.then and displays != self.then.get("displays", 0):
            yield f"displays {displays}, want {self.then.get('displays', 0)}"
        if "nodes" in self.then and len(self.reader.nodes()) != self.then["nodes"]:
            yield f"nodes {len(self.reader.nodes())}, want {self.then['nodes']}"
        if "answers" in self.then and list(self.answers) != self.then["answers"]:
            yield f"answers {self.answers}, want {self.then['answers']}"
        kinds = Counter(f.kind.value for f in self.findings if f.kind in COMPARED)
        if dict(kinds) != (self.then.get("findings") or {}):
            yield f"findings {dict(kinds)}, want {self.then.get('findings') or {}}"
        for key, want in (self.then.get("totals") or {}).items():
            got = total((v for v in self.views if v.record.role is Role.ACCELERATOR), key)
            if abs(got - want) > 1e-9 * max(1.0, abs(want)):
                yield f"total of {key} {got}, want {want}"

    def _is(self, each: CardView, wanted: Mapping[str, Any]) -> bool:
        node = (wanted.get("where") or {}).get("node")
        if node is not None and each.record.node_name != node:
            return False
        system = (wanted.get("where") or {}).get("system")
        if system is not None and canonical(NameKind.SYSTEM, each.record.system) != canonical(NameKind.SYSTEM, str(system)):
            return False
        return all(_has(each.record.ids, kind, value) for kind, value in wanted["ids"].items())

    def _card(self, each: CardView, wanted: Mapping[str, Any]) -> Iterable[str]:
        record = each.record
        for key in ("rung", "presence"):
            if key in wanted and getattr(record, key).value != wanted[key]:
                yield f"{key} {getattr(record, key).value}, want {wanted[key]}"
        yield from self._where(each, wanted.get("where") or {})
        if "conflicts" in wanted and sorted(record.conflicts) != sorted(wanted["conflicts"]):
            yield f"conflicts {record.conflicts}, want {wanted['conflicts']}"
        if "seen_by" in wanted and sorted(each.seen_by) != sorted(wanted["seen_by"]):
            yield f"seen by {each.seen_by}, want {wanted['seen_by']}"
        if "history" in wanted:
            yield from self._history(record.id, wanted["history"])
        if "findings" in wanted:
            kinds = sorted(
                f.kind.value
                for f in self.findings
                if (record.id in f.cards and f.subject == record.id) or (record.id in f.cards and f.kind is FindingKind.IDENTITY_CONFLICT)
            )
            if kinds != sorted(wanted["findings"]):
                yield f"findings {kinds}, want {wanted['findings']}"
        for key, want in (wanted.get("facts") or {}).items():
            yield from _fact(key, each.readings.get(key), want, self.now)
        for key, why in (wanted.get("absent") or {}).items():
            yield from _fact(key, each.readings.get(key), {"absent": why}, self.now)
        used = grown(each)
        for key, want in (wanted.get("increase") or {}).items():
            if abs(used.get(key, -1) - want) > 1e-6:
                yield f"increase of {key} {used.get(key)}, want {want}"
        if "devices" in wanted:
            yield from self._devices(each, wanted["devices"])
        if "partitions" in wanted:
            profiles = sorted(str(_value(p.readings.get("partition.profile"))) for p in each.partitions)
            if profiles != sorted(wanted["partitions"]):
                yield f"partitions {profiles}, want {wanted['partitions']}"

    def _where(self, each: CardView, where: Mapping[str, Any]) -> Iterable[str]:
        record = each.record
        got = {"node": record.node_name or None, "slot": record.slot.lower() or None, "address": record.address or None, "index": record.index or None}
        for key, want in where.items():
            if key in got and got[key] != (str(want).lower() if key == "slot" and want is not None else want):
                yield f"{key} {got[key]}, want {want}"

    def _history(self, card: str, wanted: Sequence[str]) -> Iterable[str]:
        rows = [r for r in self.reader.changes(card) if r.superseded_at is None]
        rows.sort(key=lambda r: r.change.at)
        told = [(r.change.at, r.change.kind.value) for r in rows]
        if not {"source_lost", "source_back"} & set(wanted):
            told = [t for t in told if t[1] not in ("source_lost", "source_back")]
        if not _same_order(told, list(wanted)):
            yield f"history {[k for _, k in told]}, want {list(wanted)}"

    def _devices(self, each: CardView, wanted: Any) -> Iterable[str]:
        if isinstance(wanted, int):
            count = len(each.devices) or 1
            if count != wanted:
                yield f"{count} devices, want {wanted}"
            return
        if len(each.devices) != len(wanted):
            yield f"{len(each.devices)} devices, want {len(wanted)}"
            return
        left: list[PartView] = list(each.devices)
        for want in sorted(wanted, key=lambda w: -len(w["ids"])):
            mine = next((d for d in left if all(_has(d.record.ids, k, v) for k, v in want["ids"].items())), None)
            if mine is None:
                yield f"no device {want['ids']}"
                continue
            left.remove(mine)
            for key, value in (want.get("facts") or {}).items():
                if _value(mine.readings.get(key)) != value:
                    yield f"device {want['ids']} {key} {_value(mine.readings.get(key))}, want {value}"
            for key, why in (want.get("absent") or {}).items():
                yield from _fact(key, mine.readings.get(key), {"absent": why}, self.now)


def _same_order(told: list[tuple[float, str]], wanted: list[str]) -> bool:
    """True when both are equal up to the order of entries of one moment."""
    if len(told) != len(wanted):
        return False
    start = 0
    while start < len(told):
        end = start
        while end < len(told) and abs(told[end][0] - told[start][0]) < 1e-6:
            end += 1
        if Counter(k for _, k in told[start:end]) != Counter(wanted[start:end]):
            return False
        start = end
    return True


def _has(ids: Mapping[str, Sequence[str]], kind: str, value: Any) -> bool:
    mine = [canonical(NameKind(kind), v) for v in ids.get(kind, ())]
    return not mine if value is None else canonical(NameKind(kind), str(value)) in mine


def _value(shown: Shown | None) -> Any:
    return shown.reading.value if shown is not None and isinstance(shown.reading, Known) else None


def _fact(key: str, shown: Shown | None, want: Mapping[str, Any], now: float) -> Iterable[str]:
    if "value" not in want:
        if want["absent"] is None:
            if shown is not None:
                yield f"{key}: somebody said {shown.reading}, want nobody"
        elif shown is None or isinstance(shown.reading, Known) or shown.reading.why != want["absent"]:
            yield f"{key}: {shown and shown.reading}, want absent {want['absent']}"
        elif "source" in want and shown.source != want["source"]:
            yield f"{key}: absent by {shown.source}, want {want['source']}"
        return
    if shown is None or not isinstance(shown.reading, Known):
        yield f"{key}: {shown and shown.reading}, want {want['value']}"
        return
    got = {"value": shown.reading.value, "source": shown.source, "stale": shown.stale, "dissent": dict(shown.dissent)}
    if "absent" in want:
        got["absent"] = {s: w.value for s, w in shown.absent.items()}
    wanted = {"stale": False, "dissent": {}, **{k: v for k, v in want.items() if k != "age"}}
    if got != wanted:
        yield f"{key}: {got}, want {wanted}"
    if "age" in want and abs(shown.age(now) - want["age"]) > 1e-3:
        yield f"{key}: age {shown.age(now)}, want {want['age']}"
