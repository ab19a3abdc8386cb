"""One object above a ground, under a lamp, a sun and a spotlight: the light in each pixel."""

import numpy as np

from demix.papers.scenes.geometry import PLACES, Camera, Caster, Pose, Resized, dot
from demix.papers.scenes.lights import LOOKS, Light, Rubber

_TOGETHER = 1 << 18  # rays that are followed together; more of them would only take memory

# What a pixel is made of. Light is linear, so colours can wait until these are known: they take
# part in it as ``ground * (GROUND + spot * GROUND_SPOT) + object * (...) + GLOSS + spot * ...``.
GROUND, GROUND_SPOT, OBJECT, OBJECT_SPOT, GLOSS, GLOSS_SPOT, COVER = range(7)


def received(
    light: Light,
    points: np.ndarray,
    normals: np.ndarray,
    counts: np.ndarray,
    *,
    looks: int = LOOKS,
    caster: Caster | Resized | None = None,
) -> np.ndarray:
    """Return the irradiance ``(M,)`` of points, ``counts`` at each place, in a caster's shadow."""
    ways = light.ways(points, counts, looks)
    arrives = light.irradiance(ways, normals)
    if caster is not None:
        lit = np.flatnonzero(arrives)
        ways = ways.reshape(3, -1).take(lit, axis=1)
        arrives.reshape(-1)[lit] *= caster.visible(points.take(lit % points.shape[1], axis=1), ways)
    return arrives.mean(axis=0)


