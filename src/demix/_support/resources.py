"""Tables that are data: files of the package, read as plain Python."""

import tomllib
from importlib.resources import files
from typing import Any


def table(path: str) -> dict[str, Any]:
    """Return what a TOML file says, given by its path inside the package."""
    return tomllib.loads((files("demix") / path).read_text(encoding="utf-8"))
