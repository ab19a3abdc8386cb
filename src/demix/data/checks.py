"""What is wrong with data, found in one pass before anything is trained on it."""

import math
from dataclasses import dataclass

import numpy as np

from demix._support.errors import DemixError, warn
from demix._support.memory import check_memory
from demix.data.data import BLOCK, LARGEST, SHARE, Data, loses_precision

_SCALES = 1e4  # scales of columns that differ by more than this are too far apart for float32
_LEAST = 1e-32  # columns that vary less cannot be brought to one scale in float32


@dataclass(frozen=True, eq=False)
class Findings:
    """What :func:`check_data` found in usable data; a column of images is a channel.

    The columns ``names`` have ``mean`` and ``std`` ``(d,)``; ``constant`` ones never change, and
    ``ratio`` is the largest ``std`` over the smallest of others. ``duplicated`` rows repeat an
    earlier one. If ``precise``, float32 is too coarse for some column.
    """

    source: str
    rows: int
    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray
    constant: tuple[str, ...]
    duplicated: int
    ratio: float
    precise: bool

    def warn(self) -> None:
        """Issue each of :meth:`sentences` as a :class:`DemixWarning`."""
        for sentence in self.sentences():
            warn(sentence)

    def sentences(self) -> list[str]:
        """Return what makes results worse than they look."""
        found = []
        if self.constant:
            some = ", ".join(self.constant[:5]) + (", ..." if len(self.constant) > 5 else "")
            found.append(
                f"{len(self.constant)} of {len(self.names)} columns of {self.source} never change "
                f"({some}) and say nothing; leave them out."
            )
        if self.duplicated:
            found.append(
                f"{self.duplicated} of {self.rows} rows of {self.source} "
                f"({self.duplicated / self.rows:.1%}) repeat an earlier row exactly, so that a row "
                "is contrasted with itself and may be both trained on and held out; remove them "
                "unless they are meant."
            )
        if self.ratio > _SCALES:
            varying = np.where(self.std > 0, self.std, np.nan)
            large, small = int(np.nanargmax(varying)), int(np.nanargmin(varying))
            found.append(
                f"Columns of {self.source} differ in scale by a factor of {self.ratio:.1e} (std "
                f"{self.std[large]:.3g} in column {self.names[large]}, {self.std[small]:.3g} in "
                f"column {self.names[small]}); a fit brings them to one scale, so look whether the "
                "small ones are more than noise."
            )
        return found


def check_data(data: Data, *, batch: int | None = None) -> Findings:
    """Check all rows in one pass, in the memory of a block and 8 bytes for each row.

    Raise :class:`DemixError` over data from which nothing can be learnt: fewer than 2 rows, or than
    a batch; NaN, infinity, or numbers that float32 cannot subtract; columns that are all constant,
    or vary too little. Findings and digest are kept with the data, so that rows are scanned once.

    Examples
    --------
    >>> from demix.data.data import as_data
    >>> from demix.data.checks import check_data
    >>> found = check_data(as_data([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    >>> found.constant, found.duplicated, found.mean
    (('1',), 0, array([2., 5.]))
    """
    rows = len(data)
    if rows < 2:
        raise DemixError(f"Expected at least 2 rows to tell apart, but {data.source} has {rows}.")
    if batch is not None and rows < batch:
        raise DemixError(
            f"A batch of {batch} needs as many rows, but {data.source} has {rows}; choose a batch "
            f"of at most {rows}."
        )
    found: Findings = data.known.get("findings") or _scan(data)
    data.known["findings"] = found
    return found


def _scan(data: Data) -> Findings:
    rows, columns = data.shape[:2]
    names = data.names or tuple(map(str, range(columns)))
    seen, mean, squares = 0, np.zeros(columns), np.zeros(columns)
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    # Of a block, copies in float64 are made.
    entries = min(math.prod(data.shape), max(BLOCK, math.prod(data.shape[1:])))
    what = f"Looking at the {rows} rows of {data.source}"
    check_memory(16 * rows + 24 * entries, what, "take fewer rows")
    hashes = np.empty(rows, dtype=np.int64)
    bad, first_bad = 0, ""
    for start, raw in data.digested_blocks():
        block = raw.reshape(len(raw), columns, -1)  # of a matrix, one entry each
        finite = (np.abs(block) <= LARGEST).all(axis=2)  # not so for NaN, either
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            first_bad = first_bad or f"row {start + row}, column {names[column]}"
            bad += int((~finite.all(axis=1)).sum())
        if bad:
            continue
        hashes[start : start + len(block)] = _hashes(block)
        low = np.minimum(low, block.min(axis=(0, 2)))
        high = np.maximum(high, block.max(axis=(0, 2)))
        # Merged as in Chan, Golub & LeVeque (1983), "Algorithms for computing the sample variance".
        new = block.shape[0] * block.shape[2]
        block_mean = block.mean(axis=(0, 2), dtype=np.float64)
        step = block_mean - mean
        mean = mean + step * (new / (seen + new))
        squares += ((block - block_mean[:, None]) ** 2).sum(axis=(0, 2))
        squares += step**2 * (seen * new / (seen + new))
        seen += new
    if bad:
        raise DemixError(
            f"Expected finite numbers, but {bad} of {rows} rows of {data.source} hold NaN, "
            f"infinity or numbers beyond {LARGEST:.1e}, the first of them {first_bad} (counted "
            "from 0); remove or impute them."
        )
    varies, largest = low < high, np.maximum(np.abs(low), np.abs(high))
    std = np.where(varies, np.sqrt(squares / seen), 0.0)
    # Beyond 2^53 whole numbers merge, in tables before they come here.
    coarse = (largest >= 2**53) & (np.spacing(largest) > SHARE * std)
    merged = coarse & (varies | (data.rows.dtype.kind in "iu"))
    if merged.any():
        raise DemixError(
            "Expected numbers that float64 tells apart, but those of column "
            f"{names[merged.argmax()]} of {data.source} lie beyond 2^53 and merge; subtract what "
            "they share, or leave the column out."
        )
    if not varies.any():
        raise DemixError(f"Expected columns that change, but all of {data.source} are constant.")
    small = varies & (std < _LEAST)
    if small.any():
        raise DemixError(
            f"Expected columns that vary by {_LEAST} or more, but column {names[small.argmax()]} "
            f"of {data.source} varies by less; multiply it by a large number or leave it out."
        )
    wide = len(data.shape) == 2 and not np.can_cast(data.rows.dtype, np.float32)
    return Findings(
        source=data.source,
        rows=rows,
        names=names,
        mean=mean,
        std=std,
        constant=tuple(name for name, varied in zip(names, varies, strict=True) if not varied),
        duplicated=rows - len(np.unique(hashes)),
        ratio=float(std[varies].max() / std[varies].min()),
        precise=wide and bool(loses_precision(largest, std).any()),
    )


def _hashes(block: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes ``(B,)`` of rows; a million rows collide with probability 3e-8."""
    # -0 and 0 are equal, their bytes are not.
    flat = np.ascontiguousarray(block.reshape(len(block), -1) + block.dtype.type(0))
    rows = flat.view(f"V{flat.shape[1] * flat.itemsize}").ravel().tolist()
    return np.fromiter(map(hash, rows), dtype=np.int64, count=len(rows))
