"""The teapot: what was published of it, and that nothing shines through."""

from __future__ import annotations

import numpy as np
import pytest

from demix.papers.scenes.meshes import capsule, cube, cylinder, patches, teapot

# As 3DIdent has it, before it is scaled.
LOW, HIGH = [-1.402, -1.559, -0.907], [1.559, 1.402, 1.093]
SOLIDS = {
    "cube": (cube, 8.0),
    "cylinder": (cylinder, 2 * np.pi),
    "sphere": (lambda: capsule(1.0, 0.0), 4 / 3 * np.pi),
    "pill": (lambda: capsule(0.5, 0.5), np.pi / 6 + np.pi / 4),
}


def faces(mesh) -> tuple[np.ndarray, np.ndarray]:
    """Corners ``(T, 3, 3)`` and normals times twice the area ``(T, 3)``."""
    corners = mesh.vertices.astype(float)[mesh.triangles]
    return corners, np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def test_patches_are_those_of_newell():
    points = patches()
    assert points.shape == (32, 4, 4, 3)
    # The published table has 306 points, but counts some that lie at one place twice.
    assert len(np.unique(points.reshape(-1, 3).round(6), axis=0)) == 290
    mirrored = {tuple(point) for point in (points * [1, -1, 1]).reshape(-1, 3).round(6) + 0.0}
    assert mirrored == {tuple(point) for point in points.reshape(-1, 3).round(6) + 0.0}


def test_it_stands_as_published():
    mesh = teapot()
    assert mesh.vertices.min(axis=0) == pytest.approx(LOW, abs=1e-3)
    assert mesh.vertices.max(axis=0) == pytest.approx(HIGH, abs=1e-3)


@pytest.mark.parametrize("mesh", [teapot(), *(make() for make, _ in SOLIDS.values())])
def test_normals_have_length_one_and_the_side_of_their_triangles(mesh):
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1, abs=1e-5)
    _, flat = faces(mesh)
    assert (np.einsum("tc,tkc->tk", flat, mesh.normals[mesh.triangles]) > 0).all()


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_have_their_volume(name):
    make, volume = SOLIDS[name]
    corners, flat = faces(make())
    assert np.abs(flat.sum(axis=0)).max() < 1e-5
    found = np.einsum("tc,tc->t", corners[:, 0], flat).sum() / 6
    assert found == pytest.approx(volume, rel=0.015)
    assert found <= volume * (1 + 1e-6)


@pytest.mark.parametrize("mesh", [teapot(), cube()])
def test_the_hull_holds_the_mesh(mesh):
    hull = mesh.hull()
    ways = np.random.default_rng(0).normal(size=(3, 200))
    assert ((mesh.vertices @ ways).max(axis=0) <= (hull @ ways).max(axis=0) + 1e-5).all()
    assert (hull @ ways).max() < 1.3 * (mesh.vertices @ ways).max()
