"""Learnt prototypes against the vectors of their clusters."""

from typing import Any

import numpy as np
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.validation import check_matrix
from demix.metrics.blocks import sampling_of
from demix.metrics.score import Meaning, Score, scored
from demix.metrics.statistic import Statistic, affine_prediction, mean_of, over, unit_columns
from demix.theory.setting import UP_TO

_FOLDS = 10


def prototypes_r2(prototypes: Any, vectors: Any, clusters: Any = None, *, seed: int = 0) -> Score:
    """Return the held-out :math:`R^2` of a linear regression from prototypes to cluster vectors.

    By Theorem 1 of Reizinger et al. (2024) the prototypes ``(N, m)`` of a classifier are an affine
    image of the cluster vectors ``(C, d)``. Those of one cluster coincide, so that a split over
    prototypes would score on vectors it was fitted on; here whole clusters are held out, in ten
    folds (with few clusters, one by one), and every vector is predicted by a regression on
    the prototypes of others. Invariant to invertible affine maps of the prototypes; for the
    baseline, vectors are shuffled over the clusters. By default prototype ``i`` is of cluster
    ``i``, else as ``clusters`` ``(N,)`` says, e.g. ``ClusterProcess.classes_of_labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers.reizinger2024.prototypes import prototypes_r2
    >>> v = np.random.default_rng(0).normal(size=(30, 3))
    >>> float(round(prototypes_r2(v @ [[1.0, 2, 0], [0, 1, 0], [1, 0, 1]] + 4, v), 6))
    1.0
    >>> bool(prototypes_r2(v, v).baseline < 0.2)
    True
    """
    rows, vectors = check_matrix(prototypes, "prototypes"), check_matrix(vectors, "vectors")
    members = np.arange(len(rows)) if clusters is None else np.asarray(clusters)
    if members.shape != (len(rows),) or members.dtype.kind not in "iu":
        raise DemixError(
            f"clusters must be {len(rows)} whole numbers, one per prototype, but got "
            f"{members.dtype} of shape {members.shape}."
        )
    if len(rows) == 0 or members.min() < 0 or members.max() >= len(vectors):
        raise DemixError(
            f"Each of {len(rows)} prototypes needs a cluster in 0..{len(vectors) - 1}, the "
            "numbers of the cluster vectors; give the cluster of each as `clusters`."
        )
    constant = np.flatnonzero(np.ptp(vectors, axis=0) == 0)
    if len(constant):
        raise DemixError(
            f"Cluster vectors must vary in every column, but column {constant[0]} (counted from 0) "
            "is constant; drop it."
        )
    present = np.unique(members)
    least = rows.shape[1] + 2
    if len(present) < least:
        raise DemixError(
            f"Holding clusters out of a regression from {rows.shape[1]} columns takes at least "
            f"{least} clusters, but there are {len(present)}."
        )
    # Few clusters are held out one by one, so that enough are left to fit on.
    parts = _FOLDS if len(present) - -(-len(present) // _FOLDS) >= least - 1 else len(present)
    parts = min(parts, len(present))
    random = np.random.default_rng(seed)
    part_of = np.zeros(len(vectors), dtype=int)
    part_of[random.permutation(present)] = np.arange(len(present)) % parts
    rows = unit_columns(rows)

    own = vectors[present]
    places = np.searchsorted(present, members)

    def measure(matched: np.ndarray) -> Statistic:
        target = matched[places]
        predicted = np.empty_like(target)
        for part in range(parts):
            held = part_of[members] == part
            predicted[held] = affine_prediction(rows[~held], target[~held], rows[held])
        centred = target - target.mean(axis=0)
        each = np.hstack([np.square(target - predicted), centred, np.square(centred)])
        # Prototypes of one cluster are not independent: clusters are drawn anew.
        size = np.bincount(members, minlength=len(vectors))[present]
        terms = np.zeros((len(vectors), each.shape[1]))
        np.add.at(terms, members, each)
        terms = terms[present]

        def r2(weights: np.ndarray) -> np.ndarray:
            total = (weights @ size)[:, None]
            missed, mean, square = np.split(weights @ terms / total, 3, axis=1)
            spread = square - np.square(mean)
            return np.where(spread > 0, 1 - over(missed, spread), 0.0)

        return Statistic(np.arange(len(present)), lambda weights: mean_of(r2(weights)))

    meaning = Meaning(
        f"the cluster vectors up to {UP_TO['affine']}",
        "which axis is which, and any mixing of them",
    )
    return scored(measure, own, meaning, sampling_of(own, own, None, seed))


def optimum_error(
    prototypes: Tensor, features: Tensor, vectors: Tensor, latents: Tensor, *, kappa: float
) -> float:
    r"""Return how far prototypes and features are from the identity that holds at the optimum.

    .. math:: \langle w_i - w_k, h(z) \rangle = \kappa \langle v_i - v_k, z \rangle

    for all :math:`i, k, z`, the inverse temperature being part of the features.

    Parameters
    ----------
    prototypes, vectors : Tensor (N, d)
        The learnt prototypes, and the cluster vector of each.
    features, latents : Tensor (M, d)
        The features of samples, and their true latents.
    kappa : float
        The concentration of the process.

    Returns
    -------
    float
        The root mean square of the difference of both sides over that of the right side; zero at
        the optimum.

    Examples
    --------
    >>> import torch
    >>> from demix.papers.reizinger2024.prototypes import optimum_error
    >>> v, z = torch.eye(3), torch.randn(5, 3)
    >>> optimum_error(v + 1, 10 * z, v, z, kappa=10.0) < 1e-6
    True
    """
    if prototypes.shape != vectors.shape or features.shape != latents.shape:
        raise DemixError(
            "Prototypes need a cluster vector each and features a latent each, but got shapes "
            f"{tuple(prototypes.shape)}, {tuple(vectors.shape)}, {tuple(features.shape)} and "
            f"{tuple(latents.shape)}."
        )
    w, v = prototypes.detach().double(), vectors.detach().double()
    # All differences of prototypes vanish if and only if those from their mean do.
    found = features.detach().double() @ (w - w.mean(dim=0)).T
    expected = kappa * latents.detach().double() @ (v - v.mean(dim=0)).T
    return float((found - expected).norm() / expected.norm())
