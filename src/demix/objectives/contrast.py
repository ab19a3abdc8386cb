"""One function for the whole family: an exact log-softmax over all keys."""

from __future__ import annotations

import torch
from torch import Tensor

from demix.errors import DemixError
from demix.objectives.similarities import Kind, PairSimilarity, similarity_named
from demix.objectives.streaming import pairwise_logsumexp


def contrast(
    queries: Tensor,
    keys: Tensor,
    *,
    positives: Tensor | None = None,
    similarity: Kind = "dot",
    temperature: float | Tensor = 1.0,
    two_sided: bool = False,
    include_positive: bool = True,
) -> Tensor:
    r"""Return the mean cross-entropy of telling each query's key from all other keys.

    .. math:: -\frac{1}{B} \sum_i \log
              \frac{e^{s(q_i, k_{+(i)}) / \tau}}{\sum_j e^{s(q_i, k_j) / \tau}}

    With queries ``f(x~)`` and keys ``f(x)`` of a batch of pairs this is InfoNCE (Eq. 1 of
    Zimmermann et al. 2021, or Eq. 6 for a distance), the other pairs being the ``M = B - 1``
    negatives. The self-pair of a sample with itself does not occur. Memory is that of one tile,
    never ``B x K``.

    Parameters
    ----------
    queries : Tensor (B, d)
        One row per query.
    keys : Tensor (K, d)
        One row per key.
    positives : Tensor (B,) of int64, optional
        Index of each query's key; by default its own row.
    similarity : "dot" or float
        The dot product, or ``p`` for ``-|q - k|_p^p``.
    temperature : float or Tensor
        ``tau``; a tensor receives a gradient.
    two_sided : bool
        Average with the loss of telling each key's query from all other queries.
    include_positive : bool
        False leaves the positive out of the denominator, as in SimCLR.

    Returns
    -------
    Tensor ()
        The loss in nats.

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
    positives = _check_positives(queries, keys, positives)
    if not include_positive:
        _check_negatives(keys, positives, two_sided)
    queries, keys = tempered(queries, keys, pairs, temperature)
    matched = pairs.paired(queries, keys[positives])
    skip = None if include_positive else positives
    rows, columns = pairwise_logsumexp(queries, keys, pairs, skip=skip, columns=two_sided)
    loss = (rows - matched).mean()
    if columns is not None:
        loss = (loss + (columns[positives] - matched).mean()) / 2
    return loss


def log_likelihood(
    queries: Tensor, keys: Tensor, *, positives: Tensor | None = None, similarity: Kind = "dot"
) -> Tensor:
    r"""Return :math:`\log p(+(i) | q_i)` of each query under a softmax over all keys, ``(B,)``.

    Minus its mean is :func:`contrast` of one side.
    """
    pairs = similarity_named(similarity)
    positives = _check_positives(queries, keys, positives)
    queries, keys = full(queries), full(keys)
    rows, _ = pairwise_logsumexp(queries, keys, pairs)
    return pairs.paired(queries, keys[positives]) - rows


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
    return pairs.temper(full(queries), full(keys), temperature)


def full(x: Tensor) -> Tensor:
    """Return half-precision input as float32: log-sum-exp needs the digits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def check_rows(queries: Tensor, keys: Tensor) -> None:
    """Refuse anything but two matrices with rows of one width."""
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise DemixError(
            "queries and keys must be matrices with equally many columns, but got shapes "
            f"{tuple(queries.shape)} and {tuple(keys.shape)}."
        )
    if len(queries) == 0 or len(keys) == 0:
        raise DemixError("queries and keys must have at least one row each, but one has none.")


def _check_positives(queries: Tensor, keys: Tensor, positives: Tensor | None) -> Tensor:
    """Return the index of each query's key ``(B,)``, or refuse one that is none."""
    check_rows(queries, keys)
    if positives is None:
        if len(keys) < len(queries):
            raise DemixError(
                f"{len(queries)} queries need as many keys, but got {len(keys)}; "
                "or say with `positives` which key belongs to which query."
            )
        return torch.arange(len(queries), device=queries.device)
    whole = not positives.is_floating_point() and positives.dtype != torch.bool
    if positives.shape != (len(queries),) or not whole:
        raise DemixError(
            f"positives must be {len(queries)} whole numbers, one per query, but got "
            f"{positives.dtype} of shape {tuple(positives.shape)}."
        )
    if bool((positives < 0).any()) or bool((positives >= len(keys)).any()):
        raise DemixError(
            f"positives must lie in 0..{len(keys) - 1}, but go from {int(positives.min())} "
            f"to {int(positives.max())}."
        )
    return positives.long()


def _check_negatives(keys: Tensor, positives: Tensor, two_sided: bool) -> None:
    """Refuse denominators that are empty once the positive has left them."""
    if len(keys) == 1 or (two_sided and bool((positives == positives[0]).all())):
        raise DemixError(
            "include_positive=False needs a negative for every positive, but got "
            f"{len(positives)} queries and {len(keys)} keys that leave one without."
        )
