"""How much memory a training takes, checked before it starts, and how to take less."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recomputed

from demix._support.errors import DemixError
from demix._support.memory import check_memory
from demix.encoders.encoder import Encoder
from demix.training.recipe import Recipe

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_FLOAT = 4
_ROWS = 2  # of a forward pass that is measured; norms over the batch need more than one


class Chunked(nn.Module):
    r"""An encoder that keeps the activations of no more than ``size`` rows; a pair has two.

    Once :math:`\partial L / \partial z_i` of all latents is known, :math:`dL / d\theta` is a sum
    over rows. So rows are encoded chunk by chunk without a graph, contrasted all together, and
    encoded again in the backward pass: the gradients of the whole batch, for a second pass forward.
    Any module will do that takes each row by itself.

    References
    ----------
    Gao et al. (2021), Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup;
    Chen et al. (2016), Training Deep Nets with Sublinear Memory Cost.
    """

    def __init__(self, encoder: Encoder | nn.Module, size: int) -> None:
        super().__init__()
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise DemixError(f"A chunk must have a whole number of rows >= 1, but got {size!r}.")
        if any(isinstance(layer, BATCH_NORMS) for layer in encoder.modules()):
            raise DemixError(
                "Chunks need an encoder that takes each row by itself, but this one normalises "
                "over the batch; build it with batch_norm=False, or leave the chunks out."
            )
        self.encoder, self.size = encoder, size

    def forward(self, x: Tensor) -> Tensor:
        """Take observations ``(N, ...)`` to latents ``(N, n)``."""
        chunks = x.split(self.size)
        if not torch.is_grad_enabled():
            return torch.cat([self.encoder(chunk) for chunk in chunks])
        # Non-reentrant: gradients reach the encoder's parameters although no input asks for one.
        return torch.cat([recomputed(self.encoder, chunk, use_reentrant=False) for chunk in chunks])


def check_training_memory(
    encoder: Encoder, objective: Any, recipe: Recipe, *, checkpoint: bool, extra: float = 0.0
) -> None:
    """Raise an error if a training, and ``extra`` other bytes, will not fit into memory."""
    if next(encoder.parameters()).device.type == "cpu":
        check_memory(
            training_bytes(encoder, objective, recipe, checkpoint=checkpoint) + extra,
            f"Training with a batch of {recipe.batch}",
            "take a smaller batch, chunks of it (Recipe(chunk=...)), or a machine with more",
        )


def training_bytes(
    encoder: Encoder, objective: Any, recipe: Recipe, *, checkpoint: bool = False
) -> int:
    """Return roughly how many bytes a training takes in addition to the weights."""
    # Activations are kept for the rows of a chunk, with gradients of them; rows are drawn, moved
    # and whitened. The contrast takes a tile, which is small.
    weights = sum(p.numel() for p in [*encoder.parameters(), *objective.parameters()])
    copies = 4 + (8 if checkpoint else 0)  # a gradient, two moments, the best; all that in a file
    rows = 2 * recipe.batch
    kept = rows if recipe.chunk is None else min(rows, recipe.chunk)
    inputs = math.prod(encoder.shape)
    return _FLOAT * (copies * weights + 2 * kept * sum(layer_sizes(encoder)) + 3 * rows * inputs)


def encoding_bytes(encoder: Encoder, rows: int) -> int:
    """Return roughly how many bytes it takes to encode so many rows without gradients."""
    largest = max([math.prod(encoder.shape), *layer_sizes(encoder)])
    return _FLOAT * 3 * rows * largest


def layer_sizes(encoder: Encoder) -> list[int]:
    """Return how many numbers each layer makes of one row, seen in a pass with two of them."""
    sizes: list[int] = []

    def note(module: nn.Module, given: Any, made: Any) -> None:
        if isinstance(made, Tensor):
            sizes.append(made.numel() // _ROWS)

    leaves = [module for module in encoder.modules() if not any(module.children())]
    hooks = [module.register_forward_hook(note) for module in leaves]
    device, training = next(encoder.parameters()).device, encoder.training
    encoder.eval()  # normalisation over the batch must not learn, nor dropout draw
    try:
        with torch.no_grad():
            encoder(torch.zeros(_ROWS, *encoder.shape, device=device))
    finally:
        encoder.train(training)
        for hook in hooks:
            hook.remove()
    return sizes
