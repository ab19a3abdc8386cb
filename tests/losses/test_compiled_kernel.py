"""The compiled kernel gives the numbers of the plain tiles, and tiles serve where it is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from command import Commands
from demix._support.kernel import build
from demix.losses import compiled, tiles
from demix.losses.contrast import contrast
from demix.losses.similarities import PairBlock, similarity_named
from dense_objectives import SIMILARITIES, assert_same, uniform

COMPILED = [s for s in SIMILARITIES if similarity_named(s).compiled_as is not None]
needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C compiler")


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def both(q: Tensor, k: Tensor, similarity: object, skip: Tensor | None) -> list[list[Tensor]]:
    """Return rows, columns and both gradients from the kernel and from the tiles."""
    block = PairBlock(q, k, similarity_named(similarity), skip)
    weights = uniform(7, len(q)).to(q.dtype), uniform(8, len(k)).to(q.dtype)
    results = []
    for engine in (compiled, tiles):
        rows, columns = engine.logsumexp(block, True)
        pulls = engine.gradient(block, (rows, weights[0]), (columns, weights[1]))
        results.append([rows, columns, *pulls])
    return results


@needs_compiler
@pytest.mark.parametrize("similarity", COMPILED)
@pytest.mark.parametrize("skip", ["nothing", "one each", "some"])
@pytest.mark.parametrize("shape", [(2, 5, 1), (300, 517, 10), (517, 300, 3), (1021, 1021, 17)])
def test_kernel_equals_tiles(
    similarity: object, skip: str, shape: tuple[int, int, int], threads: int
) -> None:
    n, m, d = shape
    q, k = uniform(0, n, d), uniform(1, m, d)
    left_out = None if skip == "nothing" else torch.arange(n) * 3 % m
    if skip == "some" and left_out is not None:
        left_out[::2] = -1
    for found, expected in zip(*both(q, k, similarity, left_out), strict=True):
        assert_same(found, expected, 1e-10)


# Around the coordinates from which on it multiplies matrices, and around the sizes of its tiles.
@needs_compiler
@pytest.mark.parametrize("shape", [(97, 193, 15), (96, 192, 16), (2, 700, 300), (700, 1, 40)])
@pytest.mark.parametrize("skip", [False, True])
def test_kernel_equals_tiles_in_many_dimensions(
    shape: tuple[int, int, int], skip: bool, threads: int
) -> None:
    n, m, d = shape
    q, k = uniform(0, n, d), uniform(1, m, d)
    left_out = torch.arange(n) * 3 % m if skip and m > 1 else None
    for found, expected in zip(*both(q, k, "dot", left_out), strict=True):
        assert_same(found, expected, 1e-10)


@needs_compiler
@pytest.mark.parametrize("similarity", COMPILED)
@pytest.mark.parametrize("dim", [10, 130])
def test_float32_kernel_is_within_1e_5_of_float64_tiles(similarity: object, dim: int) -> None:
    q, k = uniform(0, 700, dim) / dim**0.5, uniform(1, 900, dim) / dim**0.5
    narrow, _ = both(q.float(), k.float(), similarity, None)
    _, wide = both(q.float().double(), k.float().double(), similarity, None)
    for found, expected in zip(narrow, wide, strict=True):
        assert_same(found, expected, 1e-5)


@needs_compiler
@pytest.mark.parametrize("similarity", COMPILED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [3, 20])
def test_far_away_keys_and_queries_keep_their_sums(
    similarity: object, dtype: torch.dtype, dim: int
) -> None:
    q, k = uniform(0, 50, dim).to(dtype), uniform(1, 60, dim).to(dtype)
    q[7], k[11] = 40.0, -30.0  # e^-60 and less from all others
    for found, expected in zip(*both(q, k, similarity, None), strict=True):
        assert_same(found, expected, 1e-5 if dtype is torch.float32 else 1e-10)


@needs_compiler
@pytest.mark.parametrize("similarity", COMPILED)
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize("dim", [3, 20])
def test_broken_numbers_do_not_vanish(similarity: object, broken: float, dim: int) -> None:
    q, k = uniform(0, 40, dim).float(), uniform(1, 40, dim).float()
    q[5, 1] = broken
    assert not contrast(q, k, similarity=similarity, two_sided=True).isfinite()


@needs_compiler
@pytest.mark.parametrize(("similarity", "dim"), [(1, 10), ("dot", 40)])
def test_a_repeated_call_gives_the_same_bits(similarity: object, dim: int, threads: int) -> None:
    q, k = uniform(0, 999, dim).float(), uniform(1, 999, dim).float()
    first, second = (both(q, k, similarity, None)[0] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@needs_compiler
def test_rows_that_are_not_contiguous_are_read_right() -> None:
    q, k = uniform(0, 3, 40).T, uniform(1, 50, 6)[:, ::2]
    for found, expected in zip(*both(q, k, 3, None), strict=True):
        assert_same(found, expected, 1e-10)


_TOLD = """
import json, os, sys
import torch
from demix import contrast
from demix._support.kernel.build import library
os.environ.update(json.loads(sys.argv[1]))
torch.manual_seed(0)
q = torch.randn(300, 10, dtype=torch.float64, requires_grad=True)
loss = contrast(q, q.detach().roll(1, 0), similarity=1, two_sided=True)
loss.backward()
print(library() is not None, loss.item(), q.grad.abs().sum().item())
"""


def told(demix: Commands, **environment: object) -> list[str]:
    """Return what a fresh process says: compiled or not, a loss, the size of its gradient."""
    run = demix.run_python(_TOLD, json.dumps(environment, default=str))
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.split()


@needs_compiler
def test_the_library_is_made_once_and_again_when_torn_and_tiles_serve_without_it(
    demix: Commands, tmp_path: Path
) -> None:
    is_compiled, *numbers = told(demix)
    assert is_compiled == "True"
    # A real compiler that leaves out the seconds of making the kernel fast.
    slow_code = tmp_path / "cc"
    slow_code.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n')
    slow_code.chmod(0o755)
    cache = tmp_path / "cache"

    def made_here() -> Path:
        found, *other = told(demix, CC=slow_code, XDG_CACHE_HOME=cache)
        assert found == "True"
        assert list(map(float, other)) == pytest.approx(list(map(float, numbers)), rel=1e-12)
        (kept,) = (cache / "demix").iterdir()
        return kept

    kept = made_here()
    made = kept.stat().st_mtime_ns
    assert made_here().stat().st_mtime_ns == made
    kept.write_bytes(kept.read_bytes()[:1000])
    assert made_here().stat().st_size > 1000

    for compiler in ("no-such-compiler", "false"):
        missing, *plain = told(demix, CC=compiler, XDG_CACHE_HOME=tmp_path / compiler)
        assert missing == "False"
        assert list(map(float, plain)) == pytest.approx(list(map(float, numbers)), rel=1e-12)
