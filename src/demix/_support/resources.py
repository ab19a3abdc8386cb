"""Texts and tables that are data: files of the package."""

import tomllib
from importlib.resources import files
from typing import Any


def text(path: str) -> str:
    """Return a file, given by its path inside the package."""
    return (files("demix") / path).read_text(encoding="utf-8")


def table(path: str) -> dict[str, Any]:
    """Return what a TOML file says as plain Python."""
    return tomllib.loads(text(path))
