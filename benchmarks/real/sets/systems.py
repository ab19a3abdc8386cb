"""Physical simulators (deeptime, dysts), their states seen through a fixed random net."""

from __future__ import annotations

import numpy as np

from benchmarks.real.task import Dataset, Task, seen_through_net

_COLUMNS = 20


def triple_well() -> Task:
    """A particle in a plane with three wells, in a heat bath."""
    from deeptime.data import triple_well_2d

    walk = triple_well_2d(h=1e-3, n_steps=300).trajectory([[-1.0, 0.0]], length=6000, seed=5)
    return _seen(walk, n_latents=2, seed=11)


def thomas() -> Task:
    """Thomas' attractor, which is chaotic and looks alike in three directions."""
    return _flow("Thomas", n_latents=3, seed=12)


def quadruple_well() -> Task:
    """A particle in a plane with four wells."""
    from deeptime.data import quadruple_well as wells

    walk = wells(h=1e-3, n_steps=300).trajectory([[-1.0, 0.0]], length=4000, seed=6)
    return _seen(walk, n_latents=2, seed=21)


def lorenz() -> Task:
    """Lorenz' attractor."""
    return _flow("Lorenz", n_latents=3, seed=22)


def _flow(name: str, *, n_latents: int, seed: int) -> Task:
    """Return 25 moments of each of 240 periods, after 40 others."""
    from dysts import flows
    from scipy.integrate import solve_ivp

    flow = getattr(flows, name)()
    times = flow.period * np.arange(40 * 25, 280 * 25) / 25
    path = solve_ivp(
        lambda time, state: flow.rhs(state, time),
        (0, times[-1]),
        flow.ic,
        t_eval=times,
        rtol=1e-7,
        atol=1e-9,
    )
    return _seen(path.y.T, n_latents=n_latents, seed=seed)


def _seen(states: np.ndarray, *, n_latents: int, seed: int) -> Task:
    states = np.asarray(states, dtype=np.float64)
    x = seen_through_net(states, _COLUMNS, seed)
    factors = (states - states.mean(axis=0)) / states.std(axis=0)
    return Task(x, {"state": factors.astype(np.float32)}, n_latents)


SETS = (
    Dataset("triple well", "series", "20 sensors; two coordinates", triple_well),
    Dataset("Thomas", "series", "20 sensors; three coordinates", thomas),
)
OTHERS = (
    Dataset("quadruple well", "series", "20 sensors; two coordinates", quadruple_well),
    Dataset("Lorenz", "series", "20 sensors; three coordinates", lorenz),
)
