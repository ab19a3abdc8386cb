"""Features of photographs, from any model, in the memory of one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from demix._support.errors import DemixError, listed, need, reason, warn
from demix._support.files import is_there, write_atomic
from demix._support.memory import check_memory
from demix.data.names import read_names
from demix.data.npy_files import read_npy
from demix.papers.reizinger2024.efficientnet import EfficientNetLite0

if TYPE_CHECKING:
    from demix.papers.datasets.image_files import ImageFiles

_MOST_FIXED = 4096  # images in a batch of an ONNX file that takes batches of one size only
_MOST_FEATURES = 2**14  # read-outs need the square of it in memory, and its cube in time
_LONGEST_RUN = 600  # seconds for one batch of a model, which may be a loop without an end

NAMES = "names.txt"


@dataclass(frozen=True, eq=False)
class Features:
    """Features ``values`` ``(N, d)`` of images, and their file ``names``, without folders."""

    values: np.ndarray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


def features(
    images: ImageFiles | None,
    model: nn.Module | Callable[[Tensor], Tensor] | str | Path,
    *,
    batch: int = 32,
    callback: Callable[[int, int], None] = lambda done, total: None,
) -> Features:
    """Encode photographs, or read features that were made elsewhere.

    Parameters
    ----------
    images : ImageFiles or None
        From :func:`open_images`; None if features are read from a file. Files that cannot be
        decoded are left out with a warning, up to one in a hundred.
    model : nn.Module, callable or path
        Takes a batch ``(B, 3, H, W)`` of float32 in [0, 1] to features ``(B, d)``. A module is run
        in evaluation mode. Of an ``.onnx`` file onnxruntime (the extra ``papers``) runs the first
        input and the first output. An ``.npy`` file ``(N, d)`` is read as it is; ``names.txt`` in
        its folder has a line with the file name of each row.
    batch : int
        Images that are decoded and encoded at a time.
    callback : callable, optional
        ``callback(done, total)`` after every batch.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from demix.papers import features, open_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (16, 16), (255, 0, 51)).save(f"{folder}/a.png")
    ...     found = features(open_images(folder, side=16), lambda x: x.mean(dim=(2, 3)))
    >>> found.names, found.values.round(1).tolist()
    (('a.png',), [[1.0, 0.0, 0.2]])
    """
    if batch < 1:
        raise DemixError(f"A batch needs at least 1 image, but got {batch}.")
    if isinstance(model, str | Path) and Path(model).suffix.lower() == ".npy":
        return read_features(Path(model))
    if images is None:
        raise DemixError("A model needs images to encode, but got none; open_images opens some.")
    encode = _encoder(model)
    values = np.empty((0, 0), dtype=np.float32)
    names: list[str] = []
    for found in images.batches(batch):
        pixels = torch.from_numpy(found.pixels).permute(0, 3, 1, 2).float() / 255
        rows = _rows(encode(pixels), len(found.names))
        if not names:
            values = np.empty((len(images), rows.shape[1]), dtype=np.float32)
        values[len(names) : len(names) + len(rows)] = rows
        names += found.names
        callback(len(names), len(images))
    damaged = sorted(set(images.names) - set(names))
    if damaged:
        callback(len(images), len(images))
        warn(
            f"{len(damaged)} of {len(images)} images in {images.source} cannot be decoded and are "
            f"left out: {listed(damaged)}."
        )
    return Features(values[: len(names)], tuple(names))


def read_features(path: Path) -> Features:
    """Read features from an ``.npy`` file, and their names from ``names.txt`` in its folder."""
    if not is_there(path):
        raise DemixError(f"Expected features (.npy), but {path} is no file.")
    values = read_npy(path)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise DemixError(
            f"Expected features (N, d) of numbers, but {path} has shape {values.shape} and type "
            f"{values.dtype}."
        )
    listing = path.parent / NAMES
    if not is_there(listing):
        raise DemixError(
            f"Expected the file names of {path} in {listing}, one in a line, but it is not there."
        )
    if values.shape[1] > _MOST_FEATURES:
        raise DemixError(
            f"Expected at most {_MOST_FEATURES} features, but {path} has {values.shape[1]}; take "
            "some of them, or project them."
        )
    names = [name.rpartition("/")[2] for name in read_names(listing)]
    if len(names) != len(values):
        raise DemixError(
            f"Expected a file name for each row, but {path} has {len(values)} rows and {listing} "
            f"{len(names)} names."
        )
    check_memory(4 * values.size, f"Reading {path}", "take fewer features")
    return Features(np.array(values, dtype=np.float32), tuple(names))


def write_features(found: Features, path: Path) -> None:
    """Write features as :func:`read_features` reads them."""
    buffer = BytesIO()
    np.save(buffer, found.values)
    write_atomic(path.parent / NAMES, "\n".join(found.names) + "\n")
    write_atomic(path, buffer.getvalue())


def _encoder(model: Any) -> Callable[[Tensor], Any]:
    """Return a function of images ``(B, 3, H, W)`` that gives features."""
    if isinstance(model, str | Path):
        return onnx_encoder(Path(model))
    net = model.folded() if isinstance(model, EfficientNetLite0) else model

    def encode(pixels: Tensor) -> Any:
        training = isinstance(net, nn.Module) and net.training
        try:
            if training:
                net.eval()
            with torch.inference_mode():
                return net(pixels)
        finally:
            if training:
                net.train()

    return encode


def onnx_encoder(path: Path) -> Callable[[Tensor], np.ndarray]:
    """Return the function of an ONNX file, for batches ``(B, 3, H, W)`` of any size."""
    if path.suffix.lower() != ".onnx" or not is_there(path):
        raise DemixError(
            f"Expected a model as an .onnx file, or features as an .npy file, but got {path}."
        )
    onnxruntime = need("onnxruntime", "Running ONNX", "papers")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        taken = session.get_inputs()[0]
        size = taken.shape[0]
    except Exception as error:  # onnxruntime has no common class of its errors
        raise DemixError(f"Expected an ONNX model, but {path}: {reason(error)}.") from error

    if isinstance(size, int) and not 1 <= size <= _MOST_FIXED:
        raise DemixError(
            f"Expected {path} to take batches of any size, or of up to {_MOST_FIXED} images, but "
            f"it takes {size}; export it with a batch of any size."
        )

    def encode(pixels: Tensor) -> np.ndarray:
        x = pixels.numpy()
        parts = [x]
        if isinstance(size, int):  # the last batch is filled up with copies
            parts = [x[start : start + size] for start in range(0, len(x), size)]
            parts = [np.concatenate([p, np.repeat(p[-1:], size - len(p), 0)]) for p in parts]
        try:
            found = [np.asarray(_run(session, {taken.name: part})[0]) for part in parts]
        except Exception as error:
            raise DemixError(
                f"Expected {path} to take images (B, 3, {x.shape[2]}, {x.shape[3]}), but "
                f"{reason(error)}."
            ) from error
        return np.concatenate(found)[: len(x)] if found[1:] else found[0][: len(x)]

    return encode


def _run(session: Any, inputs: dict[str, np.ndarray]) -> list[Any]:
    """Return the outputs of an ONNX model, or raise if they take too long."""
    options = need("onnxruntime", "Running ONNX", "papers").RunOptions()
    clock = Timer(_LONGEST_RUN, lambda: setattr(options, "terminate", True))
    clock.daemon = True
    clock.start()
    try:
        return list(session.run(None, inputs, options))
    finally:
        clock.cancel()


def _rows(found: Any, count: int) -> np.ndarray:
    """Return what a model gave as a matrix ``(count, d)``."""
    if torch.is_tensor(found):
        found = found.float().cpu().numpy()
    shape = np.shape(found)
    if not isinstance(found, np.ndarray) or len(shape) < 2 or shape[0] != count:
        raise DemixError(
            f"Expected a model that takes {count} images to features ({count}, d), but it gives "
            f"{shape if isinstance(found, np.ndarray) else type(found).__name__}; hand in the part "
            "before its classifier."
        )
    return found.reshape(count, -1)


class RandomProjection:
    r"""A random linear map of images ``(C, H, W)`` to ``width`` features, drawn by the seed.

    Entries are zero but for one in :math:`\sqrt D` of the :math:`D` pixels, where they are
    :math:`\pm 1` with a common factor that keeps distances on average (Li et al. 2006). So it
    takes a megabyte or so where a dense one would take hundreds.

    References
    ----------
    P. Li, T. Hastie, K. Church (2006), Very Sparse Random Projections.

    Examples
    --------
    >>> import torch
    >>> from demix.papers import RandomProjection
    >>> images = torch.rand(2, 3, 32, 32)
    >>> found = RandomProjection((3, 32, 32), 2000)(images)
    >>> round(float((found[0] - found[1]).norm() / (images[0] - images[1]).norm()), 1)
    1.0
    """

    def __init__(self, shape: tuple[int, int, int], width: int, *, seed: int = 0) -> None:
        if width < 1 or min(shape) < 1:
            raise DemixError(f"A projection needs sizes, but got {shape} to {width} features.")
        # Slow to import, and rarely used.
        from sklearn.random_projection import SparseRandomProjection

        self.shape, self.width = shape, width
        self._map = SparseRandomProjection(width, random_state=seed, dense_output=True)
        # A fit needs the shape alone.
        self._map.fit(np.zeros((1, int(np.prod(shape))), dtype=np.float32))

    def __call__(self, x: Tensor) -> Tensor:
        """Take images ``(N, C, H, W)`` to features ``(N, width)``."""
        if tuple(x.shape[1:]) != self.shape:
            raise DemixError(f"Expected images {self.shape}, but got {tuple(x.shape[1:])}.")
        projected = self._map.transform(x.reshape(len(x), -1).numpy())
        return torch.from_numpy(np.asarray(projected, dtype=np.float32))
