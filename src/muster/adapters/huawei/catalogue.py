# SPDX-License-Identifier: Apache-2.0
"""Product facts of `models.toml`, added where nothing was measured."""

from __future__ import annotations

import re

from muster.domain.model.gather import Gather, Thing
from muster.domain.model.reading import Known
from muster.spi.adapter import Model, Models

_CHIP = re.compile(r"(?:ascend\s*)?((?:910|310|950)[a-z0-9]*(?:-1)?)", re.IGNORECASE)


def add_models(found: Gather, models: Models) -> None:
    """Puts the facts of each card's model on the card."""
    for card in found.cards:
        model = model_of(card, models)
        if model is not None:
            for key, value in model.facts.items():
                if key not in card.readings:
                    card.value(key, value)


def model_of(card: Thing, models: Models) -> Model | None:
    """The model by chip name ("910B3", "Ascend910"), else by PCI device id."""
    name = card.readings.get("product.name")
    if isinstance(name, Known):
        text = str(name.value).lower().strip()
        found = _CHIP.search(text)
        model = models.get(text) or models.get(found.group(1).lower() if found else "")
        if model is not None:
            return model
    device = card.readings.get("pci.device_id")
    return models.get(str(device.value)) if isinstance(device, Known) else None
