"""Checks of labels: those of a batch at every step, and all of them once before training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError, warn


def check_features(features: Tensor, dim: int, group: dist.ProcessGroup | None = None) -> None:
    """Raise an error unless features are ``(B, dim)``; a rank of a group may have none."""
    empty = group is None and len(features) == 0
    if features.ndim != 2 or features.shape[1] != dim or empty:
        raise DemixError(
            f"Features must be a matrix of at least one sample with {dim} latents each, as the "
            f"objective expects, but have shape {tuple(features.shape)}."
        )


def check_labels(labels: Tensor, samples: int, classes: int) -> Tensor:
    """Return the labels of a batch as int64 ``(samples,)``, all of them in ``0..classes - 1``."""
    if not torch.is_tensor(labels):
        raise DemixError(
            f"labels must be a tensor of {samples} whole numbers, one per sample, but got "
            f"{type(labels).__name__}; convert them with torch.as_tensor."
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise DemixError(
            f"labels must be whole numbers, one class per sample, but are {labels.dtype}; convert "
            "them with labels.long()."
        )
    if labels.shape != (samples,):
        raise DemixError(
            f"{samples} samples need {samples} labels, one each, but got labels of shape "
            f"{tuple(labels.shape)}."
        )
    if samples:
        _check_range(int(labels.min()), int(labels.max()), classes)
    return labels.long()


def check_classes(labels: Any, dim: int, *, classes: int | None = None) -> np.ndarray:
    """Check all labels of a data set once, before an encoder of ``dim`` latents is trained on them.

    Labels ``(N,)`` that no objective can use raise an error. A :class:`DemixWarning` says when a
    class has one sample only, and when there are too few classes for the latents to be identified.
    Every one of the ``classes`` must have a sample, unless their number is given. Returns how many
    samples each has, ``(classes,)``.

    Examples
    --------
    >>> from demix.losses.labels import check_classes
    >>> check_classes([0, 1, 2, 0, 1, 2, 2], 2).tolist()
    [2, 2, 3]
    """
    if dim < 1:
        raise DemixError(f"There must be at least 1 latent, but dim is {dim!r}.")
    present, counts = np.unique(_as_integers(labels), return_counts=True)
    first, last = int(present[0]), int(present[-1])
    if len(present) == 1:
        raise DemixError(
            f"Classification needs at least 2 classes to tell apart, but all {counts[0]} labels "
            f"are {first}."
        )
    if classes is not None:
        _check_range(first, last, classes)
    elif first != 0 or last != len(present) - 1:
        raise DemixError(
            f"labels must be numbered 0..{len(present) - 1} without gaps, but {len(present)} "
            f"different ones go from {first} to {last}; number them with "
            "numpy.unique(labels, return_inverse=True)[1], or say with `classes` how many there "
            "are."
        )
    every = np.zeros(classes or len(present), dtype=np.int64)
    every[present.astype(np.int64)] = counts
    warn_of_single(every)
    warn_of_few(len(present), dim)
    return every


def warn_of_single(counts: np.ndarray) -> None:
    """Warn of classes that have one sample, given the number of samples of each class."""
    single = np.flatnonzero(counts == 1)
    if len(single):
        warn(
            f"{len(single)} of {int((counts > 0).sum())} classes have a single sample and cannot "
            f"be held out, the first of them label {single[0]}; collect more of them or leave them "
            "out."
        )


def warn_of_few(
    count: int,
    dim: int,
    *,
    theorem: str = "Theorem 1 of Reizinger et al. (2024)",
    classes: str = "classes",
    latents: str = "latents",
) -> None:
    """Warn if there are too few classes, or what takes their place, for ``dim`` latents."""
    if count < dim + 1:
        warn(
            f"{theorem} needs an affine generator system, for {dim} {latents} at least {dim + 1} "
            f"{classes}, but there are {count}: only a {count - 1}-dimensional linear part of the "
            f"{latents} can be recovered. Take more {classes}, or recover at most {count - 1} of "
            f"the {latents}."
        )


def _check_range(first: int, last: int, classes: int) -> None:
    if first < 0 or last >= classes:
        raise DemixError(
            f"labels must name one of {classes} classes, 0..{classes - 1}, but go from {first} to "
            f"{last}; count them from 0, and give the objective as many classes as there are."
        )


def _as_integers(labels: Any) -> np.ndarray:
    """Return labels as an array ``(N,)`` of integers, N at least 1."""
    if torch.is_tensor(labels):
        labels = labels.detach().cpu()
        # NumPy has no bfloat16; floats are refused below, whichever they are.
        labels = (labels.double() if labels.is_floating_point() else labels).numpy()
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise DemixError(f"labels must be one whole number per sample, but {error}.") from error
    if array.ndim != 1 or len(array) == 0:
        raise DemixError(
            f"labels must be one whole number for each of at least one sample, but have shape "
            f"{array.shape}."
        )
    if array.dtype.kind not in "iu":
        raise DemixError(
            f"labels must be whole numbers, but are {array.dtype}; number them from 0 with "
            "numpy.unique(labels, return_inverse=True)[1]."
        )
    return array
