"""How samples of processes are drawn, and in which ways they may break an assumption."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import torch

from benchmarks.calibration.mixings import Mixed, leaky
from benchmarks.calibration.process import Random, Sample
from demix.diagnostics.paired import uniform
from demix.distributions.base import NoiseModel
from demix.distributions.generalized_normal import GeneralizedNormal
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.estimators.classification import ClassifierDemixer, InstanceDemixer, Logits
from demix.estimators.contrastive import ContrastiveDemixer
from demix.processes.process import LeakyMixing
from demix.spaces.kinds import Box, Sphere

Draw = Callable[[int, Random], Sample]
Step = Callable[[np.ndarray, np.ndarray], np.ndarray]
_FIRST = 500  # rows of a series before it is looked at


def _uniform(model: NoiseModel, rows: int, random: Random) -> np.ndarray:
    return uniform(model.space, rows, random).numpy()


def _drawn(model: NoiseModel, anchors: np.ndarray, random: Random) -> np.ndarray:
    """Draw a positive for each anchor."""
    return model.sample(torch.from_numpy(anchors), generator=random).numpy()


def pairs(
    model: NoiseModel,
    *,
    n_latents: int | None = None,
    space: str | None = None,
    conditional: str | float | None = None,
    anchors: Callable[[int, Random], np.ndarray] | None = None,
    positives: Callable[[np.ndarray, Random], np.ndarray] | None = None,
    seen: Callable[[np.ndarray], np.ndarray] = lambda z: z,
    mixed: Mixed = leaky,
) -> Draw:
    """Return a process of given pairs; what is not given follows ``model``."""

    def draw(rows: int, random: Random) -> Sample:
        z = _uniform(model, rows, random) if anchors is None else anchors(rows, random)
        z_tilde = _drawn(model, z, random) if positives is None else positives(z, random)
        seed = int(random.integers(2**31))
        both = mixed(seen(np.concatenate([z, z_tilde])), seed)
        demixer = ContrastiveDemixer(
            n_latents or z.shape[1],
            space=space or _space(model),
            conditional=conditional,
            random_state=int(random.integers(2**31)),
        )
        return Sample(both[:rows], z, {"positives": both[rows:]}, demixer)

    return draw


def _space(model: NoiseModel) -> str:
    return "sphere" if model.space.spherical else "box"


def series(
    model: NoiseModel,
    *,
    lag: int | tuple[int, int] = 1,
    mixed: Mixed = leaky,
    moved: Callable[[np.ndarray], np.ndarray] = lambda z: z,
) -> Draw:
    """Return rows in time order, whose positives are ``lag`` rows apart; ``moved`` adds a drift."""

    def draw(rows: int, random: Random) -> Sample:
        steps = [_uniform(model, 1, random)]
        for _ in range(rows - 1):
            steps.append(_drawn(model, moved(steps[-1]), random))
        factors = np.concatenate(steps)
        x = mixed(factors, int(random.integers(2**31)))
        demixer = ContrastiveDemixer(
            factors.shape[1],
            space=_space(model),
            lag=lag,
            random_state=int(random.integers(2**31)),
        )
        return Sample(x, factors, {}, demixer)

    return draw


def unbounded(step: Step, n: int) -> Draw:
    """Return a series in R^n, for an estimator that finds out what to assume.

    ``step(z, e)`` returns the next latents ``(n,)`` after ``z``, with standard normal ``e``.
    """

    def draw(rows: int, random: Random) -> Sample:
        noise = random.normal(size=(_FIRST + rows, n))
        z = np.array(list(accumulate(noise, step)))[_FIRST:]
        x = leaky(z, int(random.integers(2**31)))
        return Sample(x, z, {}, ContrastiveDemixer(n, random_state=int(random.integers(2**31))))

    return draw


def autoregression(*rates: float, turn: float = 0.0, spread: float = 0.0) -> Step:
    """Return steps of latents that return to zero at their own rates, with unit variance.

    The first two ``turn`` by an angle in each step; noise grows by ``spread`` along the first.
    """
    kept = np.diag(rates)
    kept[:2, :2] @= [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    width = np.sqrt(1 - np.square(rates))
    return lambda z, e: kept @ z + np.exp(spread * np.tanh(z[0])) * width * e


def wells(*depths: float) -> Step:
    """Return steps of latents between two wells each, at -1 and 1."""
    return lambda z, e: z - 0.05 * np.array(depths) * (z**3 - z) + 0.25 * e


def noisy(draw: Draw, share: float) -> Draw:
    """Return the same with noise in every observation, as a share of its standard deviation."""

    def drawn(rows: int, random: Random) -> Sample:
        sample = draw(rows, random)
        width = share * sample.x.std(axis=0)

        def seen(x: np.ndarray) -> np.ndarray:
            return np.asarray(x + width * random.normal(size=x.shape), dtype=np.float32)

        targets = {
            name: seen(given) if name == "positives" else given
            for name, given in sample.targets.items()
        }
        return Sample(seen(sample.x), sample.factors, targets, sample.demixer)

    return drawn


def gaussian_classes(
    n: int,
    classes: int,
    *,
    unequal: float = 0.0,
    unseen: int = 0,
    logits: Logits = "linear",
    mixed: Mixed = leaky,
) -> Draw:
    """Return normal classes; ``unequal`` makes covariances differ, ``unseen`` factors do not."""

    def draw(rows: int, random: Random) -> Sample:
        labels = random.integers(classes, size=rows)
        centres = 2 * random.normal(size=(classes, n))
        turns = np.eye(n) + unequal * random.normal(size=(classes, n, n))
        z = centres[labels] + np.einsum("rij,rj->ri", turns[labels], random.normal(size=(rows, n)))
        z = z / z.std()
        if unseen:
            z[:, -unseen:] = random.normal(size=(rows, unseen))
        x = mixed(z, int(random.integers(2**31)))
        demixer = ClassifierDemixer(n, logits=logits, random_state=int(random.integers(2**31)))
        return Sample(x, z, {"y": labels}, demixer)

    return draw


def classes(
    n: int,
    classes: int,
    *,
    kappa: float | tuple[float, float] = 10.0,
    noise: float = 0.0,
    shuffled: bool = False,
    unequal: float = 1.0,
    centres: int = 1,
    mixed: Mixed = leaky,
) -> Draw:
    """Return classes on a sphere, each with a vMF distribution around its vector.

    Two values of ``kappa`` are those of the first and of the last class, of which the first has
    ``unequal`` times as many rows; with more ``centres`` a class is a mixture.
    """
    low, high = np.broadcast_to(kappa, 2).tolist()
    kappas = np.geomspace(low, high, classes)
    sizes = np.geomspace(unequal, 1.0, classes)

    def draw(rows: int, random: Random) -> Sample:
        vectors = _uniform(vmf(n, 1.0), classes * centres, random).reshape(centres, classes, n)
        labels = random.choice(classes, size=rows, p=sizes / sizes.sum())
        around = vectors[random.integers(centres, size=rows), labels]
        z = np.empty((rows, n))
        for label in range(classes):
            own = labels == label
            z[own] = _drawn(vmf(n, kappas[label]), around[own], random)
        x = mixed(z, int(random.integers(2**31)))
        given = np.where(random.random(rows) < noise, random.integers(classes, size=rows), labels)
        given = random.permutation(given) if shuffled else given
        demixer = ClassifierDemixer(n, space="sphere", random_state=int(random.integers(2**31)))
        return Sample(x, z, {"y": given}, demixer)

    return draw


def instances(n: int, kappa: float, *, views: bool = True) -> Draw:
    """Return rows on a sphere; views of one have vMF noise around it, or noise in its columns."""

    def draw(rows: int, random: Random) -> Sample:
        model = vmf(n, kappa)
        z = _uniform(model, rows, random)
        mixing = LeakyMixing(n, seed=int(random.integers(2**31)))

        def view(x: torch.Tensor) -> torch.Tensor:
            own = model.space.project(mixing.inverse(x.double()))
            drawn = np.random.default_rng(int(torch.randint(2**31, ())))
            return mixing(model.sample(own, generator=drawn)).to(x)

        demixer = InstanceDemixer(
            n, augmentation=view if views else None, random_state=int(random.integers(2**31))
        )
        return Sample(mixing(torch.from_numpy(z)).float().numpy(), z, {}, demixer)

    return draw


def drift(angle: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a turn of the first two factors by an angle in each row."""
    cos, sin = np.cos(angle), np.sin(angle)

    def moved(z: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [cos * z[:, 0] - sin * z[:, 1], sin * z[:, 0] + cos * z[:, 1], z[:, 2:]]
        )

    return moved


