"""Compiled code is loaded from places that nobody else can write to, and from no others."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command import Commands
from demix._support.kernel import build

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C compiler")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
STRANGER = 54321  # who has no name and no home

_TOLD = """
import json, os, signal, sys, warnings
from demix.losses.streaming import kernel_name
signal.alarm(60)  # which ends it if it waits for a pipe
for name, value in json.loads(sys.argv[1]).items():
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
if len(sys.argv) > 2:
    exec(sys.argv[2])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    names = [kernel_name() for _ in range(2)]
print(json.dumps([names[1], [str(warning.message) for warning in caught]]))
"""
SENTENCE = "Expected a safe place for the compiled kernel, but {}; set XDG_CACHE_HOME to a folder"


def told(demix: Commands, before: str = "", **environment: object) -> tuple[str, list[str]]:
    """Return the kernel of a fresh process, and its warnings."""
    run = demix.run_python(_TOLD, json.dumps(environment, default=str), before)
    assert (run.returncode, run.stderr) == (0, "")
    name, warned = json.loads(run.stdout)
    return name, warned


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real compiler that leaves out the seconds of making the kernel fast."""
    slow_code = tmp_path_factory.mktemp("compiler") / "cc"
    slow_code.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n')
    slow_code.chmod(0o755)
    return slow_code


