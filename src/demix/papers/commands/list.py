"""``demix list``: the experiments that can be reproduced."""

from demix.cli.options import AsJson, app


@app.command("list", epilog="Example:  demix list --json")
def list_experiments(as_json: AsJson = False) -> None:
    """List the experiments that can be reproduced, with their rows."""
    from rich.table import Table

    from demix.cli.console import console, print_json
    from demix.papers.experiments import EXPERIMENTS

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
        print_json(listing, ensure_ascii=False)
        return
    terminal = console()
    for experiment in EXPERIMENTS.values():
        table = Table(title=f"{experiment.name} · {experiment.title}", title_justify="left")
        shown = experiment.varying()
        for name in ("row", *shown, "paper [%]"):
            table.add_column(name, justify="right" if name in ("row", "paper [%]") else "left")
        for row in experiment.rows:
            published = [
                f"{figure[0]:.2f} {model if len(row.main) > 1 else ''}".strip()
                for model in row.main
                if (figure := row.published(model, experiment.score)) is not None
            ]
            described = [row.columns()[name] for name in shown]
            table.add_row(str(row.number), *described, ", ".join(published) or "–")
        terminal.print(table)
    terminal.print("Run one with:  demix reproduce NAME --rows 1,2 --out DIR")
