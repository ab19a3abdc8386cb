"""Tables 1 to 5 and the marginal figure of Zimmermann et al. (2021)."""

from typing import Any

from demix.papers.runner.experiment import Experiment, Published
from demix.papers.runner.original import Distribution
from demix.papers.zimmermann2021.pairs import ANY, AnyMarginalRow, ConcentrationRow, Laptop, PairRow
from demix.papers.zimmermann2021.scenes import SceneRow
from demix.papers.zimmermann2021.videos import VideoRow

_laplace = Distribution("laplace", 0.05)
_normal = Distribution("normal", 0.05)
_cubic = Distribution("gennorm", 0.05, p=3)
_wide_normal = Distribution("normal", 1.0)
_vmf10 = Distribution("vmf", 10.0)

# Spaces and marginals of processes; spaces, similarities and budgets of models.
_sphere, _box = (("sphere", Distribution("uniform")), ("box", Distribution("uniform")))
_to_sphere = ("sphere", "dot", Laptop(3.0))
# A vMF(1) pair carries 0.05 nats: many pairs count, many negatives do not.
_to_sphere_weak = ("sphere", "dot", Laptop(1.0, steps=4000, batch=8192, within=256))
_to_box = {p: ("box", p, Laptop(8.0)) for p in (1, 2, 3)}
_to_real = {p: ("real", p, Laptop(8.0 if p == 1 else 1.0)) for p in (1, 2, 3)}


def _row(
    number: int,
    process: Any,
    conditional: Distribution,
    model: Any,
    ours: Published,
    supervised: Published | None = None,
    identity: Published | None = None,
    **flags: Any,
) -> PairRow:
    """Return a row with its published figures by model, in the order in which the models run."""
    figures = {"identity": identity, "supervised": supervised, "unsupervised": ours}
    paper = {name: figure for name, figure in figures.items() if figure is not None}
    (space, marginal), (model_space, similarity, laptop) = process, model
    return PairRow(
        number, space, marginal, conditional, model_space, similarity, laptop, paper=paper, **flags
    )


# Rows whose marginal is not uniform.
_uneven = (
    _row(9, ("sphere", _wide_normal), _laplace, _to_sphere,
         (99.02, 0.01), (99.70, 0.07), (63.37, 2.41), narrow=True),
    _row(10, ("sphere", _wide_normal), _normal, _to_sphere, (99.02, 0.02), narrow=True),
    _row(11, ("real", Distribution("laplace", 1.0)), _wide_normal, _to_real[2],
         (98.13, 0.14), (99.65, 0.04), (62.49, 1.65)),
    _row(12, ("real", _wide_normal), _wide_normal, _to_real[2],
         (98.76, 0.03), (99.61, 0.17), (63.57, 2.30)),
)  # fmt: skip

TABLE_1 = Experiment.of(
    "clica-table1",
    _row(1, _sphere, Distribution("vmf", 1.0), _to_sphere_weak,
         (99.42, 0.05), (99.71, 0.05), (66.98, 2.79), matched=True),
    _row(2, _sphere, _vmf10, _to_sphere, (99.86, 0.01)),
    _row(3, _sphere, _laplace, _to_sphere, (99.91, 0.01), narrow=True),
    _row(4, _sphere, _normal, _to_sphere, (99.86, 0.00), narrow=True),
    _row(5, _box, _normal, _to_real[2],
         (99.60, 0.02), (99.78, 0.06), (67.93, 7.40), narrow=True),
    _row(6, _box, _laplace, _to_real[2], (99.64, 0.02), narrow=True),
    _row(7, _box, _laplace, _to_real[3], (99.70, 0.02), narrow=True),
    _row(8, _box, _normal, _to_real[3], (99.69, 0.02), narrow=True),
    *_uneven,
)  # fmt: skip

