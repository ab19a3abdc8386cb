"""Photographs with annotated factors, and models that encode them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.outputs import check_folder
from demix.papers.datasets.annotations import class_labels, imagenet_x
from demix.papers.datasets.image_files import open_images
from demix.papers.reizinger2024.annotated import (
    ABOUT,
    MODELS,
    AnnotatedFeatures,
    feature_files,
    told_of,
)
from demix.papers.reizinger2024.efficientnet import (
    EfficientNetLite0,
    efficientnet_lite0_file,
    load_efficientnet_lite0,
)
from demix.papers.reizinger2024.extraction import Features, features, read_features, write_features
from demix.papers.reizinger2024.projection import RandomProjection
from demix.papers.runner.experiment import Reading

# A net that names fewer of its own classes was loaded wrongly, or the labels are of other images.
_LEAST_TOP1 = 0.5
_KINDS = {".jsonl": "annotations", ".csv": "labels", ".onnx": "model", ".npy": "features"}


def open_photographs(
    paths: Sequence[str | Path], most: int | None = None
) -> Photographs | AnnotatedFeatures:
    """Sort files out, and check that they go together.

    Parameters
    ----------
    paths : sequence of paths
        In any order, each at most once: a folder or tar archive of images; ``.jsonl`` annotations
        (else those of the installed package); ``.csv`` labels; an ``.onnx`` model in place of
        EfficientNet-Lite0; ``.npy`` features, or a folder of them, as :class:`AnnotatedFeatures`
        takes them.
    most : int, optional
        Encode only so many images.
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
            efficientnet_lite0_file()  # which tells now if it is missing

    @property
    def models(self) -> tuple[str, ...]:
        """The models that can be had: only of our own net is there a random initialisation."""
        own = not (self._files or self._onnx)
        made = {"trained", "pixels", *self._files, *(["random"] if own else [])}
        return tuple(model for model in MODELS if model in made)

    @property
    def encoder(self) -> str:
        """What the trained model is."""
        if self._onnx is not None:
            return self._onnx.name
        return self._files["trained"].name if self._files else "EfficientNet-Lite0"

    def encoded(self, folder: Path, reading: Reading) -> AnnotatedFeatures:
        """Encode the images into a folder, by every model of which it has no features yet.

        The folder can be given in place of the images from then on.
        """
        check_folder(folder)
        origin, told = self._origin(), told_of(folder)
        if told and not origin.items() <= told.items():
            raise DemixError(
                f"{folder} holds features of {told.get('encoder')} of other images than these or "
                f"of another model than {self.encoder}; choose another folder."
            )
        for model in self.models:
            kept = folder / f"{model}.npy"
            if not kept.exists():
                begun = time.process_time()  # which other programs do not lengthen
                found = self._features(model, folder, reading)
                seconds = {model: round(time.process_time() - begun, 1)}
                told = told | origin | {"seconds": told.get("seconds", {}) | seconds}
                if model == "trained" and self.encoder == "EfficientNet-Lite0":
                    told["top1"] = self._top1(found)
                write_atomic(folder / ABOUT, json.dumps(told, indent=1) + "\n")
                write_features(found, kept)
        return AnnotatedFeatures(folder, self._annotations)

    def _features(self, model: str, folder: Path, reading: Reading) -> Features:
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

    def _origin(self) -> dict[str, Any]:
        """Return what kept features must have been made of."""
        names = "\n".join(self.images.names).encode()
        origin = {"encoder": self.encoder, "images": hashlib.sha256(names).hexdigest()}
        if self._onnx is not None:
            origin["onnx"] = hashlib.sha256(self._onnx.read_bytes()).hexdigest()
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
