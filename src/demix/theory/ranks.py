"""The rank conditions of Theorem 1 of Reizinger et al. (2024) on the vectors of classes."""

import torch
from torch import Tensor

from demix._support.errors import DemixError

_TOLERANCE = 1e-6  # singular values below this share of the largest count as zero


def affine_generator_rank(vectors: Tensor) -> int:
    r"""Return the dimension of the affine hull of cluster vectors ``(C, d)``.

    They are an affine generator system of :math:`R^d` (every vector is :math:`\sum_c a_c v_c` with
    :math:`\sum_c a_c = 1`) if and only if it is ``d``, which takes ``d + 1`` of them (Def. 1 of
    Reizinger et al. 2024).
    """
    v = _checked(vectors)
    return _rank(v - v.mean(dim=0))


def diversity_rank(vectors: Tensor, *, sufficient: bool = True) -> tuple[int, int]:
    r"""Return the rank of functions on the vectors ``(C, d)``, and the rank that diversity needs.

    Case C3 of Theorem 1 (free features, unit rows) needs cluster vectors that determine a quadratic
    form. The paper asks that the rows :math:`[v \odot v, v]` have rank ``2 d``, which does not
    suffice; all products :math:`v_i v_j` with all :math:`v_i` (``sufficient``) do.
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
