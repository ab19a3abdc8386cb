"""ImageNet-X: which factors set photographs of ImageNet apart from typical ones of their class."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from demix._support.errors import DemixError, reason, shortened
from demix._support.files import is_there
from demix._support.memory import check_memory
from demix.data.csv_files import csv_lines, reads_as
from demix.data.formats import check_kind, find_column

FACTORS = (
    "multiple_objects", "background", "color", "brighter", "darker", "style", "larger", "smaller",
    "object_blocking", "person_blocking", "partial_view", "pattern", "pose", "shape", "subcategory",
    "texture",
)  # fmt: skip
_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class ImageNetX:
    """Annotations of photographs, made by :func:`imagenet_x`.

    Attributes
    ----------
    names : tuple of str
        File names of the photographs.
    factors : array (N, 16) of bool
        Whether a factor sets the photograph apart, in the order of ``factor_names``.
    classes : array (N,) of int64
        Class indices of ILSVRC-2012, from 0 to 999.
    """

    names: tuple[str, ...]
    factors: np.ndarray
    classes: np.ndarray

    factor_names: ClassVar[tuple[str, ...]] = FACTORS
    target_names: ClassVar[tuple[str, ...]] = (*FACTORS, "class < 500")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def targets(self) -> np.ndarray:
        """What Reizinger et al. (2024) read out ``(N, 17)``: the factors, and half of ImageNet."""
        return np.column_stack([self.factors, self.classes < _CLASSES // 2])


def imagenet_x(path: str | Path | None = None) -> ImageNetX:
    """Read annotations of ImageNet-X (Idrissi et al. 2022).

    Parameters
    ----------
    path : path, optional
        A ``.jsonl`` file of the layout of the package ``imagenet-x``: in each line an object with
        ``file_name``, ``class`` and the sixteen factors as 0 or 1; text beside them is ignored.
        By default the file of the validation set inside that package with all factors of a
        photograph, if it is installed. The package itself is not imported.

    References
    ----------
    B. Y. Idrissi, D. Bouchacourt, R. Balestriero, I. Evtimov, C. Hazirbas, N. Ballas, P. Vincent,
    M. Drozdzal, D. Lopez-Paz, M. Ibrahim (2022), ImageNet-X: Understanding Model Mistakes with
    Factor of Variation Annotations.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from demix.papers import ImageNetX, imagenet_x
    >>> row = {"file_name": "a.JPEG", "class": 7} | dict.fromkeys(ImageNetX.factor_names, 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "annotations.jsonl"
    ...     _ = path.write_text(json.dumps(row | {"pose": 1}))
    ...     annotations = imagenet_x(path)
    >>> annotations.names, int(annotations.factors.sum()), annotations.targets.shape
    (('a.JPEG',), 1, (1, 17))
    """
    path = _of_package() if path is None else Path(path)
    if not is_there(path):
        raise DemixError(f"Expected annotations of ImageNet-X (.jsonl), but {path} is no file.")
    check_kind(path, "a text file")
    rows = list(_rows(path))
    if not rows:
        raise DemixError(f"Expected annotations of ImageNet-X, but {path} has no lines.")
    names, factors, classes = zip(*rows, strict=True)
    _refuse_twice(names, path)
    return ImageNetX(names, np.array(factors, dtype=bool), np.array(classes, dtype=np.int64))


def class_labels(path: str | Path) -> dict[str, int]:
    """Read class indices by file name from a csv file with columns ``file_name`` and ``label``."""
    path = Path(path)
    lines = csv_lines(path)
    header = [cell.strip() for cell in next(lines)[1]]
    places = [find_column(name, header, path) for name in ("file_name", "label")]
    names, labels = [], []
    for line, cells in lines:
        where = f"line {line} of {path}"
        name, label = (cells[place].strip() for place in places)
        names.append(name)
        labels.append(_checked_class(int(label) if reads_as(int, label) else label, where))
    _refuse_twice(names, path)
    return dict(zip(names, labels, strict=True))


def _of_package() -> Path:
    found = find_spec("imagenet_x")
    if found is None or not found.submodule_search_locations:
        raise DemixError(
            "Expected annotations of ImageNet-X, but got no file, and the package imagenet-x is "
            "not installed; give a .jsonl file, or install it with: pip install imagenet-x."
        )
    folder = Path(next(iter(found.submodule_search_locations)))
    return folder / "annotations" / "imagenet_x_val_multi_factor.jsonl"


def _rows(path: Path) -> Iterator[tuple[str, list[bool], int]]:
    """Go through name, factors and class of each photograph."""
    # Its bytes, its text and its lines.
    check_memory(3 * path.stat().st_size, f"Reading {path}", "fetch the file again")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DemixError(f"Expected a text file in UTF-8, but {path}: {reason(error)}.") from error
    for number, line in enumerate(lines, start=1):
        where = f"line {number} of {path}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DemixError(
                f"Expected a JSON object in each line, but {where} cannot be read "
                f"({reason(error)}); fetch the file again."
            ) from error
        if not isinstance(row, dict):
            raise DemixError(
                f"Expected a JSON object in each line, but {where} is {shortened(line)}."
            )
        missing = [name for name in ("file_name", "class", *FACTORS) if name not in row]
        if missing:
            raise DemixError(
                f"Expected file_name, class and {len(FACTORS)} factors in each line, but {where} "
                f"has no {missing[0]!r}."
            )
        name = row["file_name"]
        if not isinstance(name, str) or not name:
            raise DemixError(f"Expected a file_name, but {where} has {_shown(name)}.")
        factors = _checked_factors(row, where)
        # Annotations of some sets hold paths; photographs are known by their last part.
        yield name.rpartition("/")[2], factors, _checked_class(row["class"], where)


def _checked_factors(row: dict[str, Any], where: str) -> list[bool]:
    for name, value in row.items():
        if name in FACTORS and value not in (0, 1):
            raise DemixError(f"Expected 0 or 1 as {name!r}, but {where} has {_shown(value)}.")
        known = name in ("file_name", "class", *FACTORS) or value is None or isinstance(value, str)
        if not known:
            raise DemixError(
                f"Unknown factor {_shown(name)} in {where}; known are {', '.join(FACTORS)}."
            )
    return [bool(row[name]) for name in FACTORS]


def _checked_class(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _CLASSES:
        raise DemixError(
            f"Expected a class index from 0 to {_CLASSES - 1}, but {where} has {_shown(value)}."
        )
    return value


def _shown(value: Any) -> str:
    return shortened(repr(value))


def _refuse_twice(names: Sequence[str], path: Path) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DemixError(
                f"Expected each file name once in {path}, but {shortened(name)} is there twice."
            )
        seen.add(name)
