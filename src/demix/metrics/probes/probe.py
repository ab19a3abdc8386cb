"""All factors of a table at once, with control over how many are found by chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from demix._support.errors import DemixError, demix_errors
from demix._support.validation import check_matrix, check_seed
from demix.metrics.blocks import Blocks, sampling_of, warn_if_alike
from demix.metrics.probes import readouts
from demix.metrics.probes.factor import Factor, factors_of, unknown_factors

LEVEL = 0.05
"""Share of false findings that is accepted."""

_LEAST_ROWS = 70  # with fewer rows, fewer than twenty would score
_LEAST_ORDERS, _ORDERS_A_FACTOR = 2000, 200  # Bonferroni multiplies p by the factors
_LISTED = 100  # factors of more values are written without them


@dataclass(frozen=True, eq=False)
class Probed:
    """One factor of a probe: what was found, or the reason why it could not be tested.

    Where ``bonferroni`` is below 0.05, the chance of *any* false finding is at most 5 %; where
    ``benjamini_hochberg`` is, the expected *share* of false ones among the findings.
    """

    factor: Factor
    read_out: readouts.ReadOut | None = None
    reason: str | None = None
    bonferroni: float | None = None
    benjamini_hochberg: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        factor, found = self.factor, self.read_out
        data: dict[str, Any] = {"name": factor.name, "kind": factor.kind, "testable": bool(found)}
        if factor.categorical and len(factor.levels) <= _LISTED:
            counts, levels = np.bincount(factor.codes).tolist(), factor.levels.tolist()
            words = [x if isinstance(x, str) else str(x).removesuffix(".0") for x in levels]
            data["values"] = dict(zip(words, counts, strict=True))
        if found is None:
            return {**data, "reason": self.reason}
        return {
            **data,
            "measure": found.measure,
            **found.tested._asdict(),
            "chance": found.chance._asdict(),
            "p": found.p,
            "bonferroni": self.bonferroni,
            "benjamini_hochberg": self.benjamini_hochberg,
            "scores": {name: score._asdict() for name, score in found.scores.items()},
            "penalty": found.penalty,
        }


@dataclass(frozen=True, eq=False)
class Probe:
    """How well features predict the factors of a table, and the size of the null of each.

    ``effective`` is how many independent rows all rows are worth.
    """

    factors: tuple[Probed, ...]
    split: readouts.ProbeSplit
    permutations: int
    effective: float

    def __getitem__(self, name: str) -> Probed:
        for one in self.factors:
            if one.factor.name == name:
                return one
        raise unknown_factors([name], [one.factor.name for one in self.factors])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "rows": {name: len(part) for name, part in self.split._asdict().items()},
            "effective_rows": self.effective,
            "permutations": self.permutations,
            "tested": sum(one.read_out is not None for one in self.factors),
            "factors": [one.to_dict() for one in self.factors],
        }


def probe(
    features: Any,
    factors: Any,
    *,
    only: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    blocks: Blocks = None,
    split: Sequence[Any] | None = None,
    callback: readouts.Progress = lambda done, total, name: None,
    seed: int = 0,
) -> Probe:
    """Return how well a linear map reads each factor out of features, and whether by chance.

    Numbers are read out by ridge regression (Pearson's r and R²), categories by logistic
    regression (balanced accuracy, and the area under the ROC curve of two of them). Half of the
    rows fit, a fifth chooses the penalty, the others score. The null of a factor is its score with
    the held-out values in random order, or shifted in a circle if rows are in ``blocks``. Factors
    that too few rows have a value of are marked with the reason.

    Parameters
    ----------
    features : array (N, d)
        The representation; float32 stays so.
    factors : dict of arrays (N,), DataFrame, KnownFactors or array (N, n)
        Known factors: numbers, truth values or text.
    only : sequence of str, optional
        Names of the factors to probe, each of which must vary; by default all.
    kinds : dict, optional
        ``continuous``, ``ordinal``, ``categorical`` or ``binary`` by name. By default text, truth
        values and whole numbers of at most 20 different values are categories.
    periods : dict, optional
        Periods of factors that repeat, such as 360; read out as sine and cosine.
    blocks : None, int, "auto" or array (N,)
        Which rows are alike, as in :func:`demix.affine_r2`.
    split : three arrays of int, optional
        Numbers of the rows that fit, that choose the penalty, and that score.
    callback : callable, optional
        Called with the number of finished steps, the number of all, and the name of the next.
    seed : int
        Seed of the split, of the null and of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import probe
    >>> random = np.random.default_rng(0)
    >>> features = random.normal(size=(600, 4))
    >>> size = features @ [1, 2, 0, 1] + random.normal(size=600)
    >>> shape = np.where(features[:, 2] > 0, "cube", "ball")
    >>> found = probe(features, {"size": size, "shape": shape, "day": random.integers(0, 7, 600)})
    >>> {one.factor.name: one.bonferroni < 0.05 for one in found.factors}
    {'size': True, 'shape': True, 'day': False}
    """
    check_seed(seed)
    rows = check_matrix(features, "features", keep_float32=True)
    known = factors_of(factors, len(rows), only, kinds or {}, periods or {})
    if rows.shape[1] == 0:
        raise DemixError("Expected features, but they have no columns.")
    if len(rows) < _LEAST_ROWS:
        raise DemixError(
            f"Fitting, choosing a penalty and scoring on rows of their own needs at least "
            f"{_LEAST_ROWS} rows, but got {len(rows)}."
        )
    sampling = sampling_of(rows, np.stack([f.codes for f in known], axis=1), blocks, seed)
    parts = readouts.split_of(sampling) if split is None else _check_split(split, len(rows))
    if not all(map(len, parts)):
        raise DemixError(
            "Fitting, choosing a penalty and scoring on rows of their own needs three parts, but "
            "one is empty; give more or shorter blocks."
        )
    reasons = {factor: factor.untestable or readouts.missing(factor, parts) for factor in known}
    constant = [factor for factor in known if len(factor.levels) == 1]
    if only is not None and constant:
        raise DemixError(
            f"Expected a factor that varies, but {constant[0].name!r} is {constant[0].levels[0]} "
            f"in all {len(rows)} rows; leave it out."
        )
    tested = [factor for factor in known if reasons[factor] is None]
    if not tested:
        listed = "; ".join(f"{factor.name}: {reasons[factor]}" for factor in known[:5])
        listed += "; ..." if len(known) > 5 else ""
        raise DemixError(f"Expected a factor that can be tested, but there is none ({listed}).")
    warn_if_alike(rows, sampling)
    permutations = max(_LEAST_ORDERS, _ORDERS_A_FACTOR * len(tested))
    found = readouts.read_outs(
        rows, tested, parts, permutations=permutations, sampling=sampling, callback=callback
    )
    shares = false_discovery_control([one.p for one in found]).tolist()
    probed = {factor: Probed(factor, reason=reason) for factor, reason in reasons.items()}
    for factor, one, share in zip(tested, found, shares, strict=True):
        probed[factor] = Probed(factor, one, None, min(1.0, len(found) * one.p), share)
    return Probe(tuple(probed.values()), parts, len(found[0].null), sampling.effective)


def _check_split(split: Sequence[Any], rows: int) -> readouts.ProbeSplit:
    """Return parts that share no row: what fits a read-out, or chooses it, must not score it."""
    with demix_errors("Expected a split of three arrays of row numbers", "give three of them"):
        # Not rounded, as numpy would.
        parts = readouts.ProbeSplit(
            *(np.array([*map(index, part)], dtype=np.int64) for part in split)
        )
    every = np.concatenate(parts)
    if len(every) and not 0 <= every.min() <= every.max() < rows:
        raise DemixError(f"Rows are 0..{rows - 1}, but a split holds {every.min()}..{every.max()}.")
    if twice := len(every) - len(np.unique(every)):
        raise DemixError(f"Parts of a split must share no row, but {twice} rows are in it twice.")
    return parts
