"""What an attacker found in commands: files of others, odd options and an odd environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from demix import (
    ContrastiveDemixer,
    DemixError,
    Encoder,
    Recipe,
    Sphere,
    cli,
    export_onnx,
    save_encoder,
)
from demix._support.files import LOCK
from demix._support.locks import lock_folder
from demix.cli.claims import claimed


@pytest.fixture
def x(tmp_path, walk):
    """The walk as a file."""
    np.save(tmp_path / "x.npy", walk)
    return tmp_path / "x.npy"


@pytest.fixture
def rows(tmp_path, walk):
    """The walk in random order, so that no command warns of neighbours that are alike."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).permutation(walk))
    return tmp_path / "rows.npy"


def test_reproduce_leaves_tables_and_folders_of_others_alone(demix, tmp_path):
    out = tmp_path / "v"
    kept = out / "unfinished" / "2-0-unsupervised"
    kept.mkdir(parents=True)
    (kept / "thesis.tex").write_text("precious")
    (out / "results.json").write_text("[]")
    command = ["reproduce", "clica-table1", "--rows", 2, "--scale", "smoke", "--out", out]
    (out / "table.md").write_text("precious")
    assert "table.md holds something else" in demix.refusal(*command)
    (out / "table.html").write_text("precious")
    assert "table.html holds something else" in demix.refusal(*command)
    for name in ("table.md", "table.html"):
        assert (out / name).read_text() == "precious"
        (out / name).unlink()
    done = demix.run(*command)
    assert done.returncode == 0, done.stderr
    assert (kept / "thesis.tex").read_text() == "precious"


