"""Scores of recovered latents against true factors: held out, with a baseline, with a meaning."""

from demix.scores.correlation import correlation_matrix, mean_correlation
from demix.scores.dci import DCI, dci
from demix.scores.factors import categorical_columns
from demix.scores.gaps import mutual_information_gap, separated_predictability
from demix.scores.infomec import InfoMEC, infomec
from demix.scores.isometry import isometry_error
from demix.scores.modularity import modularity
from demix.scores.orthogonality import orthogonality_error
from demix.scores.readout import explicitness, linear_accuracy
from demix.scores.registry import all_scores
from demix.scores.regression import affine_r2, orthogonal_r2
from demix.scores.rows import rows_r2
from demix.scores.score import Score
from demix.scores.votes import beta_vae_score, factor_vae_score

__all__ = [
    "DCI",
    "InfoMEC",
    "Score",
    "affine_r2",
    "all_scores",
    "beta_vae_score",
    "categorical_columns",
    "correlation_matrix",
    "dci",
    "explicitness",
    "factor_vae_score",
    "infomec",
    "isometry_error",
    "linear_accuracy",
    "mean_correlation",
    "modularity",
    "mutual_information_gap",
    "orthogonal_r2",
    "orthogonality_error",
    "rows_r2",
    "separated_predictability",
]
