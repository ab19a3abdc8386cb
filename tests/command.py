"""The real `demix` command for tests, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

# Whatever makes rich and typer draw differently than into a plain file.
DRAWING = {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


def start_demix(*arguments: object, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start `demix` with pipes for its output, on one thread."""
    kept = {name: value for name, value in os.environ.items() if name not in DRAWING}
    return subprocess.Popen(
        [sys.executable, "-m", "demix", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        env=kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )


def run_demix(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `demix` to its end."""
    with start_demix(*arguments) as process:
        try:
            out, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return the sentence that a command refused with."""
    assert done.returncode == 2, done
    assert done.stdout.strip() == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith(".")
    return lines[0]


# A process that has imported what the commands need and forks a child for each of them, or for
# other code. A child is a process like any other, with a number to kill it by, but is there at
# once. Its peak of memory is another: it maps the libraries anew when it uses them.
SERVER = """
import contextlib, gc, io, json, os, sys, traceback
import filelock, sklearn.ensemble
import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg, matplotlib.figure
import demix.cli.models, demix.cli.progress, demix.cli.sources
import demix.papers.commands.table_bars
import demix.diagnostics.consensus, demix.papers.experiments, demix.papers.runner.reproduce
import demix.report.consensus, demix.report.recovery
import demix.__main__

# What is imported or set up when the first command runs and the first figure is drawn.
for arguments in (["transform", "nowhere", "nowhere", "--out", "nowhere"], ["fit", "--help"]):
    sys.argv = ["demix", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            demix.__main__.main()
figures = [
    demix.report.figures.time_courses([[0.0], [1.0]], [0, 1], ["z"]),
    demix.report.figures.correlation_heatmap([[1.0]], ["z"], ["z"], "z"),
]
body = [demix.report.blocks.Figure(figure, "", "") for figure in figures]
demix.report.blocks.render(
    demix.report.blocks.Page("", "", [demix.report.blocks.Section("", body)])
)
axes = matplotlib.figure.Figure().add_subplot()
axes.figure.savefig(io.BytesIO(), format="svg")

# Else the collector would visit in each child, and so copy, all that was imported.
gc.collect()
gc.freeze()
print("ready", flush=True)

for line in sys.stdin:
    code, arguments, out, errors = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name, flags in [
            (0, os.devnull, os.O_RDONLY),
            (1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ]:
            os.dup2(os.open(name, flags), number)
        sys.argv = ["demix", *arguments]
        status = 0
        try:
            exec(code, {"__name__": "__main__"})
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
        # As at the end of any Python.
        try:
            sys.stdout.flush()
        except OSError:
            status = 120
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(status)  # tidying up all that was imported would take longer than the command
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


# The first of what a child runs: a few draws of what chance gives, and forests of a few trees, are
# enough where nothing depends on them, and half of the time of an evaluation.
FEW_DRAWS = """
import demix.metrics.dci
demix.metrics.dci._TREES = 5
from demix.metrics.blocks import Sampling
orders = Sampling.orders
Sampling.orders = lambda self, number, **more: orders(self, number if more else 3, **more)
"""
# So is a training of a few steps where nothing depends on what is learnt, and three quarters of the
# time of a fit to a small table.
BRIEF = f"""{FEW_DRAWS}
from demix.estimators.base import Demixer
from demix.estimators.contrastive import ContrastiveDemixer
Demixer._most_steps = ContrastiveDemixer._most_steps = 10
"""
# A tenth of the samples that the demonstration scores.
FEWER = """
import demix.cli.demo
demix.cli.demo._SAMPLES //= 10
"""
# And so is one of a row of a table.
BRIEF_ROWS = """
from dataclasses import replace
from demix.papers.runner import run
train = run.train
run.train = lambda encoder, sample, objective, recipe, **more: train(
    encoder, sample, objective, replace(recipe, steps=10), **more
)
"""
MAIN = "import demix.__main__; demix.__main__.main()"
# Has a child speak to other places than files, which 1 or 2 are to be by then.
HEARD = """
import sys
sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)
"""
# Many commands in one child: to fork it takes longer than most of those that are refused.
EACH = """
import contextlib, io, json, sys, traceback
import demix.__main__
told = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["demix", *arguments]
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            demix.__main__.main()
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
    told.append([status, out.getvalue(), errors.getvalue()])
print(json.dumps(told))
"""


class Commands:
    """`demix` in processes that share the seconds of importing it; one runs at a time.

    So does other code that needs a process of its own.
    """

    def __init__(self, folder: Path) -> None:
        if not hasattr(os, "fork"):
            pytest.skip("this system cannot fork")
        self._files = folder / "stdout", folder / "stderr"
        kept = {name: value for name, value in os.environ.items() if name not in DRAWING}
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
        )

        # No test whose time is limited is to wait for the imports.
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def close(self) -> None:
        """End the server, without waiting until it has tidied up."""
        self._server.kill()
        self._server.communicate(timeout=60)

    def start(self, *arguments: object) -> int:
        """Start `demix`, and return the number of its process."""
        return self.start_python(MAIN, *arguments)

    def start_python(self, code: str, *arguments: object) -> int:
        """Start a Python program, and return the number of its process."""
        for file in self._files:
            file.unlink(missing_ok=True)
        line = json.dumps([code, [*map(str, arguments)], *map(str, self._files)])
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        self._child = int(self._server.stdout.readline())
        return self._child

    def send(self, signal_number: int, moment: Callable[[], bool]) -> None:
        """Send a signal to what was started, once the moment has come."""
        stop = time.monotonic() + 600
        try:
            while not moment():
                # 0 only asks whether it is still there.
                os.kill(self._child, 0 if time.monotonic() < stop else signal.SIGKILL)
                time.sleep(0.002)
            os.kill(self._child, signal_number)
        except ProcessLookupError:
            raise AssertionError(f"It ended before the moment came: {self.wait()}") from None

    def said(self) -> list[str]:
        """Return the lines that what was started has printed so far."""
        file = self._files[0]
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for the end of what was started."""
        assert self._server.stdout is not None
        code = int(self._server.stdout.readline())
        # What is killed at once has opened none.
        told = [f.read_text(encoding="utf-8") if f.exists() else "" for f in self._files]
        return subprocess.CompletedProcess("demix", code, *told)

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run `demix` to its end."""
        self.start(*arguments)
        return self.wait()

    def run_each(
        self, commands: Iterable[Sequence[object]]
    ) -> list[subprocess.CompletedProcess[str]]:
        """Run `demix` many times, one after the other in the same process."""
        given = [[*map(str, arguments)] for arguments in commands]
        done = self.run_python(EACH, json.dumps(given))
        assert done.returncode == 0, done
        return [subprocess.CompletedProcess("demix", *told) for told in json.loads(done.stdout)]

    def run_briefly(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run `demix` to its end, with trainings of a few steps and chance from a few draws."""
        return self.run_python(BRIEF + MAIN, *arguments)

    def run_python(self, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a Python program to its end."""
        self.start_python(code, *arguments)
        return self.wait()

    def refusal(self, *arguments: object) -> str:
        """Run `demix` on bad input and return its one sentence; anything else fails."""
        return one_sentence(self.run(*arguments))

    def refusals(self, commands: Iterable[Sequence[object]]) -> list[str]:
        """Return the sentences that commands are refused with, all in one process."""
        return [one_sentence(done) for done in self.run_each(commands)]
