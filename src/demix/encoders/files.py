"""Model folders: weights in safetensors, everything else in JSON, no pickle."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load, save
from torch import Tensor

from demix import __version__
from demix._support.errors import DemixError, reason, shortened
from demix._support.files import write_atomic
from demix._support.outputs import read_marker
from demix.encoders.bodies import channels_last
from demix.encoders.checks import check_weights, outline, read_at_most, refuse_pickles, shown
from demix.encoders.encoder import Encoder

_SCHEMA = 1
_MOST_TEXT = 2**24  # bytes of model.json
_HEAD = "head."


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
        Made if it is missing. An earlier model of demix is replaced, other files are refused.
    head : mapping of Tensor, optional
        Parameters of the objective that are worth keeping, e.g. the prototypes of a classifier.
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
    description = {
        "schema": _SCHEMA,
        "demix": __version__,
        **model,
        "sha256": _digest(weights, model),
        "about": about or {},
    }
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
    refuse_other_model(folder)
    # In this order: what a crash leaves in between is recognised as a model of demix.
    write_atomic(folder / "model.json", text)
    write_atomic(folder / "model.safetensors", weights)


def _refuse_unfinished(folder: Path) -> None:
    """Raise a DemixError if a fit ended while it replaced the model of an earlier one."""
    marker = read_marker(folder / "fit.json")
    if isinstance(marker, dict) and marker.get("unfinished"):
        raise DemixError(
            f"{folder} holds a fit that was not finished; give the same 'demix fit' again."
        )


def refuse_other_model(folder: Path) -> None:
    """Raise a DemixError if a folder holds files of a model that demix did not write."""
    there = [name for name in ("model.json", "model.safetensors") if (folder / name).exists()]
    known = read_marker(folder / "model.json")
    if there and not (isinstance(known, dict) and {"schema", "sha256", "encoder"} <= set(known)):
        raise DemixError(
            f"{folder} holds a {there[0]} that demix did not write; choose another folder."
        )


def load_encoder(folder: str | Path) -> Encoder:
    """Open a model folder that :func:`save_encoder` wrote, on the CPU, in evaluation mode."""
    return open_model(folder).encoder


def open_model(folder: str | Path, *, unfinished: bool = False) -> SavedModel:
    """Open a model folder with all that it holds, on the CPU, in evaluation mode.

    Nothing in it is executed. With ``unfinished``, it is opened even if the fit that writes to it
    is not finished. A folder that is missing, holds a pickle, or has files that are truncated,
    edited, larger than the model they describe, or of another schema raises a DemixError. Sizes are
    compared before memory is taken, so that a small file cannot claim much of it.
    """
    folder = Path(folder)
    refuse_pickles(folder)
    if not unfinished:
        _refuse_unfinished(folder)
    try:
        text = read_at_most(folder / "model.json", _MOST_TEXT).decode("utf-8")
        description = json.loads(text)
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
        written = shown(description.get("demix")).strip("'")
        raise DemixError(
            f"{folder} has model schema {shown(schema)}, but demix {__version__} reads {_SCHEMA}; "
            f"open it with the version that wrote it, demix {written}."
        )
    with _reasons(folder):
        encoder, head = outline(model["space"], model["encoder"], model.get("head", {}), size)
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
        check_weights(tensors, {**encoder.state_dict(), **tables})
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
    """Return the checksum of the weights and of their description."""
    digest = hashlib.sha256(weights)
    digest.update(json.dumps(model, sort_keys=True).encode())
    return digest.hexdigest()
