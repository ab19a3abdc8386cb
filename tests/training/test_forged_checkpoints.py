"""A checkpoint that somebody else sealed, or a pipe in its place, ends in a sentence."""

from __future__ import annotations

import math
import os
import signal
import tracemalloc
from functools import cache
from pathlib import Path
from socket import AF_UNIX, socket
from tempfile import TemporaryDirectory

import pytest
import torch
from safetensors.torch import save_file

from demix import (
    Classification,
    DemixError,
    DemixWarning,
    Encoder,
    Recipe,
    Sphere,
    train,
)
from demix._support.files import claiming
from demix.training.checkpoints import _MARK, _read, _sealed, checkpoint_files, remove_checkpoint
from small_processes import sphere_labels

SPHERE, LABELS = Sphere(2), sphere_labels()

pytestmark = pytest.mark.usefixtures("all_checkpoints")


@pytest.fixture(autouse=True)
def in_time():
    """End a test that waits for a pipe."""

    def late(*_):
        pytest.fail("It waits.")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def run(path=None, *, stop_at: int | None = None, plant=None, again=None) -> torch.Tensor:
    """Train for 12 steps, or for some of them, and return all weights."""

    def cut(step, record):
        if step == stop_at:
            raise KeyboardInterrupt
        if plant is not None:
            plant(step)

    encoder = Encoder(2, SPHERE, hidden=(4, 4))
    train(
        encoder,
        LABELS.sample,
        Classification(20, 2),
        Recipe(steps=12, batch=8),
        eval_every=3,
        callback=cut,
        validate=lambda encoder: float(encoder.body[0].weight.square().sum()),
        again=again,
        checkpoint=path,
    )
    return torch.cat([value.flatten() for value in encoder.state_dict().values()])


