"""Data of the papers, pairs over finite sets, and views of images."""

from demix.datasets.masks import KittiMasks, kitti_masks

__all__ = ["KittiMasks", "kitti_masks"]
