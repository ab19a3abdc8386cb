"""``demix fit``: latents of a user's own data, with a model folder and a report."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import typer

from demix._support.errors import DemixWarning
from demix._support.files import new_array
from demix._support.process_group.launch import joined
from demix.cli.bars import Bar, training_bar
from demix.cli.claims import begin, claimed, finish
from demix.cli.console import console
from demix.cli.fitted import LATENTS, told, write_report
from demix.cli.options import Options
from demix.cli.sources import prepared
from demix.data.data import Data
from demix.estimators.encoding import encode
from demix.estimators.fitting import Callback
from demix.training.checkpoints import checkpoint_files, remove_checkpoint
from demix.training.loop import Record

_MARKER, _CHECKPOINT = "fit.json", "checkpoint.safetensors"


def run_fit(options: Options, data: Data, out: Path, *, overwrite: bool, as_json: bool) -> None:
    """Fit the estimator that suits what is given beside the data; nothing is written before.

    Of the ranks that `torchrun` has started all train, and rank 0 does the rest.
    """
    with joined() as ranks:
        if ranks.leads:
            _fit(options, data, out, overwrite=overwrite, as_json=as_json)
        else:
            _follow(options, data)


def _follow(options: Options, data: Data) -> None:
    """Take part in the training, and leave no trace."""
    found = prepared(options, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        found.demixer.fit(found.data, **found.beside)


def _fit(options: Options, data: Data, out: Path, *, overwrite: bool, as_json: bool) -> None:
    found = prepared(options, data)
    demixer = found.demixer
    about = {"data file": options.file.name}
    leftovers = [file.name for file in checkpoint_files(_CHECKPOINT)]
    claim = claimed(
        out,
        _MARKER,
        command="demix fit",
        inputs=options.inputs,
        overwrite=overwrite,
        about=about,
        leftovers=leftovers,
        resumes=True,
    )
    with claim as (folder, origin):
        checkpoint = folder / _CHECKPOINT
        with training_bar(console(errors=True)) as progress:
            demixer.fit(data, **found.beside, callback=_bar(progress), checkpoint=checkpoint)
        begin(folder / _MARKER, origin)
        with new_array(folder / LATENTS, (len(data), options.n_latents)) as latents:
            encode(demixer.encoder_, data, latents)
        facts = {"origin": origin, "rows": len(data), "time_order": found.in_time}
        demixer.save(folder, about=facts)
        write_report(folder, data=data, unfinished=True)
        finish(folder / _MARKER, {"provenance": origin})
        # Last: a second try after any trouble on the way need not train again.
        remove_checkpoint(checkpoint)
    if as_json:
        print(json.dumps(told(folder), indent=2))
        return
    gain = demixer.gain_
    typer.echo(
        f"{options.n_latents} latents of {len(data)} rows in {demixer.seconds_:.0f} s of training; "
        f"gain over permuted {demixer.targets}: {gain}, held out.\n"
        f"Open {folder / 'report.html'}; the model and {LATENTS} are beside it."
    )


def _bar(progress: Any) -> Callback:
    bars: list[Bar] = []

    def step(step: int, steps: int, record: Record) -> None:
        if not bars:
            bars.append(Bar(progress, "training", steps, "score"))
        bars[0].step(step, record)

    return step
