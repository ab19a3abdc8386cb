"""Scenes rendered from known latents: 3DIdent and its relatives, made rather than downloaded."""

from demix.scenes.base import Scene
from demix.scenes.folder import render_folder
from demix.scenes.opening import Rendered, open_rendered
from demix.scenes.order import Order
from demix.scenes.pairs import positive_latents
from demix.scenes.preview import write_preview
from demix.scenes.registry import SCENES, render, sample_latents, scene_named

__all__ = [
    "SCENES",
    "Order",
    "Rendered",
    "Scene",
    "open_rendered",
    "positive_latents",
    "render",
    "render_folder",
    "sample_latents",
    "scene_named",
    "write_preview",
]
