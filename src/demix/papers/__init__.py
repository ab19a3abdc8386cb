"""The two papers: their tables, data sets and scenes, and what runs them."""

from importlib import import_module
from typing import Any

_MODULES = {
    "datasets.annotations": ["ImageNetX", "imagenet_x"],
    "datasets.download": ["fetch_dataset"],
    "datasets.factor_images": ["FactorColumn", "FactorImages"],
    "datasets.opening": ["open_factor_images"],
    "datasets.image_files": ["ImageFiles", "open_images"],
    "datasets.masks": ["KittiMasks", "kitti_masks"],
    "datasets.rendered": ["NearestPairs"],
    "datasets.simclr": ["SimCLRViews"],
    "reizinger2024.balanced": ["BalancedReadout", "balanced_readout", "is_testable"],
    "reizinger2024.clusters": ["ClusterProcess", "Labelled", "cluster_vectors"],
    "reizinger2024.earlier_methods": ["GeneralizedContrastive", "TimeContrastive"],
    "reizinger2024.efficientnet": ["EfficientNetLite0", "load_efficientnet_lite0"],
    "reizinger2024.extraction": ["Features", "RandomProjection", "features"],
    "scenes.base": ["Scene"],
    "scenes.folder": ["Rendered", "open_rendered", "render_folder"],
    "scenes.order": ["Order"],
    "scenes.registry": ["render", "sample_latents", "scene_named"],
    "zimmermann2021.alignment": ["AlignmentUniformity", "AnchorInfoNCE"],
    "zimmermann2021.log_det": ["LogDet"],
    "zimmermann2021.videos": ["SlowVAE"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"demix.papers.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'demix.papers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
