"""Annotation files of multi-object tracking and segmentation (MOTS), from folders and archives."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from demix._support.errors import DemixError, demix_errors, shortened
from demix._support.files import inside, is_there, open_regular
from demix._support.memory import check_memory
from demix.data.npy_files import open_member
from demix.papers.datasets.archives import open_tar

_PEDESTRIAN = 2
_FIELDS = ("frame", "id", "class", "height", "width", "mask")
_LARGEST = 2**15  # images of a side beyond this are none
_APART = 20  # bytes in memory for a byte of text, while its lines are taken apart


class Video(NamedTuple):
    """Pedestrians of one file: frame, track ``(M,)`` and run lengths of each of ``M`` masks."""

    name: str
    height: int
    width: int
    frame: np.ndarray
    track: np.ndarray
    runs: Runs


def read_mots(path: str | Path) -> list[Video]:
    """Read the pedestrians of all videos of a folder, an archive or one ``.txt`` file.

    Each file is a video, each line an object: ``frame id class height width mask`` with ``id = 1000
    class + track``, class 2 for pedestrians, and run lengths of COCO (Voigtlaender et al. 2019).
    """
    path = Path(path)
    if not os.path.isdir(path) and not is_there(path):
        raise DemixError(
            f"Expected a folder, an archive or a .txt file of MOTS annotations, but {path} does "
            "not exist."
        )
    expected = "a folder, a tar or zip archive or a .txt file of MOTS annotations"
    with demix_errors(f"Expected {expected}, but {path} cannot be read as one", "fetch it again"):
        texts = list(_texts(path))
    if not texts:
        raise DemixError(
            f"Expected .txt files of MOTS annotations in {path}, but there are none; give the "
            "folder or archive that holds 0000.txt or gt.txt."
        )
    found = [video for name, text in texts if (video := _pedestrians(name, text))]
    if not found:
        raise DemixError(
            f"Expected pedestrians (class {_PEDESTRIAN}) in {path}, but none of its "
            f"{len(texts)} files has any."
        )
    return found


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Go through the annotation files below a path, sorted by name; nothing is unpacked."""
    if path.is_dir():
        for file in sorted(map(Path, inside(path, OSError))):
            if _is_annotation(file.name):
                yield str(file), _read(file)
    elif path.suffix.lower() == ".txt":
        yield str(path), _read(path)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in sorted(filter(_is_annotation, archive.namelist())):
                _check_size(path, size := archive.getinfo(name).file_size)
                with open_member(archive, name) as member:  # it may inflate to more than it claims
                    yield f"{path}:{name}", member.read(size + 1)
    else:
        with open_tar(path) as archive:
            # In the order of the archive, which is unpacked only once; sorted when it is known.
            read = [
                (member.name, opened.read())
                for member in archive
                if member.isreg()
                and _is_annotation(member.name)
                and _check_size(path, member.size)
                and (opened := archive.extractfile(member))
            ]
        for name, text in sorted(read):
            yield f"{path}:{name}", text


def _read(file: Path) -> bytes:
    with open_regular(file) as opened:
        _check_size(file, os.fstat(opened.fileno()).st_size)
        return opened.read()


def _check_size(path: Path, size: int) -> bool:
    """Refuse text that would not fit into memory, before it is unpacked."""
    check_memory(_APART * size, f"Reading {path}", "give fewer videos at a time")
    return True


def _is_annotation(name: str) -> bool:
    """Tell annotations from what other systems leave in archives, such as ``._0000.txt``."""
    last = name.rpartition("/")[2]
    return last.endswith(".txt") and not last.startswith(".")


def _pedestrians(name: str, text: bytes) -> Video | None:
    """Return the pedestrians of one file, or None if there are none."""
    lines = text.splitlines()
    if not lines:
        raise DemixError(
            f"Expected lines of MOTS annotations, but {name} is empty; fetch it again or remove it."
        )
    fields = [line.split() for line in lines]
    for number, found in enumerate(fields):
        if len(found) != len(_FIELDS):
            has = f"has {len(found)}; fetch the file again, or remove it if it is no annotation"
            raise _wrong(f"6 fields ({' '.join(_FIELDS)})", name, number, has)
    numbers = _numbers(name, fields)
    objects = numbers[:, 2] == _PEDESTRIAN
    if not objects.any():
        return None
    frame, identity, _, height, width = numbers[objects].T
    line = np.flatnonzero(objects)
    _, first = np.unique(np.stack([frame, identity]), axis=1, return_index=True)
    for again in np.setdiff1d(np.arange(len(frame)), first)[:1]:
        has = f"has object {identity[again]} in frame {frame[again]} again; remove one of them"
        raise _wrong("each object once in a frame", name, line[again], has)
    size = (int(height[0]), int(width[0]))
    runs = read_runs([fields[place][5] for place in line], size[0] * size[1])
    if not runs.whole.all():
        expected = f"a mask of {size[0]} x {size[1]} pixels as compressed run lengths of COCO"
        has = "does not decode to one; fetch the file again"
        raise _wrong(expected, name, line[runs.whole.argmin()], has)
    return Video(name, *size, frame, identity, runs)


