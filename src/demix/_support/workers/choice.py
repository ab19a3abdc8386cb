"""An executor by its name on the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from demix._support.errors import DemixError
from demix._support.extras import need
from demix._support.workers.local import Workers

_PATIENCE = 10
"""Seconds within which a scheduler has to answer."""


# What the cells of a sweep import; torch's optimisers would import the second one by themselves.
_NEEDED = ("demix.papers.runner", "torch._dynamo")


@contextmanager
def opened(name: str, *, patience: float = _PATIENCE) -> Iterator[Executor]:
    """Give the executor of a sweep by its name, and close it in the end.

    Parameters
    ----------
    name : str
        ``local`` or ``local:N`` for processes of this machine, ``dask:ADDRESS`` for a cluster.
    patience : float
        Seconds within which a cluster has to answer.

    Examples
    --------
    >>> from demix._support.workers.choice import opened
    >>> with opened("local:0"):
    ...     pass
    Traceback (most recent call last):
    demix.DemixError: --executor takes local, local:N with N processes, ...
    """
    kind, colon, what = name.partition(":")
    if kind == "local" and (not colon or (what.isdecimal() and int(what))):
        with Workers(int(what) if colon else None, preload=_NEEDED) as workers:
            yield workers
    elif kind == "dask" and what:
        with _dask(what, patience) as cluster:
            yield cluster
    else:
        raise DemixError(
            "--executor takes local, local:N with N processes, or dask:ADDRESS with the address "
            f"of a scheduler, but got {name!r}."
        )


@contextmanager
def _dask(address: str, patience: float) -> Iterator[Executor]:
    dask = need("distributed", "A Dask cluster", "cluster")
    try:
        asyncio.run(_reach(dask, address, patience))
        client = dask.Client(address, timeout=patience, set_as_default=False)
    except Exception as error:  # each kind of address fails in its own way
        said = " ".join(str(error).split()) or type(error).__name__
        raise DemixError(
            f"No Dask scheduler answers at {address} ({said}); give the address that 'dask "
            "scheduler' shows, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        yield client.get_executor(pure=False)


async def _reach(dask: Any, address: str, patience: float) -> None:
    """Connect, and no more; a client that fails in an odd way takes long to end."""
    told = dask.Security().get_connection_args("client")
    (await dask.comm.connect(address, timeout=patience, **told)).abort()
