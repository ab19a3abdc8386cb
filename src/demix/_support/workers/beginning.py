"""The environment in which processes of Python begin."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# The environment is one for all threads.
_LOCK = threading.Lock()


@contextmanager
def beginning(**variables: str) -> Iterator[None]:
    """Give these variables to processes that begin meanwhile, and no modules of this folder.

    ``python -c``, which `multiprocessing` begins all its processes with, looks for modules in the
    current folder first: a ``struct.py`` that somebody has put there would be run.

    Examples
    --------
    >>> import subprocess, sys
    >>> from demix._support.workers.beginning import beginning
    >>> with beginning():
    ...     subprocess.call([sys.executable, "-c", "import sys; sys.exit('' in sys.path)"])
    0
    """
    wanted = variables | {"PYTHONSAFEPATH": "1"}
    with _LOCK:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
