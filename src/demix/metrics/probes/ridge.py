"""Read-outs of numbers: ridge regression, in coordinates in which every penalty is a division."""

from dataclasses import dataclass

import numpy as np

from demix.metrics.statistic import units_of

PENALTIES = tuple(10.0**power for power in range(3, -9, -1))
"""Penalties that are tried, in units of the variance of one feature, strongest first."""

# Rows that are turned into float64 at a time, to add them up without losing digits.
_AT_ONCE = 4096
# Directions with less of the largest variance are rounding; the smallest penalty is far above.
_FLAT = 1e-10


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Principal axes of standardised training features.

    With :math:`a = P^\top \mathrm{diag}(\sigma)^{-1} (x - \mu)` the training rows have mean zero
    and covariance :math:`\mathrm{diag}(v)`, so that ridge regression of a centred target
    :math:`y` with penalty :math:`\alpha` has the coefficients
    :math:`\mathrm{mean}(a_i y) / (v_i + \alpha)`. Made once, it serves all factors and penalties.
    """

    mean: np.ndarray  # (d,), of the training features
    units: np.ndarray  # (d,), powers of 2 that features are divided by: float32 holds the axes
    axes: np.ndarray  # (d, q), with the scale of each feature; q is the rank
    variances: np.ndarray  # (q,), along the axes

    @classmethod
    def of(cls, train: np.ndarray) -> "Basis":
        """Return the axes of training features ``(n, d)``, in the smaller of both dimensions."""
        rows, width = train.shape
        mean = train.mean(axis=0, dtype=np.float64)
        units = units_of(train)
        spread = _spread(train, mean, units)
        # A column that never changes has no scale.
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        if width <= rows:
            gram = np.zeros((width, width))
            for block in _blocks(train):
                part = (block - mean) / units * scale
                gram += part.T @ part
            variances, axes = np.linalg.eigh(gram / rows)
            kept = variances > _FLAT * max(variances[-1], 0.0)
            axes, variances = axes[:, kept], variances[kept]
        else:
            standard = (train - mean) / units * scale
            variances, sides = np.linalg.eigh(standard @ standard.T / rows)
            kept = variances > _FLAT * max(variances[-1], 0.0)
            variances = variances[kept]
            axes = standard.T @ (sides[:, kept] / np.sqrt(rows * variances))
        return cls(mean, units, scale[:, None] * axes, variances)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the coordinates ``(N, q)`` of features ``(N, d)``, in their precision."""
        coordinates = np.empty((len(features), self.axes.shape[1]), dtype=features.dtype)
        axes = self.axes.astype(features.dtype)
        for start in range(0, len(features), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            # Centred first: in a product a large mean would cost digits.
            moved = (features[part] - self.mean) / self.units
            coordinates[part] = moved.astype(features.dtype) @ axes
        return coordinates


def ridge(
    basis: Basis, train: np.ndarray, validation: np.ndarray, targets: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Fit :math:`y \approx b + w^\top a` with the penalty that predicts the validation rows best.

    .. math::
        \min_{w, b} \; \mathrm{mean}\, \|y - b - w^\top a\|^2 + \alpha \|w\|^2

    ``train`` ``(n, q)`` and ``validation`` ``(m, q)`` are coordinates in the basis; the ``k``
    columns of the targets ``(n, k)`` and ``(m, k)`` share a penalty. Returns coefficients
    ``(q, k)``, intercept ``(k,)`` and penalty.
    """
    fitted, checked = targets
    intercept = fitted.mean(axis=0)
    slopes = (train.T @ (fitted - intercept).astype(train.dtype)).astype(float) / len(train)
    best = (np.inf, slopes, 0.0)
    for penalty in PENALTIES:
        coefficients = slopes / (basis.variances + penalty)[:, None]
        predicted = validation @ coefficients.astype(validation.dtype) + intercept
        error = float(np.square(checked - predicted).sum())
        if error < best[0]:
            best = (error, coefficients, penalty)
    return best[1], intercept, best[2]


def _spread(train: np.ndarray, mean: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the standard deviations ``(d,)`` of columns in units, exactly 0 for a constant."""
    squares = sum(np.square((block - mean) / units).sum(axis=0) for block in _blocks(train))
    return np.where(train.max(axis=0) > train.min(axis=0), np.sqrt(squares / len(train)), 0.0)


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
