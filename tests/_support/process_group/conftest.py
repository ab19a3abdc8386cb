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
main(*{arguments!r})
"""


@pytest.fixture(scope="session")
def ranks_code() -> Callable[..., str]:
    """Return Python that calls the ``main`` of a program beside the tests."""

    def code(program: Path, *arguments: object) -> str:
        folders = [str(program.parent), str(program.parents[2])]
        return CODE.format(folders=folders, module=program.stem, arguments=arguments)

    return code


@pytest.fixture(scope="session")
def ranks_program(demix, ranks_code) -> Callable[..., None]:
    """Run the ``main`` of a program beside the tests to its end; anything it says fails."""

    def run(program: Path, ranks: int, place: Path) -> None:
        done = demix.run_python(ranks_code(program, ranks, str(place)))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    return run
