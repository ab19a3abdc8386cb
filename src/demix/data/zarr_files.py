"""Arrays from zarr stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from demix.data.formats import choose_array, reason
from demix.errors import DemixError
from demix.extras import need


def open_zarr(path: Path, key: str | None) -> Any:
    """Open one array of a zarr store, reading none of its chunks."""
    zarr = need("zarr", "Reading a .zarr store", "files")
    try:
        node = zarr.open(path, mode="r")
        if isinstance(node, zarr.Group):
            return node[choose_array([name for name, _ in node.arrays()], key, path)]
    except DemixError:
        raise
    except Exception as error:  # which one depends on what is missing
        raise DemixError(
            f"Expected a zarr store, but {path} cannot be read as one ({reason(error)}); "
            "write it again."
        ) from error
    if key is not None:
        raise DemixError(f"A key chooses from a zarr group, but {path} holds a single array.")
    return node
