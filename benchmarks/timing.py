"""Times of several things side by side, in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from statistics import median

Say = Callable[[str], None]
"""Told what is being measured, between measurements."""

# A shorter measurement is repeated: below, the clock and the scheduler are a part of it.
_LEAST = 0.02
_MOST_REPEATS = 100


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    say: Say = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time each of ``calls`` once per round, one after the other.

    What slows the machine down for a while then slows all of them, so that their ratios keep.
    A round that is not counted goes first.

    Parameters
    ----------
    calls : mapping of str to callable
        What to time, by name.
    rounds : int
        How often.
    say : callable, optional
        Told before each measurement, outside of what is timed.
    clock : callable, optional
        The seconds; those of one thread alone leave out what others take of the processor.

    Returns
    -------
    dict of str to list of float
        Seconds of each round.

    Examples
    --------
    >>> from benchmarks.timing import interleaved
    >>> times = interleaved({"sum": lambda: sum(range(100)), "nothing": lambda: None}, rounds=3)
    >>> [(name, len(seconds)) for name, seconds in times.items()]
    [('sum', 3), ('nothing', 3)]
    """
    repeats = {}
    for name, call in calls.items():
        say(f"{name}, warming up")
        repeats[name] = min(_MOST_REPEATS, math.ceil(_LEAST / max(_seconds(call, 1, clock), 1e-9)))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(1, rounds + 1):
        for name, call in calls.items():
            say(f"{name}, round {number} of {rounds}")
            seconds[name].append(_seconds(call, repeats[name], clock))
    return seconds


def _seconds(call: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def under(title: str, say: Say) -> Say:
    """Return a ``say`` that puts ``title`` before everything."""
    return lambda what: say(f"{title}: {what}")


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median over the rounds of each name."""
    return {name: median(seconds) for name, seconds in times.items()}


def ratios(times: Mapping[str, list[float]], ours: str) -> dict[str, float]:
    """Return how many times longer than ``ours`` each other name takes: the median over rounds.

    Examples
    --------
    >>> from benchmarks.timing import ratios
    >>> ratios({"ours": [1.0, 2.0, 1.0], "theirs": [3.0, 6.0, 9.0]}, "ours")
    {'theirs': 3.0}
    """
    return {
        name: median(a / b for a, b in zip(seconds, times[ours], strict=True))
        for name, seconds in times.items()
        if name != ours
    }
