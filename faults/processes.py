"""Commands in processes that can be killed, limited and demoted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.outcome import Done
from tests.command import Commands

# Set in the child before the command runs. For root nothing is read-only, so that it ceases to be
# root, with all libraries at hand, which may lie where nobody else can look.
LIMITS = {
    "": "",
    "file size": "resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))",
    "memory": """
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + most, size + most))
""",
    "signals": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))",
    "nobody": """
import onnx, PIL.Image
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
""",
}
CODE = """
import os, resource, sys
most = int(sys.argv.pop(1))
{limit}
import demix.__main__
demix.__main__.main()
"""
# Ways that a command may end: by itself, or killed.
KILLED = -signal.SIGKILL


@contextmanager
def serving(folder: Path) -> Iterator[Commands]:
    """Give commands that share the seconds of importing, once they are ready."""
    folder.mkdir()
    commands = Commands(folder)
    try:
        commands.run("--version")
        yield commands
    finally:
        commands.close()


class Processes:
    """Runs commands one at a time, each in a process of its own."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def run(self, *arguments: object, limit: str = "", most: int = 0) -> Done:
        """Run `demix` to its end, within a limit."""
        self.start(*arguments, limit=limit, most=most)
        return self.wait()

    def timed(self, *arguments: object) -> tuple[Done, float]:
        """Run `demix` to its end, and return how long that took."""
        start = time.monotonic()
        return self.run(*arguments), time.monotonic() - start

    def start(self, *arguments: object, limit: str = "", most: int = 0) -> int:
        """Start `demix`, and return the number of its process."""
        code = CODE.format(limit=LIMITS[limit])
        self._process = self._commands.start_python(code, most, *arguments)
        return self._process

    def wait(self) -> Done:
        """Wait for the end of what was started."""
        return self._commands.wait()

    def running(self) -> bool:
        """Whether what was started has not ended yet."""
        with suppress(ProcessLookupError):
            os.kill(self._process, 0)
            return True
        return False

    def killed(self, moment: Callable[[], bool], *arguments: object) -> Done:
        """Run `demix` until a moment has come, and kill it then if it still runs."""
        self.start(*arguments)
        while self.running() and not moment():
            time.sleep(0.0005)
        return self.killed_now()

    def killed_now(self) -> Done:
        """Kill what was started, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        return self.wait()
