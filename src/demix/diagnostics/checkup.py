"""The check-up: every assumption of the theorem that a model relies on, on the user's own data."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from demix._support.errors import DemixError, DemixWarning
from demix._support.validation import as_numpy, check_matrix, check_seed
from demix.data.data import as_data
from demix.diagnostics import label_checks, model_checks
from demix.diagnostics.check import Check, Checkup, conclude, worst
from demix.diagnostics.pair_checks import pair_checks, positives_informative
from demix.diagnostics.paired import paired
from demix.diagnostics.parts import divided
from demix.estimators.assumptions import assumed_space, default_conditional, pair_objective
from demix.estimators.base import Demixer
from demix.estimators.sources import PARTS, Part, augmented, thin
from demix.metrics.regression import affine_r2
from demix.spaces.base import Space
from demix.theory.setting import Setting, identified, weakest

_MOST, _WALK = 4096, 2048  # held-out samples of each part; rows that show a series' marginal
_INSTANCES, _VIEWS = 32, 60  # instances that are told from each other, and views of each


def checkup(
    model: Any,
    data: Any,
    *,
    y: Any = None,
    positives: Any = None,
    refits: bool = True,
    seed: int = 0,
    callback: Callable[[str], None] | None = None,
) -> Checkup:
    """Check the assumptions that the latents of a fitted estimator rely on.

    Parameters
    ----------
    model : ContrastiveDemixer, ClassifierDemixer or InstanceDemixer
        Fitted.
    data : array-like, or Data
        The rows it was fitted to, of which the held-out ones are used, or new ones.
    y, positives
        As in the estimator's ``fit``.
    refits : bool
        Fit again to half of the rows, and to all with one latent fewer and more, for the checks of
        stability and of the dimension.
    seed : int
        Seed of the simulated nulls.
    callback : callable, optional
        ``callback(stage)`` before each stage, for progress bars.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import ContrastiveDemixer, checkup
    >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 1500))
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    >>> model = ContrastiveDemixer(n_latents=2).fit(x)
    >>> checkup(model, x, refits=False)["positives informative"].verdict
    'pass'
    """
    check_seed(seed)
    if not isinstance(model, Demixer):
        raise DemixError(
            f"A check-up takes a fitted estimator, but got {type(model).__name__}; for embeddings "
            "of another model use checkup_pairs."
        )
    callback = callback or (lambda stage: None)
    rows = as_data(data).matching(model._names)
    targets = {"y": y, "positives": positives}
    source: Any = model.source(rows, **targets)
    parts: tuple[Part, ...] = PARTS
    if source.data.digest() == model.digest_:
        parts = ("validation", "test")
    callback("held-out data")
    generator = torch.Generator().manual_seed(seed)
    held = [source.held_out(part, _MOST, generator=generator) for part in parts]
    x, seen = (torch.cat([batch[side] for batch, _ in held]) for side in (0, 1))
    blocks = torch.cat([own for _, own in held]).numpy()
    z = model_checks.latents_of(model.encoder_, x)
    # Validation data have chosen the weights, and would make them look too good.
    unseen = tuple(part for part in parts if part != "validation" or "train" in parts)
    gain = model.gain_
    if hasattr(model, "objective_"):
        gain = model._gain_of(source, unseen)
    checks = [model_checks.informative(model.targets, gain)]
    if model.supervision == "pairs":
        checks += _of_pairs(model, z, seen, blocks, source, seed)
    elif model.supervision == "labels":
        checks += _of_labels(model, z, seen.numpy(), source.labels.numpy())
    else:
        checks.append(model_checks.linear_views(x.flatten(1).numpy(), z))
        if hasattr(model, "objective_"):
            checks += _of_instances(model, source, generator)
    # Also of fitted rows: whatever latents are, they are a function of the observations.
    some = source.data.take(thin(torch.arange(len(source.data)), model_checks.ROWS))
    latents = model_checks.latents_of(model.encoder_, some)
    checks.append(model_checks.injectivity(some.flatten(1).numpy(), latents, model.encoder_.space))
    if refits:

        def fit(demixer: Demixer, some: bool) -> Demixer:
            given, own = rows, targets
            if some:
                _, given, own = divided(demixer, rows, y, positives, 0.5, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DemixWarning)
                return demixer.fit(given, **own)

        half, fewer, more = model_checks.refit(model, fit, callback)
        equivalence = weakest([identified(model.setting())]).name
        checks += model_checks.dimension(model, fewer, more, source)
        checks.append(model_checks.stability(model, half, x, equivalence))
    grade = {"information": gain.bits, "ceiling": gain.ceiling}  # known without a theorem, too
    flat = x.flatten(1).double().numpy()
    if flat.shape[1] < len(flat) / 4:
        grade["linear"] = float(affine_r2(flat, z))
    grade |= {c.name: float(c.details["score"]) for c in checks if "score" in c.details}
    return conclude(checks, model.setting(), grade)


def checkup_pairs(
    z: Any,
    z_tilde: Any,
    *,
    space: str | Space = "sphere",
    conditional: str | float | None = None,
    x: Any = None,
    seed: int = 0,
) -> Checkup:
    """Check paired embeddings ``(M, n)`` of a representation that was trained elsewhere.

    Parameters
    ----------
    z, z_tilde : array-like (M, n)
        Embeddings of positives, held out from their training.
    space, conditional
        What is assumed, as in :class:`ContrastiveDemixer`. Embeddings are normalised for a sphere;
        for a box their range is taken.
    x : array-like (M, d), optional
        The observations of ``z``, to see whether distinct ones are kept apart.
    seed : int
        Seed of the simulated nulls.

    Examples
    --------
    >>> import torch
    >>> from demix import Sphere, VonMisesFisher, checkup_pairs
    >>> torch.manual_seed(0) and None
    >>> z = Sphere(3).uniform(2000)
    >>> found = checkup_pairs(z, VonMisesFisher(Sphere(3), 20.0).sample(z))
    >>> found.supported, found["shape"].verdict
    ('orthogonal', 'pass')
    """
    first, second = (check_matrix(side, "embeddings") for side in (z, z_tilde))
    if first.shape != second.shape:
        raise DemixError(
            f"Paired embeddings must be two arrays (M, n), not {first.shape} and {second.shape}."
        )
    assumed = assumed_space(space, first.shape[1])
    conditional = default_conditional(assumed) if conditional is None else conditional
    pair_objective(conditional, assumed)  # refuses what does not fit together
    setting = Setting("pairs", assumed, conditional)
    pairs = paired(first, second, assumed, p=setting.shape or 2.0)
    random = np.random.default_rng(check_seed(seed))
    checks = [positives_informative(pairs), *pair_checks(pairs, random)]
    if x is not None:
        flat = np.asarray(as_numpy(x, "observations")).reshape(len(first), -1)
        checks.append(model_checks.injectivity(flat, pairs.z.numpy(), assumed))
    return conclude(checks, setting, {})


def _of_pairs(
    model: Any, z: np.ndarray, x_tilde: torch.Tensor, blocks: np.ndarray, source: Any, seed: int
) -> list[Check]:
    setting = model.setting()
    free = setting.conditional == "dynamics"  # as to the covariance of the noise
    scales = model.scales_ if setting.learned else 1.0
    z_tilde = model_checks.latents_of(model.encoder_, x_tilde)
    if free:
        z, z_tilde = _in_units_of_noise(z @ model.dynamics_.T.astype(z.dtype), z_tilde)
    lags, walk = source.lags(), None
    if lags is not None:
        rows = source.data.take(thin(torch.arange(len(source.data)), _WALK))
        walk = model_checks.latents_of(model.encoder_, rows) / scales
    parts, start = [], 0
    for space in model.encoder_.space.parts:
        own = slice(start, start := start + space.dim)
        pairs = paired(
            (z / scales)[:, own],
            (z_tilde / scales)[:, own],
            space,
            trained=True,
            p=setting.shape or 2.0,
            blocks=blocks,
            walk=None if walk is None else walk[:, own],
            lags=lags or (1, 1),
        )
        pairs = replace(pairs, uniform=setting.marginal == "uniform", isotropic=not free)
        parts.append(pair_checks(pairs, np.random.default_rng(seed)))
    checks = parts[0]
    if len(parts) > 1:
        checks = [worst(found) for found in zip(*parts, strict=True)]
    if lags is None or len(source.data) <= model_checks.LAGS:
        return checks
    first = thin(torch.arange(len(source.data) - model_checks.LAGS), _WALK)
    steps = range(1 + model_checks.LAGS)
    after = [model_checks.latents_of(model.encoder_, source.data.take(first + k)) for k in steps]
    return [*checks, model_checks.observation_noise(np.stack(after, axis=1))]


def _in_units_of_noise(z: np.ndarray, z_tilde: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both ``(M, n)`` so that their difference is centred and alike in all directions."""
    noise = z_tilde - z
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(noise.T)))
    units = vectors / np.sqrt(2 * values.clip(1e-12 * values.max() + 1e-30))
    return (z + noise.mean(axis=0)) @ units, z_tilde @ units


