"""The table of docs/reliability.md."""

from __future__ import annotations

from typing import Any

from demix.papers.pages.table import table_markdown
from faults.kills import KILL

TITLE = "Faults tried, work lost, wrong results"
"""What stands above it."""


def table(data: dict[str, Any]) -> str:
    """Return Markdown of what ``faults.json`` holds."""
    header = ["what happened", "to", "times", "refused in a sentence", "finished work lost"]
    header += ["wrong results"]
    rows = [
        [
            one["fault"],
            one["work"],
            *(f"{one[name]}" for name in ("tried", "refused", "lost", "wrong")),
        ]
        for one in data["series"]
    ]
    totals = [sum(one[name] for one in data["series"]) for name in ("tried", "lost", "wrong")]
    kills = sum(one["tried"] for one in data["series"] if one["fault"] == KILL)
    about = data["provenance"]
    notes = [
        f"{totals[0]} faults, {kills} of them kills; finished work lost: "
        f"{totals[1]}; wrong results: {totals[2]}.",
        "Wrong is whatever is not, to the bit, what an undisturbed run gives, and every end "
        "without a sentence.",
        f"Regenerate with `{about['command']}`: {data['seconds'] / 60:.0f} minutes on "
        f"{about['cores']} cores; commit {str(about.get('commit', 'unknown'))[:12]}.",
    ]
    return table_markdown(TITLE, header, rows, notes)
