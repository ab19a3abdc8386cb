"""The estimator for the pairs, labels or time order that a user gives."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import demix
from demix._support.errors import DemixError, warn
from demix.cli.options import FitOptions
from demix.data.data import Data
from demix.data.moments import spacing
from demix.data.supervision import read_labels, read_pairs, read_time
from demix.estimators.base import Demixer
from demix.estimators.fitting import default_recipe


def set_up(options: FitOptions, data: Data) -> tuple[Demixer, dict[str, Any], bool, str]:
    """Return an estimator for rows, what else ``fit`` takes, whether time counts, what was read."""
    o = options
    label_file = o.labels or (None if o.label_column is None else o.data)
    label_option = "--labels" if o.labels else "--label-column"
    named = [("--pairs", o.pairs), ("--lag", o.lag), (label_option, label_file)]
    given = [name for name, x in [*named, ("--instances", o.instances)] if x]
    if len(given) > 1:
        raise DemixError(f"Pairs come from one source, but got {' and '.join(given)}; choose one.")
    if o.threads is not None:
        torch.set_num_threads(o.threads)
    size = " x ".join(map(str, data.shape[1:])) + (" pixels" if data.shape[2:] else " columns")
    read = [f"{len(data):,} rows".replace(",", " "), size, data.form]
    if o.time is not None or o.time_column is not None:
        read += _time_in_words(data, o.time or o.data, o.time_column)
    common: dict[str, Any] = {"n_latents": o.n_latents, "random_state": o.seed, "device": o.device}
    common |= {} if o.space is None else {"space": o.space}
    common |= {} if o.validation is None else {"validation": o.validation}
    if o.steps is not None:
        # Consensus and check-up fit again to part of the rows, at least half of them.
        common["recipe"] = replace(default_recipe(len(data) // 2), steps=o.steps)
    settings = {"body": o.encoder, "components": o.components}
    common["encoder"] = {name: x for name, x in settings.items() if x is not None} or None
    targets: dict[str, Any] = {}
    demixer: Demixer
    for name, assumed in (("conditional", o.conditional), ("marginal", o.marginal)):
        if (label_file or o.instances) and assumed is not None:
            raise DemixError(f"A {name} describes pairs, but got {given[0]}; leave it out.")
    if label_file is None and o.logits is not None:
        raise DemixError("Logits are those of labels, but there are none; leave --logits out.")
    if label_file is not None:
        common |= {} if o.logits is None else {"logits": o.logits}
        labels = read_labels(label_file, column=o.label_column).as_given()
        _check_count(data, label_file, len(labels), "labels")
        read += [f"labels in {_place(label_file, o.label_column)}"]
        demixer, targets = demix.ClassifierDemixer(**common), {"y": labels}
    elif o.instances:
        if o.validation is not None:
            raise DemixError("Instances hold out views of all rows; leave --validation out.")
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
    in_time = demixer.time_lag(targets.get("positives")) is not None
    return demixer, targets, in_time, ", ".join(filter(None, read))


def _place(file: Path, column: str | None) -> str:
    return file.name if column is None else f"column {column!r}"


def _time_in_words(data: Data, file: Path, column: str | None) -> list[str]:
    """Return where the time of rows is and its step, with a warning if it is uneven."""
    time = read_time(file, column=column)
    _check_count(data, file, len(time), "moments")
    step, other = spacing(time)
    if other.any():
        warn(
            f"{other.sum()} of {len(other)} steps of time in {file} are not the usual {step}, the "
            f"first of them after row {other.argmax()} (counted from 0); a lag counts rows, so "
            "fill gaps."
        )
    return [f"time in {_place(file, column)}", f"{'mostly ' if other.any() else ''}every {step}"]


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
        problem = f"--lag takes a number or a range such as 1:5, but got {text!r}."
        raise DemixError(problem) from None
