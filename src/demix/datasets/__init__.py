"""Data of the papers, images with known factors, pairs over finite sets, and views of images."""

from demix.datasets.dislib.columns import FactorColumn
from demix.datasets.dislib.download import fetch_dataset
from demix.datasets.dislib.factor_images import FactorImages
from demix.datasets.dislib.opening import open_factor_images
from demix.datasets.masks import KittiMasks, kitti_masks
from demix.datasets.nearest import NearestPairs, Realised
from demix.datasets.simclr import SimCLRViews

__all__ = [
    "FactorColumn",
    "FactorImages",
    "KittiMasks",
    "NearestPairs",
    "Realised",
    "SimCLRViews",
    "fetch_dataset",
    "kitti_masks",
    "open_factor_images",
]
