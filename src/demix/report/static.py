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

FIGURE_MARKS = {
    "figure.svg": rb"<\?xml .*<dc:creator>\n     <cc:Agent>\n      <dc:title>demix</dc:title>\n",
    # The chunk after the first one, with its length.
    "figure.png": rb"\x89PNG\r\n\x1a\n.{25}\0\0\0\x0etEXtSoftware\0demix",
}
"""Patterns of how figures of demix begin."""


def figure_svg(draw: Callable[[], Figure]) -> str:
    """Return the SVG of the figure that ``draw`` makes under the house style."""
    return _files(draw, "svg")[0].decode("utf-8")


def write_figure(draw: Callable[[], Figure], folder: str | Path) -> tuple[Path, Path]:
    """Write ``figure.svg`` and ``figure.png`` into a folder, which is made if missing."""
    svg, png = _files(draw, "svg", "png")
    folder = Path(folder)
    return write_atomic(folder / "figure.svg", svg), write_atomic(folder / "figure.png", png)


def _matplotlib() -> Any:
    """Import matplotlib in our folder: it may read a matplotlibrc or run a program in this one."""
    if "matplotlib" not in sys.modules:
        named = os.environ.get("MATPLOTLIBRC", "")
        if not any(map(os.path.isfile, (named, os.path.join(named, "matplotlibrc")))):
            os.environ.pop("MATPLOTLIBRC", None)  # on a pipe it would wait for ever
        here = os.getcwd()
        os.chdir(Path(__file__).parent)
        try:
            importlib.import_module("matplotlib.font_manager")  # which looks for fonts at once
        except (OSError, ValueError) as error:
            raise DemixError(
                f"Expected settings that matplotlib reads, but {reason(error)}; mend matplotlibrc."
            ) from error
        finally:
            os.chdir(here)
    return sys.modules["matplotlib"]


def _files(draw: Callable[[], Figure], *kinds: str) -> list[bytes]:
    matplotlib = _matplotlib()
    about: dict[str, Any] = {"svg": {"Date": None, "Creator": "demix"}}
    about["png"] = {"Software": "demix"}
    files = []
    with matplotlib.rc_context():  # the reader's own settings would change the bytes
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(styled("matplotlib"))
        figure = draw()
        for kind in kinds:
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=200, metadata=about[kind])
            files.append(buffer.getvalue())
    return files
