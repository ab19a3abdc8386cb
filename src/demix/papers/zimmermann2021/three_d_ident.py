"""Tables 4 and 5 of Zimmermann et al. (2021): 3DIdent, on images held out and trained on."""

from __future__ import annotations

from demix.papers.runner.declaration import Experiment
from demix.papers.zimmermann2021.scenes import SceneRow

TABLES_4_5 = Experiment(
    name="clica-3dident",
    title="Tables 4 and 5: 3DIdent",
    scores=("r2", "mcc", "r2_train", "mcc_train"),
    source="Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process",
    data="a folder that `demix render 3dident` wrote, or several, with pairs or without",
    notes=(
        "Scores in percent. Regressions are fitted on one half of the images and scored on the "
        "other. The paper's figures are of 3 seeds, 250 000 images of 224 x 224 for training and "
        "25 000 for the test, and pairs of nearest images; ours of the folders that `--data` "
        "gives, of which the last tenth is for the test, and exact pairs where the folder holds "
        "them. Otherwise, at laptop scale, pairs of nearest images with a conditional that is "
        "narrow in what is hard to see, and two stages: 32 outputs without bounds, then the model.",
        "The identity is the image, reduced to at most 16 x 16 pixels.",
    ),
    rows=(
        SceneRow(
            1, "normal", "box", 2,
            matched=True,
            paper={
                "identity": {"r2": (5.25, 1.20), "r2_train": (5.35, 0.72)},
                "supervised": {
                    "r2": (98.67, 0.03), "mcc": (99.33, 0.01),
                    "r2_train": (99.98, 0.01), "mcc_train": (99.99, 0.01),
                },
                "unsupervised": {
                    "r2": (96.73, 0.10), "mcc": (98.31, 0.04),
                    "r2_train": (97.83, 0.13), "mcc_train": (98.85, 0.07),
                },
            },
        ),
        SceneRow(
            2, "normal", "real", 2,
            paper={
                "unsupervised": {
                    "r2": (96.43, 0.03), "mcc": (54.94, 0.02),
                    "r2_train": (97.72, 0.02), "mcc_train": (55.90, 2.22),
                },
            },
        ),
        SceneRow(
            3, "laplace", "box", 2,
            paper={
                "unsupervised": {
                    "r2": (96.87, 0.08), "mcc": (98.38, 0.03),
                    "r2_train": (97.95, 0.05), "mcc_train": (98.94, 0.03),
                },
            },
        ),
        SceneRow(
            4, "normal", "sphere", "dot",
            paper={
                "unsupervised": {
                    "r2": (65.74, 0.01), "mcc": (42.44, 3.27),
                    "r2_train": (66.73, 0.03), "mcc_train": (42.72, 3.20),
                },
            },
        ),
        SceneRow(
            5, "augmentations", "sphere", "dot",
            paper={"unsupervised": {"r2": (45.51, 1.43), "mcc": (46.34, 1.59)}},
        ),
    ),
)  # fmt: skip
