"""Model folders: weights in safetensors, everything else in JSON, no pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from demix import __version__
from demix.encoders.encoder import Encoder
from demix.errors import DemixError
from demix.files import write_atomic
from demix.spaces import Space

_SCHEMA = 1


def save_encoder(
    encoder: Encoder, folder: str | Path, *, about: dict[str, Any] | None = None
) -> None:
    """Write ``model.safetensors`` and ``model.json`` into ``folder``.

    Parameters
    ----------
    encoder : Encoder
        The model, whitening included.
    folder : path
        Made if it is missing.
    about : dict, optional
        Further facts to keep in ``model.json``, as plain data.

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
    weights = save({name: value.contiguous() for name, value in encoder.state_dict().items()})
    model = {"space": encoder.space.to_dict(), "encoder": encoder.settings}
    description = {
        "schema": _SCHEMA,
        "demix": __version__,
        **model,
        "sha256": _digest(weights, model),
        "about": about or {},
    }
    try:
        text = json.dumps(description, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise DemixError(f"about of a model must be plain data for JSON: {error}.") from error
    write_atomic(folder / "model.safetensors", weights)
    write_atomic(folder / "model.json", text)


def load_encoder(folder: str | Path) -> Encoder:
    """Open a model folder that :func:`save_encoder` wrote; nothing in it is executed.

    Parameters
    ----------
    folder : path
        The model folder.

    Returns
    -------
    Encoder
        On the CPU, in evaluation mode.
    """
    folder = Path(folder)
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        weights = (folder / "model.safetensors").read_bytes()
        schema, digest = description["schema"], description["sha256"]
        model = {name: description[name] for name in ("space", "encoder")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DemixError(f"{folder} is not a demix model folder: {error}.") from error
    if schema != _SCHEMA:
        raise DemixError(
            f"{folder} has model schema {schema!r}, but this version of demix reads {_SCHEMA}; "
            f"it was written by demix {description.get('demix')}."
        )
    if _digest(weights, model) != digest:
        raise DemixError(
            f"{folder} is damaged: model.safetensors and model.json do not match their checksum."
        )
    try:
        encoder = Encoder(space=Space.from_dict(model["space"]), **model["encoder"])
        encoder.load_state_dict(load(weights), assign=True)  # assigned, they keep their precision
    except (SafetensorError, RuntimeError, KeyError, TypeError) as error:
        raise DemixError(f"{folder} does not hold the model it describes: {error}.") from error
    return encoder.eval()


def _digest(weights: bytes, model: dict[str, Any]) -> str:
    """Return the checksum of the weights and of all that gives them their meaning."""
    return hashlib.sha256(weights + json.dumps(model, sort_keys=True).encode()).hexdigest()
