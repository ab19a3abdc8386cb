"""Objectives: one streamed log-softmax and the losses made of it."""

from demix.objectives.asymptotics import alignment, uniformity
from demix.objectives.auxiliary import GeneralizedContrastive, TimeContrastive
from demix.objectives.classification import Classification, InstanceDiscrimination, Sampled
from demix.objectives.contrast import contrast
from demix.objectives.identification import (
    Identified,
    cross_entropy_identifies,
    optimum_error,
)
from demix.objectives.labels import check_classes
from demix.objectives.objective import AlignmentUniformity, InfoNCE, Objective, Supervised
from demix.objectives.optimum import asymptotic_loss, is_matched, latent_loss, optimum_limit
from demix.objectives.rows import RowObjective
from demix.objectives.shaped import ShapedInfoNCE
from demix.objectives.similarities import Kind
from demix.objectives.slow_vae import SlowVAE
from demix.objectives.streaming import kernel_name

__all__ = [
    "AlignmentUniformity",
    "Classification",
    "GeneralizedContrastive",
    "Identified",
    "InfoNCE",
    "InstanceDiscrimination",
    "Kind",
    "Objective",
    "RowObjective",
    "Sampled",
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
    "kernel_name",
    "latent_loss",
    "optimum_error",
    "optimum_limit",
    "uniformity",
]
