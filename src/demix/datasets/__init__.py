"""Data of the papers, photographs, pairs over finite sets, and views of images."""

from demix.datasets.annotations import ImageNetX, class_labels, imagenet_x, joined
from demix.datasets.image_files import ImageBatch, ImageFiles, open_images
from demix.datasets.masks import KittiMasks, kitti_masks
from demix.datasets.nearest import NearestPairs, Realised
from demix.datasets.simclr import SimCLRViews

__all__ = [
    "ImageBatch",
    "ImageFiles",
    "ImageNetX",
    "KittiMasks",
    "NearestPairs",
    "Realised",
    "SimCLRViews",
    "class_labels",
    "imagenet_x",
    "joined",
    "kitti_masks",
    "open_images",
]
