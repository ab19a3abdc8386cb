"""``demix list``."""

from __future__ import annotations

import json

from rich.table import Table

from demix.cli.console import console
from demix.papers.experiments import EXPERIMENTS


def run_list(*, as_json: bool) -> None:
    """Print every experiment and its rows."""
    if as_json:
        listing = [
            {
                "name": experiment.name,
                "title": experiment.title,
                "source": experiment.source,
                "score": experiment.score,
                "rows": [
                    {"row": row.number, **row.facts(), "models": list(row.models)}
                    for row in experiment.rows
                ],
            }
            for experiment in EXPERIMENTS.values()
        ]
        print(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    terminal = console()
    for experiment in EXPERIMENTS.values():
        table = Table(title=f"{experiment.name} · {experiment.title}", title_justify="left")
        shown = experiment.varying()
        for name in ("row", *shown, "paper [%]"):
            table.add_column(name, justify="right" if name in ("row", "paper [%]") else "left")
        for row in experiment.rows:
            figures = [row.published(model, experiment.score) for model in row.main]
            several = len(row.main) > 1
            published = [
                f"{figure[0]:.2f} {model if several else ''}".strip()
                for model, figure in zip(row.main, figures, strict=True)
                if figure is not None
            ]
            described = [row.columns()[name] for name in shown]
            table.add_row(str(row.number), *described, ", ".join(published) or "–")
        terminal.print(table)
    terminal.print("Run one with:  demix reproduce NAME --rows 1,2 --out DIR")
