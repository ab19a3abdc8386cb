"""What others put in the way: links, pipes, results that are there already, data that change."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from demix._support.files import LOCK
from faults.bench import Bench
from faults.outcome import Done, Outcome
from faults.work import Work

PRECIOUS = b"what nobody may write to"
# Seconds after which a command that reads a pipe hangs.
_PATIENCE = 60.0


def traps(work: Work, bench: Bench) -> Outcome:
    """Plant links and pipes where a command writes: it is refused, or leaves them alone."""
    outcome = Outcome("links and pipes planted in its place", work.name)
    names = list(_names(work, bench))
    planted = [*product((_link, _second_name, _pipe), names)]
    planted += [(plant, bench.chance.choice(names)) for plant in (_dangling, _socket, _folder)]
    for plant, name in planted:
        with bench.folder() as folder:
            victim = folder / "victim"
            victim.write_bytes(PRECIOUS)
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            plant(place, victim)
            before = _bytes_in(folder)
            outcome.tried += 1
            done = _ended(bench, work.command(folder))
            if done.returncode:
                outcome.refusal(done)
            after = _bytes_in(folder)
            kept = before.items() <= after.items() and not (folder / "nothing").exists()
            outcome.expect(kept, f"{work.name} wrote through {name}")
    return outcome


def beside(work: Work, bench: Bench) -> Outcome:
    """Put a file of somebody else in the place of each output, beside a result that is there."""
    outcome = Outcome("files of others beside its result", work.name)
    for name in (name for name in _names(work, bench) if not name.endswith(LOCK)):
        with bench.folder() as folder:
            bench.finish(work, folder)
            (folder / name).write_bytes(PRECIOUS)
            outcome.tried += 1
            done = bench.processes.run(*work.command(folder))
            if done.returncode:
                outcome.refusal(done)
            outcome.expect((folder / name).read_bytes() == PRECIOUS, f"{work.name} replaced {name}")
    return outcome


def again(work: Work, bench: Bench) -> Outcome:
    """Run a finished command once more: what is there stays, to the bit."""
    outcome = Outcome("a finished result in its place", work.name)
    with bench.folder() as folder:
        bench.finish(work, folder)
        before = _bytes_in(folder)
        outcome.tried += 1
        outcome.refusal(bench.processes.run(*work.command(folder)), "add --overwrite")
        outcome.expect(_bytes_in(folder) == before, f"{work.name} replaced its result")
        outcome.tried += 1
        done = bench.processes.run(*work.command(folder), "--overwrite")
        outcome.expect(done.returncode == 0, f"{work.name} did not replace it: {done.stderr}")
    return outcome


def onto_inputs(bench: Bench) -> Outcome:
    """Name inputs as outputs: they are never replaced."""
    outcome = Outcome("an input in place of the output", "demix transform, fit, export")
    model, wide = bench.root / "model", bench.root / "wide.npy"
    before = _bytes_in(model), wide.read_bytes()
    for command in (
        ["transform", model, wide, "--out", wide],
        ["transform", model, wide, "--out", model / "model.npy"],
        ["fit", wide, "--out", model],
        ["export", model, "--onnx", model / "model.json"],
    ):
        for more in ([], ["--overwrite"]):
            (model / "model.npy").unlink(missing_ok=True)
            np.save(model / "model.npy", np.zeros(3))
            outcome.tried += 1
            outcome.refusal(bench.processes.run(*command, *more))
            (model / "model.npy").unlink()
            outcome.expect((_bytes_in(model), wide.read_bytes()) == before, "an input was changed")
    return outcome


def pipes(bench: Bench) -> Outcome:
    """Give pipes and devices in place of files: they are refused, nothing waits for them."""
    outcome = Outcome("a pipe in place of an input", "all commands")
    x = bench.root / "x.npy"
    with bench.folder() as folder:
        out, model = folder / "out", folder / "model"
        model.mkdir()
        os.mkfifo(model / "model.json")
        (folder / "images").mkdir()
        os.mkfifo(folder / "images" / "a.png")
        (folder / "x.zarr").mkdir()
        os.mkfifo(folder / "x.zarr" / "zarr.json")
        for suffix in ("npy", "npz", "csv", "parquet"):
            os.mkfifo(folder / f"pipe.{suffix}")
            commands = [
                ["fit", folder / f"pipe.{suffix}", "--out", out],
                ["evaluate", "--latents", folder / f"pipe.{suffix}", "--factors", x],
                ["evaluate", "--latents", x, "--factors", folder / f"pipe.{suffix}"],
                ["probe", x, folder / f"pipe.{suffix}"],
            ]
            for command in commands:
                _refused_at_once(outcome, bench, command)
            for number, place in enumerate(("/dev/zero", "/proc/kmsg")):
                odd = folder / f"odd{number}.{suffix}"
                odd.symlink_to(place)
                _refused_at_once(outcome, bench, ["fit", odd, "--out", out])
        for command in (
            *(["fit", x, option, folder / "pipe.csv", "--out", out] for option in _BESIDE),
            *(["fit", folder / name, "--out", out] for name in ("images", "x.zarr")),
            ["transform", model, x, "--out", folder / "z.npy"],
            ["report", model, "--out", out],
            ["reproduce", "clica-kitti", "--data", folder / "pipe.npz", "--out", out],
        ):
            _refused_at_once(outcome, bench, command)
        outcome.expect(not out.exists(), "a refused command left a folder behind")
    return outcome


def changes(times: int, bench: Bench) -> Outcome:
    """Cut the data short, or write to them, at random moments of a fit: it ends with a sentence."""
    outcome = Outcome("data cut short or written to", "demix fit")
    for number in range(times):
        with bench.folder() as folder:
            data = folder / "x.npy"
            outcome.tried += 1
            still = _fitting(data, folder / "out", bench)
            if number % 2:
                os.truncate(data, 4096)
            else:
                with data.open("r+b") as file:
                    file.seek(4096)
                    file.write(b"else")
            done = bench.processes.wait()
            outcome.expect(done.returncode != -signal.SIGBUS, "the fit ended without a word")
            if done.returncode:
                outcome.refusal(done, "was changed while it was read")
            else:
                outcome.expect(not still, "the fit did not notice")
    return outcome


def exchanged(times: int, bench: Bench) -> Outcome:
    """Put a link to another folder in the place of the output: nothing is written through it."""
    outcome = Outcome("a link in place of its folder, meanwhile", "demix fit")
    for _ in range(times):
        with bench.folder() as folder:
            out, victim = folder / "out", folder / "victim"
            victim.mkdir()
            outcome.tried += 1
            still = _fitting(folder / "x.npy", out, bench)
            out.rename(folder / "away")
            out.symlink_to(victim)
            done = bench.processes.wait()
            if done.returncode:
                outcome.refusal(done)
            else:
                outcome.expect(not still, "the fit did not notice")
            outcome.expect(not _bytes_in(victim), "files came into another folder")
    return outcome


def _fitting(data: Path, out: Path, bench: Bench) -> bool:
    """Begin to fit, and wait for a random moment; whether it is still running then."""
    angle = np.cumsum(np.random.default_rng(1).normal(0, 0.5, 20_000))
    np.save(data, np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1))
    bench.processes.start("fit", data, "--n-latents", 2, "--out", out)
    _wait((out / LOCK).exists, bench)
    time.sleep(bench.chance.uniform(0, 2))
    return bench.processes.running()


def impostors(bench: Bench) -> Outcome:
    """Put files of others under names and in shapes of demix: they are neither used nor lost."""
    outcome = Outcome("files of others under its names", "demix render, reproduce")
    with bench.folder() as folder:
        images, table = folder / "images", folder / "table"
        render = ["render", "sprites", "--n", 300, "--size", 8, "--out", images]
        bench.processes.run(*render)
        np.save(images / "images.npy", np.load(images / "images.npy") // 2 + 1)
        kept = table / "unfinished" / "1-0-unsupervised" / "checkpoint.safetensors"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(PRECIOUS)
        (table / "results.json").write_text("[]")
        rows = ["--rows", 1, "--scale", "smoke"]
        for file, command in (
            (images / "images.npy", render),
            (kept, ["reproduce", "clica-table1", *rows, "--out", table]),
        ):
            before = file.read_bytes()
            outcome.tried += 1
            outcome.refusal(bench.processes.run(*command))
            outcome.expect(file.read_bytes() == before, f"{file.name} was replaced")
    return outcome


def other_data(bench: Bench) -> Outcome:
    """Continue on other data in the same place: results of the first are not taken for theirs."""
    outcome = Outcome("other data in the same place", "demix reproduce")
    with bench.folder() as folder:
        data, out = folder / "data", folder / "out"
        command = ["reproduce", "ce-dislib", "--scale", "smoke", "--data", data, "--out", out]
        for seed in (0, 1):
            shutil.rmtree(data, ignore_errors=True)
            bench.processes.run(
                *["render", "sprites", "--n", 240, "--size", 16, "--seed", seed, "--out", data]
            )
            done = bench.processes.run(*command)
            if not seed:
                before = (out / "results.json").read_bytes()
        outcome.tried += 1
        outcome.refusal(done, "other data")
        outcome.expect((out / "results.json").read_bytes() == before, "results were replaced")
    return outcome


_BESIDE = ("--pairs", "--labels", "--time")


def _names(work: Work, bench: Bench) -> Iterator[str]:
    """Go through the places that a command writes to, its lock among them."""
    with bench.folder() as folder:
        bench.finish(work, folder)
        yield from sorted(
            str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()
        )
    if work.place(Path()).suffix == "":
        yield str(work.place(Path()) / LOCK)


def _link(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def _second_name(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def _pipe(place: Path, victim: Path) -> None:
    os.mkfifo(place)


def _dangling(place: Path, victim: Path) -> None:
    place.symlink_to(victim.with_name("nothing"))


def _socket(place: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.fspath(place))


def _folder(place: Path, victim: Path) -> None:
    place.mkdir()
    (place / "kept").write_bytes(PRECIOUS)


def _refused_at_once(outcome: Outcome, bench: Bench, command: list[object]) -> None:
    outcome.tried += 1
    outcome.refusal(_ended(bench, command))


def _ended(bench: Bench, command: list[object]) -> Done:
    """Run a command, and kill it if it waits for something that never comes."""
    bench.processes.start(*command)
    stop = time.monotonic() + _PATIENCE
    _wait(lambda: not bench.processes.running() or time.monotonic() > stop, bench)
    return bench.processes.killed_now()


def _wait(moment: Callable[[], bool], bench: Bench) -> None:
    while bench.processes.running() and not moment():
        time.sleep(0.005)


def _bytes_in(folder: Path) -> dict[str, bytes]:
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found[str(file.relative_to(folder))] = file.read_bytes()
    return found
