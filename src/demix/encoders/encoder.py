"""The encoder: whitening, a body and the projection to the assumed space."""

import math
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

import torch
from torch import Tensor, nn

from demix._support.errors import DemixError
from demix.encoders.bodies import image_body, initialise_images, mlp
from demix.encoders.directions import shared_directions
from demix.spaces.base import Space

Noise = Callable[[Tensor, torch.Generator], Tensor]
"""``noise(x, generator)`` returns noise to add to observations ``x``."""

_MOST_NUMBERS = 2**24  # that a whitening of wide rows sees: 64 MB in float32


class Whitening(nn.Module):
    """Centre the input and give it unit covariance; keep ``components`` of the largest variance."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, dim: int, components: int | None = None) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        # Not torch.eye, which on torch's meta device waits two seconds for a compiler's modules.
        kept = dim if components is None else components
        self.register_buffer("matrix", torch.zeros(dim, kept).fill_diagonal_(1))

    @property
    def samples(self) -> int:
        """How many samples a fit should see."""
        dim, kept = self.matrix.shape
        return max(min(8192, _MOST_NUMBERS // dim), 4 * kept)

    @property
    def fit_bytes(self) -> int:
        """Roughly how many bytes a fit takes, for the samples and three matrices."""
        dim, kept = self.matrix.shape
        return dim * (20 * self.samples + 24 * kept)

    def note(self, low: float, high: float) -> str:
        """Return a sentence on what is done to columns of these standard deviations."""
        dim, kept = self.matrix.shape
        most = f"; the {kept} directions of the largest variance were kept" if kept < dim else ""
        return (
            f"Columns, with standard deviations from {low:.3g} to {high:.3g}, were centred, scaled "
            f"and whitened{most}."
        )

    @torch.no_grad()
    def fit(self, x: Tensor, *, scales: Tensor | None = None) -> "Whitening":
        """Fit mean and covariance to ``x`` ``(N, dim)``; directions without variance become 0.

        Columns are divided by their ``scales`` ``(dim,)`` first, so that all units count alike. The
        mean keeps the precision of ``x``: in float64, columns may lie far from zero.
        """
        if x.dtype == torch.float64:
            self.mean = self.mean.double()
        size = torch.ones(x.shape[1], dtype=torch.float64, device=x.device)
        if scales is not None:
            size = torch.where(scales > 0, scales, torch.inf).to(size)
        # First, since rounding far from zero would pass for variance, or hide it.
        far = x[0].double()
        self._fit((x.double() - far) / size)
        self.mean.copy_((self.mean.double() * size).nan_to_num(0.0) + far)
        self.matrix.copy_(self.matrix.double() / size[:, None])
        return self

    def _fit(self, x: Tensor) -> None:
        dim, kept = self.matrix.shape
        if kept < dim:
            self._fit_largest(x, kept)
            return
        mean = x.mean(dim=0)
        centred = x - mean
        if not torch.isfinite(centred).all():
            raise DemixError(
                "Expected columns that can be centred in float32, but some numbers are too large "
                "for it; divide the columns by their size."
            )
        variance, axes = torch.linalg.eigh(centred.T @ centred / len(x))
        keep = variance > 1e-10 * variance.max()
        factor = torch.where(keep, variance.clamp_min(1e-300).rsqrt(), 0.0)
        self.mean.copy_(mean)
        # Rotated back after scaling (ZCA), so that whitened inputs stay near the original axes.
        self.matrix.copy_((axes * factor) @ axes.T)

    def _fit_largest(self, x: Tensor, kept: int) -> None:
        """Find the directions of the largest variance by a randomised decomposition."""
        mean = x.mean(dim=0)
        centred = (x - mean).float()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found = min(kept, *x.shape)
            _, size, axes = torch.svd_lowrank(centred, q=min(found + 10, *x.shape), niter=4)
        deviation = size[:found] / math.sqrt(len(x))
        keep = deviation > 1e-5 * deviation.max()
        factor = torch.where(keep, 1 / deviation.clamp_min(1e-30), 0.0)
        self.mean.copy_(mean)
        self.matrix.zero_()
        self.matrix[:, :found].copy_(axes[:, :found] * factor)

    @torch.no_grad()
    def weigh(self, pairs: tuple[Tensor, Tensor], fresh: tuple[Tensor, Tensor]) -> None:
        """Shrink each direction to how far one side of a pair tells the other in it.

        Whitening makes directions of noise as large as those of signal. The linear guess of one
        side from the other is fitted to ``pairs`` ``(N, ...)``, and judged by its correlation with
        what is true of ``fresh`` ones.
        """
        x, y = (self(side.flatten(1)) for side in pairs)
        shared = x.T @ y / len(x)
        turn = torch.linalg.eigh((shared @ shared.T + shared.T @ shared).double())[1].float()
        one, two = (self(side.flatten(1)) for side in fresh)
        sides = ((one @ turn, two @ (shared.T @ turn)), (two @ turn, one @ (shared @ turn)))
        norms = [sum(side[i].square().sum(dim=0) for side in sides) for i in (0, 1)]
        both = sum((true * guess).sum(dim=0) for true, guess in sides)
        known = (both / (norms[0] * norms[1]).sqrt().clamp_min(1e-30)).clamp_min(0).double()
        if known.max() > 0:  # else there is nothing to go by
            weights = turn.double() @ ((known / known.max()).sqrt() * turn).T
            self.matrix.copy_(self.matrix.double() @ weights)

    @torch.no_grad()
    def keep_sizes(self, x: Tensor, scales: Tensor | None) -> None:
        """Undo the whitening: the columns of ``x`` count alike, not the directions."""
        rows = (x - self.mean).double()
        if scales is not None:
            rows = rows / torch.where(scales > 0, scales, torch.inf).to(rows)
        white = self(x).double()
        back = white.T @ rows / len(rows)
        size, axes = torch.linalg.eigh(back @ back.T)
        matrix = self.matrix.double() @ (axes * size.clamp_min(0).sqrt()) @ axes.T
        scale = ((x - self.mean).double() @ matrix).square().mean().sqrt()
        if scale > 0:
            self.matrix.copy_(matrix / scale)

    def noise(self, size: float) -> Noise:
        """Return noise that has standard deviations of ``size`` once it is whitened."""
        back = size * torch.linalg.pinv(self.matrix)

        def noise(x: Tensor, generator: torch.Generator) -> Tensor:
            drawn = torch.randn(len(x), len(back), generator=generator, device=x.device)
            return (drawn @ back).reshape(x.shape).to(x.dtype)

        return noise

    def forward(self, x: Tensor) -> Tensor:
        """Whiten ``(N, dim)``, centred in the precision of the mean, in that of the model."""
        return (x - self.mean).to(self.matrix.dtype) @ self.matrix


class ChannelScaling(nn.Module):
    """Centre each channel of images ``(C, H, W)`` and give it unit variance."""

    samples = 1024  # that a fit should see
    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", torch.zeros(shape[0], 1, 1))
        self.register_buffer("deviation", torch.ones(shape[0], 1, 1))

    @property
    def fit_bytes(self) -> int:
        """Roughly how many bytes a fit takes, for the samples."""
        return 20 * self.samples * math.prod(self.shape)

    def note(self, low: float, high: float) -> str:
        """Return a sentence on what is done to channels of these standard deviations."""
        return (
            f"Channels, with standard deviations from {low:.3g} to {high:.3g}, were centred and "
            "scaled."
        )

    @torch.no_grad()
    def fit(self, x: Tensor, *, scales: Tensor | None = None) -> "ChannelScaling":
        """Fit mean and deviation of each channel to ``x`` ``(N, ...)``; constant ones become 0."""
        images = x.reshape(-1, *self.shape).double()
        deviation, mean = torch.std_mean(images, dim=(0, 2, 3), correction=0)
        self.mean.copy_(mean[:, None, None])
        least = 1e-7 * mean.abs() + 1e-30
        infinite = torch.full_like(deviation, torch.inf)
        self.deviation.copy_(torch.where(deviation > least, deviation, infinite)[:, None, None])
        return self

    def weigh(self, pairs: tuple[Tensor, Tensor], fresh: tuple[Tensor, Tensor]) -> None:
        """Leave channels as they are: none of them is noise alone."""

    def keep_sizes(self, x: Tensor, scales: Tensor | None) -> None:
        """Leave channels as they are: they were never whitened together."""

    def noise(self, size: float) -> Noise:
        """Return noise that has standard deviations of ``size`` once channels are scaled."""
        width = size * torch.where(self.deviation.isfinite(), self.deviation, 0.0)

        def noise(x: Tensor, generator: torch.Generator) -> Tensor:
            drawn = torch.randn(len(x), *self.shape, generator=generator, device=x.device)
            return (width * drawn).reshape(x.shape).to(x.dtype)

        return noise

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, ...)`` to scaled images ``(N, C, H, W)``, channels last in memory."""
        images = (x.reshape(-1, *self.shape).to(self.mean.dtype) - self.mean) / self.deviation
        return images.contiguous(memory_format=torch.channels_last)


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
        Widths of the hidden layers; without any the map is linear.
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
        # Numbers of NumPy, 1 for true and the like could not be read again from a model.
        self.shape = _sizes(dim_in) if isinstance(dim_in, Sequence) else _sizes([dim_in])
        if body == "mlp":
            numbers = math.prod(self.shape)
            components = None if components is None else _sizes((components,))[0]
            if components is not None and not 1 <= components <= numbers:
                raise DemixError(
                    f"components must be between 1 and the {numbers} dimensions of the input, but "
                    f"got {components!r}."
                )
            layers: dict[str, Any] = {"activation": activation, "residual": bool(residual)}
            layers["batch_norm"], hidden = bool(batch_norm), _sizes(hidden)
            size = self.shape if len(self.shape) > 1 else numbers
            self.settings: dict[str, Any] = {"dim_in": size, "body": body}
            self.settings |= {"hidden": hidden, **layers, "components": components}
            self.whitening = Whitening(numbers, components)
            self.body = mlp(components or numbers, hidden, space.dim, **layers)
        else:
            shape, self.body = image_body(body, self.shape, space.dim)
            self.settings = {"dim_in": list(shape), "body": body}
            self.whitening = ChannelScaling(shape)
        self.first_scale = scale
        self.log_scale = nn.Parameter(torch.full((space.scale_size,), math.log(scale)))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> "Encoder":
        """Draw Kaiming weights with zero biases; layers with a skip start at zero.

        The size of the space and norms over batches start anew, too.
        """
        self.log_scale.fill_(math.log(self.first_scale))
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

        The latents have unit variance and largest covariance between partners: slow directions of
        a series (TICA, Molgedey and Schuster 1994), discriminant directions of classes, principal
        ones of copies with noise. Where parts of the space are spheres, they are turned to have
        one radius each. Other bodies start as they are.
        """
        if self.settings["body"] != "mlp" or not self.settings["residual"]:
            return
        sides = [self.whitening(side.flatten(1)).double() for side in (x, partners)]
        axes = shared_directions(sides[0], sides[1], self.space)
        layers = [layer for layer in self.body.modules() if isinstance(layer, nn.Linear)]
        if len(layers) == 1:
            layers[0].weight[: len(axes)] = axes.to(layers[0].weight)
            return
        into, *_, out = layers
        rows = min(len(axes), len(into.weight))
        into.weight[:rows] = axes[:rows].to(into.weight)
        out.weight[: len(axes)] = (axes @ torch.linalg.pinv(into.weight.double())).to(out.weight)

    @property
    def precise(self) -> bool:
        """Whether rows must come in float64, to be centred before they become float32."""
        return self.whitening.mean.dtype == torch.float64 != self.log_scale.dtype

    @property
    def scale(self) -> Tensor:
        """The learnt size of the output space, ``(scale_size,)``."""
        return self.log_scale.exp()

    def reaches(self, latents: Tensor) -> bool:
        """Whether latents ``(N, n)`` are finite and lie in its space."""
        scale = self.space.expand_scale(self.scale.detach())
        return bool(self.space.contains(latents / scale, atol=0.01).all())

    def forward(self, x: Tensor) -> Tensor:
        """Map observations ``(N, ...)`` of ``dim_in`` numbers each to latents ``(N, n)``."""
        shape, own = list(x.shape[1:]), self.shape
        if math.prod(shape) != math.prod(own) or (len(shape) > 1 < len(own) and shape != own):
            raise DemixError(
                f"Expected rows of shape {own}, which the model takes, but got {shape}; give data "
                "of the same kind, images as (N, C, H, W)."
            )
        return self.latents(self.whitening(x.flatten(1)))

    def latents(self, white: Tensor) -> Tensor:
        """Map whitened observations to latents."""
        return self.space.squash(self.body(white)) * self.space.expand_scale(self.scale)


def _sizes(numbers: Iterable[Any]) -> list[int]:
    """Return whole numbers of any type as Python's."""
    return [int(index(number)) for number in numbers]
