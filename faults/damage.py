"""Files that decay: whatever is flipped, zeroed or cut off is noticed, or changes nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from demix._support.errors import DemixError, DemixWarning
from demix.encoders.files import SavedModel, open_model
from demix.papers.scenes.folder import open_rendered, render_folder
from demix.papers.scenes.order import Order
from demix.training.checkpoints import checkpoint_files
from faults.bench import Bench
from faults.outcome import Outcome
from faults.processes import KILLED
from faults.work import images

# Bytes of the header of a small array.
_HEADER = 128
# What a fit says of a damaged checkpoint; one whose beginning is gone is set aside, too.
_DAMAGED = re.compile(
    r"is damaged( and now checkpoint\.damaged-\w+)?; "
    r"training continues from the previous checkpoint"
)


def damages(raw: bytes, regions: int) -> Iterator[bytes]:
    """Go through the states of decay of a file, whose every region is damaged in four ways.

    A bit flips; all bits of the region flip; the file ends there; it is zero from there on.

    Examples
    --------
    >>> from faults.damage import damages
    >>> list(damages(b"abcd", 2))[:4]
    [b'`bcd', b'\\x9e\\x9dcd', b'', b'\\x00\\x00\\x00\\x00']
    """
    for region in range(regions):
        start, stop = (len(raw) * (region + more) // regions for more in (0, 1))
        one, many = bytearray(raw), bytearray(raw)
        one[start] ^= 1 << region % 8
        many[start:stop] = bytes(byte ^ 255 for byte in raw[start:stop])
        yield bytes(one)
        yield bytes(many)
        yield raw[:start]
        yield raw[:start] + bytes(len(raw) - start)


def model(regions: int, bench: Bench) -> Outcome:
    """Damage the files of a model folder: it is refused, or the same model as before."""
    outcome = Outcome("bits flipped, zeroed, cut off", "model folder")
    folder = bench.root / "model"
    honest = open_model(folder)
    for name in ("model.json", "model.safetensors"):
        raw = (folder / name).read_bytes()
        for spoilt in damages(raw, regions):
            outcome.tried += 1
            (folder / name).write_bytes(spoilt)
            try:
                outcome.expect(_alike(open_model(folder), honest), f"{name} was read otherwise")
            except DemixError:
                outcome.refused += 1
        (folder / name).write_bytes(raw)
    return outcome


def rendered(regions: int, bench: Bench) -> Outcome:
    """Damage a rendered folder: it is not opened, and rendering mends it.

    A file without a single byte as it was may be anybody's: it is refused, and stays.
    """
    outcome = Outcome("bits flipped, zeroed, cut off", "rendered folder")
    order = Order("sprites", n=600, size=8, seed=1, pairs="normal:0.1")
    with bench.folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        place = render_folder(order, folder / "out", jobs=1)
        expected = images(place)
        for name in sorted(expected):
            raw = (place / name).read_bytes()
            for spoilt in damages(raw, regions):
                outcome.tried += 1
                (place / name).write_bytes(spoilt)
                try:
                    open_rendered(place, verify=True)
                    outcome.expect(spoilt == raw, f"{name} was opened damaged")
                except DemixError:
                    outcome.refused += 1
                try:
                    render_folder(order, place, jobs=1)
                    outcome.expect(images(place) == expected, f"{name} was not mended")
                except DemixError as refusal:
                    # Zeros are what nobody wrote, even where the file itself has some; and a header
                    # that is damaged may be that of another's array.
                    alike = any(new == old != 0 for new, old in zip(spoilt, raw, strict=False))
                    headed = spoilt[:_HEADER] == raw[:_HEADER]
                    outcome.expect(not (alike and headed), f"{name} was not mended: {refusal}")
                    stays = (place / name).read_bytes() == spoilt
                    outcome.expect(stays, f"{name} was refused and changed")
                    (place / name).write_bytes(raw)
    return outcome


def checkpoint(regions: int, bench: Bench) -> Outcome:
    """Damage the checkpoint of a killed fit: it goes on from the one before, to the same bits."""
    work = bench.works["demix fit"]
    outcome = Outcome("bits flipped, zeroed, cut off", "checkpoint of demix fit")
    expected = bench.undisturbed(work)
    with bench.folder() as folder:
        last, before = checkpoint_files(work.place(folder) / "checkpoint.safetensors")
        done = bench.processes.killed(before.exists, *work.command(folder))
        if done.returncode != KILLED or not last.exists():
            outcome.expect(False, "the fit ended before it had two checkpoints")
            return outcome
        kept = last.read_bytes(), before.read_bytes()
        for spoilt in damages(kept[0], regions):
            outcome.tried += 1
            last.write_bytes(spoilt)
            before.write_bytes(kept[1])
            done = bench.processes.run(*work.command(folder), "--overwrite")
            told = _DAMAGED.search(done.stderr) is not None
            outcome.expect(told, f"damage was not noticed: {done.stderr.strip()[-300:]}")
            # What no longer looks like a checkpoint may be anybody's: it gets another name.
            for aside in work.place(folder).glob("checkpoint.damaged-*"):
                outcome.expect(aside.read_bytes() == spoilt, "what was set aside has changed")
                aside.unlink()
            same = done.returncode == 0 and work.result(work.place(folder)) == expected
            outcome.expect(same, "the fit ended with other bits")
    return outcome


def _alike(one: SavedModel, other: SavedModel) -> bool:
    states = [found.encoder.state_dict() for found in (one, other)]
    same = all((states[0][name] == value).all() for name, value in states[1].items())
    return (
        bool(same) and one.about == other.about and one.encoder.settings == other.encoder.settings
    )
