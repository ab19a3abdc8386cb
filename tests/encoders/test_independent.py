"""Independent axes are found, and are a rotation even where there are none."""

from __future__ import annotations

import torch

from demix.encoders.directions import independent_axes


def test_axes_are_a_rotation_and_turn_with_the_outputs():
    generator = torch.Generator().manual_seed(0)
    z = 12**0.5 * (torch.rand(20_000, 3, generator=generator, dtype=torch.float64) - 0.5)
    white = torch.linalg.qr(z - z.mean(0)).Q * len(z) ** 0.5
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64)).Q
    eye = torch.eye(3, dtype=torch.float64)
    axes = independent_axes(white @ turn.T)
    torch.testing.assert_close(axes @ axes.T, eye)
    found = (axes @ turn).abs()
    torch.testing.assert_close(found[found.argmax(0)], eye, atol=0.03, rtol=0)


def test_outputs_without_variance_stay_and_the_others_turn():
    z = 12**0.5 * (torch.rand(5000, 2, generator=torch.Generator().manual_seed(0)) - 0.5)
    turn = torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    made = torch.stack([(z @ turn.T)[:, 0], torch.zeros(5000), (z @ turn.T)[:, 1]], dim=1)
    axes = independent_axes(made)
    assert axes[1].tolist() == axes[:, 1].tolist() == [0.0, 1.0, 0.0]
    found = (axes[[0, 2]][:, [0, 2]] @ turn).abs().sort(dim=0).values
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.0], [1.0, 1.0]]), atol=0.05, rtol=0)


def test_axes_that_nothing_tells_are_a_rotation_all_the_same():
    white = torch.randn(500, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    axes = independent_axes(torch.linalg.qr(white - white.mean(0)).Q * 500**0.5)
    torch.testing.assert_close(axes @ axes.T, torch.eye(8, dtype=axes.dtype))
