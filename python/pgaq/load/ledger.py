"""The ledger that clients keep outside the database, and the proof made from it.

Every client appends to a file of its own: one line of JSON (role, client,
queue, consumer, batch), then records of 16 bytes, little endian:

    kind u8, priority u8, count u16, session u32, first u64

A producer writes I (messages first .. first+count-1 of a session are about to be
enqueued) before its COMMIT and the outcome after it: C committed, R rolled back,
U unknown (the connection broke in COMMIT).  A consumer writes D (received)
before its COMMIT and the outcome after it.  S, B and L are a savepoint, the way
back to it and its release; X is a dequeue that failed or whose answer was lost; N
says that the connection was lost; E is a payload that was not what the producer had sent; Z is
an orderly end.  A file that ends without an outcome leaves its last transaction
in doubt, as U does.  A consumer whose head says "moved" has read an exception
queue: what it got took effect there, instead of in the queue, and in no order.

A consumer with leases also writes T, the time in microseconds: before a call, after
its answer and, with priority 1, before COMMIT is sent; the record of an outcome has
the time, too.  V (receipt, milliseconds, attempts) is about the records that follow:
G (received with a lease), A (acknowledged), F (given back), W (given back unseen),
J (rejected) and H (extended); the priority of the last five is the answer: done,
stale, busy or unknown.  milliseconds: the lease or the delay; NO_DELAY: the queue's own.

`check` proves, for every subscriber:
  - every committed message took effect exactly once, none that was rolled back;
  - a transaction in doubt took effect as a whole or not at all;
  - within one consumer session, the messages of one producing session and
    priority came in the order enqueued.  A message may come late only if another
    consumer had it and gave it back, or the connection broke while it was held;
    with a retry delay also if it was given back at all, because then it waits, and
    after a lease that ended;
  - what lease_rules.py says of leases.  An acknowledgement takes effect, a lease does not.
Where a crash may lose messages, those that never came are counted, and everything
else is proved of the others.
Sessions are numbers; a producer that reconnects takes a new one, as order is
promised within a session only.
"""

from __future__ import annotations

import bisect
import json
import os
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterable, NamedTuple

from pgaq.load import lease_rules
from pgaq.load.lease_rules import NO_DELAY as NO_DELAY
from pgaq.load.lease_rules import Lease

RECORD = struct.Struct("<BBHIQ")
UNORDERED = 255
MAX_SHOWN = 10

ANSWERS = ("done", "stale", "busy", "unknown")

KINDS = {ord(letter): letter for letter in "IDXSBLENCRUZTVGAFWJH"}
LEASE_KINDS = "GAFWJH"


class Span(NamedTuple):
    """Messages first .. first + count - 1 of one session, at one priority."""

    session: int
    priority: int
    first: int
    count: int

    def __str__(self) -> str:
        last = f"-{self.first + self.count - 1}" if self.count > 1 else ""
        return f"message {self.session >> 12}.{self.session & 4095}:{self.first}{last}"


class Transaction:
    """The actions of a client's transaction, as far as the client knows."""

    __slots__ = ("client", "outcome", "spans", "undone", "lost", "broken", "at", "leases", "undone_leases", "began", "before", "after")

    def __init__(self, client: "Client", at: int) -> None:
        self.client = client
        self.outcome = "U"
        self.spans: list[Span] = []
        self.undone: list[Span] = []  # by ROLLBACK TO SAVEPOINT
        self.lost = 0  # number of messages of a dequeue that failed, or was running when the connection broke
        self.broken = False
        self.at = at
        self.leases: list[Lease] = []
        self.undone_leases: list[Lease] = []
        self.began = 0  # not later than its first call
        self.before = 0  # not later than its commit
        self.after = 0  # not earlier than its end

    @property
    def consumed(self) -> list[Span]:
        """What takes effect when it commits."""
        kinds = "AJ" if self.client.drops else "A"
        return (
            [*self.spans, *(each.span for each in self.leases if each.kind in kinds and each.answer in ("done", "unknown"))]
            if self.leases
            else self.spans
        )

    def leased(self) -> list[Span]:
        """What was received with a lease, undone or not."""
        return [each.span for each in (*self.leases, *self.undone_leases) if each.kind == "G"]

    def __str__(self) -> str:
        return f"{self.client.name}, record {self.at}"


