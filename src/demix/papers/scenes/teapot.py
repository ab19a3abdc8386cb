"""The teapot of Martin Newell, made from its Bezier patches."""

from __future__ import annotations

from functools import cache

import numpy as np

from demix.papers.scenes.meshes import Mesh, grid_triangles, joined

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
    """Return the control points ``(32, 4, 4, 3)`` of the bicubic patches, as published.

    See M. E. Newell (1975), *The Utilization of Procedure Models in Digital Image Synthesis*; the
    table is in F. C. Crow (1987), "The origins of the teapot", IEEE CG&A 7(1).
    """
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
        points = np.array(
            [
                [(x, y, z) for (x, z), y in zip(ring[:4], (0, ring[4], ring[4], 0), strict=True)]
                for ring in rings
            ]
        )
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