@pytest.fixture(scope="module")
def made(demix: Commands, compiler: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that was made by a user who lets the group write to everything."""
    cache = tmp_path_factory.mktemp("made") / "new" / "cache"
    answer = told(demix, "os.umask(0o002)", CC=compiler, XDG_CACHE_HOME=cache)
    assert answer == ("compiled", [])
    return cache


@pytest.fixture(scope="module")
def intruder(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """A library, sealed like ours, that leaves a file behind when it is loaded; and that file."""
    folder = tmp_path_factory.mktemp("intruder")
    mark = folder / "was-here"
    (folder / "code.c").write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void go(void)\n"
        f'{{ FILE *f = fopen("{mark}", "w"); if (f) fclose(f); }}\n'
    )
    command = ["cc", "-shared", "-fPIC", folder / "code.c", "-o", folder / "code.so"]
    subprocess.run(command, check=True)
    raw = (folder / "code.so").read_bytes()
    return raw + hashlib.sha256(raw).digest(), mark


@pytest.fixture
def planted(made: Path, intruder: tuple[bytes, Path], tmp_path: Path) -> Path:
    """The library of a safe cache, in whose place there is another one."""
    (ours,) = (made / "demix").iterdir()
    cache = tmp_path / "cache"
    (cache / "demix").mkdir(mode=0o700, parents=True)
    kept = cache / "demix" / ours.name
    kept.write_bytes(intruder[0])
    kept.chmod(0o700)
    return kept


@needs_compiler
def test_what_is_made_is_ours_alone_and_is_loaded_again(
    demix: Commands, compiler: Path, made: Path
) -> None:
    (kept,) = (made / "demix").iterdir()
    places = [made.parent, made, made / "demix", kept]
    assert [place.stat().st_mode & 0o777 for place in places] == [0o700] * 4
    before = kept.stat().st_mtime_ns
    assert told(demix, CC=compiler, XDG_CACHE_HOME=made) == ("compiled", [])
    assert kept.stat().st_mtime_ns == before


@needs_compiler
def test_the_intruder_would_leave_its_mark_in_a_cache_of_our_own(
    demix: Commands, compiler: Path, planted: Path, intruder: tuple[bytes, Path]
) -> None:
    told(demix, CC=compiler, XDG_CACHE_HOME=planted.parent.parent)
    assert intruder[1].exists()
    intruder[1].unlink()


def open_folder(kept: Path) -> Path:
    kept.parent.chmod(0o770)
    return kept.parent


def open_and_sticky_folder(kept: Path) -> Path:
    kept.parent.chmod(0o1777)
    return kept.parent


def open_folder_above(kept: Path) -> Path:
    kept.parent.parent.chmod(0o777)
    return kept.parent.parent


def linked_folder(kept: Path) -> Path:
    elsewhere = kept.parent.rename(kept.parent.with_name("elsewhere"))
    kept.parent.symlink_to(elsewhere)
    return kept.parent


def open_library(kept: Path) -> Path:
    kept.chmod(0o720)
    return kept


def linked_library(kept: Path) -> Path:
    kept.symlink_to(kept.rename(kept.with_name("elsewhere")))
    return kept


def pipe(kept: Path) -> Path:
    kept.unlink()
    os.mkfifo(kept)
    return kept


def file_for_folder(kept: Path) -> Path:
    shutil.rmtree(kept.parent)
    kept.parent.write_text("mine")
    return kept.parent


def foreign_library(kept: Path) -> Path:
    os.chown(kept, STRANGER, -1)
    return kept


def foreign_folder(kept: Path) -> Path:
    os.chown(kept.parent, STRANGER, -1)
    return kept.parent


def foreign_folder_above(kept: Path) -> Path:
    os.chown(kept.parent.parent, STRANGER, -1)
    return kept.parent.parent


@needs_compiler
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (open_folder, "others may write to {}"),
        (open_and_sticky_folder, "others may write to {}"),
        (open_folder_above, "others may write to {}"),
        (open_library, "others may write to {}"),
        (linked_folder, "{} is a link"),
        (linked_library, "{} is a link"),
        (pipe, "{} is a pipe"),
        (file_for_folder, "{} is a file"),
        pytest.param(foreign_library, "{} belongs to another user", marks=needs_root),
        pytest.param(foreign_folder, "{} belongs to another user", marks=needs_root),
        pytest.param(foreign_folder_above, "{} belongs to another user", marks=needs_root),
    ],
)
def test_nothing_is_loaded_that_others_could_have_planted(
    demix: Commands,
    compiler: Path,
    planted: Path,
    intruder: tuple[bytes, Path],
    spoil: Callable[[Path], Path],
    words: str,
) -> None:
    cache = planted.parent.parent
    place = spoil(planted)
    name, (warned,) = told(demix, CC=compiler, XDG_CACHE_HOME=cache)
    assert name == "tiles"
    assert warned.startswith(SENTENCE.format(words.format(place)))
    assert not intruder[1].exists()


@needs_compiler
def test_a_folder_like_tmp_above_is_safe_and_so_is_a_link_above(
    demix: Commands, compiler: Path, made: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(made, tmp_path / "cache"))
    copy.chmod(0o1777)
    (tmp_path / "link").symlink_to(copy)
    assert told(demix, CC=compiler, XDG_CACHE_HOME=tmp_path / "link") == ("compiled", [])


@needs_compiler
def test_a_relative_cache_is_not_used(
    demix: Commands, compiler: Path, made: Path, tmp_path: Path
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    shutil.copytree(made, home / ".cache")
    go = f"os.chdir({str(here)!r})"
    for cache in ("cache", "."):
        answer = told(demix, go, CC=compiler, XDG_CACHE_HOME=cache, HOME=home)
        assert answer == ("compiled", [])
    name, (warned,) = told(demix, go, CC=compiler, XDG_CACHE_HOME=None, HOME="home")
    assert name == "tiles"
    assert warned.startswith(SENTENCE.format("home/.cache is a relative path"))
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command", ["'", "", "no-such-compiler"])
def test_without_a_compiler_tiles_serve_without_a_word(
    demix: Commands, tmp_path: Path, command: str
) -> None:
    assert told(demix, CC=command, XDG_CACHE_HOME=tmp_path) == ("tiles", [])
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_by_a_relative_path_is_not_run(
    demix: Commands, compiler: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "tools" / "mine"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-here\n")
    tool.chmod(0o755)
    go = f"os.chdir({str(tmp_path)!r})"
    for environment in ({"CC": "tools/mine"}, {"CC": "mine", "PATH": "tools"}):
        name, (warned,) = told(demix, go, **environment, XDG_CACHE_HOME=tmp_path / "cache")
        assert name == "tiles"
        assert warned.startswith(
            "Expected a C compiler by its absolute path, but found tools/mine;"
        )
    assert not (tmp_path / "was-here").exists()


@needs_compiler
def test_a_compiler_finds_nothing_in_the_current_folder(
    demix: Commands, compiler: Path, tmp_path: Path
) -> None:
    (tmp_path / "math.h").write_text("#error a stranger's\n")
    (tmp_path / "as").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "as").chmod(0o755)
    go = f"os.chdir({str(tmp_path)!r})"
    # Entries that are empty or a dot mean the current folder.
    places = {"CPATH": ":/opt/include", "PATH": f".:{os.environ['PATH']}"}
    answer = told(demix, go, **places, CC=compiler, XDG_CACHE_HOME=tmp_path / "cache")
    assert answer == ("compiled", [])


@needs_compiler
def test_a_cache_that_cannot_be_made_is_no_reason_to_fail(demix: Commands, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    name, (warned,) = told(demix, XDG_CACHE_HOME=blocked)
    assert name == "tiles"
    assert f"Not a directory: '{blocked}/demix'; set XDG_CACHE_HOME" in warned


@needs_compiler
@needs_root
def test_a_user_without_a_name_and_a_home_gets_tiles(demix: Commands) -> None:
    go = f"os.setuid({STRANGER})"
    name, (warned,) = told(demix, go, XDG_CACHE_HOME=None, HOME=None)
    assert name == "tiles"
    assert warned.startswith(SENTENCE.format("Could not determine home directory"))
    name, (warned,) = told(demix, go, XDG_CACHE_HOME="/", HOME=None)
    assert name == "tiles"
    assert "Permission denied: '/demix'; set XDG_CACHE_HOME" in warned
