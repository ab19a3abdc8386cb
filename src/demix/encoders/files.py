"""Model folders: weights in safetensors, everything else in JSON, no pickle.

Everything is checked before memory is taken for the weights.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load, save
from torch import Tensor

from demix import __version__
from demix._support.errors import DemixError, reason, shortened
from demix._support.files import open_regular, write_atomic
from demix._support.outputs import read_marker, refuse_other
from demix.encoders.bodies import BODIES, channels_last
from demix.encoders.encoder import Encoder
from demix.spaces.base import Space

MODEL_MARKS = {
    "model.json": rb'{\n  "schema": \d+,\n  "demix": "[^"]+",\n  "space": {\n',
    "model.safetensors": rb'.{8}{.*"whitening\.mean":{"dtype":',
}
"""Patterns of how the files of a model begin."""

_SCHEMA = 1
_MOST_TEXT = 2**24  # bytes of model.json
_HEAD = "head."
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
_PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_LEAST_ENTRY, _MOST_ENTRY = 50, 500  # bytes of each tensor in the header of safetensors


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_size, value))


_TRUTH = (lambda value: isinstance(value, bool), "true or false")
_MLP_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "dim_in": (lambda x: _is_size(x) or (_are_sizes(x) and len(x) < 9), "a size"),
    "hidden": (_are_sizes, "a list of widths"),
    "components": (lambda value: value is None or _is_size(value), "a size"),
    "activation": (lambda value: isinstance(value, str), "a name"),
    "residual": _TRUTH,
    "batch_norm": _TRUTH,
}
# Images of a larger side fit no memory, whatever the weights.
_IMAGE_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "dim_in": (lambda value: _are_sizes(value) and max([0, *value]) <= 2**15, "a shape of images"),
}


class SavedModel(NamedTuple):
    """What a model folder holds: an encoder, what was trained with it, and facts about both."""

    encoder: Encoder
    head: dict[str, Tensor]
    about: dict[str, Any]


def save_encoder(
    encoder: Encoder,
    folder: str | Path,
    *,
    head: Mapping[str, Tensor] | None = None,
    about: dict[str, Any] | None = None,
) -> None:
    """Write ``model.safetensors`` and ``model.json`` into ``folder``.

    Parameters
    ----------
    encoder : Encoder
        The model, whitening included.
    folder : path
        Made if it is missing. A model of demix is replaced, a finished fit or other files are not.
    head : mapping of Tensor, optional
        Parameters of the objective, e.g. the prototypes of a classifier.
    about : dict, optional
        Further facts to keep in ``model.json``, as plain data of less than 16 MiB.

    Examples
    --------
    >>> import tempfile, torch
    >>> from demix import Encoder, Sphere, load_encoder, save_encoder
    >>> f = Encoder(4, Sphere(3), hidden=(16, 16))
    >>> x = torch.randn(2, 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_encoder(f, folder)
    ...     torch.equal(load_encoder(folder)(x), f(x))
    True
    """
    folder = Path(folder)
    tables = {f"{_HEAD}{name}": value.detach() for name, value in (head or {}).items()}
    tensors = {**encoder.state_dict(), **tables}
    weights = save({name: value.cpu().contiguous() for name, value in tensors.items()})
    model: dict[str, Any] = {"space": encoder.space.to_dict(), "encoder": encoder.settings}
    if head:
        model["head"] = {name: list(value.shape) for name, value in head.items()}
    description = {"schema": _SCHEMA, "demix": __version__, **model}
    description |= {"sha256": _digest(weights, model), "about": about or {}}
    try:
        description["about_sha256"] = _digest(b"", json.loads(json.dumps(about or {})))
        text = json.dumps(description, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise DemixError(f"about of a model must be plain data for JSON: {error}.") from error
    if len(text) > _MOST_TEXT:
        raise DemixError(
            f"model.json of a model may have {_MOST_TEXT} bytes, but about makes it {len(text)}; "
            "keep long records in a file of their own."
        )
    for name, mark in MODEL_MARKS.items():
        refuse_other(folder / name, mark)
    marker = read_marker(folder / "fit.json")
    if isinstance(marker, dict) and not marker.get("unfinished"):
        raise DemixError(
            f"{folder} holds a finished 'demix fit', whose latents and report belong to its "
            "model; choose another folder."
        )
    # In this order: what a crash leaves in between is recognised as a model of demix.
    write_atomic(folder / "model.json", text)
    write_atomic(folder / "model.safetensors", weights)


def load_encoder(folder: str | Path) -> Encoder:
    """Open a model folder that :func:`save_encoder` wrote, on the CPU, in evaluation mode."""
    return open_model(folder).encoder


def open_model(folder: str | Path, *, unfinished: bool = False) -> SavedModel:
    """Open a model folder with all that it holds, on the CPU, in evaluation mode.

    Nothing in it is executed. With ``unfinished``, the fit that writes to it may not have ended.
    Files that are damaged, edited, or larger than what they describe raise a DemixError. Sizes are
    compared before memory is taken, so that a small file cannot claim much of it.
    """
    folder = Path(folder)
    # A pickle could run code: it is refused, and so is a folder with one as its model.
    named = [folder] if folder.suffix in _PICKLES else []
    for path in [*named, *(folder / f"model{suffix}" for suffix in _PICKLES)]:
        if os.path.isfile(path):  # which no name is too long for
            raise DemixError(
                f"Expected a folder with model.json and model.safetensors, but got {path}; demix "
                "never opens pickles: save the model with save_encoder."
            )
    marker = None if unfinished else read_marker(folder / "fit.json")
    if isinstance(marker, dict) and marker.get("unfinished"):
        raise DemixError(f"{folder} holds an unfinished fit; give the same 'demix fit' again.")
    try:
        description = json.loads(read_at_most(folder / "model.json", _MOST_TEXT))
        schema, digest = description["schema"], description["sha256"]
        model = {name: description[name] for name in ("space", "encoder")}
        model |= {"head": description["head"]} if "head" in description else {}
        about = dict(description["about"])
        about_digest = description["about_sha256"]
        size = (folder / "model.safetensors").stat().st_size
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        words = shortened(" ".join(str(error).split()), 400)  # with the file that is missing
        raise DemixError(f"{folder} is not a demix model folder: {words}.") from error
    if schema != _SCHEMA:
        written = _shown(description.get("demix")).strip("'")
        raise DemixError(
            f"{folder} has model schema {_shown(schema)}, but demix {__version__} reads {_SCHEMA}; "
            f"open it with the version that wrote it, demix {written}."
        )
    with _reasons(folder):
        encoder, head = _outline(model["space"], model["encoder"], model.get("head", {}), size)
        weights = read_at_most(folder / "model.safetensors", size)
        found = _digest(weights, model)
    if found != digest or about_digest != _digest(b"", about):
        raise DemixError(
            f"{folder} is damaged: model.safetensors and model.json do not match their checksum; "
            "copy or save it again."
        )
    with _reasons(folder):
        tensors = load(weights)
        tables = {f"{_HEAD}{name}": table for name, table in head.items()}
        _check_weights(tensors, {**encoder.state_dict(), **tables})
        head = {name: tensors.pop(f"{_HEAD}{name}") for name in head}
        encoder.load_state_dict(tensors, assign=True)  # assigned, they keep their precision
        channels_last(encoder.body)
    return SavedModel(encoder.eval(), head, about)


@contextmanager
def _reasons(folder: Path) -> Iterator[None]:
    """Raise a DemixError with the reason why the files in a folder do not make a model."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # forged files fail in many ways
        words = reason(error)
        raise DemixError(f"{folder} does not hold the model it describes: {words}.") from error


def _digest(weights: bytes, model: dict[str, Any]) -> str:
    digest = hashlib.sha256(weights)
    digest.update(json.dumps(model, sort_keys=True).encode())
    return digest.hexdigest()


def read_at_most(path: Path, most: int) -> bytes:
    """Read a file of at most ``most`` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DemixError(f"{path.name} has more than {most} bytes")
    return data


def _outline(space: Any, settings: Any, head: Any, size: int) -> tuple[Encoder, dict[str, Tensor]]:
    """Build what is described without memory for weights, if it fits a file of ``size`` bytes."""
    _check_settings(settings)
    shapes: Any = head.values() if isinstance(head, dict) else [None]
    if not all(_are_sizes(shape) and len(shape) <= 2 for shape in shapes):
        raise DemixError(f"head must be shapes by name, but got {_shown(head)}")
    # Before anything is built, roughly: a Box of a huge dimension would be huge itself.
    hidden = settings.get("hidden", [])
    shape = settings["dim_in"] if isinstance(settings["dim_in"], list) else [settings["dim_in"]]
    inputs = math.prod(shape) if settings["body"] == "mlp" else shape[0]
    _check_size(size, sum([inputs, *hidden, *_dims(space)]) + _LEAST_ENTRY * len(hidden))
    built = Space.from_dict(space)
    with torch.device("meta"):
        encoder = Encoder(space=built, **settings)
        tables = {name: torch.empty(shape) for name, shape in head.items()}
    tensors = [*encoder.state_dict().values(), *tables.values()]
    numbers = sum(value.numel() for value in tensors)
    least = 2 * numbers + _LEAST_ENTRY * len(tensors)
    _check_size(size, least, 8 * numbers + _MOST_ENTRY * (len(tensors) + 1))
    return encoder, tables


def _check_weights(weights: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise a DemixError if weights have other names, shapes or types than those expected."""
    if missing := sorted(set(expected) - set(weights)):
        raise DemixError(f"model.safetensors has no {missing[0]}")
    if unknown := sorted(set(weights) - set(expected)):
        raise DemixError(f"model.safetensors has {_shown(unknown[0])}, which no model has")
    precision = weights["log_scale"].dtype
    for name, value in expected.items():
        came, shapes = weights[name].dtype, (tuple(weights[name].shape), tuple(value.shape))
        if shapes[0] != shapes[1]:
            raise DemixError(f"{name} has shape {shapes[0]}, but {shapes[1]} by model.json")
        right = came == (precision if value.is_floating_point() else value.dtype)
        precise = name == "whitening.mean" and came == torch.float64
        if not (right or precise) or precision not in _PRECISIONS:
            raise DemixError(f"{name} has numbers of type {came}, unlike a model")
    check_finite(weights)


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Raise a DemixError if weights are not finite."""
    for name, value in weights.items():
        # Channels that never change are divided by infinity.
        bad = value.isnan() if name == "whitening.deviation" else ~value.isfinite()
        if bool(bad.any()):
            raise DemixError(f"{name} has numbers that are not finite; train the model again")


def _check_settings(settings: Any) -> None:
    if not isinstance(settings, dict):
        raise DemixError(f"settings must be a dict, but got {_shown(settings)}")
    body = settings.get("body")
    if body != "mlp" and (not isinstance(body, str) or body not in BODIES):
        raise DemixError(f"unknown body {_shown(body)}")
    rules = _MLP_SETTINGS if body == "mlp" else _IMAGE_SETTINGS
    if unknown := sorted(set(settings) - {"body", *rules}):
        raise DemixError(f"unknown settings {_shown(unknown)}")
    if missing := sorted(set(rules) - set(settings)):
        raise DemixError(f"there are no settings {', '.join(missing)}")
    for name, (holds, words) in rules.items():
        if not holds(settings[name]):
            raise DemixError(f"{name} must be {words}, but got {_shown(settings[name])}")


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


def _shown(value: Any) -> str:
    return shortened(repr(value), 60)
