"""``demix fit``: latents of a user's own data, with a model folder and a report."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from demix.cli.bars import Bar, training_bar
from demix.cli.fitted import LATENTS, told, write_report
from demix.cli.warning import warnings_to
from demix.data import Data, check_data, read_data, read_labels, read_pairs, read_time
from demix.errors import DemixError
from demix.estimators import ClassifierDemixer, ContrastiveDemixer, InstanceDemixer, encode
from demix.estimators.fitting import Report
from demix.files import claim_folder, write_atomic
from demix.training import Record
from demix.validation import check_seed

_MARKER, _CHECKPOINT = "fit.json", "checkpoint.safetensors"


def run_fit(
    file: Path,
    out: Path,
    *,
    pairs: Path | None,
    lag: str | None,
    labels: Path | None,
    instances: bool,
    time: Path | None,
    key: str | None,
    columns: list[str] | None,
    space: str | None,
    conditional: str | None,
    n_latents: int,
    seed: int,
    as_json: bool,
) -> None:
    """Fit the estimator that suits what is given beside the data; nothing is written before."""
    console = Console(stderr=True)
    check_seed(seed)
    given = [name for name, x in [("--pairs", pairs), ("--lag", lag), ("--labels", labels)] if x]
    given += ["--instances"] if instances else []
    if len(given) > 1:
        raise DemixError(f"Pairs come from one source, but got {' and '.join(given)}; choose one.")
    data = read_data(file, key=key, columns=columns)
    _check_time(time, data)
    check_data(data)
    common: dict[str, Any] = {"n_latents": n_latents, "random_state": seed}
    common |= {} if space is None else {"space": space}
    beside: dict[str, Any] = {}
    demixer: ContrastiveDemixer | ClassifierDemixer | InstanceDemixer
    if (labels is not None or instances) and conditional is not None:
        raise DemixError(f"A conditional describes pairs, but got {given[0]}; leave it out.")
    if labels is not None:
        read = read_labels(labels)
        if len(read.values) != len(data):
            raise DemixError(
                f"{file} has {len(data)} rows, but {labels} has {len(read.values)} labels; give "
                "one for each row."
            )
        named = read.values if read.names is None else np.array(read.names)[read.values]
        demixer, beside = ClassifierDemixer(**common), {"y": named}
    elif instances:
        demixer = InstanceDemixer(**common)
    else:
        demixer = ContrastiveDemixer(**common, conditional=_conditional(conditional), lag=_lag(lag))
        if pairs is not None:
            beside = {"positives": read_pairs(pairs, len(data))}
    new = [place for place in (out, *out.parents) if not place.exists()]
    folder = claim_folder(out, _MARKER, command="demix fit")
    marker = folder / _MARKER
    before = marker.read_bytes() if marker.exists() else None
    origin = {"command": shlex.join(["demix", *sys.argv[1:]]), "data file": file.name}
    write_atomic(marker, json.dumps({"provenance": origin}, indent=2) + "\n")
    try:
        with warnings_to(console), training_bar(console) as progress:
            report = _bar(progress)
            demixer.fit(data, **beside, report=report, checkpoint=folder / _CHECKPOINT)
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on where it stopped.")
        raise typer.Exit(130) from None
    except DemixError:
        _take_back(folder, before, new)
        raise
    latents = np.lib.format.open_memmap(
        folder / LATENTS, mode="w+", dtype=np.float32, shape=(len(data), n_latents)
    )
    encode(demixer.encoder_, data, latents)
    latents.flush()
    about = {"origin": origin, "rows": len(data), "time_order": not given or given == ["--lag"]}
    demixer.save(folder, about=about)
    (folder / _CHECKPOINT).unlink(missing_ok=True)
    write_report(folder, data=data)
    if as_json:
        print(json.dumps(told(folder), indent=2))
        return
    gain = demixer.gain_
    typer.echo(
        f"{n_latents} latents of {len(data)} rows in {demixer.seconds_:.0f} s of training; gain "
        f"over permuted {demixer.teachers}: {gain}, held out.\n"
        f"Open {folder / 'report.html'}; the model and {LATENTS} are beside it."
    )


def _take_back(folder: Path, before: bytes | None, new: list[Path]) -> None:
    """Leave a folder as it was before what cannot be fitted; ``new`` are folders that were made."""
    if before is not None:
        write_atomic(folder / _MARKER, before)
        return
    for name in (_MARKER, _CHECKPOINT):
        (folder / name).unlink(missing_ok=True)
    for place in new:
        with suppress(OSError):
            place.rmdir()


def _bar(progress: Any) -> Report:
    bars: list[Bar] = []

    def step(step: int, steps: int, record: Record) -> None:
        if not bars:
            bars.append(Bar(progress, "training", steps, "score"))
        bars[0].step(step, record)

    return step


def _conditional(text: str | None) -> str | float | None:
    """Read a name, or a number as the shape of a generalised normal."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _lag(text: str | None) -> int | tuple[int, int]:
    """Read ``3`` or ``1:5``."""
    first, colon, last = (text or "1").partition(":")
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
