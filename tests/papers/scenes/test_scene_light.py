"""Lights, surfaces and colours, against closed forms."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from demix.papers.scenes.lights import (
    LOOKS,
    PLACES,
    Rubber,
    area,
    as_bytes,
    disc_points,
    fresnel,
    hue_colour,
    spot,
    square_points,
    sun,
)
from demix.papers.scenes.stage import received
from demix.papers.scenes.three_d_ident import SATURATION, hues

UP = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)


def at(*rows: tuple[float, float, float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32).T


def mean_received(light, point: np.ndarray) -> float:
    """Irradiance of one upward point, from all points of the light."""
    points = np.repeat(point, PLACES, axis=1)
    return float(
        received(light, points, np.repeat(UP, PLACES, axis=1), np.ones(PLACES, int)).mean()
    )


@pytest.mark.parametrize("spread", [square_points, disc_points])
def test_points_of_a_light_are_spread_whichever_are_taken(spread):
    points = spread()
    assert points.shape == (LOOKS, PLACES, 2)
    assert len(np.unique(points.reshape(-1, 2).round(9), axis=0)) == LOOKS * PLACES
    for axis in (0, 1):
        assert np.abs(points.mean(axis=axis)).max() < 0.36
    assert points.mean(axis=(0, 1)) == pytest.approx([0, 0], abs=1e-12)


def test_points_of_a_disc_stand_for_equal_parts():
    radius = np.linalg.norm(disc_points(), axis=-1)
    assert (radius < 1).all()
    # Half of the radius holds a quarter of the disc, half of a turn half of it.
    assert (radius < 0.5).mean() == 0.25
    assert (disc_points()[..., 0] > 0).mean() == 0.5


def test_a_spotlight_gives_its_intensity_over_the_squared_distance():
    light = spot(
        np.array([0.0, 0.0, 10.0]), np.zeros(3), watts=3000, radius=0.5, angle=0.6, blend=0.1
    )
    assert mean_received(light, at((0, 0, 0))) == pytest.approx(3000 / (4 * np.pi) / 100, rel=0.01)
    assert mean_received(light, at((5, 0, 0))) == 0


def test_the_edge_of_a_spotlight_is_soft():
    light = spot(np.array([0.0, 0.0, 10.0]), np.zeros(3), watts=1, radius=0.5, angle=0.6, blend=0.1)
    edge = 10 * np.tan(0.3)
    across = [mean_received(light, at((edge + d, 0, 0))) for d in np.linspace(-0.8, 0.8, 9)]
    assert np.all(np.diff(across) <= 0)
    assert len(np.unique(across)) > 5


def test_a_lamp_gives_its_radiance_times_its_solid_angle():
    light = area(np.array([0.0, 0.0, 7.0]), side=1.0, radiance=12.5)
    # Irradiance below the middle of a square, by contour integration (Lambert): four equal edges.
    half = 0.5 / np.hypot(0.5, 3)
    exact = 12.5 * 4 * half * np.arctan(0.5 / np.hypot(0.5, 3))
    assert mean_received(light, at((0, 0, 4))) == pytest.approx(exact, rel=0.01)
    assert mean_received(light, at((0, 0, 8))) == 0


def test_the_sun_shines_alike_everywhere():
    light = sun(irradiance=0.5, angle=0.2)
    found = [mean_received(light, at(place)) for place in ((0, 0, 0), (50, -3, 2))]
    assert found[0] == found[1] == pytest.approx(0.5, rel=0.01)


def test_fresnel_at_both_ends_and_brewster():
    assert fresnel(np.array([1.0]), 1.5)[0] == pytest.approx(0.04)
    assert fresnel(np.array([0.0]), 1.2)[0] == pytest.approx(1)
    # At Brewster's angle only one polarisation is reflected: half of sin^2(difference of angles).
    angle = np.arctan(1.5)
    other = np.pi / 2 - angle
    assert fresnel(np.array([np.cos(angle)]), 1.5)[0] == pytest.approx(
        np.sin(angle - other) ** 2 / 2
    )


@pytest.mark.parametrize("view", [0.0, 0.6, 1.2, 1.5])
def test_white_rubber_sends_back_no_more_than_it_gets(view):
    height = (np.arange(400) + 0.5) / 400
    turn = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    height, turn = (grid.ravel() for grid in np.meshgrid(height, turn))
    wide = np.sqrt(1 - height**2)
    lights = np.stack([wide * np.cos(turn), wide * np.sin(turn), height]).astype(np.float32)
    views = np.broadcast_to(at((np.sin(view), 0, np.cos(view))), lights.shape)
    colour, gloss = Rubber(np.broadcast_to(UP, lights.shape), views).responds(lights)
    assert (colour >= 0).all()
    assert (gloss >= 0).all()
    # Seen from one direction, light from all sides of radiance 1.
    back = ((colour + gloss) * height).mean() * 2 * np.pi
    assert 0.4 < back < 1.02


def test_hues_outside_one_turn_are_brought_back():
    for hue in np.linspace(-1, 1, 41):
        exact = colorsys.hsv_to_rgb(hue % 1, 0.6, 1.0)
        assert hue_colour(hue, 0.6) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("part", SATURATION)
def test_every_hue_latent_has_a_colour_of_its_own(part):
    column = 7 + list(SATURATION).index(part)
    latents = np.zeros((401, 10))
    latents[:, column] = np.linspace(-1, 1, 401)
    colours = np.array([hues(row)[part] for row in latents])
    assert (colours >= 0).all()
    assert (colours <= 1).all()
    apart = np.abs(colours[:, None] - colours[None]).max(axis=2) + np.eye(401)
    # A step of 1/200 in a latent is one of 6/800 in a channel of full saturation, and half of
    # that at worst where another channel takes over.
    assert apart.min() > 0.0037 * SATURATION[part]


def test_bytes_follow_the_curve_of_srgb():
    light = np.array([-0.0, 0.001, 0.0031308, 0.2140, 1.0, 7.0], dtype=np.float32)
    assert as_bytes(light).tolist() == [0, 3, 10, 127, 255, 255]
