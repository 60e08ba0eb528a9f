"""What pgaq shows, described once: a query, its columns, their units and what they mean.

The command draws these subjects in a terminal and as JSON.  Nothing here knows how they are drawn: a console or an
exporter of metrics can read the same descriptions.
"""

from __future__ import annotations

from pgaq.subjects.model import UNITS, Column, Rule, Subject, across_versions
from pgaq.subjects.advice import RULES
from pgaq.subjects.cluster import LINKS, NODES, PROPAGATIONS
from pgaq.subjects.messages import DEAD_LETTERS, EXCEPTION_QUEUES, KEYS, MESSAGES
from pgaq.subjects.queues import (
    CONSUMERS,
    PAUSES,
    PRIVILEGES,
    QUEUE,
    QUEUE_UNITS,
    QUEUES,
    SCHEDULE,
    SCHEDULE_TIMES,
    SCHEDULES,
    SHARDS,
    SUBSCRIBERS,
)
from pgaq.subjects.server import CACHE, PARAMETERS, SERVER, SNAPSHOTS, WORKERS
from pgaq.subjects.sessions import (
    LATCH_CHILDREN,
    LATCH_MISSES,
    LATCHES,
    SESSION_STATISTICS,
    SESSION_WAITS,
    SESSIONS,
    TRACE_OBJECTS,
    TRACE_ROWS,
    WAITS,
)

SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        QUEUES, QUEUE, CONSUMERS, SUBSCRIBERS, PRIVILEGES, SHARDS, QUEUE_UNITS, MESSAGES, KEYS, EXCEPTION_QUEUES, DEAD_LETTERS, SESSIONS, SESSION_WAITS,
        SESSION_STATISTICS, WAITS, LATCHES, LATCH_CHILDREN, LATCH_MISSES, TRACE_OBJECTS, TRACE_ROWS, SERVER, CACHE, WORKERS,
        SNAPSHOTS, PARAMETERS, SCHEDULES, SCHEDULE, SCHEDULE_TIMES, NODES, LINKS, PROPAGATIONS,
    )
}  # fmt: skip

__all__ = ["RULES", "SUBJECTS", "UNITS", "Column", "Rule", "Subject", "across_versions", *(name for name in globals() if name.isupper())]
