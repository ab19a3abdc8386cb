"""Model folders of estimators, and checks of what they say about a fit."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from demix._support.errors import DemixError, reason, shortened
from demix._support.provenance import provenance
from demix._support.validation import check_device
from demix.encoders.encoder import Encoder
from demix.encoders.files import open_model
from demix.estimators.assumptions import default_conditional
from demix.estimators.base import Demixer, name_of
from demix.estimators.gain import Gain
from demix.spaces.base import Space
from demix.training.recipe import Recipe

Test = Callable[[Any], bool]
_MOST = 1e300  # whole numbers beyond it fit into no float; NaN is not below it, either
_MODULES = {  # of each estimator, so that a fit loads its own only
    "ClassifierDemixer": "demix.estimators.classification",
    "ContrastiveDemixer": "demix.estimators.contrastive",
    "InstanceDemixer": "demix.estimators.classification",
}
# What a forged description may raise while an estimator is built from it.
_BROKEN = (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def facts_of(demixer: Demixer) -> dict[str, Any]:
    """Return what a model folder tells of a fit, as plain data; of an augmentation the name."""
    parameters = demixer.settled().get_params(deep=False) | {"random_state": demixer.seed_}
    names = demixer._names
    return {
        "estimator": type(demixer).__name__,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "gain": demixer.gain_.to_dict(),
        "history": demixer.history_,
        "best_step": demixer.best_step_,
        "steps": demixer.n_steps_,
        "seconds": round(demixer.seconds_, 3),
        "notes": demixer.notes_,
        "data": demixer.digest_,
        "provenance": provenance(),
        **demixer._facts(),
        **({} if names is None else {"feature_names": names}),
    }


def load_model(folder: str | Path, *, device: str = "cpu") -> Any:
    """Open a model folder as the fitted estimator that wrote it; nothing in it is executed.

    The model is put on ``device``, wherever it was trained.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from demix import InstanceDemixer, load_model
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     InstanceDemixer(n_latents=2).fit(x).save(folder)
    ...     load_model(folder).transform(x).shape
    (100, 2)
    """
    encoder, head, about = open_model(folder)
    name = about.get("estimator")
    if not isinstance(name, str) or name not in _MODULES:
        raise DemixError(
            f"{folder} holds a bare encoder and no estimator; open it with load_encoder."
        )
    check_facts(about, folder)
    check_device(device)
    given = about["parameters"]
    try:
        space = given.get("space")  # before a space of any size is built
        if given.get("n_latents") != encoder.space.dim or (
            isinstance(space, dict) and space != encoder.space.to_dict()
        ):
            raise ValueError("its parameters name another space than its encoder has")
        parameters = {name: _rich(name, value) for name, value in given.items()}
        kind = getattr(import_module(_MODULES[name]), name)
        demixer: Any = kind(**{**parameters, "device": device})
        demixer.seed_ = demixer._seed()
        demixer._space()
        demixer.gain_ = Gain.from_dict(about["gain"])
        demixer.history_, demixer.notes_ = list(about["history"]), list(about["notes"])
        demixer.best_step_, demixer.n_steps_ = int(about["best_step"]), int(about["steps"])
        demixer.seconds_, demixer.digest_ = float(about["seconds"]), str(about["data"])
        demixer.encoder_ = encoder.to(device)
        demixer.n_features_in_ = math.prod(encoder.shape)
        if "feature_names" in about:
            if len(about["feature_names"]) != demixer.n_features_in_:
                raise ValueError("it has another number of names than of columns")
            demixer.feature_names_in_ = np.array(about["feature_names"], dtype=object)
        demixer._restore(head, about)
    except _BROKEN as error:
        raise DemixError(f"{folder} does not describe a fitted {name}: {reason(error)}.") from error
    return demixer


class LostAugmentation:
    """Stands for the augmentation of a loaded model; a folder holds its name only."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = str(name)

    def __repr__(self) -> str:
        return f"LostAugmentation({self.__qualname__!r})"

    def __call__(self, x: Tensor) -> Tensor:
        """Raise a DemixError."""
        raise DemixError(
            f"The model was fitted with the augmentation {shortened(self.__qualname__)}, but its "
            "folder holds the name only; set it again with set_params(augmentation=...)."
        )