@cache
def files_of_a_cut() -> tuple[bytes, ...]:
    """Return what a training leaves that is cut off after its third evaluation."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        run(path, stop_at=10)
        return tuple(file.read_bytes() for file in checkpoint_files(path))


@pytest.fixture
def cut(tmp_path):
    """The checkpoint of a training that was cut off, and the previous one."""
    path = tmp_path / "checkpoint.safetensors"
    for file, content in zip(checkpoint_files(path), files_of_a_cut(), strict=True):
        file.write_bytes(content)
    return path


def forge(path, change) -> None:
    """Change the tensors and facts of a checkpoint, and seal them again."""
    tensors, facts = _read(path)
    facts = change(tensors, facts) or facts
    path.write_bytes(_sealed(tensors, facts))


def first(tensors, start: str, end: str = "") -> str:
    return min(name for name in tensors if name.startswith(start) and name.endswith(end))


def test_a_checkpoint_that_is_sealed_again_as_it_was_is_taken(cut):
    forge(cut, lambda tensors, facts: None)
    assert torch.equal(run(cut), run())


def put(start: str, value, end: str = ""):
    """Return a change of the first tensor of that name; ``value`` may be made of the old one."""

    def change(tensors, facts):
        name = first(tensors, start, end)
        tensors[name] = value(tensors[name]) if callable(value) else value

    return change


def drop(start: str, end: str = ""):
    def change(tensors, facts):
        del tensors[first(tensors, start, end)]

    return change


def state(**changes):
    return lambda tensors, facts: facts["state"].update(changes)


LOOK = {"step": 3, "seconds": 0.1, "loss": 1.0}
TENSORS = {
    "weight missing": drop("now."),
    "best weight missing": drop("best."),
    "random state missing": drop("random."),
    "moment missing": drop("moment.", "exp_avg_sq"),
    "step missing": drop("moment.", ".step"),
    "all missing": lambda tensors, facts: tensors.clear(),
    "unknown": lambda tensors, facts: tensors.update({"later.x": torch.zeros(1)}),
    "unknown moment": lambda tensors, facts: tensors.update({"moment.9.x.y.z": torch.zeros(1)}),
    "moment of nobody": lambda tensors, facts: tensors.update({"moment.0.99.a": torch.zeros(1)}),
    "weight of one number": put("now.", torch.ones(1)),
    "weight turned": put("now.", lambda old: old[None]),
    "weight of whole numbers": put("now.", lambda old: old.long()),
    "weight of float64": put("now.", lambda old: old.double()),
    "best weight of another shape": put("best.", torch.ones(3, 3)),
    "moment of another shape": put("moment.", torch.ones(3, 3), "exp_avg"),
    "momentum of another shape": put("moment.", torch.ones(3, 3), "momentum_buffer"),
    "step that is no number": put("moment.", torch.ones(2), ".step"),
    "step that is a truth": put("moment.", torch.tensor(True), ".step"),
    "step below zero": put("moment.", torch.tensor(-1.0), ".step"),
    "step that is none": put("moment.", torch.tensor(math.nan), ".step"),
    "random state of one byte": put("random.", torch.zeros(1, dtype=torch.uint8)),
    "random state of zeros": put("random.", lambda old: torch.zeros_like(old)),
    "random state of ones": put("random.", lambda old: torch.full_like(old, 255)),
    "random state of floats": put("random.", lambda old: old.float()),
    "weight of NaN": put("now.", lambda old: old * math.nan),
    "best weight of NaN": put("best.", lambda old: old * math.nan),
    "moment of NaN": put("moment.", lambda old: old * math.nan, "exp_avg"),
}
FACTS = {
    "step of text": state(step="9"),
    "step of half": state(step=9.5),
    "step of truth": state(step=True),
    "step below zero": state(step=-1, history=[], best={}),
    "seconds huge": state(seconds=10**400),
    "seconds of text": state(seconds="1"),
    "seconds of NaN": state(seconds=math.nan),
    "total of nothing": state(total=None),
    "total infinite": state(total=math.inf),
    "history of nothing": state(history=None),
    "history of numbers": state(history=[1]),
    "history of empty records": state(history=[{}]),
    "history of text": state(history=[LOOK | {"loss": "1"}]),
    "history of lists": state(history=[LOOK | {"score": [1]}]),
    "history of no records": state(history=[]),
    "history that ends early": lambda tensors, facts: facts["state"]["history"].pop() and None,
    "history of one step twice": lambda tensors, facts: facts["state"].update(
        history=facts["state"]["history"][-1:] * 2
    ),
    "begun without rounds": state(begun=3),
    "begun in the future": state(begun=99),
    "begun below zero": state(begun=-1),
    "begun of nothing": state(begun=None),
    "begun of truth": state(begun=False),
    "history of the future": state(history=[LOOK | {"step": 12}]),
    "best of nothing": state(best=None),
    "best without value": state(best={"step": 3}),
    "best of text": state(best={"step": 3, "value": "1"}),
    "best of the future": state(best={"step": 99, "value": 1.0}),
    "best without weights": lambda tensors, facts: [
        tensors.pop(name) for name in list(tensors) if name.startswith("best.")
    ][:0],
    "weights without best": state(best={}),
    "no state": lambda tensors, facts: facts.pop("state") and None,
    "no about": lambda tensors, facts: facts.pop("about") and None,
    "no schema": lambda tensors, facts: facts.pop("schema") and None,
    "state of a list": lambda tensors, facts: facts | {"state": [1]},
    "state that is empty": lambda tensors, facts: facts | {"state": {}},
    "facts of a list": lambda tensors, facts: [facts],
}


@pytest.mark.parametrize("change", [*TENSORS.values(), *FACTS.values()], ids=[*TENSORS, *FACTS])
def test_what_no_training_can_have_left_is_refused(cut, change):
    checkpoint_files(cut)[1].unlink()
    forge(cut, change)
    before = cut.read_bytes()
    with pytest.raises(
        DemixError, match=r"is damaged or no checkpoint of demix \(.*\); .* anew\.$"
    ):
        run(cut)
    assert cut.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (state(begun=3), False),  # a round may end early
        (state(begun=4), True),  # where nothing was evaluated
        (state(begun=9), True),  # what is saved belongs to the round before
        (state(begun=True), True),
        (state(begun=-3), True),
        (lambda tensors, facts: facts["state"]["history"][0].pop("validation") and None, True),
    ],
)
def test_rounds_begin_where_one_has_ended(cut, change, refused):
    checkpoint_files(cut)[1].unlink()
    asked = []

    def again(history, begun):
        asked.append([(record["step"], record["validation"] > 0) for record in history])
        return len(asked) == 1

    forge(cut, change)
    if refused:
        with pytest.raises(DemixError, match=r"\(its facts are none of a training\)"):
            run(cut, again=again)
        assert not asked
    else:
        run(cut, again=again)
        assert [steps[-1][0] for steps in asked] == [3, 15]


@pytest.mark.parametrize("start", [b"", b"PK", (2**25 + 1).to_bytes(8, "little") + _MARK])
def test_what_does_not_begin_as_a_checkpoint_is_not_read_on(cut, start):
    checkpoint_files(cut)[1].unlink()
    cut.write_bytes(start)
    os.truncate(cut, 2**28)
    tracemalloc.start()
    try:
        with pytest.raises(DemixError, match=r"no checkpoint of demix \(it begins otherwise\)"):
            run(cut)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_checkpoint_larger_than_memory_is_not_read(cut):
    os.truncate(cut, 2**42)  # of which next to nothing is on the disk
    with pytest.raises(DemixError, match=r"Reading .* needs about .* remove it to start anew"):
        run(cut)
    assert cut.stat().st_size == 2**42


def test_refused_weights_leave_the_encoder_as_it_was(cut):
    forge(cut, put("moment.", lambda old: old * math.nan, "exp_avg"))
    encoder = Encoder(2, SPHERE, hidden=(4, 4))
    weights = {name: value.clone() for name, value in encoder.state_dict().items()}
    with pytest.raises(DemixError, match="holds NaN"):
        train(
            encoder,
            LABELS.sample,
            Classification(20, 2),
            Recipe(steps=12, batch=8),
            eval_every=3,
            validate=lambda encoder: 1.0,
            checkpoint=cut,
        )
    assert all(torch.equal(value, weights[name]) for name, value in encoder.state_dict().items())


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused(tmp_path, plant):
    path = tmp_path / "checkpoint.safetensors"
    for file in checkpoint_files(path):
        plant(file)
        with pytest.raises(DemixError, match=r"^Expected a file, but .*\.$"):
            run(path)


def stamps(folder):
    """Which file stands under each name, and when it was last written; reading it is allowed."""
    found = {file.name: file.lstat() for file in folder.iterdir()}
    return {name: (file.st_ino, file.st_mode, file.st_mtime_ns) for name, file in found.items()}


def bind(name):
    with socket(AF_UNIX) as place:
        place.bind(name)


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, bind])
def test_what_is_no_file_in_the_place_of_the_last_one_stays(cut, plant, monkeypatch):
    monkeypatch.chdir(cut.parent)  # names of sockets are short
    cut.unlink()
    plant(cut.name)
    before = stamps(cut.parent)
    with pytest.raises(DemixError, match=r"checkpoint\.safetensors.* remove it or choose .*\.$"):
        run(cut)
    assert stamps(cut.parent) == before


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("begun", [True, False])
def test_links_to_nothing_stay(cut, number, begun):
    link = checkpoint_files(cut)[number]
    link.unlink()
    if not begun:
        remove_checkpoint(cut)
    link.symlink_to("nowhere")
    with pytest.raises(DemixError, match="to be free for a file of demix, but it is a link"):
        run(cut)
    remove_checkpoint(cut)
    assert os.readlink(link) == "nowhere"


def test_a_link_in_the_place_of_the_previous_one_is_not_moved(cut, tmp_path):
    last, link = checkpoint_files(cut)
    link.rename(tmp_path / "elsewhere")
    link.symlink_to("elsewhere")
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(DemixError, match="to be free for a file of demix, but it is a link"):
        run(cut)
    assert link.is_symlink()


@pytest.mark.parametrize("number", [0, 1])
def test_links_to_checkpoints_elsewhere_are_not_removed(cut, tmp_path, number):
    link = checkpoint_files(cut)[number]
    link.rename(tmp_path / "elsewhere")
    link.symlink_to("elsewhere")
    remove_checkpoint(cut)
    assert link.is_symlink()


@pytest.mark.parametrize("last", [True, False])
def test_nothing_is_written_through_links(cut, tmp_path, last):
    thesis, file = tmp_path / "thesis.tex", checkpoint_files(cut)[0 if last else 1]
    thesis.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(thesis)
    before = thesis.read_bytes()
    with pytest.raises(DemixError, match="to be free for a file of demix, but it is a link"):
        run(cut)
    assert thesis.read_bytes() == before
    assert file.is_symlink()


@pytest.mark.parametrize("number", [0, 1])
def test_files_of_others_are_not_replaced(cut, number):
    file = checkpoint_files(cut)[number]
    save_file({"theirs": torch.ones(3)}, file)
    before = file.read_bytes()
    if number:
        with pytest.raises(DemixError, match=r"previous.* holds something else"):
            run(cut)
        assert file.read_bytes() == before
    else:  # it may be our own, damaged
        with pytest.warns(DemixWarning, match="is damaged"):
            run(cut)
        assert [f.read_bytes() for f in cut.parent.glob("*.damaged-*")] == [before]


@pytest.mark.parametrize("number", [0, 1])
def test_files_of_others_that_come_meanwhile_are_neither_replaced_nor_removed(tmp_path, number):
    path = tmp_path / "checkpoint.safetensors"
    file = checkpoint_files(path)[number]

    def plant(step):
        if step == 5:
            file.write_text("precious")

    with pytest.raises(DemixError, match="holds something else"):
        run(path, plant=plant)
    remove_checkpoint(path)
    assert [f.read_text() for f in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_checkpoint_of_others_that_comes_meanwhile_is_not_removed(cut, tmp_path, number):
    other, folder = cut.read_bytes(), tmp_path / "claimed"
    folder.mkdir()
    path = folder / "checkpoint.safetensors"
    file = checkpoint_files(path)[number]
    with claiming(folder):
        run(path)
        file.write_bytes(other)
        remove_checkpoint(path)
    assert [(f.name, f.read_bytes()) for f in folder.iterdir()] == [(file.name, other)]


@pytest.mark.parametrize("name", ["", ".", "/", "a\0b"])
def test_what_is_the_name_of_no_file_is_refused(name):
    with pytest.raises(DemixError, match="Expected the name of a file"):
        run(name)