def vmf(n: int, kappa: float) -> NoiseModel:
    """Return von Mises-Fisher noise on a sphere."""
    return GeneralizedVonMisesFisher(Sphere(n), 2.0, float(np.sqrt(2 / kappa)))


def box(n: int, p: float, scale: float) -> NoiseModel:
    """Return generalised normal noise in the unit box."""
    return GeneralizedNormal(Box(n), p, scale)


def concentrated(model: NoiseModel, kappa: float) -> Callable[[int, Random], np.ndarray]:
    """Return anchors around a pole of the sphere, or the middle of the box."""

    def anchors(rows: int, random: Random) -> np.ndarray:
        dim = model.space.dim
        if model.space.spherical:
            pole = np.eye(dim)[[0]].repeat(rows, axis=0)
            return _drawn(vmf(dim, kappa), pole, random)
        return random.beta(kappa, kappa, size=(rows, dim))

    return anchors


def anisotropic(n: int, spread: float) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return noise that is ``spread`` times as large along the first axis as along the last."""
    widths = 0.15 * np.geomspace(spread**0.5, spread**-0.5, n)

    def positives(z: np.ndarray, random: Random) -> np.ndarray:
        moved = z + widths * random.normal(size=z.shape)
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))

    return positives


def restricted(model: NoiseModel, share: float) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return the smallest ``share`` of the noise of a model."""

    def positives(z: np.ndarray, random: Random) -> np.ndarray:
        found = _drawn(model, z, random)
        for _ in range(200):
            sizes = model.quantiles(torch.from_numpy(found), torch.from_numpy(z)).numpy()
            far = (sizes > share).any(axis=1)
            if not far.any():
                break
            found[far] = _drawn(model, z[far], random)
        return found

    return positives


