"""What Theorem 1 of the second paper promises, and the identity at its optimum."""

from __future__ import annotations

import pytest
import torch
from dense_objectives import uniform

from demix import DemixError, Real, Sphere, Uniform, cluster_vectors
from demix.theory.identification import cross_entropy_identifies, optimum_error


def vectors(count: int, d: int = 5, *, flat: bool = False) -> torch.Tensor:
    return cluster_vectors(Uniform(Sphere(d)), count, seed=0, flat=flat)


@pytest.mark.parametrize(
    ("space", "unit_rows", "case", "latents", "rows"),
    [
        (Sphere(5), True, "C1", "orthogonal", "orthogonal"),
        (Sphere(5), False, "C2", "orthogonal", "affine"),
        (Real(5), True, "C3", "scaled orthogonal", "orthogonal"),
        (Real(5), False, "C4", "linear", "affine"),
    ],
)
def test_the_four_cases(space, unit_rows, case, latents, rows):
    found = cross_entropy_identifies(vectors(100), space, unit_rows=unit_rows)
    assert (found.case, found.latents, found.rows, found.reasons) == (case, latents, rows, ())


@pytest.mark.parametrize("few", [vectors(5), vectors(100, flat=True)])
@pytest.mark.parametrize("space", [Sphere(5), Real(5)])
@pytest.mark.parametrize("unit_rows", [True, False])
def test_without_an_affine_generator_system_nothing_is_promised(few, space, unit_rows):
    found = cross_entropy_identifies(few, space, unit_rows=unit_rows)
    assert (found.latents, found.rows) == ("none", "none")
    assert "span 4 of 5 dimensions affinely" in found.reasons[0]
    assert "at least 6" in found.reasons[0]


def test_data_that_are_diverse_for_the_paper_only_are_linear():
    found = cross_entropy_identifies(vectors(10), Real(5), unit_rows=True)
    assert found.latents == "linear"
    assert "rank 10 of 20" in found.reasons[0]
    assert "rank 10 of 10, holds" in found.reasons[0]


def test_the_identity_holds_for_every_linear_map_and_shift():
    v, z, a = vectors(9).double(), uniform(0, 50, 5), uniform(1, 5, 5)
    rows = v @ torch.linalg.inv(a) + uniform(2, 5)
    assert optimum_error(rows, 7 * z @ a.T, v, z, kappa=7.0) < 1e-10
    assert optimum_error(rows, 6 * z @ a.T, v, z, kappa=7.0) == pytest.approx(1 / 7)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(DemixError, match="cluster vector each"):
        optimum_error(vectors(9), vectors(9), vectors(8), vectors(9), kappa=1.0)
