"""A fit opens a table once, scans its rows once before training, and once to encode them."""

from __future__ import annotations

import numpy as np
import pytest

from command import BRIEF

COUNTED = """
import os, sys
from demix.__main__ import main
from demix.data.data import Data

opened, scans, plain = [], [], Data.raw_blocks

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        opened.append(os.path.basename(arguments[0]))

def counted(self, *size):
    scans.append(len(self))
    return plain(self, *size)

sys.addaudithook(watch)
Data.raw_blocks = counted
try:
    main()
except SystemExit as end:
    assert not end.code
print(opened.count("x.csv"), opened.count("more.csv"), *scans)
"""


@pytest.mark.parametrize("option", [None, "--labels", "--pairs", "--instances"])
def test_a_fit_opens_a_table_once_and_scans_it_once(option, demix, tmp_path):
    np.savetxt(tmp_path / "x.csv", np.random.default_rng(0).normal(size=(60, 3)), delimiter=",")
    more = np.arange(60) % 3 if option == "--labels" else np.arange(60).reshape(-1, 2)
    np.savetxt(tmp_path / "more.csv", more, delimiter=",", fmt="%d")
    file = option in ("--labels", "--pairs")
    given = [] if option is None else [option, tmp_path / "more.csv"] if file else [option]
    fit = ["fit", tmp_path / "x.csv", *given, "--n-latents", 2, "--out", tmp_path / "model"]
    run = demix.run_python(BRIEF + COUNTED, *fit)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == f"1 {int(file)} 60 60"