def uneven(model: NoiseModel, spread: float) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return noise whose scale grows by ``spread`` along the first latent."""

    def positives(z: np.ndarray, random: Random) -> np.ndarray:
        low, high = (-1.0, 1.0) if model.space.spherical else (0.0, 1.0)
        place = np.digitize(z[:, 0], np.linspace(low, high, 17)[1:-1])
        found = np.empty_like(z)
        for number, factor in enumerate(np.geomspace(spread**-0.5, spread**0.5, 16)):
            own = place == number
            found[own] = _drawn(model.with_noise(model.p, model.scale * factor), z[own], random)
        return found

    return positives


def folded(z: np.ndarray, at: float = 0.0) -> np.ndarray:
    """Return latents of which a mixing sees only how far the first is from a value."""
    return np.column_stack([np.abs(z[:, 0] - at), z[:, 1:]])


def half(rows: int, random: Random) -> np.ndarray:
    """Return anchors on one half of a sphere."""
    z = _uniform(vmf(3, 1.0), rows, random)
    return np.column_stack([np.abs(z[:, 0]), z[:, 1:]])


def jumps(model: NoiseModel, share: float) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return positives of which a share lies anywhere."""

    def positives(z: np.ndarray, random: Random) -> np.ndarray:
        far = random.random((len(z), 1)) < share
        return np.where(far, _uniform(model, len(z), random), _drawn(model, z, random))

    return positives


def lost(model: NoiseModel) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return positives of other anchors."""
    return lambda z, random: np.asarray(random.permutation(_drawn(model, z, random)))
