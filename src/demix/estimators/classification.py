"""Latents from class labels, and from rows alone: every row as a class of its own."""

from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from demix._support.errors import DemixError, shortened, warn
from demix._support.validation import as_numpy
from demix.data.checks import check_data
from demix.data.csv_files import check_words
from demix.data.data import Data
from demix.estimators.assumptions import Assumed
from demix.estimators.base import Demixer
from demix.estimators.sources import Augmentation, InstanceRows, LabelledRows
from demix.losses.classification import Classification, InstanceDiscrimination, Sampled
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe

Logits = Literal["linear", "quadratic"]

_EXACT = 8192  # with more rows, a step of `InstanceDemixer` uses the prototypes of its batch


class ClassifierDemixer(ClassifierMixin, Demixer):
    r"""Recover latents from class labels with cross-entropy, as in Reizinger et al. (2024).

    If observations are :math:`x = g(z)` and latents of a class lie around a vector of their own,
    the features of the best classifier are the latents up to a linear map (Theorem 1), provided
    that there are more classes than latents.

    Parameters
    ----------
    n_latents : int
        Number of latents.
    space : str or Space
        Where features lie: ``"real"`` leaves them free, ``"sphere"`` brings them to one length.
    unit_prototypes : bool
        Keep the prototypes of the classes on the unit sphere.
    logits : "linear" or "quadratic"
        ``"quadratic"`` is for classes that differ in spread, too: normal with a covariance each,
        which identifies latents up to an affine map. It takes ``n_latents (n_latents + 3) / 2 + 1``
        classes.
    noise : float
        Known share of labels that were replaced by random ones.
    encoder, recipe, validation, random_state, device
        As in :class:`ContrastiveDemixer`; a share of every class is held out.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    prototypes_ : ndarray (classes, n_latents), or more columns if logits are quadratic
        The prototype of each class: its vector, up to the map between features and latents.
    encoder_, gain_, history_, best_step_, notes_
        As in :class:`ContrastiveDemixer`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from demix import ClassifierDemixer
    >>> x, y = load_wine(return_X_y=True)
    >>> demixer = ClassifierDemixer(n_latents=2).fit(x, y)
    >>> demixer.transform(x).shape, demixer.score(x, y) > 0.9
    ((178, 2), True)
    """

    supervision = "labels"
    targets = "labels"

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "real",
        unit_prototypes: bool = False,
        logits: Logits = "linear",
        noise: float = 0.0,
        validation: float = 0.2,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents, self.space, self.unit_prototypes = n_latents, space, unit_prototypes
        self.logits, self.noise = logits, noise
        self.encoder, self.recipe, self.validation = encoder, recipe, validation
        self.random_state, self.device = random_state, device

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, *, positives: Any = None
    ) -> Self:
        """Continue from the weights of the last fit, on new data; the first call is a fit.

        In the first call ``classes`` are all labels that will ever come, by default those of ``y``.
        """
        given = {"y": y, "positives": positives, "classes": classes}
        return self._learn(X, given, reset=not hasattr(self, "encoder_"))

    @property
    def prototypes_(self) -> np.ndarray:
        """The prototype of each class."""
        return self.objective_.prototypes().detach().cpu().numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability ``(N, classes)`` of each class."""
        latents = torch.from_numpy(self.transform(X)).to(self.objective_.weight.device)
        with torch.no_grad():
            return self.objective_.logits(latents).softmax(dim=1).cpu().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class ``(N,)`` of each row."""
        check_is_fitted(self, "encoder_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def setting(self) -> Setting:
        """Return what theory needs to know."""
        conditional = "covariances" if self.logits == "quadratic" else "vmf"
        return Setting("labels", self._space(), conditional, unit_prototypes=self.unit_prototypes)

    def _new_objective(self, assumed: Assumed, rows: int) -> Classification:
        space = assumed.space
        known = ("linear",) if space.spherical else get_args(Logits)
        if self.logits not in known:
            raise DemixError(
                'logits must be "linear" or, in space="real", "quadratic", but got '
                f"{shortened(repr(self.logits))} in {space!r}."
            )
        form = {"quadratic": self.logits == "quadratic", "unit_prototypes": self.unit_prototypes}
        return Classification(len(self.classes_), space.dim, bias=True, noise=self.noise, **form)

    def _source(self, data: Data, targets: Tensor | None, seed: int) -> LabelledRows:
        assert targets is not None
        return LabelledRows(data, targets, len(self.classes_), share=self.validation, seed=seed)

    def _facts(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _restore(self, head: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        self.classes_ = np.array(about["classes"])
        super()._restore(head, about)

    def _targets(
        self, data: Data, *, reset: bool, y: Any, positives: Any, classes: Any = None
    ) -> tuple[Data, Tensor]:
        """Return the labels as numbers from 0, after setting `classes_`."""
        super()._targets(data, reset=reset, y=y, positives=positives)
        if y is None:
            raise DemixError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        given, y = y, column_or_1d(as_numpy(y, "labels"), warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        elif y.dtype.kind in "OU":
            check_words(given, "a label")
        elif y.dtype.kind in "mM":  # a saved model could not tell them
            raise DemixError(f"Expected y as text or numbers, but got {y.dtype}; convert it.")
        check_classification_targets(y)
        check_consistent_length(range(len(data)), y)
        if reset:
            self.classes_ = np.unique(y if classes is None else as_numpy(classes, "classes"))
        if len(self.classes_) < 2:
            raise DemixError(
                "Classification needs at least 2 classes to tell apart, but got "
                f"{shortened(str(self.classes_.tolist()))}; give rows of more classes."
            )
        text = [labels.dtype.kind in "OU" for labels in (y, self.classes_)]
        unknown = np.setdiff1d(y, self.classes_) if text[0] == text[1] else y
        if len(unknown):
            raise DemixError(
                f"Expected labels of the {len(self.classes_)} known classes, but "
                f"{unknown.tolist()[0]!r} is not one of them; name all classes in the first call."
            )
        labels = np.searchsorted(self.classes_, y)
        single = np.flatnonzero(np.bincount(labels) == 1)
        if reset and len(single):
            warn(
                f"{len(single)} of {len(np.unique(labels))} classes have a single sample and "
                f"cannot be held out, the first of them label {self.classes_[single[0]]}; collect "
                "more of them or leave them out."
            )
        return data, torch.from_numpy(labels)


class InstanceDemixer(Demixer):
    r"""Recover latents without labels: every row is a class of its own (DIET).

    Plain cross-entropy tells views of a row, made by an augmentation or by adding noise, from those
    of all other rows (Eq. 3 of Reizinger et al. 2024). What the views leave unchanged is recovered
    up to a linear map.

    Parameters
    ----------
    n_latents, space, unit_prototypes
        As in :class:`ClassifierDemixer`.
    augmentation : callable, optional
        ``augmentation(x)`` makes a new view of rows ``(B, ...)``. By default noise is added, which
        surrounds the observations and not factors behind them: no theorem covers it.
    noise : float
        Size of the noise, relative to the standard deviation of each column.
    encoder, recipe, random_state, device
        As in :class:`ContrastiveDemixer`. Every row has its own class, so new views of all rows
        are held out instead of rows.

    Attributes
    ----------
    encoder_, gain_, history_, best_step_, notes_
        As in :class:`ContrastiveDemixer`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import InstanceDemixer
    >>> x = np.random.default_rng(0).normal(size=(200, 5))
    >>> InstanceDemixer(n_latents=2).fit_transform(x).shape
    (200, 2)
    """

    supervision = "instances"
    targets = "views"
    validation = 0.2
    _keeps_objective = False

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "real",
        unit_prototypes: bool = False,
        augmentation: Augmentation | None = None,
        noise: float = 0.3,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents, self.space, self.encoder, self.recipe = n_latents, space, encoder, recipe
        self.unit_prototypes, self.augmentation, self.noise = unit_prototypes, augmentation, noise
        self.random_state, self.device = random_state, device

    def setting(self) -> Setting:
        """Return what theory needs to know."""
        views = "vmf" if self.augmentation else "noise in the observations"
        return Setting("instances", self._space(), views, unit_prototypes=self.unit_prototypes)

    def _new_objective(self, assumed: Assumed, rows: int) -> InstanceDiscrimination:
        sampled: Sampled = "batch" if rows > _EXACT else None
        return InstanceDiscrimination(
            rows, assumed.space.dim, unit_prototypes=self.unit_prototypes, sampled=sampled
        )

    def _source(self, data: Data, targets: Tensor | None, seed: int) -> InstanceRows:
        return InstanceRows(data, self.augmentation or self._added_noise(data))

    def _added_noise(self, data: Data) -> Augmentation:
        """Return the augmentation that adds noise to each column."""
        if not isinstance(self.noise, int | float) or not 0 < self.noise < 1e300:
            got = shortened(repr(self.noise))
            raise DemixError(f"noise must be positive and finite, but got {got}.")
        width = self.noise * torch.from_numpy(check_data(data).std).float()
        width = width.reshape(-1, *([1] * (len(data.shape) - 2)))

        def noisy(x: Tensor) -> Tensor:
            return x + width.to(x.device) * torch.randn(x.shape).to(x.device)

        return noisy
