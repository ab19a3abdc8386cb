"""Start an encoder from one with more outputs: from the slowest of them, along independent axes."""

import math
import warnings

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder

_PART = 500  # observations that are encoded at a time
# Of the mean variance; outputs that are combinations of others have no direction of their own.
_RIDGE = 1e-6


@torch.no_grad()
def take_over(encoder: Encoder, other: Encoder, x: Tensor, x_tilde: Tensor) -> Encoder:
    """Start from a trained encoder with the same body and at least as many outputs.

    Whitening and layers are copied; the last layer becomes the slowest of its outputs, of unit
    variance, as a few thousand positive pairs ``(N, ...)`` show them (:func:`slow_directions`). In
    a box, whose latents are independent, they are turned to their axes (:func:`independent_axes`)
    and fill it.
    """
    if encoder.settings != other.settings:
        raise DemixError(
            f"Expected an encoder with the body {encoder.settings}, but got {other.settings}."
        )
    y, y_tilde = (
        torch.cat([other.body(other.whitening(part.flatten(1))) for part in side.split(_PART)])
        for side in (x, x_tilde)
    )
    mean, directions = slow_directions(y, y_tilde, encoder.space.dim)
    if encoder.space.separable:
        white = (torch.cat([y, y_tilde]) - mean) @ directions.T
        # A sigmoid spreads logistic outputs evenly; this is their deviation.
        directions = math.pi / math.sqrt(3) * independent_axes(white) @ directions
    layers = [name for name, layer in other.body.named_modules() if isinstance(layer, nn.Linear)]
    weight, bias = (f"body.{layers[-1]}.{name}" for name in ("weight", "bias"))
    taken = other.state_dict()
    taken[weight] = directions @ taken[weight]
    taken[bias] = directions @ (taken[bias] - mean)
    encoder.load_state_dict(taken | {"log_scale": encoder.log_scale})
    return encoder


@torch.no_grad()
def slow_directions(y: Tensor, y_tilde: Tensor, count: int) -> tuple[Tensor, Tensor]:
    r"""Find the directions along which positive pairs are most correlated.

    They maximise :math:`w^\top C w` for :math:`w^\top S w = 1`, where :math:`S` is the covariance
    of the outputs and :math:`C` that of an output with its positive: slow feature analysis
    (Wiskott & Sejnowski 2002), with pairs in place of steps in time. A latent comes before its
    own harmonics.

    Returns the mean ``(m,)`` of the outputs ``(N, m)`` for both sides of positive pairs, and
    ``count`` directions ``(count, m)``, the slowest first, along which outputs are uncorrelated
    and have unit variance.
    """
    outputs = y.shape[1]
    if not 1 <= count <= outputs:
        raise DemixError(
            f"The number of slow directions must be between 1 and the {outputs} outputs, but got "
            f"{count!r}."
        )
    mean = (y.double().mean(0) + y_tilde.double().mean(0)) / 2
    one, other = y.double() - mean, y_tilde.double() - mean
    both = (one.T @ one + other.T @ other) / (2 * len(y))
    ridge = _RIDGE * both.diagonal().mean() * torch.eye(outputs, dtype=both.dtype)
    across = (one.T @ other + other.T @ one) / (2 * len(y))
    root = torch.linalg.cholesky(both + ridge)
    half = torch.linalg.solve_triangular(root, across, upper=False)
    white = torch.linalg.solve_triangular(root, half.T, upper=False)
    axes = torch.linalg.eigh(white).eigenvectors.flip(1)[:, :count]  # the largest first
    directions = torch.linalg.solve_triangular(root.T, axes, upper=True).T
    return mean.to(y.dtype), directions.to(y.dtype)


def independent_axes(white: Tensor) -> Tensor:
    """Rotate white outputs so that they are as independent as possible (FastICA, Hyvärinen 1999).

    Once a linear map of independent latents is known, of which at most one is normal, their axes
    are, up to order and sign (Comon 1994). Outputs ``(N, n)`` must be centred and uncorrelated, of
    unit variance or none. Returns the rotation ``(n, n)``, a row for each axis.
    """
    from sklearn.decomposition import FastICA  # not on import: it takes a second
    from sklearn.exceptions import ConvergenceWarning

    wide = white.double()
    # Outputs that are combinations of others have no variance of their own, and stay.
    own = torch.nonzero(wide.var(0) > 0.5).flatten()
    turn = torch.eye(white.shape[1], dtype=wide.dtype)
    if len(own) > 1:
        # Fourth moments distinguish bounded from normal variables; the start is seeded.
        ica = FastICA(whiten=False, fun="cube", max_iter=1000, random_state=0)
        with warnings.catch_warnings():
            # Axes that do not converge are not determined by the data: any rotation will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = ica.fit(wide[:, own].numpy()).components_
        turn[own[:, None], own] = torch.from_numpy(found)
    return turn.to(white.dtype)
