"""The tables behind queues as PostgreSQL itself sees them: size, dead tuples, age, how often used."""

from __future__ import annotations

from dataclasses import dataclass

from pgaq import db

SLOTS = 16384  # messages of a partition

OURS = "c.relnamespace = 'aq_data'::regnamespace AND c.relkind = 'r'"


@dataclass
class Stored:
    """All queues' tables at one moment."""

    bytes: int
    tables: int
    dead: int  # tuples, of our tables
    dead_pg_class: int
    frozen_age: int  # the oldest relfrozenxid
    reuses: int  # of the least reused partition
    uses: float  # of the average one


def dead_tuples(conn: db.Connection) -> dict[str, int]:
    """Relations of ours that have dead tuples (needs pgstattuple)."""
    query = """
        SELECT c.oid::regclass::text, (pgstattuple(c.oid)).dead_tuple_count
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 't') AND (n.nspname IN ('aq_internal', 'aq_data')
            OR c.oid IN (SELECT reltoastrelid FROM pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace WHERE m.nspname = 'aq_data'))
    """
    return {name: count for name, count in conn.execute(query) if count}


def catalog_dead(conn: db.Connection) -> int:
    """Dead tuples of pg_class."""
    return db.value(conn, "SELECT dead_tuple_count FROM pgstattuple('pg_class')")


def size(conn: db.Connection) -> tuple[int, int]:
    """Bytes of all message tables and logs, and their number."""
    return conn.execute(f"SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, count(*) FROM pg_class c WHERE {OURS}").fetchone()


def frozen_age(conn: db.Connection) -> int:
    """The largest age(relfrozenxid) of message tables and logs."""
    return db.value(conn, f"SELECT max(age(c.relfrozenxid)) FROM pg_class c WHERE {OURS}") or 0


def inserted(conn: db.Connection) -> dict[str, int]:
    """Rows that were ever inserted into each message table, as PostgreSQL's statistics count them."""
    query = f"SELECT c.relname, pg_stat_get_tuples_inserted(c.oid) FROM pg_class c WHERE {OURS} AND c.relname LIKE 'q%%'"
    return dict(conn.execute(query).fetchall())


def reuses(rows: dict[str, int], slots: int = SLOTS) -> int:
    """How often the least used partition was filled again; counts full ones only, so it may say too little.

    A partition is filled once before it can be reused, so n fillings are n - 1 reuses.
    """
    return max(0, min(rows.values(), default=0) // slots - 1)


def uses(rows: dict[str, int], slots: int = SLOTS) -> float:
    """How often the average partition was filled."""
    return sum(rows.values()) / len(rows) / slots if rows else 0.0


def look(conn: db.Connection) -> Stored:
    """All of it, now."""
    taken, number = size(conn)
    rows = inserted(conn)
    return Stored(taken, number, sum(dead_tuples(conn).values()), catalog_dead(conn), frozen_age(conn), reuses(rows), uses(rows))
