"""scikit-learn's own checks, its tools, and data of every kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas
import pytest
import torch
import zarr
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from demix import Box, ClassifierDemixer, ContrastiveDemixer, DemixError, InstanceDemixer, Recipe
from demix.data.data import as_data
from walks import TINY, sphere_walk

# Ten steps learn too little for a gain, which is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::demix.DemixWarning")

ESTIMATORS = [ContrastiveDemixer, ClassifierDemixer, InstanceDemixer]
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS)
Z, X = sphere_walk(160)
LABELS = np.digitize(Z[:, 0], [-0.4, 0.4])


def targets(kind: type) -> dict:
    """Return what an estimator needs in addition to the rows."""
    return {"y": LABELS} if kind is ClassifierDemixer else {}


def tiny(kind: type, **settings):
    return kind(**{"n_latents": 2, **TINY, **settings})


# A classifier must learn to pass; the others are as right after a few steps as with their defaults.
SMALL = {"encoder": {"hidden": (16, 16)}}
SHORT = SMALL | {"recipe": Recipe(steps=2, batch=4)}
LEARNS = SMALL | {"recipe": Recipe(steps=20, batch=4)}
CHECKED = [ContrastiveDemixer(**SHORT), ClassifierDemixer(**LEARNS), InstanceDemixer(**SHORT)]


@pytest.mark.slow
@parametrize_with_checks(CHECKED)
def test_scikit_learn_finds_nothing_to_say(estimator, check):
    check(estimator)


@every_estimator
def test_a_clone_has_the_settings_and_nothing_else(kind):
    fitted = kind(2, space=Box(2), encoder={"hidden": (8, 8)}, recipe=Recipe(steps=2, batch=8))
    fitted.fit(X, **targets(kind))
    copy = clone(fitted)
    assert repr(copy.get_params()) == repr(fitted.get_params())
    assert not hasattr(copy, "encoder_")
    assert copy.set_params(n_latents=3, space="real").get_params()["n_latents"] == 3


@every_estimator
def test_the_same_random_state_gives_the_same_bits(kind):
    generator = np.random.RandomState(3)
    first, second, *others = (
        tiny(kind, random_state=seed).fit(X, **targets(kind)).transform(X)
        for seed in (5, 5, generator, generator)
    )
    assert first.tobytes() == second.tobytes()
    assert not np.array_equal(*others)
    # Weights that torch draws come from it, too.
    recipe = Recipe(steps=2, batch=32, initialise=False)
    again = [tiny(kind, recipe=recipe).fit(X, **targets(kind)).transform(X) for _ in range(2)]
    assert again[0].tobytes() == again[1].tobytes()


@every_estimator
def test_the_global_generators_are_left_alone(kind):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    tiny(kind).fit(X, **targets(kind))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


def test_it_stands_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), tiny(ContrastiveDemixer), Ridge())
    assert pipeline.fit(X, Z[:, 0]).predict(X).shape == (160,)
    names = pipeline[:-1].get_feature_names_out()
    assert names.tolist() == ["contrastivedemixer0", "contrastivedemixer1"]


def test_a_grid_is_searched_over_the_number_of_latents():
    """Instances have no score of their own, so that what is made of the latents is scored."""
    search = GridSearchCV(
        make_pipeline(tiny(InstanceDemixer), Ridge()),
        {"instancedemixer__n_latents": [2, 3]},
        cv=KFold(2),
        scoring="r2",
        error_score="raise",
    )
    search.fit(X, Z[:, 0])
    assert len(search.cv_results_["params"]) == 2
    assert search.best_estimator_[0].transform(X).shape[1] in (2, 3)


def test_pairs_and_labels_score_themselves():
    for kind in (ContrastiveDemixer, ClassifierDemixer):
        search = GridSearchCV(tiny(kind), {"n_latents": np.arange(2, 4)}, cv=2, error_score="raise")
        search.fit(X, LABELS)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_estimator
def test_latents_are_float32_in_order_and_named(kind):
    fitted = tiny(kind, n_latents=np.int64(3)).fit(X, **targets(kind))
    latents = fitted.transform(X)
    assert (latents.shape, latents.dtype) == ((160, 3), np.float32)
    np.testing.assert_allclose(fitted.transform(X[100:]), latents[100:], rtol=1e-5, atol=1e-5)
    stem = kind.__name__.lower()
    assert fitted.get_feature_names_out().tolist() == [f"{stem}{i}" for i in range(3)]
    frame = fitted.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == [f"{stem}{i}" for i in range(3)]


@cache
def latents_of_the_walk() -> np.ndarray:
    return tiny(ContrastiveDemixer).fit_transform(X)


def kept_as(kind: str, folder) -> object:
    """Return the walk as it may be kept."""
    if kind == "memmap":
        np.save(folder / "x.npy", X)
        return np.load(folder / "x.npy", mmap_mode="r")
    if kind == "zarr":
        return zarr.create_array(folder / "x.zarr", data=X, chunks=(50, 3))
    return {
        "float64": lambda: X.astype(np.float64),
        "fortran": lambda: np.asfortranarray(X),
        "list": X.tolist,
        "frame": lambda: pandas.DataFrame(X, columns=["a", "b", "c"]),
        "tensor": lambda: torch.from_numpy(X),
        "Data": lambda: as_data(X),
    }[kind]()


@pytest.mark.parametrize(
    "kind", ["float64", "fortran", "list", "frame", "tensor", "Data", "memmap", "zarr"]
)
def test_rows_of_every_kind_give_the_same_bits(kind, tmp_path):
    given = kept_as(kind, tmp_path)
    fitted = tiny(ContrastiveDemixer).fit(given)
    assert fitted.transform(given).tobytes() == latents_of_the_walk().tobytes()
    assert fitted.n_features_in_ == 3


def test_labels_may_be_text_booleans_or_a_tensor():
    for labels in (
        np.array(["a", "b", "c"])[LABELS],
        LABELS > 0,
        torch.from_numpy(LABELS),
        pandas.Series(LABELS),
        list(map(str, LABELS)),
    ):
        fitted = tiny(ClassifierDemixer).fit(X, labels)
        assert set(fitted.predict(X)) <= set(np.asarray(labels).tolist())
        np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_names_of_columns_are_checked():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fitted = tiny(InstanceDemixer).fit(frame)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[["c", "a", "b"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.transform(X)


def test_positives_in_a_frame_go_by_the_names_of_their_columns():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fits = [
        tiny(ContrastiveDemixer).fit(frame, positives=(frame + 0.1)[names]).transform(frame)
        for names in (["a", "b", "c"], ["c", "a", "b"])
    ]
    np.testing.assert_array_equal(*fits)


@every_estimator
@pytest.mark.parametrize("tensor", [False, True])
def test_images_are_rows_too(kind, tensor):
    images = np.random.default_rng(0).random((160, 2, 4, 5), dtype=np.float32)
    given = torch.from_numpy(images) if tensor else images
    fitted = tiny(kind).fit(given, **targets(kind))
    assert fitted.transform(given).shape == (160, 2)
    assert fitted.n_features_in_ == 40
    with pytest.raises(DemixError, match=r"X has 20 features, but .* is expecting 40"):
        fitted.transform(given[:, :1])


def test_very_wide_rows_are_whitened_in_few_directions():
    wide = np.random.default_rng(0).normal(size=(60, 1100)).astype(np.float32)
    fitted = tiny(InstanceDemixer).fit(wide)
    assert fitted.encoder_.whitening.matrix.shape == (1100, 256)
    assert fitted.notes_[0].endswith("the 256 directions of the largest variance were kept.")


@pytest.mark.parametrize("kind", [ClassifierDemixer, InstanceDemixer])
def test_positives_are_for_pairs_only(kind):
    with pytest.raises(DemixError, match=f"supervise ContrastiveDemixer, but got {kind.__name__}"):
        tiny(kind).fit(X, LABELS, positives=X)


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        ({"n_latents": 0}, {}, "n_latents must be"),
        ({"n_latents": 1.5}, {}, "n_latents must be"),
        ({"space": "torus"}, {}, "torus"),
        ({"space": 3}, {}, "space must be a name or a Space"),
        ({"space": Box(3)}, {}, "has 3 dimensions, but n_latents is 2"),
        ({"conditional": "cauchy"}, {}, "conditional must be"),
        ({"conditional": [1]}, {}, "conditional must be"),
        ({"conditional": True}, {}, "conditional must be"),
        ({"lag": 0}, {}, "lag must be"),
        ({"lag": (3, 1)}, {}, "lag must be"),
        ({"lag": 1.5}, {}, "lag must be"),
        ({"validation": 1.5}, {}, "validation must be"),
        ({"encoder": (64, 64)}, {}, "encoder must be None, the name of a body or a dict"),
        ({"encoder": {"dim_in": 3}}, {}, "settings of Encoder other than dim_in"),
        ({"recipe": Recipe(batch=161)}, {}, "A batch of 161 needs as many rows"),
        ({}, {"positives": np.array([[0, 160]])}, "outside the data"),
        ({}, {"positives": X[:50]}, r"of shape \(160, 3\), but got float32 of shape \(50, 3\)"),
        ({"augmentation": torch.sin}, {"positives": X}, "given or made .*, but got both"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_settings_that_make_no_sense_are_refused(settings, given, words):
    with pytest.raises(DemixError, match=words) as raised:
        tiny(ContrastiveDemixer, **settings).fit(X, **given)
    assert "\n" not in str(raised.value)
