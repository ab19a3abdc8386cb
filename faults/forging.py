"""Descriptions of models whose checksums fit, as somebody who means harm would write them."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sealed(description: dict[str, Any], weights: bytes) -> bytes:
    """Return ``model.json`` with checksums of itself and of the weights."""

    def checksum(data: object, start: bytes = b"") -> str:
        return hashlib.sha256(start + json.dumps(data, sort_keys=True).encode()).hexdigest()

    names = ("space", "encoder", "head")
    model = {name: description[name] for name in names if name in description}
    sums = {"sha256": checksum(model, weights), "about_sha256": checksum(description.get("about"))}
    return json.dumps(description | sums).encode()
