"""One training of a plan, step by step; the baseline's is that of :func:`demix.train`."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from benchmarks.search.bodies import build_encoder, start
from benchmarks.search.optimisers import build_optimisers
from benchmarks.search.plan import Plan
from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder, Whitening
from demix.losses.pairs import InfoNCE
from demix.processes.process import Pairs, Process

_LOOKAHEAD = 5  # steps between two averages (Zhang et al., 2019)


class Trainer:
    """An encoder on its way: ``step()`` as often as planned, then ``finish()``."""

    def __init__(self, plan: Plan, process: Process, steps: int, seed: int) -> None:
        self.plan, self.process, self.steps = plan, process, steps
        seed += 1_000_000 * plan.again
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = build_encoder(plan)
        start(self.encoder, plan, self.generator)
        self._fit_inputs()
        if plan.precision == "float64":
            self.encoder.double()
        self.optimisers = build_optimisers(self.encoder, plan)
        self.peaks = [[g["lr"] for g in o.param_groups] for o in self.optimisers]
        self.average: list[Tensor] = []
        self.averaged = 0
        self.done = 0
        self.encoder.train()

    def _fit_inputs(self) -> None:
        sample = self.process.sample(max(4096, self.plan.recipe.batch), generator=self.generator)
        whitening = self.encoder.whitening
        if self.plan.inputs == "whitened":
            whitening.fit(sample.x)
        elif self.plan.inputs == "standardised" and isinstance(whitening, Whitening):
            whitening.mean.copy_(sample.x.mean(dim=0))
            whitening.matrix.copy_(torch.diag(1 / sample.x.std(dim=0)))

    def step(self, batch: int | None = None) -> float:
        """Take one step, on ``batch`` pairs if given, and return its loss."""
        factor = self.plan.rate_factor(min(self.done, self.steps - 1), self.steps)
        for optimiser, peaks in zip(self.optimisers, self.peaks, strict=True):
            for group, peak in zip(optimiser.param_groups, peaks, strict=True):
                group["lr"] = peak * factor
        size = batch or self.plan.batch(self.done / self.steps)
        loss = self._loss(self.process.sample(size, generator=self.generator))
        value = loss.item()
        if not torch.isfinite(loss):
            raise DemixError(f"The loss became {value} at step {self.done + 1}.")
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        self.done += 1
        self._average()
        return value

    def _loss(self, pairs: Pairs) -> Tensor:
        plan = self.plan
        if plan.precision == "float64":
            pairs = Pairs(*(part.double() for part in pairs))
        # Not the recipe's bf16, which stays off where the processor has to emulate it: here the
        # price of that is part of what is measured.
        with torch.autocast("cpu", torch.bfloat16, enabled=plan.precision == "bfloat16"):
            if plan.within is None:
                return plan.objective(self.encoder, pairs)
            if isinstance(plan.objective, InfoNCE):
                return replace(plan.objective, within=plan.within)(self.encoder, pairs)
            return self._grouped(pairs, plan.within)

    def _grouped(self, pairs: Pairs, size: int) -> Tensor:
        """Average the objective over groups of pairs that are encoded together."""
        queries, keys = self.encoder(torch.cat([pairs.x, pairs.x_tilde])).chunk(2)
        parts = zip(*(part.split(size) for part in (pairs.z, pairs.z_tilde)), strict=True)
        encoded = zip(queries.split(size), keys.split(size), strict=True)
        same = nn.Identity()  # what is encoded already
        losses = [
            len(q) * self.plan.objective(same, Pairs(z, z_tilde, q, k))  # type: ignore[arg-type]
            for (z, z_tilde), (q, k) in zip(parts, encoded, strict=True)
        ]
        return torch.stack(losses).sum() / len(queries)

    @torch.no_grad()
    def _average(self) -> None:
        kind, span = self.plan.averaging
        if kind == "none" or (kind == "tail" and self.done <= (1 - span) * self.steps):
            return
        if kind == "lookahead" and self.done % _LOOKAHEAD:
            return
        weights = list(self.encoder.parameters())
        if not self.average:
            self.average = [weight.clone() for weight in weights]
        self.averaged += 1
        share = {
            "tail": 1 / self.averaged,
            # Until it has seen its span, the mean of all steps: no bias towards the start.
            "ema": max(1 / self.averaged, 1 / max(1.0, span * self.steps)),
            "lookahead": 0.5,
        }[kind]
        for mean, weight in zip(self.average, weights, strict=True):
            mean.lerp_(weight, share)
            if kind == "lookahead":
                weight.copy_(mean)

    @torch.no_grad()
    def finish(self) -> Encoder:
        """Return the encoder with its averaged weights, ready to be scored."""
        for mean, weight in zip(self.average, self.encoder.parameters(), strict=bool(self.average)):
            weight.copy_(mean)
        return self.encoder.eval().float()
