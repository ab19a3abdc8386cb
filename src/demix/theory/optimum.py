"""The optimum in closed form, and how far a trained model is from it."""

from __future__ import annotations

import math

from torch import Tensor

from demix._support.errors import DemixError
from demix.losses.contrast import contrast
from demix.losses.similarities import SimilarityName
from demix.processes.process import Pairs, Process


def is_matched(process: Process, similarity: SimilarityName) -> bool:
    """Return whether a process satisfies the theorems: uniform, with the similarity of the loss.

    Examples
    --------
    >>> from demix import Box, Laplace, LeakyMixing, Process, Uniform
    >>> from demix.theory.optimum import is_matched
    >>> box = Box(2)
    >>> process = Process(Uniform(box), Laplace(box, 0.1), LeakyMixing(2, seed=0, draws=10))
    >>> is_matched(process, 1), is_matched(process, 2)
    (True, False)
    """
    implied = process.conditional.similarity
    return process.marginal.uniform and implied.exact and implied.kind == similarity


def optimum_limit(process: Process) -> float:
    r"""Return the smallest value of :math:`\lim_M L(f; M) - \log M + \log |Z|` (Eqs. 3, 62).

    By Theorems 1 and 3 the limit is the cross-entropy between the true and the model conditional;
    for a matched model its minimum is the entropy of the conditional, averaged over latents.

    It is in nats; the process needs a uniform marginal and a conditional of known density.

    Examples
    --------
    >>> from demix import LeakyMixing, Process, Sphere, Uniform, VonMisesFisher
    >>> from demix.theory.optimum import optimum_limit
    >>> sphere = Sphere(10)
    >>> process = Process(
    ...     Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(10, seed=0, draws=100)
    ... )
    >>> round(optimum_limit(process), 4)
    0.7543
    """
    if not process.marginal.uniform:
        raise DemixError(
            f"Theorems 1 and 3 need a uniform marginal, but the process has {process.marginal!r}."
        )
    return process.conditional.mean_entropy()


def asymptotic_loss(process: Process, negatives: int) -> float:
    """Return the loss that :func:`optimum_limit` predicts for many ``negatives``.

    It lies below what can be reached once a pair carries more than ``log(negatives)`` nats; then
    compare with :func:`latent_loss`.

    Examples
    --------
    >>> from demix import LeakyMixing, Process, Sphere, Uniform, VonMisesFisher
    >>> from demix.theory.optimum import asymptotic_loss
    >>> sphere = Sphere(10)
    >>> process = Process(
    ...     Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(10, seed=0, draws=100)
    ... )
    >>> round(asymptotic_loss(process, 1023), 3)
    4.446
    """
    return optimum_limit(process) + math.log(negatives) - process.space.log_volume


def latent_loss(process: Process, pairs: Pairs, similarity: SimilarityName) -> Tensor:
    """Return the two-sided InfoNCE of the true latents at the true rate.

    For a matched process the log density ratio is the best critic for any number of negatives.
    On the sphere the true latents realise it exactly: no encoder does better on average. On a box
    positives are a little less frequent near the edge, which leaves an encoder a few thousandths
    of a nat per dimension to gain. The process must satisfy :func:`is_matched`.
    """
    if not is_matched(process, similarity):
        raise DemixError(f"No optimum is known for {process!r} with similarity {similarity!r}.")
    rate = process.conditional.similarity.rate
    return contrast(
        pairs.z, pairs.z_tilde, similarity=similarity, temperature=1 / rate, two_sided=True
    )


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
    >>> from demix.theory.optimum import optimum_error
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
