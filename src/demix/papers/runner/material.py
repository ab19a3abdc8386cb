"""The files that an experiment is run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.dislib.opening import open_factor_images
from demix.papers.datasets.dislib.pixels import H5Pixels
from demix.papers.datasets.masks import kitti_masks
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.reizinger2024.photographs import Photographs, open_photographs
from demix.papers.reizinger2024.readouts import ReadOutRow, most_images
from demix.papers.runner.declaration import Experiment, Model, Row
from demix.papers.runner.scales import Scale
from demix.papers.scenes.opening import open_rendered
from demix.papers.zimmermann2021.scenes import SceneRow
from demix.papers.zimmermann2021.videos import VideoRow

Report = Callable[[int, int, str], None]
"""Told how much is read, of how much, and what it is."""


def open_material(
    experiment: Experiment[Row],
    data: Sequence[str | Path],
    scale: Scale,
    report: Report = lambda done, total, what: None,
    *,
    verify: bool = False,
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
        folders = [open_rendered(path, verify=verify) for path in data]
        for path, rendered in zip(data, folders, strict=True):
            if rendered.order.scene != "3dident":
                raise DemixError(
                    f"{experiment.name} needs {experiment.data}, but {path} holds the scene "
                    f"{rendered.order.scene}."
                )
        return folders
    if isinstance(experiment.rows[0], ReadOutRow):
        return _factor_images(experiment, data, scale, report)
    if isinstance(experiment.rows[0], FactorRow):
        return open_photographs(data, experiment.rows[0].images(scale))
    return None


def _factor_images(
    experiment: Experiment[Row], data: Sequence[str | Path], scale: Scale, report: Report
) -> dict[str, FactorImages]:
    """Return the data sets by name, of large ones as many images as a scale takes."""
    sets = [row.dataset for row in experiment.rows if isinstance(row, ReadOutRow)]
    found: dict[str, FactorImages] = {}
    for path in data:
        known = open_factor_images(path, report=report)
        if known.name not in sets or known.name in found:
            again = "again" if known.name in found else "which has no row"
            raise DemixError(
                f"{experiment.name} takes one of each of {', '.join(sets)}, but {path} holds "
                f"{known.name}, {again}."
            )
        most = most_images(scale)
        if most is not None and most < len(known):
            chosen = np.random.default_rng(0).choice(len(known), most, replace=False)
            known = known.only(np.sort(chosen), report=report)
        elif isinstance(known.pixels, H5Pixels):
            # In chunks, so that rows at random would take as long as all of them, at every step.
            known = known.only(np.arange(len(known)), report=report)
        found[known.name] = known
    return found


def models_of(row: Row, material: Any) -> tuple[Model, ...]:
    """Return the models of a row that can be had of the material."""
    return material.models if isinstance(row, FactorRow) else row.models


def prepared(
    material: Any, data: tuple[Path, ...], folder: Path, report: Report
) -> tuple[Any, tuple[Path, ...]]:
    """Return what cells run on, and the files to open it from in another process.

    Photographs are encoded once for all cells, into ``folder``.
    """
    if not isinstance(material, Photographs):
        return material, data
    features = material.encoded(folder / "features", report)
    return features, features.paths
