"""Labelled data: latents around cluster vectors."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.validation import check_share
from demix.distributions.base import Conditional, Marginal
from demix.processes.process import Mixing, Pairs
from demix.spaces.base import Space
from demix.theory.ranks import affine_generator_rank

_BLOCK = 2**22  # numbers that are held in memory at a time to compare samples with all classes


class Labelled(NamedTuple):
    """Labelled samples: latents ``z`` ``(N, d)``, observations ``x``, ``labels`` and ``clusters``.

    A learner sees ``labels`` ``(N,)``; ``clusters`` ``(N,)`` are those of the samples.
    """

    z: Tensor
    x: Tensor
    labels: Tensor
    clusters: Tensor


@dataclass(frozen=True, eq=False)
class ClusterProcess:
    r"""The generating process of Reizinger et al. (2024), Assumptions 1.

    .. math:: I \sim p(I), \quad z \mid I \sim p(z \mid v_{C(I)}), \quad x = g(z)

    With a vMF conditional on the sphere it is the theorem's own,
    :math:`p(z | v) \propto e^{\kappa \langle v, z \rangle}`.

    Parameters
    ----------
    vectors : Tensor (C, d)
        Cluster vectors, e.g. from :func:`cluster_vectors`.
    conditional : Conditional
        The distribution of the latents around their vector.
    mixing : Mixing
        The injective map to observations.
    instances : int, optional
        How many samples there are, each with a label of its own (DIET); instance ``i`` is of class
        ``i mod C``. By default the classes are the labels.
    imbalance : float
        Ratio of the most to the least frequent class, geometric in between; 1 for equal.
    label_noise : float
        Share of labels that are replaced by one drawn uniformly from all.

    Examples
    --------
    >>> import demix
    >>> from demix.papers import ClusterProcess, cluster_vectors
    >>> sphere = demix.Sphere(5)
    >>> vectors = cluster_vectors(demix.Uniform(sphere), 100, seed=0)
    >>> conditional = demix.VonMisesFisher(sphere, kappa=10.0)
    >>> mixing = demix.LeakyMixing(5, seed=0, draws=100)
    >>> ClusterProcess(vectors, conditional, mixing).sample(8).labels.shape
    torch.Size([8])
    """

    vectors: Tensor
    conditional: Conditional
    mixing: Mixing
    instances: int | None = None
    imbalance: float = 1.0
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.vectors.shape[1] != self.space.dim:
            raise DemixError(
                f"Cluster vectors must have the {self.space.dim} columns of {self.space!r}, but "
                f"have shape {tuple(self.vectors.shape)}."
            )
        if len(self.vectors) < 2:
            raise DemixError("There must be at least 2 clusters, but got 1.")
        if not bool(self.space.contains(self.vectors).all()):
            raise DemixError(f"Cluster vectors must lie in {self.space!r}, but some do not.")
        self.mixing.check_space(self.space)
        if self.instances is not None and self.instances < len(self.vectors):
            raise DemixError(
                f"Every one of the {len(self.vectors)} clusters needs an instance, but there are "
                f"{self.instances}."
            )
        if not isinstance(self.imbalance, Real) or not 1 <= self.imbalance < float("inf"):
            raise DemixError(
                f"imbalance is the most over the least frequent class, at least 1, but got "
                f"{self.imbalance!r}."
            )
        check_share(self.label_noise, "label_noise")

    @property
    def space(self) -> Space:
        """The space of the latents."""
        return self.conditional.space

    @property
    def classes_of_labels(self) -> Tensor:
        """The class of each label, ``(N,)``: ``i mod C`` for instances, else the label itself."""
        return torch.arange(self.instances or len(self.vectors)) % len(self.vectors)

    @property
    def prior(self) -> Tensor:
        """The probability of each label, ``(N,)``, float64, before any noise."""
        steps = torch.linspace(0, 1, len(self.vectors), dtype=torch.float64)
        weight = (self.imbalance**-steps)[self.classes_of_labels]
        return weight / weight.sum()

    def sample(self, size: int, *, generator: torch.Generator | None = None) -> Labelled:
        """Draw ``size`` labelled samples on the generator's device."""
        device = None if generator is None else generator.device
        count = self.instances or len(self.vectors)
        if self.imbalance == 1:
            labels = torch.randint(count, (size,), generator=generator, device=device)
        else:
            prior = self.prior.to(device)
            labels = torch.multinomial(prior, size, replacement=True, generator=generator)
        clusters = self.classes_of_labels.to(device)[labels]
        z = self.conditional.sample(self.vectors.to(device)[clusters], generator=generator)
        if self.label_noise:
            wrong = torch.rand(size, generator=generator, device=device) < self.label_noise
            other = torch.randint(count, (size,), generator=generator, device=device)
            labels = torch.where(wrong, other, labels)
        return Labelled(z, self.mixing(z), labels, clusters)

    def sample_pairs(self, size: int, *, generator: torch.Generator | None = None) -> Pairs:
        """Draw ``size`` positive pairs: two samples of one label each, as InfoNCE takes them."""
        first = self.sample(size, generator=generator)
        vectors = self.vectors.to(first.z.device)[first.clusters]
        second = self.conditional.sample(vectors, generator=generator)
        return Pairs(first.z, second, first.x, self.mixing(second))

    def log_posterior(self, z: Tensor, labels: Tensor) -> Tensor:
        r"""Return :math:`\log p(\mathrm{label} | z)` of the labels as seen, ``(M,)``.

        Minus its mean is the smallest cross-entropy that any classifier can reach.
        """
        if labels.shape != (len(z),):
            raise DemixError(
                f"{len(z)} latents need a label each, but labels have shape {tuple(labels.shape)}."
            )
        vectors, classes, prior = (
            x.to(z.device) for x in (self.vectors.double(), self.classes_of_labels, self.prior)
        )
        by_class = prior.new_zeros(len(vectors)).index_add_(0, classes, prior)
        # In blocks: all samples with all classes at once would take M * C * d numbers.
        block = max(1, _BLOCK // vectors.numel())
        clean = []
        for part, own in zip(z.double().split(block), labels.split(block), strict=True):
            joint = self.conditional.log_prob(part[:, None], vectors[None]) + by_class.log()
            clean.append(joint.log_softmax(dim=1).gather(1, classes[own][:, None])[:, 0])
        # Within its class a label is as likely as its share of the class.
        log_p = torch.cat(clean) + (prior / by_class[classes])[labels].log()
        if not self.label_noise:
            return log_p
        spread = torch.full_like(log_p, math.log(self.label_noise / len(prior)))
        return torch.logaddexp(log_p + math.log1p(-self.label_noise), spread)


def cluster_vectors(marginal: Marginal, count: int, *, seed: int) -> Tensor:
    """Draw ``count`` cluster vectors ``(count, d)`` from a distribution on the sphere.

    They are an affine generator system (Def. 1 of Reizinger et al. 2024) if ``count > d``.

    Examples
    --------
    >>> from demix import Sphere, Uniform
    >>> from demix.papers import cluster_vectors
    >>> from demix.theory.ranks import affine_generator_rank
    >>> affine_generator_rank(cluster_vectors(Uniform(Sphere(3)), 10, seed=0))
    3
    """
    space = marginal.space
    if count < 2:
        raise DemixError(f"There must be at least 2 clusters, but got {count!r}.")
    vectors = marginal.sample(count, generator=torch.Generator().manual_seed(seed))
    rank = affine_generator_rank(vectors)
    if count > space.dim and rank < space.dim:
        raise DemixError(
            f"{count} vectors of {marginal!r} span only {rank} of {space.dim} dimensions "
            "affinely; take another seed."
        )
    return vectors
