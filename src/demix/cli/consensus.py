"""``demix consensus``: several fits of one file, and what they agree on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from demix._support.errors import DemixError
from demix._support.outputs import check_folder
from demix._support.provenance import provenance
from demix.cli.bars import Bar, training_bar
from demix.cli.claims import begin, claimed, finish
from demix.cli.console import console
from demix.cli.fitted import LATENTS, SHOWN, facts_of, opened
from demix.cli.options import Options
from demix.cli.sources import Prepared, prepared
from demix.data.data import Data
from demix.diagnostics.consensus import consensus
from demix.diagnostics.consensus_result import STABLE, Consensus
from demix.report.blocks import Kind, Verdict
from demix.report.consensus import consensus_page
from demix.report.page import write_page
from demix.training.checkpoints import checkpoint_files, remove_checkpoint
from demix.training.loop import Record

_MARKER = "consensus.json"
_COMPARED = 2000
_MOST_SEEDS = 1000
# Facts of one run that are not those of all.
_OWN = ("steps", "training", "seed", "rows")


def run_consensus(
    options: Options,
    data: Data,
    out: Path,
    *,
    seeds: int,
    held_out: float,
    group: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fit with every seed, and write what the runs agree on."""
    if not 2 <= seeds <= _MOST_SEEDS:
        raise DemixError(f"--seeds must be from 2 to {_MOST_SEEDS}, but got {seeds}.")
    found = prepared(options, data)
    checkpoints = [f"seed-{options.seed + run}.safetensors" for run in range(max(0, seeds))]
    leftovers = [file.name for name in checkpoints for file in checkpoint_files(name)]
    about = {"data file": options.file.name}
    claim = claimed(
        out,
        _MARKER,
        command="demix consensus",
        inputs=options.inputs,
        overwrite=overwrite,
        about=about,
        leftovers=[*leftovers, LATENTS],
        resumes=True,
    )
    with claim as (folder, origin):
        begin(folder / _MARKER, origin)
        for seed in range(options.seed, options.seed + seeds):
            check_folder(folder / f"seed-{seed}")
        with training_bar(console(errors=True)) as progress:
            agreed = consensus(
                found.demixer,
                found.data,
                seeds,
                **found.beside,
                held_out=held_out,
                equivalence=group,
                out=folder / LATENTS,
                callback=_bars(progress, seeds),
                checkpoint=folder,
            )
        facts = {"origin": origin, "rows": len(found.data), "time_order": found.in_time}
        for seed, model in zip(agreed.seeds, agreed.models, strict=True):
            model.save(folder / f"seed-{seed}", about=facts)
        write_page(_page(agreed, found, folder, origin), folder / "report.html")
        told = {**agreed.to_dict(), "provenance": {**origin, **provenance()}}
        finish(folder / _MARKER, told)
        for name in checkpoints:
            remove_checkpoint(folder / name)
    if as_json:
        print(json.dumps(told, indent=2))
        return
    for j, (r2, low, high) in enumerate(
        zip(agreed.stability, agreed.low, agreed.high, strict=True), start=1
    ):
        typer.echo(f"dimension {j}: R² {r2:.3f} (95 % interval {low:.3f} to {high:.3f})")
    typer.echo(
        f"{agreed.verdict}\nOpen {folder / 'report.html'}; {LATENTS}, {_MARKER} and the runs are "
        "beside it."
    )


def _bars(progress: Any, seeds: int) -> Any:
    bars: dict[int, Bar] = {}

    def step(run: int, step: int, steps: int, record: Record) -> None:
        if run not in bars:
            bars[run] = Bar(progress, f"run {run + 1} of {seeds}", steps, "score")
        bars[run].step(step, record)

    return step


def _page(agreed: Consensus, found: Prepared, folder: Path, origin: dict[str, str]) -> Any:
    each = agreed.per_run.mean(axis=1)
    best, worst = int(each.argmax()), int(each.argmin())
    rows = agreed.held_out[:: max(1, len(agreed.held_out) // _COMPARED)]
    aligned = agreed.aligned(found.data.only(torch.from_numpy(rows)))
    shown = np.arange(len(agreed.latents))
    if len(shown) > SHOWN:
        shown = np.linspace(0, len(shown) - 1, SHOWN).round().astype(int)
    facts = facts_of(opened(folder / f"seed-{agreed.seeds[0]}"))
    n, count = len(agreed.stability), len(agreed.seeds)
    kind: Kind = "good" if agreed.stable.all() else "neutral" if agreed.stable.any() else "bad"
    return consensus_page(
        title=f"What {count} runs agree on: {n} latents of {len(agreed.latents)} rows",
        summary=(
            f"{facts['estimator']} was fitted with {count} seeds to the same rows. Runs may differ "
            f"by {agreed.equivalence.words}"
            + (f" ({agreed.equivalence.theorem})" if agreed.equivalence.theorem else "")
            + f"; up to that they were brought together and compared on {len(agreed.held_out)} "
            "rows that no run has seen. Agreement is needed for a latent to be real, but does not "
            "prove it: all runs may be wrong alike."
        ),
        verdict=Verdict(kind, agreed.verdict),
        stability={
            "values": agreed.stability,
            "low": agreed.low,
            "high": agreed.high,
            "null": agreed.null,
            "untrained": agreed.untrained,
            "threshold": STABLE,
            "stable": agreed.stable.tolist(),
        },
        runs=[
            {"name": f"seed {seed}", "r2": r2, "gain": {**asdict(gain), "level": 0.95}}
            for seed, r2, gain in zip(agreed.seeds, each, agreed.gains, strict=True)
        ],
        pair=(aligned[best], aligned[worst]),
        pair_names=(f"seed {agreed.seeds[best]}", f"seed {agreed.seeds[worst]}"),
        latents=np.asarray(agreed.latents[shown]),
        facts={
            **{name: value for name, value in facts.items() if name not in _OWN},
            "runs may differ by": agreed.equivalence.words,
            "seeds": ", ".join(map(str, agreed.seeds)),
            "rows": len(agreed.latents),
            "rows that judged": len(agreed.held_out),
        },
        time=shown if found.in_time else None,
        notes=agreed.models[0].notes_,
        provenance={**origin, "data": f"sha256 {found.data.digest()}", **provenance()},
    )
