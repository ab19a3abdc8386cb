"""Data of the papers, pairs over finite sets, and views of images."""

from demix.datasets.masks import KittiMasks, kitti_masks
from demix.datasets.nearest import NearestPairs, Realised
from demix.datasets.simclr import SimCLRViews

__all__ = ["KittiMasks", "NearestPairs", "Realised", "SimCLRViews", "kitti_masks"]
