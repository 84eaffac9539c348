# SPDX-License-Identifier: Apache-2.0
"""A store of an older version: its journal is not yet parted by parts of the site. It is told once from its beginning, and each word finds its part."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from muster.domain.decide.merge import Region, Roll, known_names, merge
from muster.domain.decide.merge.state import Site
from muster.domain.model.policy import Policy
from muster.services.journal import entry
from muster.services.lives import UNKNOWN
from muster.services.windows import Window
from muster.spi.store import Batch, Loaded, Reporter, Said

_SITE = msgspec.msgpack.Decoder(Site)


def placed(loaded: Loaded, policy: Policy, now: float) -> Batch | None:
    """What brings such a store up to date; None for one that is."""
    words = sorted((said for said in loaded.said if not said.region), key=lambda said: said.order)
    base = {part: state for part, state in loaded.base.items() if part not in loaded.due}
    if not (words or base or loaded.received):
        return None
    unfolded = replace(policy, late_listings=2**31)
    roll = Roll()
    for part, body in base.items():
        site = _SITE.decode(body)
        index = dict.fromkeys(known_names(site), part)
        roll = Roll(regions={**roll.regions, part: Region(id=part, base=site, site=site.copy())}, index={**roll.index, **index})
    where: dict[int, str] = {}
    into: dict[str, str] = {}
    for said in words:
        word = entry(said)
        merged = merge(roll, word.said, word.order, unfolded, word.said.received_at)
        roll = merged.roll
        part = next(iter(merged.touched))
        where[said.order] = part
        into |= dict.fromkeys(merged.dropped, part)
    return _batch(loaded, words, {order: _end(part, into) for order, part in where.items()}, roll, now)


def _end(part: str, into: dict[str, str]) -> str:
    while part in into:
        part = into[part]
    return part


def _batch(loaded: Loaded, words: list[Said], where: dict[int, str], roll: Roll, now: float) -> Batch:
    order = loaded.next_order
    sites = {part: region.site for part, region in roll.regions.items()}
    named = {name: part for part, site in sites.items() for name in known_names(site)}
    return Batch(
        at=now,
        forget=tuple(said.order for said in words),
        said=tuple(replace(said, order=order + place, region=where[said.order]) for place, said in enumerate(words)),
        base={part: msgspec.msgpack.encode(region.base) for part, region in roll.regions.items()},
        names={**{name: part for name, part in roll.index.items() if name[0] != "id"}, **named},
        due=dict.fromkeys(sites, now),
        regions={one: part for part, site in sites.items() for one in (*site.cards, *site.nodes)},
        reporters=_reporters(loaded, now),
    )


def _reporters(loaded: Loaded, now: float) -> tuple[Reporter, ...]:
    """Reporters by the keys of their reports; what these said is not remembered in the new form."""
    windows: dict[str, Window] = {}
    for each in loaded.received:
        windows.setdefault(each.reporter, Window()).add(each.incarnation, each.sequence, UNKNOWN)
    return tuple(
        Reporter(reporter=name, incarnation=window.incarnation, high=window.high, recent=window.packed(), received_at=now) for name, window in windows.items()
    )
