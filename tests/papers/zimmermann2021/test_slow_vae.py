"""SlowVAE is its definition: divergences by quadrature, the loss term by term, and it learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from demix import DemixError, Encoder, Real, Recipe, train
from demix.estimators.sources import DrawnPairs
from demix.papers.zimmermann2021.videos import (
    SlowVAE,
    image_decoder,
    laplace_divergence,
    normal_divergence,
)
from demix.training.loop import Training

SHAPE = (1, 16, 32)


@pytest.mark.parametrize("mean", [0.0, -0.7, 3.0])
@pytest.mark.parametrize("deviation", [0.05, 1.0, 2.5])
def test_divergences_are_integrals(mean, deviation):
    q = stats.norm(mean, deviation)
    priors = {
        "laplace": (stats.laplace(0, 1 / 6), lambda m, s: laplace_divergence(m, s, 6.0)),
        "normal": (stats.norm(), normal_divergence),
    }
    for prior, divergence in priors.values():
        expected, _ = integrate.quad(
            lambda z, p=prior: q.pdf(z) * (q.logpdf(z) - p.logpdf(z)),
            mean - 12 * deviation,
            mean + 12 * deviation,
            points=[0.0] if abs(mean) < 12 * deviation else None,
            limit=200,
        )
        found = divergence(*(torch.tensor(v, dtype=torch.float64) for v in (mean, deviation)))
        assert float(found) == pytest.approx(expected, rel=1e-7)


@pytest.fixture
def model() -> SlowVAE:
    torch.manual_seed(0)
    slow = SlowVAE(3, SHAPE).double()
    slow.initialise(torch.Generator().manual_seed(1))
    return slow


def test_the_loss_is_its_definition(model):
    torch.manual_seed(1)
    encoder = Encoder(SHAPE, Real(6), body="kitti").double()
    views = DrawnPairs(*torch.rand(2, 4, *SHAPE, dtype=torch.float64))
    state = model.draws.get_state()
    found = model(encoder, views)

    model.draws.set_state(state)
    noise = torch.randn(8, 3, generator=model.draws).double().numpy()
    both = torch.cat([views.x, views.x_tilde])
    outputs = encoder(both).detach().numpy()
    mean, deviation = outputs[:, :3], np.exp(outputs[:, 3:] / 2)
    chance = model.decoder(torch.from_numpy(mean + deviation * noise)).sigmoid().detach().numpy()
    x = both.numpy()
    total = 0.0
    for frame in range(8):
        other = mean[(frame + 4) % 8]
        total -= (
            x[frame] * np.log(chance[frame]) + (1 - x[frame]) * np.log1p(-chance[frame])
        ).sum()
        for i in range(3):
            at = [torch.tensor(v) for v in (mean[frame, i], deviation[frame, i])]
            total += float(normal_divergence(*at))
            total += 10.0 * float(laplace_divergence(at[0] - other[i], at[1], 6.0))
    assert found.item() == pytest.approx(total / 8, rel=1e-10)


def test_frames_of_a_pair_may_change_places(model):
    encoder = Encoder(SHAPE, Real(6), body="kitti").double()
    # Without noise, so that only the order of frames differs.
    with torch.no_grad():
        encoder.body[-1].weight[3:] = 0
        encoder.body[-1].bias[3:] = -60.0
    x, x_tilde = torch.rand(2, 4, *SHAPE, dtype=torch.float64)
    one, other = model(encoder, DrawnPairs(x, x_tilde)), model(encoder, DrawnPairs(x_tilde, x))
    assert one.item() == pytest.approx(other.item(), rel=1e-9)


def test_the_decoder_starts_with_logits_of_order_one(model):
    logits = model.decoder(torch.randn(64, 3, dtype=torch.float64)).detach()
    assert logits.shape == (64, *SHAPE)
    assert 0.1 < float(logits.std()) < 10


def spots(size: int, *, generator: torch.Generator) -> DrawnPairs:
    """A bright spot that moves across, and its next place."""
    place = torch.rand(size, 1, generator=generator)
    step = 0.1 * (torch.rand(size, 1, generator=generator) - 0.5)
    at = torch.linspace(0, 1, 16)
    frames = [
        (-(((at - p) / 0.1) ** 2)).exp()[:, None, None, :].expand(-1, 1, 16, -1)
        for p in (place, (place + step).clamp(0, 1))
    ]
    return DrawnPairs(*frames)


def trained_on_spots(steps: int) -> tuple[SlowVAE, Encoder, Training]:
    model = SlowVAE(2, (1, 16, 16))
    encoder = Encoder((1, 16, 16), Real(4), body="kitti")
    recipe = Recipe(steps=steps, batch=16, optimizer="adam", rate=2e-3, whiten=False)
    return model, encoder, train(encoder, spots, model, recipe, seed=3)


def test_training_repeats_to_the_bit():
    some = spots(8, generator=torch.Generator().manual_seed(0)).x
    found = []
    for _ in range(2):
        model, encoder, _ = trained_on_spots(steps=5)
        found.append(model.latents(encoder(some)))
    assert torch.equal(*found)


@pytest.mark.slow
def test_training_finds_the_place():
    model, encoder, training = trained_on_spots(steps=120)
    assert training.history[-1]["loss"] < 0.8 * training.history[0]["loss"]
    at = torch.linspace(0.1, 0.9, 9)[:, None]
    line = (-(((torch.linspace(0, 1, 16) - at) / 0.1) ** 2)).exp()[:, None, None, :]
    with torch.no_grad():
        z = model.latents(encoder(line.expand(-1, 1, 16, -1)))
    best = max(abs(stats.spearmanr(at[:, 0], z[:, i]).statistic) for i in range(2))
    assert best > 0.9


def test_images_that_it_cannot_draw_are_refused():
    with pytest.raises(DemixError, match="multiples of 16"):
        SlowVAE(2, (1, 20, 20))


def test_an_encoder_without_variances_is_refused(model):
    encoder = Encoder(SHAPE, Real(3), body="kitti").double()
    with pytest.raises(DemixError, match="needs an encoder with 6 outputs"):
        model(encoder, DrawnPairs(*torch.rand(2, 4, *SHAPE, dtype=torch.float64)))


def test_the_decoder_is_the_mirror_of_the_body():
    decoder = image_decoder(3, (1, 64, 64))
    widths = [
        layer.out_channels for layer in decoder if isinstance(layer, torch.nn.ConvTranspose2d)
    ]
    assert widths == [64, 32, 32, 1]
    assert decoder[2].out_features == 64 * 4 * 4
    assert math.prod(decoder(torch.randn(2, 3)).shape) == 2 * 64 * 64
