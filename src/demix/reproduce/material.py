"""The files that an experiment is run on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demix.datasets import kitti_masks
from demix.errors import DemixError
from demix.experiments import Experiment, FactorRow, Model, Row, Scale, SceneRow, VideoRow
from demix.reproduce.photographs import Photographs
from demix.scenes import open_rendered


def open_material(
    experiment: Experiment[Row], data: Sequence[str | Path], folder: Path, scale: Scale
) -> Any:
    """Return what the rows of an experiment need beside themselves; None if that is nothing.

    ``folder`` is where results go; what is made of the data may be kept there later, not now.
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
        folders = [open_rendered(path) for path in data]
        for path, rendered in zip(data, folders, strict=True):
            if rendered.order.scene != "3dident":
                raise DemixError(
                    f"{experiment.name} needs {experiment.data}, but {path} holds the scene "
                    f"{rendered.order.scene}."
                )
        return folders
    first = experiment.rows[0]
    if isinstance(first, FactorRow):
        return Photographs(data, folder / "features", first.images(scale))
    return None


def models_of(row: Row, material: Any) -> tuple[Model, ...]:
    """Return the models of a row that can be had of the material."""
    return material.models if isinstance(material, Photographs) else row.models
