"""Warnings on a terminal: one line each, without the place in the code."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from demix._support.errors import DemixWarning
from demix.cli.console import print_warning


@contextmanager
def warnings_to(console: Console) -> Iterator[None]:
    """Print every :class:`demix.DemixWarning` as a line; others take their usual way."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DemixWarning):
                print_warning(console, str(message))
            else:
                usual(message, category, *rest, **more)

        warnings.simplefilter("always", DemixWarning)
        warnings.showwarning = show
        yield
