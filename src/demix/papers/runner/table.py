"""Tables of results next to the paper's figures, as Markdown and as a page."""

from __future__ import annotations

from pathlib import Path

from demix._support.errors import DemixError, reason
from demix._support.files import write_atomic
from demix._support.outputs import PAGE, refuse_other
from demix.papers.pages.table import table_markdown, table_page
from demix.papers.runner.experiment import Experiment, Records
from demix.report.blocks import write_page
from demix.report.static import FIGURE_MARK


def write_tables(experiment: Experiment, records: Records, folder: Path) -> None:
    """Write ``table.md``, ``table.html`` and, for a figure, its files into ``folder``.

    Files of others in their places, which may have come while jobs ran, are refused.
    """
    refuse_other(folder / "table.html", PAGE)
    refuse_other(folder / "table.md", f"# {experiment.title}".encode())
    # Figures of earlier versions have no mark, but come with a page.
    page = (folder / "table.html").exists()
    for name, start in (("figure.svg", b"<svg"), ("figure.png", b"\x89PNG")):
        refuse_other(folder / name, start if page else FIGURE_MARK)
    try:
        if records:
            _write(experiment, records, folder)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, DemixError):
            raise
        raise DemixError(
            f"The results in {folder} make no table ({type(error).__name__}: {reason(error)}); "
            "choose another folder."
        ) from error


def _write(experiment: Experiment, records: Records, folder: Path) -> None:
    title = f"{experiment.title} ({records[0]['scale']} scale)"
    results = experiment.results(records)
    header, lines = experiment.kind.table(experiment, results)
    notes = [*_notes(experiment, records), *experiment.kind.notes(results)]
    write_atomic(folder / "table.md", table_markdown(title, header, lines, notes))
    published = " next to the published ones" if "(paper)" in " ".join(header) else ""
    page = table_page(
        title,
        f"{experiment.source}. Held-out scores{published}.",
        header,
        lines,
        experiment.kind.figure(experiment, results, folder),
        notes,
        records[0]["provenance"],
    )
    write_page(page, folder / "table.html")


def _notes(experiment: Experiment, records: Records) -> list[str]:
    seeds = sorted({record["seed"] for record in records})
    scale = records[0]["scale"]
    origins = [record["provenance"] for record in records]
    commits = sorted({origin.get("commit", "unknown")[:12] for origin in origins})
    cores = "/".join(sorted({str(origin["cores"]) for origin in origins}))
    run = [record for record in records if "same_run_as_row" not in record]
    minutes = sum(record["seconds"] for record in run) / 60
    command = f"demix reproduce {experiment.name} --seeds {','.join(map(str, seeds))} "
    rows = sorted({record["row"] for record in records})
    if len(rows) < len(experiment.rows):
        command += f"--rows {','.join(map(str, rows))} "
    files = " --data FILE --data FILE ..." if experiment.data else ""
    varying = experiment.varying()
    common = {
        name: text
        for name, text in experiment.rows[0].columns().items()
        if name not in varying and text != "–"
    }
    return [
        f"Regenerate with `{command}--scale {scale}{files} --out DIR`.",
        f"Seeds {', '.join(map(str, seeds))}; {minutes:.0f} minutes of {experiment.kind.work} "
        f"{cores} cores; commit {', '.join(commits)}.",
        *(["Smoke scale shrinks dimensions, clusters and data."] if scale == "smoke" else []),
        *([f"In all rows: {', '.join(f'{k} {v}' for k, v in common.items())}."] if common else []),
        *experiment.notes,
    ]
