"""Features of photographs beside what was annotated of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError, listed, warn
from demix._support.outputs import read_marker
from demix.data.names import match_rows
from demix.papers.datasets.annotations import imagenet_x
from demix.papers.reizinger2024.extraction import Features, read_features
from demix.papers.runner.experiment import Reading

ABOUT = "about.json"
MODELS = ("trained", "random", "pixels")


class AnnotatedFeatures:
    """Features under several models, and annotations, joined by file name.

    Parameters
    ----------
    features : Path
        An ``.npy`` file, or a folder with ``trained.npy`` and perhaps ``random.npy`` and
        ``pixels.npy``; each beside ``names.txt``.
    annotations : Path, optional
        Of ImageNet-X; by default those of the installed package.
    """

    def __init__(self, features: Path, annotations: Path | None) -> None:
        self.paths = (features.resolve(), *([annotations.resolve()] if annotations else []))
        self.annotations = imagenet_x(annotations)
        self._files = feature_files(features)
        self._read: dict[str, Features] = {}
        self._pairs: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}

    @property
    def models(self) -> tuple[str, ...]:
        """The models of which there are features."""
        return tuple(self._files)

    def encoded(self, folder: Path, reading: Reading) -> AnnotatedFeatures:
        """Return itself: the features are encoded already."""
        return self

    def rows(self, model: str) -> tuple[np.ndarray, np.ndarray]:
        """Return features ``(N, d)`` and targets ``(N, 17)`` of images that have both.

        A :class:`DemixWarning` counts and names those that have one of them only.
        """
        found = self._features(model)
        # strs of the same images are joined once, so that what is left out is told once.
        if found.names not in self._pairs:
            self._pairs[found.names] = self._joined(found.names)
        mine, theirs = self._pairs[found.names]
        return found.values[mine], self.annotations.targets[theirs]

    def about(self, model: str) -> dict[str, Any]:
        """Return facts for the record of a cell."""
        path, found = self._files[model], self._features(model)
        told = told_of(path.parent)
        return {
            "encoder": told.get("encoder", path.name),
            "top1": told.get("top1"),
            "feature_seconds": told.get("seconds", {}).get(model),
            "width": found.values.shape[1],
            "encoded": len(found),
        }

    def _features(self, model: str) -> Features:
        if model not in self._read:
            self._read[model] = read_features(self._files[model])
        return self._read[model]

    def _joined(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        found = match_rows(names, self.annotations.names, called=("the images", "the annotations"))
        for left, mine, other in (
            (found.only_first, "images", "annotations"),
            (found.only_second, "annotations", "images"),
        ):
            if left:
                warn(
                    f"{len(left)} {mine} are left out, because no {other} have their names: "
                    f"{listed(left)}."
                )
        return found.first, found.second


def feature_files(path: Path) -> dict[str, Path]:
    """Return the files of features by model."""
    if path.is_file():
        return {"trained": path}
    files = {model: path / f"{model}.npy" for model in MODELS}
    if not files["trained"].is_file():
        raise DemixError(
            f"Expected trained.npy, and perhaps random.npy and pixels.npy, in {path}, but there is "
            "none; name it so, or give the file itself."
        )
    return {model: file for model, file in files.items() if file.is_file()}


def told_of(folder: Path) -> dict[str, Any]:
    """Return what a folder of features tells of itself, if that is anything that can be used."""
    told = read_marker(folder / ABOUT)
    try:
        top1 = told.get("top1") or {}
        numbers = [*told.get("seconds", {}).values(), *top1.values()]
        usable = isinstance(told.get("encoder", ""), str) and all(map(math.isfinite, numbers))
    except (AttributeError, TypeError, OverflowError):
        return {}
    return told if usable and set(top1) in (set(), {"share", "images"}) else {}