TABLE_2 = Experiment.of(
    "clica-table2",
    _row(1, _box, _laplace, _to_box[1],
         (98.62, 0.05), (99.93, 0.03), (46.55, 1.34), matched=True),
    _row(2, _box, _cubic, _to_box[3], (99.90, 0.06), narrow=True, matched=True),
    _row(3, _box, _normal, _to_box[2], (99.77, 0.01), narrow=True),
    _row(4, _box, _laplace, _to_box[2], (99.76, 0.02), narrow=True),
    _row(5, _box, _cubic, _to_box[1], (98.80, 0.02), narrow=True),
    _row(6, _box, _laplace, _to_real[1], (98.57, 0.02), (99.97, 0.03)),
    _row(7, _box, _cubic, _to_real[3], (99.85, 0.01), narrow=True),
    _row(8, _box, _normal, _to_real[2], (58.26, 3.00), narrow=True),
    _row(9, _box, _laplace, _to_real[2], (59.67, 2.33), narrow=True),
    _row(10, _box, _normal, _to_real[3], (43.80, 2.15), narrow=True),
)  # fmt: skip

_marginals = [_sphere[1], *(Distribution("vmf", k) for k in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0))]
MARGINAL = Experiment.of(
    "clica-marginal",
    *(
        ConcentrationRow(
            number, "sphere", marginal, _vmf10, "sphere", "dot", _to_sphere[2],
            matched=number == 1, paper={"unsupervised": None, ANY: None},
        )
        for number, marginal in enumerate(_marginals, start=1)
    ),
)  # fmt: skip

BEYOND = Experiment.of(
    "clica-any",
    *(
        AnyMarginalRow(
            number, row.space, row.marginal, row.conditional, row.model_space, row.similarity,
            row.laptop, narrow=row.narrow, paper={ANY: row.paper["unsupervised"]},
        )
        for number, row in enumerate(_uneven, start=1)
    ),
)  # fmt: skip


def _video(number: int, delta: int, similarity: Any, space: Any, *figure: float) -> VideoRow:
    model = "slowvae" if similarity is None else "unsupervised"
    return VideoRow(number, delta, similarity, space, paper={model: {"mcc": figure}})


TABLE_3 = Experiment.of(
    "clica-kitti",
    _video(1, 1, None, "real", 66.1, 4.5),
    _video(2, 1, 1, "real", 77.1, 1.0),
    _video(3, 1, 1, "box", 74.1, 4.4),
    _video(4, 1, 2, "real", 58.3, 5.4),
    _video(5, 1, 2, "box", 59.9, 5.5),
    _video(6, 5, None, "real", 79.6, 5.8),
    _video(7, 5, 1, "real", 79.4, 1.9),
    _video(8, 5, 1, "box", 80.9, 3.8),
    _video(9, 5, 2, "real", 60.2, 8.7),
    _video(10, 5, 2, "box", 68.4, 6.7),
)


def _scores(
    r2: Published, mcc: Published, r2_train: Published, mcc_train: Published
) -> dict[str, Published]:
    return {"r2": r2, "mcc": mcc, "r2_train": r2_train, "mcc_train": mcc_train}


TABLES_4_5 = Experiment.of(
    "clica-3dident",
    SceneRow(1, "normal", "box", 2, matched=True, paper={
        "identity": {"r2": (5.25, 1.20), "r2_train": (5.35, 0.72)},
        "supervised": _scores((98.67, 0.03), (99.33, 0.01), (99.98, 0.01), (99.99, 0.01)),
        "unsupervised": _scores((96.73, 0.10), (98.31, 0.04), (97.83, 0.13), (98.85, 0.07)),
    }),
    SceneRow(2, "normal", "real", 2, paper={
        "unsupervised": _scores((96.43, 0.03), (54.94, 0.02), (97.72, 0.02), (55.90, 2.22)),
    }),
    SceneRow(3, "laplace", "box", 2, paper={
        "unsupervised": _scores((96.87, 0.08), (98.38, 0.03), (97.95, 0.05), (98.94, 0.03)),
    }),
    SceneRow(4, "normal", "sphere", "dot", paper={
        "unsupervised": _scores((65.74, 0.01), (42.44, 3.27), (66.73, 0.03), (42.72, 3.20)),
    }),
    SceneRow(5, "augmentations", "sphere", "dot", paper={
        "unsupervised": {"r2": (45.51, 1.43), "mcc": (46.34, 1.59)},
    }),
)  # fmt: skip

EXPERIMENTS = (TABLE_1, TABLE_2, TABLE_3, TABLES_4_5, MARGINAL, BEYOND)
