"""Triangle meshes with smooth normals: the solids of the 3D Shapes scene, and Newell's teapot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Mesh:
    """Corners ``(V, 3)``, triangles ``(T, 3)`` counter-clockwise from outside, and unit normals."""

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
    """Return a profile ``(K, 2)`` of radius and height, upwards, with normals, turned about z."""
    angle = np.linspace(0, 2 * np.pi, around + 1)[:, None]
    points, directions = (
        np.stack([np.cos(angle) * x, np.sin(angle) * x, np.ones_like(angle) * z], -1).reshape(-1, 3)
        for x, z in (profile.T, normals.T)
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


# Radius and height of the control points of what is turned about the axis; four quarters each.
_TURNED = (
    ((1.4, 2.4), (1.3375, 2.53125), (1.4375, 2.53125), (1.5, 2.4)),  # rim
    ((1.5, 2.4), (1.75, 1.875), (2, 1.35), (2, 0.9)),  # body
    ((2, 0.9), (2, 0.45), (1.5, 0.225), (1.5, 0.15)),
    ((0, 3.15), (0.8, 3.15), (0, 2.85), (0.2, 2.7)),  # lid
    ((0.2, 2.7), (0.4, 2.55), (1.3, 2.55), (1.3, 2.4)),
    ((1.5, 0.15), (1.5, 0.075), (1.425, 0), (0, 0)),  # bottom
)
# A quarter circle of radius r has its control points this part of r beyond its ends. The knob of
# the lid alone was published with another part.
_ROUND, _KNOB = 0.56, 0.5625

# Handle and spout are tubes. Each row of a patch is half a ring: the x and z of its four control
# points, and the y of the middle two (that of the outer two is 0). The other half is its mirror
# image, and the last ring of a patch is the first of the next.
_TUBES = (
    (  # handle
        ((-1.6, 2.025), (-1.6, 2.025), (-1.5, 2.25), (-1.5, 2.25), 0.3),
        ((-2.3, 2.025), (-2.3, 2.025), (-2.5, 2.25), (-2.5, 2.25), 0.3),
        ((-2.7, 2.025), (-2.7, 2.025), (-3.0, 2.25), (-3.0, 2.25), 0.3),
        ((-2.7, 1.8), (-2.7, 1.8), (-3.0, 1.8), (-3.0, 1.8), 0.3),
        ((-2.7, 1.575), (-2.7, 1.575), (-3.0, 1.35), (-3.0, 1.35), 0.3),
        ((-2.5, 1.125), (-2.5, 1.125), (-2.65, 0.9375), (-2.65, 0.9375), 0.3),
        ((-2.0, 0.9), (-2.0, 0.9), (-1.9, 0.6), (-1.9, 0.6), 0.3),
    ),
    (  # spout
        ((1.7, 1.425), (1.7, 1.425), (1.7, 0.6), (1.7, 0.6), 0.66),
        ((2.6, 1.425), (2.6, 1.425), (3.1, 0.825), (3.1, 0.825), 0.66),
        ((2.3, 2.1), (2.3, 2.1), (2.4, 2.025), (2.4, 2.025), 0.25),
        ((2.7, 2.4), (2.7, 2.4), (3.3, 2.4), (3.3, 2.4), 0.25),
        ((2.8, 2.475), (2.8, 2.475), (3.525, 2.49375), (3.525, 2.49375), 0.25),
        ((2.9, 2.475), (2.9, 2.475), (3.45, 2.5125), (3.45, 2.5125), 0.15),
        ((2.8, 2.4), (2.8, 2.4), (3.2, 2.4), (3.2, 2.4), 0.15),
    ),
)
# How the mesh stands in 3DIdent: the spout points between +x and -y, the height is about 2.
_TURN, _SCALE, _LIFT = -np.pi / 4, 0.634686, -0.906694


def patches() -> np.ndarray:
    """Return the control points ``(32, 4, 4, 3)`` of the patches (Newell 1975; Crow 1987)."""
    found = []
    for curve in _TURNED:
        quarter = []
        for radius, height in curve:
            part = radius * (_KNOB if (radius, height) == (0.8, 3.15) else _ROUND)
            corners = ((radius, 0), (radius, part), (part, radius), (0, radius))
            quarter.append([(x, y, height) for x, y in corners])
        patch = np.array(quarter)
        for _ in range(4):
            found.append(patch)
            patch = np.stack([-patch[..., 1], patch[..., 0], patch[..., 2]], axis=-1)
    for rings in _TUBES:
        depths = [(0, ring[4], ring[4], 0) for ring in rings]
        places = np.array([ring[:4] for ring in rings])
        points = np.stack([places[..., 0], depths, places[..., 1]], axis=-1)
        for half in (points[:4], points[3:]):
            found.append(half[:, ::-1])
            found.append(half * [1, -1, 1])
    return np.stack(found)


@cache
def teapot(steps: int = 10) -> Mesh:
    r"""Return the teapot as it stands in 3DIdent, before it is scaled by 1.5.

    A patch is :math:`p(u, v) = \sum_{ij} B_i(u) B_j(v) c_{ij}` with Bernstein polynomials of
    degree 3; normals are :math:`\partial_u p \times \partial_v p`. Each becomes ``steps x steps``
    cells of two triangles.
    """
    t = np.linspace(0, 1, steps + 1)
    points = _surface(_bernstein(t), _bernstein(t))
    # Where an edge of a patch shrinks to a point, so does the derivative along it; a step inwards
    # has the direction.
    inside = np.clip(t, 1e-4, 1 - 1e-4)
    along = _surface(_slope(inside), _bernstein(inside))
    across = _surface(_bernstein(inside), _slope(inside))
    normals = np.cross(along, across)
    count = (steps + 1) ** 2
    cells = grid_triangles(steps + 1, steps + 1)
    triangles = np.concatenate([cells + count * k for k in range(len(points))])
    points, normals = points.reshape(-1, 3), normals.reshape(-1, 3)
    on_axis = np.hypot(points[:, 0], points[:, 1]) < 1e-9
    normals[on_axis] *= [0, 0, 1]
    c, s = np.cos(_TURN), np.sin(_TURN)
    stand = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return joined(points @ (_SCALE * stand).T + [0, 0, _LIFT], triangles, normals @ stand.T)


def _bernstein(t: np.ndarray) -> np.ndarray:
    return np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=1)


def _slope(t: np.ndarray) -> np.ndarray:
    quadratic = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=1)
    edge = np.zeros((len(t), 1))
    return 3 * (np.hstack([edge, quadratic]) - np.hstack([quadratic, edge]))


def _surface(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return points ``(32, K, K, 3)`` for values of the polynomials ``(K, 4)``."""
    return np.einsum("ui,vj,pijc->puvc", rows, columns, patches())
