"""Put the tables under results/ into the documents, between their markers, and list experiments.

A block `<!-- results/NAME -->` ... `<!-- end -->` shows results/NAME/table.md; a block
`<!-- results/bench/SECTION -->` shows that section of results/bench/bench.json, a block
`<!-- results/bench/NAME/SECTION -->` that of results/bench/NAME.json, and a block
`<!-- results/examples/NAME -->` the table in results/examples/NAME.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from benchmarks.tables import tables_of
from demix.papers.experiments import EXPERIMENTS
from demix.papers.pages.table import table_markdown

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (
    "README.md",
    "docs/beyond.md",
    "docs/checkup.md",
    "docs/cross_entropy.md",
    "docs/datasets.md",
    "docs/dislib.md",
    "docs/imagenet_x.md",
    "docs/images.md",
    "docs/labels.md",
    "docs/paper.md",
    "docs/probe.md",
    "docs/real.md",
    "docs/reliability.md",
    "docs/scale.md",
    "docs/scenes.md",
    "docs/speed.md",
    "docs/sweeps.md",
    "docs/time_series.md",
)
BLOCK = re.compile(r"<!-- results/(?P<name>[\w/-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(document: str, root: Path = ROOT) -> str:
    """Return a document with every block replaced by what it names."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        text = re.sub(r"^# (.*)$", r"**\1**", body(name, root), count=1, flags=re.MULTILINE)
        return f"<!-- results/{name} -->\n\n{text.strip()}\n\n<!-- end -->"

    return BLOCK.sub(block, document)


def body(name: str, root: Path) -> str:
    """Return the Markdown of a block."""
    results = root / "results"
    if name.startswith("bench/"):
        *_, run, section = f"bench/{name}".split("/")
        # Some are measured in runs of their own, because they take long or need all cores.
        run = section if section in ("estimators", "everyday", "sweep") else run
        data = json.loads((results / "bench" / f"{run}.json").read_text(encoding="utf-8"))
        return table_markdown(*tables_of(data)[section])
    if name.startswith("examples/"):
        example = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        again = f"Regenerate with `{example['command']}`; {example['seconds']} seconds of one core."
        table = example["table"]
        return table_markdown(**table | {"notes": [*table["notes"], again]})
    return (results / name / "table.md").read_text(encoding="utf-8")


def listing() -> str:
    """Return what `demix list` knows of the experiments, a row in a line."""
    found = []
    for experiment in (one.listing() for one in EXPERIMENTS.values()):
        rows = (json.dumps(row, ensure_ascii=False) for row in experiment.pop("rows"))
        head = json.dumps(experiment, ensure_ascii=False)[:-1]
        found.append(head + ', "rows": [\n' + ",\n".join(rows) + "\n]}")
    return "[" + ",\n".join(found) + "]\n"


if __name__ == "__main__":
    pages = {ROOT / name: filled((ROOT / name).read_text(encoding="utf-8")) for name in DOCUMENTS}
    pages[ROOT / "src/demix/papers/listing.json"] = listing()
    for path, page in pages.items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if "--check" in sys.argv and old != page:
            sys.exit(f"{path.name} does not show what is in results/ and src/: run `make docs`")
        path.write_text(page, encoding="utf-8")