def _of_instances(model: Any, source: Any, generator: torch.Generator) -> list[Check]:
    prototypes = model.objective_.prototypes().detach().cpu().double().numpy()
    # Some rows in many views: among them the row of a view must be log-linear in its latents, too.
    rows = thin(torch.arange(len(source.data)), _INSTANCES)
    own = torch.arange(len(rows)).repeat_interleave(_VIEWS)
    views = augmented(source.data.take(rows[own]), source.augmentation, generator)
    z = model_checks.latents_of(model.encoder_, views)
    return [
        *label_checks.prototype_checks(prototypes, identified(model.setting()).case),
        label_checks.log_linear(z @ prototypes[rows].T, z, own.numpy()),
    ]


def _of_labels(model: Any, z: np.ndarray, held: np.ndarray, every: np.ndarray) -> list[Check]:
    @torch.no_grad()
    def logits(z: np.ndarray) -> np.ndarray:
        return model.objective_.logits(torch.from_numpy(z).float()).double().numpy()

    case = identified(model.setting()).case
    return [
        *label_checks.prototype_checks(model.prototypes_.astype(np.float64), case),
        label_checks.log_linear(logits(z), z, held, 1 + model.objective_.quadratic),
        label_checks.overlap(logits, z, len(every), sphere=model.encoder_.space.spherical),
        label_checks.balance(every, len(model.classes_)),
        label_checks.label_noise(logits(z), held),
    ]
