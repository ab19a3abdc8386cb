"""Checks of arrays, seeds and shares at the border of the package."""

from numbers import Real
from typing import Any

import numpy as np

from demix._support.errors import DemixError


def check_seed(seed: Any) -> int:
    """Return ``seed`` if all its bits count: torch ignores those above the 32nd on a CPU."""
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise DemixError(f"A seed must be a whole number from 0 to 2^32 - 1, but got {seed!r}.")
    return int(seed)


def seed_apart(seed: int, stream: int) -> int:
    """Return the seed of random numbers that are independent of those of ``seed`` itself."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])


def check_share(share: Any, name: str) -> None:
    """Raise :class:`DemixError` unless ``share`` is a number in ``[0, 1)``."""
    if not isinstance(share, Real) or not 0 <= float(share) < 1:
        raise DemixError(f"{name} must be a number in [0, 1), but got {share!r}.")


def check_device(device: Any) -> None:
    """Raise :class:`DemixError` if this machine or this build of torch lacks a device."""
    import torch

    try:
        usable = torch.empty(0, device=torch.device(device)).device.type != "meta"
    except Exception:  # torch fails in many ways, also over modules that it lacks
        usable = False
    if not usable:
        raise DemixError(
            f"Expected a device that torch can use here, such as 'cpu', but got {str(device)!r}."
        )


def refuse_masked(array: Any, name: str) -> None:
    """Raise if entries are masked as missing; as numbers they would look like any other."""
    for part in array if isinstance(array, list | tuple) else (array,):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise DemixError(
                f"Expected {name} without gaps, but {np.ma.count_masked(part)} of their entries "
                "are masked; remove the rows or fill them with .filled(...)."
            )


def as_numpy(array: Any, name: str) -> Any:
    """Return tensors, or a list of them, as arrays; anything else as it is, unless masked."""
    refuse_masked(array, name)
    if isinstance(array, list | tuple):
        return [as_numpy(x, name) if hasattr(x, "detach") else x for x in array]
    if not hasattr(array, "detach"):
        return array
    try:
        tensor = array.detach().cpu().resolve_conj().resolve_neg()
        # NumPy has no bfloat16.
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
        kind = f"{array.dtype} on {array.device}, {array.layout}"
        raise DemixError(
            f"Expected {name} that NumPy can hold, but got a tensor of {kind}; convert it, e.g. "
            "with .to_dense().float()."
        ) from error


def check_matrix(array: Any, name: str, *, keep_float32: bool = False) -> np.ndarray:
    """Return ``array`` as a finite float64 matrix ``(N, d)``; raise if that is not possible.

    With ``keep_float32`` a matrix of float32 is returned as it is.
    """
    array = as_numpy(array, name)
    try:
        matrix = np.asarray(array)
        most = 1e100 if matrix.dtype.kind == "f" else 2.0**53  # from there on whole ones merge
        if matrix.dtype.kind not in "biuf":
            raise TypeError(matrix.dtype)
        if not keep_float32 or matrix.dtype != np.float32:
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DemixError(f"{name} must be an array of numbers, but got {error}.") from error
    if matrix.ndim != 2:
        raise DemixError(
            f"{name} must be a matrix (samples, dimensions), but has shape {matrix.shape}; "
            "reshape a single dimension with [:, None]."
        )
    if float(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0)) >= most:
        raise DemixError(f"{name} must lie below {most:g}, but hold larger values; rescale them.")
    bad = int((~np.isfinite(matrix)).any(axis=1).sum())
    if bad:
        raise DemixError(
            f"{name} must be finite, but {bad} of its {len(matrix)} rows hold NaN or infinity; "
            "remove or impute them."
        )
    return matrix


def check_enough_rows(rows: int, latents: int) -> None:
    """Raise a DemixError if there are too few rows to score so many latents."""
    least = 2 * (latents + 2)  # half fit with an intercept, the others score
    if rows < least:
        raise DemixError(
            f"Scoring {latents} latents held out needs at least {least} rows, but got {rows}."
        )


def check_pair(latents: Any, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return latents ``(N, m)`` and factors ``(N, n)`` that can be scored against each other."""
    z, s = check_matrix(latents, "latents"), check_matrix(factors, "factors")
    if len(z) != len(s):
        raise DemixError(
            f"latents and factors must have one row per sample, but have {len(z)} and "
            f"{len(s)} rows."
        )
    if z.shape[1] == 0 or s.shape[1] == 0:
        raise DemixError(
            f"latents and factors need columns, but have {z.shape[1]} and {s.shape[1]}."
        )
    check_enough_rows(*z.shape)
    constant = np.flatnonzero(np.ptp(s, axis=0) == 0)
    if len(constant):
        raise DemixError(
            f"Every factor must vary, but column {', '.join(map(str, constant))} of factors "
            "(counted from 0) is constant; drop it."
        )
    return z, s
