"""The scikit-learn face: estimators that recover latents from a user's data."""

from demix.estimators.base import Demixer
from demix.estimators.classifier import ClassifierDemixer
from demix.estimators.contrastive import ContrastiveDemixer
from demix.estimators.encoding import encode, encoded
from demix.estimators.gain import Gain, held_out_gain
from demix.estimators.instance import InstanceDemixer
from demix.estimators.models import load_model

__all__ = [
    "ClassifierDemixer",
    "ContrastiveDemixer",
    "Demixer",
    "Gain",
    "InstanceDemixer",
    "encode",
    "encoded",
    "held_out_gain",
    "load_model",
]