def _plain(value: Any) -> Any:
    """Return a parameter as plain data; of a callable its name, of other objects None."""
    if isinstance(value, np.generic):  # as of a grid over an array
        value = value.item()
    if isinstance(value, Real) and not isinstance(value, int):  # such as a Fraction
        value = float(value)
    if callable(value):
        return name_of(value)
    if hasattr(value, "to_dict"):  # a space
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):  # a recipe
        value = asdict(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | range | np.ndarray):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return None


def _rich(name: str, value: Any) -> Any:
    if name == "augmentation" and value is not None:
        return LostAugmentation(value)
    if name == "space" and isinstance(value, dict):
        return Space.from_dict(value)
    if name == "recipe" and isinstance(value, dict):
        return Recipe(**value)
    return tuple(value) if isinstance(value, list) else value


def check_facts(about: Mapping[str, Any], place: Any, *, complete: bool = True) -> None:
    """Raise a DemixError if a fact has another type than a fit writes.

    Checksums do not protect from whoever wrote the folder. Unless ``complete``, facts may be
    missing, as those of a bare encoder are.
    """
    for name, (test, words) in {**_FACTS, **_OPTIONAL}.items():
        required = complete and name not in _OPTIONAL
        if (required or name in about) and not test(about.get(name)):
            got = shortened(repr(about[name]), 60) if name in about else "nothing"
            raise DemixError(f"Expected {words} as {name} in {place}, but got {got}; fit it again.")


def facts_in_words(encoder: Encoder, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the assumptions and settings of a fit, for a report."""
    parameters, space = about["parameters"], encoder.space
    known = "conditional" in parameters
    conditional = parameters["conditional"] or default_conditional(space) if known else None
    facts = {
        "estimator": about["estimator"],
        "space": repr(space),
        "conditional": conditional,
        "marginal": parameters.get("marginal"),
        "logits": parameters.get("logits"),
        "lag": parameters.get("lag") if about.get("time_order") else None,
        "latents": space.dim,
        "rows": about.get("rows"),
        "features": encoder.settings["dim_in"],
        "steps": f"{about['steps']}, best after {about['best_step']}",
        "training": f"{about['seconds']:.0f} s",
        "seed": parameters.get("random_state"),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _is(kind: type) -> Test:
    return lambda value: isinstance(value, kind)


_is_text, _is_mapping, _is_truth = _is(str), _is(dict), _is(bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | str) or _is_number(value)


def _list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _mapping_of(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _is_gain(value: Any) -> bool:
    ends = ("low", "high", "linear")
    return (
        isinstance(value, dict)
        and set(value) == {"bits", "ceiling", "loss", "sharpness", "p_value", *ends}
        and all(_is_number(v) or (v is None and name in ends) for name, v in value.items())
    )


_texts, _record = _list_of(_is_text), _mapping_of(lambda x: x is None or _is_number(x))
_FACTS: dict[str, tuple[Test, str]] = {  # each fact, its test, and what is expected in words
    "estimator": (_is_text, "a name"),
    "parameters": (_is_mapping, "a mapping"),
    "gain": (_is_gain, "eight numbers"),
    "history": (_list_of(_record), "records of numbers"),
    "best_step": (_is_count, "a whole number"),
    "steps": (_is_count, "a whole number"),
    "seconds": (_is_number, "a number"),
    "notes": (_texts, "sentences"),
    "data": (_is_text, "a checksum"),
    "provenance": (_mapping_of(_is_plain), "a mapping of plain values"),
}
_OPTIONAL: dict[str, tuple[Test, str]] = {  # those that only some fits have
    "feature_names": (lambda x: _texts(x) and len(set(x)) == len(x), "names that differ"),
    "classes": (_list_of(_is_plain), "labels"),
    "origin": (_mapping_of(_is_plain), "a mapping of plain values"),
    "rows": (_is_count, "a whole number"),
    "time_order": (_is_truth, "true or false"),
}
