"""What ranks cost: measured for real in small, and the model that is fitted to it."""

from __future__ import annotations

import json

import pytest

from benchmarks.bars import judge
from benchmarks.rank_model import Costs, fitted
from benchmarks.rank_tables import rank_tables
from benchmarks.sizes import QUICK

CODE = """
import json, sys
from benchmarks.distributed import measure_distributed
from benchmarks.sizes import QUICK
measured = measure_distributed(QUICK, lambda what: None, method="fork")
open(sys.argv[1], "w").write(json.dumps(measured))
"""
COSTS = Costs(
    dim=10,
    fixed=7e-3,
    draw=2e-6,
    encode=1.4e-5,
    pair=4e-9,
    latency=1e-3,
    byte=1e-9,
    gradients=70_000,
    copies=3.0,
)


@pytest.mark.slow
def test_ranks_are_measured_and_shown(demix, tmp_path):
    done = demix.run_python(CODE, tmp_path / "ranks.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "ranks.json").read_text())
    assert [(e["ranks"], e["batch"]) for e in found["steps"]] == [
        (ranks, batch) for ranks in QUICK.ranks for batch in QUICK.rank_batches
    ]
    for entry in found["losses"]:
        assert min(entry["at_hand"], entry["gathered"]) > 0
    assert [bar["met"] for bar in judge({"distributed": found}, QUICK)] == [None, None]
    tables = rank_tables(found)
    assert len(tables) == 6
    for table in tables.values():
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)


def test_costs_are_recovered_from_what_they_predict():
    batches = (256, 1024, 8192)
    found = fitted(
        10,
        steps={batch: COSTS.compute(batch, 1) for batch in batches},
        draw=(1000, 1000 * COSTS.draw),
        losses={batch: 3e-4 + COSTS.pair * batch**2 for batch in batches},
        hops={size: COSTS.latency + COSTS.byte * size for size in (4096, 2**20, 2**24)},
        gradients=70_000,
        copies=3.0,
    )
    assert vars(found) == pytest.approx(vars(COSTS), rel=1e-6)


def test_one_rank_exchanges_nothing_and_many_share_the_pairs():
    alone = COSTS.predicted(8192, 1)
    assert alone["gather"] == alone["average"] == 0
    assert alone["efficiency"] == 1
    for ranks in (2, 16, 256):
        many = COSTS.predicted(2**20, ranks)
        assert many["efficiency"] < 1
        assert many["compute"] == pytest.approx(
            COSTS.fixed + 2**20 * COSTS.draw + 2**20 / ranks * (COSTS.encode + 2**20 * COSTS.pair)
        )


def test_faster_devices_wait_longer_for_keys():
    device = COSTS.on(times_faster=1000, latency=20e-6, bandwidth=25e9)
    assert device.compute(2**20, 8) == pytest.approx(COSTS.compute(2**20, 8) / 1000)
    assert device.predicted(2**20, 64)["efficiency"] < COSTS.predicted(2**20, 64)["efficiency"]