class Client:
    """One ledger file."""

    def __init__(self, name: str, head: dict[str, object]) -> None:
        self.name = name
        self.role = str(head["role"])
        self.number = int(head["client"])  # type: ignore[call-overload]
        self.consumer = str(head.get("consumer", ""))
        self.batch = int(head.get("batch", 1))  # type: ignore[call-overload]
        self.moved = bool(head.get("moved"))
        self.drops = False  # what it rejects is dropped: nothing has read an exception queue
        self.transactions: list[Transaction] = []
        self.bad_payloads: list[Span] = []
        self.ended = False


@dataclass
class Problem:
    """One violation."""

    kind: str  # lost duplicate ghost order torn payload malformed, and those of lease_rules.py
    text: str
    count: int = 1


@dataclass
class Report:
    """The outcome of a check."""

    committed: int = 0
    rolled_back: int = 0
    in_doubt: int = 0  # messages of producing transactions without a known outcome
    found_committed: int = 0  # those among them that were seen
    deliveries: int = 0
    given_back: int = 0
    doubtful_takes: int = 0
    late: int = 0  # out of order with an excuse
    moved: int = 0  # delivered by the exception queue
    lost_in_crash: int = 0  # where that is allowed
    leases: int = 0  # committed; of messages
    acknowledged: int = 0
    lease_ends: int = 0  # given back, rejected
    extended: int = 0
    stale: int = 0
    subscribers: int = 0
    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def ok(self) -> bool:
        return not self.counts

    def add(self, kind: str, text: str, count: int = 1) -> None:
        self.counts[kind] += count
        if len(self.problems) < MAX_SHOWN:
            self.problems.append(Problem(kind, text, count))

    def __str__(self) -> str:
        lines = [
            f"{self.committed:,} messages committed, {self.rolled_back:,} rolled back, {self.in_doubt:,} in doubt "
            f"({self.found_committed:,} of them committed); {self.deliveries:,} deliveries to {self.subscribers} "
            f"subscriber{'s' if self.subscribers != 1 else ''}, {self.given_back:,} given back, {self.late:,} late with a reason"
        ]
        if self.moved:
            lines.append(f"{self.moved:,} of the deliveries by the exception queue")
        if self.leases:
            lines.append(
                f"{self.leases:,} leases, {self.acknowledged:,} acknowledged, {self.lease_ends:,} given back or rejected, "
                f"{self.extended:,} extended, {self.stale:,} stale answers"
            )
        if self.lost_in_crash:
            lines.append(f"{self.lost_in_crash:,} lost in a crash")
        if self.ok:
            lines.append(f"every {'other ' if self.lost_in_crash else ''}committed message took effect exactly once, in order")
        else:
            lines.append("VIOLATIONS: " + ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.counts.items())))
            lines += [f"  {p.kind}: {p.text}" for p in self.problems]
        return "\n".join(lines)


