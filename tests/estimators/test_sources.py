"""Where pairs and labels come from: parts lie apart, lags keep to time, draws can be repeated."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from demix import ContrastiveDemixer, DemixError, read_data
from demix.data.data import as_data
from demix.estimators.fitting import taken
from demix.estimators.sources import (
    PARTS,
    AugmentedPairs,
    GivenPairs,
    InstanceRows,
    LabelledRows,
    LagPairs,
    pick,
    thin,
    three_parts,
)

N = 500
# A row holds its own number, so that what is drawn says where it came from.
NUMBERED = as_data(np.arange(N, dtype=np.float32)[:, None])
PAIRS = torch.arange(N).reshape(-1, 2)
LABELS = torch.from_numpy(np.repeat([0, 1, 2], [300, 150, 50]))
CLASSES = int(LABELS.max()) + 1


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(x.shape)


SOURCES = {
    "lag": lambda seed=0: LagPairs(NUMBERED, 1, 3, share=0.2, seed=seed),
    "given": lambda seed=0: GivenPairs(NUMBERED, PAIRS, share=0.2, seed=seed),
    "augmented": lambda seed=0: AugmentedPairs(NUMBERED, noisy, share=0.2, seed=seed),
    "labels": lambda seed=0: LabelledRows(NUMBERED, LABELS, CLASSES, share=0.2, seed=seed),
    "instances": lambda seed=0: InstanceRows(NUMBERED, noisy),
}
every_source = pytest.mark.parametrize("name", SOURCES)
# Every row of InstanceRows has its own class, so that none of them can be held out.
divided = pytest.mark.parametrize("name", sorted(set(SOURCES) - {"instances"}))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(batch) -> torch.Tensor:
    """Return the numbers of all rows in a batch, whichever side they are on."""
    sides = [batch.x, batch.x_tilde] if hasattr(batch, "x_tilde") else [batch.x]
    return torch.cat(sides).flatten().long()


def rows_of(source, part) -> set[int]:
    """Return every row that a part can show; training is drawn from until all have come."""
    if part != "train":
        return set(numbers(source.held_out(part, N, generator=generator())[0]).tolist())
    drawn = [numbers(source.sample(N, generator=generator(seed))) for seed in range(20)]
    return set(torch.cat(drawn).tolist())


@divided
def test_no_row_is_in_two_parts_and_few_are_in_none(name):
    source = SOURCES[name]()
    train, validation, test = (rows_of(source, part) for part in PARTS)
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert len(train | validation | test) == N
    assert len(validation) == pytest.approx(0.1 * N, abs=2)
    assert len(test) == pytest.approx(0.1 * N, abs=2)
    assert len(source) == len(source.units["train"])


@divided
def test_another_seed_holds_out_other_rows(name):
    first, second = (rows_of(SOURCES[name](seed), "test") for seed in (0, 1))
    assert first == rows_of(SOURCES[name](0), "test")
    assert first != second


@every_source
def test_the_same_state_of_the_generator_gives_the_same_batch(name):
    source = SOURCES[name]()
    first, second, other = (source.sample(64, generator=generator(s)) for s in (5, 5, 6))
    assert all(map(torch.equal, first, second))
    assert not torch.equal(first.x, other.x)
    held = [source.held_out("test", 20, generator=generator(5)) for _ in range(2)]
    assert all(map(torch.equal, held[0][0], held[1][0]))
    assert torch.equal(held[0][1], held[1][1])
    assert len(held[0][0].x) == len(held[0][1]) == 20


@every_source
def test_a_batch_may_be_larger_than_the_data(name):
    assert len(SOURCES[name]().sample(5 * N, generator=generator()).x) == 5 * N


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 2), (1, 3), (4, 9)])
def test_lags_keep_to_their_range_and_all_of_them_occur(low, high):
    source = LagPairs(NUMBERED, low, high, share=0.2, seed=0)
    held, _ = source.held_out("test", N, generator=generator())
    for batch in (source.sample(20_000, generator=generator()), held):
        lag = (batch.x_tilde - batch.x).flatten().long()
        assert set(lag.tolist()) == set(range(low, high + 1))
    # Only where a segment ends are long lags missing, so that none is much rarer than the others.
    batch = source.sample(20_000, generator=generator())
    counts = np.bincount((batch.x_tilde - batch.x).flatten().long().numpy())[low:]
    assert counts.min() > 0.5 * 20_000 / len(counts)


@pytest.mark.parametrize("rows", [15, 100, 503, 5000])
def test_no_pair_crosses_the_border_of_a_segment(rows):
    data = as_data(np.arange(rows, dtype=np.float32)[:, None])
    source = LagPairs(data, 1, 3, share=0.2, seed=0)
    # Segments are what an unbroken run of a part's rows is made of: at most 20, of one length.
    borders = np.linspace(0, rows, min(20, rows // 5) + 1).astype(int)
    for part in PARTS:
        batch, _ = source.held_out(part, rows, generator=generator())
        segments = [
            np.searchsorted(borders, side.flatten().numpy(), side="right")
            for side in (batch.x, batch.x_tilde)
        ]
        np.testing.assert_array_equal(*segments)


def test_blocks_of_time_are_longer_than_the_lag():
    source = LagPairs(NUMBERED, 1, 3, share=0.2, seed=0)
    batch, blocks = source.held_out("test", N, generator=generator())
    for block in blocks.unique():
        times = batch.x.flatten()[blocks == block]
        assert times.max() - times.min() < 12
    assert 4 < len(blocks.unique()) <= N // 12


def test_rows_that_pairs_connect_stay_in_one_part():
    # Chains of 10 rows: each is joined to the next, and only the chain as a whole can be moved.
    pairs = torch.tensor([(i, i + 1) for i in range(N) if i % 10 < 9])
    source = GivenPairs(NUMBERED, pairs, share=0.2, seed=3)
    chains = [{row // 10 for row in rows_of(source, part)} for part in PARTS]
    assert sum(map(len, chains)) == N // 10
    assert set.union(*chains) == set(range(N // 10))
    _, blocks = source.held_out("test", N, generator=generator())
    assert len(blocks.unique()) == len(chains[2])


def test_pairs_that_are_all_connected_are_divided_by_rows():
    pairs = torch.tensor([(i, i + 1) for i in range(N - 1)])
    source = GivenPairs(NUMBERED, pairs, share=0.4, seed=0)
    train, validation, test = (rows_of(source, part) for part in PARTS)
    assert not train & validation
    assert not train & test
    assert not validation & test
    # Pairs between two parts are dropped: what is drawn is still a pair that was given.
    batch = source.sample(N, generator=generator())
    assert set((batch.x - batch.x_tilde).flatten().tolist()) == {-1.0, 1.0}


def test_of_every_class_a_share_is_held_out():
    source = LabelledRows(NUMBERED, LABELS, CLASSES, share=0.2, seed=0)
    counts = [np.bincount(LABELS[source.units[part]].numpy()).tolist() for part in PARTS]
    assert counts == [[240, 120, 40], [30, 15, 5], [30, 15, 5]]
    batch = source.sample(64, generator=generator())
    assert torch.equal(batch.labels, LABELS[batch.x.flatten().long()])


def test_a_class_of_one_is_trained_on_and_a_class_of_two_is_judged_by_one():
    labels = torch.tensor([0] * 10 + [1] + [2] * 2)
    source = LabelledRows(as_data(np.arange(13.0)[:, None]), labels, 3, share=0.2, seed=0)
    parts = [labels[source.units[part]].tolist() for part in PARTS]
    assert [part.count(1) for part in parts] == [1, 0, 0]
    assert [part.count(2) for part in parts] == [1, 0, 1]


def test_instances_are_their_own_labels_and_new_views_are_held_out():
    source = SOURCES["instances"]()
    batch = source.sample(64, generator=generator())
    assert torch.equal(batch.labels, batch.x.flatten().long())
    chosen, judged = (source.held_out(p, N, generator=generator(1))[0] for p in PARTS[1:])
    assert torch.equal(chosen.labels, torch.arange(N))
    assert not torch.equal(batch.x, judged.x[batch.labels])
    assert torch.equal(chosen.x, judged.x)  # the generator alone tells views apart


def test_two_views_of_a_row_differ_and_come_from_it():
    batch = SOURCES["augmented"]().sample(64, generator=generator())
    assert torch.equal(batch.x.floor(), batch.x_tilde.floor())
    assert not torch.equal(batch.x, batch.x_tilde)


@pytest.mark.parametrize("name", ["augmented", "instances"])
def test_an_augmentation_leaves_the_global_generator_alone(name):
    source = SOURCES[name]()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    source.sample(8, generator=generator())
    assert torch.equal(torch.get_rng_state(), before)


def test_some_samples_keep_their_targets():
    batch = SOURCES["given"]().sample(5, generator=generator())
    order = torch.tensor([1, 2, 3, 4, 0])
    assert torch.equal(taken(batch, slice(1, 3)).x_tilde, batch.x_tilde[1:3])
    assert torch.equal(batch.targets(), torch.arange(5))
    labelled = SOURCES["labels"]().sample(5, generator=generator())
    assert torch.equal(taken(labelled, order).x, labelled.x[order])
    assert torch.equal(taken(labelled, order).targets(), labelled.labels[order])


def test_a_guess_knows_the_frequencies_of_the_classes():
    counts = torch.bincount(LABELS, minlength=CLASSES)
    share = SOURCES["labels"]().guess().exp()
    torch.testing.assert_close(share, counts.double() / len(LABELS))
    assert SOURCES["given"]().guess() is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("count", [3, 10, 1000])
def test_three_parts_are_never_empty_and_have_their_share(count, share):
    if count - 2 * max(1, round(share * count / 2)) < 1:
        with pytest.raises(DemixError, match="give more data"):
            three_parts(count, share, np.random.default_rng(0))
        return
    train, validation, test = np.bincount(three_parts(count, share, np.random.default_rng(0)))
    assert validation == test == max(1, round(share * count / 2))
    assert train == count - validation - test


def test_picks_repeat_nothing_while_there_is_enough():
    units = torch.arange(10, 110)
    for size in (10, 100):
        assert len(pick(units, size, generator()).unique()) == size
    assert set(pick(units, 1000, generator()).tolist()) <= set(units.tolist())
    assert thin(units, 3).tolist() == [10, 60, 109]
    assert torch.equal(thin(units, 100), units)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LagPairs(NUMBERED, 1, 300, share=0.2, seed=0), "at least 906 rows, but"),
        (lambda: GivenPairs(NUMBERED, PAIRS[:2], share=0.2, seed=0), "give more pairs"),
        (
            lambda: LabelledRows(NUMBERED, torch.arange(N), N, share=0.2, seed=0),
            "at least 3 samples of some class",
        ),
        (
            lambda: AugmentedPairs(as_data(np.ones((2, 1))), noisy, share=0.2, seed=0),
            "at least 3 parts",
        ),
        (
            lambda: AugmentedPairs(NUMBERED, lambda x: x[:, :0], share=0.2, seed=0).sample(
                4, generator=generator()
            ),
            r"of the shape it is given, \(4, 1\), but returned shape \(4, 0\)",
        ),
        (
            lambda: InstanceRows(NUMBERED, lambda x: x.numpy()).sample(4, generator=generator()),
            "but returned ndarray",
        ),
    ],
    ids=["lag", "pairs", "labels", "rows", "shape", "type"],
)
def test_what_cannot_be_divided_or_used_is_refused(make, words):
    with pytest.raises(DemixError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("name", "odd"), [("{}.png", True), ("{:02}.png", False)])
def test_images_whose_names_do_not_sort_as_they_count_are_told(name, odd, tmp_path):
    for number in range(12):
        Image.new("L", (4, 4), 20 * number).save(tmp_path / name.format(number))
    images = read_data(tmp_path)
    pairs, labels = torch.arange(12).reshape(6, 2), torch.arange(12) % 2
    held = {"share": 0.4, "seed": 0}
    demixer = ContrastiveDemixer(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for rows in (images, images.only(torch.arange(11))):
            LagPairs(rows, 1, 1, share=0.2, seed=0)
        GivenPairs(images, pairs, **held)
        LabelledRows(images, labels, 2, **held)
        images.array()  # as factors are compared with
        demixer._targets(images, reset=True, y=None, positives=np.zeros((12, 1, 4, 4)))
        for free in (AugmentedPairs(images, torch.sin, **held), InstanceRows(images, torch.sin)):
            assert free.data is images
    words = f"Images in {tmp_path} are sorted by name, 10.png before 2.png, which may not be "
    assert [str(warning.message).startswith(words) for warning in told] == 6 * odd * [True]


@pytest.mark.parametrize("option", ["labels", "pairs", "factors"])
def test_commands_tell_of_images_that_others_count(demix, tmp_path, option):
    random = np.random.default_rng(0)
    (tmp_path / "x").mkdir()
    for number in range(80):
        noise = random.integers(0, 256, size=(4, 4), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "x" / f"{number}.png")
    counted = {
        "labels": np.arange(80) % 4,
        "pairs": np.arange(80).reshape(40, 2),
        "factors": random.normal(size=(80, 1)),
    }[option]
    np.save(tmp_path / "y.npy", counted)
    fit = ("fit", tmp_path / "x", f"--{option}", tmp_path / "y.npy", "--out", tmp_path / "out")
    probe = ("probe", tmp_path / "x", tmp_path / "y.npy")
    done = demix.run_briefly(*(probe if option == "factors" else fit))
    assert done.returncode == 0, done.stderr
    assert "are sorted by name, 10.png before 2.png" in " ".join(done.stderr.split())
