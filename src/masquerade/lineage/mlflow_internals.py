"""What Masquerade uses of MLflow beyond its public interface, in one place: two columns of its SQLite store.

``tests/unit/test_tracking.py`` fails when an installed MLflow differs from VERSION in these parts.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

VERSION = "3.17.2"
"""The version of MLflow for which this module is written."""
REFUSED_HOST = "Invalid Host header"
"""What a server answers to whoever calls it by a name that its option ``--allowed-hosts`` does not hold."""


def move_artifacts(database: Path, old: str, new: str) -> None:
    """Replace the address ``old`` of the folder of artifacts in a store by ``new``. MLflow keeps it with each run."""
    with closing(sqlite3.connect(database, timeout=60)) as store, store:
        for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
            store.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} = ? OR {column} LIKE ? || '/%'",
                [new, len(old) + 1, old, old],
            )
