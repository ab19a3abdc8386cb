"""Processes that satisfy the assumptions, and processes that break exactly one of them."""

from __future__ import annotations

from functools import partial

from benchmarks.calibration.draws import (
    anisotropic,
    autoregression,
    box,
    classes,
    concentrated,
    drift,
    folded,
    gaussian_classes,
    half,
    instances,
    jumps,
    lost,
    noisy,
    pairs,
    restricted,
    series,
    unbounded,
    uneven,
    vmf,
    wells,
)
from benchmarks.calibration.mixings import columns, hearts, leaky, spiral, tuning
from benchmarks.calibration.process import Process
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.spaces.kinds import Sphere

_SPHERE, _LAPLACE, _NORMAL = vmf(3, 20.0), box(3, 1.0, 0.06), box(3, 2.0, 0.15)

PROCESSES = [
    Process("sphere, vMF", (), pairs(_SPHERE)),
    Process("sphere, vMF, series", (), series(_SPHERE)),
    Process("box, Laplace", (), pairs(_LAPLACE)),
    Process("box, normal", (), pairs(_NORMAL, conditional="normal")),
    Process("sphere, 12 classes", (), classes(3, 12)),
    Process("slow walk on a sphere", (), series(vmf(3, 100.0))),
    Process("slow walk, lags 1 to 5", (), series(vmf(3, 100.0), lag=(1, 5))),
    Process("normal classes", (), gaussian_classes(2, 12)),
    Process("sphere, spiral", (), pairs(_SPHERE, mixed=spiral)),
    Process("box, Laplace, 12 columns", (), pairs(_LAPLACE, mixed=columns(12))),
    Process("views on a sphere", (), instances(3, 20.0)),
    Process("sphere, vMF, 1500 rows", (), pairs(_SPHERE), rows=1500),
    Process("sphere, vMF, 100 000 rows", (), pairs(_SPHERE), rows=100_000, most=2),
    # Near relatives of these were seen while defaults were chosen.
    Process("slower walk, lag 10", (), series(vmf(3, 200.0), lag=10)),
    Process("walk, 12 columns", (), series(vmf(4, 50.0), mixed=columns(12))),
    Process("hearts", (), pairs(box(3, 1.0, 0.08), mixed=hearts)),
    Process(
        "normal classes, 8 columns",
        (),
        gaussian_classes(2, 20, mixed=columns(8)),
        rows=20_000,
    ),
    Process(
        "classes of unequal covariance, quadratic logits",
        (),
        gaussian_classes(2, 16, unequal=0.8, logits="quadratic"),
        rows=20_000,
    ),
    Process(
        "autoregression",
        (),
        unbounded(autoregression(0.98, 0.94, 0.88, 0.8), 4),
        rows=8000,
    ),
    Process(
        "autoregression of uneven noise",
        ("position", "marginal", "injectivity"),
        unbounded(autoregression(0.95, 0.9, 0.8, spread=1.0), 3),
    ),
    Process(
        "concentrated marginal",
        ("marginal",),
        pairs(_SPHERE, anchors=concentrated(_SPHERE, 3.0)),
    ),
    Process(
        "anisotropic conditional",
        ("isotropy",),
        pairs(_SPHERE, positives=anisotropic(3, 5.0)),
    ),
    Process(
        "restricted support",
        ("support", "shape"),
        pairs(_SPHERE, positives=restricted(vmf(3, 4.0), 0.3)),
    ),
    Process("wrong shape", ("shape",), pairs(GeneralizedVonMisesFisher(Sphere(3), 0.8, 0.15))),
    # An encoder stretches the space until the noise is even, and the marginal is not.
    Process(
        "uneven noise",
        ("position", "marginal"),
        pairs(_SPHERE, positives=uneven(_SPHERE, 5.0)),
    ),
    Process("folded mixing", ("injectivity", "marginal"), pairs(_SPHERE, seen=folded)),
    Process(
        "a box that is folded",
        ("steps", "injectivity", "marginal"),
        pairs(_LAPLACE, seen=partial(folded, at=0.4)),
    ),
    Process("one latent too few", ("too few latents",), pairs(vmf(4, 20.0), n_latents=3)),
    Process("one latent too many", ("too many latents",), pairs(_SPHERE, n_latents=4)),
    Process("shuffled pairs", ("positives informative",), pairs(_SPHERE, positives=lost(_SPHERE))),
    Process("noisy observations", ("injectivity",), noisy(pairs(_SPHERE), 0.25)),
    Process(
        "noisy series", ("observation noise", "injectivity"), noisy(series(vmf(3, 100.0)), 0.25)
    ),
    Process(
        "classes of unequal covariance",
        ("log-linear", "injectivity"),
        gaussian_classes(3, 12, unequal=0.8),
    ),
    Process(
        "classes of kappa 2 to 100",
        ("log-linear", "injectivity"),
        classes(3, 12, kappa=(2.0, 100.0)),
    ),
    Process("classes far apart", ("overlap",), classes(3, 12, kappa=60.0)),
    Process("too few classes", ("generator system",), classes(4, 4)),
    Process("false labels", ("label noise",), classes(3, 12, noise=0.2)),
    Process("noise as views", ("views",), instances(3, 20.0, views=False)),
    # Kept out of all tuning.
    Process("sphere, vMF, 5 latents", (), pairs(vmf(5, 30.0)), kept=True),
    Process("sphere, vMF, 10 latents", (), pairs(vmf(10, 60.0)), kept=True),
    Process("sphere, spiral, 4 latents", (), pairs(vmf(4, 25.0), mixed=spiral), kept=True),
    Process("walk in a box", (), series(box(2, 1.0, 0.05)), kept=True),
    Process("box, Laplace, 2 latents", (), pairs(box(2, 1.0, 0.04)), kept=True),
    Process("box, p = 3", (), pairs(box(3, 3.0, 0.2), conditional=3.0), kept=True),
    Process("sphere, 30 classes", (), classes(4, 30, kappa=15.0), kept=True),
    Process("views on a sphere, 4 latents", (), instances(4, 30.0), kept=True),
    Process("tuning curves", (), pairs(vmf(3, 15.0), mixed=tuning(20)), kept=True),
    Process("walk on a circle", (), series(vmf(2, 30.0)), kept=True),
    Process("walk, 20 000 rows", (), series(vmf(5, 60.0)), kept=True, rows=20_000),
    Process("unequal classes", (), classes(3, 16, kappa=12.0, unequal=10.0), kept=True),
    Process(
        "box, normal, 20 columns",
        (),
        pairs(box(3, 2.0, 0.1), conditional="normal", mixed=columns(20)),
        kept=True,
    ),
    Process("a little noise in columns", (), noisy(pairs(vmf(4, 10.0)), 0.02), kept=True),
    Process(
        "autoregression of 3 latents",
        (),
        unbounded(autoregression(0.97, 0.9, 0.75), 3),
        kept=True,
        rows=8000,
    ),
    Process(
        "an oscillator and a slow latent",
        (),
        unbounded(autoregression(0.95, 0.95, 0.98, turn=0.3), 3),
        kept=True,
        rows=8000,
    ),
    Process(
        "double wells",
        (),
        unbounded(wells(4.0, 3.0), 2),
        kept=True,
        rows=8000,
    ),
    Process(
        "an oscillator of uneven noise",
        ("position", "marginal", "injectivity"),
        unbounded(autoregression(0.9, 0.9, turn=0.4, spread=1.2), 2),
        kept=True,
    ),
    Process(
        "concentrated in a box",
        ("marginal",),
        pairs(_LAPLACE, anchors=concentrated(_LAPLACE, 4.0)),
        kept=True,
    ),
    Process(
        "normal noise for Laplace", ("shape",), pairs(_NORMAL, conditional="laplace"), kept=True
    ),
    Process(
        "uneven noise in a box",
        ("position", "marginal"),
        pairs(_NORMAL, conditional="normal", positives=uneven(_NORMAL, 5.0)),
        kept=True,
    ),
    Process(
        "a box with one latent too few",
        ("too few latents",),
        pairs(box(3, 2.0, 0.12), conditional="normal", n_latents=2),
        kept=True,
    ),
    Process(
        "noisy observations in a box",
        ("shape", "marginal", "isotropy", "position"),
        noisy(pairs(_LAPLACE), 0.25),
        kept=True,
    ),
    Process(
        "noisy walk in a box",
        ("observation noise",),
        noisy(series(box(2, 1.0, 0.05)), 0.25),
        kept=True,
    ),
    Process("a walk that turns", ("position",), series(vmf(3, 50.0), moved=drift(0.3)), kept=True),
    Process(
        "a factor that labels do not see",
        ("too many latents", "injectivity"),
        gaussian_classes(3, 12, unseen=1),
        kept=True,
    ),
    Process("shuffled labels", ("labels informative",), classes(3, 12, shuffled=True), kept=True),
    Process("more false labels", ("label noise",), classes(4, 20, noise=0.3), kept=True),
    Process("noise as views, 5 latents", ("views",), instances(5, 20.0, views=False), kept=True),
    Process("half a sphere", ("marginal", "support"), pairs(_SPHERE, anchors=half), kept=True),
    Process("jumps", ("shape",), pairs(_SPHERE, positives=jumps(_SPHERE, 0.2)), kept=True),
    Process(
        "a box with two folds",
        ("steps", "injectivity", "marginal"),
        pairs(
            box(3, 3.0, 0.15),
            conditional=3.0,
            seen=lambda z: folded(folded(z, at=0.35)[:, ::-1], at=0.3),
        ),
        kept=True,
    ),
    Process(
        "a folded walk in a box",
        ("steps", "injectivity", "marginal"),
        series(box(2, 1.0, 0.06), mixed=lambda z, seed: leaky(folded(z, at=0.3), seed)),
        kept=True,
    ),
    Process(
        "two centres of a class",
        ("log-linear", "injectivity"),
        classes(3, 10, kappa=20.0, centres=2),
        kept=True,
    ),
]
"""Every process of the calibration."""
