"""Cross-entropy over a table of rows: one row per class, or per instance (DIET)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from demix.encoders import Encoder
from demix.errors import DemixError
from demix.objectives.contrast import log_likelihood
from demix.objectives.labels import check_features, check_labels
from demix.processes import Labelled
from demix.validation import check_share


class Classification(nn.Module):
    r"""Plain classification, whose rows :math:`w_c` take the place of the keys of a batch.

    .. math:: E\left[-\log \frac{e^{\langle w_c, f(x) \rangle + b_c}}
              {\sum_k e^{\langle w_k, f(x) \rangle + b_k}}\right]

    By Theorem 1 of Reizinger et al. (2024), with classes as instances, :math:`f` recovers the
    latents of a :class:`demix.ClusterProcess`. The space of the encoder and ``unit_rows`` choose
    the case: on a sphere, whose learnt radius is the inverse temperature, C1 (unit rows) or C2; in
    :math:`R^d`, C3 (unit rows) or C4.

    Parameters
    ----------
    classes : int
        Number of rows.
    dim : int
        Number of latents.
    unit_rows : bool
        Keep the rows on the unit sphere.
    bias : bool
        Learn :math:`b_c`; it absorbs the frequencies of unbalanced classes.
    prior : Tensor (classes,), optional
        Known frequencies of the classes: their logarithms are added to the logits, so that the
        features need not bend to explain them.
    noise : float
        Known share of labels that were replaced by one drawn uniformly from all. The loss compares
        labels with :math:`(1 - e) p + e / N` (forward correction), whose optimum is the clean one.
    smoothing : float
        Share of every target that is spread over all classes. It bends the features as noise does
        and has no correction: to keep them straight do not smooth, or draw that share of the labels
        uniformly and say so with ``noise``: the mean target is the same.

    Attributes
    ----------
    rows : Parameter (classes, dim)
        The table, before it is brought to unit length.

    Examples
    --------
    >>> from demix import Classification
    >>> Classification(10, 5, bias=True).bias.shape
    torch.Size([10])
    """

    log_prior: Tensor | None

    def __init__(
        self,
        classes: int,
        dim: int,
        *,
        unit_rows: bool = False,
        bias: bool = False,
        prior: Tensor | None = None,
        noise: float = 0.0,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if classes < 2 or dim < 1:
            raise DemixError(
                f"A table needs at least 2 rows of 1 dimension, but got {classes} of {dim}."
            )
        for name, share in (("noise", noise), ("smoothing", smoothing)):
            check_share(share, name)
        if noise and smoothing:
            raise DemixError(
                "noise corrects labels that were drawn at random, not targets that smoothing "
                f"spreads, but got noise={noise} and smoothing={smoothing}; choose one of them."
            )
        self.unit_rows, self.noise, self.smoothing = unit_rows, noise, smoothing
        self.rows = nn.Parameter(torch.randn(classes, dim) / math.sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(classes)) if bias else None
        self.register_buffer("log_prior", _log_prior(prior, classes))

    def table(self) -> Tensor:
        """Return the rows as the loss sees them, ``(classes, dim)``."""
        return functional.normalize(self.rows, dim=1) if self.unit_rows else self.rows

    def forward(self, encoder: Encoder, batch: Labelled) -> Tensor:
        """Return the loss ``()`` of a labelled batch."""
        return self.loss(encoder(batch.x), batch.labels)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``()`` of features ``(B, dim)`` that are already there."""
        check_features(features, self.rows.shape[1])
        labels = check_labels(labels, len(features), len(self.rows))
        rows, offsets = self.table(), self._offsets()
        if offsets is not None:
            # An offset per row is one more coordinate, in which every feature is one.
            rows = torch.cat([rows, offsets[:, None].to(rows)], dim=1)
            features = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
        likelihood = log_likelihood(features, rows, positives=labels)
        if self.noise:
            spread = torch.full_like(likelihood, math.log(self.noise / len(rows)))
            likelihood = torch.logaddexp(likelihood + math.log1p(-self.noise), spread)
        if self.smoothing:
            # The mean log-likelihood of all labels needs the mean row only.
            own = (features * rows[labels]).sum(dim=1)
            mean = features @ rows.mean(dim=0)
            likelihood = likelihood + self.smoothing * (mean - own)
        return -likelihood.mean()

    def _offsets(self) -> Tensor | None:
        if self.bias is None or self.log_prior is None:
            return self.log_prior if self.bias is None else self.bias
        return self.bias + self.log_prior


class InstanceDiscrimination(Classification):
    r"""DIET: every sample is a class of its own (Eq. 3 of Reizinger et al. 2024).

    The plain classification loss over instance labels, without bias; rows of instances of one class
    coincide at the optimum.

    Parameters
    ----------
    instances : int
        Number of samples, each with a row.
    dim : int
        Number of latents.
    unit_rows : bool
        Keep the rows on the unit sphere.
    smoothing : float
        As in :class:`Classification`.

    References
    ----------
    Balestriero (2023), Unsupervised Learning on a DIET.

    Examples
    --------
    >>> from demix import InstanceDiscrimination
    >>> InstanceDiscrimination(1000, 5).rows.shape
    torch.Size([1000, 5])
    """

    def __init__(
        self, instances: int, dim: int, *, unit_rows: bool = False, smoothing: float = 0.0
    ) -> None:
        super().__init__(instances, dim, unit_rows=unit_rows, smoothing=smoothing)


def _log_prior(prior: Tensor | None, classes: int) -> Tensor | None:
    if prior is None:
        return None
    if not torch.is_tensor(prior):
        raise DemixError(
            f"prior must be a tensor of {classes} frequencies, but got {type(prior).__name__}; "
            "convert it with torch.as_tensor."
        )
    if prior.shape != (classes,) or not bool(((prior > 0) & prior.isfinite()).all()):
        raise DemixError(
            f"prior must be {classes} positive frequencies, one per class, but got "
            f"{prior.tolist()}."
        )
    return (prior / prior.sum()).log()
