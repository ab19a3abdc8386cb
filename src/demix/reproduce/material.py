"""The files that an experiment is run on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demix.datasets import kitti_masks
from demix.errors import DemixError
from demix.experiments import Experiment, Row, SceneRow, VideoRow
from demix.scenes import open_rendered


def open_material(
    experiment: Experiment[Row], data: Sequence[str | Path], *, verify: bool = False
) -> Any:
    """Return what the rows of an experiment need beside themselves; None if that is nothing.

    With ``verify``, rendered folders are compared with their checksums.
    """
    if experiment.data is None and data:
        raise DemixError(
            f"{experiment.name} makes its own data, but got {data[0]}; leave --data out."
        )
    if experiment.data is not None and not data:
        raise DemixError(f"{experiment.name} needs --data with {experiment.data}, but got none.")
    if isinstance(experiment.rows[0], VideoRow):
        return kitti_masks(*data)
    if isinstance(experiment.rows[0], SceneRow):
        folders = [open_rendered(folder, verify=verify) for folder in data]
        for path, folder in zip(data, folders, strict=True):
            if folder.order.scene != "3dident":
                raise DemixError(
                    f"{experiment.name} needs {experiment.data}, but {path} holds the scene "
                    f"{folder.order.scene}."
                )
        return folders
    return None
