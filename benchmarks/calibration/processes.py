"""Processes that satisfy the assumptions, and processes that break exactly one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.calibration.mixings import Mixed, columns, hearts, leaky, spiral
from benchmarks.calibration.process import Process, Random, Sample
from demix.diagnostics.paired import uniform
from demix.distributions.base import NoiseModel
from demix.distributions.generalized_normal import GeneralizedNormal
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.estimators.classification import ClassifierDemixer, InstanceDemixer
from demix.estimators.contrastive import ContrastiveDemixer
from demix.processes.process import LeakyMixing
from demix.spaces.kinds import Box, Sphere

Draw = Callable[[int, Random], Sample]


def _uniform(model: NoiseModel, rows: int, random: Random) -> np.ndarray:
    return uniform(model.space, rows, random).numpy()


def _drawn(model: NoiseModel, anchors: np.ndarray, random: Random) -> np.ndarray:
    """Draw a positive for each anchor."""
    return model.sample(torch.from_numpy(anchors), generator=random).numpy()


def _pairs(
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


def _series(
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


def _noisy(draw: Draw, share: float) -> Draw:
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


def _gaussian_classes(
    n: int, classes: int, *, unequal: float = 0.0, unseen: int = 0, mixed: Mixed = leaky
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
        demixer = ClassifierDemixer(n, random_state=int(random.integers(2**31)))
        return Sample(x, z, {"y": labels}, demixer)

    return draw


def _classes(
    n: int,
    classes: int,
    *,
    kappa: float | tuple[float, float] = 10.0,
    noise: float = 0.0,
    shuffled: bool = False,
    mixed: Mixed = leaky,
) -> Draw:
    """Return classes on a sphere, each with a vMF distribution around its vector.

    Two values of ``kappa`` are those of the first and of the last class.
    """
    low, high = np.broadcast_to(kappa, 2).tolist()
    kappas = np.geomspace(low, high, classes)

    def draw(rows: int, random: Random) -> Sample:
        vectors = _uniform(_vmf(n, 1.0), classes, random)
        labels = random.integers(classes, size=rows)
        z = np.empty((rows, n))
        for label in range(classes):
            own = labels == label
            z[own] = _drawn(_vmf(n, kappas[label]), vectors[labels[own]], random)
        x = mixed(z, int(random.integers(2**31)))
        given = np.where(random.random(rows) < noise, random.integers(classes, size=rows), labels)
        given = random.permutation(given) if shuffled else given
        demixer = ClassifierDemixer(n, space="sphere", random_state=int(random.integers(2**31)))
        return Sample(x, z, {"y": given}, demixer)

    return draw


def _instances(n: int, kappa: float, *, views: bool = True) -> Draw:
    """Return rows on a sphere; views of one have vMF noise around it, or noise in its columns."""

    def draw(rows: int, random: Random) -> Sample:
        model = _vmf(n, kappa)
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


def _drift(angle: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a turn of the first two factors by an angle in each row."""
    cos, sin = np.cos(angle), np.sin(angle)

    def moved(z: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [cos * z[:, 0] - sin * z[:, 1], sin * z[:, 0] + cos * z[:, 1], z[:, 2:]]
        )

    return moved


def _vmf(n: int, kappa: float) -> NoiseModel:
    return GeneralizedVonMisesFisher(Sphere(n), 2.0, float(np.sqrt(2 / kappa)))


def _box(n: int, p: float, scale: float) -> NoiseModel:
    return GeneralizedNormal(Box(n), p, scale)


def _concentrated(model: NoiseModel, kappa: float) -> Callable[[int, Random], np.ndarray]:
    def anchors(rows: int, random: Random) -> np.ndarray:
        dim = model.space.dim
        if model.space.spherical:
            pole = np.eye(dim)[[0]].repeat(rows, axis=0)
            return _drawn(_vmf(dim, kappa), pole, random)
        return random.beta(kappa, kappa, size=(rows, dim))

    return anchors


def _anisotropic(n: int, spread: float) -> Callable[[np.ndarray, Random], np.ndarray]:
    """Return noise that is ``spread`` times as large along the first axis as along the last."""
    widths = 0.15 * np.geomspace(spread**0.5, spread**-0.5, n)

    def positives(z: np.ndarray, random: Random) -> np.ndarray:
        moved = z + widths * random.normal(size=z.shape)
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))

    return positives


def _restricted(model: NoiseModel, share: float) -> Callable[[np.ndarray, Random], np.ndarray]:
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


def _uneven(model: NoiseModel, spread: float) -> Callable[[np.ndarray, Random], np.ndarray]:
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


def _folded(z: np.ndarray) -> np.ndarray:
    return np.column_stack([np.abs(z[:, 0]), z[:, 1:]])


def _lost(model: NoiseModel) -> Callable[[np.ndarray, Random], np.ndarray]:
    return lambda z, random: np.asarray(random.permutation(_drawn(model, z, random)))


_SPHERE, _LAPLACE, _NORMAL = _vmf(3, 20.0), _box(3, 1.0, 0.06), _box(3, 2.0, 0.15)

