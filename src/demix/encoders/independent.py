"""The axes along which outputs are independent."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor


def independent_axes(white: Tensor) -> Tensor:
    r"""Turn white outputs so that they are as independent as can be (FastICA, Hyvärinen 1999).

    Once a linear map of independent latents is known, of which at most one is normal, their axes
    are, up to order and sign (Comon 1994).

    Parameters
    ----------
    white : Tensor (N, n)
        Centred and uncorrelated, of unit variance or none.

    Returns
    -------
    Tensor (n, n)
        The rotation; a row for each axis.

    References
    ----------
    P. Comon (1994), Independent Component Analysis, a New Concept?

    A. Hyvärinen (1999), Fast and Robust Fixed-Point Algorithms for Independent Component Analysis.

    Examples
    --------
    >>> import torch
    >>> from demix.encoders.independent import independent_axes
    >>> z = 12**0.5 * (torch.rand(5000, 2, generator=torch.Generator().manual_seed(0)) - 0.5)
    >>> turn = torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    >>> (independent_axes(z @ turn.T) @ turn).abs().round().sort(0).values
    tensor([[0., 0.],
            [1., 1.]])
    """
    from sklearn.decomposition import FastICA  # what only saves and loads does not wait for it
    from sklearn.exceptions import ConvergenceWarning

    wide = white.double()
    # Outputs that are combinations of others have no variance of their own, and stay.
    own = torch.nonzero(wide.var(0) > 0.5).flatten()
    turn = torch.eye(white.shape[1], dtype=wide.dtype)
    if len(own) > 1:
        # Fourth moments tell what is bounded from what is normal, and a seed draws where it starts.
        ica = FastICA(whiten=False, fun="cube", max_iter=1000, random_state=0)
        with warnings.catch_warnings():
            # Axes that go on turning are not told by the data: any rotation will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = ica.fit(wide[:, own].numpy()).components_
        turn[own[:, None], own] = torch.from_numpy(found)
    return turn.to(white.dtype)
