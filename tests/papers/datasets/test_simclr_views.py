"""Each change of a view is what an independent definition says, and images do not mix."""

from __future__ import annotations

import colorsys
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from scipy import ndimage

from demix import ContrastiveDemixer, DemixError, Recipe
from demix.papers import SimCLRViews
from demix.papers.datasets import simclr
from demix.papers.datasets.simclr import blurred, cropped, in_turns

NOTHING = {"crop": 1.0, "flip": 0.0, "colour": 0.0, "gray": 0.0, "blur": 0.0}


def images(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def viewed(x: torch.Tensor, seed: int = 0, **changes) -> torch.Tensor:
    """Views that do nothing but what is asked for."""
    torch.manual_seed(seed)
    return SimCLRViews(**NOTHING | changes)(x)


def as_pillow(x: torch.Tensor) -> Image.Image:
    return Image.fromarray((x.permute(1, 2, 0).numpy() * 255).round().astype(np.uint8))


def from_pillow(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image) / 255.0).float().permute(2, 0, 1)


@pytest.mark.parametrize(
    ("change", "pillow"),
    [
        (simclr.brightened, ImageEnhance.Brightness),
        (simclr.contrasted, ImageEnhance.Contrast),
        (simclr.saturated, ImageEnhance.Color),
    ],
    ids=["brightness", "contrast", "saturation"],
)
def test_colours_change_as_in_pillow(change, pillow):
    x = images(4, 3, 6, 5)
    factors = torch.tensor([0.0, 0.4, 1.0, 1.7])
    found = change(x, factors)
    for image, factor, view in zip(x, factors, found, strict=True):
        expected = from_pillow(pillow(as_pillow(image)).enhance(float(factor)))
        # Pillow rounds to 8 bits, the image and what it is mixed with, before it multiplies.
        assert float((view - expected).abs().max()) < 2.5 / 255
    assert torch.equal(change(x[2:3], factors[2:3]), x[2:3])


def test_hue_turns_as_in_colorsys():
    x = images(3, 3, 4, 5)
    x[0, :, 0, 0] = 0.3  # no hue at all
    x[0, :, 0, 1] = torch.tensor([0.7, 0.7, 0.1])  # two largest channels
    turns = torch.tensor([0.4, -0.27, 0.0])
    found = simclr.turned_hue(x, turns)
    for image, turn, view in zip(x, turns.tolist(), found, strict=True):
        for pixel, made in zip(image.flatten(1).T.tolist(), view.flatten(1).T, strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
            expected = colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)
            assert made.tolist() == pytest.approx(expected, abs=1e-5)


def test_gray_is_the_luma_of_pillow():
    x = images(2, 3, 6, 5)
    for image, found in zip(x, simclr.gray(x), strict=True):
        expected = np.asarray(as_pillow(image).convert("L")) / 255
        assert np.abs(found[0].numpy() - expected).max() < 1.5 / 255
    view = viewed(x, gray=1.0)
    torch.testing.assert_close(view, simclr.gray(x).expand(-1, 3, -1, -1))


def test_blur_is_the_gaussian_of_scipy():
    x = images(3, 2, 17, 12).double()
    sigma = torch.tensor([0.1, 0.9, 2.0]).double()
    for radius in (1, 4):
        found = blurred(x, sigma, radius)
        for image, width, view in zip(x, sigma.tolist(), found, strict=True):
            expected = ndimage.gaussian_filter(
                image.numpy(), width, axes=(1, 2), mode="mirror", radius=radius
            )
            np.testing.assert_allclose(view.numpy(), expected, atol=1e-12)


def test_crops_are_those_of_scipy():
    x = images(3, 2, 20, 30).double()
    sides = torch.tensor([[0.5, 0.8], [1.0, 1.0], [0.3, 0.25]]).double()
    place = torch.tensor([[0.5, -0.2], [0.0, 0.0], [-0.7, 0.75]]).double()
    flipped = torch.tensor([False, False, True])
    found = cropped(x, sides, place, flipped, (8, 9))
    for b in range(3):
        # Pixel i of the view shows the middle of the i-th of as many parts of the crop.
        width, height = 30 * sides[b, 0].item(), 20 * sides[b, 1].item()
        left = 15 * (1 + place[b, 0].item()) - width / 2
        top = 10 * (1 + place[b, 1].item()) - height / 2
        columns = left + (np.arange(9) + 0.5) / 9 * width - 0.5
        rows = top + (np.arange(8) + 0.5) / 8 * height - 0.5
        where = np.meshgrid(rows, columns[::-1] if flipped[b] else columns, indexing="ij")
        for channel in range(2):
            image = x[b, channel].numpy()
            expected = ndimage.map_coordinates(image, where, order=1, mode="nearest")
            np.testing.assert_allclose(found[b, channel].numpy(), expected, atol=1e-12)


