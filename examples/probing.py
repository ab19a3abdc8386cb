"""What the latents of a classifier of digits tell, and what the pixels tell already.

Takes the digits that scikit-learn ships.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from class_labels import LATENTS, slant
from common import ACCENT, GREY, keep, panels, parser
from demix import ClassifierDemixer, probe
from demix.metrics.probes.probe import Probe
from demix.report.probe import MEASURES
from demix.report.style import number


def main(given: Sequence[str] | None = None) -> dict[str, Any]:
    """Fit a classifier, and read what nobody told it out of its latents and out of its input."""
    arguments = with_files(parser(__file__, str(__doc__))).parse_args(given)
    digits = load_digits()
    count = 1200 if arguments.quick else len(digits.data)
    x, y = digits.data[:count].astype(np.float32), digits.target[:count]
    train, test = train_test_split(
        np.arange(count), test_size=0.6, stratify=y, random_state=arguments.seed
    )
    written = x[:, x[train].std(axis=0) > 0]  # without corners in which nobody writes
    fitted = ClassifierDemixer(
        n_latents=LATENTS, encoder={"components": 20}, random_state=arguments.seed
    ).fit(written[train], y[train])
    features = {"latents": fitted.transform(written[test]), "pixels": x[test]}
    factors = known(digits.images[test], y[test], arguments.seed)
    if arguments.files is not None:
        write(arguments.files, features, factors)
    return shown({name: probe(rows, factors) for name, rows in features.items()}, arguments)


def with_files(arguments: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add where files for the command line go."""
    arguments.add_argument("--files", type=Path, help="folder for what `demix probe` reads")
    return arguments


def known(images: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> dict[str, Any]:
    """Return what is known of digits: which one, and what can be measured on its pixels."""
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    ink = images.sum(axis=(1, 2))
    return {
        "digit": np.array(words)[y],
        "odd": y % 2,
        "slant": slant(images),
        "ink": ink,
        "blot": (ink > np.quantile(ink, 0.995)).astype(int),
        "noise": np.random.default_rng(seed).normal(size=len(y)),
    }


def write(folder: Path, features: Mapping[str, Any], factors: Mapping[str, Any]) -> None:
    """Write features as .npy and factors as .csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in features.items():
        np.save(folder / f"{name}.npy", rows)
    table = zip(*factors.values(), strict=True)
    lines = [",".join(factors), *(",".join(map(str, line)) for line in table)]
    (folder / "factors.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"Wrote {', '.join(f'{name}.npy' for name in features)} and factors.csv to {folder}")


def shown(found: Mapping[str, Probe], arguments: argparse.Namespace) -> dict[str, Any]:
    """Draw and keep what was read out of rows that neither the classifier nor a map has seen."""
    tested = [one.factor.name for one in found["latents"].factors if one.read_out is not None]
    figure, (axis,) = panels(1)
    rows = [[name, MEASURES[found["latents"][name].read_out.measure]] for name in tested]
    for features, shift, shade in (("latents", -0.2, ACCENT), ("pixels", 0.2, GREY)):
        each = [found[features][name] for name in tested]
        value, low, high = np.array([one.read_out.tested for one in each]).T
        places = np.arange(len(tested)) + shift
        axis.barh(places, value, 0.36, color=shade, label=features)
        axis.errorbar(value, places, xerr=[value - low, high - value], fmt="none", ecolor="k")
        for i, row in enumerate(rows):
            row += [f"{value[i]:.3f} ({low[i]:.3f} to {high[i]:.3f})", f"{each[i].bonferroni:.2g}"]
    chance = [one.read_out.chance.value for one in each]
    axis.plot(chance, range(len(tested)), "|", color="k", label="chance")
    axis.set(yticks=range(len(tested)), yticklabels=tested, xlabel="r, AUC or balanced accuracy")
    axis.invert_yaxis()
    axis.legend(frameon=False)
    rows = [[*row, number(level)] for row, level in zip(rows, chance, strict=True)]
    parts = found["latents"].split
    skipped = [one for one in found["latents"].factors if one.read_out is None]
    return keep(
        arguments,
        "Read linearly out of digits that were held out",
        ["factor", "score", "latents", "p, Bonferroni", "pixels", "p, Bonferroni", "chance"],
        rows,
        [
            f"{LATENTS} latents, 64 pixels; of digits that the classifier has not seen "
            f"{len(parts.train)} fit, {len(parts.validation)} choose the penalty and "
            f"{len(parts.test)} score, with 95 % intervals.",
            *(f"Not testable: {one.factor.name}, {one.reason}." for one in skipped),
        ],
        figure,
        scores={
            features: {name: each[name].to_dict() for name in tested}
            for features, each in found.items()
        },
    )


if __name__ == "__main__":
    main()
