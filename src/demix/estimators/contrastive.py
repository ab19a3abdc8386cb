"""Latents from pairs: given ones, neighbours in time, or two views of a row."""

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, shortened, warn
from demix._support.validation import as_numpy
from demix.data.data import Data, as_data
from demix.data.supervision import check_pairs
from demix.estimators import sources
from demix.estimators.assumptions import Assumed, pair_alternatives, pair_objective
from demix.estimators.base import Demixer
from demix.estimators.gain import Gain
from demix.losses.pairs import DynamicsInfoNCE, InfoNCE, PotentialInfoNCE, ShapedInfoNCE
from demix.spaces.base import Space
from demix.theory.setting import Setting
from demix.training.recipe import Recipe

_PAIRS = 16_384  # that tell the map of linear dynamics
_SATURATED = 0.05  # nats of loss below which positives are recognised almost surely


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
        ``"sphere"``, ``"box"``, ``"l1_ball"``, ``"real"`` or a :class:`demix.Space`. For ``"auto"``
        held-out pairs choose: a sphere, if none of these tells clearly more, ``"real"`` with
        dynamics (in time order), or with normal differences and any marginal.
    conditional : str or float, optional
        How positives differ: ``"vmf"``, ``"normal"``, ``"laplace"``, the shape ``p`` of a
        generalised normal; ``"anisotropic"`` learns a scale for each latent, ``"auto"`` the shape,
        too; ``"dynamics"`` (in ``"real"``) a linear map from anchors to positives. By default vMF
        on a sphere and Laplace elsewhere.
    marginal : "uniform" or "any"
        How the latents are distributed in their space: evenly, as the paper assumes, or in any way
        that leaves no place out. For ``"any"`` a potential is learnt, too.
    lag : int or (int, int)
        If no positives are given, rows are in time order and the positive of a row comes so many
        rows after it; a range is drawn from uniformly.
    augmentation : callable, optional
        ``augmentation(x)`` makes a new view of rows ``(B, ...)``; positives are two views of a row.
    encoder : str or dict, optional
        The name of a body for images (``"compact"``, ``"kitti"``, ``"resnet18"``), or settings of
        :class:`demix.Encoder` that differ from its defaults, e.g. ``{"hidden": (64, 64)}``. By
        default ``"compact"`` for images of at least 16 x 16 pixels, else an MLP.
    recipe : Recipe, optional
        Settings of training; by default up to 3000 steps of 1024 pairs.
    validation : float
        Share of the data that is held out; whole segments, if rows are in time order.
    random_state : int, RandomState or None
        The same number gives the same weights to the bit.
    device : str
        Where torch computes, e.g. ``"cuda"``.

    Attributes
    ----------
    encoder_ : Encoder
        The trained model, a torch module.
    gain_ : Gain
        What it knows about held-out positives, in bits; ``fit`` warns unless it is above zero.
    assumed_
        The space, conditional and marginal that the fit has chosen.
    history_, best_step_, notes_
        Records of training, the step whose weights were kept, and what was odd about the data.
    shape_, scales_
        With a learnt conditional: its shape ``p``, and a scale ``(n_latents,)`` for each latent.
    dynamics_
        With ``conditional="dynamics"``: the map ``(n_latents, n_latents)`` from the latents of an
        anchor to the mean of those of its positive; its eigenvalues tell how long latents last.

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
    targets = "positives"
    _most_steps = 3000

    def __init__(
        self,
        n_latents: int = 3,
        *,
        space: str | Space = "auto",
        conditional: str | float | None = None,
        marginal: str = "uniform",
        lag: int | tuple[int, int] = 1,
        augmentation: sources.Augmentation | None = None,
        encoder: str | dict[str, Any] | None = None,
        recipe: Recipe | None = None,
        validation: float = 0.2,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.n_latents, self.space, self.conditional = n_latents, space, conditional
        self.marginal, self.lag, self.augmentation = marginal, lag, augmentation
        self.encoder, self.recipe, self.validation = encoder, recipe, validation
        self.random_state, self.device = random_state, device

    def score(self, X: Any, y: Any = None, *, positives: Any = None) -> float:
        """Return the information in bits of the pairs of ``X``."""
        return self.gain(X, positives=positives).bits

    def gain(self, X: Any, *, positives: Any = None) -> Gain:
        """Return what the model knows about the pairs of new data, given as in :meth:`fit`."""
        return self._gain_of(self.source(X, positives=positives), sources.PARTS)

    def time_lag(self, positives: Any = None) -> int | None:
        """Return the largest lag of positives if rows must be in time order, else None."""
        given = positives is not None or self.augmentation is not None
        return None if given else lags_of(self.lag)[1]

    def setting(self) -> Setting:
        """Return what theory needs to know; a learnt shape counts once it is learnt."""
        space, conditional, marginal = self._assumed()
        assert conditional is not None
        if conditional == "dynamics":
            return Setting("pairs", space, conditional, "any")
        if hasattr(self, "shape_"):
            return Setting("pairs", space, self.shape_, learned=True)
        return Setting("pairs", space, conditional, marginal)

    def settled(self) -> Self:
        """Return an estimator like this, not fitted, that assumes what the fit has chosen."""
        found, space = super().settled(), self._assumed().space
        if self.space != "auto":
            return found
        name = "sphere" if space.spherical else "real"
        return found.set_params(**self._assumed()._asdict() | {"space": name})

    @property
    def shape_(self) -> float:
        """The learnt shape of the conditional."""
        return self._learnt().shape

    @property
    def scales_(self) -> np.ndarray:
        """The learnt scale of each latent."""
        return self._learnt().scales.detach().cpu().numpy()

    @property
    def dynamics_(self) -> np.ndarray:
        """The map from anchors to positives."""
        if self._assumed().conditional != "dynamics" or not hasattr(self, "objective_"):
            raise AttributeError('Only conditional="dynamics" learns a map.')
        return self.objective_.dynamics.cpu().numpy()

    @torch.no_grad()
    def _finish(self, source: sources.Source[Any]) -> None:
        if isinstance(self.objective_, DynamicsInfoNCE):
            generator = torch.Generator(self.device).manual_seed(self.seed_)
            some = source.partners("train", _PAIRS, generator=generator)
            self.objective_.settle(*(self.encoder_(side) for side in some))

    def _learnt(self) -> ShapedInfoNCE:
        if self.conditional not in ("anisotropic", "auto") or not hasattr(self, "objective_"):
            raise AttributeError('Only conditional="auto" or "anisotropic" learns its shape.')
        return self.objective_

    def _assumed(self) -> Assumed:
        if hasattr(self, "assumed_"):
            return self.assumed_
        return self._alternatives(in_time=self.time_lag() is not None)[0]

    def _alternatives(self, *, in_time: bool) -> list[Assumed]:
        given = self.space, self._checked_n_latents(), self.conditional, self.marginal
        return pair_alternatives(*given, in_time=in_time)

    def _space(self) -> Space:
        return self._alternatives(in_time=False)[0].space

    def _new_objective(
        self, assumed: Assumed, rows: int
    ) -> InfoNCE | PotentialInfoNCE | ShapedInfoNCE:
        return pair_objective(assumed.conditional, assumed.space, assumed.marginal)

    def _source(self, data: Data, targets: Tensor | None, seed: int) -> sources.Source[Any]:
        held: dict[str, Any] = {"share": self.validation, "seed": seed}
        if targets is not None:
            return sources.GivenPairs(data, targets, **held)
        if self.augmentation is not None:
            return sources.AugmentedPairs(data, self.augmentation, **held)
        return sources.LagPairs(data, *lags_of(self.lag), **held)

    def _targets(
        self, data: Data, *, reset: bool, y: Any, positives: Any
    ) -> tuple[Data, Tensor | None]:
        """Return all rows, and the pairs ``(P, 2)`` of row numbers if positives were given."""
        if positives is None:
            return data, None
        if self.augmentation is not None:
            raise DemixError("Pairs are given or made by an augmentation, but got both.")
        positives = as_numpy(positives, "positives")
        array = np.asarray(positives)
        other = array.shape != data.shape
        if array.dtype.kind in "iu" and (other or array.ndim != 2 or array.shape[1] == 2):
            return data, check_pairs(positives, len(data))
        if other:
            raise DemixError(
                f"positives must be row numbers (P, 2), or a positive for each row, of shape "
                f"{data.shape}, but got {array.dtype} of shape {array.shape}."
            )
        given = as_data(positives)
        given = given if given.names is None else given.matching(self._names)
        both = np.concatenate([x.by_number().rows[:] for x in (data, given)])
        rows = torch.arange(len(data))
        return as_data(both), torch.stack([rows, rows + len(data)], dim=1)

    def _warn_of_gain(self) -> None:
        super()._warn_of_gain()
        if self.gain_.above_zero and self.gain_.loss < _SATURATED:
            warn(
                "Held-out positives are distinguished from all others almost surely (loss "
                f"{self.gain_.loss:.3f} nats): they are so alike that their distances say little "
                "about the latents. Take a larger lag, or pairs that differ more."
            )


def lags_of(lag: Any) -> tuple[int, int]:
    """Return the smallest and the largest lag of one lag or of a range."""
    low, high = lag if isinstance(lag, tuple | list) and len(lag) == 2 else (lag, lag)
    whole = all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in (low, high))
    if not whole or not 1 <= low <= high < 2**31:
        raise DemixError(
            "lag must be a whole number >= 1, or a range (low, high) of them, but got "
            f"{shortened(repr(lag))}."
        )
    return int(low), int(high)
