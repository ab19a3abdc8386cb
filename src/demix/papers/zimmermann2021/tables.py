"""Tables 1 and 2 and the marginal figure of Zimmermann et al. (2021)."""

from __future__ import annotations

from demix.papers.runner.declaration import Distribution, Experiment
from demix.papers.zimmermann2021.pairs import Laptop, PairRow

_PAPER = "Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process"

_NOTES = (
    "Scores in percent. Ours: fitted on one half of fresh samples, scored on the other. The "
    "paper fits and scores on the same samples; mean and standard deviation over its 5 seeds.",
)

_uniform = Distribution("uniform")
_laplace = Distribution("laplace", 0.05)
_normal = Distribution("normal", 0.05)
_cubic = Distribution("gennorm", 0.05, p=3)
_wide_normal = Distribution("normal", 1.0)
_wide_laplace = Distribution("laplace", 1.0)

# A vMF(1) pair carries 0.05 nats: many pairs count, many negatives do not.
_weak = Laptop(1.0, steps=4000, batch=8192, within=256)
_sphere = Laptop(3.0)
_box = Laptop(8.0)
_real = Laptop(1.0)
_wide_real = Laptop(8.0)

TABLE_1 = Experiment(
    name="clica-table1",
    title="Table 1: identifiability up to affine transformations",
    scores=("r2",),
    source=_PAPER,
    notes=_NOTES,
    rows=(
        PairRow(
            1, "sphere", _uniform, Distribution("vmf", 1.0), "sphere", "dot", _weak,
            matched=True,
            paper={
                "identity": (66.98, 2.79),
                "supervised": (99.71, 0.05),
                "unsupervised": (99.42, 0.05),
            },
        ),
        PairRow(
            2, "sphere", _uniform, Distribution("vmf", 10.0), "sphere", "dot", _sphere,
            paper={"unsupervised": (99.86, 0.01)},
        ),
        PairRow(
            3, "sphere", _uniform, _laplace, "sphere", "dot", _sphere,
            limit=True,
            paper={"unsupervised": (99.91, 0.01)},
        ),
        PairRow(
            4, "sphere", _uniform, _normal, "sphere", "dot", _sphere,
            limit=True,
            paper={"unsupervised": (99.86, 0.00)},
        ),
        PairRow(
            5, "box", _uniform, _normal, "real", 2, _real,
            limit=True,
            paper={
                "identity": (67.93, 7.40),
                "supervised": (99.78, 0.06),
                "unsupervised": (99.60, 0.02),
            },
        ),
        PairRow(
            6, "box", _uniform, _laplace, "real", 2, _real,
            limit=True,
            paper={"unsupervised": (99.64, 0.02)},
        ),
        PairRow(
            7, "box", _uniform, _laplace, "real", 3, _real,
            limit=True,
            paper={"unsupervised": (99.70, 0.02)},
        ),
        PairRow(
            8, "box", _uniform, _normal, "real", 3, _real,
            limit=True,
            paper={"unsupervised": (99.69, 0.02)},
        ),
        PairRow(
            9, "sphere", _wide_normal, _laplace, "sphere", "dot", _sphere,
            limit=True,
            paper={
                "identity": (63.37, 2.41),
                "supervised": (99.70, 0.07),
                "unsupervised": (99.02, 0.01),
            },
        ),
        PairRow(
            10, "sphere", _wide_normal, _normal, "sphere", "dot", _sphere,
            limit=True,
            paper={"unsupervised": (99.02, 0.02)},
        ),
        PairRow(
            11, "real", _wide_laplace, _wide_normal, "real", 2, _real,
            paper={
                "identity": (62.49, 1.65),
                "supervised": (99.65, 0.04),
                "unsupervised": (98.13, 0.14),
            },
        ),
        PairRow(
            12, "real", _wide_normal, _wide_normal, "real", 2, _real,
            paper={
                "identity": (63.57, 2.30),
                "supervised": (99.61, 0.17),
                "unsupervised": (98.76, 0.03),
            },
        ),
    ),
)  # fmt: skip

TABLE_2 = Experiment(
    name="clica-table2",
    title="Table 2: identifiability up to generalised permutations",
    scores=("mcc",),
    source=_PAPER,
    notes=_NOTES,
    rows=(
        PairRow(
            1, "box", _uniform, _laplace, "box", 1, _box,
            matched=True,
            paper={
                "identity": (46.55, 1.34),
                "supervised": (99.93, 0.03),
                "unsupervised": (98.62, 0.05),
            },
        ),
        PairRow(
            2, "box", _uniform, _cubic, "box", 3, _box,
            limit=True,
            matched=True,
            paper={"unsupervised": (99.90, 0.06)},
        ),
        PairRow(
            3, "box", _uniform, _normal, "box", 2, _box,
            limit=True,
            paper={"unsupervised": (99.77, 0.01)},
        ),
        PairRow(
            4, "box", _uniform, _laplace, "box", 2, _box,
            limit=True,
            paper={"unsupervised": (99.76, 0.02)},
        ),
        PairRow(
            5, "box", _uniform, _cubic, "box", 1, _box,
            limit=True,
            paper={"unsupervised": (98.80, 0.02)},
        ),
        PairRow(
            6, "box", _uniform, _laplace, "real", 1, _wide_real,
            paper={"supervised": (99.97, 0.03), "unsupervised": (98.57, 0.02)},
        ),
        PairRow(
            7, "box", _uniform, _cubic, "real", 3, _real,
            limit=True,
            paper={"unsupervised": (99.85, 0.01)},
        ),
        PairRow(
            8, "box", _uniform, _normal, "real", 2, _real,
            limit=True,
            paper={"unsupervised": (58.26, 3.00)},
        ),
        PairRow(
            9, "box", _uniform, _laplace, "real", 2, _real,
            limit=True,
            paper={"unsupervised": (59.67, 2.33)},
        ),
        PairRow(
            10, "box", _uniform, _normal, "real", 3, _real,
            limit=True,
            paper={"unsupervised": (43.80, 2.15)},
        ),
    ),
)  # fmt: skip

MARGINAL = Experiment(
    name="clica-marginal",
    title="Figure: the marginal grows more concentrated than the conditional",
    scores=("r2",),
    source=_PAPER + ", marginal-concentration figure",
    notes=_NOTES,
    rows=tuple(
        PairRow(
            number, "sphere", marginal, Distribution("vmf", 10.0), "sphere", "dot", _sphere,
            matched=marginal.kind == "uniform",
            paper={"unsupervised": None},
        )
        for number, marginal in enumerate(
            [_uniform, *(Distribution("vmf", k) for k in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0))],
            start=1,
        )
    ),
)  # fmt: skip
