"""What demix is measured in: the dense loss, operations, exponents, bars."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.bars import judge
from benchmarks.convergence import first_reaching
from benchmarks.dense import dense_contrast
from benchmarks.losses import forward_backward, peer_bytes
from benchmarks.scaling import exponent
from benchmarks.sizes import SIMILARITIES
from benchmarks.step import matmul_flops
from demix import Sphere, contrast
from demix.papers.runner.original import paper_encoder


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_the_dense_definition_equals_contrast(similarity):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(40, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    inputs = [q.requires_grad_(), k.requires_grad_()]
    dense = dense_contrast(q, k, similarity)
    ours = contrast(q, k, similarity=similarity)
    assert abs((dense - ours).item()) < 1e-10
    pairs = zip(torch.autograd.grad(dense, inputs), torch.autograd.grad(ours, inputs), strict=True)
    for expected, found in pairs:
        assert float((expected - found).abs().max()) < 1e-10


@pytest.mark.parametrize(
    ("form", "package"),
    [
        ("NTXentLoss", "pytorch_metric_learning"),
        ("linear_cross_entropy", "torch"),
        ("cut-cross-entropy", "cut_cross_entropy"),
    ],
)
def test_a_peer_computes_the_same_number(form, package):
    pytest.importorskip(package)
    ours = forward_backward("demix", "dot", batch=32, dim=4)()
    peer = forward_backward(form, "dot", batch=32, dim=4)()
    assert abs(ours - peer) < 1e-4


def test_operations_are_those_that_torch_counts():
    body = paper_encoder(3, Sphere(3)).body
    with FlopCounterMode(display=False) as counter:
        body(torch.randn(16, 3)).sum().backward()
    widths = [3, 30, 150, 150, 150, 150, 30, 3]
    assert matmul_flops(widths, 16) == counter.get_total_flops()


@pytest.mark.parametrize("power", [0.0, 1.0, 1.7, 2.0])
def test_exponents_of_power_laws_are_recovered(power):
    values = [2.0, 4.0, 8.0, 16.0, 32.0]
    assert abs(exponent(values, [3 * value**power for value in values]) - power) < 1e-12


def test_exponents_look_at_the_upper_half_only():
    assert abs(exponent([1, 2, 4, 8, 16, 32], [7, 7, 7, 64, 256, 1024]) - 2) < 1e-12


def test_a_score_is_reached_at_the_first_look_that_has_it():
    looks = [{"step": step, "score": score} for step, score in enumerate([50.0, 99.2, 98.0, 99.5])]
    assert first_reaching(looks, 99.0)["step"] == 1
    assert first_reaching(looks, 99.9) is None


SIZES = SimpleNamespace(
    name="full", paper_batch=6144, power_batch=4096, large_batch=65_536, product_dim=128
)
EMPTY = {"speedup": {}, "saving": {}, "left_out": {}}
SECTIONS = {
    "contrast": {
        "entries": [
            {"similarity": "dot", "title": "dot product", "batch": 6144}
            | {"speedup": {"dense": 9.0}, "left_out": {}},
            {"similarity": "dot", "title": "dot product", "batch": 512}
            | {"speedup": {"NTXentLoss": 30.0}, "saving": {"NTXentLoss": 10.0}, "left_out": {}},
            {"similarity": "dot", "title": "dot product", "batch": 4096}
            | EMPTY
            | {"left_out": {"NTXentLoss": "needs 1000 GiB"}},
            {"similarity": 1, "title": "L1", "batch": 4096}
            | {"speedup": {"dense": 19.0}, "left_out": {}},
            {"similarity": 3, "title": "L3³", "batch": 4096}
            | EMPTY
            | {"left_out": {"dense": "needs 1000 GiB"}},
        ],
        "large": [{"bytes": 2**20}, {"bytes": 127 * 2**20}],
        "ladder": [
            {"dim": 128, "batch": 4096, "speedup": {"dense": 2.6}, "share": 0.5, "left_out": {}},
            {"dim": 512, "batch": 1024, "speedup": {"cut-cross-entropy": 0.9}},
        ],
        "potential": {"added": 0.2},
    },
    "convergence": {
        "entries": [
            {"experiment": "e", "row": 1, "score": "r2", "target": 99.0, "paper": False}
            | {"seconds": 1.0, "dense_steps": 30.0},
            {"experiment": "e", "row": 1, "score": "r2", "target": 99.9, "paper": True}
            | {"seconds": None, "dense_steps": None},
        ]
    },
    "step": {
        "batch": 6144,
        "entries": [{"experiment": "clica-table1", "row": 2, "share_of_peak": 0.61}],
    },
    "everyday": {"share": 1.1, "fit": {"slower": 3.1}},
    "sweep": {"cells": 12, "workers": 2, "share": 0.61},
}


def test_bars_are_judged_by_what_was_measured():
    bars = judge(SECTIONS, SIZES)
    verdicts = [(bar["measured"], bar["met"]) for bar in bars]
    assert verdicts == [
        (9.0, True),
        (19.0, False),
        (None, None),  # the dense form does not fit, which is no fault of ours
        (127.0, True),
        (2.6, True),
        (50.0, False),
        (0.9, False),
        (20.0, True),
        (30.0, True),
        (None, False),  # never reached
        (61.0, True),
        (1.1, True),
        (3.1, False),
        (0.61, False),
    ]


def test_the_closest_peer_is_named():
    bar = judge(SECTIONS, SIZES)[6]
    assert bar["note"] == "The closest peer is cut-cross-entropy at d = 512, B = 1024"
    assert peer_bytes(4096) > 2**38


def test_a_quick_run_judges_nothing():
    quick = copy.copy(SIZES)
    quick.name = "quick"
    assert {bar["met"] for bar in judge(SECTIONS, quick)} == {None}
