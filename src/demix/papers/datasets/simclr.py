"""The augmentations of SimCLR, a whole batch at once, each image in its own way."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from demix._support.errors import DemixError

_LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue are to the eye (ITU-R BT.601)


def gray(x: Tensor) -> Tensor:
    """Return the luma ``(B, 1, H, W)``."""
    return (x * x.new_tensor(_LUMA).view(3, 1, 1)).sum(dim=1, keepdim=True)


def brightened(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply: 0 is black, 1 changes nothing."""
    return (x * _each(factor)).clamp(0, 1)


def contrasted(x: Tensor, factor: Tensor) -> Tensor:
    """Go from the mean luma of the image (0) through the image (1) and beyond."""
    return _between(gray(x).mean(dim=(1, 2, 3), keepdim=True), x, factor)


def saturated(x: Tensor, factor: Tensor) -> Tensor:
    """Go from the luma of each pixel (0) through its colour (1) and beyond."""
    return _between(gray(x), x, factor)


def turned_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the hue by a share of the colour circle; see Smith (1978), Color Gamut Transform Pairs.

    A channel is ``v - c max(0, min(k, 4 - k, 1))`` with value ``v``, chroma ``c``, and ``k`` the
    hue in sixths of the circle plus 5, 3 or 1 for red, green or blue.
    """
    red, green, blue = x.unbind(dim=1)
    value = x.amax(dim=1)
    chroma = value - x.amin(dim=1)
    some = torch.where(chroma > 0, chroma, 1)  # where there is no colour, any hue will do
    hue = torch.where(
        value == red,
        (green - blue) / some,
        torch.where(value == green, 2 + (blue - red) / some, 4 + (red - green) / some),
    )
    k = (hue + 6 * turns.view(-1, 1, 1)).unsqueeze(1) + x.new_tensor([5, 3, 1]).view(3, 1, 1)
    k = k % 6
    low = torch.minimum(k, 4 - k).clamp(0, 1)
    return (value.unsqueeze(1) - chroma.unsqueeze(1) * low).clamp(0, 1)


def _between(zero: Tensor, one: Tensor, factor: Tensor) -> Tensor:
    return torch.lerp(zero.expand_as(one), one, _each(factor)).clamp(0, 1)


def _each(factor: Tensor) -> Tensor:
    return factor.view(-1, 1, 1, 1)


Change = Callable[[Tensor, Tensor], Tensor]

# Each change of colours, what leaves an image as it is, how far one of strength 1 goes from there,
# and the least there is.
_CHANGES = (
    (brightened, 1.0, 0.8, 0.0),
    (contrasted, 1.0, 0.8, 0.0),
    (saturated, 1.0, 0.8, 0.0),
    (turned_hue, 0.0, 0.2, -0.5),
)
_JITTERED = 0.8
_STRETCH = math.log(4 / 3)
_SIGMA = (0.1, 2.0)


class SimCLRViews:
    r"""A random view of each image: crop, flip, colours, gray and blur, as in SimCLR.

    Give it to an estimator as ``augmentation``, or call it in a loop of your own. Random numbers
    come from torch's global generator, on the CPU, so that ``torch.manual_seed`` gives the same
    views on every device.

    A crop lies anywhere and is stretched by a log-uniform factor of up to 4/3 either way, as far as
    it then fits into the image. Colours change in 8 images of 10, in random order: brightness,
    contrast and saturation by up to :math:`1 \pm 0.8 s`, hue by up to :math:`\pm 0.2 s` of the
    circle. Blur is Gaussian, of width 0.1 to 2 pixels, cut off at a twentieth of the image's side.

    Parameters
    ----------
    size : int, optional
        Side of the views; by default they are as large as the images. Much smaller views should be
        made of images that were reduced before: nothing is averaged over.
    crop : float
        The smallest share of the area; 1 crops nothing.
    flip : float
        How often left and right change places.
    colour : float
        Strength ``s`` of the change of colours, from 0 to 2.
    gray : float
        How often colours are taken away.
    blur : float
        How often an image is blurred.

    Notes
    -----
    What views change is not recovered: with these, position, size, orientation and hue. Images of
    one channel are cropped, flipped and blurred only.

    References
    ----------
    Chen et al. (2020), A Simple Framework for Contrastive Learning of Visual Representations,
    App. A.

    Examples
    --------
    >>> import torch
    >>> from demix.papers import SimCLRViews
    >>> images = torch.rand(8, 3, 32, 32)
    >>> views = SimCLRViews()
    >>> views(images).shape, SimCLRViews(size=24)(images).shape
    (torch.Size([8, 3, 32, 32]), torch.Size([8, 3, 24, 24]))
    >>> same = SimCLRViews(crop=1.0, flip=0.0, colour=0.0, gray=0.0, blur=0.0)
    >>> torch.equal(same(images), images)
    True
    """

    def __init__(
        self,
        size: int | None = None,
        *,
        crop: float = 0.08,
        flip: float = 0.5,
        colour: float = 1.0,
        gray: float = 0.2,
        blur: float = 0.5,
    ) -> None:
        if size is not None and size < 2:
            raise DemixError(f"Views need a side of at least 2 pixels, but got {size!r}.")
        if not 0 < crop <= 1:
            raise DemixError(f"crop must be a share of the area in (0, 1], but got {crop!r}.")
        if not 0 <= colour <= 2:
            raise DemixError(f"colour must be a strength in [0, 2], but got {colour!r}.")
        for name, chance in {"flip": flip, "gray": gray, "blur": blur}.items():
            if not 0 <= chance <= 1:
                raise DemixError(f"{name} must be a probability in [0, 1], but got {chance!r}.")
        self.size, self.crop, self.flip = size, crop, flip
        self.colour, self.gray, self.blur = colour, gray, blur

    def __call__(self, x: Tensor) -> Tensor:
        """Return views ``(B, C, size, size)`` of images ``(B, C, H, W)`` in [0, 1]."""
        _check(x)
        views = self._cropped(x)
        if x.shape[1] == 3:
            views = self._coloured(views)
        rows = _some(self.blur, views)
        if len(rows):
            sigma = _uniform(*_SIGMA, views)[rows]
            radius = max(1, min(views.shape[2:]) // 20)
            views = views.index_copy(0, rows, blurred(views[rows], sigma, radius))
        return views

    def _cropped(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        out = (height, width) if self.size is None else (self.size, self.size)
        area = _uniform(self.crop, 1.0, x)
        # The log of width over height must let either side of the crop fit into the image's.
        image, wanted = math.log(width / height), math.log(out[1] / out[0])
        fits = image + area.log(), image - area.log()
        low, high = (torch.full_like(area, wanted + s).clamp(*fits) for s in (-_STRETCH, _STRETCH))
        shape = torch.lerp(low, high, _uniform(0.0, 1.0, x)) - image
        sides = torch.stack([(area * shape.exp()).sqrt(), (area / shape.exp()).sqrt()], 1)
        sides = sides.clamp_max(1.0)
        place = torch.stack([_uniform(-1.0, 1.0, x), _uniform(-1.0, 1.0, x)], 1) * (1 - sides)
        flipped = torch.rand(len(x)).to(x) < self.flip
        if self.crop == 1 and self.flip == 0 and out == (height, width):
            return x
        return cropped(x, sides, place, flipped, out)

    def _coloured(self, x: Tensor) -> Tensor:
        jittered = _some(_JITTERED, x)
        order = torch.rand(len(x), len(_CHANGES)).argsort(dim=1).to(x.device)[jittered]
        amounts = []
        for _, neutral, reach, least in _CHANGES:
            reach = reach * self.colour
            amounts.append(_uniform(max(least, neutral - reach), neutral + reach, x))
        if self.colour:
            x = in_turns(x, jittered, order, [change for change, *_ in _CHANGES], amounts)
        rows = _some(self.gray, x)
        return x.index_copy(0, rows, gray(x[rows]).expand(-1, 3, -1, -1))


def in_turns(
    x: Tensor, rows: Tensor, order: Tensor, changes: Sequence[Change], amounts: Sequence[Tensor]
) -> Tensor:
    """Make changes ``change(images, amount)`` to the images ``rows``, in the ``order`` of each."""
    for turn in order.T:
        for number, change in enumerate(changes):
            now = rows[turn == number]
            x = x.index_copy(0, now, change(x[now], amounts[number][now]))
    return x


def cropped(
    x: Tensor, sides: Tensor, place: Tensor, flipped: Tensor, out: tuple[int, int]
) -> Tensor:
    """Return crops ``(B, C, *out)``, resized linearly.

    ``sides`` are shares of width and height, ``place`` is the middle from -1 to 1, both ``(B, 2)``.
    """
    maps = x.new_zeros(len(x), 2, 3)
    maps[:, 0, 0] = torch.where(flipped, -sides[:, 0], sides[:, 0])
    maps[:, 1, 1] = sides[:, 1]
    maps[:, :, 2] = place
    grid = functional.affine_grid(maps, [len(x), x.shape[1], *out], align_corners=False)
    made = functional.grid_sample(x, grid, padding_mode="border", align_corners=False)
    return made.clamp(0, 1)


def blurred(x: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """Return images under Gaussians of width ``sigma`` ``(B,)``, mirrored at the edges."""
    size, channels = x.shape[:2]
    steps = torch.arange(-radius, radius + 1, dtype=x.dtype, device=x.device)
    weights = torch.softmax(-0.5 * (steps / sigma[:, None]).square(), dim=1)
    # All images as channels of one, each with weights of its own.
    weights = weights.repeat_interleave(channels, dim=0)[:, None]
    made = functional.pad(x.reshape(1, size * channels, *x.shape[2:]), 4 * [radius], mode="reflect")
    made = functional.conv2d(made, weights[:, :, None], groups=size * channels)
    made = functional.conv2d(made, weights[:, :, :, None], groups=size * channels)
    return made.reshape(x.shape).clamp(0, 1)


def _uniform(low: float, high: float, x: Tensor) -> Tensor:
    """Draw a number ``(B,)`` for each image."""
    return (low + (high - low) * torch.rand(len(x))).to(x)


def _some(chance: float, x: Tensor) -> Tensor:
    """Draw the rows of images that something happens to."""
    return torch.nonzero(torch.rand(len(x)) < chance)[:, 0].to(x.device)


def _check(x: Tensor) -> None:
    if x.ndim != 4 or x.shape[1] not in (1, 3) or not x.is_floating_point():
        raise DemixError(
            "Expected images (B, C, H, W) of 1 or 3 channels as floating point numbers, but got "
            f"{str(x.dtype).replace('torch.', '')} of shape {tuple(x.shape)}."
        )
    if len(x) == 0 or min(x.shape[2:]) < 2:
        raise DemixError(
            f"Expected at least one image of 2 x 2 pixels, but got shape {tuple(x.shape)}."
        )
    low, high = float(x.min()), float(x.max())
    if not (low >= 0 and high <= 1):
        raise DemixError(
            f"Expected images in [0, 1], but they go from {low:g} to {high:g}; scale them, and "
            "normalise after the views were made."
        )
