"""Checks of a model folder before memory is taken for its weights."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix.encoders.bodies import BODIES
from demix.encoders.encoder import Encoder
from demix.spaces.base import Space

_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
_PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# A name, a type, a shape and two offsets for each tensor in the header of safetensors.
_LEAST_ENTRY, _MOST_ENTRY = 50, 500


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_size, value))


_TRUTH = (lambda value: isinstance(value, bool), "true or false")
_MLP_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "dim_in": (_is_size, "a size"),
    "hidden": (_are_sizes, "a list of widths"),
    "components": (lambda value: value is None or _is_size(value), "a size"),
    "activation": (lambda value: isinstance(value, str), "a name"),
    "residual": _TRUTH,
    "batch_norm": _TRUTH,
}
_IMAGE_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    # Images of a larger side fit no memory, whatever the weights.
    "dim_in": (
        lambda value: _are_sizes(value) and max(value, default=0) <= 2**15,
        "the shape of images",
    ),
}


def refuse_pickles(folder: Path) -> None:
    """Raise a DemixError for a pickle, which could run code, or a folder with one as its model."""
    named = [folder] if folder.suffix in _PICKLES else []
    for path in [*named, *(folder / f"model{suffix}" for suffix in _PICKLES)]:
        if path.is_file():
            raise DemixError(
                f"Expected a folder with model.json and model.safetensors, but got {path}; demix "
                "never opens pickles: save the model with save_encoder."
            )


def read_at_most(path: Path, most: int) -> bytes:
    """Read a file of at most ``most`` bytes."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path.name} is no file")  # a pipe would never end
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DemixError(f"{path.name} has more than {most} bytes")
    return data


def outline(space: Any, settings: Any, head: Any, size: int) -> tuple[Encoder, dict[str, Tensor]]:
    """Build the encoder and the head that are described, without memory for their weights.

    A description that does not fit a file of ``size`` bytes of weights is refused.
    """
    _check_settings(settings)
    _check_head(head)
    # Before anything is built, roughly: a Box of a huge dimension would be huge itself.
    hidden = settings.get("hidden", [])
    inputs = settings["dim_in"] if settings["body"] == "mlp" else settings["dim_in"][0]
    widths = [inputs, *hidden, *_dims(space)]
    _check_size(size, least=sum(widths) + _LEAST_ENTRY * len(hidden))
    built = Space.from_dict(space)
    with torch.device("meta"):
        encoder = Encoder(space=built, **settings)
        tables = {name: torch.empty(shape) for name, shape in head.items()}
    tensors = [*encoder.state_dict().values(), *tables.values()]
    numbers = sum(value.numel() for value in tensors)
    _check_size(
        size,
        least=2 * numbers + _LEAST_ENTRY * len(tensors),
        most=8 * numbers + _MOST_ENTRY * (len(tensors) + 1),
    )
    return encoder, tables


def check_weights(weights: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise a DemixError if weights have other names, shapes or types than those expected."""
    if missing := sorted(set(expected) - set(weights)):
        raise DemixError(f"model.safetensors has no {missing[0]}")
    if unknown := sorted(set(weights) - set(expected)):
        raise DemixError(f"model.safetensors has {shown(unknown[0])}, which no model has")
    for name, value in expected.items():
        came, wanted = tuple(weights[name].shape), tuple(value.shape)
        if came != wanted:
            raise DemixError(
                f"{name} has shape {came} in model.safetensors, but {wanted} by model.json"
            )
    precision = weights["log_scale"].dtype
    for name, value in expected.items():
        wanted_type = precision if value.is_floating_point() else value.dtype
        precise = name == "whitening.mean" and weights[name].dtype == torch.float64
        if (weights[name].dtype != wanted_type and not precise) or precision not in _PRECISIONS:
            raise DemixError(f"{name} has numbers of type {weights[name].dtype}, unlike a model")
    check_finite(weights)


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Raise a DemixError if weights are not finite."""
    for name, value in weights.items():
        # Channels that never change are divided by infinity.
        bad = value.isnan() if name == "whitening.deviation" else ~value.isfinite()
        if bool(bad.any()):
            raise DemixError(f"{name} has numbers that are not finite; train the model again")


def _check_settings(settings: Any) -> None:
    """Raise a DemixError if settings have other names or types than those of an encoder."""
    if not isinstance(settings, dict):
        raise DemixError(f"settings must be a dict, but got {shown(settings)}")
    body = settings.get("body")
    if body != "mlp" and (not isinstance(body, str) or body not in BODIES):
        raise DemixError(f"unknown body {shown(body)}")
    rules = _MLP_SETTINGS if body == "mlp" else _IMAGE_SETTINGS
    if unknown := sorted(set(settings) - {"body", *rules}):
        raise DemixError(f"unknown settings {shown(unknown)}")
    if missing := sorted(set(rules) - set(settings)):
        raise DemixError(f"there are no settings {', '.join(missing)}")
    for name, (holds, words) in rules.items():
        if not holds(settings[name]):
            raise DemixError(f"{name} must be {words}, but got {shown(settings[name])}")


def _check_head(head: Any) -> None:
    """Raise a DemixError unless ``head`` holds shapes by name."""
    if not isinstance(head, dict) or not all(
        _are_sizes(shape) and len(shape) <= 2 for shape in head.values()
    ):
        raise DemixError(f"head must be shapes by name, but got {shown(head)}")


def _check_size(size: int, least: int, most: float = math.inf) -> None:
    if not least <= size <= most:
        amount = "few" if size < least else "many"
        raise DemixError(
            f"model.safetensors has {size} bytes, too {amount} for what model.json describes; "
            "copy or save them again"
        )


def _dims(space: Any) -> list[int]:
    """Return every dimension that is named anywhere in the description of a space."""
    if isinstance(space, list):
        return [dim for part in space for dim in _dims(part)]
    if not isinstance(space, dict):
        return []
    own = [space["dim"]] if _is_size(space.get("dim")) else []
    return own + [dim for part in space.values() for dim in _dims(part)]


def shown(value: Any) -> str:
    """Return the beginning of what a file says."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
