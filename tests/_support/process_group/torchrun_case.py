"""Commands under the agent of `torchrun`, whose workers are forked here, not begun anew.

A program: `main(folder, plan)` with a plan of `(command, killed)`; a rank that is to be killed dies
as soon as the file ``killed`` is there.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

import demix.__main__
from demix.estimators.contrastive import ContrastiveDemixer


def rank(command: list[str], killed: str | None) -> None:
    """Run a command on one of the ranks; rank 1 dies in its first life."""
    torch.set_num_threads(1)
    # A fifth of what a fit to so few rows takes, for each of which ranks exchange gradients.
    ContrastiveDemixer._most_steps = 30
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and killed:
        threading.Thread(target=die_with, args=(Path(killed),), daemon=True).start()
    sys.argv = ["demix", *command]
    try:
        demix.__main__.main()
    except SystemExit as end:
        if end.code:
            raise


def die_with(file: Path) -> None:
    """Kill this process once there is a file."""
    while not file.exists():
        time.sleep(0.001)
    print("rank 1 dies", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def main(plan: list[tuple[list[str], str | None]]) -> None:
    """Run commands one after the other on two ranks."""
    logging.disable(logging.CRITICAL)  # what the agent itself has to say
    warnings.simplefilter("default")
    for number, (command, killed) in enumerate(plan):
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=2,
            run_id=str(number),
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=1 if killed else 0,
            monitor_interval=0.05,
            start_method="fork",
        )
        try:
            elastic_launch(config, rank)(command, killed)
        except ChildFailedError as error:
            print(error, file=sys.stderr)
