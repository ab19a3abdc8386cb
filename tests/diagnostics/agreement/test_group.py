"""Each estimator's group is the one of its theorem."""

from __future__ import annotations

import pytest

from demix import Box, ClassifierDemixer, ContrastiveDemixer, InstanceDemixer, Product, Sphere
from demix.diagnostics.agreement.group import group_of
from walks import TINY, sphere_walk


@pytest.mark.parametrize(
    ("estimator", "name", "theorem"),
    [
        (ContrastiveDemixer(3), "orthogonal", "Theorem 2"),
        (ContrastiveDemixer(3, conditional="normal"), "orthogonal", "Theorem 2"),
        (ContrastiveDemixer(3, conditional="anisotropic"), "orthogonal", "Rusak"),
        (ContrastiveDemixer(3, conditional="laplace"), "affine", None),
        (ContrastiveDemixer(3, space="box"), "signed permutation", "Theorem 6"),
        (ContrastiveDemixer(3, space="real", conditional=4), "affine", None),
        (ContrastiveDemixer(3, space="l1_ball", conditional=1), "signed permutation", "Theorem 6"),
        (ContrastiveDemixer(3, space="box", conditional=2), "affine", "Theorem 5"),
        (ContrastiveDemixer(3, space="real", conditional="normal"), "affine", None),
        (ContrastiveDemixer(3, space="box", conditional="auto"), "affine", "Theorem 5"),
        (ContrastiveDemixer(5, space=Product([Sphere(3), Box(2)])), "affine", None),
        (ClassifierDemixer(3), "affine", "Reizinger"),
        (ClassifierDemixer(3, space="sphere"), "orthogonal", "Reizinger"),
        (InstanceDemixer(3), "affine", "Reizinger"),
    ],
    ids=repr,
)
def test_the_group_is_that_of_the_theorem(estimator, name, theorem):
    group = group_of(estimator)
    assert group.name == name
    assert group.sphere == (name == "orthogonal")
    assert group.theorem is None if theorem is None else theorem in group.theorem


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_learnt_shape_counts_once_it_is_learnt():
    demixer = ContrastiveDemixer(2, space="box", conditional="auto", **TINY)
    demixer.fit(sphere_walk(200)[1])
    for shape, name in [(1.2, "signed permutation"), (2.3, "affine"), (4.0, "signed permutation")]:
        demixer.objective_.fixed = shape
        assert group_of(demixer).name == name
