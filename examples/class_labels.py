"""Latents of handwritten digits, from nothing but which digit each of them is.

Takes the digits that scikit-learn ships.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

from common import ACCENT, GREY, keep, panels, parser
from demix import ClassifierDemixer, Score, affine_r2

# Ten classes span nine dimensions at most.
LATENTS = 9


def main(given: Sequence[str] | None = None) -> dict[str, Any]:
    """Fit two classifiers, and compare them with each other and with a factor that nobody told."""
    arguments = parser(__file__, str(__doc__)).parse_args(given)
    digits = load_digits()
    count = 1200 if arguments.quick else len(digits.data)
    x, y = digits.data[:count].astype(np.float32), digits.target[:count]
    train, test = train_test_split(
        np.arange(count), test_size=0.4, stratify=y, random_state=arguments.seed
    )
    x = x[:, x[train].std(axis=0) > 0]  # corners in which nobody writes
    fits = [
        ClassifierDemixer(
            n_latents=LATENTS, encoder={"components": 20}, random_state=arguments.seed + start
        ).fit(x[train], y[train])
        for start in range(2)
    ]
    latents = [fitted.transform(x[test]) for fitted in fits]
    lean = slant(digits.images[:count])[test]
    scores = {
        "latents of another fit, from another seed": affine_r2(latents[0], latents[1]),
        "slant of the digit, which no label tells": affine_r2(latents[0], lean[:, None]),
        "the same, within each class": affine_r2(latents[0], within(lean, y[test])[:, None]),
    }
    return shown(fits[0], latents, x[test], y[test], scores, arguments)


def slant(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far each image leans: its mixed second moment over the vertical one."""
    row, column = np.mgrid[: images.shape[1], : images.shape[2]]
    mass = images.sum(axis=(1, 2), keepdims=True)
    down = row - (images * row).sum(axis=(1, 2), keepdims=True) / mass
    across = column - (images * column).sum(axis=(1, 2), keepdims=True) / mass
    return (images * down * across).sum(axis=(1, 2)) / (images * down**2).sum(axis=(1, 2))


def within(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return values less the mean of their class."""
    means = np.bincount(labels, values) / np.bincount(labels)
    return values - means[labels]


def shown(
    fitted: ClassifierDemixer,
    latents: list[NDArray[np.float32]],
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    scores: dict[str, Score],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Draw and keep what is found on rows that no fit has seen."""
    named = fitted.predict(x)
    accuracy, chance = (named == y).mean(), np.bincount(y).max() / len(y)
    figure, (confusion, agreement) = panels(2)
    confusion.imshow(np.sqrt(confusion_matrix(y, named)), cmap="Blues")
    confusion.set(title="held-out digits", xlabel="named", ylabel="true")
    confusion.set(xticks=range(10), yticks=range(10))
    half = len(y) // 2
    line = LinearRegression().fit(latents[0][:half], latents[1][:half, 0])
    agreement.axline((0, 0), slope=1, color=GREY, linewidth=1)
    agreement.plot(latents[1][half:, 0], line.predict(latents[0][half:]), ".", color=ACCENT)
    agreement.set(title="two fits", xlabel="a latent of one", ylabel="read out of the other")
    rows = [["which digit: accuracy", f"{accuracy:.3f}", f"{chance:.3f}"]]
    rows += [
        [f"{name}: R²", f"{score:.3f}", f"{score.baseline:.3f}"] for name, score in scores.items()
    ]
    return keep(
        arguments,
        "Read linearly out of the latents of digits that were held out",
        ["what", "score", "by chance"],
        rows,
        [
            f"{len(y)} digits are held out; {LATENTS} latents. Regressions are fitted on one half "
            "of them and scored on the other; chance is the most frequent digit, or shuffled rows.",
            f"Information about held-out labels: {fitted.gain_}.",
        ],
        figure,
        accuracy=accuracy,
        scores={name: [score, score.baseline] for name, score in scores.items()},
    )


if __name__ == "__main__":
    main()
