"""Every variant of the laptop plan, one factor at a time.

A variant that leaves the plan of a row as it is (a group that is there already, say) is not run on
that row. Names joined by ``+`` are applied one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.search.plan import Plan
from demix._support.errors import DemixError

Patch = Callable[[Plan], Plan]
BASELINE = "baseline"
COMBINED = "combined"


@dataclass(frozen=True)
class Variant:
    """A change of the plan, under its name."""

    name: str
    factor: str
    patch: Patch


def plan(**changes: Any) -> Patch:
    """Replace fields of the plan."""
    return lambda given: replace(given, **changes)


def body(**changes: Any) -> Patch:
    """Replace fields of the body."""
    return lambda given: replace(given, body=replace(given.body, **changes))


def shape(width: int | None = None, depth: int | None = None) -> Patch:
    """Set width, depth or both; the other stays."""

    def patch(given: Plan) -> Plan:
        hidden = given.body.hidden
        hidden = (width or hidden[0],) * (depth or len(hidden))
        return replace(given, body=replace(given.body, hidden=hidden))

    return patch


def rule(**changes: Any) -> Patch:
    """Replace fields of the optimiser, or the rates of the recipe."""
    rates = {name: changes.pop(name) for name in ("matrix_rate", "rate") if name in changes}

    def patch(given: Plan) -> Plan:
        recipe = replace(given.recipe, **rates)
        return replace(given, recipe=recipe, optimiser=replace(given.optimiser, **changes))

    return patch


def recipe(**changes: Any) -> Patch:
    """Replace fields of the recipe."""
    return lambda given: replace(given, recipe=replace(given.recipe, **changes))


def times(factor: float, *names: str) -> Patch:
    """Multiply fields of the recipe."""

    def patch(given: Plan) -> Plan:
        old = {name: getattr(given.recipe, name) for name in names}
        new = {name: type(value)(factor * value) for name, value in old.items()}
        return replace(given, recipe=replace(given.recipe, **new))

    return patch


def size(factor: float) -> Patch:
    """Multiply where the size of the output space starts."""
    return lambda given: replace(given, size=factor * given.size)


def within(pairs: int) -> Patch:
    """Contrast within groups."""

    def patch(given: Plan) -> Plan:
        now = getattr(given.objective, "within", None) or given.recipe.batch
        return given if now == pairs else replace(given, within=pairs)

    return patch


def paper_body(width: int) -> Patch:
    """Take the paper's body, ``width`` instead of 500 units wide."""
    hidden = (width // 5, *(4 * [width]), width // 5)
    return body(hidden=hidden, activation="leaky_relu", kind="plain")


def both(*patches: Patch) -> Patch:
    """Apply one patch after the other."""

    def patch(given: Plan) -> Plan:
        for each in patches:
            given = each(given)
        return given

    return patch


_FACTORS: dict[str, dict[str, Patch]] = {
    # The baseline on other weights and samples: how much of a difference is chance.
    "noise": {f"again-{i}": plan(again=i) for i in (1, 2, 3)},
    "width": {f"width-{w}": shape(width=w) for w in (32, 48, 96, 128)},
    "depth": {f"depth-{d}": shape(depth=d) for d in (2, 3, 4, 6, 12)},
    "body": {
        "128x2": shape(128, 2),
        "128x4": shape(128, 4),
        "96x4": shape(96, 4),
        "256x2": shape(256, 2),
        "48x12": shape(48, 12),
        "32x16": shape(32, 16),
        "plain-silu": body(kind="plain"),
        "plain-leaky": body(kind="plain", activation="leaky_relu 0.2"),
        "plain-leaky-64x3": both(shape(64, 3), body(kind="plain", activation="leaky_relu 0.2")),
        "paper-fifth": paper_body(100),
        "paper-half": paper_body(250),
        "blocks-64-128": both(shape(depth=4), body(kind="block", inner=128)),
        "blocks-32-128": both(shape(32, 4), body(kind="block", inner=128)),
        "gated-64-64": both(shape(depth=4), body(kind="gated", inner=64)),
        "input-skip": body(input_skip=True),
    },
    "activation": {
        "gelu": body(activation="gelu"),
        "gelu-tanh": body(activation="gelu (tanh)"),
        "relu": body(activation="relu"),
        "leaky-0.01": body(activation="leaky_relu"),
        "leaky-0.2": body(activation="leaky_relu 0.2"),
        "squared-relu": body(activation="squared relu"),
        "tanh": body(activation="tanh"),
        "elu": body(activation="elu"),
        "hardswish": body(activation="hardswish"),
        "mish": body(activation="mish"),
        "softplus": body(activation="softplus"),
    },
    "normalisation": {
        "layer-norm": body(norm="pre layer"),
        "rms-norm": body(norm="pre rms"),
        "rms-norm-after": body(norm="post rms"),
        "rms-norm-last": body(norm="final rms"),
        "batch-norm": body(norm="pre batch"),
        "inputs-standardised": plan(inputs="standardised"),
        "inputs-raw": plan(inputs="raw"),
    },
    "batch": {
        "batch-quarter": times(0.25, "batch"),
        "batch-half": times(0.5, "batch"),
        "batch-double": times(2, "batch"),
        "batch-fourfold": times(4, "batch"),
        "grow-half-to-double": plan(batches=((0.4, 0.5), (0.8, 1.0), (1.0, 2.0))),
        "grow-quarter-to-one": plan(batches=((0.4, 0.25), (0.7, 0.5), (1.0, 1.0))),
        "grow-quarter-to-fourfold": plan(batches=((0.5, 0.25), (0.8, 1.0), (1.0, 4.0))),
        "group-64": within(64),
        "group-128": within(128),
        "group-256": within(256),
        "group-512": within(512),
        "group-1024": within(1024),
    },
    "optimiser": {
        "adam-0.001": rule(name="adam", matrix_rate=1e-3),
        "adam-0.003": rule(name="adam", matrix_rate=3e-3),
        "adam-0.01": rule(name="adam", matrix_rate=1e-2),
        "adam-all-0.003": rule(name="adam", matrix_rate=3e-3, rate=3e-3),
        "adamw-0.003": rule(name="adamw", matrix_rate=3e-3, weight_decay=0.1),
        "nadam-0.003": rule(name="nadam", matrix_rate=3e-3),
        "lion-0.0003": rule(name="lion", matrix_rate=3e-4),
        "lion-0.001": rule(name="lion", matrix_rate=1e-3),
        "sgd-0.03": rule(name="sgd", momentum=0.9, matrix_rate=0.03),
        "sgd-0.2": rule(name="sgd", momentum=0.9, matrix_rate=0.2),
        "normuon": rule(name="normuon"),
        "muon-momentum-0.85": rule(momentum=0.85),
        "muon-momentum-0.9": rule(momentum=0.9),
        "muon-momentum-0.98": rule(momentum=0.98),
        "muon-plain-momentum": rule(nesterov=False),
        "muon-weight-decay": rule(weight_decay=0.1),
        "adam-betas-0.9-0.95": rule(betas=(0.9, 0.95)),
        "adam-betas-0.8-0.99": rule(betas=(0.8, 0.99)),
    },
    "rates": {
        "rates-half": times(0.5, "matrix_rate", "rate"),
        "rates-double": times(2, "matrix_rate", "rate"),
        "matrices-quarter": times(0.25, "matrix_rate"),
        "matrices-half": times(0.5, "matrix_rate"),
        "matrices-1.5": times(1.5, "matrix_rate"),
        "matrices-double": times(2, "matrix_rate"),
        "matrices-fourfold": times(4, "matrix_rate"),
        "vectors-0.3": times(0.3, "rate"),
        "vectors-3": times(3, "rate"),
        "biases-0.3": rule(biases=0.3),
        "biases-3": rule(biases=3.0),
        "size-0.3": rule(size=0.3),
        "size-3": rule(size=3.0),
        "first-0.3": rule(first=0.3),
        "first-3": rule(first=3.0),
        "last-0.3": rule(last=0.3),
        "last-3": rule(last=3.0),
        "ends-by-adam": rule(ends_by_adam=3e-3),
    },
    "newton-schulz": {
        "quintic-1": rule(ns_steps=1),
        "quintic-2": rule(ns_steps=2),
        "quintic-3": rule(ns_steps=3),
        "quintic-4": rule(ns_steps=4),
        "quintic-7": rule(ns_steps=7),
        "polar-express-3": rule(orthogonal="polar express", ns_steps=3),
        "polar-express-4": rule(orthogonal="polar express", ns_steps=4),
        "polar-express-5": rule(orthogonal="polar express"),
        "cubic-5": rule(orthogonal="cubic"),
        "exact": rule(orthogonal="exact"),
        "rows": rule(orthogonal="rows"),
        "norm-only": rule(orthogonal="norm only"),
    },
    "averaging": {
        "ema-2%": plan(averaging=("ema", 0.02)),
        "ema-5%": plan(averaging=("ema", 0.05)),
        "ema-10%": plan(averaging=("ema", 0.1)),
        "tail-20%": plan(averaging=("tail", 0.2)),
        "ema-5%-constant": plan(averaging=("ema", 0.05), decay="none"),
        "tail-20%-constant": plan(averaging=("tail", 0.2), decay="none"),
        "ema-5%-to-a-tenth": plan(averaging=("ema", 0.05), decay="cosine to a tenth"),
        "lookahead": plan(averaging=("lookahead", 0.0)),
    },
    "warm-up": {f"warm-up-{share:g}": recipe(warmup=share) for share in (0.0, 0.02, 0.1, 0.2)},
    "decay": {
        "linear": plan(decay="linear"),
        "square": plan(decay="square"),
        "to-a-tenth": plan(decay="cosine to a tenth"),
        "from-30%": plan(decay="linear from 30 %"),
        "from-50%": plan(decay="linear from 50 %"),
        "from-70%": plan(decay="linear from 70 %"),
        "root-from-50%": plan(decay="root from 50 %"),
        "constant": plan(decay="none"),
    },
    "precision": {
        "bfloat16": plan(precision="bfloat16"),
        "float64": plan(precision="float64"),
        "newton-schulz-bfloat16": rule(orthogonal="quintic in bfloat16"),
    },
    "initial scale": {
        "size-quarter": size(0.25),
        "size-half": size(0.5),
        "size-double": size(2.0),
        "size-fourfold": size(4.0),
        "inner-zero": body(start="inner zero"),
        "inner-half": body(start="inner half"),
        "inner-double": body(start="inner double"),
        "last-tenth": body(start="last tenth"),
        "last-double": body(start="last double"),
        "orthogonal": body(start="orthogonal"),
    },
}

VARIANTS = {BASELINE: Variant(BASELINE, BASELINE, lambda given: given)} | {
    name: Variant(name, factor, patch)
    for factor, patches in _FACTORS.items()
    for name, patch in patches.items()
}
assert len(VARIANTS) == 1 + sum(map(len, _FACTORS.values())), "two variants share a name"
FACTORS = (*_FACTORS, COMBINED)


def variant_named(name: str) -> Variant:
    """Return the variant called ``name``; ``a+b`` is ``a`` and then ``b``."""
    parts = name.split("+")
    unknown = [part for part in parts if part not in VARIANTS]
    if unknown:
        raise DemixError(f"Unknown variant {unknown[0]!r}; --list shows the known ones.")
    if len(parts) == 1:
        return VARIANTS[name]
    return Variant(name, COMBINED, both(*(VARIANTS[part].patch for part in parts)))
