"""``python -m benchmarks.calibration``."""

import os
from functools import partial

import typer

from benchmarks.calibration.command import calibrate
from benchmarks.processes import environment
from demix.cli import run

if __name__ == "__main__":
    os.environ.update(environment())  # for the workers
    run(partial(typer.run, calibrate))
