"""A public validator for spaces that users write."""

import torch

from demix._support.errors import DemixError
from demix.spaces.base import Space


def check_space(space: Space, *, samples: int = 512, seed: int = 0) -> None:
    """Verify that ``space`` keeps the contract of :class:`demix.Space`.

    Checked are: the shapes; that projection and squashing land in the space; that projection is
    idempotent and leaves uniform samples where they are; that no uniform sample is nearer to a
    free point than its projection; that squashing is differentiable; that the space can be rebuilt
    from its data.

    Raises a :class:`demix.DemixError` that names the law that is broken for one of ``samples``
    random points.

    Examples
    --------
    >>> from demix import Box, check_space
    >>> check_space(Box(3, low=-1.0, high=2.0))
    """
    generator = torch.Generator().manual_seed(seed)
    free = 3 * torch.randn((samples, space.dim), generator=generator)
    projected = space.project(free)

    def demand(holds: bool, law: str) -> None:
        if not holds:
            raise DemixError(f"{space!r} breaks the contract of a space: {law}.")

    demand(projected.shape == free.shape, "project must keep the shape (N, n)")
    demand(bool(space.contains(projected).all()), "projected points must lie in the space")
    demand(
        torch.allclose(space.project(projected), projected, atol=1e-5),
        "project must be idempotent",
    )
    raw = free.clone().requires_grad_()
    squashed = space.squash(raw)
    demand(squashed.shape == free.shape, "squash must keep the shape (N, n)")
    demand(bool(space.contains(squashed.detach()).all()), "squashed points must lie in the space")
    demand(squashed.requires_grad, "squash must be differentiable")
    (gradient,) = torch.autograd.grad(squashed.square().sum() + squashed.sum(), raw)
    demand(bool(gradient.isfinite().all()), "squash must have a finite gradient")
    scale = torch.ones(space.scale_size)
    demand(
        space.expand_scale(scale).shape == (space.dim,),
        "expand_scale must return one number per dimension",
    )
    rebuilt = Space.from_dict(space.to_dict())
    demand(
        rebuilt == space and torch.equal(rebuilt.project(free), projected),
        "config must rebuild an equal space",
    )
    if not space.bounded:
        return
    uniform = space.uniform(samples, generator=generator)
    demand(uniform.shape == free.shape, "uniform must return (size, n)")
    demand(bool(space.contains(uniform).all()), "uniform samples must lie in the space")
    demand(
        torch.allclose(space.project(uniform), uniform, atol=1e-5),
        "project must not move points of the space",
    )
    nearest = torch.cdist(free, uniform).min(dim=1).values
    reached = (free - projected).norm(dim=1)
    demand(bool((reached <= nearest + 1e-4).all()), "project must return the nearest point")
