"""Tables and arrays that an attacker found: nothing swallowed, nothing inflated, no traceback."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from alarm import within
from demix import DemixError, affine_r2, probe, read_data, read_factors, read_labels
from demix._support.errors import demix_errors
from demix.cli.evaluate import evaluate
from demix.cli.options import read_blocks
from demix.data import factors, names
from demix.data.checks import check_data
from demix.data.data import Data, as_data
from demix.data.reading import input_digest
from demix.data.supervision import check_pairs, check_time, read_pairs, read_time

X = np.random.default_rng(0).normal(size=(60, 3))


def table(path, notes):
    lines = [",".join([*map(str, row), note]) for row, note in zip(X, notes, strict=True)]
    path.write_text("\n".join(["p,q,r,note", *lines]) + "\n")
    return path


@pytest.mark.parametrize("closed", [False, True])
def test_a_stray_quote_in_another_column_swallows_no_rows(closed, tmp_path):
    notes = ["ok"] * 60
    notes[10] = '"5 inch'
    if closed:
        notes[30] = '7"'
    path = table(tmp_path / "x.csv", notes)
    with pytest.raises(DemixError, match=r"line 12 has quotes that do not fit"):
        read_data(path, columns=["p", "q", "r"])
    # Quotes around a cell, and in the middle of one, are no trouble.
    whole = table(tmp_path / "y.csv", ['"a, b"', *['5" wide'] * 59])
    np.testing.assert_allclose(read_data(whole, columns=["p", "q", "r"]).array(), X, rtol=1e-6)


def test_a_cell_of_hundred_thousands_of_letters_ends_in_a_sentence(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('p,q,r\n1,2,3\n1,2,"' + "3" * 200_000 + '"\n')
    with pytest.raises(DemixError, match="field larger than field limit"):
        read_data(path)


@pytest.mark.parametrize("first", ["NA,NA,1.5", "?,?,?", "NULL,null,None", "0x1,0x2,0x3"])
def test_missing_numbers_in_the_first_line_are_no_names(first, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"{first}\n1.5,2,3\n4,5,6\n")
    with pytest.raises(DemixError, match="line 1 of"):
        read_data(path)


def test_a_map_whose_file_was_exchanged_is_read_as_it_is_mapped(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X + 100)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
    np.testing.assert_array_equal(as_data(mapped).precisely().take(torch.arange(60)).numpy(), X)


def test_masks_of_factors_are_not_lost():
    masked = np.ma.masked_greater(X, 1.0)
    for given in (masked, {"f": masked[:, 0]}):
        with pytest.raises(DemixError, match="entries are masked"):
            probe(X, given)


@pytest.mark.parametrize("read", [read_data, read_labels, read_factors, names.read_names])
def test_entries_without_a_size_are_refused(read, tmp_path):
    header = repr({"descr": "<U0", "fortran_order": False, "shape": (10**9,)}).encode() + b"\n"
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(DemixError, match="have no size"):
        read(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_packed_in_other_ways_are_not_opened(packing, tmp_path):
    np.save(tmp_path / "x.npy", X)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", packing) as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    with pytest.raises(DemixError, match="packed in another way than stored or deflated"):
        read_data(tmp_path / "x.npz")


def test_text_of_more_rows_than_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"f": ["a"] * 100}), path)
    monkeypatch.setattr("demix._support.memory.available_memory", lambda: 1000.0)
    monkeypatch.setattr("demix._support.memory._limits", lambda: iter([(1000.0, "for this test")]))
    with pytest.raises(DemixError, match="of memory, but"):
        read_factors(path)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("numbers.npy", read_labels),
        ("numbers.npy", read_time),
        ("numbers.npy", names.read_names),
        ("numbers.npy", lambda path: read_pairs(path, 100)),
        ("text.npy", read_factors),
        ("matrix.npy", lambda path: read_data(path).array()),
        ("text.csv", read_factors),
        ("names.csv", read_labels),
        ("names.csv", names.read_names),
    ],
)
def test_what_is_read_as_a_whole_must_fit_into_memory(name, read, tmp_path, monkeypatch):
    np.save(tmp_path / "numbers.npy", np.arange(100))
    np.save(tmp_path / "matrix.npy", X)
    np.save(tmp_path / "text.npy", np.array([["a"], ["b"]]))
    table(tmp_path / "text.csv", ["ok"] * 60)
    (tmp_path / "names.csv").write_text("p\na\nb\n")
    monkeypatch.setattr("demix._support.memory._limits", lambda: iter([(1000.0, "for this test")]))
    with pytest.raises(DemixError, match="of memory, but"):
        read(tmp_path / name)


def test_factors_without_rows_are_refused(demix, tmp_path):
    empty = {"p": pyarrow.array([], pyarrow.string()), "q": pyarrow.array([], pyarrow.float64())}
    parquet.write_table(pyarrow.table(empty), tmp_path / "et.parquet")
    table(tmp_path / "x.csv", ["ok"] * 60)
    assert "at least one row" in demix.refusal("probe", tmp_path / "x.csv", tmp_path / "et.parquet")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(4, 2, device="meta"),
        torch.eye(4).to_sparse(),
        torch.zeros(4, 2).to(torch.float8_e4m3fn),
    ],
    ids=["meta", "sparse", "float8"],
)
@pytest.mark.parametrize(
    "take",
    [
        as_data,
        lambda x: affine_r2(x, X),
        lambda x: probe(X, x),
        lambda x: check_pairs(x, 9),
        check_time,
    ],
    ids=["rows", "latents", "factors", "pairs", "time"],
)
def test_tensors_that_numpy_cannot_hold_are_refused(take, tensor):
    with pytest.raises(DemixError):
        take(tensor)


def test_tensors_with_a_sign_of_their_own_are_taken():
    x = torch.complex(torch.zeros(3, 2), torch.ones(3, 2)).conj().imag
    assert x.is_neg()
    assert as_data(x).take(torch.tensor([0])).tolist() == [[-1, -1]]


def test_what_lies_in_a_store_besides_its_array_is_not_read(demix, tmp_path):
    import zarr

    x, out = tmp_path / "z.zarr", tmp_path / "scores"
    zarr.create_array(x, data=np.concatenate([X, 1 - X]), chunks=(20, 3))
    before = input_digest(x)
    with (x / "stray.bin").open("wb") as file:
        file.truncate(2**31)  # of which nothing is on the disk
    assert input_digest(x) == read_data(x).digest() == before
    done = demix.run_briefly("evaluate", "--latents", x, "--factors", x, "--out", out)
    assert done.returncode == 0, done.stderr
    told = json.loads((out / "scores.json").read_text())["provenance"]
    assert told["latents"] == told["factors"] == f"z.zarr sha256 {before[:16]}"


def test_text_too_long_for_a_name_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("p\n" + "a\nb\n" * 20 + "c" * 1001 + "\n")
    for read in (read_labels, read_factors, names.read_names):
        with pytest.raises(DemixError, match="cells of at most 1000 letters, but line 42"):
            read(path)
    # Compressed, a repeated text takes next to no place in a file.
    text = pyarrow.array(["a", "b" * 2**20]).dictionary_encode()
    repeated = pyarrow.DictionaryArray.from_arrays(np.tile([0, 1], 750), text.dictionary)
    parquet.write_table(pyarrow.table({"p": repeated}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 2**17
    for read in (read_factors, names.read_names):
        with pytest.raises(DemixError, match=r"at most 1000 letters, but column 'p'.* of 1048576"):
            read(tmp_path / "x.parquet")


def test_a_name_too_long_for_a_column_is_refused(tmp_path):
    name = "n" * 1001
    (tmp_path / "x.csv").write_text(f"a,{name}\n1,2\n3,4\n")
    parquet.write_table(pyarrow.table({"a": [1, 2], name: [3, 4]}), tmp_path / "x.parquet")
    for file in ("x.csv", "x.parquet"):
        with pytest.raises(DemixError, match=r"at most 1000 letters, but .* has one of 1001"):
            read_data(tmp_path / file)


def test_text_of_labels_and_factors_takes_no_more_than_its_letters(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr("demix.metrics.factors.check_memory", lambda size, *_: made.append(size))
    cells = ["a", "b", "c" * 900] * 40
    (tmp_path / "x.csv").write_text("\n".join(["p", *cells]))
    labels = read_labels(tmp_path / "x.csv")
    assert labels.names == ("a", "b", "c" * 900)
    assert labels.values.tolist() == [0, 1, 2] * 40
    assert all(type(name) is str for name in labels.names)
    known = read_factors(tmp_path / "x.csv").values
    assert known.dtype == object
    probe(np.random.default_rng(0).normal(size=(120, 2)), known)
    assert made == [4 * 120 * 900]


def test_names_of_blocks_take_no_more_than_their_letters(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("c" * 100_000 + "\n" + "a\nb\n" * 500)
    blocks, read = read_blocks(str(path))
    assert blocks.tolist() == [2, *[0, 1] * 500]
    assert blocks.nbytes < 10_000
    assert read == [path]


@pytest.mark.parametrize("word", ["NA", "#N/A", "None"])
@pytest.mark.parametrize("name", ["x.txt", "x.csv"])
def test_rows_without_a_block_are_no_block(tmp_path, word, name):
    path = tmp_path / name
    path.write_text("".join(f"{cell}\n" for cell in ["a", word, "b", word, "a", "b"]))
    with pytest.raises(DemixError, match=r"Expected a block in .* that of row 1 .* is missing"):
        read_blocks(str(path))


def test_a_text_that_a_parquet_file_repeats_takes_its_room_once(tmp_path):
    text = pyarrow.array(["b" * 900, "a"])
    repeated = pyarrow.DictionaryArray.from_arrays(np.tile([0, 1], 30_000), text)
    parquet.write_table(pyarrow.table({"p": repeated}), tmp_path / "x.parquet")
    found = names.read_names(tmp_path / "x.parquet")
    assert found == ["b" * 900, "a"] * 30_000
    assert len({id(name) for name in found}) < 10


def test_notes_of_pandas_too_long_to_be_kept_are_not_read(tmp_path):
    notes = b'{"a": [' + b"{}," * 2**23 + b"0]}"
    frame = pyarrow.table({"p": [1.0, 2.0]}).replace_schema_metadata({b"pandas": notes})
    parquet.write_table(frame, tmp_path / "x.parquet", compression="none")
    with pytest.raises(DemixError, match="25165834 bytes of notes"):
        read_data(tmp_path / "x.parquet")


def test_the_first_lines_of_factors_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(factors, "read_csv", lambda path, header: ("all numbers", None))
    path = tmp_path / "x.csv"
    path.write_text(",".join(["12"] * 10_000) + "\n")
    path.write_text(path.read_text() * 40)
    tracemalloc.start()
    try:
        assert factors._csv_with_text(path, "auto").values == "all numbers"
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_line_without_an_end_is_refused(tmp_path):
    for name in ("x.csv", "x.txt"):
        with (tmp_path / name).open("wb") as file:
            file.write(b"1,2")
            file.truncate(3 * 2**30)
    (tmp_path / "y.csv").write_text("1," * 2**25 + "1")
    for path in (tmp_path / "x.csv", tmp_path / "y.csv"):
        with pytest.raises(
            DemixError, match=r"Expected (a text file|.* cells in a line and less than)"
        ):
            read_data(path)
    with pytest.raises(DemixError, match="Expected a text file"):
        names.read_names(tmp_path / "x.txt")


@pytest.mark.parametrize("steps", [1, 3000])
def test_whole_numbers_that_float64_merges_are_refused(steps):
    x = np.arange(0, 60 * steps, steps, dtype=np.uint64)[:, None] + np.uint64(2**63)
    with pytest.raises(DemixError, match="column 0 of the array lie beyond"):
        check_data(as_data(x))
    table = np.column_stack([np.zeros(60), 3000 * np.arange(60) + 2.0**63])
    with pytest.raises(DemixError, match="column 1 of the array lie beyond"):
        check_data(as_data(table))
    assert not check_data(as_data((x - x.min()) * np.uint64(2**40))).constant


def test_a_want_of_memory_is_not_called_damage():
    with pytest.raises(MemoryError), demix_errors("Expected a whole file", "write it again"):
        raise pyarrow.ArrowMemoryError("malloc failed")


def test_very_many_columns_are_read_in_a_time_that_grows_with_them(tmp_path):
    columns = {f"c{i}": pyarrow.array([0.0, 1.0]) for i in range(10_000)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    with within(30):
        assert read_data(tmp_path / "x.parquet").shape == (2, 10_000)


def test_latents_that_cannot_be_scored_are_refused_before_they_take_memory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "z.npz", np.zeros((300, 5000), dtype=np.uint8))
    np.savetxt(tmp_path / "f.csv", np.random.default_rng(0).normal(size=(300, 2)), delimiter=",")
    known = read_factors(tmp_path / "f.csv")
    monkeypatch.setattr("demix.data.factors.read_factors", lambda *_, **__: known)
    monkeypatch.setattr(Data, "array", lambda data: pytest.fail("it is read as a whole"))
    with pytest.raises(DemixError, match="needs at least 10004 rows, but got 300"):
        evaluate(tmp_path / "z.npz", tmp_path / "f.csv")


def test_columns_of_one_name_are_not_taken_for_each_other(tmp_path):
    columns = [pyarrow.array([1.0, 2.0]), pyarrow.array([3.0, 4.0]), pyarrow.array([5.0, 6.0])]
    parquet.write_table(pyarrow.Table.from_arrays(columns, ["a", "b", "a"]), tmp_path / "x.parquet")
    with pytest.raises(DemixError, match="has several called 'a'; rename them"):
        read_data(tmp_path / "x.parquet")
    assert read_data(tmp_path / "x.parquet", columns=["b"]).array().tolist() == [[3.0], [4.0]]


def test_a_parquet_file_of_an_index_alone_has_no_numbers(tmp_path):
    notes = json.dumps({"index_columns": ["i"], "columns": [], "column_indexes": []})
    table = pyarrow.table({"i": [1, 2]}).replace_schema_metadata({"pandas": notes})
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DemixError, match="has none but an index"):
        read_data(tmp_path / "x.parquet")


def test_very_many_columns_of_one_name_are_refused_at_once(tmp_path):
    columns = [pyarrow.array([1.0])] * 20_000
    names = [str(number // 2) for number in range(20_000)]
    parquet.write_table(pyarrow.Table.from_arrays(columns, names=names), tmp_path / "x.parquet")
    with within(5), pytest.raises(DemixError, match="several called '0'"):
        read_data(tmp_path / "x.parquet")
