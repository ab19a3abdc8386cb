"""What the tables of the measurements are made of: words."""

from __future__ import annotations

from typing import NamedTuple


class BenchTable(NamedTuple):
    """A table of words: what it shows, its columns, its rows and what to know about it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def seconds(value: float | None) -> str:
    """Write seconds, milliseconds or microseconds."""
    if value is None:
        return "–"
    if value >= 1:
        return f"{figure(value)} s"
    return f"{figure(1e3 * value)} ms" if value >= 1e-4 else f"{figure(1e6 * value)} µs"


def percent(share: float | None) -> str:
    """Write a share in percent."""
    return "–" if share is None else f"{100 * share:.2f} %"


def mib(value: float | None) -> str:
    """Write bytes in MiB."""
    return "–" if value is None else f"{value / 2**20:,.1f} MiB"


def figure(value: float | None) -> str:
    """Write three digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
