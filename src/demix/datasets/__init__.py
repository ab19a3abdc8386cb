"""Data of the papers, photographs, images with known factors, pairs, and views of images."""

from demix.datasets.annotations import ImageNetX, class_labels, imagenet_x
from demix.datasets.dislib.columns import FactorColumn
from demix.datasets.dislib.download import fetch_dataset
from demix.datasets.dislib.factor_images import FactorImages
from demix.datasets.dislib.opening import open_factor_images
from demix.datasets.image_files import ImageBatch, ImageFiles, open_images
from demix.datasets.masks import KittiMasks, kitti_masks
from demix.datasets.nearest import NearestPairs, Realised
from demix.datasets.simclr import SimCLRViews

__all__ = [
    "FactorColumn",
    "FactorImages",
    "ImageBatch",
    "ImageFiles",
    "ImageNetX",
    "KittiMasks",
    "NearestPairs",
    "Realised",
    "SimCLRViews",
    "class_labels",
    "fetch_dataset",
    "imagenet_x",
    "kitti_masks",
    "open_factor_images",
    "open_images",
]
