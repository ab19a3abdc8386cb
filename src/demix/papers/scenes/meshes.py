"""Triangle meshes with smooth normals, and the solids of the 3D Shapes scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mesh:
    """Corners ``(V, 3)``, triangles ``(T, 3)`` counter-clockwise from outside, and unit normals.

    Corners of a crease occur once for each side of it.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray

    def scaled(self, factor: float) -> Mesh:
        """Return the mesh made larger about its origin."""
        return Mesh(self.vertices * np.float32(factor), self.triangles, self.normals)

    def hull(self, corners: int = 64) -> np.ndarray:
        """Return about so many corners ``(K, 3)`` of a convex body around the mesh, in float64."""
        # Only here: scenes without meshes need not wait for it.
        from scipy.spatial import ConvexHull

        points = self.vertices.astype(float)
        # The farthest points along directions that are spread evenly, on a spiral.
        height = 1 - (2 * np.arange(corners) + 1) / corners
        turn = np.pi * (1 + 5**0.5) * np.arange(corners)
        wide = np.sqrt(1 - height**2)
        spread = np.stack([wide * np.cos(turn), wide * np.sin(turn), height])
        kept = points[np.unique((points @ spread).argmax(axis=0))]
        middle = kept.mean(axis=0)
        faces = ConvexHull(kept).equations
        room = -(faces[:, 3] + faces[:, :3] @ middle)
        # Blown up until nothing sticks out.
        return middle + (kept - middle) * (((points - middle) @ faces[:, :3].T) / room).max()


def joined(points: np.ndarray, triangles: np.ndarray, normals: np.ndarray) -> Mesh:
    """Return a mesh without triangles of no area; corners of one point and normal become one."""
    length = np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    both = np.concatenate([points, normals / length], axis=1)
    _, first, where = np.unique(np.round(both, 4), axis=0, return_index=True, return_inverse=True)
    corners = where.reshape(-1)[triangles]
    flat = np.zeros(len(corners), dtype=bool)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        flat |= (np.abs(points[first[corners[:, a]]] - points[first[corners[:, b]]]) < 1e-6).all(1)
    return Mesh(
        both[first, :3].astype(np.float32),
        corners[~flat].astype(np.int32),
        both[first, 3:].astype(np.float32),
    )


def grid_triangles(rows: int, columns: int) -> np.ndarray:
    """Return two triangles for each cell of a grid of ``rows`` times ``columns`` points."""
    corner = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (
        part.ravel()
        for part in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:])
    )
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def revolved(profile: np.ndarray, normals: np.ndarray, around: int = 48) -> Mesh:
    """Return a profile ``(K, 2)`` of radius and height, with its normals, turned about z.

    The profile runs upwards; a crease is two equal points with different normals.
    """
    angle = np.linspace(0, 2 * np.pi, around + 1)[:, None]
    points, directions = (
        np.stack(
            [
                np.cos(angle) * line[:, 0],
                np.sin(angle) * line[:, 0],
                np.ones_like(angle) * line[:, 1],
            ],
            axis=-1,
        ).reshape(-1, 3)
        for line in (profile, normals)
    )
    return joined(points, grid_triangles(around + 1, len(profile)), directions)


def cube() -> Mesh:
    """Return the cube ``[-1, 1]^3``."""
    points, directions = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            first, second = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            normal = sign * np.eye(3)[axis]
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                points.append(normal + a * sign * first + b * second)
                directions.append(normal)
    faces = np.arange(24).reshape(6, 4)
    triangles = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    return joined(np.array(points), triangles, np.array(directions))


def cylinder() -> Mesh:
    """Return the cylinder of radius 1 and height 2 about the origin."""
    profile = np.array([[0, -1], [1, -1], [1, -1], [1, 1], [1, 1], [0, 1]], dtype=float)
    normals = np.array([[0, -1], [0, -1], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=float)
    return revolved(profile, normals)


def capsule(radius: float, half: float, steps: int = 12) -> Mesh:
    """Return two half spheres of ``radius`` at heights of plus and minus ``half``, joined."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, 2 * steps + 1)
    normals = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normals[[0, -1], 0] = 0
    lift = np.stack([np.zeros_like(angle), half * np.sign(angle)], axis=1)
    below, above = radius * normals + lift, radius * normals + lift
    cut = steps + 1
    below[steps, 1], above[steps, 1] = -half, half
    profile = np.concatenate([below[:cut], above[steps:]])
    return revolved(profile, np.concatenate([normals[:cut], normals[steps:]]))
