"""Stores that a stranger wrote run nothing, hide no gap and take no memory by a claim."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from contextlib import suppress
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import zarr
from numcodecs.registry import codec_registry
from sentences import everything, refusal
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec

from alarm import within
from demix import read_data
from demix.data.data import as_data

MATRIX = np.random.default_rng(0).integers(1, 99, size=(50, 4)).astype(np.float32)


def store(path, **options):
    """A store of 5 x 2 chunks."""
    zarr.create_array(path, data=MATRIX, **{"chunks": (10, 2), **options})
    return path


def change(path: Path, **entries) -> Path:
    """Write other entries into the metadata of a store."""
    file = next(path / name for name in ("zarr.json", ".zarray") if (path / name).exists())
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
    return path


def open_any(x):
    return read_data(x) if isinstance(x, Path) else as_data(x)


class Bomb:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, left: Path) -> None:
        self.left = left

    def __reduce__(self):
        return os.mkdir, (str(self.left),)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "attributes",
    [{"scale_factor": 0.01, "add_offset": 273.15}, {"add_offset": 1}, {"missing_value": -999}]
    + [{"_Unsigned": "true"}]  # bytes up to 127 and from -128 on
    + [{"_FillValue": x} for x in (-9999, 0, "AAAAAAAAAAA=")],
)
def test_packed_numbers_are_refused(tmp_path, version, attributes):
    path = store(tmp_path / "x.zarr", zarr_format=version, attributes=attributes)
    told = f"are packed (its attributes hold {next(iter(attributes))}); decode them"
    for x in (path, zarr.open_array(path, mode="r")):
        assert told in refusal(open_any, x)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("gap", [float("nan"), "NaN", "AAAAAAAA+H8=", None])
def test_a_gap_that_is_nan_packs_nothing(tmp_path, version, gap):
    attributes = {"_FillValue": gap, "units": "K", "_ARRAY_DIMENSIONS": ["t", "x"]}
    path = store(tmp_path / "x.zarr", zarr_format=version, attributes=attributes)
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)


@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_a_pickle_in_a_chunk_is_never_opened(tmp_path, place):
    path, left = tmp_path / "x.zarr", tmp_path / "left"
    zarr.create_array(path, data=MATRIX, chunks=MATRIX.shape, zarr_format=2, compressors=None)
    codec = {"id": "pickle", "protocol": 5}
    change(path, **{place: codec if place == "compressor" else [codec]})
    (path / "0.0").write_bytes(pickle.dumps(Bomb(left)))
    assert "x.zarr need the codec 'pickle', which demix never runs" in refusal(open_any, path)
    assert not left.exists()


def test_a_pickle_is_never_opened_though_zarr_may_do_so(tmp_path, monkeypatch):
    # As somebody may set it who trusts stores of his own, and as it was up to numcodecs 0.16.5.
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    path, left = tmp_path / "x.zarr", tmp_path / "left"
    zarr.create_array(path, shape=(1, 1), chunks=(1, 1), dtype=str, zarr_format=2)
    change(path, compressor={"id": "pickle", "protocol": 5})
    (path / "0.0").write_bytes(pickle.dumps(Bomb(left)))
    array = zarr.open_array(path, mode="r")
    for x in (path, array):
        assert "need the codec 'pickle'" in refusal(open_any, x)
    assert not left.exists()
    with suppress(TypeError):
        array[:]
    assert left.exists()


def test_a_codec_that_is_installed_is_not_even_made(tmp_path):
    made = []

    class Installed(numcodecs.Zlib):
        codec_id = "demix_test"

        @classmethod
        def from_config(cls, config):
            made.append(cls)
            return cls()

        from_dict = from_config

    zarr.registry.register_codec("demix_test", Installed)
    numcodecs.register_codec(Installed)
    try:
        new = change(store(tmp_path / "3.zarr"), codecs=[{"name": "demix_test"}])
        old = store(tmp_path / "2.zarr", zarr_format=2)
        change(old, compressor={"id": "demix_test"})
        for path in (new, old):
            assert "the codec 'demix_test'" in refusal(open_any, path)
        assert not made
        zarr.open_array(old, mode="r")
        assert made
    finally:
        del codec_registry["demix_test"]


@pytest.mark.parametrize(
    "name", ["json2", "msgpack2", "vlen-utf8", "vlen-array", "categorize", "base64", "zfpy", "new"]
)
def test_a_codec_that_is_not_of_numbers_is_refused_by_name(tmp_path, name):
    old = change(store(tmp_path / "2.zarr", zarr_format=2), filters=[{"id": name}])
    assert f"the codec {name!r}" in refusal(open_any, old)
    new = store(tmp_path / "3.zarr", shards=(20, 2))
    plain, bad = {"name": "bytes"}, {"name": f"numcodecs.{name}", "configuration": {}}
    for codecs in ([plain, bad], [shard([plain, bad], [plain])], [shard([plain], [plain, bad])]):
        assert f"the codec 'numcodecs.{name}'" in refusal(open_any, change(new, codecs=codecs))


def shard(codecs, index_codecs):
    settings = {"chunk_shape": [10, 2], "codecs": codecs, "index_codecs": index_codecs}
    return {"name": "sharding_indexed", "configuration": settings}


def test_shards_that_are_compressed_as_a_whole_are_refused(tmp_path):
    path = store(tmp_path / "x.zarr", shards=(20, 2))
    plain, packed = {"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}
    for codecs in ([shard([plain], [plain]), packed], [shard([plain], [plain, packed])]):
        assert "compressed as a whole" in refusal(open_any, change(path, codecs=codecs))


def test_a_codec_that_makes_long_text_of_numbers_is_refused(tmp_path):
    path = store(tmp_path / "x.zarr", zarr_format=2)
    text = {"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<U1000000"}
    assert "the codec 'astype' of" in refusal(open_any, change(path, filters=[text]))


def wrapped(name, **settings):
    return {"name": f"numcodecs.{name}", "configuration": settings}


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shards": (20, 4)},
        {"compressors": None},
        {"compressors": BloscCodec(), "filters": TransposeCodec(order=(1, 0))},
        {"compressors": GzipCodec(), "serializer": BytesCodec(endian="big")},
        {"compressors": [wrapped("shuffle"), wrapped("lz4"), wrapped("crc32c")]},
        {"filters": [wrapped("delta", dtype="<f4")], "compressors": [wrapped("bz2")]},
        {"zarr_format": 2},
        {"zarr_format": 2, "compressors": numcodecs.Blosc()},
        {"zarr_format": 2, "compressors": numcodecs.LZMA(), "chunk_key_encoding": "/"},
        {
            "zarr_format": 2,
            "filters": [numcodecs.FixedScaleOffset(offset=0, scale=1, dtype="<f4", astype="<u1")],
            "compressors": numcodecs.Zlib(),
        },
    ],
)
def test_codecs_of_numbers_are_read(tmp_path, options):
    if "chunk_key_encoding" in options:
        options = options | {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    path = store(tmp_path / "x.zarr", **options)
    assert np.array_equal(everything(read_data(path)), MATRIX)
    assert np.array_equal(everything(as_data(zarr.open_array(path, mode="r"))), MATRIX)


@pytest.mark.parametrize(
    ("options", "chunk", "number"),
    [
        ({}, "c/1/0", 10),
        ({"shards": (20, 4)}, "c/1/0", 3),
        ({"chunk_key_encoding": {"name": "default", "separator": "."}}, "c.1.0", 10),
        ({"zarr_format": 2}, "1.0", 10),
        ({"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}, "1/0", 10),
    ],
)
def test_a_missing_chunk_is_told(tmp_path, options, chunk, number):
    path = store(tmp_path / "x.zarr", **options)
    # Neither what is no chunk nor what lies beyond the array takes its place.
    beyond = path / chunk.replace("1", "9")
    beyond.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path / chunk, beyond)
    (path / "notes 1 0").write_text("none")
    told = refusal(open_any, path)
    assert f"Expected all {number} chunks of {path}, but it lacks 1, which would be read" in told
    assert "as 0.0; write the store again, with write_empty_chunks=True" in told
    assert "it lacks 1" in refusal(open_any, zarr.open_array(path, mode="r"))


def test_a_missing_chunk_of_a_group_is_told(tmp_path):
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=2)
    group.create_array("a", data=MATRIX, chunks=(10, 4))
    zarr.consolidate_metadata(group.store)
    (tmp_path / "x.zarr" / "a" / "0.0").unlink()
    assert "all 5 chunks" in refusal(open_any, tmp_path / "x.zarr")


def test_chunks_that_read_as_nan_are_found_later_and_zeros_may_be_meant(tmp_path):
    path = store(tmp_path / "x.zarr", fill_value=np.nan)
    (path / "c" / "1" / "0").unlink()
    assert np.isnan(everything(read_data(path))[10:20, :2]).all()
    whole = {"write_empty_chunks": True}
    zarr.create_array(tmp_path / "0.zarr", data=0 * MATRIX, chunks=(10, 2), config=whole)
    assert not everything(read_data(tmp_path / "0.zarr")).any()


@pytest.mark.parametrize("fill", [0.0, np.nan])
@pytest.mark.parametrize("version", [2, 3])
def test_a_claim_of_many_rows_is_refused_at_once(tmp_path, version, fill):
    path = store(tmp_path / "x.zarr", zarr_format=version, fill_value=fill)
    change(path, shape=[10**9, 4])
    assert "all 200000000 chunks of" in refusal(open_any, path)


@pytest.mark.parametrize(
    "options", [{}, {"zarr_format": 2}, {"shards": (10, 2)}], ids=["3", "2", "shards"]
)
def test_a_claim_of_much_in_one_chunk_is_refused_before_it_is_read(tmp_path, options):
    path = store(tmp_path / "x.zarr", **options)
    much = [10**13, 2]
    grid = {"name": "regular", "configuration": {"chunk_shape": much}}
    change(path, **({"chunks": much} if options.get("zarr_format") == 2 else {"chunk_grid": grid}))
    assert f"Reading a chunk of {path} needs about" in refusal(open_any, path)


@pytest.mark.parametrize(("version", "name"), [(3, "zarr.json"), (2, ".zarray"), (2, ".zattrs")])
def test_metadata_too_long_to_be_kept_are_not_read(tmp_path, version, name):
    path = store(tmp_path / "x.zarr", zarr_format=version)
    os.truncate(path / name, 2**24 + 1)
    assert f"({name} has more than 16777216 bytes)" in refusal(open_any, path)


def test_chunks_without_numbers_are_refused(tmp_path):
    path = change(store(tmp_path / "x.zarr", zarr_format=2), chunks=[0, 2])
    assert "chunks that hold something" in refusal(open_any, path)


@pytest.mark.parametrize("text", ["{", "[]", "7", "{}", '{"shape": 7, "codecs": ["bytes"]}'])
@pytest.mark.parametrize("name", ["zarr.json", ".zarray"])
def test_metadata_that_are_none_are_told(tmp_path, name, text):
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / name).write_text(text)
    assert refusal(open_any, tmp_path / "x.zarr").startswith("Expected")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
@pytest.mark.parametrize(
    ("version", "name"),
    [(3, "zarr.json"), (3, "c/1/0"), (2, ".zarray"), (2, ".zattrs"), (2, "1.0")],
)
@pytest.mark.parametrize("link", [False, True])
def test_nobody_waits_for_a_pipe(tmp_path, version, name, link):
    path = store(tmp_path / "x.zarr", zarr_format=version)
    (path / name).unlink()
    pipe = tmp_path / "pipe" if link else path / name
    os.mkfifo(pipe)
    if link:
        (path / name).symlink_to(pipe)
    try:
        with within(10):
            told = refusal(open_any, path)
    finally:
        # Lets a thread go that waits nevertheless.
        with suppress(OSError):
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    assert f"{path / name} is a " in told


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel shows no files")
def test_nobody_waits_for_a_file_of_the_kernel(tmp_path):
    path = store(tmp_path / "x.zarr")
    (path / "c/1/0").unlink()
    (path / "c/1/0").symlink_to("/proc/self/status")
    assert f"{path / 'c/1/0'} is a link" in refusal(open_any, path)


def test_links_to_files_are_followed(tmp_path):
    path = store(tmp_path / "x.zarr")
    for name in ("zarr.json", "c/1/0"):
        shutil.move(path / name, tmp_path / "kept")
        (path / name).symlink_to((tmp_path / "kept").rename(tmp_path / name.replace("/", "")))
    (tmp_path / "link.zarr").symlink_to(path)
    assert np.array_equal(everything(read_data(tmp_path / "link.zarr")), MATRIX)
    (tmp_path / "c10").unlink()
    assert f"{path / 'c' / '1' / '0'} is a link" in refusal(open_any, path)


@pytest.mark.parametrize("kind", ["<f4", "<i4"])
def test_a_fill_value_among_the_numbers_is_a_gap(tmp_path, kind):
    rows = MATRIX.astype(kind)
    rows[33, 1] = -9999
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=rows, chunks=(10, 2), zarr_format=2, fill_value=-9999)
    assert "are its fill value -9999" in refusal(lambda: everything(read_data(path)))
    change(path, fill_value=None)
    np.testing.assert_array_equal(everything(read_data(path)), rows)


@pytest.mark.parametrize("fill", [0, float("nan"), -9999])
def test_a_fill_value_that_no_number_has_is_no_gap(tmp_path, fill):
    path = store(tmp_path / "x.zarr", zarr_format=2, fill_value=fill)
    np.testing.assert_array_equal(everything(read_data(path)), MATRIX)


def test_folders_deep_in_each_other_are_no_trouble(abyss):
    data = read_data(store(abyss))
    data.check_unchanged()
    np.testing.assert_array_equal(everything(data), MATRIX)
