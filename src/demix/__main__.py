"""``python -m demix``."""

from demix.cli import main

main()
