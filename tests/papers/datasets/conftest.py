"""A server of files for downloads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alarm import within
from demix.papers.datasets import transfer
from file_server import FileServer


@pytest.fixture
def empty_server(monkeypatch) -> Iterator[FileServer]:
    """A server without files, for a test that ends after 20 seconds at most."""
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)
    with within(20), FileServer() as served:
        yield served
