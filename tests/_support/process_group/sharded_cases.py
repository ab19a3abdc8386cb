"""Every objective on a batch that lies on several ranks, beside one process with all of it.

A program: `main(ranks, file)` writes for each case the largest error of the loss and of the
gradients, averaged over ranks as `DistributedDataParallel` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
    ShapedInfoNCE,
    Sphere,
    contrast,
)
from demix._support.process_group.group import Ranks
from demix.losses import pairs as pair_losses
from demix.losses import streaming, tiles
from demix.losses.pairs import DynamicsInfoNCE, PotentialInfoNCE
from demix.papers import (
    AlignmentUniformity,
    AnchorInfoNCE,
    GeneralizedContrastive,
    Labelled,
    LogDet,
    TimeContrastive,
)
from demix.papers.runner.original import LatentMSE
from demix.papers.zimmermann2021.alignment import PotentialLimit
from demix.papers.zimmermann2021.videos import SlowVAE
from forked_ranks import fork_ranks

# So many samples, and how they lie on the ranks: unevenly, and with none on some.
SAMPLES = 34
SHARES = (20, 1, 13), (0, 33, 1)
FEW = [(2, 0, 1)]


def uniform(seed: int, *shape: int) -> Tensor:
    """Numbers in [-1, 1)."""
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(shape, dtype=torch.float64, generator=generator) - 1


X, LABELS = uniform(0, SAMPLES, 3), torch.arange(SAMPLES) * 7 % 9
PAIRS = Pairs(uniform(1, SAMPLES, 4), uniform(2, SAMPLES, 4), X, X + 0.3 * uniform(3, SAMPLES, 3))
LABELLED = Labelled(uniform(1, SAMPLES, 4), X, LABELS, LABELS)
IMAGES = Pairs(*(uniform(seed, 3, 1, 64, 64).abs() for seed in range(4)))


class Chosen(NamedTuple):
    """Samples whose positives are the keys of others, and of other ranks."""

    x: Tensor
    x_tilde: Tensor
    positives: Tensor


CHOSEN = Chosen(PAIRS.x, PAIRS.x_tilde, torch.arange(SAMPLES) * 5 % 17)


class Contrast(nn.Module):
    """The function itself, with a temperature and a potential that are learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))
        self.potential = nn.Parameter(torch.ones(3))
        self.group = None

    def across(self, group: Any) -> Contrast:
        """Take batches that lie on ranks."""
        self.group = group
        return self

    def forward(self, encoder: nn.Module, batch: Chosen) -> Tensor:
        """Contrast queries with keys that are not their own."""
        return contrast(
            encoder(batch.x),
            encoder(batch.x_tilde),
            positives=batch.positives,
            similarity=2,
            temperature=self.temperature.exp(),
            two_sided=True,
            potential=(batch.x @ self.potential, (batch.x_tilde @ self.potential).square()),
            group=self.group,
        )


class Flat(nn.Module):
    """An encoder of images that is small: a map of a few pixels."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Take images to means and log-variances of two latents."""
        outputs: Tensor = self.linear(x[:, 0, ::8, ::8].flatten(1))
        return outputs


def encoder_to(space: Any) -> Encoder:
    """An encoder in float64, the same every time."""
    torch.manual_seed(0)
    return Encoder(3, space, hidden=(8, 8), scale=2.0).double()


def module(make: Callable[[], nn.Module]) -> nn.Module:
    """An objective with parameters in float64, none of them zero, the same every time."""
    torch.manual_seed(1)
    made = make().double()
    for number, parameter in enumerate(made.parameters()):
        parameter.data = 0.5 * uniform(10 + number, *parameter.shape)
    return made


def objectives() -> Iterator[tuple[str, Callable[[], Any], Any, Any]]:
    """Yield a name, how to make the objective, the space and the batch."""
    both = (False, True)
    for similarity, chosen in {"dot": both, 2: both, 1: (True,), 1.5: (True,), 3: (False,)}.items():
        for two_sided in chosen:
            made = InfoNCE(similarity, 0.5, two_sided)
            yield f"InfoNCE {similarity} {two_sided=}", lambda made=made: made, Box(4), PAIRS
    for similarity in ("dot", 3):
        made = AlignmentUniformity(similarity)
        yield f"AlignmentUniformity {similarity}", lambda made=made: made, Box(4), PAIRS
    for itself in both:
        made = AnchorInfoNCE(1, itself)
        yield f"AnchorInfoNCE {itself}", lambda made=made: made, Box(4), PAIRS
    for within in (2, 5, 100):
        made = InfoNCE(2, within=within)
        yield f"InfoNCE {within=}", lambda made=made: made, Box(4), PAIRS
    yield "chosen positives", Contrast, Box(4), CHOSEN
    yield "InfoNCE on a sphere", InfoNCE, Sphere(4), PAIRS
    yield "LatentMSE", LatentMSE, Box(4), PAIRS
    for shape in (1.0, 2.5):
        yield f"shaped {shape}", lambda p=shape: ShapedInfoNCE(4, shape=p), Box(4), PAIRS
    for similarity in ("dot", 1):
        made = lambda p=similarity: PotentialInfoNCE(4, similarity=p)  # noqa: E731
        yield f"potential {similarity}", made, Box(4), PAIRS
    yield "potential in the limit", lambda: PotentialLimit(4, similarity=3), Box(4), PAIRS
    yield "potential of dynamics", lambda: DynamicsInfoNCE(4), Real(4), PAIRS
    yield "narrow noise", lambda: LogDet(3), Real(3), PAIRS
    yield "narrow noise in a box", lambda: LogDet(3), Box(3), PAIRS
    yield "shape learnt", lambda: ShapedInfoNCE(4, learn_shape=True), Box(4), PAIRS
    for name, options in {
        "plain": {},
        "unit prototypes": {"unit_prototypes": True},
        "bias": {"bias": True},
        "noise": {"noise": 0.8},
        "sampled": {"sampled": 5, "bias": True},
        "sampled, all": {"sampled": 9, "noise": 0.1},
        "prototypes of the batch": {"sampled": "batch", "unit_prototypes": True},
    }.items():
        made = lambda options=options: Classification(9, 4, **options)  # noqa: E731
        yield f"classes, {name}", made, Real(4), LABELLED
    yield "DIET", lambda: InstanceDiscrimination(9, 4), Sphere(4), LABELLED
    statistics = ("square", "absolute")
    yield "TCL", lambda: TimeContrastive(9, 4, statistics=statistics), Real(4), LABELLED
    yield "GCL", lambda: GeneralizedContrastive(9, 4), Real(4), LABELLED
    yield "SlowVAE", lambda: SlowVAE(2, (1, 64, 64)), None, IMAGES


