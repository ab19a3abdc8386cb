"""demix recovers the factors behind data and says how far they can be trusted.

A classifier that tells positives from negatives inverts the process that made the data.
"""

from importlib import import_module
from typing import Any

# Each public name and the room it comes from. Rooms are imported on first use, so that
# ``import demix`` and ``demix --help`` do not wait for torch.
_MODULES = {
    "_support.errors": ["DemixError", "DemixWarning"],
    "data.data": ["Data"],
    "data.factors": ["read_factors"],
    "data.reading": ["read_data"],
    "data.supervision": ["read_labels", "read_pairs", "read_time"],
    "diagnostics.checkup": ["checkup", "checkup_pairs"],
    "diagnostics.check": ["Checkup"],
    "diagnostics.consensus": ["consensus"],
    "diagnostics.consensus_result": ["Consensus"],
    "distributions.base": ["Conditional", "Marginal", "Uniform", "check_conditional"],
    "distributions.generalized_normal": ["GeneralizedNormal", "Laplace", "Normal"],
    "distributions.von_mises_fisher": ["VonMisesFisher"],
    "encoders.encoder": ["Encoder"],
    "encoders.files": ["load_encoder", "save_encoder"],
    "encoders.onnx": ["export_onnx"],
    "estimators.classification": ["ClassifierDemixer", "InstanceDemixer"],
    "estimators.contrastive": ["ContrastiveDemixer"],
    "estimators.gain": ["Gain"],
    "estimators.models": ["load_model"],
    "losses.classification": ["Classification", "InstanceDiscrimination"],
    "losses.contrast": ["contrast"],
    "losses.pairs": ["InfoNCE", "ShapedInfoNCE"],
    "metrics.probes.probe": ["probe"],
    "metrics.registry": ["all_scores"],
    "metrics.regression": ["affine_r2", "mean_correlation", "orthogonal_r2"],
    "metrics.score": ["Score"],
    "processes.process": ["LeakyMixing", "Mixing", "Pairs", "Process"],
    "spaces.base": ["Space", "check_space"],
    "spaces.kinds": ["Box", "L1Ball", "Product", "Real", "Sphere"],
    "training.loop": ["train"],
    "training.recipe": ["Recipe"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"demix.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'demix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
