"""The measurements of several ranks, and what follows from them, as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.words import BenchTable, figure, mib, percent, seconds


def rank_tables(section: dict[str, Any]) -> dict[str, BenchTable]:
    """Return the tables of what :func:`benchmarks.distributed.measure_distributed` found."""
    predicted = section["predicted"]
    return {
        "strong": _strong(section),
        "weak": _weak(section),
        "exchange": _exchange(section),
        "costs": _costs(section),
        "predicted-cores": _predicted(predicted["core"], "cores like this one, on this machine"),
        "predicted-accelerators": _predicted(predicted["accelerator"], "accelerators"),
    }


def _by_ranks(section: dict[str, Any]) -> dict[int, dict[int, dict[str, Any]]]:
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for entry in section["steps"]:
        found.setdefault(entry["ranks"], {})[entry["batch"]] = entry
    return found


def _strong(section: dict[str, Any]) -> BenchTable:
    steps = _by_ranks(section)
    more = [ranks for ranks in steps if ranks > 1]
    rows = []
    for batch in [entry["batch"] for entry in section["losses"]]:
        entries = {ranks: steps[ranks][batch] for ranks in steps}
        rows.append(
            [
                str(batch),
                *(seconds(entry["seconds"]) for entry in entries.values()),
                *(figure(entries[ranks]["speedup"]) for ranks in more),
                seconds(entries[2]["model"]),
            ]
        )
    header = [
        "batch",
        *(_ranks(count) for count in steps),
        *(f"{count} / 1" for count in more),
        "model, 2 ranks",
    ]
    return BenchTable("strong scaling, one training step", header, rows, [_crowded(section)])


def _weak(section: dict[str, Any]) -> BenchTable:
    own, steps = section["batch"] // 2, _by_ranks(section)
    rows = []
    for ranks, entries in steps.items():
        entry = entries[own * ranks]
        comparisons = own * own * ranks / entry["seconds"]
        rows.append(
            [
                str(ranks),
                str(own * ranks),
                seconds(entry["seconds"]),
                f"{own * ranks / entry['seconds']:,.0f}",
                figure(comparisons / 1e6),
                seconds(entry["model"]),
            ]
        )
    header = ["ranks", "batch", "step", "pairs/s", "million comparisons/s, each rank", "model"]
    title = f"weak scaling, {own} pairs on each rank"
    return BenchTable(title, header, rows, [_crowded(section)])


def _exchange(section: dict[str, Any]) -> BenchTable:
    rows = [
        [
            str(entry["batch"]),
            seconds(entry["at_hand"]),
            seconds(entry["gathered"]),
            percent(entry["added"]),
        ]
        for entry in section["losses"]
    ]
    header = ["batch", "keys at hand", "gathered", "adds"]
    memory, hops = section["memory"], section["hops"]
    told = ", ".join(f"{_size(hop['bytes'])} takes {seconds(hop['seconds'])}" for hop in hops)
    notes = [
        f"At batch {memory['batch']} the loss adds {mib(memory['bytes'])} to a rank.",
        f"A hop of {told}.",
    ]
    return BenchTable("the loss on two ranks, forward and backward", header, rows, notes)


def _costs(section: dict[str, Any]) -> BenchTable:
    costs = section["costs"]
    named = [
        ("a step, whatever the batch", seconds(costs["fixed"])),
        ("drawing a pair, on every rank", seconds(costs["draw"])),
        ("encoding a pair, on its rank", seconds(costs["encode"])),
        ("a query with a key", f"{1e9 * costs['pair']:.2f} ns"),
        ("a hop to the next rank", seconds(costs["latency"])),
        ("rate of a hop", f"{1e-9 / costs['byte']:.2f} GB/s"),
        ("gradients of the encoder", f"{costs['gradients'] / 1024:.0f} KiB"),
        ("arrays of all keys", figure(costs["copies"])),
    ]
    rows = [[name, value] for name, value in named]
    return BenchTable(f"fitted costs, d = {costs['dim']}", ["what", "costs"], rows, [])


def _predicted(device: list[dict[str, Any]], whose: str) -> BenchTable:
    rows = [
        [
            str(row["ranks"]),
            f"{2**20 // row['ranks']:,}",
            *(seconds(row[part]) for part in ("compute", "average", "gather")),
            percent(row["efficiency"]),
            mib(row["bytes"]),
        ]
        for row in device
    ]
    header = ["ranks", "pairs each", "compute", "gradients", "keys", "efficiency", "memory"]
    return BenchTable(f"a batch of 2^20 on {whose}", header, rows, [])


def _crowded(section: dict[str, Any]) -> str:
    return (
        f"One thread for each rank, on {section['cores']} cores; more ranks than cores take turns, "
        "which the model does not know."
    )


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