def test_a_model_is_not_saved_over_files_of_others(tmp_path):
    encoder = Encoder(3, Sphere(2))
    for name in ("model.json", "model.safetensors"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("precious")
        with pytest.raises(DemixError, match=f"holds a {name} that demix did not write"):
            save_encoder(encoder, folder)
        assert [file.read_text() for file in folder.iterdir()] == ["precious"]
    save_encoder(encoder, tmp_path / "own")
    save_encoder(encoder, tmp_path / "own")


def test_an_export_replaces_no_file_of_others(tmp_path):
    (tmp_path / "my.onnx").write_text("precious")
    with pytest.raises(DemixError, match="holds something else"):
        export_onnx(Encoder(3, Sphere(2)), tmp_path / "my.onnx")
    assert (tmp_path / "my.onnx").read_text() == "precious"


def test_an_empty_lock_of_another_program_stays(tmp_path):
    assert LOCK == ".demix.lock"
    (tmp_path / ".lock").touch()
    with lock_folder(tmp_path):
        pass
    assert (tmp_path / ".lock").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["fit", "X", "--n-latents", 10**23], "n_latents must be a whole number from 1 to"),
        (["fit", "X", "--n-latents", 10**7], "n_latents must be a whole number from 1 to"),
        (["fit", "X", "--lag", ""], "--lag takes a number or a range"),
        (["probe", "X", "X", "--kind", "0=periodic:1e-320"], "A period must be a positive number"),
        (["probe", "X", "X", "--kind", "0=ordinal", "--kind", "0=continuous"], "twice; give"),
        (["probe", "X", "X", "--factors", "9" * 5000], "There is no factor"),
        (["evaluate", "--latents", "X", "--factors", "X", "--categorical", "9" * 5000], "takes"),
        (["render", "sprites", "--size", 0], "from 1 to 1024, but got 0"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else "",
)
def test_odd_options_end_in_a_sentence(command, words, demix, x, tmp_path):
    given = [x if part == "X" else part for part in command]
    assert words in demix.refusal(*given, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_checkup_takes_no_seed_below_zero(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", np.concatenate([walk, walk]))
    demix.run("fit", tmp_path / "x.npy", "--n-latents", 2, "--out", tmp_path / "model")
    command = ["checkup", tmp_path / "model", tmp_path / "x.npy", "--seed", -1, "--no-refits"]
    assert "A seed must be" in demix.refusal(*command, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def run(*arguments: object, **more) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | more.pop("env", {})
    return subprocess.run(
        [sys.executable, "-m", "demix", *map(str, arguments)],
        env=environment,
        text=True,
        timeout=120,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )


def test_a_folder_that_is_gone_is_told(tmp_path):
    code = "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); del sys.argv[1]; "
    code += "import demix.cli; demix.cli.main()"
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "gone", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "Error: The current folder is gone; change to one that exists.\n"


@pytest.mark.parametrize("columns", ["\u00b2", "9" * 5000, "0", "300000000"], ids=len)
def test_sizes_that_no_terminal_has_are_ignored(columns):
    done = run("list", "--help", env={"COLUMNS": columns, "LINES": "x", "FORCE_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "experiments" in done.stdout


def test_settings_of_libraries_that_are_no_numbers_are_ignored(tmp_path):
    np.save(tmp_path / "z.npy", np.random.default_rng(0).normal(size=(100, 2)))
    names = ["TERMINAL_WIDTH", "SOURCE_DATE_EPOCH", "JOBLIB_MULTIPROCESSING"]
    names += ["SKLEARN_WORKING_MEMORY", "TORCH_LOGS", "TORCH_LOGS_OUT", "TORCHDYNAMO_REPRO_LEVEL"]
    odd = dict.fromkeys([*names, "PYTORCH_JIT", "TORCH_DISTRIBUTED_DEBUG"], "/abc/abc")
    files = ["--latents", tmp_path / "z.npy", "--factors", tmp_path / "z.npy"]
    for arguments in (["--help"], ["evaluate", *files], ["probe", *files[1::2]]):
        done = run(*arguments, env=odd)
        assert done.returncode == 0, done.stderr
    # Which imports all of torch that a fit does.
    code = "import demix.cli; demix.cli._mend_environment(); import torch._dynamo"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | odd, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("stream", "place", "code"),
    [("stderr", "pipe", 0), ("stderr", "/dev/full", 0), ("stdout", "pipe", 1)],
)
def test_a_fit_to_which_nobody_listens_is_finished(stream, place, code, x, tmp_path):
    closed, heard = os.pipe()
    os.close(closed)
    if place != "pipe":
        os.close(heard)
        heard = os.open(place, os.O_WRONLY)
    # Which is more than there are columns, and warned of.
    command = ["fit", x, "--n-latents", 5, "--out", tmp_path / "out"]
    done = run(*command, **{stream: heard})
    os.close(heard)
    assert done.returncode == code
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["provenance"]
    assert (tmp_path / "out" / "report.html").exists()


def test_names_of_results_cannot_control_the_terminal(demix, x, tmp_path):
    demix.run("fit", x, "--n-latents", 2, "--out", tmp_path / "model")
    done = demix.run("transform", tmp_path / "model", x, "--out", tmp_path / "\x1b[31m.npy")
    assert "\\x1b[31m.npy: " in done.stdout
    assert "\x1b" not in done.stdout


def test_a_closed_output_ends_in_a_sentence():
    command = f"{sys.executable} -m demix list >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: The standard output is closed; ")


# The second one is imported by the command itself, over which typer ends without a word.
@pytest.mark.parametrize("module", ["demix.cli.list", "demix.papers.experiments"])
def test_ctrl_c_during_imports_ends_in_a_sentence(module):
    code = "import sys, demix.cli\nclass Late:\n    def find_spec(self, name, *_):\n"
    code += f"        if name == {module!r}: raise KeyboardInterrupt\n"
    code += "sys.meta_path.insert(0, Late())\ndemix.cli.main()"
    done = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"Error: Interrupted.\n")


@pytest.mark.parametrize("content", [None, b"\xff\xfe: \xff"], ids=["pipe", "bytes"])
def test_settings_of_matplotlib_in_the_current_folder_are_not_read(content, tmp_path):
    if content is None:
        os.mkfifo(tmp_path / "matplotlibrc")
    else:
        (tmp_path / "matplotlibrc").write_bytes(content)
    code = "import demix.report.static as static; print(static._matplotlib().__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "matplotlib\n", done.stderr


def test_settings_that_matplotlib_cannot_read_end_in_a_sentence(tmp_path):
    (tmp_path / "rc").write_bytes(b"\xff\xfe: \xff")
    code = "import demix.report.static as static; static._matplotlib()"
    environment = os.environ | {"MATPLOTLIBRC": str(tmp_path / "rc")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "DemixError: Expected settings that matplotlib can read, but " in done.stderr


def test_rows_are_joined_below_a_header_of_numbers(demix, tmp_path):
    rows = np.c_[np.arange(100), np.random.default_rng(0).normal(size=(100, 2))]
    for name in ("x", "f"):
        lines = [",".join(map(str, [int(row[0]), *row[1:]])) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["0,2020,2021", *lines]))
    command = ["probe", tmp_path / "x.csv", tmp_path / "f.csv", "--join", "0", "--header", "yes"]
    done = demix.run(*command)
    assert done.returncode == 0, done.stderr


def test_names_in_files_do_not_control_the_terminal(demix, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    name = "\x1b[2J\nError: all is well"
    for numbers in (np.full(60, np.nan), np.ones(60)):
        table = arrow.table({name: numbers, "b": np.arange(60.0), "c": np.arange(60.0) ** 2})
        parquet.write_table(table, tmp_path / "x.parquet")
        done = demix.run("fit", tmp_path / "x.parquet", "--n-latents", 2, "--out", tmp_path / "m")
        assert "\\x1b[2J\\nError" in done.stderr
        assert "\x1b" not in done.stderr
        assert not any(line == "Error: all is well" for line in done.stderr.splitlines())


def test_names_of_outputs_do_not_control_the_terminal(demix, tmp_path):
    out = tmp_path / "a\x1b[31mb\nWrote c"
    done = demix.run("render", "sprites", "--n", 2, "--size", 8, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "a\\x1b[31mb\\nWrote c" in done.stdout


def test_commands_print_through_the_one_place_that_escapes():
    texts = {file.name: file.read_text() for file in Path(cli.__file__).parent.glob("*.py")}
    assert [name for name, text in texts.items() if "typer.echo(" in text] == ["options.py"]
    assert [name for name, text in texts.items() if " print(" in text] == ["console.py"]


def test_a_compiler_with_odd_options_is_no_trouble(demix, x, tmp_path):
    for place, compiler in enumerate([b"cc -D\xff", b"/bin/true"]):
        settings = {b"CC": compiler, b"XDG_CACHE_HOME": os.fsencode(tmp_path / f"cache{place}")}
        done = demix.run_python(
            f"import os; os.environb |= {settings}; import demix.cli; demix.cli.main()",
            *("fit", x, "--n-latents", 2, "--out", tmp_path / str(place)),
        )
        assert done.returncode == 0, done.stderr
        assert "safe place" not in done.stderr


@pytest.mark.parametrize(
    "setting",
    [{"recipe": "x"}, {"recipe": {}}, {"conditional": 10**400}, {"random_state": -1}],
    ids=str,
)
def test_settings_of_other_kinds_are_refused_in_python(setting, walk):
    if "conditional" in setting:
        setting = {**setting, "space": "box"}
    with pytest.raises(DemixError):
        ContrastiveDemixer(2, **setting).fit(walk)


@pytest.mark.parametrize("setting", [{"steps": "x"}, {"batch": 3.5}], ids=str)
def test_recipes_are_of_whole_numbers(setting):
    with pytest.raises(DemixError, match="must be a whole number"):
        Recipe(**setting)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_what_a_checkpoint_cannot_be_of_is_refused(tmp_path, walk):
    from demix.training.checkpoints import _read, _sealed

    place = tmp_path / "checkpoint.safetensors"

    def fit() -> None:
        recipe = Recipe(steps=3, batch=32)
        ContrastiveDemixer(2, recipe=recipe, encoder={"hidden": (4,)}).fit(walk, checkpoint=place)

    fit()
    tensors, facts = _read(place)
    for change in ({"step": 10**6}, {"seconds": -1e308}, {"best": {"value": float("nan")}}):
        state = json.loads(json.dumps(facts["state"]))
        for key, new in change.items():
            state[key] = state[key] | new if isinstance(new, dict) else new
        place.write_bytes(_sealed(tensors, facts | {"state": state}))
        with pytest.raises(DemixError, match="is damaged or no checkpoint"):
            fit()


def test_a_wrong_option_costs_nothing_of_a_finished_consensus(demix, x, tmp_path):
    out = tmp_path / "agreed"
    command = ["consensus", x, "--n-latents", 2, "--seeds", 2, "--out", out]
    done = demix.run(*command)
    assert done.returncode == 0, done.stderr
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    for wrong in (["--held-out", 5], ["--group", "nonsense"], ["--seeds", 10**12]):
        demix.refusal(*command, "--overwrite", *wrong)
        assert {f: f.read_bytes() for f in out.rglob("*") if f.is_file()} == before


def test_no_model_is_written_through_a_linked_folder(demix, x, tmp_path):
    victim = tmp_path / "victim"
    save_encoder(Encoder(3, Sphere(2)), victim)
    before = {file.name: file.read_bytes() for file in victim.iterdir()}
    begun = {"unfinished": True, "provenance": {"command": "demix consensus x"}}
    out = tmp_path / "out"
    out.mkdir()
    (out / "consensus.json").write_text(json.dumps(begun))
    (out / "seed-0").symlink_to(victim)
    told = demix.refusal("consensus", x, "--n-latents", 2, "--seeds", 2, "--out", out)
    assert "seed-0 to be a folder of demix, but it is a link" in told
    assert {file.name: file.read_bytes() for file in victim.iterdir()} == before


def test_reproduce_removes_no_folders_of_others(demix, tmp_path):
    for name in ("gone-mine", "sweep-photos"):
        (tmp_path / "unfinished" / name).mkdir(parents=True)
        (tmp_path / "unfinished" / name / "a").write_text("precious")
    (tmp_path / "results.json").write_text("[]")
    scale = ["--rows", 1, "--scale", "smoke"]
    done = demix.run("reproduce", "clica-table1", *scale, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    kept = sorted(file.read_text() for file in tmp_path.rglob("a"))
    assert kept == ["precious", "precious"]


def test_what_was_ended_while_it_replaced_a_fit_is_not_used(demix, x, tmp_path):
    model = tmp_path / "model"
    command = ["fit", x, "--n-latents", 2, "--out", model]
    demix.run(*command)
    marker = json.loads((model / "fit.json").read_text())
    (model / "fit.json").write_text(json.dumps(marker | {"unfinished": True}))
    for use in (
        ["report", model, "--out", tmp_path / "page"],
        ["transform", model, x, "--out", tmp_path / "z.npy"],
        ["export", model, "--onnx", tmp_path / "m.onnx"],
    ):
        assert "holds a fit that was not finished" in demix.refusal(*use)
    done = demix.run(*command)
    assert done.returncode == 0, done.stderr
    assert demix.run("report", model, "--out", tmp_path / "page").returncode == 0


def test_a_result_that_is_to_be_replaced_keeps_its_numbers_until_the_end(demix, rows, tmp_path):
    out = tmp_path / "scores"
    command = ["evaluate", "--latents", rows, "--factors", rows, "--out", out]
    demix.run(*command)
    before = json.loads((out / "scores.json").read_text())
    # The page cannot be written: a folder stands in its place.
    (out / "report.html").unlink()
    (out / "report.html").mkdir()
    demix.refusal(*command, "--overwrite")
    assert json.loads((out / "scores.json").read_text()) == before | {"unfinished": True}
    (out / "report.html").rmdir()
    assert demix.run(*command).returncode == 0  # which goes on


def test_scenes_without_a_seal_are_not_written_to(demix, tmp_path):
    order = {"scene": "sprites", "n": 3, "size": 16, "seed": 0, "pairs": None, "engine": "embree"}
    about = {"provenance": {"command": "demix render"}, "order": order, "renderer": {}}
    (tmp_path / "meta.json").write_text(json.dumps(about))
    (tmp_path / "images.npy").write_text("precious")
    told = demix.refusal("render", "sprites", "--n", 3, "--size", 16, "--out", tmp_path)
    assert "meta.json is damaged" in told
    assert (tmp_path / "images.npy").read_text() == "precious"


def test_notes_and_checkpoints_of_others_in_unfinished_stay(demix, tmp_path):
    for name in (
        "gone-x/precious.json",
        "sweep-mine/precious.json",
        "1-0-identity/own.safetensors",
    ):
        (tmp_path / "unfinished" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unfinished" / name).write_text("precious")
    (tmp_path / "unfinished" / "sweep-a").write_text("precious")
    (tmp_path / "results.json").write_text("[]")
    scale = ["--rows", 1, "--scale", "smoke"]
    done = demix.run("reproduce", "clica-table1", *scale, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    kept = [file.read_text() for file in (tmp_path / "unfinished").rglob("*") if file.is_file()]
    assert kept == ["precious"] * 4


def test_a_page_of_others_is_not_replaced_in_an_unfinished_folder(demix, x, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    begun = {"unfinished": True, "provenance": {"command": "demix evaluate"}}
    (out / "scores.json").write_text(json.dumps(begun))
    (out / "report.html").write_text("precious")
    told = demix.refusal("evaluate", "--latents", x, "--factors", x, "--out", out)
    assert "report.html holds something else" in told
    assert (out / "report.html").read_text() == "precious"


@pytest.mark.parametrize("name", ["figure.svg", "figure.png"])
def test_a_figure_of_others_is_not_replaced_in_an_unfinished_folder(name, demix, rows, tmp_path):
    begun = {"unfinished": True, "provenance": {"command": "demix probe"}}
    out = tmp_path / "out"
    out.mkdir()
    (out / "probe.json").write_text(json.dumps(begun))
    (out / name).write_bytes(b"\x89PNG <svg precious")
    assert f"{name} holds something else" in demix.refusal("probe", rows, rows, "--out", out)
    assert (out / name).read_bytes() == b"\x89PNG <svg precious"
    (out / name).unlink()
    for more in ([], ["--overwrite"]):  # it goes on, and replaces its own
        done = demix.run("probe", rows, rows, "--out", out, *more)
        assert done.returncode == 0, done.stderr


def test_a_refused_command_leaves_links_to_nothing_where_they_are(tmp_path):
    marker = {"provenance": {"command": "demix fit"}, "unfinished": True}
    (tmp_path / "fit.json").write_text(json.dumps(marker))
    link = tmp_path / "checkpoint.safetensors"
    link.symlink_to("nowhere")
    with (
        pytest.raises(DemixError, match="Refused"),
        claimed("fit", tmp_path, "fit.json", [], overwrite=False, leftovers=[link.name]),
    ):
        raise DemixError("Refused.")
    assert link.is_symlink()
