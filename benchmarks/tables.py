"""The measurements as tables, for the terminal and for the documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import words
from benchmarks.losses import CHUNKED, CUT
from benchmarks.rank_tables import rank_tables
from benchmarks.words import BenchTable

_SCORES = {"r2": "R²", "mcc": "MCC"}


def tables_of(data: dict[str, Any]) -> dict[str, BenchTable]:
    """Return tables of all sections of what :func:`benchmarks.suite.run_suite` measured."""
    makers: dict[str, Callable[[dict[str, Any]], BenchTable]] = {
        "contrast": _contrast,
        "ladder": _ladder,
        "memory": _memory,
        "step": _step,
        "convergence": _convergence,
        "samplers": _samplers,
        "scores": _scores,
        "scaling": _scaling,
        "estimators": _estimators,
        "everyday": _everyday,
        "sweep": _sweep,
        "bars": _bars,
    }
    # Memory and the ladder are parts of the section of losses.
    found = {
        name: make(data)
        for name, make in makers.items()
        if ("contrast" if name in ("memory", "ladder") else name) in data
    }
    return found | (rank_tables(data["distributed"]) if "distributed" in data else {})


def _contrast(data: dict[str, Any]) -> BenchTable:
    rows = []
    for entry in data["contrast"]["entries"]:
        seconds, speedup = entry["seconds"], entry["speedup"]
        rows.append(
            [
                entry["title"],
                str(entry["batch"]),
                words.seconds(seconds["demix"]),
                *(words.seconds(seconds.get(form)) for form in ("dense", "NTXentLoss")),
                *(words.figure(speedup.get(form)) for form in ("dense", "NTXentLoss")),
            ]
        )
    header = ["similarity", "B", "demix", "dense", "NTXentLoss", "dense / demix", "NTXent / demix"]
    title = f"contrast, forward and backward, d = {data['contrast']['dim']}"
    return BenchTable(title, header, rows, _reasons(data))


def _ladder(data: dict[str, Any]) -> BenchTable:
    peers = ("dense", "dense, two-sided", CHUNKED, CUT)
    rows, notes = [], ["Peers as times of demix, which is two-sided where they are."]
    for entry in data["contrast"]["ladder"]:
        seconds = entry["seconds"]
        rows.append(
            [
                *(str(entry[key]) for key in ("dim", "batch")),
                *(words.seconds(seconds[form]) for form in ("demix", "demix, two-sided")),
                *(words.figure(entry["speedup"].get(form)) for form in peers),
                f"{100 * entry['share']:.0f} %",
            ]
        )
        notes += [f"{form} {reason}." for form, reason in entry["left_out"].items()]
    seconds = data["contrast"]["potential"]["seconds"]
    plain, more = (words.seconds(seconds[name]) for name in ("plain", "potential"))
    notes.append(f"A step of the encoder takes {plain}, and with a potential {more}.")
    header = ["d", "B", "demix", "two-sided", *peers, "of peak"]
    return BenchTable("contrast, dot product", header, rows, list(dict.fromkeys(notes)))


def _memory(data: dict[str, Any]) -> BenchTable:
    rows = []
    for entry in data["contrast"]["entries"]:
        if "bytes" in entry:
            weight, saving = entry["bytes"], entry["saving"]
            rows.append(
                [
                    entry["title"],
                    str(entry["batch"]),
                    *(words.mib(weight.get(form)) for form in ("demix", "dense", "NTXentLoss")),
                    *(words.figure(saving.get(form)) for form in ("dense", "NTXentLoss")),
                ]
            )
    for entry in data["contrast"]["large"]:
        rows.append([entry["title"], str(entry["batch"]), words.mib(entry["bytes"]), *4 * ["–"]])
    header = ["similarity", "B", "demix", "dense", "NTXentLoss", "dense / demix", "NTXent / demix"]
    title = f"contrast, peak extra memory, d = {data['contrast']['dim']}"
    return BenchTable(title, header, rows, ["Each in a fresh process.", *_reasons(data)])


def _reasons(data: dict[str, Any]) -> list[str]:
    """Say of each form from which batch on it is left out, and why there."""
    notes: dict[tuple[str, str], str] = {}
    for entry in data["contrast"]["entries"]:
        for form, reason in entry["left_out"].items():
            key = (form, entry["title"])
            notes.setdefault(key, f"{form} {reason} ({entry['title']}, B = {entry['batch']}).")
    return list(notes.values())


def _step(data: dict[str, Any]) -> BenchTable:
    rows = []
    for entry in data["step"]["entries"]:
        seconds = entry["seconds"]
        dense = seconds["dense"]
        rows.append(
            [
                f"{entry['experiment']}, row {entry['row']}",
                *(words.seconds(seconds[form]) for form in ("dense", "ours", "laptop")),
                *(
                    words.figure(None if dense is None else dense / seconds[form])
                    for form in ("ours", "laptop")
                ),
                f"{100 * entry['share_of_peak']:.0f} %",
            ]
        )
    header = ["row", "dense", "contrast", "laptop", "dense / contrast", "dense / laptop", "of peak"]
    rates = data["step"]["rates"]
    notes = [
        "dense: the paper's encoder, batch and Adam with the dense loss; contrast: the same with "
        "`contrast`; laptop: one step of demix's own recipe for the row.",
        f"The machine multiplies float32 matrices at {rates['float32'] / 1e9:.1f} GFLOP/s and "
        f"bfloat16 ones at {rates['bfloat16'] / 1e9:.1f} GFLOP/s; the share of peak is that of the "
        "matrix products of the encoder, in the step with `contrast`, of the float32 rate.",
    ]
    return BenchTable(f"one training step, B = {data['step']['batch']}", header, rows, notes)


def _convergence(data: dict[str, Any]) -> BenchTable:
    rows = []
    for entry in data["convergence"]["entries"]:
        whose = " (paper)" if entry["paper"] else ""
        rows.append(
            [
                f"{entry['experiment']}, row {entry['row']}",
                f"{_SCORES[entry['score']]} {entry['target']:.2f} %{whose}",
                "never" if entry["steps"] is None else f"{entry['steps']:.0f}",
                words.seconds(entry["seconds"]),
                "–" if entry["dense_steps"] is None else f"{entry['dense_steps']:.1f}",
                f"{entry['final']:.2f} %",
            ]
        )
    header = ["row", "target", "steps", "time", "dense paper steps", "in the end"]
    seeds = ", ".join(map(str, data["convergence"]["seeds"]))
    notes = [
        f"Medians over seeds {seeds}; held-out score of 4096 pairs at "
        f"{data['convergence']['looks']} looks, whose time is not counted. A dense paper step is "
        "that of the row's own dense training, measured in the same run."
    ]
    return BenchTable("time to a score", header, rows, notes)


def _samplers(data: dict[str, Any]) -> BenchTable:
    rows = [
        [
            f"`{entry['ours']}`",
            entry["theirs"],
            *(f"{entry['per_second'][name]:,.0f}" for name in ("demix", "scipy")),
            words.figure(entry["speedup"]),
        ]
        for entry in data["samplers"]["entries"]
    ]
    header = ["sampler", "scipy", "demix, samples/s", "scipy, samples/s", "demix / scipy"]
    title = f"samplers, {data['samplers']['samples']} samples"
    notes = ["A sample is a vector of all latents; ours are float32, those of scipy float64."]
    return BenchTable(title, header, rows, notes)


def _scores(data: dict[str, Any]) -> BenchTable:
    rows = [
        [entry["score"], words.seconds(entry["seconds"]), f"{entry['fits']:.1f}"]
        for entry in data["scores"]["entries"]
    ]
    title = f"scores of {data['scores']['samples']} x {data['scores']['dim']} latents"
    together = sum(entry["seconds"] for entry in data["scores"]["entries"])
    notes = [f"Together they take {words.seconds(together)}."]
    return BenchTable(title, ["score", "time", "times a least-squares fit"], rows, notes)


def _scaling(data: dict[str, Any]) -> BenchTable:
    scaling = data["scaling"]
    rows = []
    for name, curve in scaling["curves"].items():
        spans = [curve["values"][0], curve["values"][-1]]
        ends = [words.seconds(curve["seconds"][0]), words.seconds(curve["seconds"][-1])]
        rows.append(
            [name, " to ".join(map(str, spans)), " to ".join(ends), f"{curve['exponent']:.2f}"]
        )
    notes = [
        f"Otherwise batch {scaling['batch']}, {scaling['latents']} latents, width "
        f"{scaling['width']}; exponents fitted over the upper half of the range.",
    ]
    return BenchTable("cost of a step", ["against", "range", "time", "exponent"], rows, notes)


def _estimators(data: dict[str, Any]) -> BenchTable:
    section = data["estimators"]
    rows = [
        [
            entry["data"],
            entry["method"],
            words.percent(entry["r2"]),
            words.percent(entry["consistency"]),
            words.seconds(entry["seconds"]),
            words.mib(entry["bytes"]),
        ]
        for entry in section["entries"]
    ]
    header = ["series", "method", "held-out R²", "agreement of seeds", "time", "peak memory"]
    notes = [
        f"Medians over seeds {', '.join(map(str, section['seeds']))} of the methods on the same "
        f"data; {section['rows']} rows to fit, a quarter more held out (EEG: 796 rows in all). "
        "Agreement: held-out R² of reading one seed's latents out of another's. Peak memory is "
        "that of the process, libraries included.",
        "CEBRA with its defaults for single rows and 5000 iterations, and again stopped after the "
        "time that ContrastiveDemixer took.",
    ]
    return BenchTable("estimators", header, rows, notes)


def _everyday(data: dict[str, Any]) -> BenchTable:
    section = data["everyday"]
    names = {"step": "a step", "products": "its matrix products", "loss": "its loss"}
    rows = [[name, words.seconds(section["seconds"][key])] for key, name in names.items()]
    fits = {"alone": "a fit alone", "beside": "a fit beside two busy processes"}
    rows += [[name, words.seconds(section["fit"][key])] for key, name in fits.items()]
    notes = [
        f"Defaults on {section['rows']} rows of 50 columns, three latents on a sphere; the step "
        "and its parts are processor time of one thread, products include those of Muon."
    ]
    return BenchTable("a default fit", ["what", "time"], rows, notes)


def _sweep(data: dict[str, Any]) -> BenchTable:
    section = data["sweep"]
    seconds = section["seconds"]
    rows = [
        ["one process", words.seconds(seconds["one process"]), "1"],
        [
            f"{section['workers']} workers",
            words.seconds(seconds["workers"]),
            words.figure(section["share"]),
        ],
    ]
    notes = ["Whole commands, imports included; every cell on one thread."]
    title = f"a sweep of {section['cells']} short cells"
    return BenchTable(title, ["run by", "time", "of one process"], rows, notes)


def _bars(data: dict[str, Any]) -> BenchTable:
    rows = []
    for bar in data["bars"]:
        met = {True: "met", False: "missed", None: "not judged"}[bar["met"]]
        rows.append(
            [
                bar["name"],
                f"{bar['sense']} {bar['bar']:g} {bar['unit']}",
                words.figure(bar["measured"]),
                met,
            ]
        )
    notes = [*dict.fromkeys(f"{bar['note']}." for bar in data["bars"] if bar["note"]), _run(data)]
    return BenchTable("bars", ["what", "bar", "measured", "verdict"], rows, notes)


def _run(data: dict[str, Any]) -> str:
    """Say how it was measured."""
    origin = data["provenance"]
    versions = [f"{name} {origin[name]}" for name in ("torch", "numpy", "scipy")]
    commit = origin.get("commit", "unknown")
    short = commit[:12] + ("-modified" if commit.endswith("-modified") else "")
    return (
        f"Medians of {data['rounds']} interleaved rounds of the {data['size']} size; threads: "
        f"{origin['threads']} on {origin['cores']} cores; {', '.join(versions)}; "
        f"{origin['kernel']} kernel; commit {short}."
    )
