"""Model folders that ``demix fit`` wrote, and rows and latents that belong to them."""

from pathlib import Path
from typing import Any

import numpy as np

from demix import __version__
from demix._support.errors import DemixError, warn
from demix.cli.options import column_names
from demix.data.data import Data
from demix.data.names import table_names
from demix.data.npy_files import read_npy
from demix.data.reading import read_data
from demix.encoders.files import SavedModel, open_model
from demix.estimators.models import check_facts, facts_in_words
from demix.report.blocks import write_page
from demix.report.fit import LEARNT_FROM, fit_page

LATENTS = "latents.npy"
_BLOCK = 100_000  # rows whose latents are checked at once


def open_fit(folder: Path, *, unfinished: bool = False) -> SavedModel:
    """Open the folder of a fit, whose other files may be missing if it is ``unfinished``."""
    model = open_model(folder, unfinished=unfinished)
    if "gain" not in model.about:
        raise DemixError(f"{folder} holds a bare encoder; expected a folder of 'demix fit'.")
    check_facts(model.about, folder)
    if model.about["estimator"] not in LEARNT_FROM:
        raise DemixError(f"{folder} is of an estimator that demix {__version__} does not know.")
    return model


def read_like(
    model: SavedModel,
    file: Path,
    *,
    key: str | None = None,
    columns: str | None = None,
    header: str = "auto",
) -> Data:
    """Open rows of the kind that a model was fitted to; columns of a table are matched by name."""
    names, chosen = model.about.get("feature_names"), column_names(columns)
    if names is not None and columns is None and table_names(file, header=header) is not None:
        chosen = names
    data = read_data(file, key=key, columns=chosen, header=header).matching(names)
    images = len(data.shape) == 4 and data.rows.dtype.kind in "iu"
    # Folders of images are read as numbers from 0 to 1, arrays as they are.
    if images and model.encoder.whitening.mean.max() <= 1 < data.rows[:16].mean():
        warn(f"Images in {file} are brighter than the model knows; divide 0..255 by 255 first.")
    return data


def latents_of(folder: Path, model: SavedModel) -> np.ndarray:
    """Open the latents of the fitted rows, which stay on disk."""
    if not (folder / LATENTS).exists():
        raise DemixError(f"Expected {LATENTS} in {folder}; run 'demix fit' again.")
    latents, dim = read_npy(folder / LATENTS), model.encoder.space.dim
    rows = model.about.get("rows", len(latents))
    right = latents.shape == (rows, dim) and latents.dtype.kind == "f" and rows > 0
    starts = range(0, len(latents), _BLOCK) if right else ()
    if not right or not all(np.isfinite(latents[start : start + _BLOCK]).all() for start in starts):
        raise DemixError(
            f"Expected {dim} finite latents for each of {rows} rows in {folder / LATENTS}, but "
            f"got {latents.dtype} of shape {latents.shape}; run 'demix fit' again."
        )
    return latents


def write_fit_page(folder: Path, out: Path, *, unfinished: bool = False, **shown: Any) -> Path:
    """Write ``report.html`` of the fit in ``folder`` to ``out``; see :func:`fit_page`."""
    model = open_fit(folder, unfinished=unfinished)
    facts = facts_in_words(model.encoder, model.about)
    page = fit_page(model.about, facts, latents_of(folder, model), **shown)
    return write_page(page, out / "report.html")
