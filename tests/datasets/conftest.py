"""What the tests of datasets share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests on real data, so that each dataset is prepared once."""
    return tmp_path_factory.mktemp("cache")
