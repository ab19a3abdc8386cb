"""What an attacker found in commands: an odd environment, odd names, and nobody who listens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import BRIEF, EACH, HEARD, MAIN
from demix import cli


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
    code += "import demix.__main__; demix.__main__.main()"
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
    np.save(tmp_path / "z.npy", np.random.default_rng(0).normal(size=(100, 1)))
    names = ["TERMINAL_WIDTH", "SOURCE_DATE_EPOCH", "JOBLIB_MULTIPROCESSING"]
    names += ["SKLEARN_WORKING_MEMORY", "TORCH_LOGS", "TORCH_LOGS_OUT", "TORCHDYNAMO_REPRO_LEVEL"]
    names += ["NUMPY_MADVISE_HUGEPAGE", "SKLEARN_PAIRWISE_DIST_CHUNK_SIZE", "JOBLIB_START_METHOD"]
    names += ["COMPILE_STROBELIGHT_SAMPLE_RATE", "LOKY_PICKLER", "LOKY_MAX_DEPTH", "PANDAS_FUTURE"]
    names += ["PYTORCH_JIT", "PYTORCH_MATCHER_LOGLEVEL", "TORCH_DISTRIBUTED_DEBUG"]
    names += ["GOMP_CPU_AFFINITY", "TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN"]
    odd = dict.fromkeys(names, "/abc/abc")
    files = ["--latents", tmp_path / "z.npy", "--factors", tmp_path / "z.npy"]
    done = run("--help", env=odd)
    assert done.returncode == 0, done.stderr
    # These import everything else; the last line does so with all of torch that a fit needs.
    commands = [["evaluate", *map(str, files)], ["probe", *map(str, files[1::2])]]
    code = [sys.executable, "-c", f"{EACH}\nimport torch._dynamo", json.dumps(commands)]
    kept = {"capture_output": True, "text": True, "check": False, "timeout": 300}
    done = subprocess.run(code, env=os.environ | odd, **kept)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [code for code, _, _ in told] == [0, 0], told


def is_finished(out: Path) -> bool:
    """Return whether a folder holds all of a fit."""
    about = json.loads((out / "fit.json").read_text())
    return "unfinished" not in about and "provenance" in about and (out / "report.html").exists()


def test_a_fit_to_which_nobody_listens_is_finished(demix, x, tmp_path):
    code = "import os\nclosed, heard = os.pipe()\nos.close(closed)\nos.dup2(heard, 1)\n"
    # Which is more than there are columns, and warned of.
    command = ["fit", x, "--n-latents", 5, "--out", tmp_path / "out"]
    # Each line is written at once, as PYTHONUNBUFFERED has it.
    heard = HEARD.replace('open(1, "w"', 'open(1, "w", buffering=1')
    done = demix.run_python(code + heard + BRIEF + MAIN, *command)
    assert done.returncode == 1
    assert is_finished(tmp_path / "out")


@pytest.mark.parametrize("place", ["pipe", "/dev/full"])
def test_a_fit_whose_warnings_nobody_reads_is_finished(place, demix, x, tmp_path):
    code = f"import os\nplace = {place!r}\nclosed, heard = os.pipe()\nos.close(closed)\n"
    code += "os.dup2(heard if place == 'pipe' else os.open(place, os.O_WRONLY), 2)\n"
    # Which is more than there are columns, and warned of.
    command = ["fit", x, "--n-latents", 5, "--out", tmp_path / "out"]
    done = demix.run_python(code + HEARD + BRIEF + MAIN, *command)
    assert (done.returncode, done.stderr) == (0, "")
    assert is_finished(tmp_path / "out")


def test_names_of_results_cannot_control_the_terminal(demix, x, tmp_path):
    demix.run_briefly("fit", x, "--n-latents", 2, "--out", tmp_path / "model")
    done = demix.run("transform", tmp_path / "model", x, "--out", tmp_path / "\x1b[31m.npy")
    assert "\\x1b[31m.npy: " in done.stdout
    assert "\x1b" not in done.stdout


def test_a_closed_output_ends_in_a_sentence():
    command = f"{sys.executable} -m demix list >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: The standard output is closed; ")


# The second one is imported by the command itself, over which typer ends without a word.
@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("demix.papers.commands.list", "list", "Error: Interrupted.\n"),
        (
            "demix.papers.experiments",
            "reproduce clica-table1 --out new",
            "Interrupted; finished jobs are kept.\n",
        ),
    ],
)
def test_ctrl_c_during_imports_ends_in_a_sentence(module, arguments, words):
    code = "import sys, demix.__main__\nclass Late:\n    def find_spec(self, name, *_):\n"
    code += f"        if name == {module!r}: raise KeyboardInterrupt\n"
    code += "sys.meta_path.insert(0, Late())\ndemix.__main__.main()"
    command = [sys.executable, "-c", code, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, words)


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


@pytest.mark.parametrize("place", [".", "matplotlibrc"], ids=["folder", "pipe"])
def test_settings_of_matplotlib_that_are_a_pipe_are_not_read(place, tmp_path):
    os.mkfifo(tmp_path / "matplotlibrc")
    code = "import demix.report.static as static; print(static._matplotlib().__name__)"
    environment = os.environ | {"MATPLOTLIBRC": str(tmp_path / place)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "matplotlib\n", done.stderr


def test_no_program_in_the_current_folder_lists_fonts(tmp_path):
    (tmp_path / "fc-list").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "fc-list").chmod(0o755)
    code = "import demix.report.static as static; static._matplotlib(); import matplotlib.figure"
    # An empty entry means the current folder; without a list of fonts, one is made.
    environment = os.environ | {"PATH": f":{os.environ['PATH']}", "MPLCONFIGDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    assert list(tmp_path.glob("fontlist*"))
    assert not (tmp_path / "ran").exists()


def test_settings_that_matplotlib_cannot_read_end_in_a_sentence(tmp_path):
    (tmp_path / "rc").write_bytes(b"\xff\xfe: \xff")
    code = "import demix.report.static as static; static._matplotlib()"
    environment = os.environ | {"MATPLOTLIBRC": str(tmp_path / "rc")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "DemixError: Expected settings that matplotlib reads, but " in done.stderr


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
        fit = ["fit", tmp_path / "x.parquet", "--n-latents", 2, "--out", tmp_path / "m"]
        done = demix.run_briefly(*fit)
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
            f"import os; os.environb |= {settings}\n{BRIEF}{MAIN}",
            *("fit", x, "--n-latents", 2, "--out", tmp_path / str(place)),
        )
        assert done.returncode == 0, done.stderr
        assert "safe place" not in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
        # Python's own import, when there is no memory for its error either.
        SystemError("error return without exception set"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("hidden", [False, True])
def test_all_that_means_a_lack_of_memory_is_told_so(error, hidden, capsys):
    def app() -> None:
        if hidden:
            raise ImportError("The install you are using seems to be broken.") from error
        raise error

    with pytest.raises(SystemExit) as ended:
        cli.run(app)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Error: Memory ran out;")


def test_a_limit_on_threads_is_told(capsys):
    def app() -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(SystemExit) as ended:
        cli.run(app)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Error: No more threads can be started;")


def test_folders_in_each_other_without_end_are_refused(demix, tmp_path):
    deep = tmp_path / ("c/" * 1900)
    assert "choose a shorter name" in demix.refusal("render", "sprites", "--out", deep)
    assert not list(tmp_path.iterdir())


def test_threads_of_a_command_wait_asleep_unless_the_user_wants_otherwise() -> None:
    code = "from demix.cli import run; run(lambda: __import__('torch'))"
    kept = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    for own, policy in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        environment = kept | {"OMP_DISPLAY_ENV": "TRUE"} | own
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert f"OMP_WAIT_POLICY = '{policy}'" in done.stderr
