"""demix recovers the factors behind data and says how far they can be trusted.

A classifier that tells positives from negatives inverts the process that made the data.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Each public name and the room it comes from. Rooms are imported on first use, so that
# ``import demix`` and ``demix --help`` do not wait for torch.
_ROOMS = {
    "errors": ["DemixError", "DemixWarning"],
    "data": [
        "Data",
        "Findings",
        "KnownFactors",
        "Labels",
        "as_data",
        "check_data",
        "check_pairs",
        "check_time",
        "read_data",
        "read_factors",
        "read_labels",
        "read_pairs",
        "read_time",
    ],
    "spaces": ["Box", "L1Ball", "Product", "Real", "Space", "Sphere", "check_space", "space_named"],
    "distributions": [
        "Conditional",
        "GeneralizedNormal",
        "Laplace",
        "Marginal",
        "Normal",
        "Similarity",
        "Uniform",
        "VonMisesFisher",
        "check_conditional",
    ],
    "scenes": [
        "Order",
        "Rendered",
        "Scene",
        "open_rendered",
        "render",
        "render_folder",
        "sample_latents",
        "scene_named",
    ],
    "processes": [
        "ClusterProcess",
        "CouplingMixing",
        "Labelled",
        "LeakyMixing",
        "Mixing",
        "Pairs",
        "Process",
        "SpiralMixing",
        "affine_generator_rank",
        "cluster_vectors",
        "diversity_rank",
    ],
    "datasets": [
        "FactorColumn",
        "FactorImages",
        "ImageFiles",
        "ImageNetX",
        "KittiMasks",
        "NearestPairs",
        "SimCLRViews",
        "fetch_dataset",
        "imagenet_x",
        "kitti_masks",
        "open_factor_images",
        "open_images",
    ],
    "encoders": [
        "EfficientNetLite0",
        "Encoder",
        "Features",
        "RandomProjection",
        "export_onnx",
        "features",
        "load_efficientnet_lite0",
        "load_encoder",
        "paper_encoder",
        "save_encoder",
    ],
    "objectives": [
        "AlignmentUniformity",
        "Classification",
        "GeneralizedContrastive",
        "Identified",
        "InfoNCE",
        "InstanceDiscrimination",
        "ShapedInfoNCE",
        "SlowVAE",
        "Supervised",
        "TimeContrastive",
        "alignment",
        "asymptotic_loss",
        "check_classes",
        "contrast",
        "cross_entropy_identifies",
        "is_matched",
        "latent_loss",
        "optimum_error",
        "optimum_limit",
        "uniformity",
    ],
    "training": ["Chunked", "Recipe", "paper_recipe", "train"],
    "assumptions": ["Check", "Checkup", "checkup", "checkup_pairs"],
    "estimators": [
        "ClassifierDemixer",
        "ContrastiveDemixer",
        "Gain",
        "InstanceDemixer",
        "load_model",
    ],
    "agreement": ["Consensus", "consensus"],
    "probes": [
        "BalancedReadout",
        "Probe",
        "Probed",
        "ReadOut",
        "balanced_readout",
        "is_testable",
        "probe",
        "read_out",
    ],
    "scores": [
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
    ],
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_ROOM_OF)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(f"demix.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module 'demix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
