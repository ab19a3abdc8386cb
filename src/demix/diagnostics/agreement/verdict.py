"""One sentence about what runs agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from demix.diagnostics.agreement.group import Group
from demix.estimators.gain import Gain

STABLE = 0.8
"""A dimension is stable if the lower end of its interval reaches this R² (a correlation of about
0.9) and lies above the null."""
LEARNT = 0.5
"""If fewer than this share of the runs know anything about held-out positives or labels, none of
their dimensions is stable: what untrained encoders agree on is the data, not latents."""


def stable_dimensions(low: np.ndarray, null: np.ndarray, gains: Sequence[Gain]) -> np.ndarray:
    """Say of each dimension ``(n,)`` whether it is stable.

    Examples
    --------
    >>> import numpy as np
    >>> from demix import Gain
    >>> from demix.diagnostics.agreement.verdict import stable_dimensions
    >>> gain = Gain(bits=1.0, low=0.9, high=1.1, loss=1.0, null=1.7)
    >>> stable_dimensions(np.array([0.9, 0.5]), np.zeros(2), [gain, gain])
    array([ True, False])
    """
    learnt = np.mean([gain.above_zero for gain in gains]) >= LEARNT
    return np.asarray((low >= STABLE) & (low > null) & learnt)


def verdict(
    stable: np.ndarray, low: np.ndarray, gains: Sequence[Gain], group: Group, untrained: float
) -> str:
    """Return the sentence.

    Parameters
    ----------
    stable : ndarray (n,) of bool
        See :func:`stable_dimensions`.
    low : ndarray (n,)
        Lower ends of the intervals.
    gains : sequence of Gain
        Of the runs.
    group : Group
        What runs may differ by.
    untrained : float
        Mean R² of encoders that were not trained.
    """
    n, runs = len(stable), len(gains)
    idle = sum(not gain.above_zero for gain in gains)
    if runs - idle < LEARNT * runs:
        return (
            f"Not stable: {idle} of {runs} runs learnt nothing that holds for new data (their "
            "gain is not above zero), so that what they agree on are no latents."
        )
    if not stable.any():
        return (
            f"Not stable: no dimension reaches a held-out R² of {STABLE:g} between {runs} runs, up "
            f"to {group.words}."
        )
    also = f"; {idle} of them learnt nothing that holds for new data" if idle else ""
    if stable.all():
        told = (
            f"Stable up to {group.words}: {runs} runs agree on all {n} dimensions, with a held-out "
            f"R² of at least {low.min():.3f}{also}"
        )
    else:
        shaky = (np.flatnonzero(~stable) + 1).tolist()
        which = "Dimension" if len(shaky) == 1 else "Dimensions"
        told = (
            f"{which} {', '.join(map(str, shaky))} of {n} {'is' if len(shaky) == 1 else 'are'} not "
            f"stable; on the others {runs} runs agree up to {group.words}, with a held-out R² of "
            f"at least {low[stable].min():.3f}{also}"
        )
    if untrained >= low[stable].min():
        told += f"; untrained encoders agree as well (R² {untrained:.3f}): this alone proves little"
    return told + "."
