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
