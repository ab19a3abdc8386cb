"""The gradients of one large batch in the memory of a small one."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Chunked(nn.Module):
    r"""An encoder that keeps the activations of no more than ``size`` rows; a pair has two.

    Contrastive losses need all latents :math:`z_i = f_\theta(x_i)` of a batch at once, but not all
    that is between :math:`x_i` and :math:`z_i`, because

    .. math:: \frac{dL}{d\theta} = \sum_i \frac{\partial L}{\partial z_i}
              \frac{\partial z_i}{\partial \theta}

    is a sum over rows once :math:`\partial L / \partial z_i` is known. So rows are encoded chunk by
    chunk without a graph, contrasted all together, and encoded again, chunk by chunk, in the
    backward pass. Gradients are those of the whole batch; the price is a second pass forward.
    ``Recipe(chunk=...)`` uses it in :func:`demix.train`. Any module will do that takes each row by
    itself; a dropout draws its random numbers again as they were.

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
        return torch.cat([checkpoint(self.encoder, chunk, use_reentrant=False) for chunk in chunks])
