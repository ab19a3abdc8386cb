"""Csv files as programs of several countries write them, and packed ones."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma

import pytest
from sentences import everything, refusal

from demix import read_data, read_labels
from demix.data.dialects import dialect_of
from demix.data.names import read_names, table_names

PACK = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_data(path, **options)


@pytest.mark.parametrize(
    ("text", "rows", "form"),
    [
        ("a;b\n1,5;-0,25\n2;1,5e-3\n", [[1.5, -0.25], [2, 0.0015]], "';', decimal comma"),
        ("a\tb\n1,5\t-0,25\n", [[1.5, -0.25]], "tab, decimal comma"),
        (
            "a;b\n1.234,5;1\n7.654;,5\n",
            [[1234.5, 1], [7654, 0.5]],
            "';', decimal comma, marks of thousands",
        ),
        ("a;b\n1.234.567;1\n", [[1234567, 1]], "';', decimal comma, marks of thousands"),
        ('a,b\n"1,234.5",1\n"-7,654",2\n', [[1234.5, 1], [-7654, 2]], "',', marks of thousands"),
        ("a\tb\n1,234.5\t1\n", [[1234.5, 1]], "tab, marks of thousands"),
        ("a;b\n12,345;1,5\n", [[12.345, 1.5]], "';', decimal comma"),
        ("a;b\n0,123;1\n", [[0.123, 1]], "';', decimal comma"),
        ("x;y,z\n1,2\n3,4\n", [[1, 2], [3, 4]], "','"),
        (" 1,5 ; 2,5\n", [[1.5, 2.5]], "';', decimal comma"),
        ("Größe;°C\n1;2\n".encode("cp1252"), [[1, 2]], "';', Windows-1252"),
        ("\ufeffa;b\n1,5;2\n", [[1.5, 2]], "';', decimal comma"),
    ],
)
def test_numbers_are_read_as_they_are_meant(tmp_path, text, rows, form):
    data = read(tmp_path / "x.csv", text)
    assert data.precisely().array(exact=True).tolist() == rows
    assert data.form == form
    assert data.names is None or not data.names[0].startswith("\ufeff")


def test_names_in_latin_letters_are_kept(tmp_path):
    data = read(tmp_path / "x.csv", "Température;°C\n1,5;2\n3;4\n".encode("latin-1"))
    assert data.names == ("Température", "°C")


def test_text_beside_numbers_keeps_its_commas_and_points(tmp_path):
    path = tmp_path / "x.csv"
    read(path, "x;when;who\n1,5;31.12.2024;b, 1,5\n2;01.01.2025;1.2.3\n", columns=["x"])
    assert read_names(path, "who") == ["b, 1,5", "1.2.3"]
    assert read_names(path, "when") == ["31.12.2024", "01.01.2025"]


def test_words_with_commas_are_no_numbers(tmp_path):
    path = tmp_path / "x.csv"
    read(path, "x;kind\n1,5;red, dark\n2;blue\n", columns=["x"])
    assert read_labels(path, column="kind").names == ("blue", "red, dark")


def test_the_dialect_is_that_of_the_first_lines(tmp_path):
    beginning = "a;b\n" + "1,5;2\n" * 10 + "1.5"
    assert dialect_of(beginning.encode(), whole=False).comma
    assert not dialect_of(beginning.encode(), whole=True).comma
    # A letter of two bytes may be cut.
    assert dialect_of("a;b\nä;ö".encode()[:-1], whole=False).encoding == "utf-8-sig"


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_are_read_as_others(tmp_path, kind):
    path = tmp_path / f"x.csv.{kind}"
    data = read(path, PACK[kind](b"a;b\n1,5;2\n3;4\n"), columns=["b", "a"])
    assert everything(data).tolist() == [[2, 1.5], [4, 3]]
    assert table_names(path) == ["a", "b"]
    path = tmp_path / f"y.tsv.{kind}"
    path.write_bytes(PACK[kind](b"dog\ncat\ndog\n"))
    assert read_labels(path).names == ("cat", "dog")


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_that_are_cut_damaged_or_none_are_refused(tmp_path, kind):
    whole = PACK[kind](b"".join(b"%d,%d\n" % (i, i * i % 977) for i in range(9999)))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    refusal(read, tmp_path / f"x.csv.{kind}", bytes(damaged))
    for content in (whole[: len(whole) // 2], b"a,b\n1,2\n"):
        assert "cannot" in refusal(read, tmp_path / f"x.csv.{kind}", content)
    assert "looks like a" in refusal(read, tmp_path / "x.csv", whole)
    assert "Expected .npy" in refusal(read, tmp_path / f"x.npy.{kind}", whole)


@pytest.mark.parametrize("line", [b"\n", b"0,0\n", b"1" * 999 + b",1\n"])
@pytest.mark.parametrize("kind", ["bz2", "xz"])
def test_a_packed_file_that_grows_without_end_is_refused(tmp_path, kind, line):
    content = PACK[kind](b"a,b\n" + line * (2**22 // len(line)))
    assert "grows at most 500 times" in refusal(read, tmp_path / f"x.csv.{kind}", content)


def test_numbers_that_a_packed_file_hides_must_fit_into_memory(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("demix.data.csv_files.check_memory", lambda size, *_: asked.append(size))
    noise = b"".join(b"%d,%d\n" % (i, i * i % 977) for i in range(9999))
    read(tmp_path / "x.csv.gz", gzip.compress(noise + b"0,0\n" * 2**19))
    # For as many as it promised, and again and again when there were more.
    assert asked[0] < 2**20 < asked[-1] == 8 * 2**20
    assert all(y == 2 * x for x, y in itertools.pairwise(asked[1:]))