def build(make: Callable[[], Any], space: Any) -> tuple[Any, nn.Module]:
    """Return objective and encoder."""
    encoder = Flat().double() if space is None else encoder_to(space)
    made = make()
    return (module(make) if isinstance(made, nn.Module) else made), encoder


def own_part(batch: Any, sizes: tuple[int, ...], rank: int) -> Any:
    """Return the part of a batch that lies on a rank."""
    start = sum(sizes[:rank])
    return type(batch)(*(column[start : start + sizes[rank]] for column in batch))


def gradients_of(loss: Tensor, *modules: Any) -> list[Tensor]:
    """Return the gradients of all parameters; zeros where none arrived."""
    for made in modules:
        if isinstance(made, nn.Module):
            made.zero_grad()
    loss.backward()
    every = [p for made in modules if isinstance(made, nn.Module) for p in made.parameters()]
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in every]


def error(found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference, relative to the size of what is expected."""
    gaps = [
        float((a - b).abs().max() / (1 + b.abs().max())) if a.shape == b.shape else float("inf")
        for a, b in zip(found, expected, strict=True)
    ]
    return max(gaps, default=0.0) if all(gap == gap for gap in gaps) else float("inf")


def alone(make: Callable[[], Any], space: Any, batch: Any) -> list[Tensor]:
    """Return the loss and all gradients of one process with the whole batch."""
    objective, encoder = build(make, space)
    loss = objective(encoder, batch)
    return [loss.detach(), *gradients_of(loss, encoder, objective)]


def averaged(
    make: Callable[[], Any], space: Any, batch: Any, sizes: tuple[int, ...]
) -> list[Tensor]:
    """Return averages over ranks of the loss and of all gradients."""
    ranks = Ranks.current()
    objective, encoder = build(make, space)
    before = [p.detach() for p in objective.parameters()] if _learns(objective) else []
    torch.manual_seed(ranks.rank)  # what ranks draw must not come from here
    shared = objective.across(ranks.group)
    loss = shared(encoder, own_part(batch, sizes, ranks.rank))
    found = [loss, *gradients_of(loss, encoder)]
    if not _learns(objective):
        return averages(found)
    own = [p.grad for p in objective.parameters()]
    if isinstance(objective, Classification):  # on one rank each, and not averaged
        found = averages(found) + [objective.sharding.gathered(g) for g in own]
    else:
        found = averages(found + own)
    objective.across(None)
    assert all(map(torch.equal, objective.parameters(), before))
    return found


def averages(own: list[Tensor]) -> list[Tensor]:
    """Return averages over ranks, in one exchange: many would take most of the time."""
    means = Ranks.current().average(torch.cat([x.detach().flatten() for x in own]))
    parts = means.split([x.numel() for x in own])
    return [part.reshape(x.shape) for part, x in zip(parts, own, strict=True)]


def _learns(objective: Any) -> bool:
    return isinstance(objective, nn.Module)


def errors_of_all(only: tuple[str, ...], shares: Any) -> dict[str, float]:
    """Return the error of each case; rank 0 computes what is expected."""
    errors, ranks = {}, Ranks.current()
    for name, make, space, batch in objectives():
        if not name.startswith(only):
            continue
        expected = alone(make, space, batch) if ranks.leads else []
        for sizes in FEW if space is None else shares:
            found = averaged(make, space, batch, sizes)
            if ranks.leads:
                errors[f"{name}, {sizes}"] = error(found, expected)
    return errors


def work(file: Path) -> Callable[[int], None]:
    """Return what each rank does."""

    def run(rank: int) -> None:
        pair_losses._GROUP = 8  # so that a learnt shape has groups across ranks
        uneven, some = SHARES
        errors = errors_of_all(("",), [some])
        # Where it matters that groups and positives reach over more than two ranks.
        errors |= errors_of_all(("InfoNCE within", "chosen", "shape learnt", "Align"), [uneven])
        streaming._engine = lambda *_: tiles
        few = ("InfoNCE dot", "InfoNCE 1 ", "InfoNCE 3", "classes, sampled")
        found = errors_of_all(few, [uneven])
        errors |= {f"{name}, tiles": value for name, value in found.items()}
        if rank == 0:
            file.write_text(json.dumps(errors))

    return run


def main(count: int, file: str) -> None:
    """Compare all cases on so many ranks."""
    codes = fork_ranks(count, work(Path(file)))
    assert codes == [0] * count, codes
