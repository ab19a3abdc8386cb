"""What the loss does not see, what it survives, and how little memory it takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from command import Commands
from demix import contrast
from dense_objectives import SIMILARITIES, Case, assert_same, cases, dense_contrast, lawful, uniform

DISTANCES = [p for p in SIMILARITIES if p != "dot"]
seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds)
@lawful
def test_order_of_the_pairs_does_not_matter(case: Case, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    of_queries = torch.randperm(len(case.q), generator=generator)
    of_keys = torch.randperm(len(case.k), generator=generator)
    positives = case.options["positives"]
    if positives is None:
        positives = torch.arange(len(case.q))
    options = {**case.options, "positives": of_keys.argsort()[positives][of_queries]}
    moved = Case(case.q[of_queries], case.k[of_keys], options)
    value, gradients = case.value_and_gradients(contrast)
    moved_value, moved_gradients = moved.value_and_gradients(contrast)
    assert_same(moved_value, value, 1e-12)
    assert_same(moved_gradients[0], gradients[0][of_queries], 1e-12)
    assert_same(moved_gradients[1], gradients[1][of_keys], 1e-12)


@pytest.mark.parametrize("similarity", ["dot", 2])
@given(seed=seeds, width=st.integers(2, 5))
@lawful
def test_rotations_do_not_matter_to_the_dot_product_and_to_p_2(
    similarity: object, seed: int, width: int
) -> None:
    q, k = uniform(seed, 8, width), uniform(seed + 1, 10, width)
    rotation = torch.from_numpy(ortho_group.rvs(width, random_state=np.random.default_rng(seed)))
    turned = contrast(q @ rotation, k @ rotation, similarity=similarity)
    assert_same(turned, contrast(q, k, similarity=similarity), 1e-12)


@pytest.mark.parametrize("similarity", [1, 1.5, 3, 4.2])
def test_rotations_matter_to_every_other_p(similarity: float) -> None:
    q, k = uniform(0, 8, 2), uniform(1, 8, 2)
    rotation = torch.tensor([[1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64) / 2**0.5
    turned = contrast(q @ rotation, k @ rotation, similarity=similarity)
    assert abs(turned - contrast(q, k, similarity=similarity)) > 1e-3


@given(seed=seeds, similarity=st.sampled_from(DISTANCES), distance=st.floats(-1e3, 1e3))
@lawful
def test_shifts_permutations_and_signs_do_not_matter_to_any_p(
    seed: int, similarity: float, distance: float
) -> None:
    q, k = uniform(seed, 8, 3), uniform(seed + 1, 10, 3)
    expected = contrast(q, k, similarity=similarity)
    assert_same(contrast(q + distance, k + distance, similarity=similarity), expected, 1e-9)
    flip = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    flipped = contrast(q[:, [2, 0, 1]] * flip, k[:, [2, 0, 1]] * flip, similarity=similarity)
    assert_same(flipped, expected, 1e-12)


def test_shifts_matter_to_the_dot_product() -> None:
    q, k = uniform(0, 8, 3), uniform(1, 8, 3)
    assert abs(contrast(q, k + 1) - contrast(q, k)) < 1e-12  # a constant for each query ...
    assert abs(contrast(q + 1, k) - contrast(q, k)) > 1e-3  # ... but not for each key


@given(seed=seeds, similarity=st.sampled_from(SIMILARITIES), temperature=st.floats(0.1, 10))
@lawful
def test_scaling_the_representation_is_changing_the_temperature(
    seed: int, similarity: object, temperature: float
) -> None:
    q, k = uniform(seed, 8, 3), uniform(seed + 1, 8, 3)
    scale = temperature ** (-1 / (2 if similarity == "dot" else similarity))
    scaled = contrast(scale * q, scale * k, similarity=similarity)
    assert_same(contrast(q, k, similarity=similarity, temperature=temperature), scaled, 1e-12)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e4, 1e7])
def test_extreme_similarities_give_a_finite_loss_and_gradient(
    similarity: object,
    dtype: torch.dtype,
    two_sided: bool,
    scale: float,
) -> None:
    options = {
        "similarity": similarity,
        "temperature": torch.tensor(1.0, dtype=dtype),
        "two_sided": two_sided,
    }
    case = Case(
        scale * uniform(0, 9, 3, dtype=dtype), scale * uniform(1, 9, 3, dtype=dtype), options
    )
    value, gradients = case.value_and_gradients(contrast)
    assert value.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_perfect_classifier_has_no_loss_and_a_blind_one_log_k(similarity: object) -> None:
    eye = torch.eye(5)
    assert contrast(eye, eye, similarity=similarity, temperature=1e-3) == 0
    blind = contrast(torch.zeros(5, 2), torch.zeros(7, 2), similarity=similarity)
    assert float(blind) == pytest.approx(np.log(7), rel=1e-6)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(similarity: object, dtype: torch.dtype) -> None:
    q, k = uniform(0, 9, 3).to(dtype).requires_grad_(), uniform(1, 9, 3).to(dtype)
    loss = contrast(q, k, similarity=similarity, two_sided=True)
    loss.backward()
    assert loss.dtype == torch.float32
    assert q.grad is not None
    assert q.grad.dtype == dtype
    exact = dense_contrast(q.detach().double(), k.double(), similarity=similarity, two_sided=True)
    assert_same(loss.detach(), exact, 1e-5)


PEAK = """
import sys
from pathlib import Path
import torch
from demix import contrast

def peak():
    # Unlike ru_maxrss, which a process inherits from its parent, this is of this program alone.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

def step(size):
    q, k = (torch.rand(size, 10, requires_grad=True) for _ in range(2))
    contrast(q, k, two_sided=True).backward()

torch.set_num_threads(1)
step(100)
before = peak()
step(20_000)
print(peak() - before)
"""


def test_memory_is_that_of_a_tile_not_of_all_pairs(demix: Commands) -> None:
    run = demix.run_python(PEAK)
    assert run.returncode == 0, run.stderr
    # The 20 000 x 20 000 matrix alone would take 1600 MB.
    assert float(run.stdout) < 200


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("backward_inside", [False, True])
def test_autocast_around_the_loss_changes_nothing(
    similarity: object, backward_inside: bool
) -> None:
    def gradient(half: bool, half_backward: bool) -> tuple[torch.Tensor, torch.Tensor]:
        q = (3 * uniform(0, 30, 8, dtype=torch.float32)).requires_grad_()
        k = 3 * uniform(1, 30, 8, dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = contrast(q, k, similarity=similarity)
        with torch.autocast("cpu", torch.bfloat16, enabled=half_backward):
            return loss.detach(), torch.autograd.grad(loss, q)[0]

    for found, exact in zip(gradient(True, backward_inside), gradient(False, False), strict=True):
        assert torch.equal(found, exact)
