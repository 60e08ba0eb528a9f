"""What the sources' queries ask, in our own words: each question is answered by a view, and its answer is counted."""

from __future__ import annotations

from typing import Any

from pgaq import db
from pgaq.lab.site import Site

QUESTIONS = {
    "latches_of_name": "SELECT count(*) FROM sys.\"v$latch\" WHERE name = 'row cache objects'",
    "latches_of_number": 'SELECT count(*) FROM sys."v$latch" WHERE "latch#" IN (SELECT "latch#" FROM sys."v$latch" WHERE name = \'row cache objects\')',
    "class_parameters": "SELECT count(*) FROM pg_settings WHERE name = 'pgaq.latch_classes' OR name LIKE 'pgaq.latch\\_class\\__'",
    "assigned_by_parameter": "SELECT count(*) FROM pg_settings WHERE name = 'pgaq.latch_classes' AND setting = 'lab:1'",
    "spin_by_parameter": "SELECT coalesce(max(substring(setting FROM '^\\d+')::int), 0) FROM pg_settings WHERE name = 'pgaq.latch_class_1'",
    "channel_children": "SELECT count(*) FROM sys.\"v$latch_children\" WHERE name = 'channel operations parent latch'",
    "objects": "SELECT count(*) FROM sys.\"v$db_object_cache\" WHERE name ILIKE 'lab_question' AND hash_value > 0",
    "class_of_latch": "SELECT coalesce(max(class), 0) FROM aq.latch_classes WHERE 'lab' = ANY (latches)",
    "latches_in_class": "SELECT coalesce(sum(cardinality(latches)), 0) FROM aq.latch_classes WHERE class = 1",
    "spin_of_class": "SELECT coalesce(max(spin_count), 0) FROM aq.latch_classes WHERE 'lab' = ANY (latches)",
}
LOCKS = """SELECT count(*)::float8 AS locks, (count(*) FILTER (WHERE object_handle IN (SELECT addr FROM sys."v$db_object_cache" WHERE name ILIKE 'lab_question')))::float8 AS locks_of_object
	FROM sys."v$libcache_locks" WHERE pid = pg_backend_pid()"""
CHILDREN = 'SELECT "child#", gets FROM sys."v$latch_children" WHERE name = \'channel operations parent latch\''


def questions(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The answer of each question as a number."""
    with site.connect() as conn:
        conn.execute("SELECT aq.create_queue('lab_question', multiple_consumers => true, if_not_exists => true)")
        conn.execute("SELECT aq.subscribe('lab_question', 'ksub_1', if_not_exists => true)")
        conn.execute("SELECT aq.enqueue('lab_question', '1'::jsonb), count(*) FROM aq.dequeue('lab_question', 'ksub_1', 1)")
        found = {name: float(db.value(conn, question)) for name, question in QUESTIONS.items()}
        found |= db.row(conn, LOCKS) or {}
        conn.execute("SELECT count(*) FROM aq.dequeue('lab_question', 'ksub_1', 10)")  # nothing is left that a listen would return for
        before = dict(conn.execute(CHILDREN).fetchall())
        conn.execute("SET pgaq.listen_wakeup = broadcast")
        conn.execute("CALL aq.listen(ARRAY['lab_question'], ARRAY['ksub_1'], '0.1 s', NULL, NULL)")
        found["children_got"] = float(sum(gets > before.get(child, 0) for child, gets in conn.execute(CHILDREN).fetchall()))
        conn.execute("SELECT aq.drop_queue('lab_question', force => true)")
    return found
