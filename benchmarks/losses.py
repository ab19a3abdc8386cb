"""`contrast` beside its dense definition and beside the losses of other packages."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.dense import dense_bytes, dense_contrast
from benchmarks.memory import extra_memory
from benchmarks.sizes import SIMILARITIES, Sizes
from benchmarks.step import steps_of
from benchmarks.timing import Say, interleaved, medians, ratios, under
from demix._support.errors import DemixError
from demix._support.memory import available_memory
from demix.distributions.base import Uniform
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.estimators.fitting import default_recipe
from demix.losses.contrast import contrast
from demix.losses.pairs import InfoNCE, PotentialInfoNCE
from demix.losses.similarities import SimilarityName
from demix.processes.process import LeakyMixing, Process
from demix.spaces.kinds import Sphere

PEER = "NTXentLoss"
# Both know one side of the dot product: torch's own in chunks, and what Apple's compiles on a CPU.
CHUNKED, CUT = "linear_cross_entropy", "cut-cross-entropy"
# Matrix products: the similarities, forward and again backward, and both gradients.
_PRODUCTS = 4
_STEPS = 10
# How many arrays of every positive with every negative are alive at the peak of the peer,
# measured with `extra_memory` and rounded up.
_PEER_ARRAYS = 5
# What a page of memory holds: less than that cannot be measured.
_PAGE = 4096


def measure_losses(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time forward and backward of each loss, and weigh its peak extra memory.

    Returns
    -------
    dict
        ``entries``, one for each similarity and batch, with ``seconds``, ``speedup``, ``bytes``
        and ``saving`` of each form and ``left_out`` with a reason for those that could not run;
        ``large``, our memory at the large batch; ``ladder``, one for each number of latents and
        batch, which adds both sides and our share of the rate of large matrix products; and
        ``potential``, the seconds of a step without it and with it, and what it ``added``.
    """
    ladder = [
        _rung(dim, batch, sizes, say) for dim in sizes.ladder for batch in sizes.ladder_batches
    ]
    entries = [
        _entry(similarity, batch, sizes, say)
        for similarity in SIMILARITIES
        for batch in sizes.batches
    ]
    large = []
    for similarity in sizes.weighed:
        say(f"memory of {label(similarity)}, B = {sizes.large_batch}")
        weight = _weigh("demix", similarity, sizes.large_batch, sizes.dim)
        large.append({"title": label(similarity), "batch": sizes.large_batch, "bytes": weight})
    found = {"dim": sizes.dim, "entries": entries, "large": large}
    return found | {"ladder": ladder, "potential": _potential(sizes, say)}


def _rung(dim: int, batch: int, sizes: Sizes, say: Say) -> dict[str, Any]:
    left_out = _left_out("dot", batch, dim)
    try:
        import_module("cut_cross_entropy.torch_compile")
    except ImportError as error:  # it also needs triton, even where nothing runs on a GPU
        left_out[CUT] = f"cannot be imported: {error}"
    forms = [form for form in ("demix", "dense", CHUNKED, CUT) if form not in left_out]
    calls: dict[str, Callable[[], object]] = {
        form: forward_backward(form, "dot", batch, dim) for form in forms
    }
    both = {"demix": "demix, two-sided", "dense": "dense, two-sided"}
    for form in [form for form in both if form in forms]:
        calls[both[form]] = forward_backward(form, "dot", batch, dim, two_sided=True)
    a, b = torch.randn(2, sizes.matrix, sizes.matrix)
    calls["product"] = lambda: torch.mm(a, b)
    _check_equal(forms, "dot", batch, dim)
    times = interleaved(calls, sizes.rounds, under(f"d = {dim}, B = {batch}", say))
    speedup = ratios(times, "demix")
    speedup |= (
        {both["dense"]: ratios(times, both["demix"])[both["dense"]]}
        if both["dense"] in times
        else {}
    )
    of_product = _PRODUCTS * batch**2 * dim / sizes.matrix**3
    pairs = zip(times["product"], times["demix"], strict=True)
    return {
        "dim": dim,
        "batch": batch,
        "seconds": medians(times),
        "speedup": {
            form: speedup[form]
            for form in ("dense", both["dense"], CHUNKED, CUT)
            if form in speedup
        },
        "share": median(of_product * product / ours for product, ours in pairs),
        "left_out": {form: left_out[form] for form in ("dense", CUT) if form in left_out},
    }


