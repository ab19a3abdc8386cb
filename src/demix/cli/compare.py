"""``demix compare``: one page about several fits."""

from pathlib import Path
from typing import Annotated

import typer

from demix._support.errors import DemixError
from demix.cli.options import Overwrite, app, check_given


@app.command(epilog="Example:  demix compare model-a model-b --out comparison")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that 'demix fit' wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("comparison"),
    overwrite: Overwrite = False,
) -> None:
    """Compare several fits on one page."""
    check_given(*runs)
    if len(runs) < 2:
        raise DemixError("A comparison needs at least 2 runs; name several folders of 'demix fit'.")
    from demix.cli.claims import claimed
    from demix.cli.console import print_lines
    from demix.cli.models import latents_of, open_fit
    from demix.estimators.models import facts_in_words
    from demix.report.blocks import write_page
    from demix.report.compare import agreement_of, compare_page

    models = [open_fit(run) for run in runs]
    latents = list(map(latents_of, runs, models))
    same = len({model.about["data"] for model in models}) == 1
    agreement = agreement_of(latents) if same else None
    names = [run.name if [r.name for r in runs].count(run.name) == 1 else str(run) for run in runs]
    # Marked by another file than report.html: the page of a fit must not be lost.
    with claimed("compare", out, "compare.json", runs, overwrite=overwrite) as claim:
        told = []
        for name, model in zip(names, models, strict=True):
            known = {key: model.about[key] for key in ("gain", "history")}
            known["facts"] = facts_in_words(model.encoder, model.about)
            told.append({"name": name, **known})
        page = compare_page(told, agreement=agreement, provenance=claim.provenance)
        claim.begin()
        written = write_page(page, claim.folder / "report.html")
        claim.finish({"provenance": claim.origin})
    print_lines(f"Wrote {written}")
