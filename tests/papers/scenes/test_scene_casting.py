"""Rays against meshes whose shape is known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("embreex", reason="embreex, of the extra `papers`, is not installed")

from demix.papers.scenes.geometry import Caster, Pose, Resized, euler
from demix.papers.scenes.meshes import capsule, cube, teapot


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)[:, None]


def towards(seed: int, count: int) -> np.ndarray:
    ways = np.random.default_rng(seed).normal(size=(3, count))
    return (ways / np.linalg.norm(ways, axis=0)).astype(np.float32)


def test_a_sphere_is_met_where_it_is():
    caster = Caster(capsule(1.0, 0.0, steps=40))
    aside = 0.7 * towards(0, 500)
    hits = caster.first(column(0, 0, 4), aside - column(0, 0, 4))
    assert len(hits.rays) == 500
    assert np.linalg.norm(hits.points, axis=0) == pytest.approx(1, abs=0.01)
    assert (hits.normals * hits.points).sum(axis=0) == pytest.approx(1, abs=0.01)


def test_rays_that_miss_are_not_listed():
    ways = np.hstack([column(-1, 0, 0), column(1, 0, 0), column(-1, 0, 0.1)])
    assert Caster(cube()).first(column(5, 0, 0), ways).rays.tolist() == [0, 2]


def test_from_inside_normals_point_inwards():
    hits = Caster(cube()).first(column(0, 0, 0), column(1, 0, 0))
    assert hits.normals[:, 0].tolist() == [-1, 0, 0]
    assert 0.99 < hits.points[0, 0] < 1


def test_what_lies_behind_the_end_of_a_way_is_no_shadow():
    caster = Caster(cube())
    point = column(3, 0, 0)
    assert caster.visible(point, column(-1.5, 0, 0)).tolist() == [1]
    assert caster.visible(point, column(-2.5, 0, 0)).tolist() == [0]


def test_a_surface_does_not_shade_itself():
    """Points of a convex body, each a little outside of it, see all that is above them."""
    caster = Caster(cube())
    hits = caster.first(column(3, 4, 5), 0.5 * towards(1, 400) - column(3, 4, 5))
    assert len(hits.rays) == 400
    assert caster.visible(hits.points, 5 * hits.normals).all()


def test_nothing_shines_through_the_teapot():
    caster = Caster(teapot())
    ways = towards(2, 3000)
    # Past the middle of the body, from outside: a hole would let rays meet nothing, or meet the
    # inside of the far wall. There is one, the slit around the lid, a hundredth of the surface.
    start = (8 * ways + column(0, 0, -0.15)).T
    met = [
        caster.first(point[:, None], -way[:, None])
        for point, way in zip(start, ways.T, strict=True)
    ]
    assert all(len(hits.rays) == 1 for hits in met)
    near = [
        np.linalg.norm(hits.points[:, 0] - point) < 8
        for hits, point in zip(met, start, strict=True)
    ]
    assert np.mean(near) == 1


def test_a_pose_goes_in_and_out():
    pose = Pose(euler(np.array([0.3, -1.0, 0.7])), np.array([1.0, 2.0, 3.0]))
    points = np.random.default_rng(3).normal(size=(50, 3))
    back = pose.inward(pose.outward(points).T).T
    assert back == pytest.approx(points, abs=1e-5)
    assert pose.turned @ pose.turned.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(pose.turned) == pytest.approx(1)


def test_a_resized_mesh_is_met_farther_out():
    larger = Resized(Caster(cube()), np.float32(1.5))
    hits = larger.first(column(5, 0, 0), column(-1, 0, 0))
    assert hits.points[0, 0] == pytest.approx(1.5, abs=0.01)
    assert larger.visible(column(3, 0, 0), column(-1.4, 0, 0)).tolist() == [1]
    assert larger.visible(column(3, 0, 0), column(-1.6, 0, 0)).tolist() == [0]
