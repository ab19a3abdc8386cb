"""Latents from class labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.validation import as_numpy
from demix.estimators.assumptions import assumed_space
from demix.estimators.base import Demixer
from demix.estimators.examples import LabelledRows
from demix.estimators.fitting import Report, warn_of_no_gain
from demix.estimators.seeding import seeded
from demix.losses.classification import Classification
from demix.losses.labels import warn_of_single
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe


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
    unit_rows : bool
        Keep the classifier's rows on the unit sphere.
    noise : float
        Known share of labels that were replaced by random ones.
    encoder, recipe, validation, random_state, device
        As in :class:`ContrastiveDemixer`; of every class a share is held out.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    rows_ : ndarray (classes, n_latents)
        A row for each of them, which stand to the vectors of the classes as the features to the
        latents.
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
    teachers = "labels"

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "real",
        unit_rows: bool = False,
        noise: float = 0.0,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        validation: float = 0.2,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents = n_latents
        self.space = space
        self.unit_rows = unit_rows
        self.noise = noise
        self.encoder = encoder
        self.recipe = recipe
        self.validation = validation
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        report: Report | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on rows ``X`` with labels ``y`` ``(N,)``, numbers or text.

        Parameters
        ----------
        X, report, checkpoint
            As in :meth:`ContrastiveDemixer.fit`.
        y : array-like (N,)
            The class of each row.
        """
        return self._learn(X, y, None, report, checkpoint, goes_on=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on from the weights of the last fit, on new data; the first call is a fit.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        classes : array-like, optional
            In the first call: all labels that will ever come, by default those of ``y``.
        """
        return self._learn(X, y, classes, None, None, goes_on=hasattr(self, "encoder_"))

    @property
    def rows_(self) -> np.ndarray:
        """The row of each class."""
        rows: np.ndarray = self.objective_.table().detach().cpu().numpy()
        return rows

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability ``(N, classes)`` of each class."""
        latents = torch.from_numpy(self.transform(X)).to(self.objective_.rows.device)
        with torch.no_grad():
            found: np.ndarray = self.objective_.logits(latents).softmax(dim=1).cpu().numpy()
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class ``(N,)`` of each row."""
        check_is_fitted(self, "encoder_")
        predicted: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return predicted

    def setting(self) -> Setting:
        """Return what theory needs to know."""
        space = assumed_space(self.space, self.n_latents)
        return Setting("labels", space, unit_prototypes=self.unit_rows)

    def source(self, X: Any, y: Any) -> LabelledRows:
        """Return where the samples of a fit come from, with the parts it holds out."""
        data = self._data(X, reset=False)
        labels = self._labels(y, len(data), None, goes_on=True)
        return LabelledRows(data, labels, share=self.validation, seed=self._seed())

    def _learn(
        self,
        X: Any,
        y: Any,
        classes: Any,
        report: Report | None,
        checkpoint: str | Path | None,
        *,
        goes_on: bool,
    ) -> Self:
        space = self._space()
        data = self._data(X, reset=not goes_on)
        labels = self._labels(y, len(data), classes, goes_on=goes_on)
        data, found = self._checked(data)
        counts = np.bincount(labels.numpy(), minlength=len(self.classes_))
        warn_of_single(counts)
        if not goes_on:
            encoder = self._new_encoder(space)
            with seeded(self._seed()):
                objective = Classification(
                    len(counts), space.dim, unit_rows=self.unit_rows, bias=True, noise=self.noise
                )
        else:
            encoder, objective = self.encoder_, self.objective_
        source = LabelledRows(data, labels, share=self.validation, seed=self._seed())
        self._fit(
            encoder,
            objective,
            source,
            found,
            steps=4000,
            goes_on=goes_on,
            report=report,
            checkpoint=checkpoint,
            digest=data.digest(),
            beside=labels,
        )
        warn_of_no_gain(self.gain_, self.teachers)
        return self

    def _labels(self, y: Any, rows: int, classes: Any, *, goes_on: bool) -> Tensor:
        """Return labels as numbers from 0, after setting `classes_`."""
        if y is None:
            raise DemixError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = column_or_1d(as_numpy(y, "labels"), warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(range(rows), y)
        if not goes_on:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        if len(self.classes_) < 2:
            raise DemixError(
                "Classification needs at least 2 classes to tell apart, but all "
                f"{len(y)} labels are one class, {self.classes_[0]!r}."
            )
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise DemixError(
                f"Expected labels of the {len(self.classes_)} known classes, but {unknown[0]!r} is "
                "none; name all classes in the first call."
            )
        return torch.from_numpy(np.searchsorted(self.classes_, y))
