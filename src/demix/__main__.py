"""The command ``demix``, also as ``python -m demix``: it knows which rooms add commands."""

import sys

# As `python -m` the current folder comes first, where anybody's modules may lie, or demix itself.
if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] + "/demix" not in __file__:
    del sys.path[0]

from importlib import import_module

from demix.cli import run

# In the order in which the help lists them, with the room that adds them.
_OWN = "demo fit consensus transform report checkup compare evaluate probe export"
_PAPERS = "list reproduce download render"
_COMMANDS = dict.fromkeys(_OWN.split(), "cli") | dict.fromkeys(_PAPERS.split(), "papers.commands")


def main() -> None:
    """Run the command."""
    run(_command)


def _command() -> None:
    from demix.cli.options import app

    # The help lists all commands; any other use needs one.
    for command in [name for name in sys.argv[1:2] if name in _COMMANDS] or _COMMANDS:
        import_module(f"demix.{_COMMANDS[command]}.{command}")
    app()


if __name__ == "__main__":
    main()
