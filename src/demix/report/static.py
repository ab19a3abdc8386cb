"""Figures of matplotlib in the house style, the same to the byte on every machine."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demix._support.errors import DemixError, reason
from demix._support.files import write_atomic
from demix.report.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_MARK = b"demix"
"""Among the first bytes of a figure that demix wrote."""


def figure_svg(draw: Callable[[], Figure]) -> str:
    """Return the SVG of the figure that ``draw`` makes under the house style."""
    return _files(draw, "svg")[0].decode("utf-8")


def write_figure(draw: Callable[[], Figure], folder: str | Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing."""
    svg, png = _files(draw, "svg", "png")
    folder = Path(folder)
    return write_atomic(folder / "figure.svg", svg), write_atomic(folder / "figure.png", png)


def _matplotlib() -> Any:
    """Import matplotlib from its own folder: it would read a matplotlibrc in the current one."""
    if "matplotlib" not in sys.modules:
        here = os.getcwd()
        os.chdir(Path(__file__).parent)
        try:
            importlib.import_module("matplotlib")
        except (OSError, ValueError) as error:
            raise DemixError(
                f"Expected settings that matplotlib can read, but {reason(error)}; mend your "
                "matplotlibrc."
            ) from error
        finally:
            os.chdir(here)
    return sys.modules["matplotlib"]


def _files(draw: Callable[[], Figure], *kinds: str) -> list[bytes]:
    matplotlib = _matplotlib()
    mark = FIGURE_MARK.decode()
    metadata: dict[str, Any] = {"svg": {"Date": None, "Creator": mark}, "png": {"Software": mark}}
    files = []
    # The reader's own settings would change the bytes.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(styled("matplotlib"))
        figure = draw()
        for kind in kinds:
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=200, metadata=metadata[kind])
            files.append(buffer.getvalue())
    return files