def shown(size: int | None, shape: tuple[int, int], count: int = 1000) -> np.ndarray:
    """Left, right, top and bottom of many crops, as shares of the image, read from ramps."""
    height, width = shape
    ramp = torch.zeros(count, 1, height, width)
    edges = []
    for axis, length in ((3, width), (2, height)):
        place = ((torch.arange(length) + 0.5) / length).view(
            *(length if a == axis else 1 for a in range(4))
        )
        view = viewed(ramp + place, size=size, crop=0.2)
        line = view[:, 0].mean(dim=1 if axis == 3 else 2).double()
        # Half a pixel at the image's edge has no slope: take it from the inner half.
        n = line.shape[1]
        inner = line[:, n // 4 : n - n // 4]
        step = (inner[:, -1] - inner[:, 0]) / (inner.shape[1] - 1)
        middle = inner.mean(dim=1)
        edges += [middle - step * n / 2, middle + step * n / 2]
    return torch.stack(edges).numpy()


@pytest.mark.parametrize(
    ("size", "shape"), [(None, (64, 64)), (None, (40, 80)), (48, (64, 64)), (48, (64, 80))]
)
def test_crops_lie_within_the_image_and_have_the_promised_share_and_shape(size, shape):
    left, right, top, bottom = shown(size, shape)
    assert min(left.min(), top.min()) > -1e-3
    assert max(right.max(), bottom.max()) < 1 + 1e-3
    area = (right - left) * (bottom - top)
    # Uniform from 0.2 to 1: mean 0.6, sd 0.23; the mean of 1000 has an sd of 0.007.
    assert area.mean() == pytest.approx(0.6, abs=0.03)
    assert area.std() == pytest.approx(0.8 / 12**0.5, abs=0.02)
    assert 0.195 < area.min() < 0.22
    stretch = (right - left) / (bottom - top)
    if size is not None:
        stretch *= shape[1] / shape[0]
    assert stretch.max() == pytest.approx(4 / 3, rel=0.03)
    assert stretch.min() == pytest.approx(3 / 4, rel=0.03)
    # Where a crop has room, it may be anywhere in it.
    room = 1 - (right - left)
    where = (left / room)[room > 0.2]
    assert where.mean() == pytest.approx(0.5, abs=0.04)
    assert where.std() == pytest.approx(1 / 12**0.5, abs=0.02)


def test_crops_of_long_images_fit_even_if_their_shape_does_not():
    view = viewed(images(200, 1, 10, 60), size=16, crop=0.9)
    assert view.shape == (200, 1, 16, 16)
    assert bool(torch.isfinite(view).all())


def test_half_of_the_images_are_flipped():
    x = images(2000, 1, 4, 5)
    view = viewed(x, flip=0.5)
    same = torch.isclose(view, x, atol=1e-5).flatten(1).all(dim=1)
    mirrored = torch.isclose(view, x.flip(-1), atol=1e-5).flatten(1).all(dim=1)
    assert bool((same ^ mirrored).all())
    assert float(mirrored.float().mean()) == pytest.approx(0.5, abs=0.05)  # sd 0.011
    assert torch.equal(viewed(x, flip=0.0), x)


@pytest.mark.parametrize(("option", "share"), [("gray", 0.3), ("blur", 0.4)])
def test_so_many_images_are_changed_as_was_asked_for(option, share):
    x = images(2000, 3, 4, 4)
    changed = (viewed(x, **{option: share}) != x).flatten(1).any(dim=1)
    assert float(changed.float().mean()) == pytest.approx(share, abs=0.05)


def test_eight_of_ten_are_jittered():
    # Two pixels, dull and dark enough that nothing is cut off at 0 or 1.
    x = torch.full((3000, 3, 1, 2), 0.2).expand(-1, -1, 2, -1).clone()
    x[:, 0, :, 0], x[:, 1, :, 1] = 0.25, 0.3
    changed = (viewed(x, colour=0.1) - x).abs().flatten(1).amax(dim=1) > 1e-6
    assert float(changed.float().mean()) == pytest.approx(0.8, abs=0.04)  # sd 0.007


def test_changes_are_made_in_the_order_of_each_image():
    changes = [torch.add, torch.mul, torch.pow]
    order = torch.tensor(list(permutations(range(3))))
    x, rows = torch.arange(1.0, 9.0), torch.tensor([7, 0, 3, 2, 5, 4])
    amounts = [torch.linspace(low, 2.0, 8) for low in (0.5, 1.5, 1.0)]
    found = in_turns(x, rows, order, changes, amounts)
    expected = x.clone()
    for row, turns in zip(rows.tolist(), order.tolist(), strict=True):
        for number in turns:
            expected[row] = changes[number](expected[row], amounts[number][row])
    torch.testing.assert_close(found, expected)
    assert torch.equal(found[[1, 6]], x[[1, 6]])


@settings(max_examples=30, deadline=None)
@given(
    channels=st.sampled_from([1, 3]),
    height=st.integers(2, 40),
    width=st.integers(2, 40),
    size=st.sampled_from([None, 2, 17]),
    strength=st.sampled_from([0.0, 1.0, 2.0]),
    seed=st.integers(0, 2**32),
)
def test_views_stay_within_zero_and_one(channels, height, width, size, strength, seed):
    torch.manual_seed(seed)
    x = torch.rand(6, channels, height, width).round(decimals=seed % 3)
    view = SimCLRViews(size, colour=strength, blur=1.0)(x)
    side = (size, size) if size else (height, width)
    assert view.shape == (6, channels, *side)
    assert view.dtype == x.dtype
    assert 0 <= float(view.min()) <= float(view.max()) <= 1


def test_nothing_changes_at_zero_strength():
    for channels in (1, 3):
        x = images(5, channels, 9, 7)
        assert torch.equal(viewed(x), x)
        assert torch.equal(viewed(x[..., :7, :], size=7), x[..., :7, :])


def test_the_seed_alone_decides():
    x = images(16, 3, 20, 20)
    views = SimCLRViews()
    made = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        made.append(views(x))
    assert torch.equal(made[0], made[1])
    assert not torch.allclose(made[0], made[2])


def test_images_do_not_know_of_each_other():
    x = images(8, 3, 20, 20)
    other = x.clone()
    other[3] = images(3, 20, 20, seed=1)
    found = []
    for batch in (x, other):
        torch.manual_seed(0)
        found.append(SimCLRViews()(batch))
    changed = ((found[0] - found[1]).abs().flatten(1).amax(dim=1) > 1e-6).tolist()
    assert changed == [image == 3 for image in range(8)]


def test_equal_images_get_views_of_their_own():
    view = viewed(images(1, 3, 20, 20).expand(8, -1, -1, -1), crop=0.3)
    assert all(not torch.allclose(a, b, atol=1e-3) for a, b in pairwise(view))


def test_one_channel_keeps_its_colours():
    x = images(4, 1, 8, 8)
    assert torch.equal(viewed(x, colour=1.0, gray=1.0), x)


def test_estimators_take_it_as_augmentation():
    demixer = ContrastiveDemixer(
        augmentation=SimCLRViews(crop=0.7, flip=0.0, colour=0.2, gray=0.0),
        encoder={"components": 8},
        recipe=Recipe(steps=30, batch=64),
    )
    x = images(200, 3, 8, 8)
    assert demixer.fit(x).transform(x).shape == (200, 3)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (images(4, 8, 8), r"\(B, C, H, W\) of 1 or 3 channels.*float32 of shape \(4, 8, 8\)"),
        (images(4, 4, 8, 8), "of 1 or 3 channels"),
        (images(4, 3, 8, 8).mul(255).byte(), "but got uint8"),
        (images(4, 3, 1, 8), "2 x 2 pixels"),
        (images(4, 3, 8, 8) * 255, r"in \[0, 1\], but they go from 0.* to 25\d"),
        (images(4, 3, 8, 8) - 0.5, r"in \[0, 1\]"),
        (torch.full((1, 1, 2, 2), torch.nan), "from nan to nan"),
    ],
    ids=["three axes", "channels", "bytes", "line", "large", "negative", "nan"],
)
def test_what_is_no_batch_of_images_is_refused(x, words):
    with pytest.raises(DemixError, match=words):
        SimCLRViews()(x)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 1}, "side of at least 2"),
        ({"crop": 0.0}, "crop must be a share"),
        ({"crop": 1.5}, "crop must be a share"),
        ({"colour": 3.0}, "colour must be a strength"),
        ({"flip": -0.1}, "flip must be a probability"),
        ({"blur": 2}, "blur must be a probability"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(DemixError, match=words):
        SimCLRViews(**settings)
