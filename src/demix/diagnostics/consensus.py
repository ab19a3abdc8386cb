"""Consensus without known factors: fit with several seeds, and keep what the runs agree on."""

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from demix._support.errors import DemixError, DemixWarning
from demix._support.validation import as_numpy, check_seed
from demix.data.checks import check_data
from demix.data.data import Data, as_data
from demix.data.rows import shares
from demix.diagnostics.consensus_result import Consensus, verdict, write_consensus
from demix.diagnostics.maps import common_maps, mean_stability, stability
from demix.diagnostics.parts import divided
from demix.encoders.encoder import Encoder
from demix.estimators.base import Demixer
from demix.estimators.encoding import encoded
from demix.theory.setting import Equivalence, identified, weakest
from demix.training.loop import Record

Callback = Callable[[int, int, int, Record], None]


def consensus(
    estimator: Demixer,
    data: Any,
    n_seeds: int = 5,
    *,
    y: Any = None,
    positives: Any = None,
    held_out: float = 0.25,
    equivalence: str | None = None,
    out: np.ndarray | None = None,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
) -> Consensus:
    """Fit an estimator with several seeds, and return the latents that the runs agree on.

    Runs of one estimator may differ by whatever its theorem leaves open: a rotation, order and
    signs, or an affine map. Part of the rows is held out from all runs. On one half of it each run
    is mapped to the others by a map of that class only; the other half measures how well each run
    predicts the consensus of the *others*. Dimensions that another seed does not reproduce should
    not be interpreted.

    Agreement does not prove truth: all runs may share an error, and encoders agree on what
    dominates the data before they are trained (``untrained``). A consensus is called stable only if
    the runs have learnt something, too. Memory is that of a fit and, without ``out``, of latents.

    Parameters
    ----------
    estimator : ContrastiveDemixer, ClassifierDemixer or InstanceDemixer
        It is cloned for each run and not changed itself.
    data : array-like (N, d), images (N, C, H, W), or Data
        The observations; they may be larger than memory.
    n_seeds : int
        How many runs, at least 2. Their seeds are ``random_state``, ``random_state + 1``, and so
        on; they draw weights, batches, and each run's own held-out rows.
    y, positives
        As in the estimator's ``fit``.
    held_out : float
        Share of the rows that no run is fitted to: the end of a series, if rows are in time order,
        else random rows, with all rows that given pairs connect to them.
    equivalence : str, optional
        ``"orthogonal"``, ``"permutation"``, ``"affine"`` or ``"linear"``; by default that of the
        theorem (:func:`demix.theory.setting.identified`), or affine where there is none.
    out : array (N, n) of float32, optional
        Where to put the latents, e.g. a memory map.
    callback : callable, optional
        ``callback(run, step, steps, record)`` after every step; runs are counted from 0.
    checkpoint : path, optional
        A folder to keep the training of each run in; a run that is there is not trained again.

    Examples
    --------
    A walk on a circle, seen through a nonlinear map:

    >>> import numpy as np
    >>> from demix import ContrastiveDemixer, Recipe, consensus
    >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 2000))
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    >>> demixer = ContrastiveDemixer(n_latents=2, recipe=Recipe(steps=100, batch=256))
    >>> found = consensus(demixer, x, n_seeds=2)
    >>> found.equivalence.name, found.latents.shape, found.transform(x[:3]).shape
    ('orthogonal', (2000, 2), (3, 2))
    >>> found.stable.tolist()
    [True, True]
    """
    runs = _models(estimator, n_seeds)
    seeds = tuple(int(model.random_state) for model in runs)
    space = estimator._space()
    if equivalence == "none":
        raise DemixError('An equivalence to align runs by is needed, but got "none".')
    sphere, chosen = equivalence == "orthogonal" and space.spherical, None
    if equivalence is not None:
        chosen = Equivalence(equivalence, sphere=sphere)  # type: ignore[arg-type]
    rows = as_data(data)
    check_data(rows)
    parts, fit_data, targets = divided(estimator, rows, y, positives, held_out, seeds[0])
    shape = (len(rows), space.dim)
    if out is None:
        out = np.empty(shape, dtype=np.float32)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != np.float32:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise DemixError(f"out must be an array of float32 of shape {shape}, but got {got}.")
    if not out.flags.writeable:
        raise DemixError("out must be an array to write to, but it is read-only; give another.")
    if any(shares(out, held) for x in (rows, data, y, positives) for held in _read_from(x)):
        raise DemixError("out must be an array of its own, but it holds the data or targets.")
    for number, model in enumerate(runs):
        if number:  # all runs assume what the first one has chosen
            seed = {"random_state": model.random_state}
            runs[number] = model = runs[0].settled().set_params(**seed)
        _fit(model, number, fit_data, targets, callback, checkpoint)
    allowed = chosen or weakest([identified(model.setting()) for model in runs])
    align, test = (rows.only(part) for part in (parts.align, parts.test))
    encoders = [model.encoder_ for model in runs]
    to_align, to_test = _encoded(encoders, align), _encoded(encoders, test)
    maps = common_maps(to_align, allowed)
    found = stability(
        to_align, to_test, parts.blocks, allowed, in_time=parts.in_time, seed=seeds[0]
    )
    fresh = [_untrained(f, seed) for f, seed in zip(encoders, seeds, strict=True)]
    untrained = mean_stability(_encoded(fresh, align), _encoded(fresh, test), allowed)
    latents = write_consensus(runs, maps, allowed, rows, out)
    stable, sentence = verdict(found, [model.gain_ for model in runs], allowed.words, untrained)
    return Consensus(
        **vars(found),
        latents=latents,
        untrained=untrained,
        stable=stable,
        verdict=sentence,
        equivalence=allowed,
        seeds=seeds,
        models=tuple(runs),
        maps=tuple(maps),
        held_out=parts.test.numpy(),
    )


def _read_from(x: Any) -> list[Any]:
    """Return the arrays, or the open file, that something given is read from."""
    if isinstance(x, Data):
        return [x.rows.held]
    if hasattr(x, "columns"):  # a frame, whose columns may lie in several arrays
        return [column.to_numpy() for _, column in x.items()]
    return [x.to_numpy() if hasattr(x, "to_numpy") else as_numpy(x, "rows")]


def _models(estimator: Any, n_seeds: int) -> list[Demixer]:
    """Return an estimator for each run."""
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


def _fit(
    model: Any,
    number: int,
    data: Data,
    targets: dict[str, Any],
    callback: Callback | None,
    folder: str | Path | None,
) -> None:
    def step(step: int, steps: int, record: Record) -> None:
        if callback is not None:
            callback(number, step, steps, record)

    file = None if folder is None else Path(folder) / f"seed-{model.random_state}.safetensors"
    with warnings.catch_warnings():
        if number:
            # All runs see the same data, whose oddities the first run reports; the verdict counts
            # runs that learnt nothing.
            warnings.simplefilter("ignore", DemixWarning)
        model.fit(data, **targets, callback=step, checkpoint=file)


def _encoded(encoders: Sequence[Encoder], data: Data) -> list[np.ndarray]:
    """Return the latents ``(M, n)`` of each encoder, in float64."""
    blocks = [runs for _, runs in encoded(encoders, data)]
    return [np.concatenate(run).astype(np.float64) for run in zip(*blocks, strict=True)]


def _untrained(encoder: Encoder, seed: int) -> Encoder:
    """Return a copy of the encoder with random weights."""
    device = next(encoder.parameters()).device
    return deepcopy(encoder).initialise(torch.Generator(device).manual_seed(seed))
