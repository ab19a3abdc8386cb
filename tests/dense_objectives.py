"""The losses written down straight from the equations, all pairs at once, for comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

SIMILARITIES = ["dot", 1, 1.5, 2, 3, 4.2]

# The same examples in every run: a law that fails must fail again.
lawful = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def dense_similarity(q: Tensor, k: Tensor, similarity: Any) -> Tensor:
    """``q_i^T k_j`` of Eq. 1, or ``-|q_i - k_j|_p^p`` of Eq. 6, as a ``(B, K)`` matrix."""
    if similarity == "dot":
        return torch.einsum("id,jd->ij", q, k)
    return -(q[:, None, :] - k[None, :, :]).abs().pow(similarity).sum(dim=2)


def dense_contrast(
    q: Tensor,
    k: Tensor,
    *,
    positives: Tensor | None = None,
    similarity: Any = "dot",
    temperature: Any = 1.0,
    two_sided: bool = False,
) -> Tensor:
    """Eqs. 1 and 6: minus the mean log of the positive's share among all keys."""
    scores = dense_similarity(q, k, similarity) / temperature
    if positives is None:
        positives = torch.arange(len(q))
    losses = []
    for i, j in enumerate(positives.tolist()):
        forward = torch.logsumexp(scores[i, :], dim=0) - scores[i, j]
        backward = torch.logsumexp(scores[:, j], dim=0) - scores[i, j]
        losses.append((forward + backward) / 2 if two_sided else forward)
    return torch.stack(losses).mean()


@dataclass(frozen=True)
class Case:
    """Arguments of one call of `contrast`."""

    q: Tensor
    k: Tensor
    options: dict[str, Any]

    def value_and_gradients(self, loss: Any) -> tuple[Tensor, list[Tensor]]:
        """The loss and its gradients by queries, keys and, if it is a tensor, temperature."""
        inputs = [self.q.clone().requires_grad_(), self.k.clone().requires_grad_()]
        options = dict(self.options)
        if torch.is_tensor(options["temperature"]):
            options["temperature"] = options["temperature"].clone().requires_grad_()
            inputs.append(options["temperature"])
        value = loss(inputs[0], inputs[1], **options)
        return value.detach(), list(torch.autograd.grad(value, inputs))

    def to(self, dtype: torch.dtype) -> Case:
        """The same case in another floating type."""
        temperature = self.options["temperature"]
        if torch.is_tensor(temperature):
            temperature = temperature.to(dtype)
        options = {**self.options, "temperature": temperature}
        return replace(self, q=self.q.to(dtype), k=self.k.to(dtype), options=options)


def uniform(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers in [-1, 1)."""
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(shape, dtype=dtype, generator=generator) - 1


@st.composite
def cases(draw: st.DrawFn, coldest: float = 0.2) -> Case:
    """Any shape, similarity, temperature and choice of positives that `contrast` allows."""
    # From 16 coordinates on the kernel multiplies matrices.
    width = draw(st.integers(1, 5) | st.sampled_from([15, 16, 35]))
    queries = draw(st.integers(1, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = torch.Generator().manual_seed(seed)
    order = draw(st.sampled_from(["own row", "permuted", "repeated"]))
    positives = None
    if order == "repeated":
        keys = draw(st.integers(1, 12))
        positives = torch.randint(keys, (queries,), generator=generator)
    else:
        keys = queries + draw(st.integers(0, 5))
        if order == "permuted":
            positives = torch.randperm(keys, generator=generator)[:queries]
    temperature: Any = draw(st.floats(coldest, 5.0))
    if draw(st.booleans()):
        temperature = torch.tensor(temperature, dtype=torch.float64)
    return Case(
        uniform(seed, queries, width),
        uniform(seed + 1, keys, width),
        {
            "positives": positives,
            "similarity": draw(st.sampled_from(SIMILARITIES)),
            "temperature": temperature,
            "two_sided": draw(st.booleans()),
        },
    )


def assert_same(found: Tensor, expected: Tensor, tolerance: float) -> None:
    """Compare relative to the largest entry, absolutely below one."""
    gap = (found.double() - expected.double()).abs().max()
    size = expected.double().abs().max().clamp_min(1.0)
    assert found.shape == expected.shape
    assert float(gap / size) <= tolerance, (
        f"off by {float(gap):.3g} where size is {float(size):.3g}"
    )
