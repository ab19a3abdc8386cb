"""The estimator that suits what a user gives beside the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix.cli.options import Options
from demix.data.data import Data
from demix.data.supervision import read_labels, read_pairs, read_time
from demix.estimators.classifier import ClassifierDemixer
from demix.estimators.contrastive import ContrastiveDemixer
from demix.estimators.instance import InstanceDemixer

Estimator = ContrastiveDemixer | ClassifierDemixer | InstanceDemixer


@dataclass(frozen=True)
class Prepared:
    """Data that were read and checked, an estimator for them, and its arguments beside them."""

    data: Data
    demixer: Estimator
    beside: dict[str, Any]
    in_time: bool


def prepared(options: Options, data: Data) -> Prepared:
    """Read what is given beside the rows and choose the estimator; nothing is written."""
    o = options
    named = [("--pairs", o.pairs), ("--lag", o.lag), ("--labels", o.labels)]
    given = [name for name, x in named if x] + (["--instances"] if o.instances else [])
    if len(given) > 1:
        raise DemixError(f"Pairs come from one source, but got {' and '.join(given)}; choose one.")
    _check_time(o.time, data)
    common: dict[str, Any] = {"n_latents": o.n_latents, "random_state": o.seed}
    common |= {} if o.space is None else {"space": o.space}
    beside: dict[str, Any] = {}
    demixer: Estimator
    if (o.labels is not None or o.instances) and o.conditional is not None:
        raise DemixError(f"A conditional describes pairs, but got {given[0]}; leave it out.")
    if o.labels is not None:
        read = read_labels(o.labels)
        if len(read.values) != len(data):
            raise DemixError(
                f"{o.file} has {len(data)} rows, but {o.labels} has {len(read.values)} labels; "
                "give one for each row."
            )
        demixer, beside = ClassifierDemixer(**common), {"y": read.as_given()}
    elif o.instances:
        demixer = InstanceDemixer(**common)
    else:
        demixer = ContrastiveDemixer(
            **common, conditional=_conditional(o.conditional), lag=_lag(o.lag)
        )
        if o.pairs is not None:
            beside = {"positives": read_pairs(o.pairs, len(data))}
    return Prepared(data, demixer, beside, in_time=not given or given == ["--lag"])


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


def _check_time(file: Path | None, data: Data) -> None:
    if file is None:
        return
    moments = read_time(file)
    if len(moments) != len(data):
        raise DemixError(
            f"{data.source} has {len(data)} rows, but {file} has {len(moments)} moments; give one "
            "for each row."
        )
