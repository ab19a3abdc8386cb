"""Figure 3 of Reizinger et al. (2024): ImageNet-X."""

from __future__ import annotations

from demix.papers.datasets.annotations import ImageNetX
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.runner.declaration import Experiment, Panel

FIGURE_3 = Experiment(
    name="ce-imagenetx",
    title="Figure 3: linear read-outs on ImageNet-X",
    scores=("accuracy",),
    source="Reizinger et al. (2024), Cross-Entropy Is All You Need To Invert the Data Generating "
    "Process",
    data="images (a folder or a tar archive), annotations of ImageNet-X (.jsonl) and, to check the "
    "classifier, labels (.csv); or features (.npy beside names.txt) in place of images",
    panels=(
        Panel(
            "Linear read-outs from balanced rows",
            "",
            score="accuracy",
            y_label="accuracy in percent",
        ),
    ),
    notes=(
        "Accuracies in percent, 50 by chance: mean and standard error over 10 balanced "
        "resamplings, 70 % to fit a logistic regression and 30 % to score it. A star: a t-test of "
        "the ten against 50 at the paper's level 0.05/85. The ten share images, so that it "
        "overstates.",
        "Held out: accuracy on the 30 % of one balanced split of which no image is used twice. A "
        "star: Fisher's exact test at the same level.",
        "Too rare: even a perfect read-out of the images held out could not reach that level.",
        "Random: the same net at random initialisation. Pixels: the images through a fixed random "
        "projection to as many features.",
    ),
    rows=tuple(
        FactorRow(number, factor) for number, factor in enumerate(ImageNetX.target_names, start=1)
    ),
)
