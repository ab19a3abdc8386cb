"""The optimum in closed form."""

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
