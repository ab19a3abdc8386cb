"""Images that a stranger made start no program, stand upright, and end in one sentence at worst."""

from __future__ import annotations

import io
import os
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image
from sentences import everything, refusal

from alarm import within
from demix import DemixError, read_data
from demix.papers import open_factor_images, open_images

UPRIGHT = np.random.default_rng(0).integers(0, 256, size=(4, 6, 3), dtype=np.uint8)
# How an upright image is stored so that an orientation of EXIF turns it back.
STORED = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.transpose(1, 0, 2),
    6: lambda x: np.rot90(x, 1),
    7: lambda x: x[::-1, ::-1].transpose(1, 0, 2),
    8: lambda x: np.rot90(x, -1),
}
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n"


def written(path, image, **options):
    image.save(path, **options)
    return path.parent


def oriented(orientation):
    image = Image.fromarray(np.ascontiguousarray(STORED[orientation](UPRIGHT)))
    exif = image.getexif()
    exif[0x0112] = orientation
    return image, exif


def pixels(folder):
    return everything(read_data(folder))


def chunk(kind: bytes, content: bytes) -> bytes:
    """A part of a PNG file."""
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def deep_png(colour: int) -> bytes:
    """4 x 4 pixels of 16 bits: grey, RGB, grey and RGB with alpha are colours 0, 2, 4 and 6."""
    row = bytes(1 + 4 * 2 * {0: 1, 2: 3, 4: 2, 6: 4}[colour])
    head = struct.pack(">IIBBBBB", 4, 4, 16, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(4 * row)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def tiff(planes: int, starts: list[int], rows: int, *, bits: int = 8, body: bytes = bytes(96)):
    """4 x 4 pixels of RGB in strips of so many rows, which start at these bytes of the body."""
    beyond = 8 + 2 + 12 * 9 + 4  # where what fits into no entry begins
    body_at = beyond + 6 + (4 * len(starts) if len(starts) > 1 else 0)
    places = [body_at + start for start in starts]
    entries = [(256, 3, [4]), (257, 3, [4]), (258, 3, [bits] * 3), (259, 3, [1]), (262, 3, [2])]
    entries += [(273, 4, places), (277, 3, [3]), (278, 3, [rows]), (284, 3, [planes])]
    head, tail = b"II*\0" + struct.pack("<IH", 8, len(entries)), b""
    for tag, kind, values in entries:
        field = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(field) > 4:
            tail, field = tail + field, struct.pack("<I", beyond + len(tail))
        head += struct.pack("<HHI4s", tag, kind, len(values), field.ljust(4, b"\0"))
    return head + bytes(4) + tail + body


DEEP = {f"{colour}.png": deep_png(colour) for colour in (0, 2, 4, 6)}
# One channel after the other if there are 2 planes.
DEEP |= {"1.tif": tiff(1, [0], 4, bits=16), "2.tif": tiff(2, [0, 32, 64], 4, bits=16)}


@pytest.mark.parametrize("name", DEEP)
def test_images_of_16_bits_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(DEEP[name])
    with Image.open(tmp_path / name) as image:
        assert image.size == (4, 4)
        image.load()
    told = refusal(read_data, tmp_path)
    assert f"{tmp_path / name} cannot be decoded (it has more than 8 bits for each channel)" in told


def test_images_of_signed_numbers_are_refused(tmp_path):
    # The tag takes the place of the layout of planes, and the image that of grey pixels.
    places = [(256, 4), (257, 4), (258, 8), (259, 1), (262, 1), (273, 122), (277, 1), (278, 4)]
    for sign, words in ((1, ""), (2, "cannot be decoded (its numbers have signs)")):
        entries = [struct.pack("<HHII", tag, 3, 1, value) for tag, value in [*places, (339, sign)]]
        head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries) + bytes(4)
        (tmp_path / "x.tif").write_bytes(head + bytes(16))
        if words:
            assert words in refusal(read_data, tmp_path)
        else:
            assert read_data(tmp_path).shape == (1, 1, 4, 4)


