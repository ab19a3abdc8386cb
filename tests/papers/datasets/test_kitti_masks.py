"""Masks, factors and sequences of films that can be derived by hand."""

from __future__ import annotations

import os
import tarfile
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy import ndimage

from demix import ContrastiveDemixer, DemixWarning, Encoder, InfoNCE, Real, Recipe, train
from demix.papers import kitti_masks
from demix.papers.runner.original import LatentMSE
from films import line, rectangle, write

# Twice the size of the windows, and as wide as they are together if they do not overlap.
WIDE = (128, 768)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """One pedestrian on its way down in the first window, another in two windows, a car."""
    lines = []
    for frame in range(5):
        lines.append(line(frame, 2001, rectangle(WIDE, 10 + 4 * frame, 20, 40, 20)))
        lines.append(line(frame, 1001, rectangle(WIDE, 0, 400, 60, 60)))
        # From 10 columns left of the border between windows 1 and 2 to the border itself.
        lines.append(line(frame, 2007, rectangle(WIDE, 60, 236 + 2 * frame, 40, 40)))
    return write(tmp_path_factory.mktemp("film") / "instances_txt" / "0003.txt", lines).parent


def test_factors_are_position_and_area_in_pixels_of_the_window(film):
    data = kitti_masks(film)
    assert data.masks.shape == (15, 1, 64, 64)
    assert data.masks.dtype == bool
    first = data.sequence == 0
    # Half the size: rows 5 + 2 t to 24 + 2 t, columns 10 to 19.
    expected = [[14.5 + 2 * t, 14.5, 200.0] for t in range(5)]
    np.testing.assert_array_equal(data.factors[first], expected)
    assert data.names == ("vertical position", "horizontal position", "area")
    for mask, (down, across, area) in zip(data.masks[:, 0], data.factors, strict=True):
        assert ndimage.center_of_mass(mask) == pytest.approx((down, across), abs=1e-5)
        assert mask.sum() == area


def test_what_two_windows_show_of_one_track_are_two_sequences(film):
    data = kitti_masks(film)
    assert data.sequence.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert data.track.tolist() == [0] * 5 + [1] * 10
    assert data.window.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert data.frame.tolist() == [0, 1, 2, 3, 4] * 3
    # 20 columns, from column 118 + t on: those before column 128 are in window 1.
    left = data.factors[data.sequence == 1, 2] / 20
    right = data.factors[data.sequence == 2, 2] / 20
    assert left.tolist() == [10, 9, 8, 7, 6]
    assert right.tolist() == [10, 11, 12, 13, 14]


def test_windows_overlap_evenly_where_the_image_is_narrow(tmp_path):
    size = (64, 64 + 5 * 10 + 4)  # a step of 10, and 4 columns that no window reaches
    lines = [line(t, 2001, rectangle(size, t, 54, 10, 64)) for t in range(3)]
    data = kitti_masks(write(tmp_path / "gt.txt", lines))
    # The rectangle fills columns 54..117; window k shows columns 10 k to 10 k + 63.
    wide = [min(10 * k + 64, 118) - max(10 * k, 54) for k in range(6)]
    areas = data.factors[data.frame == 0, 2]
    assert areas.tolist() == [10.0 * w for w in wide]


def test_masks_are_sampled_at_the_nearest_pixel(tmp_path):
    random = np.random.default_rng(0)
    images = random.random((3, 96, 150)) < 0.5
    lines = [line(t, 2001, image) for t, image in enumerate(images)]
    data = kitti_masks(write(tmp_path / "gt.txt", lines))
    rows = np.floor(np.arange(64) * 96 / 64).astype(int)
    columns = np.floor(np.arange(100) * 150 / 100).astype(int)  # 150 * 64 // 96 columns
    small = images[:, rows][:, :, columns]
    for k in range(6):
        shown = data.masks[data.window == k, 0]
        np.testing.assert_array_equal(shown, small[:, :, 7 * k : 7 * k + 64])


