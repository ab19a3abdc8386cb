"""Small helpers do what their names say."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
import torch

from demix._support.errors import DemixError, DemixWarning, demix_errors, need, shortened, warn
from demix._support.files import kind_of, open_regular
from demix._support.memory import check_memory, in_words
from demix._support.outputs import claim_file, claim_folder
from demix._support.process_group.group import Ranks, checked_group, under_torchrun
from demix._support.process_group.sharding import Sharding, even_sharding, shardings
from demix._support.provenance import cores, provenance
from demix._support.validation import as_numpy, check_device, refuse_masked
from demix.papers.workers.executors import SerialExecutor, process_environment


def test_warnings_are_plain_sentences():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("All 3 labels are alike.")
    assert (str(caught[0].message), caught[0].category) == ("All 3 labels are alike.", DemixWarning)
    assert caught[0].filename == __file__


def test_words_of_others_become_part_of_a_sentence():
    assert shortened("a\x07" + 100 * "b", 8) == "a?bbb..."
    with (
        pytest.raises(DemixError, match=r"^It is damaged \(odd\); mend it\.$"),
        demix_errors("It is damaged", "mend it"),
    ):
        raise LookupError("odd.\nMore lines.")
    with pytest.raises(DemixError, match=r"^kept$"), demix_errors("lost", "lost"):
        raise DemixError("kept")


def test_a_missing_library_is_named():
    words = "Reading tea leaves needs no_such_library, which is not installed; "
    with pytest.raises(DemixError, match=words):
        need("no_such_library", "Reading tea leaves", "tea")


def test_files_of_other_kinds_are_named():
    assert kind_of(os.stat("/").st_mode) == "a folder"
    with pytest.raises(DemixError, match=r"/dev/null is a device; save what it gives"):
        open_regular("/dev/null")


def test_sizes_are_words():
    assert (in_words(3_072_000_000), in_words(2_500)) == ("3.07 GB", "2.5 kB")
    words = r"Training needs about 1\.3e\+03 TB of memory, .*; take a smaller batch\.$"
    with pytest.raises(DemixError, match=words):
        check_memory(1e15, "Training", "take a smaller batch")


def test_results_of_others_are_kept(tmp_path):
    file = tmp_path / "z.npy"
    claim = partial(claim_file, file, "--out", suffix=".npy", start=b"NUMPY")
    with claim():
        file.write_bytes(b"NUMPY")
        with pytest.raises(DemixError, match="is there already; add --overwrite"), claim():
            pass
    words = r"holds something else \(it is not empty and has no fit\.json\)"
    with pytest.raises(DemixError, match=words):
        claim_folder(tmp_path, "fit.json")


def test_what_cannot_be_used_is_refused():
    check_device("cpu")
    for device in ("gpu", "hpu", "privateuseone"):  # torch looks for modules of the last two
        with pytest.raises(DemixError, match="a device that torch can use here, such as 'cpu'"):
            check_device(device)
    with pytest.raises(DemixError, match="labels without gaps, but 2 of their entries are masked"):
        refuse_masked(np.ma.masked_equal([1, 2, 2], 2), "labels")
    with pytest.raises(DemixError, match="labels that NumPy can hold, but got a tensor"):
        as_numpy(torch.empty(2, device="meta"), "labels")


def test_processes_do_not_find_modules_of_this_folder():
    assert cores() == provenance()["cores"] >= 1
    assert "commit" in provenance() or not os.path.exists(".git")
    with process_environment():
        code = "import sys; sys.exit('' in sys.path)"
        assert subprocess.call([sys.executable, "-c", code]) == 0


def test_a_serial_executor_calls_at_once():
    assert SerialExecutor().submit(abs, -1).result() == 1


def test_a_process_alone_is_all_ranks():
    alone = Ranks.current()
    assert (alone.count, alone.leads, alone.broadcast("hello")) == (1, True, "hello")
    assert not under_torchrun()
    assert shardings(None, torch.zeros(3, 2)) == [Sharding((3,), rank=0, group=None)]
    assert even_sharding(10, None).own == slice(0, 10)
    with pytest.raises(DemixError, match=r"process group of torch.distributed, but got 256; "):
        checked_group(256)