def _numbers(name: str, fields: list[list[bytes]]) -> np.ndarray:
    """Return frame, id, class, height and width of each line, ``(L, 5)``, checked."""
    numbers = np.empty((len(fields), 5), dtype=np.int64)
    for line, found in enumerate(fields):
        try:
            numbers[line] = [int(field) for field in found[:5]]
        except (ValueError, OverflowError) as error:
            has = f"has {shortened(b' '.join(found[:5]).decode(errors='replace'))!r}"
            raise _wrong("whole numbers before the mask", name, line, has) from error
    _, identity, kind, height, width = numbers.T
    for line in np.flatnonzero((identity // 1000 != kind) | (numbers < 0).any(axis=1))[:1]:
        has = f"has id {identity[line]} and class {kind[line]}"
        raise _wrong("an id of 1000 times the class plus the track", name, line, has)
    sides = numbers[:, 3:]
    for line in np.flatnonzero(((sides < 1) | (sides > _LARGEST)).any(axis=1))[:1]:
        expected = f"images of 1 to {_LARGEST} pixels on each side"
        raise _wrong(expected, name, line, f"is {height[line]} x {width[line]}")
    for line in np.flatnonzero((height != height[0]) | (width != width[0]))[:1]:
        expected = f"masks of one size in a video, {height[0]} x {width[0]} as in line 1"
        has = f"is {height[line]} x {width[line]}; is it of another video?"
        raise _wrong(expected, name, line, has)
    return numbers


def _wrong(expected: str, name: str, line: int, found: str) -> DemixError:
    """Return the error of a line, counted from 0."""
    text = f"Expected {expected}, but line {line + 1} of {name} {found}"
    return DemixError(text if text.endswith("?") else f"{text}.")


# Characters stand for 6 bits: 5 of a number, and one that says whether it goes on.
_FIRST, _BITS, _GOES_ON, _SIGN = 48, 5, 32, 16
# Longer numbers than these could not count the pixels of any image, and would not fit into int64.
_LONGEST = 8


class Runs(NamedTuple):
    """Lengths of all runs of ``M`` masks, where each mask's begin, and if they cover the image."""

    lengths: np.ndarray
    first: np.ndarray
    whole: np.ndarray


def read_runs(codes: Sequence[bytes], pixels: int) -> Runs:
    """Read COCO's compressed run lengths, background first; those of a mask add up to ``pixels``.

    A number is written in groups of 5 bits, lowest first, as two's complement; from the fourth run
    on, what is written is the difference to the run before the last one.
    """
    digits = np.frombuffer(b"".join(codes), np.uint8).astype(np.int64) - _FIRST
    ends = np.cumsum([len(code) for code in codes])
    is_last = (digits & _GOES_ON) == 0
    readable = (digits >= 0) & (digits < 2 * _GOES_ON)
    # A code that ends within a number must not swallow the beginning of the next.
    readable[ends - 1] &= is_last[ends - 1]
    is_last[ends - 1] = True
    last = np.flatnonzero(is_last)
    start = np.append(0, last[:-1] + 1)
    place = np.arange(len(digits)) - np.repeat(start, last - start + 1)
    readable &= place < _LONGEST
    place = place.clip(max=_LONGEST)
    numbers = np.add.reduceat((digits & (_GOES_ON - 1)) << (_BITS * place), start)
    numbers -= ((digits[last] & _SIGN) > 0) * (1 << (_BITS * (place[last] + 1)))
    first = np.append(0, np.searchsorted(last, ends - 1) + 1)
    lengths = _undo_differences(numbers, first)
    covered = np.add.reduceat(lengths, first[:-1]) == pixels
    shortest = np.minimum.reduceat(lengths, first[:-1])
    legible = np.logical_and.reduceat(readable, np.append(0, ends[:-1]))
    return Runs(lengths, first, covered & (shortest >= 0) & legible)


def sampled(runs: Runs, height: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pixels ``(M, h, w)`` of whole masks at rising ``rows`` and ``columns`` only."""
    # Sampled pixels in the order of the runs, down the columns; the ends of runs are looked up.
    pixels = (columns[:, None] * height + rows).ravel()
    begins = np.cumsum(runs.lengths) - runs.lengths
    within = begins - np.repeat(begins[runs.first[:-1]], np.diff(runs.first))
    seen = np.searchsorted(pixels, within + runs.lengths) - np.searchsorted(pixels, within)
    turn = np.arange(len(runs.lengths)) - np.repeat(runs.first[:-1], np.diff(runs.first))
    masks = np.repeat(turn % 2 == 1, seen)
    return masks.reshape(-1, len(columns), len(rows)).transpose(0, 2, 1)


def _undo_differences(numbers: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add up every second number of each mask, leaving its first as it is."""
    turn = np.arange(len(numbers)) - np.repeat(first[:-1], np.diff(first))
    lengths = numbers.copy()
    for parity in (0, 1):
        takes_part = (turn % 2 == parity) & (turn > 0)
        total = np.cumsum(np.where(takes_part, numbers, 0))
        # The first number of a mask takes no part: up to it is what came before the mask.
        before = np.repeat(total[first[:-1]], np.diff(first))
        lengths[takes_part] = (total - before)[takes_part]
    return lengths
