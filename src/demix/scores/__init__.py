"""Scores of recovered latents against true factors: held out, with a baseline, with a meaning."""

from demix.scores.correlation import correlation_matrix, mean_correlation
from demix.scores.isometry import isometry_error
from demix.scores.orthogonality import orthogonality_error
from demix.scores.regression import affine_r2, orthogonal_r2
from demix.scores.rows import rows_r2
from demix.scores.score import Score

__all__ = [
    "Score",
    "affine_r2",
    "correlation_matrix",
    "isometry_error",
    "mean_correlation",
    "orthogonal_r2",
    "orthogonality_error",
    "rows_r2",
]
