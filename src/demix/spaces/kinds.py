"""The spaces of the theorems and experiments, by class and by name."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space, check_dim, check_radius

Bound = float | Sequence[float]


def _device(generator: torch.Generator | None) -> str | torch.device:
    return "cpu" if generator is None else generator.device


class Sphere(Space):
    r"""The sphere :math:`S^{n-1}_r = \{z \in R^n : |z|_2 = r\}` in ``dim`` dimensions, ``n >= 2``.

    Examples
    --------
    >>> import math
    >>> from demix import Sphere
    >>> math.isclose(Sphere(3).log_volume, math.log(4 * math.pi))
    True
    """

    convex = False
    spherical = True

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim = check_dim(dim, least=2)
        self.radius = check_radius(radius, "A sphere")

    @property
    def log_volume(self) -> float:
        r"""Log area, :math:`|S^{n-1}_r| = 2 \pi^{n/2} r^{n-1} / \Gamma(n/2)`."""
        half = self.dim / 2
        log_unit_area = math.log(2) + half * math.log(math.pi) - math.lgamma(half)
        return log_unit_area + (self.dim - 1) * math.log(self.radius)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw normals and normalise them: the Normal is rotation invariant."""
        shape = (size, self.dim)
        return self.project(torch.randn(shape, generator=generator, device=_device(generator)))

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Compare the norm with the radius."""
        return (z.norm(dim=-1) - self.radius).abs() <= atol * max(1.0, self.radius)

    def project(self, z: Tensor) -> Tensor:
        """Scale to the radius; the centre, which has no nearest point, becomes the first pole."""
        norm = z.norm(dim=-1, keepdim=True)
        pole = torch.zeros_like(z)
        pole[..., 0] = self.radius
        return torch.where(norm > 0, z * (self.radius / norm.clamp_min(1e-30)), pole)

    def squash(self, z: Tensor) -> Tensor:
        """L2 normalisation, as InfoNCE uses it (Sec. 3)."""
        return torch.nn.functional.normalize(z, dim=-1) * self.radius


class Box(Space):
    r"""The hyperrectangle :math:`[a_1, b_1] \times \dots \times [a_n, b_n]`.

    Examples
    --------
    >>> import torch
    >>> from demix import Box
    >>> Box(2, low=[0, -1], high=[1, 1]).project(torch.tensor([2.0, 0.5]))
    tensor([1.0000, 0.5000])
    """

    separable = True

    def __init__(self, dim: int, low: Bound = 0.0, high: Bound = 1.0) -> None:
        self.dim = self.scale_size = check_dim(dim)
        self.low, self.high = self._bound(low, "low"), self._bound(high, "high")
        if not bool((self.low < self.high).all()):
            raise DemixError(f"A box needs low < high everywhere, but got {low!r} and {high!r}.")

    def _bound(self, bound: Bound, name: str) -> Tensor:
        values = torch.as_tensor(bound, dtype=torch.float64)
        if values.shape not in ((), (self.dim,)):
            raise DemixError(f"{name} of a box must be 1 or {self.dim} numbers, but got {bound!r}.")
        if not bool(values.isfinite().all()):
            raise DemixError(f"{name} of a box must be finite, but got {bound!r}; see Real.")
        return values.expand(self.dim).clone()

    def bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``low`` and ``high``, each ``(n,)``, in the type and on the device of ``like``."""
        return self.low.to(like), self.high.to(like)

    @property
    def log_volume(self) -> float:
        """Log of the product of the side lengths."""
        return float((self.high - self.low).log().sum())

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw each coordinate uniformly between its bounds."""
        unit = torch.rand((size, self.dim), generator=generator, device=_device(generator))
        low, high = self.bounds(unit)
        return low + (high - low) * unit

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Compare each coordinate with its bounds."""
        low, high = self.bounds(z)
        slack = atol * (high - low)
        return ((z >= low - slack) & (z <= high + slack)).all(dim=-1)

    def project(self, z: Tensor) -> Tensor:
        """Clip each coordinate to its bounds."""
        low, high = self.bounds(z)
        return torch.minimum(torch.maximum(z, low), high)

    def squash(self, z: Tensor) -> Tensor:
        """Sigmoid between the bounds (the paper's scripts; its text says L-inf normalisation)."""
        low, high = self.bounds(z)
        return low + (high - low) * torch.sigmoid(z)

    def config(self) -> dict[str, Any]:
        """Return the arguments that rebuild the space."""

        def short(bound: Tensor) -> Bound:
            return float(bound[0]) if bool((bound == bound[0]).all()) else bound.tolist()

        return {"dim": self.dim, "low": short(self.low), "high": short(self.high)}