class Stage:
    """What does not change from image to image; the camera sees ground at ``level`` all around."""

    def __init__(
        self, camera: Camera, level: float, lights: list[Light], caster: Caster, size: int
    ) -> None:
        self.size = size
        rays = camera.rays(size).reshape(3, PLACES, size, size)
        rows = max(1, _TOGETHER // (PLACES * size))
        self._bands = [
            _Band(rays[:, :, top : top + rows].reshape(3, -1), camera, level, lights, caster)
            for top in range(0, size, rows)
        ]

    def maps(self, pose: Pose, spot: Light) -> np.ndarray:
        """Return the parts ``(7, size, size)`` that an image is made of, in float32."""
        parts = [band.maps(pose, spot) for band in self._bands]
        return np.concatenate(parts, axis=1).reshape(7, self.size, self.size)


class _Band:
    """Some rows of the picture; the rays ``(3, S)`` have the place within a pixel first."""

    def __init__(
        self, rays: np.ndarray, camera: Camera, level: float, lights: list[Light], caster: Caster
    ) -> None:
        self.rays, self.caster, self.lights, self.level = rays, caster, lights, level
        self.camera = camera
        self.eye = np.array(camera.eye, dtype=np.float32)[:, None]
        self.count = rays.shape[1]
        self.pixels = self.count // PLACES
        self.ground = self.eye + rays * ((np.float32(level) - self.eye[2]) / rays[2])
        self.eighths = _eighths(self.ground)
        self.rubber = Rubber(np.broadcast_to(_UP, rays.shape), -rays)
        everywhere = self._counts(np.arange(self.count))
        self.base = np.zeros((7, self.count), dtype=np.float32)
        self.still = []
        for light in lights:
            colour, gloss = self.rubber.responds(light.towards(self.ground))
            arrives = received(light, self.ground, _UP, everywhere, looks=light.looks)
            self.base[GROUND] += colour * arrives
            self.base[GLOSS] += gloss * arrives
            self.still.append((colour, gloss, arrives))

    def maps(self, pose: Pose, spot: Light) -> np.ndarray:
        """Return the parts ``(7, pixels)``."""
        maps = self.base.copy()
        free = np.ones(self.count, dtype=bool)
        up = pose.inward_ways(_UP)
        hull = pose.outward(self.caster.hull)
        inner = [light.moved(pose.turned, pose.at) for light in (*self.lights, spot)]
        self._add_object(maps, free, pose, hull, inner)
        for light, moved, (colour, gloss, full) in zip(
            self.lights, inner[:-1], self.still, strict=True
        ):
            dim = np.flatnonzero(self._maybe_dim(light, hull) & free)
            if len(dim):
                points = pose.inward(self.ground.take(dim, axis=1))
                lost = received(
                    moved, points, up, self._counts(dim), looks=light.looks, caster=self.caster
                )
                lost -= full[dim]
                maps[GROUND, dim] += colour[dim] * lost
                maps[GLOSS, dim] += gloss[dim] * lost
        self._add_spot(maps, free, pose, hull, spot, inner[-1])
        return maps.reshape(7, PLACES, -1).mean(axis=1)

    def _counts(self, rays: np.ndarray) -> np.ndarray:
        """Return how many of some rays belong to each place within a pixel."""
        return np.bincount(rays // self.pixels, minlength=PLACES)

    def _add_spot(
        self,
        maps: np.ndarray,
        free: np.ndarray,
        pose: Pose,
        hull: np.ndarray,
        spot: Light,
        moved: Light,
    ) -> None:
        """Add what the spotlight does to the ground; only part of it needs shadow rays."""
        lit, dim = _in_cone(spot, self.ground) & free, self._maybe_dim(spot, hull)
        up = pose.inward_ways(_UP)
        for rays, caster in (
            (np.flatnonzero(lit & dim), self.caster),
            (np.flatnonzero(lit & ~dim), None),
        ):
            if not len(rays):
                continue
            ground, counts = self.ground.take(rays, axis=1), self._counts(rays)
            if caster:
                arrives = received(moved, pose.inward(ground), up, counts, caster=caster)
            else:
                arrives = received(spot, ground, _UP, counts)
            colour, gloss = self.rubber.some(rays).responds(spot.towards(ground))
            maps[GROUND_SPOT, rays] = colour * arrives
            maps[GLOSS_SPOT, rays] = gloss * arrives

    def _add_object(
        self, maps: np.ndarray, free: np.ndarray, pose: Pose, hull: np.ndarray, lights: list[Light]
    ) -> None:
        """Shade the object in its own frame, the spotlight last; mark the rays that met it."""
        # Seen from the camera, the object hides what it would shade if the camera were a lamp.
        eye = np.array(self.camera.eye)
        near = np.flatnonzero(self._maybe_hidden(eye[None], hull))
        if not len(near):
            return
        ways = pose.inward_ways(self.rays.take(near, axis=1))
        hits = self.caster.first(pose.inward(self.eye), ways)
        met = near[hits.rays]
        free[met] = False
        maps[:, met] = 0
        maps[COVER, met] = 1
        counts = self._counts(met)
        rubber = Rubber(hits.normals, -ways.take(hits.rays, axis=1))
        for light in lights:
            shade, shine = (OBJECT_SPOT, GLOSS_SPOT) if light is lights[-1] else (OBJECT, GLOSS)
            arrives = received(light, hits.points, hits.normals, counts, caster=self.caster)
            colour, gloss = rubber.responds(light.towards(hits.points))
            maps[shade, met] += colour * arrives
            maps[shine, met] += gloss * arrives

    def _maybe_dim(self, light: Light, hull: np.ndarray) -> np.ndarray:
        """Whether the hull ``(K, 3)`` may lie between points of the ground and the light."""
        # What is far away lies far along its direction; 10 000 bends the shadow by less than 1e-2.
        return self._maybe_hidden(1e4 * light.corners if light.far else light.corners, hull)

    def _maybe_hidden(self, sources: np.ndarray, hull: np.ndarray) -> np.ndarray:
        """Whether the hull may lie between each point of the ground and any of the sources.

        The shadow of a convex body is the hull of its corners' shadows; here it is bounded from
        four directions, which takes eight comparisons a point and no arithmetic.
        """
        below = sources[:, None, 2] - hull[None, :, 2]
        if below.min() < 0.1:
            return np.ones(self.count, dtype=bool)
        share = (sources[:, None, 2] - self.level) / below
        shadow = sources[:, None] + share[..., None] * (hull[None] - sources[:, None])
        bounds = _eighths(shadow.reshape(-1, 3).T)
        low = bounds.min(axis=1).astype(np.float32) - np.float32(1e-2)
        high = bounds.max(axis=1).astype(np.float32) + np.float32(1e-2)
        inside: np.ndarray = self.eighths[0] > low[0]
        for values, least, most in zip(self.eighths, low, high, strict=True):
            inside &= values > least
            inside &= values < most
        return inside


_UP = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)


def _eighths(points: np.ndarray) -> np.ndarray:
    """Return the extent ``(4, M)`` of points ``(3, M)`` along x, y and both diagonals."""
    x, y = points[0], points[1]
    return np.stack([x, y, x + y, x - y])


def _in_cone(spot: Light, points: np.ndarray) -> np.ndarray:
    """Whether some point of a spotlight may shine on points ``(3, M)``."""
    extent = float(np.linalg.norm(spot.points - spot.center, axis=-1).max())
    edge = spot.cone[0]
    # A cone that holds those of all points of the disc begins a little behind it.
    back = extent * edge / np.sqrt(1 - edge**2)
    ways = points - (spot.center - back * spot.axis).astype(np.float32)[:, None]
    along = dot(ways, spot.axis.astype(np.float32)[:, None])
    return along * np.abs(along) > np.float32(edge**2) * dot(ways, ways)
