"""COIL-100 as one ``.npz`` file of compressed photographs."""

from contextlib import suppress
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError, warn
from demix._support.memory import check_memory
from demix.data.images import open_image
from demix.papers.datasets.factor_images import (
    ArrayPixels,
    FactorColumn,
    FactorImages,
    Progress,
    read_array,
)

KEYS = {"data": "biuf", "offset": "iu", "object_id": "iu", "angle_deg": "iuf"}
"""Arrays of the file, and the kinds of their numbers."""
_MOST_SKIPPED = 0.01  # more damaged images than this, and a file is not to be trusted
_AT_ONCE = 500


def open_coil100(path: Path, *, callback: Progress) -> FactorImages:
    """Open photographs of objects on a turntable (Nene, Nayar and Murase, 1996, CUCS-006-96).

    The file holds ``data``, images one after the other as bytes; ``offset`` ``(N,)`` or
    ``(N + 1,)``, where each begins; ``object_id`` and ``angle_deg`` ``(N,)``. Up to one in a
    hundred may be damaged, and is left out. Angles of different objects cannot be compared.
    """
    data, offset, objects, angles = held = [read_array(path, key) for key in KEYS]
    for (name, kinds), array in zip(KEYS.items(), held, strict=True):
        if array.ndim != 1 or array.dtype.kind not in kinds or not len(array):
            raise DemixError(
                f"Expected a list of numbers as {name!r} in {path}, but it is {array.dtype} of "
                f"shape {array.shape}; fetch it again."
            )
    number = len(objects)
    if data.dtype != np.uint8 or len(angles) != number:
        raise DemixError(
            f"Expected bytes in 'data' and one angle for each object_id of {path}, but 'data' is "
            f"{data.dtype} of shape {data.shape}, with {number} objects and {len(angles)} angles."
        )
    ends = np.append(offset, len(data)).astype(np.int64)[: number + 1]
    if len(offset) not in (number, number + 1) or (np.diff(ends) < 0).any() or ends[0] < 0:
        raise DemixError(
            f"Expected {number} places in 'offset' of {path}, in order, where the images begin, "
            f"but got {len(offset)} that are not; is the file complete?"
        )
    size: tuple[int, ...] | None = None
    decoded: list[np.ndarray | None] = []
    for start, end in pairwise(ends):
        if len(decoded) % _AT_ONCE == 0:
            callback(len(decoded), number, f"images of {path.name}")
        image = None
        with suppress(DemixError):  # it may be damaged
            image = np.asarray(open_image(BytesIO(data[start:end].tobytes()), "RGB"))
        if image is not None and image.shape != size:
            if size is not None:
                raise DemixError(f"Expected images of one size in {path}, but there are several.")
            size = image.shape
            check_memory(2 * number * image.nbytes, f"Decoding {path}", "take smaller images")
        decoded.append(image)
    callback(number, number, f"images of {path.name}")
    kept = np.array([image is not None for image in decoded], dtype=bool)
    bad = np.flatnonzero(~kept)
    if len(bad) > _MOST_SKIPPED * number:
        raise DemixError(
            f"Expected images that can be decoded, but {len(bad)} of the {number} in {path} "
            f"cannot, the first of them number {bad[0]}; fetch it again."
        )
    if len(bad):
        warn(
            f"{len(bad)} of the {number} images in {path} cannot be decoded and are left out; "
            f"the first of them is number {bad[0]}."
        )
    images = [image for image in decoded if image is not None]
    names, codes = np.unique(objects, return_inverse=True)
    columns = (
        FactorColumn("object", "categorical", levels=tuple(map(str, names))),
        FactorColumn("angle", "periodic", period=360, within="object"),
    )
    factors = np.column_stack([codes, angles]).astype(np.float32)[kept]
    return FactorImages("coil100", ArrayPixels(np.stack(images)), columns, factors)
