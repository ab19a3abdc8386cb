"""Whatever is printed is printed as it is, wherever it goes, and every end has a sentence."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from command import BRIEF, DRAWING, HEARD, MAIN

NAMES = ["[/red].csv", "\\[bold].csv", ":warning:.csv", "[link=x]y.csv", "{task}.csv"]


def demix_with(*arguments: object, limit: int | None = None, **more) -> subprocess.CompletedProcess:
    """Run the real command, in bytes."""
    kept = {name: value for name, value in os.environ.items() if name not in DRAWING}
    environment = kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"} | more.pop("env", {})
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "demix", *map(os.fspath, map(_plain, arguments))],
        env=environment,
        preexec_fn=limited,
        timeout=120,
        check=False,
        **given,
    )


def _plain(argument: object) -> object:
    return argument if isinstance(argument, str | bytes | Path) else str(argument)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_look_like_markup_are_printed_as_they_are(name, demix, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("a,b\n1,2\n3,x\n")
    told = demix.refusal("fit", tmp_path / name, "--out", tmp_path / "out")
    assert f"line 3 of {tmp_path / name} holds 'x'" in told


def test_they_are_in_warnings_as_well(demix, walk, tmp_path):
    # A column that never changes is warned of, with the name of the file.
    lines = [",".join(map(str, row)) for row in np.c_[walk, np.ones(len(walk))].tolist()]
    name = "".join(NAMES)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("\n".join(["a,b,c,d", *lines]))
    done = demix.run_briefly("fit", tmp_path / name, "--n-latents", 2, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert f"warning  1 of 4 columns of {tmp_path / name} never change (d)" in done.stderr


def test_a_name_that_is_no_text_goes_all_the_way(demix, walk, tmp_path):
    place = os.fsencode(tmp_path)
    np.save(tmp_path / "x.npy", walk)
    os.rename(place + b"/x.npy", place + b"/\xff.npy")
    out = place + b"/model-\xfe"
    given = [os.fsdecode(name) for name in (place + b"/\xff.npy", out)]
    done = demix.run_briefly("fit", given[0], "--n-latents", 2, "--out", given[1])
    assert done.returncode == 0, done.stderr
    assert "model-\\udcfe" in done.stdout
    written = set(os.listdir(out))
    assert written == {
        b"fit.json",
        b"latents.npy",
        b"model.json",
        b"model.safetensors",
        b"report.html",
    }
    page = Path(os.fsdecode(out + b"/report.html")).read_text(encoding="utf-8")
    assert "\\udcff.npy" in page


def test_a_stream_that_lacks_letters_gets_them_by_number(demix, tmp_path):
    # As PYTHONIOENCODING has Python open them.
    code = HEARD.replace("utf-8", "ascii") + MAIN
    done = demix.run_python(code, "list")
    assert done.returncode == 0, done.stderr
    assert "clica-table1" in done.stdout
    done = demix.run_python(code, "fit", tmp_path / "\u2265.npy", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "\\u2265.npy does not exist" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_behind_the_output_is_told(options, demix):
    code = "import os\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\n"
    done = demix.run_python(code + HEARD + MAIN, "list", *options)
    assert done.returncode == 2
    assert done.stderr == (
        "Error: Cannot use the output: No space left on device; choose another place or make "
        "room.\n"
    )


def test_a_reader_that_went_away_is_no_trouble(demix):
    code = "import os\nreader, writer = os.pipe()\nos.close(reader)\nos.dup2(writer, 1)\n"
    done = demix.run_python(code + HEARD + MAIN, "list", "--json")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("megabytes", [250, 680])
def test_too_little_address_space_is_told(megabytes, walk, tmp_path):
    """How much Python and its libraries take, and so who notices, depends on the machine."""
    np.save(tmp_path / "x.npy", walk)
    done = demix_with(
        "fit",
        tmp_path / "x.npy",
        "--n-latents",
        "2",
        "--out",
        tmp_path / "out",
        limit=megabytes << 20,
    )
    assert done.returncode == 2, done.stderr
    last = done.stderr.decode().splitlines()[-1]
    known = "Error: Memory ran out", "available (limit of the address space, ulimit -v)"
    assert any(words in last for words in known), last
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root")
def test_a_user_without_name_and_home_can_fit(walk):
    nobody = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        np.save(Path(folder, "x.npy"), walk)
        reads = [*nobody, sys.executable, "-c", "import demix"]
        if subprocess.run(reads, cwd=folder, capture_output=True, check=False).returncode:
            pytest.skip("the environment of the tests is closed to other users")
        fit = ["fit", "x.npy", "--n-latents", "2", "--out", "out"]
        done = subprocess.run(
            [*nobody, sys.executable, "-c", BRIEF + MAIN, *fit],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "x.npy", "--out"],
        ["transform", "model", "x.npy", "--out"],
        ["report", "model", "--out"],
        ["render", "sprites", "--out"],
        ["reproduce", "clica-table1", "--out"],
        ["demo", "--out"],
        ["download", "dsprites", "--out"],
    ],
    ids=lambda command: command[0],
)
def test_a_name_of_300_letters_is_refused_in_a_sentence(command, demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    given = [tmp_path / part if part in ("x.npy", "model") else part for part in command]
    told = demix.refusal(*given, tmp_path / ("a" * 300))
    assert len(told) < 700
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.npy"]


def test_a_pipe_in_place_of_any_file_is_refused_at_once(demix, walk, tmp_path):
    np.save(tmp_path / "x.npy", walk)
    pipes = {}
    for suffix in ("npy", "npz", "csv", "parquet", "txt"):
        pipes[suffix] = tmp_path / f"pipe.{suffix}"
        os.mkfifo(pipes[suffix])
    (tmp_path / "images").mkdir()
    os.mkfifo(tmp_path / "images" / "a.png")
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / "model" / "model.json")
    out, x = tmp_path / "out", tmp_path / "x.npy"
    commands = [
        *(["fit", pipe, "--out", out] for suffix, pipe in pipes.items() if suffix != "txt"),
        ["fit", tmp_path / "images", "--out", out],
        *(["fit", x, option, pipes["csv"], "--out", out] for option in ("--pairs", "--labels")),
        ["fit", x, "--time", pipes["npy"], "--out", out],
        ["evaluate", "--latents", pipes["npy"], "--factors", x],
        ["evaluate", "--latents", x, "--factors", pipes["csv"]],
        ["probe", x, pipes["parquet"]],
        ["transform", tmp_path / "model", x, "--out", tmp_path / "z.npy"],
        ["report", tmp_path / "model", "--out", out],
    ]
    demix.refusals(commands)
    assert not out.exists()
