"""Reading what nobody should have written: it is read or refused in a sentence, soon."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

from alarm import within
from demix._support.errors import DemixError, DemixWarning

# `make faults` looks longer, and elsewhere each time.
LONG = "DEMIX_FUZZ" in os.environ
EXAMPLES = int(os.environ.get("DEMIX_FUZZ", "30"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not LONG,
    database=None,
    suppress_health_check=list(HealthCheck),
)

_SECONDS = 20


def read_or_refused(read: Callable[[], Any]) -> str | None:
    """Return the sentence that something was refused with, None if it was read."""
    with within(_SECONDS), warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)  # of what can be used
        try:
            read()
        except DemixError as error:
            told = str(error)
        else:
            return None
    assert told.endswith((".", "?")), told
    assert told.isprintable(), told
    assert len(told) < 1000, told
    return told
