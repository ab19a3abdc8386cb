"""Consensus without truth: fit with several seeds, and keep what the runs agree on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from demix._support.errors import DemixError, DemixWarning
from demix._support.validation import check_seed
from demix.data.checks import check_data
from demix.data.data import Data, as_data
from demix.diagnostics.agreement.common import common_maps
from demix.diagnostics.agreement.group import chosen_group, group_of, widest
from demix.diagnostics.agreement.parts import Parts, pairs_within, row_parts, time_parts
from demix.diagnostics.agreement.result import Consensus, check_output, output, write_consensus
from demix.diagnostics.agreement.stability import mean_stability, stability
from demix.diagnostics.agreement.verdict import stable_dimensions, verdict
from demix.encoders.encoder import Encoder
from demix.estimators.base import Demixer
from demix.estimators.classifier import ClassifierDemixer
from demix.estimators.contrastive import ContrastiveDemixer, lags_of
from demix.estimators.encoding import encoded
from demix.training.loop import Record

Report = Callable[[int, int, int, Record], None]
"""``report(run, step, steps, record)`` after every step; runs are counted from 0."""


def consensus(
    estimator: Demixer,
    data: Any,
    n_seeds: int = 5,
    *,
    y: Any = None,
    positives: Any = None,
    held_out: float = 0.25,
    group: str | None = None,
    out: str | Path | np.ndarray | None = None,
    report: Report | None = None,
    checkpoint: str | Path | None = None,
) -> Consensus:
    """Fit an estimator with several seeds, and return the latents that the runs agree on.

    Runs of one estimator may differ by whatever its theorem leaves open: a rotation, order and
    signs, or an affine map. Part of the rows is kept from all runs. On one half of it each run is
    mapped to the others by a map of that group, and no more; on the other half it is measured how
    well each run predicts the consensus of the *others*. Dimensions that do not come back with
    another seed should not be interpreted.

    Agreement is no proof of truth: all runs may be wrong alike, and encoders agree on what
    dominates the data before they are trained (``untrained``). A consensus is called stable only if
    the runs have learnt something, too.

    Parameters
    ----------
    estimator : ContrastiveDemixer, ClassifierDemixer or InstanceDemixer
        It is cloned for each run and not changed itself.
    data : array-like (N, d), images (N, C, H, W), or Data
        The observations; they may be larger than memory.
    n_seeds : int
        How many runs, at least 2. Their seeds are ``random_state``, ``random_state + 1``, and so
        on; they draw weights, batches, and which of the other rows choose and judge the weights.
    y : array-like (N,), optional
        The class of each row, for :class:`ClassifierDemixer`.
    positives : array (P, 2) of int, or array like the data, optional
        As in :meth:`ContrastiveDemixer.fit`.
    held_out : float
        Share of the rows that no run is fitted to: the end of a series, if rows are in time order,
        else rows at random, with all that given pairs chain to them.
    group : str, optional
        ``"orthogonal"``, ``"signed permutation"`` or ``"affine"``, by default that of the theorem
        (:func:`demix.diagnostics.agreement.group_of`).
    out : path of an .npy file, or array (N, n) of float32, optional
        Where to put the latents.
    report : callable, optional
        ``report(run, step, steps, record)`` after every step, for progress bars.
    checkpoint : path, optional
        A folder to keep the training of each run in; what is there is not trained again.

    Returns
    -------
    Consensus
        Latents, stability of each dimension, and a verdict.

    Notes
    -----
    Latents are made block by block and agreement is measured on at most 40 000 rows, so that memory
    is that of a fit, and of the latents if they are not written to a file.

    References
    ----------
    Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process. Reizinger et
    al. (2024), Cross-Entropy Is All You Need To Invert the Data Generating Process.

    Examples
    --------
    A walk on a circle, seen through a nonlinear map:

    >>> import numpy as np
    >>> from demix import ContrastiveDemixer, Recipe, consensus
    >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 2000))
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    >>> demixer = ContrastiveDemixer(n_latents=2, recipe=Recipe(steps=100, batch=256))
    >>> found = consensus(demixer, x, n_seeds=2)
    >>> found.group.name, found.latents.shape, found.transform(x[:3]).shape
    ('orthogonal', (2000, 2), (3, 2))
    >>> found.stable.tolist()
    [True, True]
    """
    runs = _models(estimator, n_seeds)
    seeds = tuple(int(model.random_state) for model in runs)
    space = estimator._space()
    asked = None if group is None else chosen_group(group, space)
    rows = as_data(data)
    check_data(rows)
    parts, fit_data, beside = _divided(estimator, rows, y, positives, held_out, seeds[0])
    shape = (len(rows), space.dim)
    check_output(out, shape)
    folder = None if checkpoint is None else Path(checkpoint)
    for number, model in enumerate(runs):
        _fit(model, number, fit_data, beside, report, folder)
    common = asked or widest([group_of(model) for model in runs])
    align, judge = (rows.only(part) for part in (parts.align, parts.judge))
    encoders = [model.encoder_ for model in runs]
    to_align, to_judge = _encoded(encoders, align), _encoded(encoders, judge)
    maps = common_maps(to_align, common)
    found = stability(
        to_align, to_judge, parts.groups, common, in_time=parts.in_time, seed=seeds[0]
    )
    fresh = [_untrained(f, seed) for f, seed in zip(encoders, seeds, strict=True)]
    untrained = mean_stability(_encoded(fresh, align), _encoded(fresh, judge), common)
    with output(out, shape) as place:
        latents = write_consensus(runs, maps, common, rows, place)
    gains = [model.gain_ for model in runs]
    stable = stable_dimensions(found.low, found.null, gains)
    return Consensus(
        latents=latents,
        stability=found.values,
        low=found.low,
        high=found.high,
        null=found.null,
        untrained=untrained,
        per_run=found.per_run,
        stable=stable,
        verdict=verdict(stable, found.low, gains, common, untrained),
        group=common,
        seeds=seeds,
        models=tuple(runs),
        maps=tuple(maps),
        held_out=parts.judge.numpy(),
    )


def _models(estimator: Any, n_seeds: int) -> list[Demixer]:
    """Return an estimator for each run, or say what is wrong."""
    if not isinstance(estimator, Demixer):
        raise DemixError(
            "A consensus is made of ContrastiveDemixer, ClassifierDemixer or InstanceDemixer, but "
            f"got {type(estimator).__name__}."
        )
    whole = isinstance(n_seeds, int | np.integer) and not isinstance(n_seeds, bool)
    if not whole or n_seeds < 2:
        raise DemixError(
            f"Agreement takes at least 2 runs, but n_seeds is {n_seeds!r}; 5 is a good start."
        )
    first = check_seed(estimator._seed())
    check_seed(first + int(n_seeds) - 1)
    return [clone(estimator).set_params(random_state=first + run) for run in range(n_seeds)]


def _divided(
    estimator: Demixer, rows: Data, y: Any, positives: Any, share: float, seed: int
) -> tuple[Parts, Data, dict[str, Any]]:
    """Return the parts, and the data and what stands beside them that runs are fitted to."""
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise DemixError(f"held_out must be a share between 0 and 1, but got {share!r}.")
    if positives is not None and not isinstance(estimator, ContrastiveDemixer):
        raise DemixError(
            f"positives teach ContrastiveDemixer, but got {type(estimator).__name__}; leave them "
            "out."
        )
    # Enough to fit a map with an offset for each dimension, and some to spare.
    least, count = 5 * (estimator.n_latents + 1), len(rows)
    if isinstance(estimator, ClassifierDemixer):
        labels = _labels(y, count)
        parts = row_parts(count, share, least, seed, labels=labels)
        return parts, rows.only(parts.fit), {"y": labels[parts.fit.numpy()]}
    if positives is not None and isinstance(estimator, ContrastiveDemixer):
        every, pairs = estimator._targets(rows, reset=True, y=y, positives=positives)
        assert pairs is not None
        return _paired(count, every, pairs, share, least, seed)
    if isinstance(estimator, ContrastiveDemixer) and estimator.augmentation is None:
        parts = time_parts(count, share, lags_of(estimator.lag)[1], least)
    else:
        parts = row_parts(count, share, least, seed)
    return parts, rows.only(parts.fit), {}


def _paired(
    count: int, every: Data, pairs: torch.Tensor, share: float, least: int, seed: int
) -> tuple[Parts, Data, dict[str, Any]]:
    # A positive that was given for each row lies behind all rows, and goes where its row goes.
    inside = len(every) == count
    parts = row_parts(count, share, least, seed, pairs=pairs if inside else None)
    fit = parts.fit if inside else torch.cat([parts.fit, parts.fit + count])
    kept = pairs_within(pairs, fit, len(every))
    if len(kept) == 0:
        raise DemixError(
            f"Of {len(pairs)} pairs none lies within the rows that runs are fitted to; give more "
            "pairs, of more different rows."
        )
    return parts, every.only(fit), {"positives": kept}


def _labels(y: Any, rows: int) -> np.ndarray:
    if y is None:
        raise DemixError("ClassifierDemixer learns from classes, but y is None; pass y.")
    labels = np.asarray(y.detach().cpu() if torch.is_tensor(y) else y)
    if labels.shape != (rows,):
        raise DemixError(
            f"y must be one class for each of {rows} rows, but has shape {labels.shape}."
        )
    return labels


def _fit(
    model: Demixer,
    number: int,
    data: Data,
    beside: dict[str, Any],
    report: Report | None,
    folder: Path | None,
) -> None:
    def step(step: int, steps: int, record: Record) -> None:
        if report is not None:
            report(number, step, steps, record)

    file = None if folder is None else folder / f"seed-{model.random_state}.safetensors"
    with warnings.catch_warnings():
        if number:
            # All runs see the same data; what is odd about them was said at the first one, and
            # runs that learnt nothing are counted in the verdict.
            warnings.simplefilter("ignore", DemixWarning)
        model.fit(data, **beside, callback=step, checkpoint=file)


def _encoded(encoders: Sequence[Encoder], data: Data) -> list[np.ndarray]:
    """Return the latents ``(M, n)`` of each encoder, in float64."""
    blocks = [runs for _, runs in encoded(encoders, data)]
    return [np.concatenate(run).astype(np.float64) for run in zip(*blocks, strict=True)]


def _untrained(encoder: Encoder, seed: int) -> Encoder:
    """Return the encoder with the weights of another start, which nobody has trained."""
    device = next(encoder.parameters()).device
    return deepcopy(encoder).initialise(torch.Generator(device).manual_seed(seed))
