"""Causal 3DIdent: the scene of 3DIdent, with latents that depend on one another."""

from __future__ import annotations

import numpy as np

from demix._support.validation import check_seed
from demix.papers.scenes.three_d_ident import ThreeDIdent

# Latent, its parents, and how far it strays from their mean.
_GRAPH = (
    ("rotation x", ("x",), 0.5),
    ("rotation y", ("y",), 0.5),
    ("rotation z", ("z",), 0.5),
    ("spotlight angle", ("x", "y"), 0.5),
    ("object hue", ("spotlight hue", "ground hue"), 0.35),
)


class CausalThreeDIdent(ThreeDIdent):
    r"""3DIdent with a causal graph among its latents.

    ::

        x -> rotation x    y -> rotation y    z -> rotation z
        x, y -> spotlight angle
        spotlight hue, ground hue -> object hue

    Latents without parents are uniform on :math:`[-1, 1]`; another one is
    :math:`z_i \sim N(\bar z_{pa(i)}, \sigma_i^2)`, truncated to that range, around the mean of its
    parents, with :math:`\sigma = 0.35` for the hue and 0.5 otherwise.

    The kind of graph is that of Causal3DIdent, where the place of the object moves the spotlight
    and the hues of spotlight and ground that of the object. There, the class of the object comes
    before all of these; here it is always a teapot.

    References
    ----------
    J. von Kuegelgen, Y. Sharma, L. Gresele, W. Brendel, B. Schoelkopf, M. Besserve, F. Locatello
    (2021). *Self-Supervised Learning with Data Augmentations Provably Isolates Content from
    Style.* NeurIPS, Sec. 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers import sample_latents
    >>> z = sample_latents("causal3dident", 2000, seed=0)
    >>> bool(np.corrcoef(z[:, 0], z[:, 3])[0, 1] > 0.5)
    True
    """

    name = "causal3dident"
    graph = _GRAPH

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Draw latents ``(n, 10)`` along the graph, one uniform number for each."""
        # Only here: every process that renders would wait for it.
        from scipy.special import ndtr, ndtri

        unit = np.random.default_rng(check_seed(seed)).random((n, len(self.latents)))
        z = 2 * unit - 1
        for name, parents, sigma in _GRAPH:
            column = self.latents.index(name)
            mean = z[:, [self.latents.index(parent) for parent in parents]].mean(axis=1)
            low, high = ndtr((-1 - mean) / sigma), ndtr((1 - mean) / sigma)
            drawn = mean + sigma * ndtri(low + unit[:, column] * (high - low))
            z[:, column] = np.clip(drawn, -1, 1)
        return z.astype(np.float32)
