"""Training: the recipe and the loop."""

from demix.training.chunks import Chunked
from demix.training.loop import Record, Sampler, Training, train
from demix.training.recipe import Recipe, paper_recipe

__all__ = ["Chunked", "Recipe", "Record", "Sampler", "Training", "paper_recipe", "train"]
