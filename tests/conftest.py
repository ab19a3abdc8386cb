"""Puts this folder on the path, so that all tests find `browser` and `command`."""

import signal

# Several folders have one; as modules with doctests they would get in each other's way.
collect_ignore_glob = ["*/conftest.py"]

# A shell starts background jobs with Ctrl-C ignored, and the commands that tests interrupt would
# inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
