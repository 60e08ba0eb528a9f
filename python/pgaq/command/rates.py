"""Rates between two readings of a subject, in place of averages since a counter began."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pgaq.subjects import Subject

Rows = list[dict[str, Any]]


def key(subject: Subject, row: dict[str, Any]) -> tuple[Any, ...]:
    """What no other row of the subject has: a consumer can have one for persistent and one for buffered messages."""
    return (row[subject.key], *(row[name] for name in subject.within))


def rate(count: int | None, last: int | None, seconds: float) -> float | None:
    """Null where there is no rate: the counter began, or began again, between the two readings."""
    return (count - last) / seconds if count is not None and last is not None and count >= last and seconds > 0 else None


def put_rates(subject: Subject, rows: Rows, earlier: dict[Any, dict[str, Any]], seconds: float) -> None:
    """Replace the averages of the rows by rates since the earlier reading."""
    for row in rows:
        last = earlier.get(key(subject, row))
        for column in subject.columns:
            if column.rate_of:
                row[column.name] = rate(row[column.rate_of], last[column.rate_of], seconds) if last else None


def live(subject: Subject) -> Subject:
    """The subject with the titles of such rates."""
    return replace(subject, columns=tuple(replace(column, title=column.live) if column.rate_of else column for column in subject.columns))
