"""Process groups: the ranks of `torch.distributed` that work on one batch together."""