class Writer:
    """Writes one ledger file; for clients in Python and for forged ledgers in tests."""

    def __init__(
        self, directory: Path, role: str, client: int, *, consumer: str = "", batch: int = 10, sync: bool = True, moved: bool = False
    ) -> None:
        name = f"{role}-{consumer}{'-' if consumer else ''}{client:04d}.led"
        self._fd = os.open(Path(directory) / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._sync = sync
        head = {"role": role, "client": client, "consumer": consumer, "batch": batch, "moved": moved}
        os.write(self._fd, json.dumps(head).encode() + b"\n")

    def _note(self, kind: str, session: int = 0, first: int = 0, count: int = 0, priority: int = 0) -> None:
        os.write(self._fd, RECORD.pack(ord(kind), priority, count, session, first))

    def flush(self) -> None:
        if self._sync:
            os.fsync(self._fd)

    def intent(self, session: int, first: int, count: int = 1, priority: int = 1) -> None:
        self._note("I", session, first, count, priority)

    def delivered(self, session: int, first: int, count: int = 1, priority: int = 1) -> None:
        self._note("D", session, first, count, priority)

    def savepoint(self) -> None:
        self._note("S")

    def back(self) -> None:
        self._note("B")

    def release(self) -> None:
        self._note("L")

    def dequeue_lost(self, count: int) -> None:
        self._note("X", count=count)

    def connection_lost(self) -> None:
        self._note("N")

    def bad_payload(self, session: int = 0, first: int = 0) -> None:
        self._note("E", session, first, 1)

    def time(self, now: int, *, commits: bool = False) -> None:
        """Microseconds: before a call, after its answer, before COMMIT is sent."""
        self._note("T", first=now, priority=commits)

    def leased(self, receipt: int, ms: int, attempts: int, session: int, first: int, count: int = 1, priority: int = 1) -> None:
        self._note("V", ms, receipt, attempts)
        self._note("G", session, first, count, priority)

    def lease(self, kind: str, receipt: int, answer: str, session: int, first: int, count: int = 1, *, ms: int = 0) -> None:
        """A, F, W, J or H, and its answer; ms: of F and W the delay, of H the lease."""
        self._note("V", ms, receipt)
        self._note(kind, session, first, count, ANSWERS.index(answer))

    def outcome(self, letter: str, now: int = 0) -> None:
        """C, R or U."""
        self._note(letter, first=now)
        self.flush()

    def close(self, *, orderly: bool = True) -> None:
        if orderly:
            self._note("Z")
        self.flush()
        os.close(self._fd)


# -- reading


def read(path: Path) -> Client:
    """One ledger file as transactions.  A last record cut short is left out."""
    raw = path.read_bytes()
    head, _, body = raw.partition(b"\n")
    client = Client(path.stem, json.loads(head))
    body = body[: len(body) // RECORD.size * RECORD.size]
    current: Transaction | None = None
    savepoints: list[tuple[int, int]] = []
    asked = seen = 0
    about = (0, 0, 0)
    for at, (kind, priority, count, session, first) in enumerate(RECORD.iter_unpack(body)):
        letter = KINDS.get(kind)
        if letter is None:
            raise ValueError(f"{path}: record {at} is of unknown kind {kind}")
        if letter == "Z":
            client.ended = True
            continue
        if current is None:
            current = Transaction(client, at)
            asked = seen = 0
        if letter == "T":
            asked, seen = seen or first, first
            current.began = current.began or first
            current.before = first if priority else current.before
        elif letter == "V":
            about = (first, session, count)
        elif letter in LEASE_KINDS:
            answer = "done" if letter == "G" else ANSWERS[priority]
            current.leases.append(Lease(letter, Span(session, priority, first, count), *about, answer, asked, seen))
        elif letter in "ID":
            current.spans.append(Span(session, priority, first, count))
            if seen:
                current.leases.append(Lease("D", current.spans[-1], 0, 0, 0, "done", asked, seen))
        elif letter in "CRU":
            current.outcome = letter
            current.before = current.before or current.began
            current.after = first
            client.transactions.append(current)
            current = None
            savepoints.clear()
        elif letter == "S":
            savepoints.append((len(current.spans), len(current.leases)))
        elif letter == "B":
            mark, lease_mark = savepoints[-1] if savepoints else (0, 0)
            current.undone += current.spans[mark:]
            current.undone_leases += current.leases[lease_mark:]
            del current.spans[mark:]
            del current.leases[lease_mark:]
        elif letter == "L":
            if savepoints:
                savepoints.pop()
        elif letter == "X":
            current.lost = max(current.lost, count)
        elif letter == "N":
            current.broken = True
        elif letter == "E":
            client.bad_payloads.append(Span(session, priority, first, count))
    if current is not None:
        current.broken = True
        current.before = current.before or current.began
        client.transactions.append(current)
    return client


# -- intervals: sorted lists of (first, end), end not included


def _union(spans: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Disjoint union of intervals, and the parts that were covered more than once."""
    union: list[tuple[int, int]] = []
    twice: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if union and first < union[-1][1]:
            twice.append((first, min(end, union[-1][1])))
        if union and first <= union[-1][1]:
            if end > union[-1][1]:
                union[-1] = (union[-1][0], end)
        else:
            union.append((first, end))
    return union, twice


def _minus(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The part of a that is not in b; both are disjoint and sorted."""
    left: list[tuple[int, int]] = []
    i = 0
    for first, end in a:
        while i < len(b) and b[i][1] <= first:
            i += 1
        j = i
        while j < len(b) and b[j][0] < end:
            if b[j][0] > first:
                left.append((first, b[j][0]))
            first = max(first, b[j][1])
            j += 1
        if first < end:
            left.append((first, end))
    return left


def _covers(intervals: list[tuple[int, int]], number: int) -> bool:
    at = bisect.bisect_right(intervals, (number, 1 << 63)) - 1
    return at >= 0 and intervals[at][0] <= number < intervals[at][1]


Intervals = dict[int, list[tuple[int, int]]]


def _intervals(spans: Iterable[Span]) -> Intervals:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for span in spans:
        found[span.session].append((span.first, span.first + span.count))
    return {session: _union(list_)[0] for session, list_ in found.items()}


def _say(session: int, first: int, end: int) -> str:
    return str(Span(session, 0, first, end - first))


# -- the check


def check(
    directory: Path,
    *,
    subscribers: list[str] | None = None,
    order: bool = True,
    drained: bool = True,
    retry_delay: bool = False,
    lossy: bool = False,
    rest: Callable[[int], float] | None = None,
    leased_from_call: bool = False,
    wanted: Callable[[str, int], bool] | None = None,
) -> Report:
    """Compare all ledgers in a directory.

    subscribers: who should have received (default: who has a ledger); order:
    check it; drained: consumers have taken all there was, so that what did not
    arrive is lost; retry_delay: what is given back waits, and others overtake it;
    lossy: a crash may have lost messages; rest(attempts): the shortest retry delay
    after this number of counted attempts, in seconds, for messages that are leased;
    leased_from_call: the time of a lease counts from the call, not the commit; wanted(subscriber, session): False for
    sessions whose messages the subscriber's rule leaves out.
    """
    clients = [read(path) for path in sorted(Path(directory).glob("*.led"))]
    producers = [client for client in clients if client.role == "producer"]
    consumers: dict[str, list[Client]] = defaultdict(list)
    for client in clients:
        if client.role == "consumer":
            consumers[client.consumer].append(client)
    names = sorted(set(subscribers if subscribers is not None else consumers) | set(consumers))
    report = Report(subscribers=len(names))
    if not producers:
        report.add("malformed", "there is no producer's ledger")
        return report
    committed, rolled_back, unordered = _committed(producers, consumers, report, drained)
    for name in names:
        expected = committed if wanted is None else {s: i for s, i in committed.items() if wanted(name, s)}
        _check_subscriber(
            name, consumers.get(name, []), expected, rolled_back, unordered, report,
            order=order, drained=drained, retry_delay=retry_delay, lossy=lossy, rest=rest,
            leased_from_call=leased_from_call,
        )  # fmt: skip
    lease_rules.check_receipts([client for name in names for client in consumers.get(name, [])], report)
    return report


def _committed(
    producers: list[Client], consumers: dict[str, list[Client]], report: Report, drained: bool
) -> tuple[Intervals, Intervals, set[int]]:
    """The messages that must arrive and those that must not; doubts are resolved by all observations."""
    yes: list[Span] = []
    no: list[Span] = []
    doubts: list[Transaction] = []
    unordered: set[int] = set()
    for client in producers:
        for transaction in client.transactions:
            no += transaction.undone
            if transaction.outcome == "C":
                yes += transaction.spans
            elif transaction.outcome == "R":
                no += transaction.spans
            else:
                doubts.append(transaction)
            if any(span.priority == UNORDERED for span in transaction.spans):
                unordered.update(span.session for span in transaction.spans)
    report.rolled_back += sum(span.count for span in no)
    if doubts:
        sessions = {span.session for t in doubts for span in t.spans}
        seen = _intervals(
            span
            for clients in consumers.values()
            for client in clients
            for t in client.transactions
            for span in (*t.spans, *t.undone, *t.leased())
            if span.session in sessions
        )
        for transaction in doubts:
            report.in_doubt += sum(span.count for span in transaction.spans)
            numbers = [(span.session, n) for span in transaction.spans for n in range(span.first, span.first + span.count)]
            if any(_covers(seen.get(session, []), n) for session, n in numbers):
                yes += transaction.spans
                report.found_committed += len(numbers)
            else:
                no += transaction.spans
    report.committed += sum(span.count for span in yes)
    return _intervals(yes), _intervals(no), unordered


def _check_subscriber(
    name: str, clients: list[Client], expected: Intervals, rolled_back: Intervals, unordered: set[int], report: Report,
    *, order: bool, drained: bool, retry_delay: bool, lossy: bool, rest: Callable[[int], float] | None, leased_from_call: bool,
) -> None:  # fmt: skip
    label = f"subscriber {name}" if name else "the queue"
    for client in clients:
        for span in client.bad_payloads:
            report.add("payload", f"{label}: {span} came with a wrong payload ({client.name})")
    transactions = [t for client in clients for t in client.transactions]
    effective = [t for t in transactions if t.outcome == "C"]
    for client in clients:
        client.drops = not any(other.moved for other in clients)
    doubts = [t for t in transactions if t.outcome == "U" and t.consumed]
    report.doubtful_takes += len(doubts)
    settled = _settle(doubts, effective, expected, report, label, drained and not lossy)
    taken = set(settled)
    effective += settled
    report.deliveries += sum(span.count for t in effective for span in t.consumed)
    report.moved += sum(span.count for t in effective if t.client.moved for span in t.spans)

    got: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for t in effective:
        for span in t.consumed:
            got[span.session].append((span.first, span.first + span.count))
    for session in sorted(set(got) | set(expected)):
        union, twice = _union(got.get(session, []))
        for first, end in twice:
            report.add("duplicate", f"{label}: {_say(session, first, end)} took effect more than once", end - first)
        for first, end in _minus(union, expected.get(session, [])):
            why = "was rolled back" if _covers(rolled_back.get(session, []), first) else "was never enqueued for it"
            report.add("ghost", f"{label}: {_say(session, first, end)} {why}", end - first)
        if drained:
            for first, end in _minus(expected.get(session, []), union):
                if lossy:
                    report.lost_in_crash += end - first
                else:
                    report.add("lost", f"{label}: {_say(session, first, end)} never took effect", end - first)

    returned: dict[tuple[int, int], list[Transaction]] = defaultdict(list)
    for t in transactions:
        back = t.undone if t.outcome == "C" or t in taken else [*t.spans, *t.undone]
        report.given_back += sum(span.count for span in back)
        for span in (*back, *t.leased()):
            for n in range(span.first, span.first + span.count):
                returned[span.session, n].append(t)
                if not _covers(expected.get(span.session, []), n):
                    report.add("ghost", f"{label}: {_say(span.session, n, n + 1)} was seen uncommitted ({t})")
    if order:
        ordered = [client for client in clients if not client.moved]
        _check_order(label, ordered, taken, returned, unordered, report, retry_delay)
    lease_rules.check(label, clients, report, lease_rules.Rules(rest=rest, from_call=leased_from_call))


def _check_order(
    label: str, clients: list[Client], taken: set[Transaction], returned: dict[tuple[int, int], list[Transaction]],
    unordered: set[int], report: Report, retry_delay: bool,
) -> None:  # fmt: skip
    """Each consumer session by itself; a message may be late if another session had it, or a retry delay ran."""
    lost_calls = sum(t.lost for client in clients for t in client.transactions)
    lost_calls += sum(client.batch for client in clients if not client.ended)
    for client in clients:
        highest: dict[tuple[int, int], int] = {}
        for t in client.transactions:
            if t.outcome != "C" and t not in taken:
                continue
            for span in (*t.spans, *(each.span for each in t.leases if each.kind == "G")):
                if span.session in unordered:
                    continue
                key = (span.session, span.priority)
                end = span.first + span.count
                before = highest.get(key, -1)
                if span.first > before:
                    highest[key] = end - 1
                    continue
                for n in range(span.first, min(end, before + 1)):
                    holders = returned.get((span.session, n), ())
                    if any(
                        retry_delay or h.client is not client or h.broken or (h is not t and h.leased() and h.began <= t.began)
                        for h in holders
                    ):
                        report.late += 1
                    elif lost_calls > 0:
                        lost_calls -= 1
                        report.late += 1
                    else:
                        report.add("order", f"{label}: {_say(span.session, n, n + 1)} came after {before} ({t})")
                highest[key] = max(before, end - 1)


def _settle(
    doubts: list[Transaction], certain: list[Transaction], expected: Intervals, report: Report, label: str, drained: bool
) -> list[Transaction]:
    """Which consuming transactions in doubt took effect: a choice that explains every message, if there is one."""
    if not doubts:
        return []
    covered = _intervals(span for t in certain for span in t.consumed)
    keys = {t: [(s.session, n) for s in t.consumed for n in range(s.first, s.first + s.count)] for t in doubts}
    holders: dict[tuple[int, int], list[Transaction]] = defaultdict(list)
    for t, list_ in keys.items():
        for key in list_:
            holders[key].append(t)
    state: dict[Transaction, bool] = {}

    def must_not(t: Transaction) -> bool:
        """Something of t took effect elsewhere, or cannot have taken effect at all."""
        return any(
            _covers(covered.get(s, []), n)
            or not _covers(expected.get(s, []), n)
            or any(state.get(other) for other in holders[s, n] if other is not t)
            for s, n in keys[t]
        )

    def must(t: Transaction) -> bool:
        """Something of t is explained by nothing else."""
        return any(
            _covers(expected.get(s, []), n)
            and not _covers(covered.get(s, []), n)
            and all(state.get(other) is False for other in holders[s, n] if other is not t)
            for s, n in keys[t]
        )

    # the last holder of a message is the likeliest, so take the latest first when there is a choice
    left = list(doubts)
    while left:
        decided = []
        for t in left:
            no, yes = must_not(t), drained and must(t)
            if no and yes:
                report.add("torn", f"{label}: a transaction in doubt took effect in part ({t})")
            if no or yes:
                state[t] = not no
                decided.append(t)
        if not decided:
            t = left[-1]
            state[t] = True
            decided = [t]
        left = [t for t in left if t not in state]
    return [t for t in doubts if state[t]]


def main(arguments: list[str] | None = None) -> int:
    """python3 -m pgaq.load.ledger DIRECTORY: check and print."""
    import argparse

    parser = argparse.ArgumentParser(prog="pgaq.load.ledger", description="Check the ledgers of one run.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--unordered", action="store_true", help="do not check the order")
    parser.add_argument("--not-drained", action="store_true", help="messages may still be in the queue")
    parser.add_argument("--retry-delay", action="store_true", help="messages that were given back may be overtaken")
    parser.add_argument("--lossy", action="store_true", help="a crash may have lost messages")
    given = parser.parse_args(arguments)
    report = check(
        given.directory, order=not given.unordered, drained=not given.not_drained, retry_delay=given.retry_delay, lossy=given.lossy
    )
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
