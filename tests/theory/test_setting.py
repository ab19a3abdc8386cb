"""From a setting to what the theorems promise, and the same in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from demix import (
    Box,
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    InstanceDemixer,
    Product,
    Real,
    Sphere,
    Uniform,
)
from demix.papers import cluster_vectors
from demix.theory.setting import Equivalence, Setting, identified, weakest
from walks import TINY, sphere_walk


def vectors(count: int, d: int = 5, *, flat: bool = False) -> torch.Tensor:
    drawn = cluster_vectors(Uniform(Sphere(d)), count, seed=0)
    drawn[:, 0] = 0.5 if flat else drawn[:, 0]
    return drawn


def labels(space, *, unit=False, **settings):
    return Setting("labels", space, unit_prototypes=unit, **settings)


@pytest.mark.parametrize(
    ("estimator", "name", "theorem"),
    [
        (ContrastiveDemixer(3), "orthogonal", "Theorem 2"),
        (ContrastiveDemixer(3, space="sphere", conditional="normal"), "orthogonal", "Theorem 2"),
        (ContrastiveDemixer(3, conditional="anisotropic"), "orthogonal", "Rusak"),
        (ContrastiveDemixer(3, space="sphere", conditional="laplace"), "none", None),
        (ContrastiveDemixer(3, conditional="laplace"), "permutation", "any marginal"),
        (ContrastiveDemixer(3, space="box"), "permutation", "Theorem 6"),
        (ContrastiveDemixer(3, space="real", conditional=4), "none", None),
        (ContrastiveDemixer(3, space="l1_ball", conditional=1), "permutation", "Theorem 6"),
        (ContrastiveDemixer(3, space="box", conditional=2), "affine", "Theorem 5"),
        (ContrastiveDemixer(3, space="real", conditional="normal"), "none", None),
        (ContrastiveDemixer(3, space="box", conditional="auto"), "affine", "Theorem 5"),
        (ContrastiveDemixer(5, space=Product([Sphere(3), Box(2)])), "none", None),
        (ClassifierDemixer(3), "linear", "case C4, of Reizinger"),
        (ClassifierDemixer(3, space="sphere"), "orthogonal", "case C2, of Reizinger"),
        (ContrastiveDemixer(3, marginal="any"), "orthogonal", "Theorem 2"),
        (ContrastiveDemixer(3, space="box", marginal="any"), "permutation", "any marginal"),
        (ContrastiveDemixer(3, space="real", marginal="any"), "permutation", "Theorem 6"),
        (
            ContrastiveDemixer(3, space="real", conditional="normal", marginal="any"),
            "affine",
            "Theorem 5",
        ),
        (ContrastiveDemixer(3, space="real", conditional="dynamics"), "affine", "linear dynamics"),
    ],
    ids=repr,
)
def test_an_estimator_relies_on_its_theorem(estimator, name, theorem):
    found = identified(estimator.setting())
    assert found.name == name
    assert found.sphere == (name == "orthogonal")
    assert found.theorem is None if theorem is None else theorem in found.theorem
    assert bool(found.conditions) != bool(found.reasons)
    # Where no theorem applies, runs are compared up to the largest class.
    assert weakest([found, found]).name == ("affine" if name == "none" else name)


def test_noise_in_the_columns_is_covered_by_no_theorem():
    found = identified(InstanceDemixer(3).setting())
    assert found.name == "none"
    assert found.reasons[0].startswith("noise in the observations is not vMF")
    found = identified(InstanceDemixer(3, augmentation=torch.clone).setting())
    assert (found.name, found.case) == ("linear", "C4")


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_learnt_shape_counts_once_it_is_learnt():
    demixer = ContrastiveDemixer(2, space="box", conditional="auto", **TINY)
    demixer.fit(sphere_walk(200)[1])
    for shape, name in [(1.2, "permutation"), (2.3, "affine"), (4.0, "permutation")]:
        demixer.objective_.fixed = shape
        assert identified(demixer.setting()).name == name


def test_models_that_differ_share_an_affine_map():
    box, sphere = (identified(Setting("pairs", s, "normal")) for s in (Box(2), Sphere(2)))
    assert weakest([box, sphere]) == Equivalence("affine")


@pytest.mark.parametrize(
    ("space", "unit", "case", "name", "prototypes"),
    [
        (Sphere(5), True, "C1", "orthogonal", "orthogonal"),
        (Sphere(5), False, "C2", "orthogonal", "affine"),
        (Real(5), True, "C3", "orthogonal", "orthogonal"),
        (Real(5), False, "C4", "linear", "affine"),
    ],
)
def test_the_four_cases(space, unit, case, name, prototypes):
    found = identified(labels(space, unit=unit), vectors(100))
    assert (found.case, found.name, found.prototypes) == (case, name, prototypes)
    assert (found.reasons, found.sphere) == ((), isinstance(space, Sphere))


@pytest.mark.parametrize("few", [vectors(5), vectors(100, flat=True)])
@pytest.mark.parametrize("space", [Sphere(5), Real(5)])
@pytest.mark.parametrize("unit", [True, False])
def test_without_an_affine_generator_system_nothing_is_promised(few, space, unit):
    found = identified(labels(space, unit=unit), few)
    assert (found.name, found.prototypes, found.theorem) == ("none", "none", None)
    assert "span 4 of 5 dimensions affinely" in found.reasons[0]
    assert "at least 6" in found.reasons[0]


def test_data_that_are_diverse_for_the_paper_only_are_linear():
    found = identified(labels(Real(5), unit=True), vectors(10))
    assert found.name == "linear"
    assert "rank 10 of 20" in found.reasons[0]
    assert "rank 10 of 10, holds" in found.reasons[0]


def test_classes_with_a_covariance_each_are_affine():
    found = identified(labels(Real(3), conditional="covariances"))
    assert (found.name, found.case, found.theorem) == (
        "affine",
        None,
        "the theorem on quadratic logits",
    )
    assert "n (n + 3) / 2 + 1 classes" in found.conditions[-1]
    noisy = identified(labels(Real(3), conditional="covariances", label_noise=0.1))
    assert (noisy.name, noisy.theorem) == ("none", None)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (labels(Real(5), conditional="Laplace(0.1)"), r"Laplace\(0\.1\) is not vMF"),
        (labels(Real(5), label_noise=0.2), "20% of the labels are random"),
        (Setting("pairs", Sphere(3), marginal="normal"), "not uniform, but normal"),
        (Setting("pairs", Box(3), "cauchy"), "No theorem covers the conditional 'cauchy'"),
    ],
)
def test_a_broken_condition_is_named(setting, words):
    found = identified(setting)
    assert (found.name, found.theorem) == ("none", None)
    assert re.search(words, found.reasons[-1])


def test_unknown_words_are_refused():
    with pytest.raises(DemixError, match="An equivalence is one of"):
        Equivalence("unitary")
    with pytest.raises(DemixError, match="supervision must be"):
        Setting("rows", Real(2))


CHOOSING = Path(__file__).resolve().parents[2] / "docs" / "choosing.md"


def test_the_table_of_the_docs_says_the_same():
    """Each row with one space, one conditional and one theorem or case."""
    seen = set()
    for line in CHOOSING.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        spaces = re.findall(r'"(sphere|box|real)"', line)
        if len(cells) == 7 and cells[5] in "256" and len(spaces) == 1:
            named = re.findall(r'`"(vmf|laplace|normal)"`', cells[3])
            conditional = named[0] if named else 3.0
            demixer = ContrastiveDemixer(3, space=spaces[0], conditional=conditional)
            found = identified(demixer.setting())
            assert found.theorem.startswith(f"Theorem {cells[5]}")
        elif len(cells) == 6 and cells[4] in ("C1", "C2", "C3", "C4"):
            space = Sphere(3) if spaces == ["sphere"] else Real(3)
            found = identified(labels(space, unit="True" in cells[2]), vectors(100, 3))
            assert found.case == cells[4]
        else:
            continue
        seen.add(cells[5] if len(cells) == 7 else cells[4])
        scores = {"orthogonal": "orthogonal_r2", "permutation": "mean_correlation"}
        assert scores.get(found.name, "affine_r2") in cells[-1]
    assert seen == {"2", "5", "6", "C1", "C2", "C3", "C4"}
