"""A batch in chunks has the gradients of the whole batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from demix import (
    Box,
    Classification,
    DemixError,
    Encoder,
    InfoNCE,
    Pairs,
    Recipe,
    ShapedInfoNCE,
    Sphere,
    train,
)
from demix.papers import Labelled
from demix.papers.runner.original import paper_encoder
from demix.training.memory import Chunked

PAIRS, DIM = 30, 4


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


every_size = pytest.mark.parametrize("size", [1, 7, 100])


def pairs(seed: int = 0) -> Pairs:
    generator = torch.Generator().manual_seed(seed)
    x, x_tilde = torch.randn(2, PAIRS, DIM, generator=generator, dtype=torch.float64)
    return Pairs(x, x_tilde, x, x_tilde)


def gradients(model: nn.Module, objective, batch, encoder: nn.Module) -> dict[str, torch.Tensor]:
    """The loss, and its gradient by each parameter of encoder and objective."""
    named = dict(encoder.named_parameters())
    if isinstance(objective, nn.Module):
        named |= {f"objective.{name}": p for name, p in objective.named_parameters()}
    loss = objective(model, batch)
    found = torch.autograd.grad(loss, list(named.values()))
    return {"loss": loss.detach(), **dict(zip(named, found, strict=True))}


def assert_equal(found: dict[str, torch.Tensor], whole: dict[str, torch.Tensor]) -> None:
    assert max(float(g.abs().max()) for name, g in whole.items() if name != "loss") > 1e-3
    for name, gradient in whole.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-10, msg=name)


@every_size
@pytest.mark.parametrize(
    "objective",
    [
        InfoNCE(),
        InfoNCE(similarity=1.0, two_sided=False),
        InfoNCE(within=8),
        ShapedInfoNCE(3, learn_shape=True).double(),
    ],
    ids=["dot", "laplace", "groups", "shaped"],
)
@pytest.mark.parametrize(
    "build",
    [
        lambda: Encoder(DIM, Sphere(3), hidden=(8, 8), scale=2.0),
        lambda: Encoder(DIM, Box(3), hidden=(8, 8), activation="gelu"),
        lambda: paper_encoder(DIM, Sphere(3)).initialise(),
    ],
    ids=["sphere", "box", "in place"],
)
def test_pairs_in_chunks_have_the_gradients_of_the_whole_batch(size, objective, build):
    encoder = build().double()
    whole = gradients(encoder, objective, pairs(), encoder)
    assert_equal(gradients(Chunked(encoder, size), objective, pairs(), encoder), whole)


@every_size
def test_labels_do_so_too(size):
    encoder = Encoder(DIM, Sphere(3), hidden=(8, 8)).double()
    objective = Classification(5, 3).double()
    objective.initialise(torch.Generator().manual_seed(0))
    labels = torch.arange(PAIRS) % 5
    batch = Labelled(pairs().x, pairs().x, labels, labels)
    whole = gradients(encoder, objective, batch, encoder)
    assert_equal(gradients(Chunked(encoder, size), objective, batch, encoder), whole)


def test_rows_are_encoded_twice_and_never_more_than_a_chunk_at_once():
    encoder = Encoder(DIM, Sphere(3), hidden=(8, 8)).double()
    seen = []
    encoder.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    loss = InfoNCE()(Chunked(encoder, 16), pairs())
    assert seen == [16, 16, 16, 12]
    loss.backward()
    assert sorted(seen[4:]) == [12, 16, 16, 16]
    seen.clear()
    with torch.no_grad():
        latents = Chunked(encoder, 16)(pairs().x)
    assert seen == [16, 14]
    torch.testing.assert_close(latents, encoder(pairs().x), rtol=0, atol=1e-12)


def test_of_the_hidden_layers_nothing_is_kept_until_the_way_back():
    encoder = Encoder(DIM, Sphere(3), hidden=(8, 8)).double()

    def kept(model) -> list[tuple[int, ...]]:
        shapes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: shapes.append(tuple(tensor.shape)) or tensor, lambda tensor: tensor
        )
        with hooks:
            InfoNCE()(model, pairs())
        return [shape for shape in shapes if len(shape) == 2 and shape[1] == 8]

    assert (2 * PAIRS, 8) in kept(encoder)
    assert kept(Chunked(encoder, 16)) == []


def test_a_dropout_drops_the_same_on_the_way_back():
    encoder = nn.Sequential(nn.Linear(DIM, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()
    found = {}
    for name, model in [
        # The same order of draws, with everything kept.
        ("kept", lambda x: torch.cat([encoder(chunk) for chunk in x.split(7)])),
        ("again", Chunked(encoder, 7)),
    ]:
        torch.manual_seed(0)
        found[name] = gradients(model, InfoNCE(), pairs(), encoder)
    assert_equal(found["again"], found["kept"])


def test_a_recipe_in_chunks_trains_the_same_weights(circle, tiny):
    def sample(size, *, generator):
        return Pairs(*(side.double() for side in circle.sample(size, generator=generator)))

    def trained(**changes):
        encoder = Encoder(2, circle.space, hidden=(16, 16), scale=3.0).double()
        recipe = replace(tiny["recipe"], **changes)
        history = train(encoder, sample, InfoNCE(), recipe, seed=3).history
        weights = nn.utils.parameters_to_vector(encoder.parameters()).detach()
        return weights, history[-1]["loss"]

    whole, chunks, other = trained(), trained(chunk=10), trained(batch=10)
    torch.testing.assert_close(chunks, whole, rtol=1e-8, atol=1e-8)
    assert not torch.allclose(other[0], whole[0], rtol=1e-2)


def test_batch_normalisation_is_refused_before_anything_changes(tiny):
    encoder = paper_encoder(2, Sphere(2), batch_norm=True)
    before = nn.utils.parameters_to_vector(encoder.parameters()).detach().clone()
    with pytest.raises(DemixError, match="normalises over the batch; build it with"):
        train(**tiny | {"encoder": encoder, "recipe": Recipe(chunk=8)})
    assert torch.equal(nn.utils.parameters_to_vector(encoder.parameters()), before)


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_chunks_have_rows(size):
    with pytest.raises(DemixError, match="whole number of rows >= 1"):
        Chunked(nn.Linear(2, 2), size)
