"""Downloads against a server on this machine that breaks off, lies, or is not there."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

import official
from demix import DemixError
from demix.papers import fetch_dataset, open_factor_images
from demix.papers.datasets import transfer
from demix.papers.datasets.download import OFFICIAL
from file_server import FileServer

pytest.importorskip("requests", reason="the extra `papers` is not installed")
# Attempts that fail are warned of, and files without a checksum.
pytestmark = pytest.mark.filterwarnings("ignore::demix.DemixWarning")
NAME = "mpi3d_real.npz"  # of which no checksum is known
CHUNK = 2**16


@pytest.fixture
def server(empty_server) -> FileServer:
    return empty_server


def sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def some_bytes(size: int = 1_000_000) -> bytes:
    return b"PK\x03\x04" + np.random.default_rng(0).bytes(size - 4)


def test_a_connection_that_breaks_off_is_taken_up_again(server, tmp_path):
    data = server.files[NAME] = some_bytes()
    first = 5 * CHUNK + 100
    server.breaks = [first, 0, 7 * CHUNK]
    told = []
    path = fetch_dataset(
        "mpi3d_real",
        tmp_path / "new",
        source=server.address,
        checksum=sha(data),
        callback=lambda done, total, what: told.append((done, total, what)),
    )
    assert path.read_bytes() == data
    assert [asked.get("Range") for asked in server.asked] == [
        None, f"bytes={first}-", f"bytes={first}-", f"bytes={first + 7 * CHUNK}-",
    ]  # fmt: skip
    assert told[-1] == (len(data), len(data), NAME)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert [file.name for file in path.parent.iterdir()] == [NAME]


def test_what_came_is_kept_for_another_call(server, tmp_path):
    data = server.files[NAME] = some_bytes()
    server.breaks = [6 * CHUNK, 0, 0, 0]
    with pytest.raises(DemixError, match=r"connection broke off.*what came is kept") as told:
        fetch_dataset("mpi3d_real", tmp_path, source=server.address)
    assert f"put it at {tmp_path / NAME}" in str(told.value)
    assert (tmp_path / f"{NAME}.demix-part").stat().st_size == 6 * CHUNK
    assert not (tmp_path / NAME).exists()
    server.asked.clear()
    assert fetch_dataset("mpi3d_real", tmp_path, source=server.address).read_bytes() == data
    assert server.asked[0]["Range"] == f"bytes={6 * CHUNK}-"
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


def test_a_file_that_was_changed_meanwhile_is_fetched_from_its_beginning(server, tmp_path):
    server.files[NAME] = some_bytes()
    server.breaks = [6 * CHUNK, 0, 0, 0]
    with pytest.raises(DemixError):
        fetch_dataset("mpi3d_real", tmp_path, source=server.address)
    server.files[NAME] = some_bytes()[:4] + some_bytes()[:3:-1]
    found = fetch_dataset("mpi3d_real", tmp_path, source=server.address)
    assert found.read_bytes() == server.files[NAME]


def test_a_part_that_is_whole_already_is_taken(server, tmp_path):
    data = server.files[NAME] = some_bytes()
    for server.ranges in (True, False):
        (tmp_path / f"{NAME}.demix-part").write_bytes(data)
        (tmp_path / f"{NAME}.demix-part.tag").touch()
        assert fetch_dataset("mpi3d_real", tmp_path, source=server.address).read_bytes() == data
        (tmp_path / NAME).unlink()


def test_a_server_without_ranges_gives_all_of_it_again(server, tmp_path):
    data = server.files[NAME] = some_bytes()
    server.breaks, server.ranges = [6 * CHUNK], False
    assert fetch_dataset("mpi3d_real", tmp_path, source=server.address).read_bytes() == data


def test_another_checksum_is_not_taken(server, tmp_path):
    data = server.files[NAME] = some_bytes()
    wrong = sha(data + b"!")
    with pytest.raises(DemixError, match=r"another checksum than sha256:.* and was removed"):
        fetch_dataset("mpi3d_real", tmp_path, source=server.address, checksum=wrong)
    assert not any(tmp_path.iterdir())
    (tmp_path / NAME).write_bytes(data)
    with pytest.raises(DemixError, match="it has another checksum; remove it"):
        fetch_dataset("mpi3d_real", tmp_path, source=server.address, checksum=wrong)
    assert (tmp_path / NAME).read_bytes() == data  # perhaps somebody's only copy
    for text in (
        "1234",
        "crc:12",
        "sha256:abc",
        "md5:" + 40 * "0",
        "sha1:" + 32 * "0",
        "sha256:" + 64 * "g",
    ):
        with pytest.raises(DemixError, match="A checksum is sha256"):
            fetch_dataset("mpi3d_real", tmp_path, checksum=text)


def test_a_file_put_there_by_hand_needs_no_network(tmp_path):
    official.write_mpi3d(tmp_path / NAME)
    path = fetch_dataset("mpi3d_real", tmp_path, source="http://127.0.0.1:9")
    assert len(open_factor_images(path)) == 460_800
    (tmp_path / "3dshapes.h5").write_bytes(b"cut off")
    with pytest.raises(DemixError, match=r"Expected 267573662 bytes in .*3dshapes.h5, but found 7"):
        fetch_dataset("shapes3d", tmp_path)


def test_offline_says_what_to_put_where(monkeypatch, server, demix, tmp_path):
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)
    with pytest.raises(DemixError, match=r"\(no answer\)") as told:
        fetch_dataset("dsprites", tmp_path, source="http://127.0.0.1:9/there")
    assert f"put it at {tmp_path / official.DSPRITES}" in str(told.value)
    with pytest.raises(DemixError, match="the server says 404"):
        fetch_dataset("dsprites", tmp_path, source=server.address)
    line = demix.refusal("download", "shapes3d", "--out", tmp_path, "--source", server.address)
    assert "404" in line
    assert str(tmp_path / "3dshapes.h5") in line


def test_the_command_fetches_and_says_what_to_do_next(server, demix, tmp_path):
    server.files[NAME] = some_bytes(1000)
    done = demix.run("download", "mpi3d_real", "--out", tmp_path, "--source", server.address)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(f"--data {tmp_path / NAME}")
    assert "Unknown data set 'mnist'" in demix.refusal("download", "mnist", "--out", tmp_path)


def test_a_set_of_several_files_is_a_folder(server, tmp_path):
    official.write_norb(tmp_path / "there", 4, packed=True)
    for file in (tmp_path / "there").iterdir():
        server.files[file.name] = file.read_bytes()
    # They are not the official ones.
    with pytest.raises(DemixError, match=r"the server has \d+ bytes, but expected 131896188"):
        fetch_dataset("smallnorb", tmp_path / "here", source=server.address)
    with pytest.raises(DemixError, match="for the 6 of smallnorb"):
        fetch_dataset("smallnorb", tmp_path / "here", checksum=sha(b""))


def test_every_address_is_whole_and_every_checksum_has_its_length():
    lengths = {"md5": 32, "sha256": 64}
    for files in OFFICIAL.values():
        for file in files:
            assert re.fullmatch(r"https?://[\w.~/-]+[^/]", file.place)
            if file.checksum is not None:
                kind, _, digits = file.checksum.partition(":")
                assert re.fullmatch(rf"[0-9a-f]{{{lengths[kind]}}}", digits)
