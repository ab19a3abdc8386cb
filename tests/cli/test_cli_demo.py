"""`demix demo`, ended early by Ctrl-C: what was learned by then is scored, saved and reported."""

from __future__ import annotations

import json
import os
import pty
import re
import signal

import pytest
import torch

from browser import dump_dom
from command import FEWER, HEARD, MAIN
from demix import Box, load_encoder

ON_A_TERMINAL = """
import os, sys
os.dup2(os.open(sys.argv.pop(), os.O_RDWR | os.O_NOCTTY), 2)
"""


def read(terminal: int) -> str:
    """Return what was drawn next, and nothing once the other end is closed."""
    try:
        return os.read(terminal, 4096).decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.fixture(scope="module")
def demo(demix, tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    # The bar is drawn while it moves on a terminal only.
    terminal, end = pty.openpty()
    command = ["demo", "--seed", "5", "--out", out, "--json"]
    process = demix.start_python(ON_A_TERMINAL + HEARD + FEWER + MAIN, *command, os.ttyname(end))
    said, asked = read(terminal), False
    os.close(end)  # once the other process has it
    while drawn := read(terminal):
        said += drawn
        if not asked and re.search(r"[1-9]\d*/800", said):
            os.kill(process, signal.SIGINT)
            asked = True
    os.close(terminal)
    done = demix.wait()
    assert done.returncode == 0, said
    return out, json.loads(done.stdout)


def test_it_writes_scores_report_and_model(demo):
    out, printed = demo
    assert {path.name for path in out.iterdir()} == {"scores.json", "report.html", "model"}
    assert json.loads((out / "scores.json").read_text(encoding="utf-8")) == printed
    assert printed["interrupted"]
    assert 0 < printed["steps"] < 800
    assert 0 < printed["r2"] <= 1
    assert 0 < printed["mcc"] <= 1
    assert 0 < printed["identity_r2"] < 0.95
    assert printed["provenance"]["command"] == "demix demo --seed 5"


def test_its_model_can_be_loaded(demo):
    encoder = load_encoder(demo[0] / "model")
    assert encoder.space == Box(5)
    assert encoder(torch.zeros(2, 5)).isfinite().all()


@pytest.mark.browser
def test_its_report_draws_its_figures_in_a_browser(demo):
    out, printed = demo
    text = re.sub(r"<script\b.*?</script>", "", dump_dom(out / "report.html"), flags=re.DOTALL)
    plots = re.split(r'<div class="plot(?=[ "])', text)[1:]
    assert len(plots) >= 3
    assert all('class="main-svg"' in plot for plot in plots)
    assert f"{100 * printed['r2']:.2f} %" in text
