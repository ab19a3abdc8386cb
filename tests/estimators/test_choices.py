"""What a fit chooses on held-out data: assumption, input, rounds, a linear map where it is best."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
import torch
from sklearn.base import clone

from demix import (
    ClassifierDemixer,
    ContrastiveDemixer,
    Encoder,
    LeakyMixing,
    Real,
    Recipe,
    affine_r2,
    checkup,
    load_model,
    train,
)
from demix.encoders.encoder import ChannelScaling, Whitening
from demix.estimators.fitting import _best, _Rounds
from small_processes import sphere_pairs
from walks import sphere_walk

SHORT = Recipe(steps=400, batch=256, average=0.9)


def wells(rows: int, seed: int) -> np.ndarray:
    """Return two particles, each in a well of its own kind, which fill no space evenly."""
    random, z = np.random.default_rng(seed), np.zeros((rows, 2))
    for row in range(1, rows):
        z[row] = z[row - 1] - 0.1 * (z[row - 1] ** 3 - z[row - 1]) + 0.25 * random.normal(size=2)
    return z


def test_a_circle_is_taken_for_a_sphere_and_wells_are_not():
    angle = np.cumsum(np.random.default_rng(1).normal(0, 0.5, 3000))
    circle = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    fitted = ContrastiveDemixer(2, recipe=SHORT).fit(circle)
    assert fitted.assumed_.space.spherical
    assert fitted.setting().conditional == "vmf"
    z = wells(6000, seed=2)
    x = np.column_stack([z, np.tanh(z), z[:, :1] * z[:, 1:]])
    fitted = ContrastiveDemixer(2, recipe=SHORT).fit(x)
    assert fitted.assumed_[1:] != ("vmf", "uniform")
    assert affine_r2(fitted.transform(x), z, blocks="auto") > 0.95
    assert "conditional" in fitted.notes_[-1] or "conditional" in fitted.notes_[-2]


def test_what_learns_later_but_knows_more_is_chosen():
    # After a quarter of the steps a sphere is ahead of linear dynamics.
    rates, random = np.array([0.98, 0.94, 0.88, 0.8]), np.random.default_rng(102)
    noise = np.sqrt(1 - rates**2) * random.normal(size=(5000, 4))
    z = np.array(list(accumulate(noise, lambda now, step: rates * now + step)))
    x = LeakyMixing(4, seed=102)(torch.from_numpy(z).float()).numpy()
    fitted = ContrastiveDemixer(4, recipe=SHORT).fit(x)
    assert fitted.assumed_.conditional == "dynamics"
    assert affine_r2(fitted.transform(x), z, blocks="auto") > 0.95
    lasting = np.sort(np.abs(np.linalg.eigvals(fitted.dynamics_)))
    assert np.abs(lasting - rates[::-1]).max() < 0.05
    found = checkup(fitted, x)
    assert found.supported in ("affine", "undecided")
    assert [found[name].verdict for name in ("position", "isotropy")] == ["pass", "skipped"]


def test_a_choice_is_kept_by_copies_and_by_folders(tmp_path):
    fitted = ContrastiveDemixer(2, recipe=Recipe(steps=20, batch=64)).fit(wells(4000, seed=3))
    assert fitted.get_params()["space"] == "auto"
    settled = fitted.settled()
    assert settled.space == "sphere"
    assert settled.conditional == "vmf"
    fitted.save(tmp_path / "model")
    assert load_model(tmp_path / "model").get_params()["space"] == "sphere"
    named = ContrastiveDemixer(2, space="box", conditional="normal")
    assert named.settled().get_params() == clone(named).get_params()
    with pytest.raises(AttributeError, match="Only conditional"):
        _ = fitted.dynamics_


def test_a_conditional_names_the_spaces_it_lives_in():
    def spaces(**given):
        found = ContrastiveDemixer(3, **given)._alternatives(in_time=True)
        return [(repr(one.space).split("(")[0], one.conditional, one.marginal) for one in found]

    both = [("Real", "dynamics", "any"), ("Real", "normal", "any")]
    assert spaces() == [("Sphere", "vmf", "uniform"), *both]
    assert spaces(marginal="any")[0] == ("Sphere", "vmf", "any")
    assert spaces(conditional="dynamics") == both[:1]
    assert spaces(conditional="vmf") == [("Sphere", "vmf", "uniform")]
    assert spaces(conditional="laplace") == [("Real", "laplace", "any")]
    assert spaces(conditional="anisotropic") == [("Sphere", "anisotropic", "uniform")]
    assert spaces(space="box") == [("Box", "laplace", "uniform")]
    single = ContrastiveDemixer(1)._alternatives(in_time=False)
    assert [one.conditional for one in single] == ["normal"]


def test_another_assumption_has_to_be_better_beyond_doubt():
    blocks = torch.arange(40) // 4
    noise = torch.randn(40, generator=torch.Generator().manual_seed(0))
    first = (torch.full((40,), 2.0), blocks)
    assert _best([first, (2.001 + 0 * noise, blocks)]) == 0  # sure, but not enough
    assert _best([first, (2.1 + noise, blocks)]) == 0  # enough, but not sure
    assert _best([first, (2.1 + 0.1 * noise, blocks), (2.0 + 0.1 * noise, blocks)]) == 1


def test_directions_of_noise_become_small_and_others_do_not():
    random = torch.Generator().manual_seed(0)
    shared = torch.randn(8000, 2, generator=random)

    def side() -> torch.Tensor:
        columns = [shared, torch.randn(8000, 3, generator=random)]
        return torch.cat(columns, dim=1)

    x, y = side(), side()
    whitening = Whitening(5)
    whitening.fit(x)
    whitening.weigh((x[:4000], y[:4000]), (x[4000:], y[4000:]))
    size = whitening(x).std(dim=0)
    assert (size[:2] > 0.95).all()
    assert (size[2:] < 0.3).all()
    # A quarter of a turn between the two sides hides nothing.
    turned = torch.stack([-y[:, 1], y[:, 0], *y[:, 2:].T], dim=1)
    whitening = Whitening(5).fit(x)
    whitening.weigh((x[:4000], turned[:4000]), (x[4000:], turned[4000:]))
    assert (whitening(x).std(dim=0)[:2] > 0.95).all()


@pytest.mark.parametrize("components", [None, 2])
def test_columns_can_count_alike_instead_of_directions(components):
    random = torch.Generator().manual_seed(0)
    one = torch.randn(4000, 1, generator=random)
    x = torch.cat([one, one + 0.1 * torch.randn(4000, 1, generator=random)], dim=1)
    x = torch.cat([x, torch.zeros(4000, 1)], dim=1) * 7 + 3
    whitening = Whitening(3, components).fit(x, scales=x.std(dim=0))
    assert torch.linalg.svdvals(whitening(x))[1] > 50
    whitening.keep_sizes(x, x.std(dim=0))
    rows = whitening(x)
    expected = (x - x.mean(dim=0))[:, :2] / x.std(dim=0)[:2]
    inner = expected @ expected.T
    assert torch.allclose(rows @ rows.T / (rows @ rows.T).norm(), inner / inner.norm(), atol=1e-4)


@pytest.mark.parametrize("whitening", [Whitening(4), ChannelScaling((1, 2, 2))])
def test_noise_has_its_size_after_whitening(whitening):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 4, generator=random) @ torch.randn(4, 4, generator=random)
    whitening.fit(x)
    noise = whitening.noise(0.3)(x, random)
    change = whitening(x + noise) - whitening(x)
    assert torch.allclose(change.std(), torch.tensor(0.3), atol=0.02)


def test_a_linear_map_is_kept_where_nothing_is_better():
    random = np.random.default_rng(0)
    means = 2 * random.normal(size=(12, 3))
    y = random.integers(0, 12, 1500)
    x = (means[y] + random.normal(size=(1500, 3))) @ random.normal(size=(3, 6))
    fitted = ClassifierDemixer(3).fit(x, y)
    assert fitted.gain_.linear > 1
    assert abs(fitted.gain_.bits - fitted.gain_.linear) < 0.2
    assert f"a linear map: {fitted.gain_.linear:.3f}" in str(fitted.gain_)
    linear = ClassifierDemixer(3, encoder={"hidden": ()}).fit(x, y)
    difference = linear.transform(x[:9]) - linear.transform(np.zeros((1, 6)))
    assert np.allclose(linear.transform(2 * x[:9]) - linear.transform(x[:9]), difference, atol=1e-4)


def history(*losses: float) -> list[dict[str, float]]:
    return [{"step": 10 * i, "validation": loss} for i, loss in enumerate(losses, start=1)]


def test_there_is_another_round_while_the_loss_falls_or_if_it_rises():
    def asked(*losses, rounds=3, begun=0):
        again = _Rounds(Whitening(2), 40, rounds)
        return again(history(*losses), begun), again.noise is not None

    assert asked(3, 2.5, 2.2, 2.0) == (True, False)
    assert asked(3, 2.0, 1.995, 1.99) == (False, False)
    assert asked(3, 2.0, 2.1, 2.2) == (True, True)
    assert asked(3, 2.5, 2.2, 2.0, rounds=1) == (False, False)
    assert asked(3, 2.5, 2.2, 2.0, 2.1, 2.0, 2.0, 1.99, begun=40) == (False, False)
    again = _Rounds(Whitening(2), 40, 3)
    assert again(history(3, 2.0, 2.1, 2.2), 0)
    assert not again(history(3, 2.0, 2.1, 2.2, 1.5, 1.2, 1.1, 1.0), 40)


def test_rounds_go_through_the_recipe_again_and_continue_to_the_bit(tmp_path):
    process = sphere_pairs()

    def trained(checkpoint=None, stop=None):
        encoder = Encoder(2, Real(2), hidden=(8,))
        asked = []

        def again(past, begun):
            asked.append((past[-1]["step"], begun))
            return past[-1]["step"] < 60

        def callback(step, record):
            if step == stop:
                raise RuntimeError("stopped")

        found = train(
            encoder,
            process.sample,
            lambda f, batch: f(batch.x).square().mean(),
            Recipe(steps=20, batch=32),
            validate=lambda f: float(f.log_scale.sum()),
            eval_every=5,
            again=again,
            callback=callback,
            checkpoint=checkpoint,
        )
        return encoder, found, asked

    encoder, found, asked = trained()
    assert found.steps == 60
    assert asked == [(20, 0), (40, 20), (60, 40)]
    with pytest.raises(RuntimeError, match="stopped"):
        trained(tmp_path / "x.safetensors", stop=31)
    other, _, asked = trained(tmp_path / "x.safetensors")
    assert asked == [(20, 0), (40, 20), (60, 40)]
    for key, value in encoder.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)


@pytest.mark.parametrize("stop", [20, 245, 385])
def test_a_killed_fit_ends_in_the_same_bits(stop, tmp_path):
    """Whether it was killed while it tried starts, in the first round, or in a later one."""
    _, x = sphere_walk(1500, seed=4)

    def fitted(file, stop=None):
        def callback(step, steps, record):
            if step == stop:
                raise KeyboardInterrupt

        model = ContrastiveDemixer(3, encoder={"hidden": (16, 16)})
        return model.fit(x, callback=callback, checkpoint=tmp_path / file)

    whole = fitted("whole.safetensors")
    assert whole.n_steps_ > 200
    with pytest.raises(KeyboardInterrupt):
        fitted("killed.safetensors", stop)
    again = fitted("killed.safetensors")
    assert again.n_steps_ == whole.n_steps_
    assert again.transform(x[:20]).tobytes() == whole.transform(x[:20]).tobytes()
