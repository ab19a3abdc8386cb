"""The linear map from which an encoder starts."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from demix.spaces.base import Space

_RIDGE = 0.01  # directions that vary less than this share of the most are not made larger
# Rows, and starts, of the search for a rotation to circles and spheres side by side.
_TURNED, _TURNS = 2000, 8


def shared_directions(x: Tensor, partners: Tensor, space: Space) -> Tensor:
    """Return the map ``(n, d)`` to latents of unit variance and largest covariance of partners.

    Where a product of spaces has spheres in it, latents are turned to lie on them.
    """
    size, turn = torch.linalg.eigh((x.T @ x + partners.T @ partners) / (2 * len(x)))
    whiten = turn * (size + _RIDGE * size.max() + 1e-30).rsqrt()
    shared = whiten.T @ x.T @ partners @ whiten
    leading = torch.linalg.eigh(shared + shared.T)[1].flip(1)[:, : space.dim]
    axes = whiten @ leading
    if axes.shape[1] == space.dim and len(space.parts) > 1:
        axes = axes @ _to_spheres(x @ axes, space.parts)
    return axes.T


@torch.enable_grad()
def _to_spheres(latents: Tensor, parts: Sequence[Space]) -> Tensor:
    """Return the rotation of latents ``(N, n)`` after which parts on spheres vary least in size."""
    rows, n, sizes = latents[:_TURNED], latents.shape[1], [part.dim for part in parts]
    round_ones = [i for i, part in enumerate(parts) if part.spherical]
    if not round_ones:
        return torch.eye(n).to(latents)

    def turn(free: Tensor) -> Tensor:
        return torch.linalg.matrix_exp(free - free.T)

    def variance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        free = torch.from_numpy(flat).reshape(n, n).to(rows).requires_grad_()
        pieces = (rows @ turn(free)).split(sizes, dim=1)
        loss = torch.stack([pieces[i].square().mean(dim=1).var() for i in round_ones]).sum()
        (slope,) = torch.autograd.grad(loss, free)
        return loss.item(), slope.cpu().numpy().ravel()

    random = np.random.default_rng(0)
    starts = [start * random.normal(size=n * n) for start in (0, *[1] * (_TURNS - 1))]
    found = [minimize(variance, x, jac=True, method="L-BFGS-B") for x in starts]
    best = min(found, key=lambda one: float(one.fun)).x
    return turn(torch.from_numpy(best).reshape(n, n).to(rows))
