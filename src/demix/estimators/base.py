"""What all estimators share: data in, an encoder trained and tested, latents out."""

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from demix._support.errors import DemixError, demix_errors, shortened, warn
from demix._support.memory import check_memory
from demix._support.validation import as_numpy, check_device, check_seed, check_share
from demix.data.checks import check_data
from demix.data.data import Data, as_data, check_columns
from demix.encoders.encoder import Encoder
from demix.encoders.files import save_encoder
from demix.estimators.assumptions import Assumed, assumed_space, encoder_settings
from demix.estimators.encoding import encode
from demix.estimators.fitting import Callback, HeldOut, Likelihood, default_recipe, fit_encoder
from demix.estimators.gain import Gain, held_out_gain
from demix.estimators.sources import Part, Source, seeded
from demix.spaces.base import Space
from demix.theory.setting import Setting, Supervision
from demix.training.loop import Record
from demix.training.recipe import Recipe

_ROUNDS = 3  # of the default recipe at most, while the held-out loss falls
_MOST_LATENTS = 10_000  # a fit of more would take days


class Demixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the estimators, which fits an encoder to the batches of a subclass's source."""

    supervision: ClassVar[Supervision]
    """What the encoder learns from."""
    targets: ClassVar[str]
    """What is predicted for held-out rows, as a plural noun."""
    _most_steps: ClassVar[int] = 4000
    # Whether the objective's weights outlive a fit; those of instances belong to its rows.
    _keeps_objective: ClassVar[bool] = True

    n_latents: int
    space: str | Space
    encoder: str | dict[str, Any] | None
    recipe: Recipe | None
    validation: float
    random_state: Any
    device: str

    assumed_: Assumed
    encoder_: Encoder
    objective_: Any
    gain_: Gain
    history_: list[Record]
    best_step_: int
    notes_: list[str]
    n_features_in_: int
    seed_: int

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        positives: Any = None,
        callback: Callback | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on the rows of ``X``.

        Parameters
        ----------
        X : array-like (N, d), images (N, C, H, W), or Data
            The observations.
        y : array-like (N,), optional
            The class of each row, numbers or text, for `ClassifierDemixer`; others ignore it.
        positives : array (P, 2) of int, or array like X, optional
            For `ContrastiveDemixer`: numbers of rows that are positives of each other, or a
            positive for each row.
        callback : callable, optional
            ``callback(step, steps, record)`` after every step, for progress bars.
        checkpoint : path, optional
            A file to keep the training in; training resumes from it if it exists.
        """
        given = {"y": y, "positives": positives}
        return self._learn(X, given, reset=True, callback=callback, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Any = None, *, positives: Any = None) -> Self:
        """Continue from the weights of the last fit, on new data; the first call is a fit."""
        given = {"y": y, "positives": positives}
        return self._learn(X, given, reset=not hasattr(self, "encoder_"))

    def transform(self, X: Any) -> np.ndarray:
        """Return the latents ``(N, n_latents)`` of new rows, in the assumed space.

        They are float32, and scaled by the learnt size of the space. ``X`` is as in :meth:`fit`;
        arrays larger than memory are read block by block.
        """
        check_is_fitted(self, "encoder_")
        return encode(self.encoder_, self._data(X, reset=False))

    def source(self, X: Any, *, y: Any = None, positives: Any = None) -> Source[Any]:
        """Return the source of the batches of a fit to these data, with its held-out parts."""
        check_is_fitted(self, "encoder_")
        data = self._data(X, reset=False)
        data, targets = self._targets(data, reset=False, y=y, positives=positives)
        return self._source(data, targets, self.seed_)

    def time_lag(self, positives: Any = None) -> int | None:
        """Return the largest lag of positives if rows must be in time order, else None."""
        return None

    @abstractmethod
    def setting(self) -> Setting:
        """Return what theory needs to know: supervision, space, conditional, prototypes."""

    def save(self, folder: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
        """Write the model folder, with further facts; :func:`demix.load_model` opens it again."""
        from demix.estimators.models import facts_of

        check_is_fitted(self, "encoder_")
        facts = facts_of(self) | dict(about or {})
        save_encoder(self.encoder_, folder, head=self._head(), about=facts)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        factors: Any = None,
        factor_names: Sequence[str] | None = None,
        time_order: bool = False,
    ) -> Path:
        """Write one HTML page about the fit, which works offline, and return its path.

        An earlier page of demix is replaced, any other file is refused. It shows the latents of
        ``X``, usually the fitted rows, with ``time_order`` as a series, and compares them with
        known ``factors`` ``(N, k)``.
        """
        from demix.estimators.models import facts_in_words, facts_of
        from demix.report.blocks import write_page
        from demix.report.fit import fit_page

        check_is_fitted(self, "encoder_")
        about, data, latents = facts_of(self) | {"time_order": time_order}, None, None
        if X is not None:
            data = self._data(X, reset=False)
            latents, about["rows"] = encode(self.encoder_, data), len(data)
        known: dict[str, Any] = {"factors": factors, "factor_names": factor_names}
        words = facts_in_words(self.encoder_, about)
        return write_page(fit_page(about, words, latents, data=data, **known), path)

    def __sklearn_tags__(self) -> Any:
        """Say that latents are float32 whatever the data are."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.encoder_.space.dim

    def _targets(
        self, data: Data, *, reset: bool, y: Any, positives: Any
    ) -> tuple[Data, Tensor | None]:
        """Return all rows, and the pairs or labels that were given for them."""
        if positives is not None:
            raise DemixError(
                f"positives supervise ContrastiveDemixer, but got {type(self).__name__}; leave "
                "them out."
            )
        return data, None

    @abstractmethod
    def _source(self, data: Data, targets: Tensor | None, seed: int) -> Source[Any]:
        """Return the source of batches, with parts held out."""

    @abstractmethod
    def _new_objective(self, assumed: Assumed, rows: int) -> Likelihood[Any]:
        """Return the objective of a fit to so many rows."""

    def _alternatives(self, *, in_time: bool) -> list[Assumed]:
        """Return what may be assumed of the latents; what claims most comes first."""
        return [Assumed(self._space())]

    def settled(self) -> Self:
        """Return an estimator like this, not fitted, that assumes what the fit has chosen."""
        return clone(self)

    def _head(self) -> Mapping[str, Tensor]:
        """Return the weights that a model folder keeps in addition to the encoder's."""
        return self.objective_.state_dict() if self._keeps_objective else {}

    def _facts(self) -> dict[str, Any]:
        """Return what a model folder says in addition to what it says of every estimator."""
        return {}

    def _restore(self, head: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Rebuild the objective from what `_head` and `_facts` returned."""
        objective = None
        if self._keeps_objective:
            assumed = self._alternatives(in_time=True)[0]
            with seeded(0):  # its weights are replaced
                objective = self.objective_ = self._new_objective(assumed, 0)
        if isinstance(objective, torch.nn.Module):
            objective.load_state_dict(head)
            objective.to(self.device)
        elif head:
            raise ValueError(f"it has no use for {', '.join(head)}")

    def _checked_n_latents(self) -> int:
        """Return the number of latents, after a look at what every estimator has."""
        whole = isinstance(self.n_latents, int | np.integer)
        if not whole or not 1 <= self.n_latents <= _MOST_LATENTS:
            raise DemixError(
                f"n_latents must be a whole number from 1 to {_MOST_LATENTS}, but got "
                f"{shortened(repr(self.n_latents))}."
            )
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            got = shortened(repr(self.recipe))
            raise DemixError(f"recipe must be a Recipe or None, but got {got}.")
        check_share(self.validation, "validation")
        return int(self.n_latents)

    def _space(self) -> Space:
        return assumed_space(self.space, self._checked_n_latents())

    def _batch(self) -> int:
        """Return the size of the batches in which held-out samples are evaluated."""
        return 1024 if self.recipe is None else self.recipe.batch

    def _gain_of(self, source: Source[Any], parts: Sequence[Part]) -> Gain:
        """Return what the model knows about some parts of other data, as sharp as validated."""
        held = HeldOut(source, parts, self._batch())
        return held_out_gain(held.predictions(self.encoder_, self.objective_), self.gain_.sharpness)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return check_seed(int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _data(self, X: Any, *, reset: bool) -> Data:
        """Return the rows; scikit-learn validates plain matrices and frames first."""
        zarr = sys.modules.get("zarr")
        streamed = isinstance(X, Data) or (zarr is not None and isinstance(X, zarr.Array))
        images = isinstance(X, np.ndarray) and X.ndim > 2
        plain = not (streamed or images or torch.is_tensor(X))
        if plain:
            if not (isinstance(X, list | tuple) or hasattr(X, "shape")):
                as_data(X)  # raises over what is no array
            if hasattr(X, "select_dtypes"):  # objects may be numbers, as scikit-learn finds out
                check_columns(X.dtypes[X.dtypes != "object"], "the DataFrame")
            least = {"ensure_min_samples": 2 if reset else 1, "ensure_all_finite": False}
            X = validate_data(self, as_numpy(X, "rows"), reset=reset, **least)
        data = as_data(X)
        if not reset:
            data = data if plain else data.matching(self._names)
            data = data.precisely(self.encoder_.precise)
        features = int(np.prod(data.shape[1:]))
        if reset and not plain:
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
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _learn(
        self,
        X: Any,
        given: Mapping[str, Any],
        *,
        reset: bool,
        callback: Callback | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        check_device(self.device)
        space, device, seed = self._space(), torch.device(self.device), self._seed()
        data, targets = self._targets(self._data(X, reset=reset), reset=reset, **given)
        in_time = self.time_lag(given.get("positives")) is not None
        again = self if reset else self.settled()
        alternatives = again._alternatives(in_time=in_time)
        with seeded(seed):
            objectives = [self._new_objective(assumed, len(data)) for assumed in alternatives]
        if not reset and self._keeps_objective:
            objectives = [self.objective_]
        found = check_data(data, batch=None if self.recipe is None else self.recipe.batch)
        found.warn()
        if space.dim > self.n_features_in_:
            warn(
                f"{space.dim} latents are asked for, but {data.source} has {self.n_features_in_} "
                "numbers in a row; no theorem recovers more latents than there are numbers."
            )
        data = data.precisely(data.precise or found.precise)  # if float32 is too coarse
        source = self._source(data, targets, seed)
        if reset:
            encoders = [self._new_encoder(one.space, data.shape[1:], seed) for one in alternatives]
        else:
            encoders = [self.encoder_]
        for objective in objectives:
            if isinstance(objective, torch.nn.Module):
                objective.to(device)
        scales = torch.from_numpy(found.std)
        digest = data.digest()
        aims = None if targets is None else hashlib.sha256(targets.numpy().tobytes()).hexdigest()
        fit = fit_encoder(
            [(f.to(device), loss) for f, loss in zip(encoders, objectives, strict=True)],
            source,
            self.recipe or default_recipe(len(source), steps=self._most_steps),
            seed=seed,
            rounds=_ROUNDS if self.recipe is None else 1,
            linear=self.encoder is None,
            # A column of images is a channel of many pixels.
            scales=scales.repeat_interleave(self.n_features_in_ // len(scales)),
            warm_start=not reset,
            callback=callback,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            about={"data": digest, "targets": aims, **self._settings()},
        )
        training, self.assumed_ = fit.training, alternatives[fit.chosen]
        self.encoder_, self.objective_, self.gain_ = fit.encoder, fit.objective, fit.gain
        self.history_, self.best_step_ = training.history, training.best_step or training.steps
        self.n_steps_, self.seconds_ = training.steps, training.seconds
        self.digest_, self.seed_ = digest, seed
        self._finish(source)
        moving = found.std[found.std > 0]
        whitening = self.encoder_.whitening
        self.notes_ = [*found.sentences(), whitening.note(moving.min(), moving.max())]
        if len(alternatives) > 1:
            self.notes_.append(
                f"Held-out {self.targets} chose {self.assumed_.space!r}, conditional "
                f"{self.assumed_.conditional!r} and marginal {self.assumed_.marginal!r}, among "
                f"{len(alternatives)} assumptions; name a space to fix it."
            )
        if self.encoder is None and not self.encoder_.settings.get("hidden", True):
            self.notes_.append(
                f"No nonlinear map said more about held-out {self.targets}; a linear one was kept."
            )
        if self.best_step_ == self.n_steps_:
            self.notes_.append(
                f"The weights of the last step, {self.n_steps_}, were the best: more steps may "
                f"learn more, e.g. recipe=Recipe(steps={2 * self.n_steps_})."
            )
        data.check_unchanged()
        self._warn_of_gain()
        return self

    def _new_encoder(self, space: Space, shape: Sequence[int], seed: int) -> Encoder:
        settings = encoder_settings(self.encoder, space, shape)
        # A recipe may keep the weights that torch draws.
        with seeded(seed), demix_errors("Expected settings of Encoder", "correct encoder"):
            with torch.device("meta"):  # where weights take no memory
                outline = Encoder(space=space, **settings).state_dict().values()
            size = 4 * sum(weights.numel() for weights in outline)
            check_memory(size, "The encoder", "give it narrower layers")
            return Encoder(space=space, **settings)

    def _finish(self, source: Source[Any]) -> None:
        """Find in the training data what the loss leaves open."""

    def _settings(self) -> dict[str, str]:
        """Return what distinguishes this estimator, in the same words in every process."""
        parameters = self.get_params(deep=False)
        parameters.pop("random_state")  # the checkpoint has the seed already
        words = {name: name_of(x) if callable(x) else repr(x) for name, x in parameters.items()}
        return {"estimator": type(self).__name__, **words}

    def _warn_of_gain(self) -> None:
        if not self.gain_.above_zero:
            warn(
                f"The latents carry {self.gain_} about held-out {self.targets}, which is not above "
                "zero: nothing was learnt that holds for new data. Check that "
                f"{self.targets} and rows belong together (rows in time order?), or give more data."
            )


def name_of(function: Any) -> str:
    """Return the name of a callable; its repr would contain an address in memory."""
    return getattr(function, "__qualname__", type(function).__qualname__)
