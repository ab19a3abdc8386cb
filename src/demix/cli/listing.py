"""``demix list``."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from demix.experiments import EXPERIMENTS


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
                    {
                        "row": row.number,
                        "space": row.space,
                        "marginal": str(row.marginal),
                        "conditional": str(row.conditional),
                        "model_space": row.model_space,
                        "model_conditional": row.assumed,
                        "matched": row.matched,
                        "models": list(row.paper),
                    }
                    for row in experiment.rows
                ],
            }
            for experiment in EXPERIMENTS.values()
        ]
        print(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    console = Console()
    for experiment in EXPERIMENTS.values():
        table = Table(title=f"{experiment.name} · {experiment.title}", title_justify="left")
        for name in ("row", "process", "model", "matched", "paper [%]"):
            table.add_column(name, justify="right" if name in ("row", "paper [%]") else "left")
        for row in experiment.rows:
            published = row.paper.get("unsupervised")
            table.add_row(
                str(row.number),
                f"{row.space}: {row.marginal}, {row.conditional}",
                f"{row.model_space}: {row.assumed}",
                "yes" if row.matched else "no",
                "–" if published is None else f"{published[0]:.2f}",
            )
        console.print(table)
    console.print("Run one with:  demix reproduce NAME --rows 1,2 --out DIR", highlight=False)
