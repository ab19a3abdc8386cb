"""Theorem 1 of Reizinger et al. (2024), made executable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from demix._support.errors import DemixError
from demix.processes.clusters import affine_generator_rank, diversity_rank
from demix.spaces.base import Space
from demix.spaces.sphere import Sphere

Class = Literal["orthogonal", "scaled orthogonal", "linear", "none"]


@dataclass(frozen=True)
class Identified:
    """What the theorem promises for cross-entropy over a table of rows.

    Attributes
    ----------
    case : str
        ``"C1"`` to ``"C4"``: features unit or free, rows unit or free.
    latents : str
        The map from latents to features at the optimum: ``"orthogonal"``, ``"scaled orthogonal"``,
        ``"linear"`` or ``"none"``.
    rows : str
        The map from cluster vectors to rows: ``"orthogonal"``, ``"affine"`` or ``"none"``.
    reasons : tuple of str
        What is missing for more, in sentences.
    """

    case: Literal["C1", "C2", "C3", "C4"]
    latents: Class
    rows: Literal["orthogonal", "affine", "none"]
    reasons: tuple[str, ...] = ()


def cross_entropy_identifies(vectors: Tensor, space: Space, *, unit_rows: bool) -> Identified:
    """Say which case of Theorem 1 applies, and what is then identified.

    Parameters
    ----------
    vectors : Tensor (C, d)
        The cluster vectors of the process.
    space : Space
        The space of the encoder: features are unit on a sphere, else free.
    unit_rows : bool
        Whether the rows are kept on the unit sphere.

    Returns
    -------
    Identified
        With reasons where the assumptions do not hold.

    Examples
    --------
    >>> from demix import Real, Sphere, Uniform, cluster_vectors
    >>> from demix.theory.identification import cross_entropy_identifies
    >>> few = cluster_vectors(Uniform(Sphere(5)), 10, seed=0)
    >>> cross_entropy_identifies(few, Real(5), unit_rows=False).latents
    'linear'
    >>> cross_entropy_identifies(few[:5], Real(5), unit_rows=False).latents
    'none'
    """
    unit = isinstance(space, Sphere)
    case: Literal["C1", "C2", "C3", "C4"]
    case = ("C1" if unit_rows else "C2") if unit else ("C3" if unit_rows else "C4")
    count, d = vectors.shape
    rank = affine_generator_rank(vectors)
    if rank < d:
        return Identified(
            case,
            "none",
            "none",
            (
                f"The {count} cluster vectors span {rank} of {d} dimensions affinely, but Theorem "
                f"1 needs an affine generator system: at least {d + 1} in general position. "
                "Latents outside their span are lost.",
            ),
        )
    if unit:
        return Identified(case, "orthogonal", "orthogonal" if unit_rows else "affine")
    if not unit_rows:
        return Identified(case, "linear", "affine")
    found, needed = diversity_rank(vectors)
    if found == needed:
        return Identified(case, "scaled orthogonal", "orthogonal")
    weaker, asked = diversity_rank(vectors, sufficient=False)
    paper = "holds" if weaker == asked else "fails, too"
    return Identified(
        case,
        "linear",
        "affine",
        (
            f"The data are not diverse enough for more than a linear map: quadratic and linear "
            f"functions on the cluster vectors have rank {found} of {needed} (the paper's own "
            f"condition, rank {weaker} of {asked}, {paper}, but does not suffice).",
        ),
    )


def optimum_error(
    rows: Tensor, features: Tensor, vectors: Tensor, latents: Tensor, *, kappa: float
) -> float:
    r"""Return how far rows and features are from the identity that holds at the optimum.

    .. math:: \langle w_i - w_k, h(z) \rangle = \kappa \langle v_i - v_k, z \rangle

    for all :math:`i, k, z`, the inverse temperature being part of the features.

    Parameters
    ----------
    rows, vectors : Tensor (N, d)
        The learnt rows, and the cluster vector that each row stands for.
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
    >>> from demix.theory.identification import optimum_error
    >>> v, z = torch.eye(3), torch.randn(5, 3)
    >>> optimum_error(v + 1, 10 * z, v, z, kappa=10.0) < 1e-6
    True
    """
    if rows.shape != vectors.shape or features.shape != latents.shape:
        raise DemixError(
            "Rows need a cluster vector each and features a latent each, but got shapes "
            f"{tuple(rows.shape)}, {tuple(vectors.shape)}, {tuple(features.shape)} and "
            f"{tuple(latents.shape)}."
        )
    w, v = rows.detach().double(), vectors.detach().double()
    # All differences of rows vanish if and only if those from their mean do.
    found = features.detach().double() @ (w - w.mean(dim=0)).T
    expected = kappa * latents.detach().double() @ (v - v.mean(dim=0)).T
    return float((found - expected).norm() / expected.norm())
