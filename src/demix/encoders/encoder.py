"""The encoder: whitening, a body and the projection to the assumed space."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError
from demix.encoders.bodies import image_body, initialise_images, mlp
from demix.encoders.whitening import ChannelScaling, Whitening
from demix.spaces.base import Space


class Encoder(nn.Module):
    r"""The model :math:`f`: whitening, a body, and the map to the assumed space.

    Parameters
    ----------
    dim_in : int or (C, H, W)
        Dimension of the observations, or the shape of images.
    space : Space
        The space assumed for the latents; its dimension is the number of latents.
    body : str
        ``"mlp"``, to which the settings below belong, or one for images, which are scaled channel
        by channel instead of whitened: ``"compact"`` (for a CPU), ``"kitti"`` (Klindt et al. 2021),
        ``"resnet18"`` (Zimmermann et al. 2021), ``"resnet18_linear"`` or ``"perceptron"``
        (Reizinger et al. 2024).
    hidden : sequence of int
        Widths of the hidden layers.
    activation : str
        ``"silu"``, ``"gelu"`` (three times slower on a CPU) or ``"leaky_relu"`` (slope 0.01).
    residual : bool
        Whether each layer after the first adds to its input; needs equal widths.
    batch_norm : bool
        Whether plain layers are normalised over the batch.
    components : int, optional
        How many directions of the input the whitening keeps; by default all.
    scale : float
        Where the learnable size of the output space starts: a radius, the sides of a box relative
        to the given one, or a factor in ``R^n``.

    Examples
    --------
    >>> import torch
    >>> from demix import Encoder, Sphere
    >>> f = Encoder(4, Sphere(3), hidden=(32, 32))
    >>> f(torch.randn(5, 4)).norm(dim=1).allclose(torch.ones(5))
    True
    >>> Encoder((3, 64, 64), Sphere(3), body="compact")(torch.rand(2, 3, 64, 64)).shape
    torch.Size([2, 3])
    """

    whitening: Whitening | ChannelScaling

    def __init__(
        self,
        dim_in: int | Sequence[int],
        space: Space,
        *,
        body: str = "mlp",
        hidden: Sequence[int] = (64,) * 4,
        activation: str = "silu",
        residual: bool = True,
        batch_norm: bool = False,
        components: int | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        if not 0 < scale < math.inf:
            raise DemixError(f"scale of an encoder must be positive, but got {scale!r}.")
        self.space = space
        if body == "mlp":
            numbers = dim_in if isinstance(dim_in, int) else math.prod(dim_in)
            if components is not None and not 1 <= components <= numbers:
                raise DemixError(
                    f"components must be between 1 and the {numbers} dimensions of the input, but "
                    f"got {components!r}."
                )
            layers: dict[str, Any] = {"activation": activation, "residual": residual}
            layers["batch_norm"] = batch_norm
            self.settings: dict[str, Any] = {"dim_in": numbers, "body": body}
            self.settings |= {"hidden": list(hidden), **layers, "components": components}
            self.whitening = Whitening(numbers, components)
            self.body = mlp(components or numbers, hidden, space.dim, **layers)
        else:
            shape, self.body = image_body(body, dim_in, space.dim)
            self.settings = {"dim_in": list(shape), "body": body}
            self.whitening = ChannelScaling(shape)
        self._start = math.log(scale)
        self.log_scale = nn.Parameter(torch.full((space.scale_size,), self._start))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> "Encoder":
        """Draw Kaiming weights with zero biases; layers with a skip start at zero.

        The size of the space and norms over batches start anew, too.
        """
        self.log_scale.fill_(self._start)
        if self.settings["body"] != "mlp":
            initialise_images(self.body, generator)
            return self
        linear = [layer for layer in self.body.modules() if isinstance(layer, nn.Linear)]
        inner = 0.0 if self.settings["residual"] else math.sqrt(2)
        for i, layer in enumerate(linear):
            gain = inner if 0 < i < len(linear) - 1 else 1.0
            layer.weight.normal_(0, gain / math.sqrt(layer.in_features), generator=generator)
            layer.bias.zero_()
        for norm in self.body:
            if isinstance(norm, nn.BatchNorm1d):
                norm.reset_parameters()
        return self

    @torch.no_grad()
    def start_linear(self, x: Tensor, partners: Tensor) -> None:
        """Let an MLP with skips start as the linear map that partners ``(N, ...)`` agree most in.

        Of whitened inputs these are the leading eigenvectors of the covariance between partners:
        slow directions of a series (TICA), discriminant directions of classes, principal ones of
        copies with noise. Other bodies start as they are.

        References
        ----------
        Molgedey and Schuster (1994), Separation of a mixture of independent signals using time
        delayed correlations.
        """
        if self.settings["body"] != "mlp" or not self.settings["residual"]:
            return
        first, second = (self.whitening(side.flatten(1)).double() for side in (x, partners))
        shared = first.T @ second
        axes = torch.linalg.eigh(shared + shared.T)[1].flip(1).T[: self.space.dim]
        into, *_, out = (layer for layer in self.body.modules() if isinstance(layer, nn.Linear))
        rows = min(len(axes), len(into.weight))
        into.weight[:rows] = axes[:rows].to(into.weight)
        out.weight[: len(axes)] = (axes @ torch.linalg.pinv(into.weight.double())).to(out.weight)

    @property
    def scale(self) -> Tensor:
        """The learnt size of the output space, ``(scale_size,)``."""
        return self.log_scale.exp()

    def forward(self, x: Tensor) -> Tensor:
        """Map observations ``(N, ...)`` of ``dim_in`` numbers each to latents ``(N, n)``."""
        latents: Tensor = self.body(self.whitening(x.flatten(1)))
        return self.space.squash(latents) * self.space.expand_scale(self.scale)
