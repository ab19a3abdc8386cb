"""Photographs with annotated factors, models that encode them, and their features."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demix._support.errors import DemixError, listed, warn
from demix._support.files import claiming, file_digest, is_temporary, refuse_new, write_atomic
from demix._support.outputs import check_folder, read_marker
from demix.data.names import match_rows
from demix.papers.datasets.annotations import class_labels, imagenet_x
from demix.papers.datasets.factor_images import Progress
from demix.papers.datasets.image_files import open_images
from demix.papers.digests import digest_of
from demix.papers.reizinger2024.efficientnet import (
    EfficientNetLite0,
    efficientnet_lite0_file,
    load_efficientnet_lite0,
)
from demix.papers.reizinger2024.extraction import (
    Features,
    RandomProjection,
    features,
    read_features,
    write_features,
)

MODELS = ("trained", "random", "pixels")
_ABOUT = "about.json"
# A net that names fewer of its own classes was loaded wrongly, or the labels are of other images.
_LEAST_TOP1 = 0.5
_KINDS = {".jsonl": "annotations", ".csv": "labels", ".onnx": "model", ".npy": "features"}


def open_photographs(
    paths: Sequence[str | Path], most: int | None = None
) -> Photographs | AnnotatedFeatures:
    """Open images, or features, annotations, labels and a model, each by what it is.

    At most ``most`` images are encoded.
    """
    given = _sorted(paths)
    if "images" in given:
        return Photographs(given, most)
    if "features" not in given:
        raise DemixError(
            "Read-outs need images (a folder or a tar archive), or features (.npy) made of them, "
            "but got neither."
        )
    return AnnotatedFeatures(given["features"], given.get("annotations"))


class Photographs:
    """Images that are still to be encoded; made by :func:`open_photographs`."""

    def __init__(self, given: Mapping[str, Path], most: int | None) -> None:
        images = open_images(given["images"])
        self.images = images if most is None else images.some(most)
        self._annotations = given.get("annotations")
        self._onnx = given.get("model")
        self._files = feature_files(given["features"]) if "features" in given else {}
        self._labels = _checked_labels(given.get("labels"), self._annotations)
        if not (self._files or self._onnx):
            efficientnet_lite0_file()  # raises now if it is missing

    @property
    def models(self) -> tuple[str, ...]:
        """The models of which features can be made; only our own net has a random one."""
        own = not (self._files or self._onnx)
        made = {"trained", "pixels", *self._files, *(["random"] if own else [])}
        return tuple(model for model in MODELS if model in made)

    @property
    def encoder(self) -> str:
        """What the trained model is."""
        if self._onnx is not None:
            return self._onnx.name
        return self._files["trained"].name if self._files else "EfficientNet-Lite0"

    def encoded(self, folder: Path, reading: Progress) -> AnnotatedFeatures:
        """Encode the images into a folder, by every model of which it has no features yet."""
        check_folder(folder)
        origin, about = self._origin, about_features(folder)
        present = folder.is_dir() and not all(map(is_temporary, folder.iterdir()))
        if present and not origin.items() <= about.items():
            raise DemixError(
                f"{folder} holds features of {about.get('encoder', 'some model')} of other images "
                f"than these or of another model than {self.encoder}; choose another folder."
            )
        for model in self.models:
            kept = folder / f"{model}.npy"
            with claiming(folder):
                if kept.exists():
                    continue
                begun = time.process_time()  # other programs do not lengthen it
                found = self._features(model, folder, reading)
                seconds = {model: round(time.process_time() - begun, 1)}
                about = about | origin | {"seconds": about.get("seconds", {}) | seconds}
                if model == "trained" and self.encoder == "EfficientNet-Lite0":
                    about["top1"] = self._top1(found)
                refuse_new(kept)
                write_atomic(folder / _ABOUT, json.dumps(about, indent=1) + "\n")
                write_features(found, kept)
        return AnnotatedFeatures(folder, self._annotations)

    def _features(self, model: str, folder: Path, reading: Progress) -> Features:
        if model in self._files:
            return read_features(self._files[model])
        encode: Any
        if model == "trained":
            encode = load_efficientnet_lite0() if self._onnx is None else self._onnx
        elif model == "random":
            encode = EfficientNetLite0(torch.Generator().manual_seed(0))
        else:
            width = read_features(folder / "trained.npy").values.shape[1]
            encode = RandomProjection((3, self.images.side, self.images.side), width)

        def encoded(done: int, total: int) -> None:
            reading(done, total, f"encoding, {model}")

        return features(self.images, encode, callback=encoded)

    @cached_property
    def digest(self) -> str:
        """A checksum of images, models and annotations."""
        annotations = vars(imagenet_x(self._annotations)).values()
        return digest_of([repr(self._origin), *annotations])

    @cached_property
    def _origin(self) -> dict[str, Any]:
        """Return what kept features must have been made of."""
        origin = {"encoder": self.encoder, "images": self.images.digest()}
        if self._onnx is not None:
            origin["onnx"] = file_digest(self._onnx)
        for model, file in self._files.items():
            origin[model] = digest_of(vars(read_features(file)).values())
        return origin

    def _top1(self, found: Features) -> dict[str, float]:
        """Return the share of labelled images whose class the net names; refuse a wrong net."""
        labels = np.array([self._labels.get(name, -1) for name in found.names])
        labelled = labels >= 0
        if not labelled.any():
            return {}
        with torch.no_grad():
            logits = load_efficientnet_lite0().head(torch.from_numpy(found.values))
        share = float((logits.argmax(dim=1).numpy() == labels)[labelled].mean())
        if share < _LEAST_TOP1:
            raise DemixError(
                f"Expected {self.encoder} to name the class of at least {100 * _LEAST_TOP1:.0f} % "
                f"of the images, but it names that of {100 * share:.1f} % of {labelled.sum()}; are "
                "these photographs of ImageNet, and the labels its class indices from 0?"
            )
        return {"share": share, "images": int(labelled.sum())}


class AnnotatedFeatures:
    """Features, one file or a folder of a file per model, and annotations, joined by file name."""

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

    @cached_property
    def digest(self) -> str:
        """A checksum of features and annotations."""
        parts = [vars(self.annotations), *(vars(self._features(model)) for model in self.models)]
        return digest_of([self.models, *(value for part in parts for value in part.values())])

    def encoded(self, folder: Path, reading: Progress) -> AnnotatedFeatures:
        """Return itself: the features are encoded already."""
        return self

    def rows(self, model: str) -> tuple[np.ndarray, np.ndarray]:
        """Return features ``(N, d)`` and targets ``(N, 17)`` of images that have both."""
        found = self._features(model)
        # Features of the same images are joined once, so that the warning comes once.
        if found.names not in self._pairs:
            self._pairs[found.names] = self._joined(found.names)
        mine, theirs = self._pairs[found.names]
        return found.values[mine], self.annotations.targets[theirs]

    def about(self, model: str) -> dict[str, Any]:
        """Return facts for the record of a job."""
        path, found = self._files[model], self._features(model)
        about = about_features(path.parent)
        return {
            "encoder": about.get("encoder", path.name),
            "top1": about.get("top1"),
            "feature_seconds": about.get("seconds", {}).get(model),
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


def about_features(folder: Path) -> dict[str, Any]:
    """Return the facts that a folder of features holds; none if they cannot be used."""
    about = read_marker(folder / _ABOUT)
    try:
        top1 = about.get("top1") or {}
        numbers = [*about.get("seconds", {}).values(), *top1.values()]
        usable = isinstance(about.get("encoder", ""), str) and all(map(math.isfinite, numbers))
    except (AttributeError, TypeError, OverflowError):
        return {}
    return about if usable and set(top1) in (set(), {"share", "images"}) else {}


def _sorted(paths: Sequence[str | Path]) -> dict[str, Path]:
    """Return paths by what they are."""
    given: dict[str, Path] = {}
    for path in map(Path, paths):
        kind = _KINDS.get(path.suffix.lower(), "images")
        if path.is_dir() and any(path.glob("*.npy")):
            kind = "features"
        if kind in given:
            raise DemixError(f"Expected one path with {kind}, but got {given[kind]} and {path}.")
        if not path.exists():
            raise DemixError(f"Expected {kind} to read, but {path} does not exist.")
        given[kind] = path
    if "model" in given and "features" in given:
        raise DemixError(
            f"Expected a model or features, but got {given['model']} and {given['features']}; "
            "leave one out."
        )
    return given


def _checked_labels(path: Path | None, annotations: Path | None) -> dict[str, int]:
    """Return class indices by file name; refuse labels that disagree with the annotations."""
    read = imagenet_x(annotations)
    known = dict(zip(read.names, read.classes.tolist(), strict=True))
    if path is None:
        return known
    labels = class_labels(path)
    wrong = [name for name, label in labels.items() if known.get(name, label) != label]
    if wrong:
        raise DemixError(
            f"Expected labels and annotations of the same classes, but {len(wrong)} of "
            f"{len(labels)} differ, the first of them {wrong[0]}: {labels[wrong[0]]} and "
            f"{known[wrong[0]]}."
        )
    return labels
