"""Rays against one mesh, in the frame of that mesh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demix._support.errors import need
from demix.papers.scenes.geometry import dot, turn, unit
from demix.papers.scenes.meshes import Mesh

# A shadow ray begins this far from its surface, or it would hit that surface.
_CLEAR = np.float32(2e-3)


@dataclass(frozen=True)
class Hits:
    """Where rays first met a mesh, in its frame.

    The numbers ``(M,)`` of these rays, ascending, points ``(3, M)`` a little outside of the
    surface, and unit normals ``(3, M)`` on the side that the rays came from.
    """

    rays: np.ndarray
    points: np.ndarray
    normals: np.ndarray


class Caster:
    """A mesh in a bounding volume hierarchy, built once and used for every image.

    Moving the object would mean building it again; rays are moved into its frame instead. See Wald
    et al. (2014), *Embree: A Kernel Framework for Efficient CPU Ray Tracing*.
    """

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
