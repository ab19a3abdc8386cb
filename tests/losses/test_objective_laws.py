"""What every objective must satisfy, whether it looks at pairs or at labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from demix import (
    Box,
    Classification,
    Encoder,
    InfoNCE,
    InstanceDiscrimination,
    Pairs,
    Real,
    Space,
    Sphere,
)
from demix.papers import (
    AlignmentUniformity,
    AnchorInfoNCE,
    GeneralizedContrastive,
    Labelled,
    TimeContrastive,
)
from demix.papers.runner.original import LatentMSE
from dense_objectives import SIMILARITIES, assert_same, dense_contrast, dense_similarity, uniform

pytestmark = pytest.mark.usefixtures("engine")

# 36 samples of 3 observations and 4 latents; every one of 9 classes has 4 samples.
X, LABELS = uniform(0, 36, 3), torch.arange(36) * 7 % 9
PAIRS = Pairs(uniform(1, 36, 4), uniform(2, 36, 4), X, X + 0.3 * uniform(3, 36, 3))
LABELLED = Labelled(uniform(1, 36, 4), X, LABELS, LABELS)


def dense_info_nce(objective: InfoNCE, encoder: Encoder, pairs: Pairs) -> Tensor:
    """Eqs. 1 and 6 of Zimmermann et al. (2021)."""
    return dense_contrast(
        encoder(pairs.x),
        encoder(pairs.x_tilde),
        similarity=objective.similarity,
        temperature=objective.temperature,
        two_sided=objective.two_sided,
    )


def dense_alignment(objective: AlignmentUniformity, encoder: Encoder, pairs: Pairs) -> Tensor:
    """Eqs. 12 and 56 of the same, with the inner mean over the anchors."""
    z, z_tilde = encoder(pairs.x), encoder(pairs.x_tilde)
    pull = dense_similarity(z, z_tilde, objective.similarity).diagonal()
    push = dense_similarity(z, z, objective.similarity)
    return push.exp().mean(dim=1).log().mean() - pull.mean()


def dense_anchors(objective: AnchorInfoNCE, encoder: Encoder, pairs: Pairs) -> Tensor:
    """Eqs. 1 and 6: the positive among the other anchors, or among all as in the scripts."""
    z, z_tilde = encoder(pairs.x), encoder(pairs.x_tilde)
    near = dense_similarity(z, z_tilde, objective.similarity).diagonal()[:, None]
    far = dense_similarity(z, z, objective.similarity)
    if not objective.itself:
        far = far.masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return -torch.cat([near, far], dim=1).log_softmax(dim=1)[:, 0].mean()


def dense_supervised(_: LatentMSE, encoder: Encoder, pairs: Pairs) -> Tensor:
    """The mean squared error of both sides."""
    errors = [encoder(pairs.x) - pairs.z, encoder(pairs.x_tilde) - pairs.z_tilde]
    return torch.stack(errors).square().mean()


def dense_classification(objective: Classification, encoder: Encoder, batch: Labelled) -> Tensor:
    """Cross-entropy between the targets and the chances of all classes."""
    h, rows = encoder(batch.x), objective.weight
    if isinstance(objective, TimeContrastive):
        maps = {"identity": h, "absolute": h.abs(), "square": h * h}
        h = torch.cat([maps[name] for name in objective.statistics], dim=1)
    if objective.unit_prototypes:
        rows = rows / rows.square().sum(dim=1, keepdim=True).sqrt()
    weight = torch.einsum("bd,cd->bc", h, rows).exp()
    if objective.bias is not None:
        weight = weight * objective.bias.exp()
    chance = weight / weight.sum(dim=1, keepdim=True)
    seen = (1 - objective.noise) * chance + objective.noise / 9
    target = torch.eye(9, dtype=h.dtype)[batch.labels]
    return -(target * seen.log()).sum(dim=1).mean()


def log_ratios(objective: GeneralizedContrastive, h: Tensor) -> Tensor:
    """``r(x, u)`` of all samples and all labels, ``(B, 9)``."""
    return h @ objective.weight.T + objective.bias + objective.common(h)


def dense_generalized(
    objective: GeneralizedContrastive, encoder: Encoder, batch: Labelled
) -> Tensor:
    """Logistic regression: a sample's own label is true, those of all others are false."""
    ratios, losses = log_ratios(objective, encoder(batch.x)), []
    for i, u in enumerate(batch.labels.tolist()):
        others = torch.cat([batch.labels[:i], batch.labels[i + 1 :]])
        false = (1 - ratios[i, others].sigmoid()).log().mean()
        losses.append(-ratios[i, u].sigmoid().log() - false)
    return torch.stack(losses).mean()


@dataclass(frozen=True)
class Case:
    """How to make an objective, the space of the encoder, a batch and the definition."""

    make: Callable[[], Any]
    space: Space
    batch: Any
    dense: Callable[[Any, Encoder, Any], Tensor]

    def build(self) -> tuple[Any, Encoder]:
        """Return objective and encoder in float64, the same every time."""
        torch.manual_seed(0)
        objective, encoder = self.make(), Encoder(3, self.space, hidden=(8, 8), scale=2.0)
        if isinstance(objective, nn.Module):
            objective.double()
            if objective.bias is not None:
                objective.bias.data = uniform(5, 9)
        return objective, encoder.double()


def info_nce(similarity: Any, two_sided: bool) -> Case:
    made = InfoNCE(similarity, 0.5, two_sided)
    return Case(lambda: made, Box(4), PAIRS, dense_info_nce)


def alignment(similarity: Any) -> Case:
    return Case(lambda: AlignmentUniformity(similarity), Box(4), PAIRS, dense_alignment)


def labels(kind: Callable[..., Any], space: Space, **options: Any) -> Case:
    return Case(lambda: kind(9, 4, **options), space, LABELLED, dense_classification)


