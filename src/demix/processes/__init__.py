"""Generating processes: latents, pairs and the mixings that turn them into observations."""

from demix.processes.mixing import LeakyMixing, Mixing
from demix.processes.more_mixings import CouplingMixing, SpiralMixing
from demix.processes.process import Pairs, Process

__all__ = ["CouplingMixing", "LeakyMixing", "Mixing", "Pairs", "Process", "SpiralMixing"]
