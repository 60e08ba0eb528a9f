"""Connections and queries; the only module that imports psycopg."""

from __future__ import annotations

import os
from typing import Any

from pgaq import text

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.rows import dict_row
    from psycopg.types.json import set_json_loads
except ImportError as error:  # pragma: no cover - says what to do
    raise SystemExit(
        "pgaq needs psycopg 3: run tools/setup, or apt-get install python3-psycopg, and use Debian's /usr/bin/python3"
    ) from error

__all__ = [
    "Canceled", "Connection", "Error", "OperationalError", "connect", "conninfo", "rows", "row", "value", "execute", "keep_digits", "parts", "said", "sql", "used_password",
    "password_refused", "versions",
]  # fmt: skip

Connection = psycopg.Connection
Error = psycopg.Error
OperationalError = psycopg.OperationalError
Canceled = psycopg.errors.QueryCanceled


def connect(conninfo: str = "", *, autocommit: bool = True, **parameters: Any) -> psycopg.Connection:
    """Open a connection; autocommit unless told otherwise."""
    return psycopg.connect(_with_service(conninfo), autocommit=autocommit, **parameters)


def keep_digits(conn: psycopg.Connection) -> None:
    """JSON that this connection reads has its numbers as they are written, text.Digits."""
    set_json_loads(text.from_json, conn)


def _with_service(conninfo: str) -> str:
    """With the server that the service names: psycopg resolves PGHOST, which libpq uses only where the service names none."""
    given = conninfo_to_dict(conninfo)
    service, before = given.get("service"), os.environ.get("PGSERVICE")
    if not (service or before):
        return conninfo
    try:
        if service:
            os.environ["PGSERVICE"] = str(service)
        defaults = {each.keyword.decode(): each.val for each in psycopg.pq.Conninfo.get_defaults()}
    finally:
        if before is None:
            os.environ.pop("PGSERVICE", None)
        else:
            os.environ["PGSERVICE"] = before
    found = {name: (defaults.get(name) or b"").decode() for name in ("host", "hostaddr", "port") if name not in given}
    return psycopg.conninfo.make_conninfo(conninfo, **{name: word for name, word in found.items() if word})


def conninfo(word: str) -> str:
    """A connection string from what psql also takes for -d: a connection string, a URI, or the name of a database."""
    plain = "=" not in word and not word.startswith(("postgresql://", "postgres://"))
    found = psycopg.conninfo.make_conninfo(dbname=word) if plain else word
    conninfo_to_dict(found)  # raises an error that names the mistake
    return found


def parts(word: str) -> dict[str, Any]:
    """The parameters in what conninfo() takes."""
    return conninfo_to_dict(conninfo(word))


def said(error: psycopg.Error) -> tuple[str | None, str, str, str]:
    """SQLSTATE (null: not from the server), message, detail and hint of an error, each in one line."""
    diag = error.diag
    words = (diag.message_primary or str(error), diag.message_detail or "", diag.message_hint or "")
    message, detail, hint = (" ".join(word.split()) for word in words)
    return diag.sqlstate, message, detail, hint


def versions() -> dict[str, str]:
    """Versions of the driver and of libpq."""
    return {"psycopg": psycopg.__version__, "libpq": str(psycopg.pq.version())}


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


def password_refused(error: psycopg.Error) -> bool:
    """Whether a connection failed after the server had demanded its password."""
    return error.pgconn is not None and bool(error.pgconn.used_password)


def used_password(conn: psycopg.Connection) -> bool:
    """Whether the server has demanded a password of this connection."""
    return bool(conn.pgconn.used_password)
