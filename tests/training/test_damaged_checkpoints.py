"""A damaged checkpoint is noticed, whatever was damaged, and the one before it is taken."""

from __future__ import annotations

import warnings

import pytest
import torch

from demix import DemixError, DemixWarning, Encoder, InfoNCE, Recipe, Sphere, train
from demix.training.checkpoints import checkpoint_files, remove_checkpoint
from small_processes import sphere_pairs

SPHERE, PROCESS = Sphere(2), sphere_pairs()
pytestmark = pytest.mark.usefixtures("all_checkpoints")
# Flips of one bit, of all bits of a stretch, and ends at all places.
REGIONS = 24


def run(path=None, *, stop_at=None, eval_every=3, steps=12, seed=0) -> torch.Tensor:
    """Train for 12 steps, or for some of them, and return all weights."""

    def cut(step, record):
        if step == stop_at:
            raise KeyboardInterrupt

    encoder = Encoder(2, SPHERE, hidden=(4, 4))
    recipe = Recipe(steps=steps, batch=8)
    train(
        encoder,
        PROCESS.sample,
        InfoNCE(),
        recipe,
        seed=seed,
        eval_every=eval_every,
        callback=cut,
        checkpoint=path,
    )
    return torch.cat([value.flatten() for value in encoder.state_dict().values()])


@pytest.fixture(scope="module")
def undisturbed():
    """The weights of a training that nothing happened to."""
    return run()


@pytest.fixture
def cut(tmp_path):
    """The checkpoint of a training that was cut off after its third evaluation."""
    path = tmp_path / "checkpoint.safetensors"
    run(path, stop_at=10)
    return path


def damages(raw: bytes) -> list[bytes]:
    """Return a file in many states of decay."""
    spoilt = []
    for region in range(REGIONS):
        start, stop = (len(raw) * (region + more) // REGIONS for more in (0, 1))
        one, many = bytearray(raw), bytearray(raw)
        one[start] ^= 1 << region % 8
        many[start:stop] = bytes(byte ^ 255 for byte in raw[start:stop])
        spoilt += [bytes(one), bytes(many), raw[:start], raw[:start] + bytes(len(raw) - start)]
    return spoilt


def test_both_files_are_whole_and_one_look_apart(cut):
    last, before = checkpoint_files(cut)
    assert last.stat().st_size == pytest.approx(before.stat().st_size, rel=0.1)
    remove_checkpoint(cut)
    assert not last.exists()
    assert not before.exists()


def test_every_damage_is_noticed_and_the_one_before_is_taken(cut):
    last, before = checkpoint_files(cut)
    undisturbed = run(stop_at=7)  # before the next look, which would write
    kept = last.read_bytes(), before.read_bytes()
    for spoilt in damages(kept[0]):
        last.write_bytes(spoilt)
        before.write_bytes(kept[1])
        with pytest.warns(DemixWarning, match=r"is damaged.*previous checkpoint, after 6 steps"):
            assert torch.equal(run(cut, stop_at=7), undisturbed)


def test_what_was_damaged_is_never_taken_for_the_last_good_one(cut, undisturbed):
    last, before = checkpoint_files(cut)
    last.write_bytes(b"torn")
    with pytest.warns(DemixWarning, match="is damaged"):
        run(cut, stop_at=8)  # before the next look
    assert not before.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(run(cut), undisturbed)


def test_killed_between_two_renamings_it_goes_on(cut, undisturbed):
    last, before = checkpoint_files(cut)
    last.unlink()
    assert before.exists()
    assert torch.equal(run(cut), undisturbed)


def test_with_both_damaged_it_says_so_and_leaves_them(cut):
    for file in checkpoint_files(cut):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DemixError, match=r"damaged or no checkpoint of demix .* start anew"):
        run(cut)
    assert all(file.exists() for file in checkpoint_files(cut))


@pytest.mark.parametrize("change", [{"seed": 1}, {"steps": 5}])
def test_a_refused_training_does_not_use_up_the_one_before(cut, change):
    last, before = checkpoint_files(cut)
    last.write_bytes(b"torn")
    kept = before.read_bytes()
    with pytest.raises(DemixError, match="of another training"):
        run(cut, **change)
    assert (last.read_bytes(), before.read_bytes()) == (b"torn", kept)
    assert len(list(cut.parent.iterdir())) == 2


def test_checkpoints_cost_little(tmp_path, monkeypatch):
    monkeypatch.setattr("demix.training.checkpoints._SHARE", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    run(path, stop_at=11, eval_every=1)
    # The first one shows what they cost, which is too much; the last one is not reached.
    assert [file.exists() for file in checkpoint_files(path)] == [True, False]
    run(path, eval_every=1)
    assert all(file.exists() for file in checkpoint_files(path))
