"""Ranks: the processes of `torch.distributed` that work on one batch together."""
