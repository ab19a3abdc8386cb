"""Put the tables under results/ into the README, between their markers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- results/(?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(readme: str, root: Path = ROOT) -> str:
    """Return the README with every block replaced by the table of its experiment."""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        text = (root / "results" / name / "table.md").read_text(encoding="utf-8")
        body = re.sub(r"^# (.*)$", r"**\1**", text.strip(), count=1, flags=re.MULTILINE)
        return f"<!-- results/{name} -->\n\n{body}\n\n<!-- end -->"

    return BLOCK.sub(table, readme)


if __name__ == "__main__":
    path = ROOT / "README.md"
    before = path.read_text(encoding="utf-8")
    after = filled(before)
    if "--check" in sys.argv and before != after:
        sys.exit("README.md does not show the tables under results/: run `make docs`")
    path.write_text(after, encoding="utf-8")
