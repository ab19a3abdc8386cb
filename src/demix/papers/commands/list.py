"""``demix list``: the experiments that can be reproduced."""

import json

from demix._support.resources import text
from demix.cli.options import AsJson, app


@app.command("list", epilog="Example:  demix list --json")
def list_experiments(as_json: AsJson = False) -> None:
    """List the experiments that can be reproduced, with their rows."""
    from rich.table import Table

    from demix.cli.console import console, print_json

    # Written by `make docs` from the experiments, whose modules take seconds to load.
    listing = json.loads(text("papers/listing.json"))
    if as_json:
        print_json(listing, ensure_ascii=False)
        return
    terminal = console()
    for experiment in listing:
        table = Table(title=f"{experiment['name']} · {experiment['title']}", title_justify="left")
        for name in ("row", *experiment["rows"][0]["columns"], "paper [%]"):
            table.add_column(name, justify="right" if name in ("row", "paper [%]") else "left")
        for row in experiment["rows"]:
            paper = ", ".join(row["paper"]) or "–"
            table.add_row(str(row["row"]), *row["columns"].values(), paper)
        terminal.print(table)
    terminal.print("Run one with:  demix reproduce NAME --rows 1,2 --out DIR")
