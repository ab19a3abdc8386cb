"""``demix fit``: latents of a user's own data, with a model folder and a report."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from demix._support.errors import DemixWarning
from demix.cli.options import AsJson, FitOptions, Overwrite, app, with_fit_options

_CHECKPOINT = "checkpoint.safetensors"
# What --json prints of a model folder.
_KEYS = ("estimator", "parameters", "gain", "steps", "best_step", "seconds", "rows", "notes")


@app.command(epilog="Example:  demix fit series.csv --lag 1:5 --n-latents 3 --out model")
@with_fit_options
def fit(
    options: FitOptions,
    *,
    out: Annotated[Path, typer.Option(help="Folder for model, latents and report.")],
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Recover latents from your own data: from pairs, time order, labels or rows alone.

    Part of the data is held out; what the model knows of it is told in bits, zero being a guess.
    Writes a model folder with latents.npy and report.html. A killed run continues where it stopped.
    """
    rows = options.read_rows()
    from demix._support.process_group.group import joined
    from demix.cli.sources import set_up

    with joined() as ranks:  # all ranks of torchrun train, and rank 0 does the rest
        demixer, targets, in_time, read = set_up(options, rows)
        if not ranks.leads:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DemixWarning)
                demixer.fit(rows, **targets)
            return
        from demix._support.files import new_array
        from demix.cli.claims import claimed
        from demix.cli.console import console, print_json, print_lines
        from demix.cli.models import LATENTS, open_fit, write_fit_page
        from demix.cli.progress import TrainingTask, training_bar
        from demix.estimators.encoding import encode
        from demix.training.checkpoints import checkpoint_files, remove_checkpoint

        leftovers = [file.name for file in checkpoint_files(_CHECKPOINT)]
        rules: dict[str, Any] = {"overwrite": overwrite, "leftovers": leftovers}
        rules["about"] = {"data file": options.data.name}
        with claimed("fit", out, "fit.json", options.inputs, **rules) as claim:
            folder, checkpoint = claim.folder, claim.folder / _CHECKPOINT
            with training_bar(console(errors=True)) as progress:
                bar = TrainingTask(progress, "training")
                bar.about = read
                demixer.fit(rows, **targets, callback=bar.step, checkpoint=checkpoint)
            claim.begin()
            with new_array(folder / LATENTS, (len(rows), options.n_latents)) as latents:
                encode(demixer.encoder_, rows, latents)
                facts = {"origin": claim.origin, "rows": len(rows), "time_order": in_time}
                # Before the latents are moved into place: one that is refused leaves the old ones.
                demixer.save(folder, about=facts)
            write_fit_page(folder, folder, data=rows, unfinished=True)
            claim.finish({"provenance": claim.origin})
            remove_checkpoint(checkpoint)  # last: a second try after an error need not train again
        if as_json:
            about = open_fit(folder).about
            print_json({key: about[key] for key in _KEYS if key in about})
            return
        print_lines(
            f"{options.n_latents} latents of {len(rows)} rows in {demixer.seconds_:.0f} s of "
            f"training. Information about held-out {demixer.targets}: {demixer.gain_}.",
            *demixer.notes_,
            f"Open {folder / 'report.html'}; the model and {LATENTS} are in the same folder.",
        )
