"""Training on sampled prototypes: as good as on all of them."""

from __future__ import annotations

import pytest
import torch

from demix import (
    Classification,
    Encoder,
    Real,
    Recipe,
    affine_r2,
    train,
)
from demix.losses.prototypes import draw_distinct
from demix.papers import ClusterProcess, Labelled
from small_processes import sphere_labels

ROWS, DRAWN, STEPS = 500, 8, 3


def few_labels(size: int, *, generator: torch.Generator) -> Labelled:
    """Draw samples of all labels."""
    x = torch.randn(size, 2, generator=generator)
    labels = torch.randint(ROWS, (size,), generator=generator)
    return Labelled(x, x, labels, labels)


def rows_after_each_step() -> tuple[list[torch.Tensor], list[set]]:
    """Return the table before and after each step, and which prototypes took part in it."""
    torch.manual_seed(0)
    objective = Classification(ROWS, 2, sampled=DRAWN)
    objective.draws.manual_seed(0)
    draws = torch.Generator().manual_seed(0)
    tables, parts = [objective.weight.detach().clone()], []

    def sample(size: int, *, generator: torch.Generator) -> Labelled:
        batch = few_labels(size, generator=generator)
        drawn = draw_distinct(DRAWN, ROWS, draws)
        parts.append({*batch.labels.tolist(), *drawn.tolist()})
        return batch

    # The table is kept as it is, so that its steps can be compared with it.
    recipe = Recipe(steps=STEPS, batch=4, whiten=False, initialise=False)
    train(
        Encoder(2, Real(2), hidden=(8,)),
        sample,
        objective,
        recipe,
        callback=lambda step, record: tables.append(objective.weight.detach().clone()),
    )
    return tables, parts


def moved(before: torch.Tensor, after: torch.Tensor) -> set[int]:
    return set((before != after).any(dim=1).nonzero()[:, 0].tolist())


def test_prototypes_move_on_after_the_step_they_took_part_in():
    tables, parts = rows_after_each_step()
    assert moved(tables[1], tables[2]) == parts[0] | parts[1]
    assert moved(tables[2], tables[3]) == parts[0] | parts[1] | parts[2]


def test_the_same_seed_gives_the_same_prototypes_to_the_bit():
    first, again = (rows_after_each_step()[0][-1] for _ in range(2))
    assert torch.equal(first, again)


@pytest.fixture(scope="module")
def clusters() -> ClusterProcess:
    return sphere_labels(classes=100, draws=50)


def score(clusters: ClusterProcess, *, sampled: int | None) -> float:
    torch.manual_seed(0)
    encoder = Encoder(2, Real(2), hidden=(32,) * 3)
    objective = Classification(100, 2, sampled=sampled)
    train(encoder, clusters.sample, objective, Recipe(steps=300, batch=256))
    batch = clusters.sample(8192, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        return float(affine_r2(encoder(batch.x), batch.z))


def test_half_of_the_prototypes_invert_the_process_about_as_well_as_all(clusters):
    exact = score(clusters, sampled=None)
    assert exact > 0.98
    assert score(clusters, sampled=50) > exact - 0.01


_MANY = """
import resource, sys, torch
from demix import Encoder, InstanceDiscrimination, Real, Recipe, train
from demix.papers import Labelled

rows = 250_000

def sample(size, *, generator):
    x = torch.randn(size, 32, generator=generator)
    labels = torch.randint(rows, (size,), generator=generator)
    return Labelled(x, x, labels, labels)

training = train(
    Encoder(32, Real(32), hidden=(64, 64)),
    sample,
    InstanceDiscrimination(rows, 32),
    Recipe(steps=2, batch=1024),
)
unit = 1 if sys.platform == "darwin" else 1024
print(training.steps, unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_many_prototypes_train_exactly_in_little_memory(demix):
    # The second step has everything in memory: the moments come with the first. The logits of all
    # prototypes alone would be 1 GB, as their gradients; all together it takes 0.6.
    done = demix.run_python(_MANY)
    assert done.returncode == 0, done.stderr
    steps, peak = map(int, done.stdout.split())
    assert steps == 2
    assert peak < 1e9
