"""Small files in the formats of DisLib, written by other means than those that read them."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

DSPRITES = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
NORB = ("5x46789x9x18x6x2x96x96-training", "5x01235x9x18x6x2x96x96-testing")


def write_dsprites(path: Path, n: int = 60, *, side: int = 16, compressed: bool = True) -> dict:
    random = np.random.default_rng(0)
    shape, scale = random.integers(3, size=n), random.integers(6, size=n)
    classes = np.column_stack([np.zeros(n, int), shape, scale, *random.integers(32, size=(3, n))])
    values = classes.astype(float)
    values[:, 0], values[:, 1] = 1, shape + 1
    values[:, 3] *= 2 * np.pi / 39
    arrays = {
        "imgs": random.integers(2, size=(n, side, side)).astype(np.uint8),
        "latents_values": values,
        "latents_classes": classes,
        # The official file has a pickle like this one.
        "metadata": np.array({"date": "April 2017"}, dtype=object),
    }
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return arrays


def write_shapes3d(path: Path, n: int = 600, *, side: int = 8) -> dict:
    import h5py

    random = np.random.default_rng(0)
    labels = np.column_stack(
        [*(random.integers(10, size=(3, n)) / 10), random.uniform(0.75, 1.25, n),
         random.integers(4, size=n), random.uniform(-30, 30, n)]
    )  # fmt: skip
    arrays = {"images": random.integers(256, size=(n, side, side, 3), dtype=np.uint8)}
    arrays["labels"] = labels
    with h5py.File(path, "w") as file:
        chunks = (50, side, side, 3)
        file.create_dataset("images", data=arrays["images"], chunks=chunks, compression="gzip")
        file.create_dataset("labels", data=labels)
    return arrays


def write_mpi3d(path: Path, sizes=(4, 4, 2, 3, 3, 40, 40), *, compressed: bool = False):
    """All combinations, each as one pixel that tells of it."""
    number = np.arange(np.prod(sizes))
    images = np.stack([number % 251, number // 251 % 251, number // 251**2], axis=1)
    images = images.astype(np.uint8).reshape(-1, 1, 1, 3)
    (np.savez_compressed if compressed else np.savez)(path, images=images)
    return images


def write_cars(folder: Path, names=("car_010_mesh", "car_002_mesh", "car_001_mesh"), *, side=8):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    cars = {
        name: random.integers(256, size=(side, side, 3, 24, 4), dtype=np.uint8) for name in names
    }
    for name, views in cars.items():
        savemat(folder / f"{name}.mat", {"im": views, "mask": views[:, :, 0]}, do_compression=True)
    return cars


def as_tar(folder: Path, archive: Path) -> Path:
    """The layout of the official archive, which also holds other things."""
    with tarfile.open(archive, "w:gz") as tar:
        other = tarfile.TarInfo("data/shapes48.mat")
        other.size = 3
        tar.addfile(other, io.BytesIO(b"no!"))
        for file in folder.iterdir():
            tar.add(file, f"data/cars/{file.name}")
    return archive


def matrix(array: np.ndarray) -> bytes:
    """The bytes of a binary matrix file."""
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[str(array.dtype)]
    sizes = [*array.shape, 1, 1][: max(3, array.ndim)]
    return struct.pack(f"<ii{len(sizes)}i", magic, array.ndim, *sizes) + array.tobytes()


def write_norb(folder: Path, n: int = 40, *, packed: bool = False) -> list[dict]:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    written = []
    for part in NORB:
        arrays = {
            "dat": random.integers(256, size=(n, 2, 96, 96), dtype=np.uint8),
            "cat": random.integers(5, size=n, dtype=np.int32),
            "info": np.column_stack(
                [random.integers(10, size=n), random.integers(9, size=n),
                 2 * random.integers(18, size=n), random.integers(6, size=n)]
            ).astype(np.int32),
        }  # fmt: skip
        for kind, array in arrays.items():
            data = matrix(array)
            file = folder / f"smallnorb-{part}-{kind}.mat{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(data, 1) if packed else data)
        written.append(arrays)
    return written


def write_coil(path: Path, objects: int = 4, angles: int = 36, *, side: int = 16, bad=()) -> list:
    """Discs with a notch that turns, each object in a colour of its own."""
    random = np.random.default_rng(0)
    colours = random.integers(60, 256, size=(objects, 3))
    data, offset, images = b"", [], []
    rows, columns = np.mgrid[:side, :side] - (side - 1) / 2
    for number in range(objects * angles):
        thing, angle = divmod(number, angles)
        turn = 2 * np.pi * angle / angles + thing
        notch = np.cos(np.arctan2(rows, columns) - turn) > 0.7
        image = np.where((rows**2 + columns**2 < side**2 / 5)[..., None], colours[thing], 0)
        image = np.where((notch & image.any(axis=2))[..., None], 255 - image, image)
        images.append(image.astype(np.uint8))
        buffer = io.BytesIO()
        Image.fromarray(images[-1]).save(buffer, "WEBP", lossless=True)
        offset.append(len(data))
        data += b"no image" if number in bad else buffer.getvalue()
    np.savez(
        path,
        data=np.frombuffer(data, dtype=np.uint8),
        offset=np.array([*offset, len(data)]),
        object_id=np.repeat(np.arange(objects) + 1, angles),
        angle_deg=np.tile(np.arange(angles) * 360 / angles, objects),
    )
    return images