def told_of(folder) -> list[str]:
    """What is told of a folder with one image, by all that read images."""
    found = []
    for read in (
        lambda: pixels(folder),
        lambda: next(open_images(folder).batches(1)),
        lambda: open_images(folder / "x.png"),
    ):
        with pytest.raises(DemixError) as told:
            read()
        found.append(str(told.value))
    return found


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program gs that leaves a file behind; Pillow is to look for it anew."""
    programs, ran = tmp_path / "programs", tmp_path / "ran"
    programs.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return ran


def test_postscript_named_as_an_image_is_refused_and_starts_no_program(tmp_path, ghostscript):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "x.png").write_bytes(POSTSCRIPT)
    folder, several, archive = told_of(tmp_path / "images")
    assert "x.png looks like a text file; remove it" in folder
    assert "1 of 1 in" in several
    assert "cannot be read as one" in archive
    data, ones = np.frombuffer(POSTSCRIPT, dtype=np.uint8), np.ones(1, dtype=int)
    np.savez(tmp_path / "c.npz", data=data, offset=0 * ones, object_id=ones, angle_deg=ones)
    with pytest.raises(DemixError, match="1 of the 1 in"):
        open_factor_images(tmp_path / "c.npz")
    assert not ghostscript.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_nobody_waits_for_a_pipe_named_as_an_image(tmp_path):
    os.mkfifo(tmp_path / "x.png")
    with within(10):
        assert all("x.png is a pipe" in sentence for sentence in told_of(tmp_path))


@pytest.mark.parametrize("kind", ["GIF", "PPM", "PCX", "ICO"])
def test_other_formats_are_refused_whatever_their_name(tmp_path, kind):
    Image.fromarray(UPRIGHT).save(tmp_path / "x.png", kind)
    assert "Expected a PNG, JPEG, WebP, TIFF or BMP image" in refusal(pixels, tmp_path)


def test_a_jpeg_of_very_many_scans_is_refused(tmp_path):
    raw = io.BytesIO()
    Image.fromarray(UPRIGHT).save(raw, "JPEG", progressive=True)
    head, mark, scan = raw.getvalue()[:-2].rpartition(b"\xff\xda")
    (tmp_path / "x.jpg").write_bytes(head + 200 * (mark + scan) + b"\xff\xd9")
    assert "it has more than 100 scans" in refusal(pixels, tmp_path)


@pytest.mark.parametrize(
    ("planes", "starts"),
    [(1, [0, 24] * 2000), (1, [0]), (2, [0, 8, 16])],
    ids=["too many", "too few", "too few of planes"],
)
def test_strips_that_do_not_cover_an_image_once_are_refused(tmp_path, planes, starts):
    (tmp_path / "x.tif").write_bytes(tiff(planes, starts, 2))
    assert "x.tif cannot be decoded (its strips or tiles do not" in refusal(read_data, tmp_path)


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
def test_strips_that_cover_an_image_once_are_read(tmp_path, planes, rows):
    square = UPRIGHT[:, :4]
    body = square.tobytes() if planes == 1 else square.transpose(2, 0, 1).tobytes()
    firsts, row = range(0, 4, rows), 12 if planes == 1 else 4
    starts = [16 * plane + row * first for plane in range(2 * planes - 1) for first in firsts]
    (tmp_path / "x.tif").write_bytes(tiff(planes, starts, rows, body=body))
    assert np.array_equal((pixels(tmp_path)[0] * 255).round().transpose(1, 2, 0), square)


@pytest.mark.parametrize("suffix", ["png", "webp", "tif", "tiff", "BMP"])
def test_formats_without_loss_give_the_pixels_that_were_written(tmp_path, suffix):
    options = {"lossless": True} if suffix == "webp" else {}
    found = pixels(written(tmp_path / f"x.{suffix}", Image.fromarray(UPRIGHT), **options))
    assert np.array_equal(found[0].transpose(1, 2, 0), UPRIGHT.astype(np.float32) / 255)


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        ("png", {}),
        ("webp", {"lossless": True}),
        ("tif", {}),
        ("tif", {"compression": "tiff_lzw"}),
        ("jpg", {"quality": 100, "subsampling": 0}),
    ],
)
def test_images_are_upright_in_size_and_pixels(tmp_path, suffix, options, orientation):
    image, exif = oriented(orientation)
    folder = written(tmp_path / f"x.{suffix}", image, exif=exif, **options)
    found = pixels(folder)[0].transpose(1, 2, 0) * 255
    assert found.shape == UPRIGHT.shape
    # The discrete cosine transform of JPEG rounds.
    assert np.abs(found - UPRIGHT).max() <= (12 if suffix == "jpg" else 1e-4)
    batch = next(open_images(folder, side=4).batches(1))
    wide = Image.fromarray(UPRIGHT).resize((8, 5), Image.Resampling.BICUBIC).crop((2, 0, 6, 4))
    assert np.abs(batch.pixels[0] - np.asarray(wide, dtype=float)).max() <= 12


def test_an_orientation_behind_the_pixels_that_changes_the_size_is_told(tmp_path):
    image, exif = oriented(6)
    image.save(tmp_path / "x.png")
    raw, note = (tmp_path / "x.png").read_bytes(), exif.tobytes().removeprefix(b"Exif\0\0")
    (tmp_path / "x.png").write_bytes(raw[:-12] + chunk(b"eXIf", note) + raw[-12:])
    assert read_data(tmp_path).shape == (1, 3, 6, 4)
    assert "4 x 6 pixels in RGB as x.png, but" in refusal(pixels, tmp_path)


@pytest.mark.parametrize("side", [10_000, 20_000], ids=["Pillow would warn", "Pillow would fail"])
def test_images_made_to_exhaust_the_memory_are_refused(tmp_path, side):
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    ]
    start = b"\x89PNG\r\n\x1a\n"
    (tmp_path / "x.png").write_bytes(start + b"".join(chunk(*part) for part in parts))
    assert "x.png cannot be decoded (Image size" in refusal(pixels, tmp_path)
    with pytest.raises(DemixError, match="1 of 1"):
        next(open_images(tmp_path).batches(1))


def test_images_of_more_numbers_than_a_row_can_have_are_refused(tmp_path):
    Image.new("1", (4097, 4096)).save(tmp_path / "x.png")  # 2 kB
    assert "at most 16777216 numbers, but" in refusal(pixels, tmp_path)


@pytest.mark.parametrize("suffix", ["tif", "webp", "png"])
def test_several_pages_are_no_image(tmp_path, suffix):
    pages = [Image.fromarray(np.roll(UPRIGHT, shift)) for shift in range(3)]
    pages[0].save(tmp_path / f"x.{suffix}", save_all=True, append_images=pages[1:])
    assert f"x.{suffix} cannot be decoded (it has several pages)" in refusal(pixels, tmp_path)


def test_the_preview_that_a_camera_puts_behind_a_photograph_is_no_page(tmp_path):
    photograph = Image.fromarray(UPRIGHT)
    photograph.save(tmp_path / "x.jpg", "MPO", save_all=True, append_images=[photograph])
    assert pixels(tmp_path).shape == (1, 3, 4, 6)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif", "bmp"])
def test_any_damage_ends_in_a_refusal_at_worst(tmp_path, suffix):
    raw = io.BytesIO()
    Image.fromarray(UPRIGHT).save(raw, "jpeg" if suffix == "jpg" else suffix.replace("f", "ff"))
    whole = raw.getvalue()
    random = np.random.default_rng(0)
    for _ in range(60):
        spoilt = bytearray(whole[: int(random.integers(1, len(whole) + 1))])
        for place in random.integers(len(spoilt), size=3):
            spoilt[place] = random.integers(256)
        (tmp_path / f"x.{suffix}").write_bytes(spoilt)
        with suppress(DemixError):
            pixels(tmp_path)


def test_an_image_many_times_as_long_as_wide_is_not_blown_up(tmp_path):
    Image.new("L", (1, 60_000)).save(tmp_path / "x.png")
    with pytest.raises(DemixError, match="at most 100 times as long as wide"):
        next(open_images(tmp_path).batches(1))


def test_images_that_were_changed_are_told(tmp_path):
    written(tmp_path / "x.png", Image.fromarray(UPRIGHT))
    data = read_data(tmp_path)
    data.check_unchanged()
    written(tmp_path / "x.png", Image.fromarray(UPRIGHT[:, ::-1] // 2))
    os.utime(tmp_path / "x.png", ns=(0, 0))
    with pytest.raises(DemixError, match="was changed while it was read"):
        data.check_unchanged()
