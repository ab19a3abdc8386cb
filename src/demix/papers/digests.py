"""One digest for the parts of a data set."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def digest_of(parts: Iterable[Any]) -> str:
    """Return the SHA-256 of arrays or lists of words, with their types and shapes.

    >>> digest_of([[1, 2], ["a"]]) == digest_of([[1, 2], ["b"]])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
