"""Generating processes: latents, pairs, labels and the mixings that turn them into observations."""

from demix.processes.cluster_process import ClusterProcess, Labelled
from demix.processes.clusters import affine_generator_rank, cluster_vectors, diversity_rank
from demix.processes.mixing import LeakyMixing, Mixing
from demix.processes.more_mixings import CouplingMixing, SpiralMixing
from demix.processes.process import Pairs, Process

__all__ = [
    "ClusterProcess",
    "CouplingMixing",
    "Labelled",
    "LeakyMixing",
    "Mixing",
    "Pairs",
    "Process",
    "SpiralMixing",
    "affine_generator_rank",
    "cluster_vectors",
    "diversity_rank",
]
