"""The yardsticks: the loss and the paper's training step as they are written down.

Plain torch on purpose, and nothing here may become faster: everything else is measured in it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from demix.losses.similarities import SimilarityName
from demix.papers.runner.original import paper_encoder
from demix.papers.zimmermann2021.pairs import PairRow
from demix.processes.process import Process
from demix.spaces.kinds import space_named

# How many arrays of all pairs are alive at the peak of forward and backward, measured with
# `extra_memory` and rounded up.
_PAIR_ARRAYS = 3
_DIFFERENCE_ARRAYS = 5


def dense_contrast(
    queries: Tensor, keys: Tensor, similarity: SimilarityName, *, two_sided: bool = False
) -> Tensor:
    r"""Return Eq. 1 (dot product) or Eq. 6 (L^p) with all pairs in memory at once.

    .. math:: -\frac{1}{B} \sum_i \log \frac{e^{s(q_i, k_i)}}{\sum_j e^{s(q_i, k_j)}}

    Parameters
    ----------
    queries, keys : Tensor (B, d)
        Row ``i`` of one belongs to row ``i`` of the other.
    similarity : "dot" or float
        The dot product, by a ``B x B`` array, or ``p`` for ``-|q - k|_p^p``, by ``B x B x d``.
    two_sided : bool
        Average with the loss of telling each key's query, from the same array.

    Examples
    --------
    >>> import torch
    >>> from demix import contrast
    >>> from benchmarks.dense import dense_contrast
    >>> q, k = torch.randn(2, 8, 3, dtype=torch.float64)
    >>> torch.allclose(dense_contrast(q, k, 3), contrast(q, k, similarity=3))
    True
    """
    if similarity == "dot":
        logits = queries @ keys.T
    else:
        gaps = (queries[:, None, :] - keys[None, :, :]).abs()
        logits = -(gaps if similarity == 1 else gaps.pow(similarity)).sum(dim=2)
    own = torch.arange(len(queries))
    loss = functional.cross_entropy(logits, own)
    return (loss + functional.cross_entropy(logits.T, own)) / 2 if two_sided else loss


def dense_bytes(batch: int, dim: int, similarity: SimilarityName) -> int:
    """Return about how much memory forward and backward of :func:`dense_contrast` need."""
    if similarity == "dot":
        return 4 * _PAIR_ARRAYS * batch**2
    return 4 * _DIFFERENCE_ARRAYS * batch**2 * dim


def dense_step(row: PairRow, process: Process, batch: int) -> Callable[[], None]:
    """Return one step of the paper's training of ``row``, written out with the dense loss.

    Drawing the pairs, the paper's encoder in float32 on both sides of them, its loss, the
    gradient and Adam at 1e-4.
    """
    encoder = paper_encoder(process.mixing.dim_out, space_named(row.model_space, process.space.dim))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        pairs = process.sample(batch, generator=generator)
        loss = dense_contrast(encoder(pairs.x), encoder(pairs.x_tilde), row.similarity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
