"""Programs that fork ranks, in processes that share the seconds of importing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

CODE = """
import sys, warnings
warnings.simplefilter("error")
sys.path[:0] = {folders!r}
from {module} import main
main({arguments})
"""


@pytest.fixture(scope="session")
def ranks_program(demix) -> Callable[..., None]:
    """Run the ``main`` of a program beside the tests to its end; anything it says fails."""

    def run(program: Path, *arguments: object) -> None:
        folders = [str(program.parent), str(program.parents[1])]
        told = ", ".join(repr(a if isinstance(a, int) else str(a)) for a in arguments)
        done = demix.run_python(CODE.format(folders=folders, module=program.stem, arguments=told))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    return run
