"""Latents from pairs: given ones, neighbours in time, or two views of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from demix._support.errors import DemixError, warn
from demix._support.validation import refuse_masked
from demix.data.data import Data, as_data
from demix.data.supervision import check_pairs
from demix.estimators.assumptions import assumed_space, default_conditional, pair_objective
from demix.estimators.base import Demixer
from demix.estimators.fitting import Report, judged, warn_of_no_gain
from demix.estimators.gain import Gain
from demix.estimators.views import Augmentation, AugmentedPairs, GivenPairs, LagPairs, PairSource
from demix.losses.shaped import ShapedInfoNCE
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe

# Below this loss in nats positives are told apart almost surely, whatever the latents are.
_SATURATED = 0.05


class ContrastiveDemixer(Demixer):
    r"""Recover latents from positive pairs with InfoNCE, as in Zimmermann et al. (2021).

    If observations are :math:`x = g(z)` of latents in ``space``, and positives differ as the
    ``conditional`` says, the optimum recovers the latents: on a sphere with vMF up to a rotation
    (Theorem 2), on a box with Laplace noise up to order, sign and scale (Theorem 6), else up to an
    affine map (Theorem 5).

    Parameters
    ----------
    n_latents : int
        Dimension of the assumed space; on a sphere its ambient dimension.
    space : str or Space
        ``"sphere"``, ``"box"``, ``"l1_ball"``, ``"real"`` or a :class:`demix.Space`.
    conditional : str or float, optional
        How positives differ: ``"vmf"``, ``"normal"``, ``"laplace"``, the shape ``p`` of a
        generalised normal; ``"anisotropic"`` learns a scale for each latent, ``"auto"`` the shape,
        too. By default vMF on a sphere and Laplace elsewhere.
    lag : int or (int, int)
        If no positives are given, rows are in time order and the positive of a row comes so many
        rows after it; a range is drawn from uniformly.
    augmentation : callable, optional
        ``augmentation(x)`` makes a new view of rows ``(B, ...)``; positives are two views of a row.
    encoder : str or dict, optional
        The name of a body for images (``"compact"``, ``"kitti"``, ``"resnet18"``), or settings of
        :class:`demix.Encoder` that differ from its defaults, e.g. ``{"hidden": (64, 64)}``.
    recipe : Recipe, optional
        Settings of training; by default up to 3000 steps of 1024 pairs.
    validation : float
        Share of the data that is held out; in blocks, if rows are in time order.
    random_state : int, RandomState or None
        The same number gives the same weights to the bit.
    device : str
        Where torch computes, e.g. ``"cuda"``.

    Attributes
    ----------
    encoder_ : Encoder
        The trained model, a torch module.
    gain_ : Gain
        What it knows about held-out positives, in bits over permuted ones; ``fit`` warns if this is
        not above zero.
    history_, best_step_, notes_
        Looks during training, the step that was kept, and what was odd about the data.
    shape_, scales_
        With a learnt conditional: its shape ``p``, and a scale ``(n_latents,)`` for each latent.

    Examples
    --------
    A walk on a circle, seen through a nonlinear map:

    >>> import numpy as np
    >>> from demix import ContrastiveDemixer
    >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 2000))
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    >>> demixer = ContrastiveDemixer(n_latents=2).fit(x)
    >>> demixer.transform(x).shape, demixer.gain_.above_zero
    ((2000, 2), True)
    """

    supervision = "pairs"
    teachers = "positives"

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "sphere",
        conditional: str | float | None = None,
        lag: int | tuple[int, int] = 1,
        augmentation: Augmentation | None = None,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        validation: float = 0.2,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents = n_latents
        self.space = space
        self.conditional = conditional
        self.lag = lag
        self.augmentation = augmentation
        self.encoder = encoder
        self.recipe = recipe
        self.validation = validation
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        positives: Any = None,
        report: Report | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on the rows of ``X``.

        Parameters
        ----------
        X : array-like (N, d), images (N, C, H, W), or Data
            The observations.
        y : None
            Ignored.
        positives : array (P, 2) of int, or array like X, optional
            Numbers of rows that are positives of each other, or a positive for each row.
        report : callable, optional
            ``report(step, steps, record)`` after every step, for progress bars.
        checkpoint : path, optional
            A file to keep the training in; if it is there, training goes on from it.
        """
        return self._learn(X, positives, report, checkpoint, goes_on=False)

    def partial_fit(self, X: Any, y: Any = None, *, positives: Any = None) -> Self:
        """Go on from the weights of the last fit, on new data; the first call is a fit."""
        return self._learn(X, positives, None, None, goes_on=hasattr(self, "encoder_"))

    def score(self, X: Any, y: Any = None, *, positives: Any = None) -> float:
        """Return the gain in bits of the pairs of ``X`` over permuted ones."""
        return self.gain(X, positives=positives).bits

    def gain(self, X: Any, *, positives: Any = None) -> Gain:
        """Return what the model knows about the pairs of data that it has not seen.

        Parameters
        ----------
        X, positives
            As in :meth:`fit`.
        """
        check_is_fitted(self, "encoder_")
        source = self.source(X, positives=positives)
        return judged(self.encoder_, self.objective_, source, self._batch())

    def source(self, X: Any, y: Any = None, *, positives: Any = None) -> PairSource:
        """Return where the pairs of a fit to these data come from, with the parts it holds out."""
        return self._source(*self._pairs(self._data(X, reset=False), positives))

    def setting(self) -> Setting:
        """Return what theory needs to know; a learnt shape counts once it is learnt."""
        space = assumed_space(self.space, self.n_latents)
        conditional = default_conditional(space) if self.conditional is None else self.conditional
        if conditional in ("anisotropic", "auto") and hasattr(self, "objective_"):
            return Setting("pairs", space, self.shape_, learned=True)
        return Setting("pairs", space, conditional)

    @property
    def shape_(self) -> float:
        """The learnt shape of the conditional."""
        return self._learnt().shape

    @property
    def scales_(self) -> np.ndarray:
        """The learnt scale of each latent."""
        scales: np.ndarray = self._learnt().scales.detach().cpu().numpy()
        return scales

    def _learnt(self) -> ShapedInfoNCE:
        objective = getattr(self, "objective_", None)
        if not isinstance(objective, ShapedInfoNCE):
            raise AttributeError('Only conditional="auto" or "anisotropic" learns its shape.')
        return objective

    def _learn(
        self,
        X: Any,
        positives: Any,
        report: Report | None,
        checkpoint: str | Path | None,
        *,
        goes_on: bool,
    ) -> Self:
        space = self._space()
        objective = self.objective_ if goes_on else pair_objective(self.conditional, space)
        data, pairs = self._pairs(self._data(X, reset=not goes_on), positives)
        data, found = self._checked(data)
        source = self._source(data, pairs)
        self._fit(
            self.encoder_ if goes_on else self._new_encoder(space),
            objective,
            source,
            found,
            steps=3000,
            goes_on=goes_on,
            report=report,
            checkpoint=checkpoint,
            digest=data.digest(),
            beside=pairs,
        )
        warn_of_no_gain(self.gain_, self.teachers)
        if self.gain_.above_zero and self.gain_.loss < _SATURATED:
            warn(
                f"Held-out positives are told from all others almost surely (loss "
                f"{self.gain_.loss:.3f} nats): they are so alike that their distances say little "
                "about the latents. Take a larger lag, or pairs that differ more."
            )
        return self

    def _pairs(self, data: Data, positives: Any) -> tuple[Data, torch.Tensor | None]:
        """Return all rows, and the numbers of those that are positives if they were given."""
        if positives is None:
            return data, None
        if self.augmentation is not None:
            raise DemixError("Pairs are given or made by an augmentation, but got both.")
        refuse_masked(positives, "positives")
        array = positives if torch.is_tensor(positives) else np.asarray(positives)
        if str(array.dtype).replace("torch.", "").startswith(("int", "uint")) and (
            array.ndim != 2 or array.shape[1] == 2 or tuple(array.shape) != data.shape
        ):
            return data, check_pairs(positives, len(data))
        if tuple(array.shape) != data.shape:
            raise DemixError(
                f"positives must be row numbers (P, 2), or a positive for each row, of shape "
                f"{data.shape}, but got {array.dtype} of shape {tuple(array.shape)}."
            )
        both = np.concatenate([data.rows.read(0, len(data)), np.asarray(array)])
        rows = torch.arange(len(data))
        return as_data(both), torch.stack([rows, rows + len(data)], dim=1)

    def _source(self, data: Data, pairs: torch.Tensor | None) -> PairSource:
        """Return where pairs come from, with parts of them held out."""
        held: dict[str, Any] = {"share": self.validation, "seed": self._seed()}
        if pairs is not None:
            return GivenPairs(data, pairs, **held)
        if self.augmentation is not None:
            return AugmentedPairs(data, self.augmentation, **held)
        return LagPairs(data, *lags_of(self.lag), **held)


def lags_of(lag: Any) -> tuple[int, int]:
    """Return the smallest and the largest lag.

    Examples
    --------
    >>> from demix.estimators.contrastive import lags_of
    >>> lags_of(3), lags_of((1, 5))
    ((3, 3), (1, 5))
    """
    low, high = lag if isinstance(lag, tuple | list) and len(lag) == 2 else (lag, lag)
    whole = all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in (low, high))
    if not whole or not 1 <= low <= high:
        raise DemixError(
            f"lag must be a whole number >= 1, or a range (low, high) of them, but got {lag!r}."
        )
    return int(low), int(high)
