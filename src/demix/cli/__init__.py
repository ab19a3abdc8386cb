"""The command line. Only typer and rich are imported before a command runs."""

import os
import signal
import sys
import time
from collections.abc import Callable

from demix._support.errors import DemixError

# Environment variables that are whole numbers, with the least value and the most digits.
_SETTINGS = (
    *(("COLUMNS", 20, 4), ("LINES", 1, 4), ("TERMINAL_WIDTH", 20, 4), ("SOURCE_DATE_EPOCH", 0, 11)),
    *(("JOBLIB_MULTIPROCESSING", 0, 1), ("SKLEARN_WORKING_MEMORY", 0, 7)),
    *(("NUMPY_MADVISE_HUGEPAGE", 0, 1), ("SKLEARN_PAIRWISE_DIST_CHUNK_SIZE", 1, 7)),
)
# How settings begin over which torch, joblib and pandas fail at import. They are for compilers,
# their logs and hooks, processes of joblib and tables of pandas, none of which demix uses.
_UNUSED = (
    *("TORCH_LOGS", "TORCHDYNAMO", "TORCHINDUCTOR", "AOTINDUCTOR", "PYTORCH_JIT", "COMPILE_"),
    *("PYTORCH_MATCHER", "TORCH_PYTHON_NATIVE", "JOBLIB_ST", "LOKY_", "PANDAS_"),
    "GOMP_CPU_AFFINITY",  # a wrong one hangs libgomp; OMP_PLACES says the same
)
_GRACE = 3.0  # seconds after which a rank other than 0 prints its error
# How numpy, torch, the loader of libraries and Python's import say that there is no memory left.
_NO_MEMORY = ("allocate memory", "failed to map segment", "error return without exception set")


def run(app: Callable[[], object]) -> None:
    """Run an application; bad input ends with one sentence and exit code 2."""
    try:
        # Imported here, because Ctrl-C may come meanwhile.
        from demix.cli.console import console, escape_unknown_letters, flush_output, warnings_to

        escape_unknown_letters()
        _mend_environment()
        try:
            os.getcwd()  # if it is gone, libraries would end the process with other messages
            if sys.stdout is None:
                raise DemixError("The standard output is closed; send it to a file or /dev/null.")
            with warnings_to(console(errors=True)):
                app()
        finally:
            flush_output()
    except (KeyboardInterrupt, SystemExit) as end:
        cause = end.__context__ and end.__context__.__cause__  # typer wraps Ctrl-C
        if isinstance(end, SystemExit) and not isinstance(cause, KeyboardInterrupt):
            raise
        ignore_interrupts()
        from demix.cli.console import print_error

        print_error("Interrupted.")
        sys.exit(130)
    except (DemixError, MemoryError, RuntimeError, OSError, ImportError, SystemError) as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        if os.environ.get("RANK", "0") != "0":  # torchrun ends them when rank 0 ends
            time.sleep(_GRACE)
        from demix.cli.console import print_error

        print_error(sentence)
        sys.exit(2)


def ignore_interrupts() -> None:
    """Let no further Ctrl-C break what a command does at its end, after the first one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _mend_environment() -> None:
    """Remove settings over which terminals and libraries fail, and let threads wait asleep."""
    for name, least, digits in _SETTINGS:
        value = os.environ.get(name, "")
        usable = value.isascii() and value.isdecimal() and len(value) <= digits
        if not (usable and int(value) >= least):
            os.environ.pop(name, None)
    for name in [name for name in os.environ if name.startswith(_UNUSED)]:
        del os.environ[name]
    # Threads that wait for each other sleep: others may need the processor to come to an end.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if os.environ.get("TORCH_DISTRIBUTED_DEBUG") not in ("OFF", "INFO", "DETAIL"):
        os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)


def _sentence(error: Exception) -> str | None:
    """Return the message for an error; None for an unexpected one."""
    if isinstance(error, DemixError):
        return str(error)
    if isinstance(error, RecursionError):  # all that is read is looked at before
        return "Too many folders lie in each other there; choose a shorter name."
    told = f"{error} {error.__cause__}"  # scipy tells of a broken installation
    if isinstance(error, MemoryError) or any(words in told for words in _NO_MEMORY):
        return (
            "Memory ran out; finished parts are kept, and the same command continues after them "
            "once there is more."
        )
    if "can't start new thread" in told:
        return "No more threads can be started; raise the limit (ulimit -u) or use fewer processes."
    if isinstance(error, OSError) and error.strerror:
        if isinstance(error, FileNotFoundError) and error.filename is None:
            return "The current folder is gone; change to one that exists."
        place = "the output" if error.filename is None else os.fsdecode(error.filename)
        return f"Cannot use {place}: {error.strerror}; choose another place or make room."
    return None
