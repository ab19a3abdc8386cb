"""``demix report`` and ``demix compare``: pages about fits."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import typer

from demix._support.errors import DemixError
from demix._support.outputs import claim_file
from demix._support.provenance import provenance
from demix._support.validation import check_matrix
from demix.cli.claims import begin, claimed, finish
from demix.cli.fitted import facts_of, latents_of, opened, read_like, write_report
from demix.data.reading import read_data
from demix.estimators.gain import Gain
from demix.metrics.regression import affine_r2
from demix.report.comparison import compare_page
from demix.report.page import MARK, write_page

_MARKER = "compare.json"


def run_report(
    model: Path,
    factors: Path | None,
    file: Path | None,
    out: Path | None,
    *,
    header: str,
    overwrite: bool,
) -> None:
    """Write the report of a fit again, beside known factors and images if they are given."""
    given = [place for place in (factors, file) if place is not None]
    page = (model if out is None else out) / "report.html"
    if page.parent.exists():
        claim_file(page, "--out", suffix=".html", start=MARK, inputs=given, overwrite=overwrite)
    fitted = opened(model)
    latents = latents_of(model, fitted)
    known, names = None, None
    if factors is not None:
        data = read_data(factors, header=header)
        if data.shape[0] != len(latents) or len(data.shape) != 2:
            raise DemixError(
                f"Factors must be a matrix with a row for each of the {len(latents)} fitted rows, "
                f"but {factors} has shape {data.shape}."
            )
        known, names = check_matrix(data.array(), "factors"), data.names
    images = None if file is None else read_like(fitted, file, header=header)
    if images is not None and len(images) != len(latents):
        raise DemixError(
            f"{model} was fitted to {len(latents)} rows, but {file} has {len(images)}; give the "
            "same data."
        )
    typer.echo(f"Wrote {write_report(model, out, factors=known, names=names, data=images)}")


def run_compare(runs: list[Path], out: Path, *, overwrite: bool) -> None:
    """Write one page about several fits."""
    if len(runs) < 2:
        raise DemixError("A comparison needs at least 2 runs; name several folders of 'demix fit'.")
    models = [opened(run) for run in runs]
    latents = [latents_of(run, model) for run, model in zip(runs, models, strict=True)]
    names = [run.name if [r.name for r in runs].count(run.name) == 1 else str(run) for run in runs]
    agreement = _agreement(latents)
    # A marker of its own: a fit has a report.html, too, which must not be lost.
    claim = claimed(out, _MARKER, command="demix compare", inputs=runs, overwrite=overwrite)
    with claim as (folder, origin):
        page = compare_page(
            f"{len(runs)} fits side by side",
            [
                {
                    "name": name,
                    "gain": {**asdict(Gain.from_dict(model.about["gain"])), "level": 0.95},
                    "facts": facts_of(model),
                    "history": model.about["history"],
                }
                for name, model in zip(names, models, strict=True)
            ],
            summary="Every gain is held out; see the report of each fit for what it rests on.",
            agreement=agreement,
            provenance={**origin, **provenance()},
        )
        begin(folder / _MARKER, origin)
        write_page(page, folder / "report.html")
        finish(folder / _MARKER, {"provenance": origin})
    typer.echo(f"Wrote {folder / 'report.html'}")


def _agreement(latents: list[np.ndarray]) -> np.ndarray | None:
    """Return the held-out R² of reading each run's latents (down) out of another's (across)."""
    if len({len(z) for z in latents}) > 1 or len(latents[0]) < 10:
        return None  # not the same rows
    step = max(1, len(latents[0]) // 20_000)
    thin = [np.asarray(z[::step], dtype=float) for z in latents]
    return np.array(
        [[1.0 if a is b else max(-1.0, float(affine_r2(b, a))) for b in thin] for a in thin]
    )
