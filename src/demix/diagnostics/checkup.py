"""The check-up: every assumption of the theorem that a model relies on, on the user's own data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from demix._support.errors import DemixError, DemixWarning
from demix._support.validation import check_matrix, check_seed
from demix.data.data import as_data
from demix.diagnostics.check import Check, judge
from demix.diagnostics.checkup_result import Checkup, conclude
from demix.diagnostics.label_checks import balance, label_noise, row_checks
from demix.diagnostics.model_checks import (
    Refits,
    dimension,
    injectivity,
    latents_of,
    refit,
    stability,
)
from demix.diagnostics.pair_checks import pair_checks
from demix.diagnostics.paired import Paired, paired
from demix.estimators.assumptions import assumed_space, default_conditional, pair_objective
from demix.estimators.base import Demixer
from demix.estimators.fitting import held_out_likelihoods
from demix.estimators.gain import Gain, held_out_gain
from demix.estimators.sources import PARTS, Part
from demix.spaces.base import Space
from demix.theory.setting import Setting, Supervision, identified, weakest

# Held-out samples that are looked at.
_MOST = 4096

Say = Callable[[str], None]


def checkup(
    model: Any,
    data: Any,
    *,
    y: Any = None,
    positives: Any = None,
    refits: bool = True,
    seed: int = 0,
    say: Say | None = None,
) -> Checkup:
    """Check the assumptions that the latents of a fitted estimator rely on.

    Parameters
    ----------
    model : ContrastiveDemixer, ClassifierDemixer or InstanceDemixer
        Fitted.
    data : array-like, or Data
        The rows it was fitted to, of which the held-out ones are looked at, or new ones.
    y, positives
        As in the estimator's ``fit``.
    refits : bool
        Fit again, with another seed and with one latent fewer and more; otherwise the checks of
        stability and of the dimension are left out.
    seed : int
        Seed of the simulated nulls.
    say : callable, optional
        Told what comes next.

    Returns
    -------
    Checkup
        With ``supported``, the equivalence class that nothing contradicts.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import ContrastiveDemixer, checkup
    >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 4000))
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    >>> model = ContrastiveDemixer(n_latents=2).fit(x)
    >>> checkup(model, x, refits=False)["positives informative"].verdict
    'pass'
    """
    check_seed(seed)
    say = say or (lambda what: None)
    if not isinstance(model, Demixer):
        raise DemixError(
            f"A check-up takes a fitted estimator, but got {type(model).__name__}; for embeddings "
            "of another model use checkup_pairs."
        )
    rows = as_data(data).matching(model._names)
    targets = {"y": y, "positives": positives}
    source = model.source(rows, **targets)
    parts: tuple[Part, ...] = PARTS
    if source.data.digest() == model.digest_:
        parts = ("validation", "test")
    setting = model.setting()
    say("held-out data")
    x, checks = _looked_at(model, source, parts, seed)
    if refits:
        checks += _refitted(model, rows, targets, source, x, setting, say)
    return conclude(checks, setting)


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
            f"Paired embeddings must be two arrays (M, n), but got {first.shape} and "
            f"{second.shape}."
        )
    assumed = assumed_space(space, first.shape[1])
    conditional = default_conditional(assumed) if conditional is None else conditional
    objective = pair_objective(conditional, assumed)
    pairs = paired(first, second, assumed, p=objective.shape)
    random = np.random.default_rng(check_seed(seed))
    checks = [_told_apart(pairs, random), *pair_checks(pairs, random)]
    if x is not None:
        checks.append(injectivity(np.asarray(x).reshape(len(first), -1), pairs.z))
    return conclude(checks, Setting("pairs", assumed, conditional))


def _looked_at(
    model: Any, source: Any, parts: tuple[Part, ...], seed: int
) -> tuple[torch.Tensor, list[Check]]:
    """Return held-out rows, and the checks that need no other fit."""
    generator = torch.Generator().manual_seed(seed)
    held = [source.held_out(part, _MOST, generator=generator) for part in parts]
    x = torch.cat([batch.x for batch, _ in held])
    random = np.random.default_rng(seed)
    z = latents_of(model.encoder_, x)
    # What chose the weights would be told too well.
    unseen = tuple(part for part in parts if part != "validation" or "train" in parts)
    checks = [_informative(model, source, unseen)]
    checks += _CHECKS[model.supervision](model, source, held, z, random)
    checks.append(injectivity(x.flatten(1).numpy(), z))
    return x, checks


def _checks_of_pairs(
    model: Any, source: Any, held: list[Any], z: np.ndarray, random: np.random.Generator
) -> list[Check]:
    learned = model.setting().learned
    scales = model.scales_.astype(np.float64) if learned else np.ones(z.shape[1])
    z_tilde = latents_of(model.encoder_, torch.cat([batch.x_tilde for batch, _ in held]))
    pairs = paired(
        z / scales,
        z_tilde / scales,
        model.encoder_.space,
        trained=True,
        p=model.objective_.shape,
        chains=torch.cat([blocks for _, blocks in held]).numpy(),
    )
    return pair_checks(pairs, random)


def _checks_of_labels(
    model: Any, source: Any, held: list[Any], z: np.ndarray, random: np.random.Generator
) -> list[Check]:
    labels = torch.cat([batch.labels for batch, _ in held]).numpy()
    with torch.no_grad():
        logits = model.objective_.logits(torch.from_numpy(z).float()).double().numpy()
    return [
        *row_checks(model.prototypes_.astype(np.float64)),
        balance(source.labels.numpy(), len(model.classes_)),
        label_noise(logits, labels),
    ]


def _checks_of_instances(
    model: Any, source: Any, held: list[Any], z: np.ndarray, random: np.random.Generator
) -> list[Check]:
    return row_checks(z)


_CHECKS: dict[Supervision, Callable[..., list[Check]]] = {
    "pairs": _checks_of_pairs,
    "labels": _checks_of_labels,
    "instances": _checks_of_instances,
}


def _refitted(
    model: Any,
    rows: Any,
    targets: dict[str, Any],
    source: Any,
    x: torch.Tensor,
    setting: Setting,
    say: Say,
) -> list[Check]:
    def fit(demixer: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DemixWarning)
            return demixer.fit(rows, **targets)

    others: Refits = refit(model, fit, say)
    equivalence = weakest([identified(setting)]).name
    return [*dimension(others, source), stability(others, x, equivalence)]


def _informative(model: Any, source: Any, parts: tuple[Part, ...]) -> Check:
    """Compare held-out positives or labels with permuted ones."""
    gain: Gain = model.gain_
    if hasattr(model, "objective_"):
        told = held_out_likelihoods(
            model.encoder_, model.objective_, source, model._batch(), parts=parts
        )
        gain = held_out_gain(*told)
    return _gained(f"{model.targets} informative", model.targets, gain)


def _told_apart(pairs: Paired, random: np.random.Generator) -> Check:
    """Compare positives with those of others, under the fitted law."""
    law = pairs.law.fitted(pairs.z, pairs.z_tilde, shape=False)
    order = random.permutation(len(pairs.z))
    sizes = [
        law.sizes(pairs.z, other).mean(axis=1) for other in (pairs.z_tilde, pairs.z_tilde[order])
    ]
    gain = held_out_gain(
        torch.from_numpy(-sizes[0]), torch.from_numpy(-sizes[1]), torch.from_numpy(pairs.chains)
    )
    return _gained("positives informative", "positives", gain)


def _gained(name: str, targets: str, gain: Gain) -> Check:
    found = f"Held-out {targets} are told by {gain} better than permuted ones"
    return judge(
        name,
        -gain.low,
        np.empty(0),
        margin=0.0,
        unit="bits below zero, at the low end of the interval",
        good=f"{found}.",
        bad=f"{found}: there is nothing that {targets} tell.",
        details=gain.to_dict(),
    )
