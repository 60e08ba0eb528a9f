"""Fixtures of the Python package's own tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pgaq.server import Server  # noqa: E402


@pytest.fixture(scope="module")
def plain_server():
    """A server without the extension, for tests of the tools themselves."""
    with Server.temporary("tools", settings={"shared_preload_libraries": ""}) as server:
        yield server
        assert server.problems() == []
