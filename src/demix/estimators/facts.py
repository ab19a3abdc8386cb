"""What a model folder tells of its fit, checked before anything relies on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from demix._support.errors import DemixError, shortened

Test = Callable[[Any], bool]
# Beyond it whole numbers fit into no float; NaN is not below it, either.
_MOST = 1e300


def check_facts(about: Mapping[str, Any], place: Any) -> None:
    """Refuse facts of other kinds than a fit writes, whoever wrote and sealed them.

    Examples
    --------
    >>> from demix.estimators.facts import check_facts
    >>> check_facts({"estimator": "ContrastiveDemixer", "parameters": []}, "model")
    Traceback (most recent call last):
    demix.DemixError: Expected a mapping as parameters in model, but got []; fit it again.
    """
    for name, (test, words) in _FACTS.items():
        if not (name in _OPTIONAL and name not in about) and not test(about.get(name)):
            found = shortened(repr(about[name]), 60) if name in about else "nothing"
            raise DemixError(
                f"Expected {words} as {name} in {place}, but got {found}; fit it again."
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _mapping_of(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _are_names(value: Any) -> bool:
    return _list_of(_is_text)(value) and len(set(value)) == len(value)


def _is_gain(value: Any) -> bool:
    known = {"bits", "low", "high", "loss", "null"}
    ends = ("low", "high")
    return (
        isinstance(value, dict)
        and set(value) == known
        and all(_is_number(v) or (v is None and name in ends) for name, v in value.items())
    )


_plain = _or_none(lambda value: _is_text(value) or _is_number(value) or isinstance(value, bool))

# A fact, how to tell it and its words.
_FACTS: dict[str, tuple[Test, str]] = {
    "estimator": (_is_text, "a name"),
    "parameters": (lambda value: isinstance(value, dict), "a mapping"),
    "gain": (_is_gain, "five numbers"),
    "history": (_list_of(_mapping_of(_or_none(_is_number))), "records of numbers"),
    "best_step": (_is_count, "a whole number"),
    "steps": (_is_count, "a whole number"),
    "seconds": (_is_number, "a number"),
    "notes": (_list_of(_is_text), "sentences"),
    "data": (_is_text, "a checksum"),
    "provenance": (_mapping_of(_plain), "a mapping of plain values"),
    "feature_names": (_are_names, "names that differ"),
    "classes": (_list_of(_plain), "labels"),
    "origin": (_mapping_of(_plain), "a mapping of plain values"),
    "rows": (_is_count, "a whole number"),
    "time_order": (lambda value: isinstance(value, bool), "true or false"),
}
# Those that only some fits have.
_OPTIONAL = ("feature_names", "classes", "origin", "rows", "time_order")
