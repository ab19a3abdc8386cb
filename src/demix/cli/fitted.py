"""What ``fit``, ``report`` and ``compare`` make of a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demix import __version__
from demix._support.errors import DemixError
from demix.data.data import Data
from demix.data.names import table_names
from demix.data.npy_files import read_npy
from demix.data.reading import read_data
from demix.encoders.files import SavedModel, open_model
from demix.estimators.assumptions import default_conditional
from demix.estimators.facts import check_facts
from demix.estimators.gain import Gain
from demix.report.blocks import Section, Verdict
from demix.report.fit import fit_page
from demix.report.page import write_page
from demix.report.sections import recovery_sections

LATENTS = "latents.npy"
# What is shown of very many rows.
SHOWN, _IMAGES = 100_000, 2000
_LEARNT_FROM = {
    "ContrastiveDemixer": "pairs of rows",
    "ClassifierDemixer": "class labels",
    "InstanceDemixer": "rows alone",
}


def opened(folder: Path, *, unfinished: bool = False) -> SavedModel:
    """Open the folder of a fit, whose other files may still be missing if it is ``unfinished``."""
    model = open_model(folder, unfinished=unfinished)
    if "gain" not in model.about:
        raise DemixError(
            f"{folder} holds a bare encoder; expected a folder that 'demix fit' wrote."
        )
    check_facts(model.about, folder)
    if model.about["estimator"] not in _LEARNT_FROM:
        raise DemixError(f"{folder} is of an estimator that demix {__version__} does not know.")
    return model


def read_like(
    model: SavedModel,
    file: Path,
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    header: str = "auto",
) -> Data:
    """Open rows of the kind that a model was fitted to; columns of a table go by their names."""
    names = model.about.get("feature_names")
    if names is not None and columns is None and table_names(file, header=header) is not None:
        columns = names
    return read_data(file, key=key, columns=columns, header=header).matching(names)


def latents_of(folder: Path, model: SavedModel) -> np.ndarray:
    """Return the latents of the fitted rows, on disk."""
    if not (folder / LATENTS).exists():
        raise DemixError(f"Expected {LATENTS} in {folder}; run 'demix fit' again.")
    latents, dim = read_npy(folder / LATENTS), model.encoder.space.dim
    rows = model.about.get("rows", len(latents))
    right = latents.shape == (rows, dim) and latents.dtype.kind == "f" and rows > 0
    parts = range(0, len(latents), SHOWN) if right else ()
    if not right or not all(np.isfinite(latents[start : start + SHOWN]).all() for start in parts):
        raise DemixError(
            f"Expected {dim} finite latents for each of {rows} rows in {folder / LATENTS}, but "
            f"got {latents.dtype} of shape {latents.shape}; run 'demix fit' again."
        )
    return latents


def told(folder: Path) -> dict[str, Any]:
    """Return what is worth knowing of a fit, as plain data."""
    about = opened(folder).about
    keys = ("estimator", "parameters", "gain", "steps", "best_step", "seconds", "rows", "notes")
    return {key: about[key] for key in keys if key in about}


def facts_of(model: SavedModel) -> dict[str, str]:
    """Return what was assumed and used, in words."""
    parameters, about = model.about["parameters"], model.about
    conditional = None
    if about["estimator"] == "ContrastiveDemixer":
        conditional = parameters.get("conditional") or default_conditional(model.encoder.space)
    facts = {
        "estimator": about["estimator"],
        "space": repr(model.encoder.space),
        "conditional": conditional,
        "lag": parameters.get("lag") if about.get("time_order") else None,
        "latents": model.encoder.space.dim,
        "rows": about.get("rows"),
        "numbers in a row": model.encoder.settings["dim_in"],
        "steps": f"{about['steps']}, the best after {about['best_step']}",
        "training": f"{about['seconds']:.0f} s",
        "seed": parameters.get("random_state"),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def write_report(
    folder: Path,
    out: Path | None = None,
    *,
    factors: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    data: Data | None = None,
    unfinished: bool = False,
) -> Path:
    """Write ``report.html`` of a fit, with known factors and examples of images if given."""
    model = opened(folder, unfinished=unfinished)
    about, latents = model.about, latents_of(folder, model)
    gain = Gain.from_dict(about["gain"])
    rows = np.arange(len(latents))
    if len(rows) > SHOWN:
        rows = np.linspace(0, len(latents) - 1, SHOWN).round().astype(int)
    shown = np.asarray(latents[rows])
    recovery: list[Section] = []
    if factors is not None:
        # Here, because they take half a second, which every command would wait.
        from demix.cli.recovery import matched
        from demix.metrics.registry import RECOVERY, all_scores

        found = np.asarray(latents, dtype=float)
        scores = all_scores(found, factors, categorical=[], only=RECOVERY)
        recovery = recovery_sections(**matched(found, factors, scores, names))
    page = fit_page(
        title=f"{model.encoder.space.dim} latents of {about.get('rows', len(latents))} rows",
        summary=_summary(model, gain),
        verdict=_verdict(gain),
        gain={**asdict(gain), "level": 0.95},
        latents=shown,
        facts=facts_of(model),
        history=about["history"],
        best_step=about["best_step"],
        time=rows if about.get("time_order") else None,
        recovery=recovery,
        **_examples(data, latents),
        notes=about["notes"],
        provenance={
            **about.get("origin", {}),
            "data": f"sha256 {about['data']}",
            "seed": about["parameters"].get("random_state"),
            **about["provenance"],
        },
    )
    return write_page(page, (out or folder) / "report.html")


def _examples(data: Data | None, latents: np.ndarray) -> dict[str, Any]:
    """Return some images and their latents, if the data are images."""
    if data is None or len(data.shape) != 4:
        return {}
    rows = np.linspace(0, len(data) - 1, min(_IMAGES, len(data))).round().astype(np.int64)
    images = data.take(torch.from_numpy(rows)).numpy()
    low, high = float(images.min()), float(images.max())
    # Files of images come from 0 to 1 already; other arrays are brought there.
    if low < 0 or high > 1:
        images = (images - low) / max(high - low, 1e-12)
    return {"images": images, "image_latents": np.asarray(latents[rows])}


def _verdict(gain: Gain) -> Verdict:
    if gain.above_zero:
        return Verdict("good", f"Better than chance on held-out data: {gain} over the null.")
    return Verdict(
        "bad",
        f"Not better than chance on held-out data: {gain} over the null. These latents say nothing "
        "about new data.",
    )


def _summary(model: SavedModel, gain: Gain) -> str:
    about = model.about
    from_what = _LEARNT_FROM[about["estimator"]]
    return (
        f"{about['estimator']} learnt {model.encoder.space.dim} latents in "
        f"{model.encoder.space!r} from {from_what}. On data that neither training nor the choice "
        f"of the weights has seen, the loss is {gain.loss:.3f} nats, and {gain.null:.3f} nats with "
        "positives or labels exchanged at random."
    )
