"""Labelled processes: labels, classes, imbalance and noise are what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from demix import (
    DemixError,
    Laplace,
    LeakyMixing,
    Normal,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from demix.papers import ClusterProcess, cluster_vectors

SPHERE = Sphere(3)
VECTORS = cluster_vectors(Uniform(SPHERE), 6, seed=0)
PLAIN = ClusterProcess(VECTORS, VonMisesFisher(SPHERE, 10.0), LeakyMixing(3, seed=0, draws=50))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_latents_lie_around_their_vectors():
    batch = PLAIN.sample(60_000, generator=seeded())
    assert torch.equal(batch.labels, batch.clusters)
    assert torch.equal(batch.x, PLAIN.mixing(batch.z))
    for cluster, vector in enumerate(VECTORS):
        mean = batch.z[batch.clusters == cluster].mean(dim=0)
        # The mean of a vMF in three dimensions points along its vector: coth(k) - 1/k.
        torch.testing.assert_close(mean, vector * (1 / math.tanh(10) - 0.1), atol=0.02, rtol=0)


def test_instances_belong_to_classes_in_turn():
    process = replace(PLAIN, instances=20)
    batch = process.sample(5000, generator=seeded())
    assert torch.equal(batch.clusters, batch.labels % 6)
    assert batch.labels.unique().tolist() == list(range(20))


@pytest.mark.parametrize("instances", [None, 18])
def test_imbalance_is_the_ratio_of_the_extremes(instances):
    process = replace(PLAIN, imbalance=8.0, instances=instances)
    prior = process.prior
    assert prior.sum() == pytest.approx(1)
    assert prior[0] / prior[5] == pytest.approx(8)
    seen = process.sample(100_000, generator=seeded()).labels.bincount() / 100_000
    torch.testing.assert_close(seen.double(), prior, atol=0.01, rtol=0)


def test_label_noise_replaces_labels_uniformly_and_leaves_the_latents():
    clean, noisy = PLAIN, replace(PLAIN, label_noise=0.3)
    batch = noisy.sample(100_000, generator=seeded())
    assert torch.equal(batch.z, clean.sample(100_000, generator=seeded()).z)
    changed = (batch.labels != batch.clusters).double().mean()
    assert changed == pytest.approx(0.3 * 5 / 6, abs=0.01)


def of_all_labels(process, z):
    """The log posterior of every label, ``(M, N)``."""
    every = [torch.full((len(z),), label) for label in range(len(process.prior))]
    return torch.stack([process.log_posterior(z, labels) for labels in every], dim=1)


def test_the_posterior_does_not_depend_on_the_size_of_its_blocks(monkeypatch):
    batch = PLAIN.sample(50, generator=seeded())
    whole = PLAIN.log_posterior(batch.z, batch.labels)
    monkeypatch.setattr("demix.papers.reizinger2024.clusters._BLOCK", 40)
    torch.testing.assert_close(PLAIN.log_posterior(batch.z, batch.labels), whole)


def test_the_posterior_wants_a_label_for_each_latent():
    with pytest.raises(DemixError, match=r"3 latents need a label each.*shape \(2,"):
        PLAIN.log_posterior(VECTORS[:3], torch.zeros(2, dtype=torch.long))


def test_pairs_are_two_samples_of_one_cluster():
    process = replace(PLAIN, label_noise=0.3)
    pairs = process.sample_pairs(20_000, generator=seeded())
    alone = process.sample(20_000, generator=seeded())
    assert torch.equal(pairs.z, alone.z)
    torch.testing.assert_close(pairs.x_tilde, process.mixing(pairs.z_tilde))
    # Given their vector the two are independent: both lie around it, and no nearer to each other.
    vectors = process.vectors[alone.clusters]
    length = float((pairs.z_tilde * vectors).sum(dim=1).mean())
    assert length == pytest.approx(float((pairs.z * vectors).sum(dim=1).mean()), abs=0.01)
    assert float((pairs.z * pairs.z_tilde).sum(dim=1).mean()) == pytest.approx(length**2, abs=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("imbalance", [1.0, 5.0])
@pytest.mark.parametrize("instances", [None, 12])
def test_the_posterior_is_calibrated(noise, imbalance, instances):
    process = replace(PLAIN, label_noise=noise, imbalance=imbalance, instances=instances)
    batch = process.sample(60_000, generator=seeded())
    posterior = of_all_labels(process, batch.z).exp()
    torch.testing.assert_close(posterior.sum(dim=1), torch.ones(60_000, dtype=torch.float64))
    seen = torch.nn.functional.one_hot(batch.labels, posterior.shape[1]).double()
    # Where the posterior says 30 %, three of ten are.
    for low in torch.arange(0, 1, 0.1):
        inside = (posterior >= low) & (posterior < low + 0.1)
        if inside.sum() > 3000:
            assert abs(float(seen[inside].mean() - posterior[inside].mean())) < 0.02


@pytest.mark.parametrize("conditional", [Normal(Real(3), 0.5), Laplace(Real(3), 0.5)])
def test_latents_may_leave_the_sphere(conditional):
    process = ClusterProcess(VECTORS, conditional, PLAIN.mixing)
    batch = process.sample(4000, generator=seeded())
    assert batch.z.norm(dim=1).std() > 0.1
    right = of_all_labels(process, batch.z).argmax(dim=1) == batch.clusters
    assert right.double().mean() > 0.4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vectors": VECTORS[:, :2]}, r"must have the 3 columns.*\(6, 2\)"),
        ({"vectors": VECTORS[:1]}, "at least 2 clusters, but got 1"),
        ({"vectors": 2 * VECTORS}, "must lie in Sphere"),
        ({"mixing": LeakyMixing(4, seed=0, draws=10)}, "takes 4 latents"),
        ({"instances": 5}, "6 clusters needs an instance, but there are 5"),
        ({"imbalance": 0.5}, r"at least 1, but got 0\.5"),
        ({"imbalance": math.nan}, "at least 1, but got nan"),
        ({"imbalance": "abc"}, "at least 1, but got 'abc'"),
        ({"label_noise": 1.0}, r"label_noise must be a number in \[0, 1\), but got 1\.0"),
        ({"label_noise": -0.1}, r"label_noise must be a number in \[0, 1\), but got -0\.1"),
        ({"label_noise": math.nan}, r"label_noise must be a number in \[0, 1\), but got nan"),
        ({"label_noise": "abc"}, r"label_noise must be a number in \[0, 1\), but got 'abc'"),
        ({"label_noise": None}, r"label_noise must be a number in \[0, 1\), but got None"),
    ],
)
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(DemixError, match=words):
        replace(PLAIN, **changes)
