from collections.abc import Iterator

import pytest

from demix._support.kernel.build import library
from demix.losses import streaming, tiles


@pytest.fixture(scope="module", params=["compiled", "tiles"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the tests of a module with the compiled kernel and again with plain tiles."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tiles":
            patch.setattr(streaming, "_engine", lambda *_: tiles)
        elif library() is None:
            pytest.skip("no C compiler")
        yield request.param
