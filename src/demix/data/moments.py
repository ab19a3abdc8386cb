"""Moments of time that are written as numbers or dates, and the step between them."""

from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError, demix_errors, shortened
from demix.data.csv_files import reads_as

# Days and clocks of dates that are not written as ISO 8601 says.
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_HOUR = np.timedelta64(3600, "s")
_JITTER = 0.01  # by this share of the usual one steps may differ: instruments are late at times


def moments(cells: list[str], path: Path) -> np.ndarray:
    """Return moments ``(N,)`` as numbers, or as ``datetime64``, of UTC if they have time zones."""
    digits = reads_as(float, cells[0])  # 20241231 and 202412311345 are dates if all others are
    texts = [f"{cell[:8]} {cell[8:]}".strip() for cell in cells] if digits else cells
    dates, bad = _dates(texts) if not digits or len(cells[0]) in (8, 10, 12, 14) else ([], 0)
    for number in (int, float):
        if not dates and all(reads_as(number, cell) for cell in cells):
            with demix_errors(f"Expected time of at most 64 bits, but {path} has more", "mend it"):
                return np.array([number(cell) for cell in cells], f"{number.__name__}64")
    if not dates:
        raise DemixError(
            "Expected time as numbers or as dates such as 2024-12-31 13:45 or 31.12.2024 13:45, "
            f"all of one form, but {path} holds {shortened(cells[bad])!r}; mend it."
        )
    even = [time for time in dates if not spacing(time)[1].any()] if len(dates) > 1 else dates
    if len({time.tobytes() for time in even}) != 1:
        raise DemixError(
            f"Expected dates whose day and month can be told apart, but {path} has such as "
            f"{shortened(cells[0])}; write them as 2024-12-31."
        )
    return even[0]


def spacing(time: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the usual step between moments ``(N,)`` in words, and which ``(N - 1,)`` differ."""
    dates = time.dtype.kind == "M"
    if dates:
        time = time.astype("M8[us]")
        for day in (time, time + np.timedelta64(1, "D")):  # the first or the last day of a month
            months = day.astype("M8[M]")
            counts = np.unique(np.diff(months).astype(int))
            if len(counts) == 1 and counts[0] > 0 and len(np.unique(day - months)) == 1:
                words = "month" if counts[0] == 1 else f"{counts[0]} months"
                return words, np.zeros(len(time) - 1, dtype=bool)
    steps = np.diff(time).astype(np.float64) / (1e6 if dates else 1)
    usual = float(np.median(steps)) if len(steps) else 0.0
    unit, size = next((u for u in _UNITS if usual % u[1] == 0), _UNITS[-1]) if dates else ("", 1)
    return f"{usual / size:g} {unit}".strip(), np.abs(steps - usual) > _JITTER * abs(usual)


def _dates(cells: list[str]) -> tuple[list[np.ndarray], int]:
    """Return all readings as dates, and the first cell that the best reading cannot take."""
    found, best = [], 0
    for form in ("", *map("".join, product(_DAYS, _CLOCKS))):
        times: list[datetime] = []
        try:
            for cell in cells:
                times += [datetime.strptime(cell, form) if form else datetime.fromisoformat(cell)]
            if len({time.tzinfo is None for time in times}) > 1:
                continue
            zoned = times[0].tzinfo is not None
            plain = [t.astimezone(UTC).replace(tzinfo=None) if zoned else t for t in times]
            time = np.array(plain, dtype="M8[us]")
            steps = np.diff(time)
            usual = np.sort(steps)[len(steps) // 2 :][:1]
            # Where clocks without a time zone were set back by an hour, time went on.
            back = (steps == usual - _HOUR) & (usual <= _HOUR) & (not zoned)
            found.append(time + np.append(0, np.cumsum(back)) * _HOUR)
        except (ValueError, OverflowError):
            best = max(best, len(times))
    return found, min(best, len(cells) - 1)