PROCESSES = [
    Process("sphere, vMF", (), _pairs(_SPHERE)),
    Process("sphere, vMF, series", (), _series(_SPHERE)),
    Process("box, Laplace", (), _pairs(_LAPLACE)),
    Process("box, normal", (), _pairs(_NORMAL, conditional="normal")),
    Process("sphere, 12 classes", (), _classes(3, 12)),
    Process("slow walk on a sphere", (), _series(_vmf(3, 100.0))),
    Process("slow walk, lags 1 to 5", (), _series(_vmf(3, 100.0), lag=(1, 5))),
    Process("normal classes", (), _gaussian_classes(2, 12)),
    Process("sphere, spiral", (), _pairs(_SPHERE, mixed=spiral)),
    Process("box, Laplace, 12 columns", (), _pairs(_LAPLACE, mixed=columns(12))),
    Process("views on a sphere", (), _instances(3, 20.0)),
    Process("sphere, vMF, 1500 rows", (), _pairs(_SPHERE), rows=1500),
    Process("sphere, vMF, 100 000 rows", (), _pairs(_SPHERE), rows=100_000, most=2),
    Process(
        "concentrated marginal",
        ("marginal",),
        _pairs(_SPHERE, anchors=_concentrated(_SPHERE, 3.0)),
    ),
    Process(
        "anisotropic conditional",
        ("isotropy",),
        _pairs(_SPHERE, positives=_anisotropic(3, 5.0)),
    ),
    Process(
        "restricted support",
        ("support", "shape"),
        _pairs(_SPHERE, positives=_restricted(_vmf(3, 4.0), 0.3)),
    ),
    Process("wrong shape", ("shape",), _pairs(GeneralizedVonMisesFisher(Sphere(3), 0.8, 0.15))),
    # An encoder stretches the space until the noise is even, and the marginal is not.
    Process(
        "uneven noise",
        ("position", "marginal"),
        _pairs(_SPHERE, positives=_uneven(_SPHERE, 5.0)),
    ),
    Process("folded mixing", ("injectivity", "marginal"), _pairs(_SPHERE, seen=_folded)),
    Process("one latent too few", ("too few latents",), _pairs(_vmf(4, 20.0), n_latents=3)),
    Process("one latent too many", ("too many latents",), _pairs(_SPHERE, n_latents=4)),
    Process(
        "shuffled pairs", ("positives informative",), _pairs(_SPHERE, positives=_lost(_SPHERE))
    ),
    Process("noisy observations", ("injectivity",), _noisy(_pairs(_SPHERE), 0.25)),
    Process(
        "noisy series", ("observation noise", "injectivity"), _noisy(_series(_vmf(3, 100.0)), 0.25)
    ),
    Process(
        "classes of unequal covariance",
        ("log-linear", "injectivity"),
        _gaussian_classes(3, 12, unequal=0.8),
    ),
    Process(
        "classes of kappa 2 to 100",
        ("log-linear", "injectivity"),
        _classes(3, 12, kappa=(2.0, 100.0)),
    ),
    Process("too few classes", ("generator system",), _classes(4, 4)),
    Process("false labels", ("label noise",), _classes(3, 12, noise=0.2)),
    Process("noise as views", ("views",), _instances(3, 20.0, views=False)),
    # Kept out of all tuning.
    Process("sphere, vMF, 5 latents", (), _pairs(_vmf(5, 30.0)), kept=True),
    Process("sphere, vMF, 10 latents", (), _pairs(_vmf(10, 60.0)), kept=True),
    Process("sphere, spiral, 4 latents", (), _pairs(_vmf(4, 25.0), mixed=spiral), kept=True),
    Process("slower walk, lag 10", (), _series(_vmf(3, 200.0), lag=10), kept=True),
    Process("walk in a box", (), _series(_box(2, 1.0, 0.05)), kept=True),
    Process("walk, 12 columns", (), _series(_vmf(4, 50.0), mixed=columns(12)), kept=True),
    Process("box, Laplace, 2 latents", (), _pairs(_box(2, 1.0, 0.04)), kept=True),
    Process("box, p = 3", (), _pairs(_box(3, 3.0, 0.2), conditional=3.0), kept=True),
    Process("hearts", (), _pairs(_box(3, 1.0, 0.08), mixed=hearts), kept=True),
    Process("sphere, 30 classes", (), _classes(4, 30, kappa=15.0), kept=True),
    Process(
        "normal classes, 8 columns",
        (),
        _gaussian_classes(2, 20, mixed=columns(8)),
        kept=True,
        rows=20_000,
    ),
    Process("views on a sphere, 4 latents", (), _instances(4, 30.0), kept=True),
    Process(
        "concentrated in a box",
        ("marginal",),
        _pairs(_LAPLACE, anchors=_concentrated(_LAPLACE, 4.0)),
        kept=True,
    ),
    Process(
        "normal noise for Laplace", ("shape",), _pairs(_NORMAL, conditional="laplace"), kept=True
    ),
    Process(
        "uneven noise in a box",
        ("position", "marginal"),
        _pairs(_NORMAL, conditional="normal", positives=_uneven(_NORMAL, 5.0)),
        kept=True,
    ),
    Process(
        "a box with one latent too few",
        ("too few latents",),
        _pairs(_box(3, 2.0, 0.12), conditional="normal", n_latents=2),
        kept=True,
    ),
    Process(
        "noisy observations in a box",
        ("shape", "marginal", "isotropy", "position"),
        _noisy(_pairs(_LAPLACE), 0.25),
        kept=True,
    ),
    Process(
        "noisy walk in a box",
        ("observation noise",),
        _noisy(_series(_box(2, 1.0, 0.05)), 0.25),
        kept=True,
    ),
    Process(
        "a walk that turns", ("position",), _series(_vmf(3, 50.0), moved=_drift(0.3)), kept=True
    ),
    Process(
        "a factor that labels do not see",
        ("too many latents", "injectivity"),
        _gaussian_classes(3, 12, unseen=1),
        kept=True,
    ),
    Process("shuffled labels", ("labels informative",), _classes(3, 12, shuffled=True), kept=True),
    Process("more false labels", ("label noise",), _classes(4, 20, noise=0.3), kept=True),
    Process("noise as views, 5 latents", ("views",), _instances(5, 20.0, views=False), kept=True),
]
"""Every process of the calibration."""
