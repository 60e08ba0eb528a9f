"""The ledger's verdict on a long, orderly run: one pass, a byte of memory per message and subscriber.

`ledger.check` keeps every transaction, to settle those in doubt and to excuse
what came late.  A run of tens of millions of messages in which no connection
broke and nothing was rolled back needs neither; whatever else is found in a
ledger, this check declines and leaves it to that one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Iterator

from pgaq.load.ledger import RECORD, UNORDERED, Report, Span

INTENT, DELIVERED, COMMITTED, ROLLED_BACK, END = b"IDCRZ"

Book = dict[int, bytearray]  # of a producing session: 1 for each message that is there


class Declined(Exception):
    """There is something in a ledger that only the full check understands."""


def check(directory: Path, *, subscribers: list[str], order: bool = True, drained: bool = True) -> Report | None:
    """As ledger.check; None if that one is needed."""
    producers: list[Path] = []
    consumers: dict[str, list[Path]] = {name: [] for name in subscribers}
    for path in sorted(Path(directory).glob("*.led")):
        head = _head(path)
        if head.get("moved"):
            return None
        if head["role"] == "producer":
            producers.append(path)
        else:
            consumers.setdefault(str(head.get("consumer", "")), []).append(path)
    report = Report(subscribers=len(consumers))
    if not producers:
        report.add("malformed", "there is no producer's ledger")
        return report
    try:
        expected = _expected(producers, report)
        for name in sorted(consumers):
            _check_subscriber(f"subscriber {name}" if name else "the queue", consumers[name], expected, report, order, drained)
    except Declined:
        return None
    return report


def _head(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        return json.loads(file.readline())


def transactions(path: Path) -> Iterator[list[Span]]:
    """The messages of each committed transaction of one ledger."""
    raw = path.read_bytes()
    body = memoryview(raw)[raw.index(b"\n") + 1 :]
    if len(body) % RECORD.size:
        raise Declined
    spans: list[Span] = []
    ended = False
    for kind, priority, count, session, first in RECORD.iter_unpack(body):
        if kind == INTENT or kind == DELIVERED:
            spans.append(Span(session, priority, first, count))
        elif kind == COMMITTED:
            yield spans
            spans = []
        elif kind == END:
            ended = True
        elif kind != ROLLED_BACK or spans:
            raise Declined
    if spans or not ended:
        raise Declined


def _expected(producers: list[Path], report: Report) -> Book:
    """Every message that was committed."""
    book: Book = defaultdict(bytearray)
    for path in producers:
        for spans in transactions(path):
            for span in spans:
                if span.priority == UNORDERED:
                    raise Declined
                mine, end = book[span.session], span.first + span.count
                if len(mine) < end:
                    mine.extend(bytes(max(end - len(mine), 1 << 16)))
                mine[span.first : end] = b"\1" * span.count
                report.committed += span.count
    return dict(book)


def _check_subscriber(label: str, paths: list[Path], expected: Book, report: Report, order: bool, drained: bool) -> None:
    seen: Book = {session: bytearray(len(mine)) for session, mine in expected.items()}
    for path in paths:
        highest: dict[tuple[int, int], int] = {}
        for spans in transactions(path):
            for span in spans:
                _take(label, span, expected, seen, report)
                key = span.session, span.priority
                before = highest.get(key, -1)
                if order and span.first <= before:
                    report.add("order", f"{label}: {span} came after {before} ({path.stem})", span.count)
                highest[key] = max(before, span.first + span.count - 1)
    if drained:
        for session, mine in expected.items():
            lost = mine.count(1) - seen[session].count(1)
            if lost:
                first = next(n for n, there in enumerate(mine) if there and not seen[session][n])
                report.add("lost", f"{label}: {lost:,} messages never took effect, the first was {Span(session, 0, first, 1)}", lost)


def _take(label: str, span: Span, expected: Book, seen: Book, report: Report) -> None:
    """Mark one span of a consumer as seen."""
    mine, end = expected.get(span.session, bytearray()), span.first + span.count
    ghosts = span.count - mine.count(1, span.first, end)
    if ghosts and span.count > 1:
        for n in range(span.first, end):
            _take(label, Span(span.session, span.priority, n, 1), expected, seen, report)
        return
    report.deliveries += span.count
    if ghosts:
        report.add("ghost", f"{label}: {span} was never enqueued for it")
        return
    got = seen[span.session]
    twice = got.count(1, span.first, end)
    if twice:
        report.add("duplicate", f"{label}: {twice:,} of {span} took effect more than once", twice)
    got[span.first : end] = b"\1" * span.count
