"""One function for the whole family: an exact log-softmax over all keys."""

import torch
from torch import Tensor
from torch import distributed as dist

from demix._support.errors import DemixError
from demix._support.process_group.sharding import Sharding, shardings
from demix.losses.similarities import PairSimilarity, SimilarityName, similarity_named
from demix.losses.streaming import sharded_logsumexp


def contrast(
    queries: Tensor,
    keys: Tensor,
    *,
    positives: Tensor | None = None,
    similarity: SimilarityName = "dot",
    temperature: float | Tensor = 1.0,
    two_sided: bool = False,
    potential: tuple[Tensor, Tensor] | None = None,
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    r"""Return the mean cross-entropy, in nats, of telling each query's key from all other keys.

    .. math:: -\frac{1}{B} \sum_i \log
              \frac{e^{s(q_i, k_{+(i)}) / \tau}}{\sum_j e^{s(q_i, k_j) / \tau}}

    With queries ``f(x~)`` and keys ``f(x)`` of a batch of pairs this is InfoNCE (Eq. 1 of
    Zimmermann et al. 2021, or Eq. 6 for a distance), the other pairs being the ``M = B - 1``
    negatives. The self-pair of a sample with itself does not occur. Memory is that of one tile,
    never ``B x K``.

    With a ``group`` of `torch.distributed`, every query is contrasted with the keys of all ranks.
    The loss on rank :math:`r` of :math:`R` is the mean over its own queries, weighted by
    :math:`R B_r / \sum_s B_s`, so that the average over ranks, of losses and of gradients, is that
    of one process with all queries and keys. Every rank has to take part, even without a row.

    Parameters
    ----------
    queries, keys : Tensor (B, d), (K, d)
        One row per query or key.
    positives : Tensor (B,) of int64, optional
        Index of each query's key; by default its own row. With a ``group`` keys are counted over
        all ranks, in their order; the row is that of the query's own rank.
    similarity : "dot" or float
        The dot product, or ``p`` for ``-|q - k|_p^p``.
    temperature : float or Tensor
        ``tau``; a tensor receives a gradient.
    two_sided : bool
        Average with the loss of telling each key's query from all other queries.
    potential : pair of Tensors (B,) and (K,), optional
        A number for each query and each key that is added to all of its :math:`s / \tau`. Those of
        queries cancel unless ``two_sided``. A learnt potential takes up the density of the keys, so
        that nothing is assumed of the marginal.
    group : ProcessGroup, optional
        The ranks that queries and keys lie on; by default this process alone.

    Examples
    --------
    >>> import torch
    >>> from demix import contrast
    >>> z = torch.eye(3)
    >>> contrast(z, z, temperature=0.1).item() < 1e-3
    True
    >>> contrast(z, z, similarity=1, two_sided=True) < contrast(z, z.flip(0), similarity=1)
    tensor(True)
    """
    pairs = similarity_named(similarity)
    check_rows(queries, keys, group)
    own, every = shardings(group, queries, keys)
    which = _checked(queries, own, every, positives)
    queries, keys = tempered(queries, keys, pairs, temperature)
    if potential is not None:
        queries, keys = with_potential(queries, keys, pairs, potential, own, every)

    def matching(x: Tensor) -> Tensor:
        """Return the row of ``x`` that belongs to each query's key."""
        return x[: len(queries)] if positives is None else every.gathered(x)[which]

    matched = pairs.paired(queries, matching(keys))
    rows, columns = sharded_logsumexp(queries, keys, pairs, every, columns=two_sided)
    loss = own.mean(rows - matched)
    if columns is not None:
        loss = (loss + own.mean(matching(columns) - matched)) / 2
    return loss


@torch.no_grad()
def log_probabilities(
    queries: Tensor,
    keys: Tensor,
    similarity: SimilarityName = "dot",
    temperature: float = 1.0,
    potential: Tensor | None = None,
) -> Tensor:
    """Return the log-probability ``(B, K)`` of each key, with its potential, for each query."""
    pairs = similarity_named(similarity)
    check_rows(queries, keys)
    tile = pairs.tile(*tempered(queries, keys, pairs, temperature))
    return (tile if potential is None else tile + potential).log_softmax(dim=1)


def with_potential(
    queries: Tensor,
    keys: Tensor,
    pairs: PairSimilarity,
    potential: tuple[Tensor, Tensor],
    own: Sharding,
    every: Sharding,
) -> tuple[Tensor, Tensor]:
    """Return both with two more coordinates, which add the potential of each query and key."""
    # So the same code sums over pairs, whatever the similarity, at the cost of two more latents.
    sides = []
    for values, rows, ranks in zip(potential, (queries, keys), (own, every), strict=True):
        if values.shape != (len(rows),):
            raise DemixError(
                f"A potential must be one number for each of {len(rows)} rows, but has shape "
                f"{tuple(values.shape)}."
            )
        values = values.to(rows)
        sides.append(pairs.coordinates(values, ranks.gathered(values.detach()).max()))
    (of_queries, for_queries), (of_keys, for_keys) = sides
    return (
        torch.column_stack([queries, of_queries, torch.full_like(of_queries, for_keys)]),
        torch.column_stack([keys, torch.full_like(of_keys, for_queries), of_keys]),
    )


def tempered(
    queries: Tensor, keys: Tensor, pairs: PairSimilarity, temperature: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Scale both so that their similarity is divided by a checked temperature."""
    if torch.is_tensor(temperature) and temperature.numel() != 1:
        raise DemixError(
            f"temperature must be one number, but got a tensor of shape {tuple(temperature.shape)}."
        )
    value = temperature.item() if torch.is_tensor(temperature) else temperature
    if not 0 < value < float("inf"):
        raise DemixError(f"temperature must be positive and finite, but got {value!r}.")
    factor = temperature ** (-1 / pairs.degree)
    return full(queries) * factor, full(keys) * factor


def full(x: Tensor) -> Tensor:
    """Return half-precision input as float32: log-sum-exp needs the digits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def check_rows(queries: Tensor, keys: Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Raise an error unless both are matrices of one width; a rank of a group may have no row."""
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise DemixError(
            "queries and keys must be matrices with equally many columns, but got shapes "
            f"{tuple(queries.shape)} and {tuple(keys.shape)}."
        )
    if group is None:
        _check_not_empty(len(queries), len(keys))


def _check_not_empty(*counts: int) -> None:
    if 0 in counts:
        raise DemixError("queries and keys must have at least one row each, but one has none.")


def _checked(queries: Tensor, own: Sharding, every: Sharding, positives: Tensor | None) -> Tensor:
    """Return the checked index of each query's key ``(B,)`` among all."""
    _check_not_empty(own.total, every.total)
    if positives is None:
        if every.sizes[every.rank] < len(queries):
            raise DemixError(
                f"{len(queries)} queries need as many keys, but got {every.sizes[every.rank]}; "
                "or say with `positives` which key belongs to which query."
            )
        return every.own.start + torch.arange(len(queries), device=queries.device)
    whole = not positives.is_floating_point() and positives.dtype != torch.bool
    if positives.shape != (len(queries),) or not whole:
        raise DemixError(
            f"positives must be {len(queries)} whole numbers, one per query, but got "
            f"{positives.dtype} of shape {tuple(positives.shape)}."
        )
    if bool(((positives < 0) | (positives >= every.total)).any()):
        first, last = int(positives.min()), int(positives.max())
        raise DemixError(f"positives must lie in 0..{every.total - 1}, but are {first}..{last}.")
    return positives.long()
