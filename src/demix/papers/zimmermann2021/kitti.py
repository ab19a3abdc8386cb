"""Table 3 of Zimmermann et al. (2021): KITTI Masks."""

from __future__ import annotations

from demix.papers.runner.declaration import Experiment
from demix.papers.zimmermann2021.videos import VideoRow

TABLE_3 = Experiment(
    name="clica-kitti",
    title="Table 3: KITTI Masks",
    scores=("mcc", "r2"),
    source="Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process",
    data="MOTS annotations: folders or archives of KITTI-MOTS and MOTSChallenge",
    notes=(
        "Scores in percent: Spearman's correlation of vertical position, horizontal position and "
        "area with their latents, of 10. The latent of each factor is chosen on one half of the "
        "frames and scored on the other.",
        "The paper's set has 84 626 frames of 25 videos and its figures 10 seeds; ours has what "
        "`--data` gives.",
    ),
    rows=(
        VideoRow(1, 1, None, "real", (66.1, 4.5)),
        VideoRow(2, 1, 1, "real", (77.1, 1.0)),
        VideoRow(3, 1, 1, "box", (74.1, 4.4)),
        VideoRow(4, 1, 2, "real", (58.3, 5.4)),
        VideoRow(5, 1, 2, "box", (59.9, 5.5)),
        VideoRow(6, 5, None, "real", (79.6, 5.8)),
        VideoRow(7, 5, 1, "real", (79.4, 1.9)),
        VideoRow(8, 5, 1, "box", (80.9, 3.8)),
        VideoRow(9, 5, 2, "real", (60.2, 8.7)),
        VideoRow(10, 5, 2, "box", (68.4, 6.7)),
    ),
)
