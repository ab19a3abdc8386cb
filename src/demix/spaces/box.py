"""The axis-aligned box of Theorems 5 and 6."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.spaces.base import Space, check_dim, device_of

Bound = float | Sequence[float]


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
        self.dim = check_dim(dim)
        self.low, self.high = self._bound(low, "low"), self._bound(high, "high")
        if not bool((self.low < self.high).all()):
            raise DemixError(
                f"A box needs low < high in every dimension, but got low={low!r}, high={high!r}."
            )

    def _bound(self, bound: Bound, name: str) -> Tensor:
        values = torch.as_tensor(bound, dtype=torch.float64)
        if values.ndim > 1 or (values.ndim == 1 and len(values) != self.dim):
            raise DemixError(
                f"{name} of a box must be one number or {self.dim} numbers, but got {bound!r}."
            )
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

    @property
    def scale_size(self) -> int:
        """One learnable bound per dimension."""
        return self.dim

    def uniform(self, size: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw each coordinate uniformly between its bounds."""
        unit = torch.rand((size, self.dim), generator=generator, device=device_of(generator))
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
