"""``demix demo``: a known process, from its mixture to a report of the recovered factors."""

from pathlib import Path
from typing import Annotated, Any

import typer

from demix.cli.options import AsJson, Overwrite, app

_LATENTS = 5
_SIMILARITY = 1.0
_SAMPLES = 20_000


@app.command(epilog="Example:  demix demo --out demo-output")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of mixing, weights and data.")] = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Mix known factors nonlinearly, recover them, and report how well.

    Writes scores.json, report.html (one file, works offline) and a model folder.
    """
    import numpy as np
    import torch

    import demix
    from demix._support.outputs import check_folder
    from demix._support.provenance import provenance
    from demix._support.validation import check_seed, seed_apart
    from demix.cli.claims import claimed
    from demix.cli.console import console, print_json, print_lines
    from demix.cli.evaluate import scores_as_data
    from demix.cli.progress import TrainingTask, training_bar
    from demix.metrics.registry import RECOVERY
    from demix.report.blocks import write_page
    from demix.report.recovery import recovery_page
    from demix.report.words import said
    from demix.theory.optimum import latent_loss
    from demix.theory.setting import Setting, identified

    check_seed(seed)
    terminal = console(errors=as_json)
    box = demix.Box(_LATENTS)
    mixing = demix.LeakyMixing(_LATENTS, seed=seed)
    process = demix.Process(demix.Uniform(box), demix.Laplace(box, 0.05), mixing)
    promise = identified(Setting("pairs", box, "laplace"))
    encoder = demix.Encoder(process.mixing.dim_out, box, scale=8.0)
    recipe = demix.Recipe(steps=800)
    held_out = torch.Generator().manual_seed(seed_apart(seed, 1))
    test = process.sample(4096, generator=held_out)
    batches = [process.sample(recipe.batch, generator=held_out) for _ in range(16)]
    best = [float(latent_loss(process, batch, _SIMILARITY)) for batch in batches]
    batch, optimum = batches[0], sum(best) / len(best)

    def evaluate(encoder: Any) -> dict[str, float]:
        pair = encoder(batch.x), encoder(batch.x_tilde)
        loss = demix.contrast(*pair, similarity=_SIMILARITY, two_sided=True)
        score = 100 * demix.affine_r2(encoder(test.x), test.z)
        # On the same pairs, so that their noise cancels.
        return {"score": score, "nats_above_optimum": float(loss) - best[0], "optimum": optimum}

    with claimed("demo", out, "scores.json", [], overwrite=overwrite) as claim:
        check_folder(claim.folder / "model")
        terminal.print(said("demo begins", factors=_LATENTS)["text"])
        with training_bar(terminal) as progress:
            bar = TrainingTask(progress, "training", "R²")
            training = demix.train(
                *(encoder, process.sample, demix.InfoNCE(_SIMILARITY), recipe),
                seed=seed,
                evaluate=evaluate,
                callback=lambda step, last: bar.step(step, recipe.steps, last),
            )
        pairs = process.sample(_SAMPLES, generator=held_out)
        with torch.no_grad():
            latents, factors = encoder(pairs.x).numpy(), pairs.z.numpy()
        scores = demix.all_scores(latents, factors, categorical=[], only=RECOVERY)
        identity = demix.affine_r2(pairs.x, pairs.z)
        names = [f"factor {i}" for i in range(1, _LATENTS + 1)]
        facts: dict[str, Any] = {
            "r2": float(scores["affine_r2"]),
            "mcc": float(scores["mean_correlation"]),
            "seconds": round(training.seconds, 2),
            "steps": training.steps,
            "interrupted": training.interrupted,
            "identity_r2": float(identity),
            "nats_above_optimum": (training.history or [{}])[-1].get("nats_above_optimum"),
            "scores": scores_as_data(scores, names, np.zeros(_LATENTS, dtype=bool)),
            "provenance": {"command": f"demix demo --seed {seed}", **provenance()},
        }
        explained = {"raw": 100 * identity, "found": 100 * scores["affine_r2"]}
        promised = {"theorem": promise.theorem, "up_to": promise.words}
        words = said("demo", factors=_LATENTS, **promised, **explained)
        page = recovery_page(
            *(words["title"], words["summary"], latents, factors, scores),
            history=training.history,
            seconds=training.seconds,
            provenance=facts["provenance"] | {"seed": seed, "recipe": repr(recipe)},
        )
        claim.begin()
        demix.save_encoder(encoder, claim.folder / "model", about={"seed": seed, "r2": facts["r2"]})
        written = write_page(page, claim.folder / "report.html")
        claim.finish(facts)
    if as_json:
        print_json(facts)
        return
    print_lines(
        f"Held-out R² {100 * facts['r2']:.2f} % (raw observations {100 * identity:.2f} %), "
        f"MCC {100 * facts['mcc']:.2f} %, in {training.seconds:.0f} s of training.",
        f"Open {written}; scores and model are in the same folder.",
    )
