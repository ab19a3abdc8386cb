"""The estimator for the pairs, labels or time order that a user gives."""

import math
from pathlib import Path
from typing import Any

import demix
from demix._support.errors import DemixError
from demix.cli.options import FitOptions
from demix.data.data import Data
from demix.data.supervision import read_labels, read_pairs, read_time
from demix.estimators.base import Demixer


def set_up(options: FitOptions, data: Data) -> tuple[Demixer, dict[str, Any], bool]:
    """Return an estimator for rows, its further arguments of ``fit``, and whether time counts."""
    o = options
    named = [("--pairs", o.pairs), ("--lag", o.lag), ("--labels", o.labels)]
    given = [name for name, x in named if x] + (["--instances"] if o.instances else [])
    if len(given) > 1:
        raise DemixError(f"Pairs come from one source, but got {' and '.join(given)}; choose one.")
    if o.time is not None:
        _check_count(data, o.time, len(read_time(o.time)), "moments")
    common: dict[str, Any] = {"n_latents": o.n_latents, "random_state": o.seed}
    common |= {} if o.space is None else {"space": o.space}
    targets: dict[str, Any] = {}
    demixer: Demixer
    for name, assumed in (("conditional", o.conditional), ("marginal", o.marginal)):
        if (o.labels is not None or o.instances) and assumed is not None:
            raise DemixError(f"A {name} describes pairs, but got {given[0]}; leave it out.")
    if o.labels is None and o.logits is not None:
        raise DemixError("Logits are those of labels, but there are none; leave --logits out.")
    if o.labels is not None:
        common |= {} if o.logits is None else {"logits": o.logits}
        labels = read_labels(o.labels).as_given()
        _check_count(data, o.labels, len(labels), "labels")
        demixer, targets = demix.ClassifierDemixer(**common), {"y": labels}
    elif o.instances:
        demixer = demix.InstanceDemixer(**common)
    else:
        common |= {"conditional": _conditional(o.conditional), "lag": _lag(o.lag)}
        common |= {} if o.marginal is None else {"marginal": o.marginal}
        demixer = demix.ContrastiveDemixer(**common)
        if o.pairs is not None:
            targets = {"positives": read_pairs(o.pairs, len(data))}
    most = max(len(data), math.prod(data.shape[1:]))
    if demixer._space().dim > most:
        raise DemixError(
            f"--n-latents must be at most {most}, the rows or the numbers in a row of "
            f"{data.source}, but got {o.n_latents}; choose fewer."
        )
    return demixer, targets, demixer.time_lag(targets.get("positives")) is not None


def _check_count(data: Data, file: Path, count: int, what: str) -> None:
    if count != len(data):
        rows = f"{data.source} has {len(data)} rows"
        raise DemixError(f"{rows}, but {file} has {count} {what}; give one for each row.")


def _conditional(text: str | None) -> str | float | None:
    """Read a name, or a number as the shape of a generalised normal."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _lag(text: str | None) -> int | tuple[int, int]:
    """Read ``3`` or ``1:5``."""
    first, colon, last = ("1" if text is None else text).partition(":")
    try:
        return (int(first), int(last)) if colon else int(first)
    except ValueError:
        raise DemixError(
            f"--lag takes a number or a range such as 1:5, but got {text!r}."
        ) from None
