"""Checkpoints of trainings: each has a checksum, and the previous one is kept."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import struct
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load, save
from torch import Tensor, uint8

from demix._support import files
from demix._support.errors import DemixError, demix_errors, warn
from demix._support.memory import check_memory
from demix._support.outputs import refuse_other

if TYPE_CHECKING:
    from demix.training.state import State

_SCHEMA = 2
_MARK = b'{"__metadata__":{"demix":'  # how a checkpoint goes on after the length of its header
_LONGEST = 2**25  # bytes of a header that are read; objects made of them take forty times as many
_SHARE = 0.015  # of the time of training, not the promised 2 %: one may take longer than the last


class Checkpoints:
    """The checkpoint of one training, in a file if there is a ``path``, and the previous one.

    ``about`` are facts that identify the training. The first evaluation is saved, because the cost
    is not known before, and then whatever keeps the cost below 2 % of the time of training.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.about = dict(about)
        self._kept: int | None = None  # the step that the file is of
        self._begun = self._cost = self._spent = 0.0

    @property
    def found(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return self.path is not None and any(file.exists() for file in checkpoint_files(self.path))

    def restore(self, state: State, steps: int) -> None:
        """Restore the newest intact checkpoint, of at most ``steps`` steps, if there is any."""
        if self.path is None:
            return
        if not self.found:
            self._refuse_others()  # links to nothing
            return
        sizes = [file.stat().st_size for file in checkpoint_files(self.path) if is_checkpoint(file)]
        advice = "take a machine with more, or remove it to start anew"
        check_memory(2 * max(sizes, default=0), f"Reading {self.path}", advice)  # tensors, too
        tensors, facts = _newest(self.path, self.about)
        if facts["schema"] != _SCHEMA or facts["about"] != self.about:
            raise DemixError(
                f"{self.path} is the checkpoint of another training; remove it to start anew, or "
                "give the settings, data and seed that it was started with."
            )
        self._refuse_others()
        with _damaged(self.path):
            done = facts["state"]["step"] - int(facts["state"].get("begun", 0))
            if done > steps:
                raise ValueError(f"it is of step {done} of {steps}")
            state.restore(tensors, facts["state"])
        self._kept, self._begun = state.step, state.seconds

    def save(self, state: State, *, last: bool = False) -> None:
        """Write a checkpoint if it is the first or the last one, or cheap enough."""
        if self.path is None or self._kept == state.step:
            return
        allowed = _SHARE * (state.seconds - self._begun)
        if self._spent and not last and self._spent + self._cost > allowed:
            return
        start = time.perf_counter()
        self._refuse_others()
        tensors, facts = state.to_save()
        raw = _sealed(tensors, {"schema": _SCHEMA, "about": self.about, "state": facts})
        files.write_atomic(self.path, raw, before=checkpoint_files(self.path)[1])
        self._kept, self._cost = state.step, time.perf_counter() - start
        self._spent += self._cost

    def _refuse_others(self) -> None:
        for file in checkpoint_files(self.path) if self.path is not None else ():
            refuse_other(file, rb".{8}" + re.escape(_MARK))


def checkpoint_files(path: str | Path) -> tuple[Path, Path]:
    """Return the files that a training with a checkpoint may leave, the last one first."""
    path = files.check_name(Path(path))
    return path, files.check_name(path.with_name(f"{path.stem}.previous{path.suffix}"))


def remove_checkpoint(path: str | Path) -> None:
    """Remove the checkpoint of a finished training, and the previous one; those of others stay."""
    for file in checkpoint_files(path):
        if is_checkpoint(file) and not files.is_new(file):
            file.unlink()


def is_checkpoint(path: Path) -> bool:
    """Whether this is a file, no link, that begins as a checkpoint; the rest may be damaged."""
    try:
        files.check_free(path)
        with files.open_regular(path) as file:
            return file.read(8 + len(_MARK))[8:] == _MARK
    except (OSError, DemixError):
        return False


def _newest(path: Path, about: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the last checkpoint, or the previous one if it is damaged, with a warning."""
    last, before = checkpoint_files(path)
    if not last.exists():  # killed between two renamings
        return _read(before)
    try:
        return _read(last)
    except DemixError as error:
        try:
            found = _read(before)
        except DemixError:
            raise error from None
        if found[1]["about"] != about:  # which is refused; both files stay
            return found
        for file in (last, before):
            files.check_free(file)
        aside = ""  # else the next one would make the damaged one the previous one
        try:
            if not is_checkpoint(last):  # perhaps somebody else's
                place = last.rename(last.with_name(f"{last.stem}.damaged-{secrets.token_hex(4)}"))
                aside = f" and now {place.name}"
            files.move_own(before, last)
        except OSError as problem:
            raise files.refused(last, problem) from problem
        warn(
            f"{last} is damaged{aside}; training continues from the previous checkpoint, after "
            f"{found[1]['state']['step']} steps."
        )
        return found


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and facts of a checkpoint whose checksum is right."""
    with _damaged(path):
        with files.open_regular(path) as file:
            start = file.read(8 + len(_MARK))
            (length,) = struct.unpack("<Q", start[:8])
            if start[8:] != _MARK or length > _LONGEST:
                raise ValueError("it begins otherwise")
            raw = start + file.read()
        sealed = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["demix"])
        tensors, facts = load(raw), sealed["facts"]
        if sealed["sha256"] != _digest(tensors, facts):
            raise ValueError("its checksum is another")
        if type(facts["state"]["step"]) is not int or not {"schema", "about"} <= facts.keys():
            raise ValueError("it holds other facts")
    return tensors, facts


def _damaged(path: Path) -> AbstractContextManager[None]:
    advice = "remove it to start anew" if is_checkpoint(path) else "choose another file"
    return demix_errors(f"{path} is damaged or no checkpoint of demix", advice)


def _sealed(tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> bytes:
    """Return the bytes of a safetensors file with a checksum of all that it holds."""
    # Copies: a tensor with several names could not be saved.
    whole = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    facts = json.loads(json.dumps(facts))
    about = json.dumps({"facts": facts, "sha256": _digest(whole, facts)})
    return save(whole, metadata={"demix": about})


def _digest(tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> str:
    """Return the SHA-256 of tensors, with their names, types and shapes, and of the facts."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(uint8).numpy().data)
    return digest.hexdigest()
