"""Photographs with annotated factors, and their features under several models."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demix.datasets import ImageFiles, class_labels, imagenet_x, joined, open_images
from demix.encoders import (
    EfficientNetLite0,
    Features,
    RandomProjection,
    efficientnet_lite0_file,
    features,
    load_efficientnet_lite0,
    read_features,
    write_features,
)
from demix.errors import DemixError
from demix.experiments import Model
from demix.files import write_atomic

Count = Callable[[int], None]
"""``report(done)`` counts the images that are encoded."""

_ABOUT = "about.json"
_MODELS = ("trained", "random", "pixels")
# A net that names fewer of its own classes was loaded wrongly, or the labels are of other images.
_LEAST_TOP1 = 0.5
_WORDS = ("images", "annotations")
_KINDS = {".jsonl": "annotations", ".csv": "labels", ".onnx": "model", ".npy": "features"}


class Photographs:
    """What :func:`demix.reproduce.reproduce` needs for read-outs of annotated factors.

    Features are made when they are first asked for and kept in ``folder``, so that a run that was
    interrupted finds them again, and other runs can take the folder in place of the images.

    Parameters
    ----------
    paths : sequence of paths
        In any order, each at most once: a folder or tar archive of images; ``.jsonl`` annotations
        (else those of the installed package); ``.csv`` labels; an ``.onnx`` model in place of
        EfficientNet-Lite0; ``.npy`` features, or a folder with ``trained.npy`` and perhaps
        ``random.npy`` and ``pixels.npy``, each beside ``names.txt``.
    folder : Path
        Where features are kept; made when there are some.
    most : int, optional
        Encode only so many images.
    """

    def __init__(self, paths: Sequence[str | Path], folder: Path, most: int | None = None) -> None:
        given = _sorted(paths)
        self.folder = folder
        self.images: ImageFiles | None = None
        if "images" in given:
            whole = open_images(given["images"])
            self.images = whole if most is None else whole.some(most)
        self._files = _feature_files(given.get("features"))
        self._onnx = given.get("model")
        if self.images is None and (self._onnx or not self._files):
            raise DemixError(
                "Read-outs need images (a folder or a tar archive), or features (.npy) made of "
                "them, but got neither."
            )
        self.annotations = imagenet_x(given.get("annotations"))
        self._labels = class_labels(given["labels"]) if "labels" in given else None
        self._check_labels()
        if not (self._files or self._onnx or self._kept("trained").exists()):
            efficientnet_lite0_file()  # which tells now, not after the folder was made
        self._read: dict[Model, Features] = {}
        self._pairs: dict[tuple[str, ...], np.ndarray] = {}

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that can be had: only of our own net is there a random initialisation."""
        made = set(self._files)
        if self.images is not None:
            own = not self._files and self._onnx is None
            made |= {"trained", "pixels", *(["random"] if own else [])}
        return tuple(model for model in _MODELS if model in made)

    @property
    def encoder(self) -> str:
        """What the trained model is."""
        if self._onnx is not None:
            return self._onnx.name
        if self._files:
            path = self._files["trained"]
            return str(_told(path.parent).get("encoder", path.name))
        return "EfficientNet-Lite0"

    def ahead(self, model: Model) -> int:
        """Return how many images are still to be encoded before the features are there."""
        needed = [model] if model != "pixels" else ["trained", "pixels"]
        return sum(self._images_of(one) for one in needed)

    def rows(
        self, model: Model, report: Count = lambda done: None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return features ``(N, d)`` and targets ``(N, 17)`` of images that have both.

        ``report(done)`` counts the images that are encoded on the way.
        """
        found = self._features(model, report)
        # Models of the same images are joined once, so that what is left out is told once.
        if found.names not in self._pairs:
            self._pairs[found.names] = joined(found.names, self.annotations.names, _WORDS)
        mine, theirs = self._pairs[found.names].T
        return found.values[mine], self.annotations.targets[theirs]

    def about(self, model: Model) -> dict[str, Any]:
        """Return facts for the record of a cell."""
        told = _told(self.folder if model not in self._files else self._files[model].parent)
        return {
            "encoder": self.encoder,
            "top1": told.get("top1"),
            "feature_seconds": told.get("seconds", {}).get(model),
            "width": self._features(model).values.shape[1],
            "encoded": len(self._features(model)),
        }

    def _images_of(self, model: Model) -> int:
        known = model in self._read or model in self._files or self._kept(model).exists()
        return 0 if known or self.images is None else len(self.images)

    def _kept(self, model: Model) -> Path:
        return self.folder / f"{model}.npy"

    def _features(
        self, model: Model, report: Callable[[int], None] = lambda done: None
    ) -> Features:
        if model in self._read:
            return self._read[model]
        if model in self._files:
            found = read_features(self._files[model])
        elif self._kept(model).exists():
            self._check_kept()
            found = read_features(self._kept(model))
        else:
            found = self._made(model, report)
        self._read[model] = found
        return found

    def _made(self, model: Model, report: Count) -> Features:
        """Encode the images, check what came out, and keep it."""
        assert self.images is not None
        before, net = 0, None
        encode: Any
        if model == "trained" and self._onnx is None:
            encode = net = load_efficientnet_lite0()
        elif model == "trained":
            encode = self._onnx
        elif model == "random":
            encode = EfficientNetLite0(torch.Generator().manual_seed(0))
        else:
            before = self._images_of("trained")
            width = self._features("trained", report).values.shape[1]
            encode = RandomProjection((3, self.images.side, self.images.side), width)
        self._check_kept()
        begun = time.process_time()  # which other programs do not lengthen
        found = features(self.images, encode, report=lambda done, total: report(before + done))
        seconds = time.process_time() - begun
        told = _told(self.folder) | self._origin()
        told["seconds"] = {**told.get("seconds", {}), model: round(seconds, 1)}
        if net is not None:
            told["top1"] = self._top1(net, found)
        write_atomic(self.folder / _ABOUT, json.dumps(told, indent=1) + "\n")
        write_features(found, self._kept(model))
        return found

    def _origin(self) -> dict[str, Any]:
        """Return what kept features must have been made of."""
        assert self.images is not None
        names = "\n".join(self.images.names).encode()
        origin = {"encoder": self.encoder, "images": hashlib.sha256(names).hexdigest()}
        if self._onnx is not None:
            origin["onnx"] = hashlib.sha256(self._onnx.read_bytes()).hexdigest()
        return origin

    def _check_kept(self) -> None:
        told = _told(self.folder)
        if self.images is not None and told and not self._origin().items() <= told.items():
            raise DemixError(
                f"{self.folder} holds features of {told.get('encoder')} of other images than these "
                f"or of another model than {self.encoder}; choose another folder."
            )

    def _check_labels(self) -> None:
        """Refuse labels that disagree with the annotations."""
        known = dict(zip(self.annotations.names, self.annotations.classes.tolist(), strict=True))
        labels = self._labels or {}
        wrong = [name for name, label in labels.items() if known.get(name, label) != label]
        if wrong:
            raise DemixError(
                f"Expected labels and annotations of the same classes, but {len(wrong)} of "
                f"{len(labels)} differ, the first of them {wrong[0]}: {labels[wrong[0]]} and "
                f"{known[wrong[0]]}."
            )
        if self._labels is None:
            self._labels = known

    def _top1(self, net: EfficientNetLite0, found: Features) -> dict[str, float]:
        """Return the share of labelled images whose class the net names; refuse a wrong net."""
        assert self._labels is not None
        labels = np.array([self._labels.get(name, -1) for name in found.names])
        with torch.no_grad():
            told = net.head(torch.from_numpy(found.values)).argmax(dim=1).numpy()
        labelled = labels >= 0
        if not labelled.any():
            return {}
        share = float((told == labels)[labelled].mean())
        if share < _LEAST_TOP1:
            raise DemixError(
                f"Expected {self.encoder} to name at least {_LEAST_TOP1:.0%} of the images, but it "
                f"names {share:.1%} of {labelled.sum()}; are these photographs of ImageNet, and "
                "the labels its class indices from 0?"
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


def _feature_files(path: Path | None) -> dict[Model, Path]:
    """Return the files of features by model."""
    if path is None or path.is_file():
        return {} if path is None else {"trained": path}
    files = {model: path / f"{model}.npy" for model in _MODELS}
    if not files["trained"].is_file():
        raise DemixError(
            f"Expected trained.npy, and perhaps random.npy and pixels.npy, in {path}, but there is "
            "none; name it so, or give the file itself."
        )
    return {model: file for model, file in files.items() if file.is_file()}


def _told(folder: Path) -> dict[str, Any]:
    """Return what a folder of features tells of itself, if anything."""
    try:
        told = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
