"""What the sources' queries ask, in our own words: each question is answered by a view, and its answer is counted."""

from __future__ import annotations

from typing import Any

from pgaq import db
from pgaq.lab.site import Site

QUESTIONS = {
    "latch_numbers": "SELECT count(*) FROM sys.\"v$latch\" WHERE name = 'row cache objects' AND \"latch#\" >= 0",
    "class_parameters": "SELECT count(*) FROM pg_settings WHERE name = 'pgaq.latch_classes' OR name LIKE 'pgaq.latch\\_class\\__'",
    "channel_children": "SELECT count(*) FROM sys.\"v$latch_children\" WHERE name = 'channel operations parent latch'",
    "objects": "SELECT count(*) FROM sys.\"v$db_object_cache\" WHERE name ILIKE 'lab_question' AND hash_value > 0",
    "latch_classes": "SELECT count(*) FROM aq.latch_classes",
    "class_of_latch": "SELECT count(*) FROM aq.latch_classes WHERE 'lab' = ANY (latches) AND spin_count = 250",
    "events": "SELECT count(*) FROM sys.\"v$event_name\" WHERE name IN ('latch free', 'library cache: mutex X') AND parameter1 IN ('address', 'idn')",
}
LOCKS = "SELECT count(*) FROM sys.\"v$libcache_locks\""


def questions(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The answer of each question as a number."""
    with site.connect() as conn:
        conn.execute("SELECT aq.create_queue('lab_question', multiple_consumers => true, if_not_exists => true)")
        conn.execute("SELECT aq.subscribe('lab_question', 'ksub_1', if_not_exists => true)")
        conn.execute("SELECT aq.enqueue('lab_question', '1'::jsonb), count(*) FROM aq.dequeue('lab_question', 'ksub_1', 1)")
        found = {name: float(db.value(conn, question)) for name, question in QUESTIONS.items()}
        found["locks"] = float(db.value(conn, LOCKS))
        conn.execute("SELECT aq.drop_queue('lab_question', force => true)")
    return found
