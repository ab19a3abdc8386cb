"""Checks of labels: the prototypes of classes, how many samples they have, and false labels."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy import optimize, special

from demix.diagnostics.check import Check, judge
from demix.theory.ranks import diversity_rank

_DRAWS = 20
_SAMPLES = 2000  # samples that the share of false labels is estimated from
_MOST = 4000  # prototypes that are used
_NEAR = 1 / 60  # the share of all rows that lie near one, and fix its latents together
_NUMBERS = 2**22
_STEP = 0.1  # of the spread of a latent, for slopes


def prototype_checks(prototypes: np.ndarray, case: str | None) -> list[Check]:
    """Check the learnt prototypes ``(classes, n)``.

    They are an affine generator system if their differences span all directions, which takes at
    least ``n + 1`` of them (Reizinger et al. 2024). They are diverse if no quadratic function
    vanishes on all of them, which takes ``n (n + 1) / 2 + n``; the paper asks for the squares of
    the coordinates only, which depends on the rotation and does not suffice. Only the ``case`` C3,
    unit prototypes with free features, needs it.
    """
    prototypes = prototypes[:: max(1, len(prototypes) // _MOST)]
    classes, n = prototypes.shape
    apart, values = _apart(prototypes)
    random = np.random.default_rng(0)
    draws = _DRAWS if classes > n else 0  # in general position, which too few never are
    null = [_apart(random.normal(size=prototypes.shape))[0] for _ in range(draws)]
    about = {"classes": classes, "singular_values": values.tolist()}
    words = {"n": n, "needed": n + 1}
    generator = judge("generator system", apart, np.array(null), details=about, **words)
    if case != "C3":
        return [generator]
    unit = torch.nn.functional.normalize(torch.from_numpy(prototypes))
    rank, asked = diversity_rank(unit)
    squares, _ = diversity_rank(unit, sufficient=False)
    details = {"rank": rank, "asked": asked, "rank_of_squares": squares}
    return [generator, judge("diversity", 1 - rank / asked, details=details)]


def _apart(prototypes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return log10 of the widest to the narrowest direction, and the width of each."""
    classes, n = prototypes.shape
    values = np.linalg.svd(prototypes - prototypes.mean(axis=0), compute_uv=False)
    least = values[n - 1] if classes > n else 0.0
    return math.log10(values[0] / max(least, 1e-9 * values[0])), values


def balance(labels: np.ndarray, classes: int) -> Check:
    """Compare the frequencies of classes."""
    counts = np.bincount(labels, minlength=classes)

    def bits(counts: np.ndarray) -> float:
        share = counts / counts.sum()
        return math.log2(classes) - float(special.entr(share).sum() / math.log(2))

    random = np.random.default_rng(0)
    drawn = random.multinomial(len(labels), np.full(classes, 1 / classes), size=_DRAWS)
    details = {"smallest": int(counts.min()), "largest": int(counts.max())}
    return judge("balance", bits(counts), np.array([bits(x) for x in drawn]), details=details)


