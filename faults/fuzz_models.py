"""Fuzz the reader of model folders, guided by what it runs: ``make fuzz``.

Inputs are read as a description, as weights, or as edits of an honest model that is sealed again.
Arguments are those of libFuzzer, e.g. ``-max_total_time=60``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import atheris
import numpy as np

import demix
from demix._support.errors import DemixError
from faults.forging import sealed

with atheris.instrument_imports(include=["demix.encoders", "demix.estimators", "demix.spaces"]):
    from demix.encoders.files import load_encoder
    from demix.estimators import classification, contrastive  # noqa: F401, what it builds
    from demix.estimators.models import load_model

FOLDER = Path(tempfile.mkdtemp()) / "model"
WORDS = [
    None,
    "ContrastiveDemixer",
    "InstanceDemixer",
    "sphere",
    "Box",
    "Product",
    "compact",
    "kitti",
]


def honest() -> tuple[bytes, bytes]:
    """Return description and weights of a small model."""
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    recipe = demix.Recipe(steps=1, batch=8)
    model = demix.ClassifierDemixer(2, encoder={"hidden": (4,)}, recipe=recipe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, np.arange(60) % 3).save(FOLDER)
    return (FOLDER / "model.json").read_bytes(), (FOLDER / "model.safetensors").read_bytes()


def forged(description: bytes, weights: bytes, chance: Any) -> tuple[bytes, bytes]:
    """Return an honest model with some edits, sealed again."""
    edited, spoilt = json.loads(description), bytearray(weights)
    for _ in range(chance.ConsumeIntInRange(1, 4)):
        inside, key = _place(edited, chance)
        inside[key] = _value(chance)
    for _ in range(chance.ConsumeIntInRange(0, 3)):
        start = chance.ConsumeIntInRange(0, len(spoilt))
        new = chance.ConsumeBytes(chance.ConsumeIntInRange(0, 16))
        spoilt[start : start + len(new)] = new
    return sealed(edited, bytes(spoilt)), bytes(spoilt)


def _place(data: Any, chance: Any) -> tuple[Any, Any]:
    """Return some container inside plain data, and one of its keys."""
    keys = list(data) if isinstance(data, dict) else range(len(data))
    key = keys[chance.ConsumeIntInRange(0, len(keys) - 1)]
    deeper = isinstance(data[key], dict | list) and len(data[key]) > 0
    return _place(data[key], chance) if deeper and chance.ConsumeBool() else (data, key)


def _value(chance: Any) -> Any:
    match chance.ConsumeIntInRange(0, 6):
        case 0:
            return chance.ConsumeInt(8)
        case 1:
            return chance.ConsumeFloat()
        case 2:
            return chance.ConsumeUnicode(20)
        case 3:
            return [_value(chance) for _ in range(chance.ConsumeIntInRange(0, 3))]
        case 4:
            return {chance.ConsumeUnicode(5): _value(chance)}
        case 5:
            return chance.PickValueInList(WORDS)
        case _:
            return chance.ConsumeBool()


def read(data: bytes) -> None:
    """Open the model of an input; anything but a refusal is a finding."""
    chance = atheris.FuzzedDataProvider(data)
    description, weights = HONEST
    match chance.ConsumeIntInRange(0, 3):
        case 0:
            description = chance.ConsumeBytes(len(data))
        case 1:
            weights = chance.ConsumeBytes(len(data))
        case _:
            try:
                description, weights = forged(description, weights, chance)
            except (
                ValueError,
                KeyError,
                TypeError,
                AttributeError,
            ):  # nothing that JSON could hold
                return
    (FOLDER / "model.json").write_bytes(description)
    (FOLDER / "model.safetensors").write_bytes(weights)
    with suppress(DemixError):
        load_encoder(FOLDER)
    with suppress(DemixError):
        load_model(FOLDER).transform(np.ones((2, 3), dtype=np.float32))


HONEST = honest()


def main() -> None:
    """Look for inputs until the time is over."""
    limits = ["-rss_limit_mb=4096", "-timeout=20", "-max_len=4096"]
    atheris.Setup([sys.argv[0], *limits, *sys.argv[1:]], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
