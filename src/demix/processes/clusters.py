"""Cluster vectors: drawing them, and the rank conditions of Theorem 1 on them."""

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.distributions.base import Marginal

# Singular values below this share of the largest count as zero.
_TOLERANCE = 1e-6


def cluster_vectors(marginal: Marginal, count: int, *, seed: int, flat: bool = False) -> Tensor:
    """Draw ``count`` cluster vectors from a distribution on the sphere.

    The marginal is ``Uniform(sphere)``, or ``Normal(sphere, 1.0).at()`` and
    ``Laplace(sphere, 1.0).at()`` for vectors around a pole (Table 5 of Reizinger et al. 2024). The
    vectors ``(count, d)`` are an affine generator system if ``count > d``. With ``flat`` all of
    them lie in one hyperplane, so that Theorem 1 does not apply.

    Examples
    --------
    >>> from demix import Sphere, Uniform, cluster_vectors
    >>> from demix.processes.clusters import affine_generator_rank
    >>> marginal = Uniform(Sphere(3))
    >>> affine_generator_rank(cluster_vectors(marginal, 10, seed=0))
    3
    >>> affine_generator_rank(cluster_vectors(marginal, 10, seed=0, flat=True))
    2
    """
    space = marginal.space
    if count < 2:
        raise DemixError(f"There must be at least 2 clusters, but got {count!r}.")
    vectors = marginal.sample(count, generator=torch.Generator().manual_seed(seed))
    if flat:
        # One coordinate is the same for all, the others keep their direction.
        size = vectors.norm(dim=1, keepdim=True)
        height = size.mean() / (2 * space.dim**0.5)
        left = (size.square() - height**2).clamp_min(0).sqrt()
        rest = vectors[:, 1:]
        rest = rest / rest.norm(dim=1, keepdim=True) * left
        return torch.cat([height.expand(count, 1), rest], dim=1)
    rank = affine_generator_rank(vectors)
    if count > space.dim and rank < space.dim:
        raise DemixError(
            f"{count} vectors of {marginal!r} span only {rank} of {space.dim} dimensions "
            "affinely; take another seed."
        )
    return vectors


def affine_generator_rank(vectors: Tensor) -> int:
    r"""Return the dimension of the affine hull of cluster vectors ``(C, d)``.

    They are an affine generator system of :math:`R^d` (every vector is :math:`\sum_c a_c v_c` with
    :math:`\sum_c a_c = 1`) if and only if it is ``d``, which takes ``d + 1`` of them (Def. 1 of
    Reizinger et al. 2024).
    """
    v = _checked(vectors)
    return _rank(v - v.mean(dim=0))


def diversity_rank(vectors: Tensor, *, sufficient: bool = True) -> tuple[int, int]:
    r"""Return the rank of functions on the cluster vectors, and the rank that diversity needs.

    Case C3 of Theorem 1 (free features, unit rows) needs cluster vectors that determine a quadratic
    form. The paper asks that the rows :math:`[v \odot v, v]` have rank ``2 d``, which depends on
    the axes and does not suffice; all products :math:`v_i v_j` and all :math:`v_i` do, with rank
    ``d (d + 1) / 2 + d``. ``sufficient`` takes all products, or else the paper's squares alone. The
    vectors ``(C, d)`` are diverse if both numbers are equal.
    """
    v = _checked(vectors)
    d = v.shape[1]
    first, second = torch.triu_indices(d, d) if sufficient else torch.arange(d).repeat(2, 1)
    functions = torch.cat([v[:, first] * v[:, second], v], dim=1)
    return _rank(functions), functions.shape[1]


def _rank(matrix: Tensor) -> int:
    values = torch.linalg.svdvals(matrix)
    return int((values > _TOLERANCE * values[0].clamp_min(torch.finfo(matrix.dtype).tiny)).sum())


def _checked(vectors: Tensor) -> Tensor:
    if vectors.ndim != 2 or 0 in vectors.shape or not bool(vectors.isfinite().all()):
        raise DemixError(
            "Cluster vectors must be a finite matrix (clusters, dimensions), but got shape "
            f"{tuple(vectors.shape)}."
        )
    return vectors.detach().double()
