"""``demix evaluate``: scores of a representation from any model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demix._support.errors import DemixError
from demix.cli import options

if TYPE_CHECKING:
    import numpy as np

    from demix.metrics.score import Score

_WIDE = 220
_HEADLINE = {"r2": "affine_r2", "mcc": "mean_correlation", "accuracy": "linear_accuracy"}
_ARRAYS = ("per_factor", "per_latent", "assignment")


@options.app.command(
    epilog="Example:  demix evaluate --latents Z.npy --factors F.npy --out scores\n\n"
    "Example:  demix evaluate --latents Z.npy --factors F.npy --blocks auto"
)
def evaluate(
    latents: Annotated[Path, typer.Option(help="Recovered latents, a row for each sample.")],
    factors: Annotated[Path, typer.Option(help="True factors, a row for each sample.")],
    categorical: Annotated[str | None, typer.Option(help=options.HELPS["categorical"])] = None,
    blocks: options.BlocksOption = None,
    header: options.Header = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder of scores.json and report.html.")] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Score the representation of any model against known factors.

    R², MCC, DCI, MIG, SAP, modularity, explicitness, InfoMEC, beta-VAE and FactorVAE scores, and
    linear accuracy for categories; each with an interval, its chance level and what it certifies.
    """
    options.check_given(latents, factors)
    import numpy as np
    from rich.table import Table

    from demix._support.provenance import origin_of, provenance
    from demix._support.validation import check_enough_rows
    from demix.cli.claims import claimed_if
    from demix.cli.console import console, print_json, print_lines, print_table
    from demix.cli.progress import counting_bar
    from demix.data.factors import check_order, read_factors
    from demix.data.reading import input_digest, read_data
    from demix.metrics.factors import check_factors
    from demix.metrics.registry import all_scores
    from demix.report.blocks import write_page
    from demix.report.recovery import certified, recovery_page
    from demix.report.words import said

    known = read_factors(factors, header=header)
    width = known.values.shape[1] if known.values.ndim == 2 else 0
    names = list(known.names or [f"factor {i + 1}" for i in range(width)])
    alike, read = options.read_blocks(blocks)
    data = read_data(latents, header=header)
    check_enough_rows(len(data), math.prod(data.shape[1:]))  # before they take memory
    check_order(data, known, factors)
    # Blocks that are too long or too few are refused before anything is written.
    chosen = _columns(categorical, names)
    found, true, sampling = check_factors(data.array(), known.values, chosen, alike)
    effective = sampling.effective
    worth = "" if blocks is None else f"About {effective:.0f} independent rows of {len(found)}."
    categories = np.flatnonzero(true.categorical).tolist()
    numbers = np.flatnonzero(~true.categorical).tolist()
    inputs = {"latents": latents, "factors": factors}
    read = [*inputs.values(), *read]
    about = {name: f"{x.name} sha256 {input_digest(x)[:16]}" for name, x in inputs.items()}
    about |= {} if blocks is None else {"blocks": blocks}
    with (
        claimed_if("evaluate", out, "scores.json", read, overwrite=overwrite, about=about) as claim,
        counting_bar(console(errors=True)) as count,
    ):
        rules = {"categorical": categories, "blocks": alike, "callback": count}
        scores = all_scores(found, true.values, **rules)
        result: dict[str, Any] = {
            **{key: float(scores[x]) if x in scores else None for key, x in _HEADLINE.items()},
            "samples": len(found),
            "effective_rows": effective,
            "categorical": [names[i] for i in categories],
            "scores": scores_as_data(scores, names, true.categorical),
            "provenance": {**origin_of(about), **provenance()},
        }
        if claim is not None:
            counts = {"continuous": len(numbers), "categorical": len(categories), "worth": worth}
            words = said("evaluation", samples=len(found), latents=found.shape[1], **counts)
            page = recovery_page(
                *(words["title"], words["summary"], found, true.values[:, numbers], scores),
                provenance=result["provenance"],
                names=[names[i] for i in numbers],
            )
            claim.begin()
            write_page(page, claim.folder / "report.html")
            claim.finish(result)
    if as_json:
        print_json(result)
        return
    shown = certified(scores)
    table = Table(*(name.lower() for name in shown.header))
    for row in shown.rows:
        table.add_row(*row)
    print_table(table, _WIDE)
    if worth:
        print_lines(worth)
    if claim is not None:
        print_lines(f"Wrote {claim.folder}/scores.json and report.html")


def scores_as_data(
    scores: Mapping[str, Score], names: Sequence[str], categorical: np.ndarray
) -> dict[str, Any]:
    """Return scores as plain data for JSON, with the names of the factors they are of."""
    from demix.metrics.registry import scored_columns

    return {
        name: {
            "value": float(score),
            **{key: getattr(score, key) for key in ("low", "high", "baseline")},
            "factors": [names[i] for i in scored_columns(name, categorical)],
            **{key: x.tolist() for key in _ARRAYS if (x := getattr(score, key)) is not None},
            **{key: getattr(score, key) for key in ("certifies", "leaves_open")},
            "trusted": not score.doubts,
            "trusted_with": score.trusted,
            "doubts": score.doubts,
        }
        for name, score in scores.items()
    }


def _columns(text: str | None, names: Sequence[str]) -> list[int] | None:
    """Read which columns are categories: names or numbers, or none of them."""
    if text is None or text.strip() == "none":
        return None if text is None else []
    places = {part.strip(): options.place_of(part, names) for part in text.split(",")}
    for part, place in places.items():
        if place is None:
            raise DemixError(
                f"--categorical takes columns of the factors, {', '.join(names)}, or their numbers "
                f"from 0, or none, but got {part!r}."
            )
    return [place for place in places.values() if place is not None]
