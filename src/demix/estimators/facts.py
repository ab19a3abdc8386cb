"""Checks of what a model folder says about its fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from demix._support.errors import DemixError, shortened
from demix.encoders.encoder import Encoder
from demix.estimators.assumptions import default_conditional

Test = Callable[[Any], bool]
# Whole numbers beyond it fit into no float; NaN is not below it, either.
_MOST = 1e300


def check_facts(about: Mapping[str, Any], place: Any, *, complete: bool = True) -> None:
    """Raise a DemixError if a fact has another type than a fit writes.

    Checksums do not protect from whoever wrote the folder. Unless ``complete``, facts may be
    missing, as those of a bare encoder are.
    """
    for name, (test, words) in {**_FACTS, **_OPTIONAL}.items():
        required = complete and name not in _OPTIONAL
        if (required or name in about) and not test(about.get(name)):
            found = shortened(repr(about[name]), 60) if name in about else "nothing"
            raise DemixError(
                f"Expected {words} as {name} in {place}, but got {found}; fit it again."
            )


def facts_in_words(encoder: Encoder, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the assumptions and settings of a fit, for a report."""
    parameters, space = about["parameters"], encoder.space
    conditional = None
    if "conditional" in parameters:
        conditional = parameters["conditional"] or default_conditional(space)
    facts = {
        "estimator": about["estimator"],
        "space": repr(space),
        "conditional": conditional,
        "marginal": parameters.get("marginal"),
        "lag": parameters.get("lag") if about.get("time_order") else None,
        "latents": space.dim,
        "rows": about.get("rows"),
        "features": encoder.settings["dim_in"],
        "steps": f"{about['steps']}, best after {about['best_step']}",
        "training": f"{about['seconds']:.0f} s",
        "seed": parameters.get("random_state"),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _is(kind: type) -> Test:
    return lambda value: isinstance(value, kind)


_is_text, _is_mapping, _is_truth = _is(str), _is(dict), _is(bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | str) or _is_number(value)


def _list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _mapping_of(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _are_names(value: Any) -> bool:
    return _list_of(_is_text)(value) and len(set(value)) == len(value)


def _is_gain(value: Any) -> bool:
    ends = ("low", "high")
    return (
        isinstance(value, dict)
        and set(value) == {"bits", "ceiling", "loss", "sharpness", "p_value", *ends}
        and all(_is_number(v) or (v is None and name in ends) for name, v in value.items())
    )


_record = _mapping_of(lambda value: value is None or _is_number(value))
# Each fact, its test, and what is expected in words.
_FACTS: dict[str, tuple[Test, str]] = {
    "estimator": (_is_text, "a name"),
    "parameters": (_is_mapping, "a mapping"),
    "gain": (_is_gain, "seven numbers"),
    "history": (_list_of(_record), "records of numbers"),
    "best_step": (_is_count, "a whole number"),
    "steps": (_is_count, "a whole number"),
    "seconds": (_is_number, "a number"),
    "notes": (_list_of(_is_text), "sentences"),
    "data": (_is_text, "a checksum"),
    "provenance": (_mapping_of(_is_plain), "a mapping of plain values"),
}
# Those that only some fits have.
_OPTIONAL: dict[str, tuple[Test, str]] = {
    "feature_names": (_are_names, "names that differ"),
    "classes": (_list_of(_is_plain), "labels"),
    "origin": (_mapping_of(_is_plain), "a mapping of plain values"),
    "rows": (_is_count, "a whole number"),
    "time_order": (_is_truth, "true or false"),
}
