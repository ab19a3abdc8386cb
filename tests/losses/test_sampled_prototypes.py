"""Sampled prototypes: the sum over all is estimated without bias, and exact when all are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
import torch
from torch import Tensor

from demix import Classification, DemixError, InstanceDiscrimination
from demix._support.process_group.sharding import Sharding
from demix.losses.prototypes import draw_distinct, log_sums, places, sampled_log_likelihood
from dense_objectives import assert_same, uniform

pytestmark = pytest.mark.usefixtures("engine")

FEATURES, LABELS = 3 * uniform(0, 40, 4), torch.arange(40) * 7 % 9


def head(**options: object) -> Classification:
    torch.manual_seed(0)
    made = Classification(9, 4, **options).double()
    if made.bias is not None:
        made.bias.data = uniform(5, 9)
    return made


def logits(made: Classification, features: torch.Tensor) -> torch.Tensor:
    dense = features @ made.prototypes().T
    return dense if made.bias is None else dense + made.bias


def with_gradients(made: Classification, loss) -> list[torch.Tensor]:
    features = FEATURES.clone().requires_grad_()
    found = loss(made, features)
    return [found.detach(), *torch.autograd.grad(found, [features, *made.parameters()])]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


OPTIONS = [
    {},
    {"unit_prototypes": True},
    {"bias": True},
    {"noise": 0.2},
    {"unit_prototypes": True, "bias": True, "noise": 0.2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_drawing_all_prototypes_is_the_exact_loss(options):
    def loss(made: Classification, features: torch.Tensor) -> torch.Tensor:
        return made.loss(features, LABELS)

    found = with_gradients(head(**options, sampled=9), loss)
    exact = with_gradients(head(**options), loss)
    for ours, theirs in zip(found, exact, strict=True):
        assert_same(ours, theirs, 1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
@pytest.mark.parametrize("count", [2, 4, 8])
def test_it_is_the_dense_estimate_whether_or_not_the_own_prototype_is_drawn(options, count):
    made = head(**options, sampled=count)
    made.draws.manual_seed(3)
    drawn = draw_distinct(count, 9, generator(3))
    hit = (LABELS[:, None] == drawn).any(dim=1)
    assert 0 < hit.sum() < 40  # both cases are there

    def dense(made: Classification, features: torch.Tensor) -> torch.Tensor:
        e = logits(made, features).exp()
        own = e.gather(1, LABELS[:, None])[:, 0]
        others = e[:, drawn].sum(dim=1) - hit * own
        p = own / (own + 8 / (count - hit.double()) * others)
        return -((1 - made.noise) * p + made.noise / 9).log().mean()

    expected = with_gradients(made, dense)
    found = with_gradients(made, lambda made, features: made.loss(features, LABELS))
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs, 1e-10)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_prototypes_of_the_batch_give_the_dense_estimate(options):
    labels = torch.tensor([0, 2, 2, 7, 8])  # four of the nine prototypes, one of them twice
    drawn = labels.unique()

    def dense(made: Classification, features: torch.Tensor) -> torch.Tensor:
        e = logits(made, features[:5]).exp()
        own = e.gather(1, labels[:, None])[:, 0]
        p = own / (own + 8 / 3 * (e[:, drawn].sum(dim=1) - own))
        return -((1 - made.noise) * p + made.noise / 9).log().mean()

    made = head(**options, sampled="batch")
    found = with_gradients(made, lambda made, features: made.loss(features[:5], labels))
    for ours, theirs in zip(found, with_gradients(made, dense), strict=True):
        assert_same(ours, theirs, 1e-10)


def test_a_batch_with_all_labels_gives_the_exact_loss():
    assert set(LABELS.tolist()) == set(range(9))
    found = head(sampled="batch").loss(FEATURES, LABELS)
    assert_same(found.detach(), head().loss(FEATURES, LABELS).detach(), 1e-12)


def estimated_denominator(
    queries: Tensor, keys: Tensor, drawn: Tensor, positives: Tensor
) -> Tensor:
    """The sum over all keys ``(B,)`` as it follows from those that were drawn."""
    matched, place = (queries * keys[positives]).sum(dim=1), places(drawn, positives)
    others = log_sums(queries, keys[drawn], Sharding((len(keys),)), skip=place)
    represented = len(drawn) - (place >= 0).long()
    return (matched - sampled_log_likelihood(matched, others, represented, len(keys))).exp()


def test_the_denominator_of_a_batch_of_uniform_labels_is_unbiased():
    total, rounds = 12, 2000
    query, keys, draws = uniform(1, 1, 3), 2 * uniform(2, total, 3), generator(0)
    exact = (query @ keys.T).exp().sum()
    estimates = []
    for _ in range(rounds):
        labels = torch.randint(total, (5,), generator=draws)
        drawn, own = labels.unique(), labels[:1]
        if len(drawn) < 2:
            continue  # refused by the objective
        estimates.append(estimated_denominator(query, keys, drawn, own))
    found = torch.cat(estimates)
    assert abs(found.mean() - exact) < 4.5 * found.std() / len(found) ** 0.5


def test_the_prototypes_of_the_batch_are_the_only_ones_with_a_gradient():
    made = head(sampled="batch")
    made.loss(FEATURES[:3], torch.tensor([1, 4, 4])).backward()
    touched = made.weight.grad.abs().sum(dim=1) > 0
    assert touched.nonzero()[:, 0].tolist() == [1, 4]


def test_the_estimated_denominator_is_unbiased_with_and_without_a_hit():
    total, count = 12, 4
    queries, keys = uniform(1, 6, 3), 2 * uniform(2, total, 3)
    positives = torch.tensor([0, 1, 5, 5, 8, 11])
    estimates, hits = [], []
    for drawn in map(torch.tensor, combinations(range(total), count)):  # each equally probable
        estimates.append(estimated_denominator(queries, keys, drawn, positives))
        hits.append(places(drawn, positives) >= 0)
    exact = (queries @ keys.T).exp().sum(dim=1)
    found, hit = torch.stack(estimates), torch.stack(hits)
    for chosen in (torch.ones_like(hit), hit, ~hit):
        assert_same((found * chosen).sum(dim=0) / chosen.sum(dim=0), exact, 1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_any_set_of_prototypes_is_as_likely_as_another(count):
    draws = generator(0)
    seen = Counter(tuple(draw_distinct(count, 5, draws).tolist()) for _ in range(5000))
    assert len(seen) == 10
    assert all(list(rows) == sorted(set(rows)) for rows in seen)
    assert all(abs(times - 500) < 4.5 * (5000 * 0.1 * 0.9) ** 0.5 for times in seen.values())


@pytest.mark.parametrize(("count", "total"), [(2, 2), (5, 10), (9, 10), (4096, 1_000_000)])
def test_drawn_prototypes_are_in_order_and_none_comes_twice(count, total):
    drawn = draw_distinct(count, total, generator(0))
    assert drawn.shape == (count,)
    assert bool((drawn.diff() > 0).all())
    assert 0 <= int(drawn[0]) <= int(drawn[-1]) < total


def test_places_are_those_of_drawn_prototypes_only():
    drawn = torch.tensor([2, 5, 7])
    assert places(drawn, torch.tensor([0, 2, 5, 6, 7, 9])).tolist() == [-1, 0, 1, -1, 2, -1]


def test_only_prototypes_that_take_part_have_a_gradient():
    made = head(bias=True, sampled=2)
    made.draws.manual_seed(0)
    made.loss(FEATURES[:3], torch.tensor([4, 4, 6])).backward()
    part = {4, 6, *draw_distinct(2, 9, generator(0)).tolist()}
    for gradient in (made.weight.grad, made.bias.grad):
        assert set(gradient.reshape(9, -1).abs().sum(dim=1).nonzero()[:, 0].tolist()) == part


def test_the_start_decides_the_draws_and_the_global_generator_has_no_part():
    def losses(seed: int) -> list[float]:
        made = head(sampled=3)
        made.initialise(generator(seed))
        before = torch.get_rng_state()
        found = [made.loss(FEATURES, LABELS).item() for _ in range(4)]
        assert torch.equal(torch.get_rng_state(), before)
        return found

    first = losses(1)
    assert len(set(first)) > 1
    assert losses(1) == first
    assert losses(2) != first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampled": 1}, "between 2 and the number of prototypes, 9, .*but got 1"),
        ({"sampled": "all"}, "between 2 and .*\"batch\" for those of the batch.*got 'all'"),
        ({"sampled": 2.5}, "between 2 and .*got 2.5"),
        ({"sampled": 10}, "between 2 and the number of prototypes, 9, .*but got 10"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    for kind in (Classification, InstanceDiscrimination):
        with pytest.raises(DemixError, match=words):
            kind(9, 4, **options)


def test_a_batch_with_one_label_cannot_stand_for_all():
    with pytest.raises(DemixError, match="all of its 3 samples have label 4; take larger"):
        head(sampled="batch").loss(FEATURES[:3], torch.full((3,), 4))