def _potential(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Time a step of the objective of `ContrastiveDemixer` with and without its potential."""
    sphere, recipe = Sphere(sizes.dim), default_recipe(2**20)
    mixing = LeakyMixing(sizes.dim, seed=0, draws=100)
    process = Process(Uniform(sphere), VonMisesFisher(sphere, 10.0), mixing)
    objectives = {"plain": InfoNCE(), "potential": PotentialInfoNCE(sizes.dim)}
    calls = {
        name: steps_of(Encoder(sizes.dim, sphere), process, objective, recipe, _STEPS)
        for name, objective in objectives.items()
    }
    times = interleaved(calls, sizes.rounds, under("a step with a potential", say))
    seconds = {name: spent / _STEPS for name, spent in medians(times).items()}
    return {
        "batch": recipe.batch,
        "seconds": seconds,
        "added": ratios(times, "plain")["potential"] - 1,
    }


def _entry(similarity: SimilarityName, batch: int, sizes: Sizes, say: Say) -> dict[str, Any]:
    left_out = _left_out(similarity, batch, sizes.dim)
    forms = [form for form in ("demix", "dense", PEER) if form not in left_out]
    word = label(similarity)
    title = f"{word}, B = {batch}"
    calls = {form: forward_backward(form, similarity, batch, sizes.dim) for form in forms}
    _check_equal(forms, similarity, batch, sizes.dim)
    times = interleaved(calls, sizes.rounds, under(title, say))
    entry: dict[str, Any] = {
        "similarity": similarity,
        "title": word,
        "batch": batch,
        "seconds": medians(times),
        "speedup": ratios(times, "demix"),
        "left_out": left_out,
    }
    if similarity in sizes.weighed:
        weights = {}
        for form in forms:
            say(f"{title}: memory of {form}")
            weights[form] = _weigh(form, similarity, batch, sizes.dim)
        entry["bytes"] = weights
        entry["saving"] = {
            form: weight / max(weights["demix"], _PAGE)
            for form, weight in weights.items()
            if form != "demix"
        }
    return entry


def label(similarity: SimilarityName) -> str:
    """Write a similarity in a word."""
    powers = {1: "L1", 2: "L2²", 3: "L3³"}
    return "dot product" if similarity == "dot" else powers[int(similarity)]


def peer_bytes(batch: int) -> int:
    """Return about how much memory the peer needs: it lays all negatives beside every positive."""
    return 4 * _PEER_ARRAYS * batch**2 * (batch - 1)


def _left_out(similarity: SimilarityName, batch: int, dim: int) -> dict[str, str]:
    """Name the forms that cannot run here, with the reason."""
    reasons = {}
    room = available_memory() // 2
    needs = {"dense": dense_bytes(batch, dim, similarity), PEER: peer_bytes(batch)}
    for form, need in needs.items():
        if need > room:
            reasons[form] = (
                f"needs about {need / 2**30:.0f} GiB, more than half of the memory available"
            )
    if similarity != "dot":
        reasons[PEER] = "is defined for the dot product"
    if find_spec("pytorch_metric_learning") is None:
        reasons[PEER] = "pytorch-metric-learning is not installed"
    return reasons


def forward_backward(
    form: str, similarity: SimilarityName, batch: int, dim: int, *, two_sided: bool = False
) -> Callable[[], float]:
    """Return a call that takes a loss and its gradients on fixed pairs of unit vectors.

    Parameters
    ----------
    form : str
        ``"demix"``, ``"dense"``, ``"NTXentLoss"``, ``"linear_cross_entropy"`` or
        ``"cut-cross-entropy"``.
    similarity : "dot" or float
        As in :func:`demix.contrast`.
    batch, dim : int
        Shape of queries and keys.
    two_sided : bool
        As in :func:`demix.contrast`; the first two forms only.

    Examples
    --------
    >>> from benchmarks.losses import forward_backward
    >>> ours, dense = (forward_backward(form, 1, batch=32, dim=3) for form in ("demix", "dense"))
    >>> abs(ours() - dense()) < 1e-5
    True
    """
    generator = torch.Generator().manual_seed(0)
    queries = functional.normalize(torch.randn(batch, dim, generator=generator), dim=1)
    keys = functional.normalize(queries + torch.randn(batch, dim, generator=generator) / 4, dim=1)
    inputs = [queries.requires_grad_(), keys.requires_grad_()]
    loss = _loss(form, similarity, two_sided)

    def call() -> float:
        value = loss(*inputs)
        torch.autograd.grad(value, inputs)
        return value.item()

    return call


def _loss(
    form: str, similarity: SimilarityName, two_sided: bool
) -> Callable[[Tensor, Tensor], Tensor]:
    if form == "demix":
        return lambda q, k: contrast(q, k, similarity=similarity, two_sided=two_sided)
    if form == "dense":
        return lambda q, k: dense_contrast(q, k, similarity, two_sided=two_sided)
    # Keys are the weights, and each query's class is its own key.
    if form == CHUNKED:
        options = torch.nn.LinearCrossEntropyOptions()
        return lambda q, k: functional.linear_cross_entropy(
            q, k, torch.arange(len(q)), options=options
        )
    if form == CUT:
        cut = import_module("cut_cross_entropy.torch_compile").torch_compile_linear_cross_entropy
        return lambda q, k: cut(q, k, torch.arange(len(q)))
    from pytorch_metric_learning.distances import DotProductSimilarity
    from pytorch_metric_learning.losses import NTXentLoss

    # With a label for each pair, its key is the one positive and all other keys are negatives. The
    # labels of the keys must be another tensor, else the peer leaves its diagonal out.
    peer = NTXentLoss(temperature=1.0, distance=DotProductSimilarity(normalize_embeddings=False))

    def loss(q: Tensor, k: Tensor) -> Tensor:
        labels = torch.arange(len(q))
        value: Tensor = peer(q, labels, ref_emb=k, ref_labels=labels.clone())
        return value

    return loss


def _check_equal(forms: list[str], similarity: SimilarityName, batch: int, dim: int) -> None:
    """Refuse to compare the times of forms that compute different things."""
    small = min(batch, 256)
    values = {form: forward_backward(form, similarity, small, dim)() for form in forms}
    for form, value in values.items():
        if abs(value - values["demix"]) > 1e-4:
            raise DemixError(
                f"{form} must equal contrast within 1e-4 to be compared, but they are {value} "
                f"and {values['demix']} for {label(similarity)}; use the locked versions."
            )


def _weigh(form: str, similarity: SimilarityName, batch: int, dim: int) -> int:
    shape = {"form": form, "similarity": similarity, "dim": dim}
    return extra_memory(forward_backward, shape | {"batch": batch}, shape | {"batch": 16})
