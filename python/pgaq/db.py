"""Connections and queries; the only module that imports psycopg."""

from __future__ import annotations

from typing import Any

try:
    import psycopg
    from psycopg import sql
    from psycopg.rows import dict_row
except ImportError as error:  # pragma: no cover - says what to do
    raise SystemExit(
        "pgaq needs psycopg 3: run tools/setup, or apt-get install python3-psycopg, "
        "and use Debian's /usr/bin/python3"
    ) from error

__all__ = ["Connection", "Error", "OperationalError", "connect", "rows", "row", "value", "execute", "sql"]

Connection = psycopg.Connection
Error = psycopg.Error
OperationalError = psycopg.OperationalError


def connect(conninfo: str = "", *, autocommit: bool = True, **parameters: Any) -> psycopg.Connection:
    """Open a connection; autocommit unless told otherwise."""
    return psycopg.connect(conninfo, autocommit=autocommit, **parameters)


def rows(conn: psycopg.Connection, query: Any, parameters: Any = None) -> list[dict[str, Any]]:
    """All rows of one query, as dicts."""
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()


def row(conn: psycopg.Connection, query: Any, parameters: Any = None) -> dict[str, Any] | None:
    """The first row of one query, or None."""
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchone()


def value(conn: psycopg.Connection, query: Any, parameters: Any = None) -> Any:
    """The first column of the first row, or None."""
    found = conn.execute(query, parameters).fetchone()
    return None if found is None else found[0]


def execute(conn: psycopg.Connection, query: Any, parameters: Any = None) -> None:
    """Run a statement whose result does not matter."""
    conn.execute(query, parameters)
