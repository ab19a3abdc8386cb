"""How large the benchmarks are run: in full, or just to see them work."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.series import DATA
from demix.losses.similarities import SimilarityName

SIMILARITIES: tuple[SimilarityName, ...] = ("dot", 1, 2, 3)


@dataclass(frozen=True)
class Sizes:
    """Sizes of every section.

    Attributes
    ----------
    name : str
        ``"full"`` or ``"quick"``; the bars are judged in full only.
    rounds : int
        How often everything is timed, in turn.
    dim : int
        Latents.
    batches : tuple of int
        Queries and keys of the losses.
    ladder, ladder_batches : tuple of int
        Latents and batches of the dot product beside other losses that spare memory.
    product_dim : int
        Latents from which on matrix products are the limit, where that bar is measured.
    weighed : tuple of SimilarityName
        Similarities whose memory is measured.
    power_batch, paper_batch, large_batch : int
        Where the bars of the L^p, of the dot product and of our memory are measured.
    matrix, half_matrix : int
        Sides of the matrices that find the machine's limit; bfloat16 is emulated on many
        processors, at a hundredth of the rate.
    scale : str
        Scale of the trainings to a score.
    seeds : tuple of int
        Their seeds.
    looks : int
        How often such a training is scored.
    samples : int
        Rows drawn from each sampler.
    scored : int
        Rows that are scored.
    followed : tuple of str
        The series that estimators are fitted to.
    series : int
        Rows that estimators are fitted to.
    iterations : int
        Steps of the peer.
    short_rounds, short_steps : int
        How often a default step is timed beside its parts, and how many of them at a time.
    fit_rounds : int
        How often a fit is timed alone and on a busy machine.
    swept, swept_steps : int
        Cells of a sweep, and how long each is trained.
    scaled_batches, scaled_latents, scaled_widths : tuple of int
        Along which the cost of a step is followed.
    ranks : tuple of int
        How many processes share a training.
    rank_batches : tuple of int
        The batches that they share; some of them with half of ``rank_batch`` for each.
    rank_batch : int
        Where their bars are measured.
    """

    name: str
    rounds: int
    dim: int
    batches: tuple[int, ...]
    ladder: tuple[int, ...]
    ladder_batches: tuple[int, ...]
    product_dim: int
    weighed: tuple[SimilarityName, ...]
    power_batch: int
    paper_batch: int
    large_batch: int
    matrix: int
    half_matrix: int
    scale: str
    seeds: tuple[int, ...]
    looks: int
    samples: int
    scored: int
    series: int
    followed: tuple[str, ...]
    iterations: int
    short_rounds: int
    short_steps: int
    fit_rounds: int
    swept: int
    swept_steps: int
    scaled_batches: tuple[int, ...]
    scaled_latents: tuple[int, ...]
    scaled_widths: tuple[int, ...]
    ranks: tuple[int, ...]
    rank_batches: tuple[int, ...]
    rank_batch: int


FULL = Sizes(
    name="full",
    rounds=4,
    dim=10,
    batches=(512, 1024, 4096, 6144, 16384),
    ladder=(2, 10, 32, 128, 512),
    ladder_batches=(1024, 4096, 6144),
    product_dim=128,
    weighed=SIMILARITIES,
    power_batch=4096,
    paper_batch=6144,
    large_batch=65_536,
    matrix=2048,
    half_matrix=512,
    scale="laptop",
    seeds=(0, 1, 2),
    looks=60,
    samples=16_384,
    scored=10_000,
    series=16_000,
    followed=tuple(DATA),
    iterations=5000,
    short_rounds=40,
    short_steps=20,
    fit_rounds=3,
    swept=12,
    swept_steps=300,
    scaled_batches=(256, 512, 1024, 2048, 4096, 8192),
    scaled_latents=(2, 5, 10, 20, 40),
    scaled_widths=(32, 64, 128, 256, 512),
    ranks=(1, 2, 4),
    rank_batches=(256, 1024, 2048, 4096, 8192, 16_384),
    rank_batch=8192,
)

QUICK = Sizes(
    name="quick",
    rounds=2,
    dim=3,
    batches=(64,),
    ladder=(2, 16),
    ladder_batches=(64,),
    product_dim=16,
    weighed=("dot",),
    power_batch=64,
    paper_batch=64,
    large_batch=256,
    matrix=128,
    half_matrix=64,
    scale="smoke",
    seeds=(0,),
    looks=6,
    samples=256,
    scored=500,
    series=300,
    followed=("walk on a sphere",),
    iterations=20,
    short_rounds=2,
    short_steps=2,
    fit_rounds=1,
    swept=2,
    swept_steps=2,
    scaled_batches=(32, 64, 128, 256),
    scaled_latents=(2, 3, 4, 5),
    scaled_widths=(8, 16, 32, 64),
    ranks=(1, 2),
    rank_batches=(32, 64, 128),
    rank_batch=64,
)