def label_noise(logits: np.ndarray, labels: np.ndarray) -> Check:
    """Estimate which share of held-out labels ``(M,)`` was drawn at random."""
    # The likeliest share ``e`` and sharpness ``t`` of (1 - e) softmax(t * logits) + e / classes.
    random = np.random.default_rng(0)
    step = max(1, len(labels) // _SAMPLES)
    logits, labels = logits[::step], labels[::step]
    found, sharpness = _fit(logits, labels)
    clean = special.softmax(sharpness * logits, axis=1)
    null = [_fit(logits, _drawn(clean, random))[0] for _ in range(_DRAWS)]
    error = np.quantile(null, 0.95)
    details = {"share": found, "low": max(0.0, found - error), "high": found + error}
    return judge("label noise", found, np.array(null), details=details)


def log_linear(logits: np.ndarray, z: np.ndarray, labels: np.ndarray, degree: int = 1) -> Check:
    """Test the core of the theorem: logits that are linear in the latents ``(M, n)``.

    If they are, what is left of the labels has nothing to do with squares and products of latents.
    The statistic is, to second order, how many bits such terms would add for each class to the best
    linear ones (Rao's score test); its null are labels drawn from the model. For quadratic logits,
    the ``degree`` 2, it is products of three.
    """
    random = np.random.default_rng(0)
    share, sharpness = _fit(logits, labels)
    p = (1 - share) * special.softmax(sharpness * logits, axis=1) + share / logits.shape[1]
    own = np.column_stack([np.ones(len(z)), _standard(z)])
    if degree > 1:
        own = np.column_stack([own, _products(z, 2, own)])
    terms = np.column_stack([own, _products(z, degree + 1, own)])
    linear = own.shape[1]
    ridge = 1e-3 * np.eye(terms.shape[1])
    information = [(w * terms.T) @ terms / len(z) + w.mean() * ridge for w in (p * (1 - p)).T]
    inverses = np.linalg.inv(information)
    of_linear = np.linalg.inv([matrix[:linear, :linear] for matrix in information])

    def bits(labels: np.ndarray) -> float:
        left = -p.copy()
        left[np.arange(len(labels)), labels] += 1
        slope = left.T @ terms / len(z)
        gain = np.einsum("ci,cij,cj", slope, inverses, slope)
        gain -= np.einsum("ci,cij,cj", slope[:, :linear], of_linear, slope[:, :linear])
        return float(gain / 2 / math.log(2))

    null = [bits(_drawn(p, random)) for _ in range(2 * _DRAWS)]
    name = "log-linear" if degree == 1 else "log-quadratic"
    return judge(name, bits(labels), np.array(null))


def overlap(
    logits: Callable[[np.ndarray], np.ndarray], z: np.ndarray, rows: int, *, sphere: bool
) -> Check:
    """Ask how much of the latents ``(M, n)`` the labels of so many ``rows`` leave open.

    Where a class is certain, cross-entropy has no slope, and latents may lie anywhere. A label has
    the Fisher information ``I``, the covariance of the slopes of ``logits(z)``, about the latents
    of its row, in units of their spread; with the rows nearby it leaves ``1 / (1 + count I)`` open.
    """
    spread = np.cov(z.T).reshape(2 * z.shape[1:])
    steps = _STEP * np.diag(np.sqrt(np.diag(spread)).clip(1e-12))
    found = logits(z[:1]).size
    # Of each sample there are matrices: with many latents or classes, fewer of them do.
    most = min(_SAMPLES, max(100, _NUMBERS // (z.shape[1] * max(found, z.shape[1]))))
    z = z[:: max(1, len(z) // most)]
    p = special.softmax(logits(z), axis=1)
    # Exact for logits that are linear or quadratic.
    sides = [(logits(z + step) - logits(z - step)) / (2 * step.max()) for step in steps]
    slopes = np.stack(sides, axis=2)
    slopes -= np.einsum("mc,mci->mi", p, slopes)[:, None]
    information = (p[:, :, None] * slopes).transpose(0, 2, 1) @ slopes
    if sphere:
        outward = z / np.linalg.norm(z, axis=1, keepdims=True)
        tangent = np.eye(z.shape[1]) - outward[:, :, None] * outward[:, None]
        information = tangent @ information @ tangent
    root = np.linalg.cholesky(spread + 1e-12 * np.eye(len(spread)))
    # The first of a sphere is that of the radius, which is no latent.
    values = np.linalg.eigvalsh(root.T @ information @ root)[:, int(sphere) :].clip(0)
    return judge("overlap", (1 / (1 + _NEAR * rows * values)).mean())


def _drawn(p: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw a label ``(M,)`` for each sample from its probabilities ``(M, classes)``."""
    return np.asarray((random.random((len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1))


def _standard(z: np.ndarray) -> np.ndarray:
    return np.asarray((z - z.mean(axis=0)) / z.std(axis=0).clip(1e-30))


def _products(z: np.ndarray, degree: int, lower: np.ndarray) -> np.ndarray:
    """Return products ``(M, k)`` of so many latents that no function of ``lower`` explains."""
    z = _standard(z)
    first, second = np.triu_indices(z.shape[1])
    terms = z[:, first] * z[:, second]
    if degree == 3:  # of at most two different ones
        terms = ((z**2)[:, :, None] * z[:, None]).reshape(len(z), -1)
    terms = terms - lower @ np.linalg.lstsq(lower, terms, rcond=None)[0]
    spread = terms.std(axis=0)
    return np.asarray(terms[:, spread > 1e-6] / spread[spread > 1e-6])


def _fit(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    classes = logits.shape[1]
    own = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]

    def loss(x: np.ndarray) -> float:
        share, sharpness = special.expit(x[0]), math.exp(x[1])
        log_p = sharpness * own - special.logsumexp(sharpness * logits, axis=1)
        return -float(np.log((1 - share) * np.exp(log_p) + share / classes + 1e-300).mean())

    steps = np.array([[-4.0, 0.0], [-2.0, 0.0], [-4.0, 0.5]])
    options = {"xatol": 2e-2, "fatol": 1e-6, "initial_simplex": steps}
    found = optimize.minimize(loss, steps[0], method="Nelder-Mead", options=options).x
    return float(special.expit(found[0])), math.exp(found[1])
