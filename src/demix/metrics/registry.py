"""Every score by name, and all of them at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from demix._support.errors import DemixError, warn
from demix.metrics import readout
from demix.metrics.blocks import Blocks, blocks_of, warn_if_alike
from demix.metrics.dci import DCI, dci
from demix.metrics.factors import Columns, check_factors
from demix.metrics.information import InfoMEC, infomec, modularity, mutual_information_gap
from demix.metrics.regression import affine_r2, isometry_error, mean_correlation, orthogonal_r2
from demix.metrics.score import Score

_ENOUGH = 20_000  # with more samples slow scores gain no digit that matters, and take minutes


@dataclass(frozen=True)
class _Entry:
    """One call, and the scores that it gives."""

    names: dict[str, str]  # the scores by name, and what tables call them
    call: Callable[..., Any]  # from latents and factors to a score, or to a tuple of them
    of: Literal["numbers", "categories", "factors"] = "factors"  # continuous, categories or both
    square: bool = False  # whether it needs as many latents as factors
    slow: bool = False  # whether it is given at most 20 000 samples

    def columns(self, categorical: np.ndarray) -> np.ndarray:
        """Return the columns of the factors that it is taken of."""
        return np.flatnonzero((categorical == (self.of == "categories")) | (self.of == "factors"))


_SPEARMAN = partial(mean_correlation, method="spearman")
ENTRIES = (
    _Entry({"affine_r2": "affine R²"}, affine_r2, "numbers"),
    _Entry({"orthogonal_r2": "orthogonal R²"}, orthogonal_r2, "numbers", square=True),
    _Entry({"mean_correlation": "MCC (Pearson)"}, mean_correlation, "numbers"),
    _Entry({"mean_correlation_spearman": "MCC (Spearman)"}, _SPEARMAN, "numbers"),
    _Entry({"isometry_error": "isometry error (L2)"}, isometry_error, "numbers"),
    _Entry(
        {"linear_accuracy": "linear accuracy"}, readout.linear_accuracy, "categories", slow=True
    ),
    _Entry({f"dci_{name}": f"DCI {name}" for name in DCI._fields}, dci, slow=True),
    _Entry({"mutual_information_gap": "MIG"}, mutual_information_gap, slow=True),
    _Entry({"separated_predictability": "SAP"}, readout.separated_predictability, slow=True),
    _Entry({"modularity": "modularity"}, modularity, slow=True),
    _Entry({"explicitness": "explicitness"}, readout.explicitness, slow=True),
    _Entry({f"infomec_{x}": f"Info{x.title()}" for x in InfoMEC._fields}, infomec, slow=True),
    _Entry({"beta_vae_score": "beta-VAE score"}, readout.beta_vae_score, slow=True),
    _Entry({"factor_vae_score": "FactorVAE score"}, readout.factor_vae_score, slow=True),
)
_ENTRY_OF = {name: entry for entry in ENTRIES for name in entry.names}

RECOVERY = tuple(name for entry in ENTRIES[:5] for name in entry.names)
"""Scores of continuous factors that take no time."""


def all_scores(
    latents: Any,
    factors: Any,
    *,
    categorical: Columns = None,
    only: Iterable[str] | None = None,
    callback: Callable[[int, int, str], None] | None = None,
    blocks: Blocks = None,
    seed: int = 0,
) -> dict[str, Score]:
    """Return every score that is defined for latents and factors, by name.

    Scores of numbers are taken of the continuous factors, linear accuracy of the categories, all
    others of both together; those that take long, of at most 20 000 samples. A
    :class:`DemixWarning` says if neighbouring rows are alike but ``blocks`` is None, and another
    one which scores cannot be trusted here.

    Parameters
    ----------
    latents : array (N, m)
        What an encoder recovered.
    factors : array (N, n)
        The true factors.
    categorical : sequence of int, optional
        Which factors are categories, counted from 0. By default those that hold text or truth
        values, or whole numbers of at most 20 different values.
    only : iterable of str, optional
        Names of the scores that are wanted.
    callback : callable, optional
        Called before each score with the number of finished calls, that of all, and the next name.
    blocks : None, int, "auto" or array (N,)
        Which rows are alike, as in :func:`demix.affine_r2`.
    seed : int
        Seed of the splits, of fits that draw, of the shuffled baselines and of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import all_scores
    >>> z = np.random.default_rng(0).uniform(size=(500, 2))
    >>> scores = all_scores(z[:, ::-1], z, only=["mean_correlation", "modularity"])
    >>> {name: float(round(score, 6)) for name, score in scores.items()}
    {'mean_correlation': 1.0, 'modularity': 1.0}
    """
    found, true, sampling = check_factors(latents, factors, categorical, blocks, seed)
    wanted = set(_ENTRY_OF if only is None else map(str, only if np.iterable(only) else [only]))
    if unknown := wanted - set(_ENTRY_OF):
        raise DemixError(f"Scores are {', '.join(_ENTRY_OF)}, but got {', '.join(unknown)}.")
    warn_if_alike(found, sampling)
    every = some = np.arange(len(found))
    if len(found) > _ENOUGH:
        some = np.random.default_rng([seed, 7]).permutation(len(found))[:_ENOUGH]
        some = some if blocks is None else np.sort(some)  # blocks need order in time
    calls = []
    for entry in ENTRIES:
        columns = entry.columns(true.categorical)
        fits = len(columns) > 0 and (not entry.square or len(columns) == found.shape[1])
        if fits and wanted & set(entry.names):
            calls.append((entry, columns))
    scores: dict[str, Score] = {}
    for done, (entry, columns) in enumerate(calls):
        if callback is not None:
            callback(done, len(calls), next(iter(entry.names.values())))
        rows = some if entry.slow else every
        given: dict[str, Any] = {"blocks": blocks_of(sampling, rows), "seed": seed}
        if entry.of != "numbers":
            given["categorical"] = np.flatnonzero(true.categorical[columns]).tolist()
        result = entry.call(found[rows], true.values[rows][:, columns], **given)
        named = zip(entry.names, result if len(entry.names) > 1 else [result], strict=True)
        scores |= {name: score for name, score in named if name in wanted}
    told = []
    for doubt in dict.fromkeys(score.doubts for score in scores.values() if score.doubts):
        names = [label(name) for name, score in scores.items() if score.doubts == doubt]
        told.append(f"{'all' if len(names) == len(scores) else ', '.join(names)} ({doubt})")
    if told:
        warn(f"Scores that cannot be trusted here: {'; '.join(told)}.")
    return scores


def scored_columns(name: str, categorical: Sequence[bool] | np.ndarray) -> np.ndarray:
    """Return the columns of the factors that a score is taken of."""
    return _ENTRY_OF[name].columns(np.asarray(categorical, dtype=bool))


def label(name: str) -> str:
    """Return what tables call a score."""
    return _ENTRY_OF[name].names[name]
