"""What a training tells while it goes on."""

from __future__ import annotations

Record = dict[str, float | None]