class L1Ball(Space):
    r"""The ball :math:`\{z \in R^n : |z|_1 \le r\}`.

    Examples
    --------
    >>> import torch
    >>> from demix import L1Ball
    >>> L1Ball(2).project(torch.tensor([2.0, 0.5]))
    tensor([1., 0.])
    """

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim = check_dim(dim)
        self.radius = check_radius(radius, "An L1 ball")

    @property
    def log_volume(self) -> float:
        r""":math:`|Z| = (2r)^n / n!`."""
        return self.dim * math.log(2 * self.radius) - math.lgamma(self.dim + 1)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Share the radius out by ``n + 1`` exponentials (uniform on a simplex), sign at random."""
        unit = torch.rand((size, self.dim + 1), generator=generator, device=_device(generator))
        shares = -torch.log1p(-unit)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        sign = torch.rand((size, self.dim), generator=generator, device=unit.device) < 0.5
        return self.radius * torch.where(sign, -shares[:, :-1], shares[:, :-1])

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Compare the L1 norm with the radius."""
        return z.abs().sum(dim=-1) <= self.radius * (1 + atol)

    def project(self, z: Tensor) -> Tensor:
        """Soft-threshold by the amount that brings the norm down to the radius (by sorting)."""
        size = z.abs()
        ordered = size.sort(dim=-1, descending=True).values
        count = torch.arange(1, self.dim + 1, dtype=z.dtype, device=z.device)
        thresholds = (ordered.cumsum(dim=-1) - self.radius) / count
        # The largest threshold is the one at which exactly the remaining entries are positive.
        threshold = thresholds.max(dim=-1, keepdim=True).values.clamp_min(0)
        return z.sign() * (size - threshold).clamp_min(0)

    def squash(self, z: Tensor) -> Tensor:
        """Shrink along rays, ``z / (1 + |z|_1)``: one-to-one onto the interior."""
        return self.radius * z / (1 + z.abs().sum(dim=-1, keepdim=True))


class Real(Space):
    """All of ``R^n``: no theorem of the paper covers it, several of its experiments use it.

    Examples
    --------
    >>> from demix import Real
    >>> Real(2).bounded
    False
    """

    log_volume = math.inf

    def __init__(self, dim: int) -> None:
        self.dim = check_dim(dim)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Refuse: no uniform distribution exists on an unbounded space."""
        raise DemixError("R^n has no uniform distribution; choose another marginal, or a Box.")

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Every finite point is in the space."""
        return z.isfinite().all(dim=-1)

    def project(self, z: Tensor) -> Tensor:
        """Change nothing."""
        return z

    def squash(self, z: Tensor) -> Tensor:
        """Change nothing."""
        return z


class Product(Space):
    r"""The product :math:`Z_1 \times \dots \times Z_k`; a latent is the parts side by side.

    A part may be given as what its ``to_dict`` returned.

    Examples
    --------
    >>> from demix import Box, Product, Sphere
    >>> Product([Sphere(3), Box(2)]).dim
    5
    """

    def __init__(self, parts: Sequence[Space | dict[str, Any]]) -> None:
        spaces = [Space.from_dict(part) if isinstance(part, dict) else part for part in parts]
        if not spaces or not all(isinstance(space, Space) for space in spaces):
            raise DemixError(f"A product needs at least one space, but got {parts!r}.")
        self._parts = tuple(spaces)
        self.dim = sum(space.dim for space in spaces)
        self.scale_size = sum(space.scale_size for space in spaces)
        self.convex = all(space.convex for space in spaces)

    @property
    def parts(self) -> tuple[Space, ...]:
        """The spaces that this is a product of."""
        return self._parts

    def _each(self, z: Tensor, act: Callable[[Space, Tensor], Tensor]) -> list[Tensor]:
        pieces = z.split([part.dim for part in self.parts], dim=-1)
        return [act(part, piece) for part, piece in zip(self.parts, pieces, strict=True)]

    @property
    def log_volume(self) -> float:
        """Sum over the parts."""
        return math.fsum(part.log_volume for part in self.parts)

    def expand_scale(self, scale: Tensor) -> Tensor:
        """Let each part spread its own size over its coordinates."""
        pieces = scale.split([part.scale_size for part in self.parts])
        spread = [part.expand_scale(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return torch.cat(spread)

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw each part on its own."""
        return torch.cat([part.uniform(size, generator=generator) for part in self.parts], dim=-1)

    def contains(self, z: Tensor, atol: float = 1e-5) -> Tensor:
        """Ask every part."""
        inside = self._each(z, lambda part, piece: part.contains(piece, atol))
        return torch.stack(inside).all(dim=0)

    def project(self, z: Tensor) -> Tensor:
        """Project each part."""
        return torch.cat(self._each(z, lambda part, piece: part.project(piece)), dim=-1)

    def squash(self, z: Tensor) -> Tensor:
        """Squash each part."""
        return torch.cat(self._each(z, lambda part, piece: part.squash(piece)), dim=-1)

    def config(self) -> dict[str, Any]:
        """Return the parts, each as plain data."""
        return {"parts": [part.to_dict() for part in self.parts]}


def space_named(name: str, dim: int) -> Space:
    """Return the unit ``"sphere"``, ``"box"`` or ``"l1_ball"``, or ``"real"`` space."""
    kinds = {"sphere": Sphere, "box": Box, "l1_ball": L1Ball, "real": Real}
    if name not in kinds:
        raise DemixError(f"Unknown space {name!r}; choose {', '.join(kinds)}, or auto for pairs.")
    return kinds[name](dim)
