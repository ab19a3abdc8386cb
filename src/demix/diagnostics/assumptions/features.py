"""Polynomials of latents, and how much of something they explain on rows they have not seen."""

from __future__ import annotations

import numpy as np

_MANY = 20
_FOLDS = 5


def polynomials(z: np.ndarray) -> np.ndarray:
    """Return monomials ``(M, k)`` of latents ``(M, n)``: up to degree 4, and products of two."""
    powers = [z, z**2, z**3, z**4]
    if z.shape[1] <= _MANY:
        first, second = np.triu_indices(z.shape[1], k=1)
        powers.append(z[:, first] * z[:, second])
    return np.concatenate(powers, axis=1)


def standardiser(reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean ``(k,)`` of features and the matrix ``(k, r)`` that whitens them."""
    mean = reference.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(reference.T))
    kept = values > 1e-6 * values.max()  # on a sphere squares add up to a constant
    return mean, vectors[:, kept] / np.sqrt(values[kept])


def explained(features: np.ndarray, targets: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the held-out R² ``(t,)`` of each target ``(M, t)`` by ridge regression.

    Groups ``(M,)`` stay on one side of a fold.
    """
    mean, whiten = standardiser(features)
    design = (features - mean) @ whiten
    _, place = np.unique(groups, return_inverse=True)
    fold = place * _FOLDS // (place.max() + 1) if place.max() >= _FOLDS else place % 2
    left = np.zeros_like(targets)
    level = np.zeros_like(targets)
    for number in np.unique(fold):
        own = fold == number
        x, y = design[~own], targets[~own]
        centre = y.mean(axis=0)
        gram = x.T @ x + np.eye(x.shape[1])
        left[own] = targets[own] - centre - design[own] @ np.linalg.solve(gram, x.T @ (y - centre))
        level[own] = targets[own] - centre
    return np.asarray(1 - (left**2).sum(axis=0) / (level**2).sum(axis=0).clip(1e-30))