CASES = {
    **{
        f"InfoNCE {s} {'two-sided' if t else 'one-sided'}": info_nce(s, t)
        for s in SIMILARITIES
        for t in (False, True)
    },
    "InfoNCE on a sphere": Case(InfoNCE, Sphere(4), PAIRS, dense_info_nce),
    **{f"AlignmentUniformity {s}": alignment(s) for s in SIMILARITIES},
    **{
        f"AnchorInfoNCE {s} {itself}": Case(
            lambda s=s, itself=itself: AnchorInfoNCE(s, itself), Box(4), PAIRS, dense_anchors
        )
        for s, itself in (("dot", True), (1, False), (2, True), (1.5, False))
    },
    "LatentMSE": Case(LatentMSE, Box(4), PAIRS, dense_supervised),
    "C1": labels(Classification, Sphere(4), unit_prototypes=True),
    "C2": labels(Classification, Sphere(4)),
    "C3": labels(Classification, Real(4), unit_prototypes=True),
    "C4": labels(Classification, Real(4)),
    "C4 bias": labels(Classification, Real(4), bias=True),
    "C4 noise": labels(Classification, Real(4), noise=0.8),
    "C1 bias noise": labels(Classification, Sphere(4), unit_prototypes=True, bias=True, noise=0.1),
    "DIET": labels(InstanceDiscrimination, Sphere(4)),
    "DIET unit prototypes": labels(InstanceDiscrimination, Sphere(4), unit_prototypes=True),
    "TCL": labels(TimeContrastive, Real(4)),
    "TCL statistics": labels(TimeContrastive, Real(4), statistics=("square", "absolute")),
    "GCL": Case(lambda: GeneralizedContrastive(9, 4), Real(4), LABELLED, dense_generalized),
}
every_objective = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def parameters(objective: Any, encoder: Encoder) -> dict[str, nn.Parameter]:
    own = dict(objective.named_parameters()) if isinstance(objective, nn.Module) else {}
    return dict(encoder.named_parameters()) | own


def value_and_gradients(loss: Tensor, objective: Any, encoder: Encoder) -> list[Tensor]:
    return [loss.detach(), *torch.autograd.grad(loss, [*parameters(objective, encoder).values()])]


def assert_all_same(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs, tolerance)


def reordered(batch: Any, order: Tensor) -> Any:
    return type(batch)(*(column[order] for column in batch))


@every_objective
def test_value_and_gradients_are_those_of_the_definition(case: Case) -> None:
    objective, encoder = case.build()
    found = value_and_gradients(objective(encoder, case.batch), objective, encoder)
    dense = case.dense(objective, encoder, case.batch)
    assert_all_same(found, value_and_gradients(dense, objective, encoder), 1e-10)


@every_objective
def test_the_order_of_a_batch_does_not_matter(case: Case) -> None:
    objective, encoder = case.build()
    order = torch.arange(36) * 11 % 36
    expected = value_and_gradients(objective(encoder, case.batch), objective, encoder)
    loss = objective(encoder, reordered(case.batch, order))
    assert_all_same(value_and_gradients(loss, objective, encoder), expected, 1e-12)


@every_objective
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_extreme_features_give_finite_losses_and_gradients(case: Case, size: float) -> None:
    objective, encoder = case.build()
    if isinstance(objective, nn.Module):
        objective.float()
    encoder.float().log_scale.data.fill_(size).log_()
    batch = type(case.batch)(
        *(column.float() if column.is_floating_point() else column for column in case.batch)
    )
    loss = objective(encoder, batch)
    assert all(t.isfinite().all() for t in value_and_gradients(loss, objective, encoder))


@every_objective
def test_the_gradient_reaches_every_parameter_and_every_prototype(case: Case) -> None:
    objective, encoder = case.build()
    objective(encoder, case.batch).backward()
    for name, parameter in parameters(objective, encoder).items():
        assert parameter.grad is not None, name
        pull = parameter.grad.abs()
        assert (pull.sum(dim=1).min() if name == "weight" else pull.max()) > 1e-9, name


@every_objective
def test_a_repeated_call_gives_the_same_bits(case: Case) -> None:
    objective, encoder = case.build()
    first, second = (
        value_and_gradients(objective(encoder, case.batch), objective, encoder) for _ in range(2)
    )
    assert all(map(torch.equal, first, second))


def same_bits(first: Case, second: Case) -> bool:
    results = [
        value_and_gradients(objective(encoder, LABELLED), objective, encoder)
        for objective, encoder in (first.build(), second.build())
    ]
    return all(map(torch.equal, *results))


def test_diet_with_classes_as_instances_is_supervised_classification() -> None:
    diet = labels(InstanceDiscrimination, Sphere(4))
    assert same_bits(diet, labels(Classification, Sphere(4)))


def test_time_contrastive_learning_of_the_identity_is_diet_with_free_prototypes() -> None:
    segments = labels(TimeContrastive, Real(4), bias=False)
    assert same_bits(segments, labels(InstanceDiscrimination, Real(4)))


def test_gcl_is_the_mean_over_all_shuffles_that_leave_no_label_in_its_place() -> None:
    objective, encoder = CASES["GCL"].build()
    few = reordered(LABELLED, torch.arange(5))
    ratios = log_ratios(objective, encoder(few.x))[:, few.labels]
    shuffles = [order for order in permutations(range(5)) if all(map(int.__ne__, order, range(5)))]
    false = [
        (1 - ratios[torch.arange(5), list(order)].sigmoid()).log().mean() for order in shuffles
    ]
    expected = -ratios.diagonal().sigmoid().log().mean() - torch.stack(false).mean()
    assert_same(objective(encoder, few).detach(), expected.detach(), 1e-12)
