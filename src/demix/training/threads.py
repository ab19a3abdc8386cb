"""How many threads a step of training is worth."""

import torch
from torch import nn

from demix.encoders.encoder import Encoder

# Multiplications of a forward pass for which a thread is worth waking: some milliseconds of a step.
# In less, threads wait for each other longer than they work as soon as the machine does other
# things, too.
_SHARE = 2**26


def step_threads(encoder: Encoder, batch: int) -> int:
    """Return how many of torch's threads shall share a step with so many pairs."""
    threads = torch.get_num_threads()
    if any(isinstance(layer, nn.Conv2d) for layer in encoder.modules()):
        return threads
    weights = sum(matrix.numel() for matrix in encoder.state_dict().values() if matrix.ndim == 2)
    return max(1, min(threads, 2 * batch * weights // _SHARE))