def test_gaps_and_small_masks_end_a_sequence_and_short_ones_are_left_out(tmp_path):
    size = (64, 64)
    # Frame 3 is missing, in frame 8 there are 29 pixels, frames 9 and 10 are only two.
    frames = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    width = {8: 29}
    lines = [line(t, 2001, rectangle(size, 5, 5, 1, width.get(t, 30))) for t in frames]
    data = kitti_masks(write(tmp_path / "gt.txt", lines[::-1]))
    window = data.window == 0
    assert data.frame[window].tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert data.sequence[window].tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_folders_archives_and_files_give_the_same(film, tmp_path):
    tar, archive = tmp_path / "film.tar.xz", tmp_path / "film.zip"
    with tarfile.open(tar, "w:xz") as file:
        file.add(film, arcname="instances_txt")
    with zipfile.ZipFile(archive, "w") as file:
        file.write(film / "0003.txt", "train/MOTS20-02/gt/gt.txt")
        file.writestr("__MACOSX/._gt.txt", b"\x00\x05")
        file.writestr("train/MOTS20-02/seqinfo.ini", "frameRate=30")
    folder = kitti_masks(film)
    for path in (tar, archive, film / "0003.txt", film.parent):
        other = kitti_masks(path)
        np.testing.assert_array_equal(other.masks, folder.masks)
        np.testing.assert_array_equal(other.factors, folder.factors)
    both = kitti_masks(film, archive)
    assert (len(both), both.n_sequences) == (30, 6)
    assert both.sequence[15:].tolist() == (3 + folder.sequence).tolist()
    assert both.track[15:].tolist() == (2 + folder.track).tolist()


def test_pairs_are_all_within_reach_and_never_leave_a_sequence(film):
    data = kitti_masks(film)
    for most, count in [(1, 3 * 4), (2, 3 * (4 + 3)), (9, 3 * (4 + 3 + 2 + 1))]:
        pairs = data.pairs(most)
        assert pairs.dtype == torch.int64
        early, late = pairs.numpy().T
        assert len({*map(tuple, pairs.tolist())}) == len(pairs) == count
        assert (data.sequence[early] == data.sequence[late]).all()
        gap = data.frame[late] - data.frame[early]
        assert gap.min() == 1
        assert gap.max() == min(most, 4)


def test_drawn_pairs_are_those_and_every_distance_is_as_likely(film):
    data = kitti_masks(film)
    generator = torch.Generator().manual_seed(0)
    index, later = data.sample_pairs(40_000, max_delta_t=2, generator=generator)
    known = {*map(tuple, data.pairs(2).tolist())}
    assert {*zip(index.tolist(), later.tolist(), strict=True)} == known
    # Every row but the last of a sequence is drawn alike: 12 rows, sd of a share 0.0014.
    share = torch.bincount(index, minlength=15) / 40_000
    assert share[data.frame < 4].numpy() == pytest.approx(np.full(12, 1 / 12), abs=0.007)
    early = torch.from_numpy(data.frame)[index] < 3
    # A row with two others after it draws either; 30 000 draws, sd 0.003.
    assert float((later - index)[early].float().mean()) == pytest.approx(1.5, abs=0.015)


def test_the_same_generator_draws_the_same_pairs_with_their_factors(film):
    data = kitti_masks(film)
    drawn = [data.sample(50, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert all(torch.equal(a, b) for a, b in zip(*drawn[:2], strict=True))
    assert not torch.equal(drawn[0].x, drawn[2].x)
    for x, z in [(drawn[0].x, drawn[0].z), (drawn[0].x_tilde, drawn[0].z_tilde)]:
        assert (x.shape, x.dtype, z.shape) == ((50, 1, 64, 64), torch.float32, (50, 3))
        assert torch.equal(x.sum(dim=(1, 2, 3)), z[:, 2])


def test_trainings_and_estimators_take_what_it_gives(film):
    data = kitti_masks(film)
    encoder = Encoder(64 * 64, Real(3), hidden=(8,), components=4)
    recipe = Recipe(steps=3, batch=8)
    for objective in (InfoNCE(similarity=1.0), LatentMSE()):
        training = train(encoder, partial(data.sample, max_delta_t=5), objective, recipe)
        assert training.steps == 3
        recipe = replace(recipe, whiten=False)
    demixer = ContrastiveDemixer(space="real", encoder={"components": 4}, recipe=recipe)
    small = data.masks[:, :, ::4, ::4]
    with pytest.warns(DemixWarning):  # fifteen rows teach nothing
        demixer.fit(small, positives=data.pairs(2))
    assert demixer.transform(small).shape == (15, 3)


@pytest.mark.skipif("DEMIX_MOTS" not in os.environ, reason="DEMIX_MOTS does not name MOTS files")
def test_the_published_annotations():
    """DEMIX_MOTS: KITTI-MOTS and sequence 05 of MOTSChallenge, as paths with ``os.pathsep``."""
    data = kitti_masks(*os.environ["DEMIX_MOTS"].split(os.pathsep))
    assert (data.n_sequences, len(data)) == (1309, 35_791)
    assert data.masks.sum(axis=(1, 2, 3)).min() >= 30
    assert np.diff(np.flatnonzero(np.diff(data.sequence))).min() >= 3
    follows = np.diff(data.sequence) == 0
    assert (np.diff(data.frame)[follows] == 1).all()
    # Pedestrians move little in a frame, and stay what they are.
    change = np.abs(np.diff(data.factors, axis=0))[follows]
    assert (np.median(change, axis=0) < [1, 2, 20]).all()
