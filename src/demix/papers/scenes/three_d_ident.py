"""3DIdent and Causal3DIdent."""

from functools import cache

import numpy as np

from demix._support.validation import check_seed
from demix.papers.scenes.base import Scene
from demix.papers.scenes.geometry import Camera, Caster, Pose, euler
from demix.papers.scenes.lights import Light, area, as_bytes, hue_colour, spot, sun
from demix.papers.scenes.meshes import teapot
from demix.papers.scenes.stage import COVER, Stage

SCALE = 1.5  # the published scene, in the units of its files
EXTENT = 4.4421  # the largest side of the scaled teapot
CAMERA = Camera((8.0, 0.0, 8.0), (0.0, 0.0, 0.0), 1.240499)
GROUND_LEVEL = -EXTENT
LAMP_AT, LAMP_SIDE, LAMP_RADIANCE = (0.0, 0.0, 7.0), 1.0, 12.5
SUN_IRRADIANCE, SUN_ANGLE = 0.5, 0.199337
SPOT_WATTS, SPOT_RADIUS, SPOT_ANGLE, SPOT_BLEND = 3000.0, 0.5, np.radians(35), 0.1
SATURATION = {"object": 1.0, "spotlight": 0.8, "ground": 0.6}


class ThreeDIdent(Scene):
    r"""The scene of 3DIdent.

    Ten latents in :math:`[-1, 1]`: the place of the teapot (times 3), its Euler angles, the angle
    of the spotlight on its half circle (times :math:`\pi / 2`), and the hues of object, spotlight
    and ground. A hue is :math:`h = (z / 4) \bmod 1` turns: half of the colour circle, from violet
    over red to a yellowish green, each value once.
    """

    name = "3dident"
    latents = (
        "x", "y", "z", "rotation x", "rotation y", "rotation z",
        "spotlight angle", "object hue", "spotlight hue", "ground hue",
    )  # fmt: skip
    typical = (0, 0, 0, 0, 0, 0, 0, 0.5, 0.9, -0.9)

    def image(self, latents: np.ndarray, size: int) -> np.ndarray:
        """Return one image ``(size, size, 3)`` of bytes."""
        maps = _stage(size).maps(pose(latents), spotlight(latents))
        ground, ground_spot, body, body_spot, gloss, gloss_spot, _ = maps
        colour = {name: x.astype(np.float32)[:, None, None] for name, x in hues(latents).items()}
        light = colour["ground"] * (ground + colour["spotlight"] * ground_spot)
        light += colour["object"] * (body + colour["spotlight"] * body_spot)
        light += gloss + colour["spotlight"] * gloss_spot
        return as_bytes(light).transpose(1, 2, 0)

    def cover(self, latents: np.ndarray, size: int) -> np.ndarray:
        """Return the share ``(size, size)`` of each pixel that the object fills."""
        return _stage(size).maps(pose(latents), spotlight(latents))[COVER]


def pose(latents: np.ndarray) -> Pose:
    """Return where the teapot stands for latents ``(10,)``."""
    at = 3 * latents[:3].astype(float) + [0, 0, EXTENT / 2]
    return Pose(euler(np.pi / 2 * latents[3:6].astype(float)), at)


def spotlight(latents: np.ndarray) -> Light:
    """Return the spotlight, which points at the middle of the teapot."""
    angle = np.pi / 2 * float(latents[6])
    at = np.array([4 * np.sin(angle), 4 * np.cos(angle), 6 + EXTENT])
    cone = {"radius": SPOT_RADIUS, "angle": SPOT_ANGLE, "blend": SPOT_BLEND}
    return spot(at, pose(latents).at, watts=SPOT_WATTS, **cone)


def hues(latents: np.ndarray) -> dict[str, np.ndarray]:
    """Return the linear colours ``(3,)`` of object, spotlight and ground."""
    return {
        name: hue_colour(float(latents[7 + k]) / 4, saturation)
        for k, (name, saturation) in enumerate(SATURATION.items())
    }


@cache
def caster() -> Caster:
    """Return the scaled teapot in its hierarchy, built on first use."""
    return Caster(teapot().scaled(SCALE))


@cache
def _stage(size: int) -> Stage:
    lights = [
        area(np.array(LAMP_AT), side=LAMP_SIDE, radiance=LAMP_RADIANCE),
        sun(irradiance=SUN_IRRADIANCE, angle=SUN_ANGLE),
    ]
    return Stage(CAMERA, GROUND_LEVEL, lights, caster(), size)


class CausalThreeDIdent(ThreeDIdent):
    r"""3DIdent with a causal graph among its latents.

    ::

        x -> rotation x    y -> rotation y    z -> rotation z
        x, y -> spotlight angle
        spotlight hue, ground hue -> object hue

    Latents without parents are uniform on :math:`[-1, 1]`; another one is
    :math:`z_i \sim N(\bar z_{pa(i)}, \sigma_i^2)`, truncated to that range, around the mean of its
    parents, with :math:`\sigma = 0.35` for the hue and 0.5 otherwise.

    The graph is like that of Causal3DIdent (von Kuegelgen et al., 2021, *Self-Supervised Learning
    with Data Augmentations Provably Isolates Content from Style*, Sec. 5.2), without the class of
    the object, which here is always a teapot.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers import sample_latents
    >>> z = sample_latents("causal3dident", 2000, seed=0)
    >>> bool(np.corrcoef(z[:, 0], z[:, 3])[0, 1] > 0.5)
    True
    """

    name = "causal3dident"
    # Latent, its parents, and how far it strays from their mean.
    graph = (
        ("rotation x", ("x",), 0.5),
        ("rotation y", ("y",), 0.5),
        ("rotation z", ("z",), 0.5),
        ("spotlight angle", ("x", "y"), 0.5),
        ("object hue", ("spotlight hue", "ground hue"), 0.35),
    )

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Draw latents ``(n, 10)`` along the graph, one uniform number for each."""
        # Only here: every process that renders would wait for it.
        from scipy.special import ndtr, ndtri

        unit = np.random.default_rng(check_seed(seed)).random((n, len(self.latents)))
        z = 2 * unit - 1
        for name, parents, sigma in self.graph:
            column = self.latents.index(name)
            mean = z[:, [self.latents.index(parent) for parent in parents]].mean(axis=1)
            low, high = ndtr((-1 - mean) / sigma), ndtr((1 - mean) / sigma)
            drawn = mean + sigma * ndtri(low + unit[:, column] * (high - low))
            z[:, column] = np.clip(drawn, -1, 1)
        return z.astype(np.float32)
