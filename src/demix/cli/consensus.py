"""``demix consensus``: several fits of one file, and what they agree on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from demix._support.errors import DemixError
from demix.cli.options import HELPS, AsJson, FitOptions, Overwrite, app, with_fit_options

_MOST_SEEDS = 1000


@app.command(epilog="Example:  demix consensus series.csv --lag 1:5 --seeds 5 --out agreed")
@with_fit_options
def consensus(
    options: FitOptions,
    *,
    out: Annotated[Path, typer.Option(help="Folder for runs, latents and report.")],
    seeds: Annotated[int, typer.Option(help="How many runs, each with another seed.")] = 5,
    held_out: Annotated[float, typer.Option(help="Share of rows that no run is fitted to.")] = 0.25,
    group: Annotated[str | None, typer.Option(help=HELPS["group"])] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fit with several seeds, and keep the latents that the runs agree on.

    No factors need to be known: on held-out rows each run is compared with the consensus of the
    others. Writes consensus.json, latents.npy, report.html and a model folder for each run. A
    killed command continues where it stopped.
    """
    rows = options.read_rows()
    if not 2 <= seeds <= _MOST_SEEDS:
        raise DemixError(f"--seeds must be from 2 to {_MOST_SEEDS}, but got {seeds}.")
    from demix._support.files import new_array
    from demix._support.outputs import check_folder
    from demix.cli.claims import claimed
    from demix.cli.console import console, print_json, print_lines
    from demix.cli.models import LATENTS
    from demix.cli.progress import TrainingTask, training_bar
    from demix.cli.sources import set_up
    from demix.diagnostics.consensus import consensus as fit_consensus
    from demix.training.checkpoints import checkpoint_files, remove_checkpoint

    (demixer, targets, in_time, read), first = set_up(options, rows), options.seed
    checkpoints = [f"seed-{first + run}.safetensors" for run in range(seeds)]
    leftovers = [file.name for name in checkpoints for file in checkpoint_files(name)]
    about = {"data file": options.data.name}
    rules: dict[str, Any] = {"overwrite": overwrite, "about": about, "leftovers": leftovers}
    with claimed("consensus", out, "consensus.json", options.inputs, **rules) as claim:
        folder, origin, marker = claim.folder, claim.origin, claim.marker
        runs = {folder / f"seed-{run}" for run in range(first, first + seeds)}
        for place in runs:
            check_folder(place)
        if others := sorted({*folder.glob("seed-*/")} - runs):
            raise DemixError(f"{others[0]} is of other seeds; remove it, or choose a new folder.")
        with (  # the folder is claimed: latents of any shape that lie there are of an earlier run
            new_array(folder / LATENTS, (len(rows), options.n_latents)) as latents,
            training_bar(console(errors=True)) as progress,
        ):
            bars = [TrainingTask(progress, f"run {run + 1} of {seeds}") for run in range(seeds)]
            bars[0].about = read
            targets |= {"held_out": held_out, "equivalence": group, "out": latents}
            targets |= {"callback": lambda run, *step: bars[run].step(*step)}
            agreed = fit_consensus(demixer, rows, seeds, checkpoint=folder, **targets)
            claim.begin()
            facts = {"origin": origin, "rows": len(rows), "time_order": in_time}
            for number, model in zip(agreed.seeds, agreed.models, strict=True):
                model.save(folder / f"seed-{number}", about=facts)
        agreed.report(folder / "report.html", rows, time_order=in_time, provenance=origin)
        found = {**agreed.to_dict(), "provenance": claim.provenance}
        claim.finish(found)
        for name in checkpoints:
            remove_checkpoint(folder / name)
    if as_json:
        print_json(found)
        return
    ends = zip(agreed.stability, agreed.low, agreed.high, strict=True)
    for j, (r2, low, high) in enumerate(ends, start=1):
        print_lines(f"dimension {j}: R² {r2:.3f} (95 % interval {low:.3f} to {high:.3f})")
    print_lines(
        agreed.verdict,
        f"Open {folder / 'report.html'}; {LATENTS}, {marker} and the runs are in the same folder.",
    )
