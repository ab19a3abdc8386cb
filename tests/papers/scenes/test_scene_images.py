"""Images of every scene: what all must do, and what each shows."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("embreex", reason="embreex, of the extra `papers`, is not installed")

from demix import DemixError
from demix.papers import render, sample_latents, scene_named
from demix.papers.scenes import three_d_ident
from demix.papers.scenes.blender import Blender
from demix.papers.scenes.geometry import Caster
from demix.papers.scenes.lights import area, sun
from demix.papers.scenes.meshes import teapot
from demix.papers.scenes.registry import SCENES, traversals
from demix.papers.scenes.stage import COVER, GROUND, Stage


@pytest.fixture(params=SCENES)
def scene(request):
    return SCENES[request.param]


def test_samples_lie_in_the_scene_and_begin_alike(scene):
    z = scene.sample(200, seed=3)
    assert z.dtype == np.float32
    assert (scene.check(z) == z).all()
    assert (scene.sample(50, seed=3) == z[:50]).all()
    assert (scene.sample(50, seed=4) != z[:50]).any()
    for column, name in enumerate(scene.latents):
        if name in scene.categories:
            assert set(z[:, column]) == set(range(len(scene.categories[name])))


def test_an_image_does_not_depend_on_its_neighbours(scene):
    z = scene.sample(3, seed=0)
    images = render(scene, z, size=24)
    assert images.shape == (3, 24, 24, 3)
    assert images.dtype == np.uint8
    assert (render(scene, z[2:], size=24) == images[2:]).all()


@pytest.mark.parametrize("name", ["3dident", "shapes", "sprites"])
def test_every_step_of_every_latent_shows(name):
    scene = SCENES[name]
    for latent, row in zip(scene.latents, traversals(scene), strict=True):
        values = scene.categories.get(latent, row)
        images = render(scene, row[: len(values)], size=24).astype(int)
        changes = np.abs(np.diff(images, axis=0)).max(axis=(1, 2, 3))
        assert (changes > 8).all(), latent


def test_causes_do_not_change_what_latents_look_like():
    z = sample_latents("causal3dident", 2, seed=0)
    assert (render("causal3dident", z, 16) == render("3dident", z, 16)).all()


def test_latents_that_cannot_be_shown_are_refused(scene):
    z = scene.sample(4, seed=0)
    with pytest.raises(DemixError, match=rf"has {z.shape[1]} latents .* but got {z.shape[1] - 1}"):
        render(scene, z[:, :-1])
    with pytest.raises(DemixError, match=r"must lie in .-1, 1., but reaches 1.5"):
        render(scene, np.where(np.arange(z.shape[1]) == 1, 1.5, z))
    with pytest.raises(DemixError, match="size of images must be a whole number from 1"):
        render(scene, z, size=0)


def test_categories_must_be_known():
    with pytest.raises(DemixError, match=r"'shape' .* must be 0 to 2 for square, ellipse, heart"):
        render("sprites", [[3, 0, 0, 0, 0]])
    with pytest.raises(DemixError, match="Unknown scene 'teapots'; known are 3dident,"):
        scene_named("teapots")
    with pytest.raises(DemixError, match=r"images must be from 1 to below 2\^53, but got 0\."):
        sample_latents("sprites", 0)


def middle(weights: np.ndarray) -> tuple[float, float]:
    """Row and column of the centre of mass."""
    rows, columns = np.indices(weights.shape)
    return (rows * weights).sum() / weights.sum(), (columns * weights).sum() / weights.sum()


def test_sprites_have_their_place_and_area():
    size = 64
    for z in ([0, 1.0, 0.3, 0.5, -0.8], [1, -1.0, -0.7, -1, 1], [0, 0.0, 1.0, 0, 0]):
        share = render("sprites", [z], size)[0, ..., 0] >= 188  # half of a pixel, in sRGB
        row, column = middle(share)
        assert column == pytest.approx(size * (0.5 + 0.25 * z[3]) - 0.5, abs=0.3)
        assert row == pytest.approx(size * (0.5 - 0.25 * z[4]) - 0.5, abs=0.3)
        unit = 0.17 * size * (3 + z[1]) / 4
        area_of = 4 if z[0] == 0 else np.pi * 1.6 / 2
        assert share.sum() == pytest.approx(area_of * unit**2, rel=0.06)


def test_shapes_paint_floor_wall_and_object_by_themselves():
    z = np.zeros((4, 6))
    for k in range(3):
        z[k + 1, k] = 0.7
    images = render("shapes", z, size=32).astype(int)
    changed = (np.abs(images[1:] - images[0]) > 4).any(axis=-1)
    assert (changed.sum(axis=0) >= 1).mean() > 0.99
    # Only pixels on an edge belong to two of them.
    assert (changed.sum(axis=0) > 1).mean() < 0.2
    assert changed[0, -1].all()
    assert changed[1, 0].all()
    assert changed[2, 16, 16]


def test_the_teapot_moves_as_its_latents_say():
    scene = SCENES["3dident"]
    places = {}
    for name, column in (("x", 0), ("y", 1), ("z", 2)):
        for value in (-0.8, 0.8):
            z = np.zeros(10)
            z[column] = value
            cover = scene.cover(z, 48)
            places[name, value] = (*middle(cover), cover.sum())
    # The camera looks along -x and down: nearer is lower and larger, y is to the right, z up.
    assert places["x", 0.8][2] > 1.5 * places["x", -0.8][2]
    assert places["y", 0.8][1] > places["y", -0.8][1] + 8
    assert places["z", 0.8][0] < places["z", -0.8][0] - 8


def test_the_camera_sees_what_a_pinhole_sees():
    """A small teapot is seen where the middle of it is projected to."""
    size, at = 64, np.array([1.0, 2.0, 1.0])
    caster = Caster(teapot().scaled(0.15))
    stage = Stage(three_d_ident.CAMERA, three_d_ident.GROUND_LEVEL, [], caster, size)
    z = np.zeros(10)
    pose, light = three_d_ident.pose(z), three_d_ident.spotlight(z)
    cover = stage.maps(type(pose)(np.eye(3), at), light)[COVER]
    off = at - [8, 0, 8]
    depth = -(off[0] + off[2]) / np.sqrt(2)
    reach = depth * np.tan(three_d_ident.CAMERA.angle / 2)
    right, up = off[1], (off[2] - off[0]) / np.sqrt(2)
    row, column = middle(cover)
    assert column == pytest.approx(size / 2 * (1 + right / reach) - 0.5, abs=0.5)
    assert row == pytest.approx(size / 2 * (1 - up / reach) - 0.5, abs=0.5)


def test_bounds_on_shadows_leave_none_out():
    """Looking for the object and its shadows everywhere gives the same picture."""
    lights = [area(np.array([0, 0, 7.0]), side=1, radiance=12.5), sun(irradiance=0.5, angle=0.2)]
    kinds = []
    for factor in (1, 8):
        caster = Caster(teapot(4).scaled(1.5))
        caster.hull = factor * caster.hull
        kinds.append(Stage(three_d_ident.CAMERA, -4.44, lights, caster, 32))
    for z in SCENES["3dident"].sample(6, seed=1):
        pose, light = three_d_ident.pose(z), three_d_ident.spotlight(z)
        tight, wide = (stage.maps(pose, light) for stage in kinds)
        assert tight == pytest.approx(wide, abs=1e-5)


def test_shadows_are_soft_and_below_the_object():
    z = np.zeros(10)
    stage = three_d_ident._stage(96)
    ground = stage.maps(three_d_ident.pose(z), three_d_ident.spotlight(z))
    far = z.copy()
    far[:3] = -1, 1, 1
    bright = stage.maps(three_d_ident.pose(far), three_d_ident.spotlight(far))
    both = (ground[COVER] == 0) & (bright[COVER] == 0) & (bright[GROUND] > 0.05)
    share = ground[GROUND, both] / bright[GROUND, both]
    assert share.min() < 0.2
    assert (share > 0.999).mean() > 0.5
    # Neither lit nor dark: what hard shadows would only have at their outline.
    assert len(np.unique(share[(share > 0.25) & (share < 0.95)].round(2))) > 20


def test_without_its_packages_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "embreex", None)
    with pytest.raises(
        DemixError,
        match=r"embreex, which is not installed; install it with: pip install 'demix-ica\[papers",
    ):
        Caster(teapot(2))
    monkeypatch.setitem(sys.modules, "bpy", None)
    with pytest.raises(
        DemixError,
        match=r"bpy, which is not installed; install it with: pip install 'demix-ica\[blender\]'",
    ):
        Blender(16)
