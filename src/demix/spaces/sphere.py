"""The hypersphere of Theorem 2."""

import math

import torch
from torch import Tensor

from demix.spaces.base import Space, check_dim, check_radius, device_of


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
        return self.project(torch.randn(shape, generator=generator, device=device_of(generator)))

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
