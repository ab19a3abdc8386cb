"""Shapes in the corner of a room, with the factors of 3D Shapes."""

from functools import cache

import numpy as np

from demix.papers.scenes.base import Scene
from demix.papers.scenes.geometry import PLACES, Camera, Caster, Resized, turn
from demix.papers.scenes.lights import area, as_bytes, hue_colour
from demix.papers.scenes.meshes import capsule, cube, cylinder
from demix.papers.scenes.stage import received

_CAMERA = Camera((5.5, 0.0, 3.2), (0.0, 0.0, 0.9), np.radians(50))
# Distance of both walls from the middle of the room; the corner between them faces the camera.
_WALLS = 4.5
# Off the middle, so that the walls differ and the corner shows.
_LAMP = area(np.array([1.0, 2.5, 6.0]), side=1.5, radiance=30.0)
_AMBIENT = np.float32(0.3)
_SATURATION = 0.85
_MESHES = {
    "cube": lambda: cube().scaled(0.8),
    "cylinder": lambda: cylinder().scaled(0.9),
    "sphere": lambda: capsule(1.0, 0.0),
    "pill": lambda: capsule(0.65, 0.5),
}


class Shapes(Scene):
    """A cube, a cylinder, a sphere or a pill in the corner of a room.

    The factors of 3D Shapes (Burgess and Kim, 2018) with values in between: the hues of floor, wall
    and object are :math:`0.45 (1 + z)` turns (0 to 0.9, as there, so that none comes twice), the
    object is scaled by :math:`1 + z / 4`, and the room is seen from :math:`30 z` degrees aside.
    """

    name = "shapes"
    latents = ("floor hue", "wall hue", "object hue", "scale", "shape", "orientation")
    categories = {"shape": tuple(_MESHES)}  # noqa: RUF012  it is a ClassVar
    typical = (-0.7, 0.3, -1, 0, 0, 0)

    def image(self, latents: np.ndarray, size: int) -> np.ndarray:
        """Return one image ``(size, size, 3)`` of bytes."""
        colours = [
            hue_colour(0.45 * (1 + float(value)), _SATURATION).astype(np.float32)[:, None]
            for value in latents[:3]
        ]
        aside = np.radians(30) * float(latents[5])
        cos, sin = np.cos(aside), np.sin(aside)
        view = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]], dtype=np.float32)
        eye = turn(view, np.array(_CAMERA.eye, dtype=np.float32)[:, None])
        rays = turn(view, _rays(size))
        caster, rise = _caster(self.categories["shape"][int(latents[4])])
        scale = np.float32(1 + float(latents[3]) / 4)
        shape, at = Resized(caster, scale), np.array([0.0, 0.0, rise * float(scale)])
        # All in the frame of the object, which stands on the floor and is not turned.
        eye[2] -= np.float32(at[2])
        points, normals, is_floor = _room(eye, rays, -float(at[2]))
        colour = np.where(is_floor, colours[0], colours[1])
        hits = shape.first(eye, rays)
        points[:, hits.rays], normals[:, hits.rays] = hits.points, hits.normals
        colour[:, hits.rays] = colours[2]
        counts = np.full(PLACES, size * size)
        light = received(_LAMP.moved(np.eye(3), at), points, normals, counts, caster=shape)
        colour *= light * np.float32(1 / np.pi) + _AMBIENT
        return as_bytes(colour.reshape(3, PLACES, size, size).mean(axis=1)).transpose(1, 2, 0)


@cache
def _rays(size: int) -> np.ndarray:
    return _CAMERA.rays(size)


@cache
def _caster(shape: str) -> tuple[Caster, float]:
    """Return a shape and how high its middle is above the floor that it stands on."""
    mesh = _MESHES[shape]()
    return Caster(mesh), -float(mesh.vertices[:, 2].min())


def _room(
    eye: np.ndarray, rays: np.ndarray, floor: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where rays meet the room, its normals there ``(3, M)``, and whether it is floor."""
    half = np.float32(np.sqrt(0.5))
    faces = np.array([[0, 0, 1], [half, half, 0], [half, -half, 0]], dtype=np.float32)
    heights = (floor, -_WALLS, -_WALLS)
    first = np.full(rays.shape[1], np.inf, dtype=np.float32)
    which = np.zeros(rays.shape[1], dtype=np.intp)
    for k, (face, height) in enumerate(zip(faces, heights, strict=True)):
        speed = face[0] * rays[0] + face[1] * rays[1] + face[2] * rays[2]
        far = np.float32(height) - (face[0] * eye[0] + face[1] * eye[1] + face[2] * eye[2])
        way = np.where(speed < -1e-6, far / np.minimum(speed, np.float32(-1e-6)), np.inf)
        nearer = way < first
        first[nearer], which[nearer] = way[nearer], k
    return eye + rays * first, faces.T[:, which], which == 0
