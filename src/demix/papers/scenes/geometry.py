"""Vectors, a camera, and rays against one mesh, in the frame of that mesh.

Vectors are float32 arrays ``(3, M)``, one row a coordinate: each operation then runs over long,
contiguous rows. Matrix products are written out, because a BLAS may give other bits with other
numbers of threads, and images must not depend on that.
"""

from dataclasses import dataclass

import numpy as np

from demix._support.errors import need
from demix.papers.scenes.meshes import Mesh

PLACES = 4
"""Pixels are sampled at 2 x 2 places."""


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot products ``(M,)`` of two arrays of vectors ``(3, M)`` or ``(3, 1)``."""
    total: np.ndarray = a[0] * b[0]
    total += a[1] * b[1]
    total += a[2] * b[2]
    return total


def turn(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return ``matrix`` ``(3, 3)`` applied to vectors ``(3, M)``."""
    turned: np.ndarray = matrix[:, 0:1] * vectors[0]
    turned += matrix[:, 1:2] * vectors[1]
    turned += matrix[:, 2:3] * vectors[2]
    return turned


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors ``(3, M)`` scaled to length one."""
    return vectors / np.sqrt(dot(vectors, vectors))


def euler(angles: np.ndarray) -> np.ndarray:
    r"""Return the rotation :math:`R_z(c) R_y(b) R_x(a)` of three Euler angles, in float64."""
    (ca, cb, cc), (sa, sb, sc) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc],
            [cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc],
            [-sb, sa * cb, ca * cb],
        ]
    )


def frame(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that are orthogonal to ``axis`` ``(3,)`` and to each other."""
    least = np.zeros(3)
    least[np.argmin(np.abs(axis))] = 1.0
    first = np.cross(axis, least)
    first /= np.linalg.norm(first)
    return first, np.cross(axis / np.linalg.norm(axis), first)


@dataclass(frozen=True)
class Camera:
    """A camera at ``eye`` that looks at ``target``, z upwards; ``angle`` is its field of view."""

    eye: tuple[float, float, float]
    target: tuple[float, float, float]
    angle: float

    def rays(self, size: int) -> np.ndarray:
        """Return unit directions ``(3, PLACES * size * size)``: places, rows from top, columns."""
        forward = np.array(self.target, dtype=float) - np.array(self.eye, dtype=float)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        reach = np.tan(self.angle / 2)
        halves = (np.arange(2 * size) + 0.5) / size - 1
        # Two places a pixel and axis: (pixel, place).
        halves = (reach * halves).reshape(size, 2)
        shape = (2, 2, size, size)
        across = np.broadcast_to(halves.T[None, :, None, :], shape).reshape(PLACES, -1)
        down = np.broadcast_to(halves.T[:, None, :, None], shape).reshape(PLACES, -1)
        rays = (
            forward[:, None]
            + right[:, None] * across.reshape(1, -1)
            - up[:, None] * down.reshape(1, -1)
        )
        rays /= np.linalg.norm(rays, axis=0)
        return rays.astype(np.float32)


# A shadow ray begins this far from its surface, or it would hit that surface.
_CLEAR = np.float32(2e-3)


@dataclass(frozen=True)
class Hits:
    """Rays ``(M,)`` that met a mesh, points ``(3, M)`` a little outside of it, and unit normals."""

    rays: np.ndarray
    points: np.ndarray
    normals: np.ndarray


class Caster:
    """A mesh in Embree's hierarchy (Wald et al. 2014), built once: rays move into its frame."""

    def __init__(self, mesh: Mesh) -> None:
        names = ("embreex", "embreex.rtcore_scene", "embreex.mesh_construction")
        _, core, construction = (need(n, "Rendering objects in space", "papers") for n in names)
        self.hull = mesh.hull()
        self._scene = core.EmbreeScene()
        construction.TriangleMesh(self._scene, mesh.vertices, mesh.triangles)
        # The normals at the three corners of each triangle side by side: one gather a hit.
        self._normals = np.ascontiguousarray(mesh.normals[mesh.triangles].reshape(-1, 9))

    def first(self, origin: np.ndarray, directions: np.ndarray) -> Hits:
        """Follow rays from one point ``(3, 1)`` along ``directions`` ``(3, M)``."""
        met = self._scene.run(
            np.broadcast_to(origin, directions.shape).T, directions.T, output=True
        )
        rays = np.flatnonzero(met["primID"] >= 0)
        met = {name: met[name].take(rays, axis=0) for name in ("primID", "u", "v", "tfar", "Ng")}
        directions = directions.take(rays, axis=1)
        corners = self._normals.take(met["primID"], axis=0).T
        u, v = met["u"], met["v"]
        normals = corners[:3] * (1 - u - v) + corners[3:6] * u + corners[6:] * v
        normals /= np.sqrt(dot(normals, normals))
        flat = unit(np.ascontiguousarray(met["Ng"].T))
        side = np.where(dot(flat, directions) > 0, np.float32(-1), np.float32(1))
        points = origin + directions * met["tfar"] + flat * (side * _CLEAR)
        return Hits(rays, points, normals * side)

    def visible(self, points: np.ndarray, ways: np.ndarray) -> np.ndarray:
        """Whether nothing lies on the ``ways`` ``(3, M)`` that begin at ``points``, as 0 and 1."""
        ends = np.ones(points.shape[1], dtype=np.float32)
        met = self._scene.run(points.T, ways.T, dists=ends, query="OCCLUDED")
        return (met < 0).astype(np.float32)


@dataclass(frozen=True)
class Resized:
    """A mesh made larger or smaller: rays are scaled the other way, its hierarchy stays."""

    caster: Caster
    scale: np.float32

    def first(self, origin: np.ndarray, directions: np.ndarray) -> Hits:
        """Follow rays as :meth:`Caster.first` does."""
        hits = self.caster.first(origin / self.scale, directions)
        return Hits(hits.rays, hits.points * self.scale, hits.normals)

    def visible(self, points: np.ndarray, ways: np.ndarray) -> np.ndarray:
        """Follow shadow rays as :meth:`Caster.visible` does."""
        return self.caster.visible(points / self.scale, ways / self.scale)


@dataclass(frozen=True)
class Pose:
    """Where an object stands: a point ``p`` of its frame is at ``turned @ p + at``."""

    turned: np.ndarray
    at: np.ndarray

    def outward(self, points: np.ndarray) -> np.ndarray:
        """Take points ``(K, 3)`` of the object into the scene, in float64."""
        return points @ self.turned.T + self.at

    def inward(self, points: np.ndarray) -> np.ndarray:
        """Take points of the scene ``(3, M)`` into the object's frame, as float32."""
        return self.inward_ways(points - self.at.astype(np.float32)[:, None])

    def inward_ways(self, ways: np.ndarray) -> np.ndarray:
        """Take directions of the scene ``(3, M)`` into the object's frame, as float32."""
        return turn(self.turned.T.astype(np.float32), ways.astype(np.float32, copy=False))
