"""What all estimators share: data in, an encoder trained and judged, latents out."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from demix._support.errors import DemixError, shortened, warn
from demix._support.validation import check_device, check_seed, check_share, refuse_masked
from demix.data.checks import Findings, check_data
from demix.data.data import Data, as_data
from demix.encoders.encoder import Encoder
from demix.encoders.images import ChannelScaling
from demix.estimators.assumptions import assumed_space, encoder_settings
from demix.estimators.encoding import encode
from demix.estimators.fitting import Likelihood, Report, Source, default_recipe, fit_encoder
from demix.estimators.gain import Gain
from demix.estimators.seeding import seeded
from demix.spaces.base import Space
from demix.theory.setting import Setting, Supervision
from demix.training.loop import Record
from demix.training.recipe import Recipe

# An encoder for more would not fit into the memory of any machine.
_MOST_LATENTS = 10**6


class Demixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators; it fits an encoder to what a subclass makes of the data.

    Attributes
    ----------
    encoder_ : Encoder
        The trained model, a torch module.
    gain_ : Gain
        What it knows about held-out positives or labels.
    history_ : list of dict
        A record for each look during training.
    best_step_ : int
        The step whose weights were kept.
    notes_ : list of str
        What was odd about the data, and what the whitening did.
    n_features_in_ : int
        Numbers in a row.
    """

    supervision: ClassVar[Supervision]
    """What theory calls that which an encoder learns from."""

    teachers: ClassVar[str]
    """What an encoder learns from, in one word."""

    n_latents: int
    space: str | Space
    encoder: str | dict[str, Any] | None
    recipe: Recipe | None
    validation: float
    random_state: Any
    device: str

    encoder_: Encoder
    objective_: Any
    gain_: Gain
    history_: list[Record]
    best_step_: int
    notes_: list[str]
    n_features_in_: int

    def transform(self, X: Any) -> np.ndarray:
        """Return the latents of new rows.

        Parameters
        ----------
        X : array-like (N, d), images (N, C, H, W), or Data
            Arrays larger than memory are read block by block.

        Returns
        -------
        ndarray (N, n_latents) of float32
            In the assumed space, scaled by its learnt size.
        """
        check_is_fitted(self, "encoder_")
        return encode(self.encoder_, self._data(X, reset=False))

    def save(self, folder: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
        """Write the model folder; :func:`demix.load_model` opens it again.

        Parameters
        ----------
        folder : path
            Made if it is missing.
        about : mapping, optional
            Further facts to keep, as plain data.
        """
        from demix.estimators.models import save_model

        check_is_fitted(self, "encoder_")
        save_model(self, folder, about=about)

    def setting(self) -> Setting:
        """Return what theory needs to know: supervision, space, conditional, prototypes."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        """Latents are float32 whatever the data are."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.encoder_.space.dim

    def _space(self) -> Space:
        whole = isinstance(self.n_latents, int | np.integer)
        if not whole or not 1 <= self.n_latents <= _MOST_LATENTS:
            raise DemixError(
                f"n_latents must be a whole number from 1 to {_MOST_LATENTS}, but got "
                f"{shortened(repr(self.n_latents))}."
            )
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise DemixError(
                f"recipe must be a Recipe or None, but got {shortened(repr(self.recipe))}."
            )
        check_share(self.validation, "validation")
        return assumed_space(self.space, int(self.n_latents))

    def _batch(self) -> int:
        """Return among how many samples held-out ones are judged."""
        return 1024 if self.recipe is None else self.recipe.batch

    def _seed(self) -> int:
        """Return the seed that ``random_state`` stands for."""
        if isinstance(self.random_state, int | np.integer):
            return check_seed(int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _data(self, X: Any, *, reset: bool) -> Data:
        """Return what was given as rows; scikit-learn looks at plain matrices and frames first."""
        refuse_masked(X, "rows")
        zarr = sys.modules.get("zarr")
        streamed = isinstance(X, Data) or (zarr is not None and isinstance(X, zarr.Array))
        images = isinstance(X, np.ndarray) and X.ndim > 2
        if not (streamed or images or torch.is_tensor(X)):
            least = 2 if reset else 1
            X = validate_data(
                self, X, reset=reset, ensure_all_finite=False, ensure_min_samples=least
            )
            data = as_data(X)
            self._row_shape = tuple(data.shape[1:])
            return data if reset else data.precisely(self._precise)
        data = as_data(X)
        if not reset:
            data = data.matching(self._names).precisely(self._precise)
        self._row_shape = tuple(data.shape[1:])
        features = int(np.prod(data.shape[1:]))
        if reset:
            self.n_features_in_ = features
            self.__dict__.pop("feature_names_in_", None)
            if data.names is not None and len(set(data.names)) == len(data.names):
                self.feature_names_in_ = np.array(data.names, dtype=object)
        elif features != self.n_features_in_:
            raise DemixError(
                f"X has {features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return data

    @property
    def _names(self) -> list[str] | None:
        """The names of the columns that the model was fitted to, if they had any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def _precise(self) -> bool:
        """Whether the encoder takes float64."""
        encoder = self.encoder_
        return encoder.whitening.mean.dtype == torch.float64 != encoder.log_scale.dtype

    def _checked(self, data: Data) -> tuple[Data, Findings]:
        """Look at all rows, refuse what cannot be used, and warn of what is odd.

        Returns
        -------
        Data
            The rows, in float64 if float32 would lose what they tell.
        Findings
            What was found.
        """
        check_device(self.device)
        found = check_data(data, batch=None if self.recipe is None else self.recipe.batch)
        found.warn()
        dim, latents = int(np.prod(data.shape[1:])), self._space().dim
        if latents > dim:
            warn(
                f"{latents} latents are asked for, but {data.source} has {dim} numbers in a row; "
                "no theorem recovers more latents than there are numbers."
            )
        return data.precisely(data.precise or found.precise), found

    def _settings(self) -> dict[str, str]:
        """Return what tells this estimator from others, in the same words in every process."""
        parameters = self.get_params(deep=False)
        parameters.pop("random_state")  # the seed that came of it is kept already
        told = {name: _name(x) if callable(x) else repr(x) for name, x in parameters.items()}
        return {"estimator": type(self).__name__, **told}

    def _new_encoder(self, space: Space) -> Encoder:
        with seeded(self._seed()):  # a recipe may leave the weights that torch draws
            return Encoder(space=space, **encoder_settings(self.encoder, space, self._row_shape))

    def _fit(
        self,
        encoder: Encoder,
        objective: Likelihood[Any],
        source: Source[Any],
        found: Findings,
        *,
        steps: int,
        goes_on: bool,
        report: Report | None,
        checkpoint: str | Path | None,
        digest: str,
        beside: torch.Tensor | None = None,
    ) -> Self:
        """Train, and keep what came out; ``beside`` are the pairs or labels of the data."""
        recipe = self.recipe or default_recipe(len(source), steps=steps)
        device = torch.device(self.device)
        if isinstance(objective, torch.nn.Module):
            objective.to(device)
        scales = torch.from_numpy(found.std)
        repeat = self.n_features_in_ // len(scales)  # pixels of a channel
        fit = fit_encoder(
            encoder.to(device),
            objective,
            source,
            recipe,
            seed=self._seed(),
            scales=scales.repeat_interleave(repeat),
            goes_on=goes_on,
            report=report,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            about={"data": digest, "beside": _digest(beside), **self._settings()},
        )
        self.encoder_, self.objective_ = encoder, objective
        self.gain_, self.history_ = fit.gain, fit.training.history
        self.best_step_ = fit.training.best_step or fit.training.steps
        self.n_steps_, self.seconds_ = fit.training.steps, fit.training.seconds
        self.notes_ = found.sentences() + _whitened(encoder, found)
        self.digest_ = digest
        source.data.check_unchanged()
        return self


def _name(function: Any) -> str:
    """Name a callable; its repr would have a place in memory in it."""
    return getattr(function, "__qualname__", type(function).__qualname__)


def _digest(beside: torch.Tensor | None) -> str | None:
    return None if beside is None else hashlib.sha256(beside.numpy().tobytes()).hexdigest()


def _whitened(encoder: Encoder, found: Findings) -> list[str]:
    """Say what the whitening did to the data."""
    moving = found.std[found.std > 0]
    told = f"with standard deviations from {moving.min():.3g} to {moving.max():.3g}, were centred"
    if isinstance(encoder.whitening, ChannelScaling):
        return [f"Channels, {told} and scaled."]
    told = f"Columns, {told}, scaled and whitened"
    dim, kept = encoder.whitening.matrix.shape
    if kept < dim:
        return [f"{told}; the {kept} directions of the largest variance were kept."]
    return [f"{told}."]
