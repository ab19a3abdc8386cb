"""What nobody means: odd names, options, settings, folders and calls."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import demix
from faults.bench import Bench
from faults.outcome import Done, Outcome

_NAMES: tuple[str, ...] = (
    "[/red]x",
    "a\\[b",
    ":warning:",
    "\x1b[31mx",
    "a\nb",
    "\u202eabc",
    "x" * 240,
    "-x",
    "--out",
)
_NAMES += ("~", "$(id)", " ", "%s%n", "{x}", "é" * 100, "<script>", "zip:", "x" * 300)
_WORDS = (
    "",
    "0",
    "-1",
    "1e3",
    "nan",
    "inf",
    "1_000",
    "٣",
    "9" * 400,
    "2" + "0" * 20,
    "1:",
    "5-1",
    "a",
)
# An option that takes numbers or names, after the rest of its command.
_OPTIONS = (
    *("fit x --n-latents", "fit x --seed", "fit x --lag", "fit x --conditional", "fit x --key"),
    *(
        "evaluate --blocks",
        "evaluate --categorical",
        "probe --seed",
        "probe --kind",
        "fit x --space",
    ),
    *("render sprites --n", "render sprites --size", "render sprites --jobs", "reproduce x --rows"),
    *("render sprites --seed", "render sprites --pairs", "consensus x --held-out"),
)
_SETTINGS = (
    *(("HOME", "/dev/null"), ("TMPDIR", "/proc"), ("XDG_CACHE_HOME", "relative"), ("LC_ALL", "xx")),
    *(("OMP_NUM_THREADS", "abc"), ("OMP_STACKSIZE", "1"), ("PYTHONIOENCODING", "ascii")),
    *(("COLUMNS", "-1"), ("TERM", "\x01"), ("MPLBACKEND", "module://evil"), ("CC", "'")),
    *(("MATPLOTLIBRC", "/dev/zero"), ("TZ", ":/dev/zero"), ("TORCH_LOGS", "x"), ("PATH", "")),
)
_MODULES = ("numpy", "torch", "typer", "matplotlib", "evil", "sitecustomize", "scipy", "sklearn")
_PROGRAMS = ("cc", "gcc", "gs", "fc-list", "git", "ldconfig", "uname", "nvidia-smi", "python3")


def names(bench: Bench) -> Outcome:
    """Give files and results odd names: the same latents come, or a sentence."""
    outcome = Outcome("odd names", "demix transform")
    expected = bench.undisturbed(bench.works["demix transform"])
    for name in _NAMES:
        with bench.folder() as folder:
            data, out = folder / f"{name}.npy", folder / f"{name}.z.npy"
            long = len(os.fsencode(out.name)) > 255
            if not long:
                data.parent.mkdir(exist_ok=True)  # a name may hold a slash
                data.write_bytes((bench.root / "wide.npy").read_bytes())
            done = bench.processes.run("transform", bench.root / "model", data, "--out", out)
            _same_or_told(outcome, done, out, expected, told=long)
            outcome.expect("\x1b" not in done.stdout + done.stderr, f"{name!r} reached the screen")
    return outcome


def options(bench: Bench) -> Outcome:
    """Give options words that they do not take: a sentence, and no folder is left."""
    outcome = Outcome("wrong options", "all commands")
    x = bench.root / "x.npy"
    inputs: dict[str, list[Any]] = {"evaluate": ["--latents", x, "--factors", x], "probe": [x, x]}
    for option in _OPTIONS:
        command, *rest = option.split()
        for word in _WORDS:
            given = [x if part == "x" else part for part in rest]
            given = ["clica-table1", *rest[1:]] if command == "reproduce" else given
            with bench.folder() as folder:
                arguments = [command, *inputs.get(command, []), *given, word]
                # What is a right option after all has no place to write to.
                (folder / "out").write_text("precious")
                more = [] if command in inputs else ["--out", folder / "out"]
                done = bench.processes.run(*arguments, *more)
                outcome.tried += 1
                if done.returncode == 2 and "╰" in done.stderr:  # typer draws a box
                    outcome.refused += 1
                elif done.returncode or command not in inputs:
                    outcome.refusal(done)
    return outcome


def settings(bench: Bench) -> Outcome:
    """Change settings of the environment, and fill the current folder with traps."""
    outcome = Outcome("settings and folders of strangers", "demix transform")
    work, expected = (
        bench.works["demix transform"],
        bench.undisturbed(bench.works["demix transform"]),
    )
    with bench.folder() as folder:
        ran = folder / "ran"
        for name in _MODULES:
            (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')\n")
        for name in _PROGRAMS:
            (folder / name).write_text(f"#!/bin/sh\n: > '{ran}'\n")
            (folder / name).chmod(0o755)
        (folder / "matplotlibrc").write_text("backend: module://evil\n")
        path = os.environ.get("PATH", os.defpath)
        for name, value in (*_SETTINGS, ("PATH", f":{path}"), ("PATH", f"{path}:")):
            out = folder / "out.npy"
            out.unlink(missing_ok=True)
            code = [sys.executable, "-P", "-m", "demix", *map(str, work.arguments)]
            code += ["--out", str(out)]
            surroundings: dict[str, Any] = {"cwd": folder, "env": os.environ | {name: value}}
            surroundings |= {"timeout": 300, "capture_output": True, "text": True}
            done: Done = subprocess.run(code, **surroundings)
            _same_or_told(outcome, done, out, expected)
            outcome.expect(not ran.exists(), f"with {name}={value} a stranger's code ran")
    return outcome


def calls(bench: Bench) -> Outcome:
    """Call functions with values of wrong types: a sentence, never an error from deep inside."""
    outcome = Outcome("values of wrong types", "functions")
    x, recipe = np.random.default_rng(0).normal(size=(100, 3)), demix.Recipe(steps=2, batch=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", demix.DemixWarning)
        fit = demix.ContrastiveDemixer(2, recipe=recipe).fit(x)
    for call, odd in _calls(x, fit):
        outcome.tried += 1
        told = "nothing"
        try:
            call(odd)
        except demix.DemixError as error:
            outcome.refused += 1
            told = str(error)
        except Exception as error:  # whatever comes from deep inside
            told = f"{type(error).__name__}: {error}"
        outcome.expect(told.endswith("."), f"{odd!r} gave {told}")
    return outcome


def _calls(x: np.ndarray, fit: Any) -> Iterator[tuple[Callable[[Any], object], Any]]:
    """Yield calls that refuse a value, and the value."""
    odd: Any
    scores: tuple[Any, ...] = (demix.affine_r2, demix.mean_correlation, demix.probe)
    for odd in (None, "x.npy", {"a": 1}, (row for row in x), {1, 2}):
        yield fit.transform, odd
        for score in scores:
            yield partial(score, factors=x), odd
            yield partial(score, x), odd
    for odd in ("a", 0, [1.5], [None], [99], [True]):
        yield lambda value: demix.all_scores(x, x, categorical=value), odd
        yield lambda value: demix.probe(x, x, split=value), odd
    for odd in ("one", None, 1.5, -1, [1], {}):
        yield lambda value: demix.all_scores(x, x, seed=value), odd
        yield lambda value: demix.probe(x, x, seed=value), odd
        yield lambda value: demix.all_scores(x, x, blocks=[value] * 99), odd
        yield lambda value: demix.all_scores(x, x, blocks=[(value, 1), 1] * 50), odd
    for odd in (["1", 1] * 50, np.array([1, True] * 50, dtype=object), ["a", None] * 50):
        yield lambda value: demix.ClassifierDemixer(2).fit(x, value), odd


def _same_or_told(
    outcome: Outcome, done: Done, out: Path, expected: bytes, *, told: bool = False
) -> None:
    """Expect a sentence, or unless that is what must come, the result as it was."""
    outcome.tried += 1
    if done.returncode or told:
        outcome.refusal(done)
    else:
        outcome.expect(out.read_bytes() == expected, "other bits came out")
