"""``demix demo``: the whole way on a small process, with a report in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from demix._support.outputs import check_folder
from demix._support.provenance import provenance
from demix._support.validation import check_seed
from demix.cli.bars import Bar, training_bar
from demix.cli.claims import begin, claimed, finish
from demix.cli.console import console
from demix.cli.recovery import recovery_report, scores_as_data
from demix.distributions.base import Uniform
from demix.distributions.generalized_normal import Laplace
from demix.encoders.encoder import Encoder
from demix.encoders.files import save_encoder
from demix.losses.contrast import contrast
from demix.losses.pairs import InfoNCE
from demix.metrics.registry import RECOVERY, all_scores
from demix.metrics.regression import affine_r2
from demix.processes.mixing import LeakyMixing
from demix.processes.process import Process
from demix.report.page import write_page
from demix.spaces.box import Box
from demix.theory.optimum import latent_loss
from demix.training.loop import Record, train
from demix.training.recipe import Recipe

_MARKER = "scores.json"
_LATENTS = 5
_SIMILARITY = 1.0
_SAMPLES = 20_000


def run_demo(out: Path, *, seed: int, overwrite: bool, as_json: bool) -> None:
    """Recover five factors from a nonlinear mixture and write scores, model and report."""
    check_seed(seed)
    claim = claimed(out, _MARKER, command="demix demo", inputs=[], overwrite=overwrite)
    with claim as (folder, origin):
        check_folder(folder / "model")
        _recover(folder, origin, seed=seed, as_json=as_json)


def _recover(folder: Path, origin: dict[str, str], *, seed: int, as_json: bool) -> None:
    terminal = console(errors=as_json)
    box = Box(_LATENTS)
    process = Process(Uniform(box), Laplace(box, 0.05), LeakyMixing(_LATENTS, seed=seed))
    encoder = Encoder(process.mixing.dim_out, box, scale=8.0)
    recipe = Recipe(steps=1500)
    held_out = torch.Generator().manual_seed(2**40 + seed)
    look = process.sample(4096, generator=held_out)
    batches = [process.sample(recipe.batch, generator=held_out) for _ in range(16)]
    best = [float(latent_loss(process, batch, _SIMILARITY)) for batch in batches]
    batch, optimum = batches[0], sum(best) / len(best)

    def evaluate(encoder: Encoder) -> Record:
        found = contrast(
            encoder(batch.x), encoder(batch.x_tilde), similarity=_SIMILARITY, two_sided=True
        )
        score = affine_r2(encoder(look.x), look.z)
        above = float(found) - best[0]  # on the same pairs, so that their noise cancels
        return {"score": 100 * score, "nats_above_optimum": above, "optimum": optimum}

    terminal.print(
        f"{_LATENTS} independent factors in a box, mixed by a random invertible network; "
        "pairs of observations differ by Laplace noise of the factors.\n"
        "Recovering the factors from such pairs alone:"
    )
    with training_bar(terminal) as progress:
        bar = Bar(progress, "training", recipe.steps, "R²")
        training = train(
            encoder,
            process.sample,
            InfoNCE(_SIMILARITY),
            recipe,
            seed=seed,
            evaluate=evaluate,
            callback=bar.step,
        )
    pairs = process.sample(_SAMPLES, generator=held_out)
    with torch.no_grad():
        latents = encoder(pairs.x).numpy()
    factors = pairs.z.numpy()
    scores = all_scores(latents, factors, categorical=[], only=RECOVERY)
    identity = affine_r2(pairs.x, pairs.z)
    facts: dict[str, Any] = {
        "r2": float(scores["affine_r2"]),
        "mcc": float(scores["mean_correlation"]),
        "seconds": round(training.seconds, 2),
        "steps": training.steps,
        "interrupted": training.interrupted,
        "identity_r2": float(identity),
        "nats_above_optimum": training.history[-1]["nats_above_optimum"]
        if training.history
        else None,
        "scores": scores_as_data(
            scores, [f"factor {i + 1}" for i in range(_LATENTS)], np.zeros(_LATENTS, dtype=bool)
        ),
        "provenance": {"command": f"demix demo --seed {seed}", **provenance()},
    }
    page = recovery_report(
        title="demix demo: factors recovered from a nonlinear mixture",
        summary=(
            f"{_LATENTS} independent factors, uniform in a box, were mixed by an invertible "
            "network of random leaky layers. From pairs of observations whose factors differ by "
            "Laplace noise, and nothing else, an encoder was trained with the contrastive loss of "
            "Zimmermann et al. (2021, Eq. 6, p = 1), for which Theorem 6 promises them up to "
            f"order, sign and scale. A linear read-out of the raw observations explains "
            f"{100 * identity:.1f} % of the factors, of the recovered latents "
            f"{100 * scores['affine_r2']:.2f} %. All scores are held out."
        ),
        latents=latents,
        factors=factors,
        scores=scores,
        history=training.history,
        seconds=training.seconds,
        provenance=facts["provenance"] | {"seed": seed, "recipe": repr(recipe)},
    )
    begin(folder / _MARKER, origin)
    save_encoder(encoder, folder / "model", about={"seed": seed, "r2": facts["r2"]})
    write_page(page, folder / "report.html")
    finish(folder / _MARKER, facts)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    typer.echo(
        f"Held-out R² {100 * facts['r2']:.2f} % (raw observations {100 * identity:.2f} %), "
        f"MCC {100 * facts['mcc']:.2f} %, in {training.seconds:.0f} s of training.\n"
        f"Open {folder / 'report.html'}; scores and model are beside it."
    )
