"""What must be true of leases, as far as the clients' clocks can tell; part of ledger.check.

Clients note the time before a call and after its answer.  So it is known that a
message was taken between the two, that a lease lasts at least its time from the
moment at which COMMIT was sent, and in which order things happened that do not
overlap.  What overlaps is not judged.  The clients and the server have one clock.

  early     a message was received while its lease ran, before the delay with which it
            was given back, or its retry delay, was over; a receipt was stale while its
            lease ran
  again     a message came again after it was acknowledged, rejected or dequeued
  stale     a receipt was good after its lease had ended, or ended it twice
  attempts  a message showed fewer attempts than leases it had had before, or more
            than it can have had
  receipt   two calls got the same receipt, or a call was good with one never given out
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Iterator, NamedTuple

if TYPE_CHECKING:
    from pgaq.load.ledger import Client, Report, Span, Transaction

NO_DELAY = 0xFFFFFFFF
SLACK = 3000  # microseconds by which the clocks of clients and server may run apart in a lease


class Lease(NamedTuple):
    """A record about leases: G A F W J H, or D, a delivery without one."""

    kind: str
    span: Span
    receipt: int = 0
    ms: int = 0
    attempts: int = 0  # as the message showed them: before this one
    answer: str = "done"  # done stale busy unknown
    asked: int = 0  # before the call, microseconds; 0: unknown
    seen: int = 0  # after the answer


class Event(NamedTuple):
    """A record about one message."""

    t: Transaction
    lease: Lease
    undone: bool  # by a rollback to a savepoint

    @property
    def certain(self) -> bool:
        return self.t.outcome == "C" and not self.undone

    @property
    def possible(self) -> bool:
        return self.t.outcome in "CU" and not self.undone

    @property
    def done(self) -> bool:
        """Maybe: the answer may be lost."""
        return self.lease.answer in ("done", "unknown")

    @property
    def good(self) -> bool:
        """The receipt was good."""
        return self.lease.answer == "done"

    def __str__(self) -> str:
        return str(self.t)


@dataclass
class Message:
    """What happened to one message."""

    name: str
    takes: list[Event] = field(default_factory=list)  # G and D
    ends: list[Event] = field(default_factory=list)  # A F W J
    extensions: list[Event] = field(default_factory=list)


@dataclass
class Rules:
    """What else is known: rest(attempts) in seconds; leases last from the commit, or (queue tables) from the call."""

    rest: Callable[[int], float] | None = None
    from_call: bool = False

    def over(self, event: Event) -> float:
        """The end of a lease that was taken, or extended."""
        return (event.lease.asked if self.from_call else event.t.before) + event.lease.ms * 1000.0 - SLACK


def check(label: str, clients: list[Client], report: Report, rules: Rules) -> None:
    """Judge every message of a subscriber that was leased."""
    unknown = sum(1 for client in clients for t in client.transactions if t.lost or t.broken)
    unknown += sum(1 for client in clients if not client.ended)
    for message in _messages(label, clients):
        _count(message, report)
        _check_times(message, report, rules)
        _check_finished(message, report)
        _check_ends(message, report)
        _check_attempts(message, report, unknown)


def check_receipts(clients: list[Client], report: Report) -> None:
    """Each call with a lease has its own receipt, whatever became of it."""
    calls: dict[int, tuple[Transaction, int]] = {}
    for client in clients:
        for t in client.transactions:
            for lease in (*t.leases, *t.undone_leases):
                if lease.kind == "G" and calls.setdefault(lease.receipt, (t, lease.asked)) != (t, lease.asked):
                    report.add("receipt", f"{lease.receipt} was given out twice ({calls[lease.receipt][0]}; {t})")


def _messages(label: str, clients: list[Client]) -> Iterator[Message]:
    """Those that were leased, with all that is known of them."""
    found: dict[tuple[int, int], Message] = {}
    plain: list[Event] = []  # without a lease
    for client in clients:
        for t in client.transactions:
            if t.began == 0:
                plain += [Event(t, Lease("D", span), undone) for undone, spans in ((False, t.spans), (True, t.undone)) for span in spans]
            for undone, leases in ((False, t.leases), (True, t.undone_leases)):
                for lease in leases:
                    event = Event(t, lease, undone)
                    if lease.kind == "D":
                        plain.append(event)
                    else:
                        for key in _keys(lease.span):
                            message = found.setdefault(key, Message(f"{label}: message {key[0] >> 12}.{key[0] & 4095}:{key[1]}"))
                            (message.takes if lease.kind == "G" else message.extensions if lease.kind == "H" else message.ends).append(
                                event
                            )
    for event in plain:
        for key in _keys(event.lease.span) if found else ():
            if key in found:
                found[key].takes.append(event)
    yield from found.values()


def _keys(span: Span) -> Iterator[tuple[int, int]]:
    return ((span.session, n) for n in range(span.first, span.first + span.count))


def _count(message: Message, report: Report) -> None:
    report.leases += sum(take.certain and take.lease.kind == "G" for take in message.takes)
    report.extended += sum(each.certain and each.done for each in message.extensions)
    report.stale += sum(each.lease.answer == "stale" for each in (*message.ends, *message.extensions))
    for end in message.ends:
        if end.certain and end.done:
            report.acknowledged += end.lease.kind == "A"
            report.lease_ends += end.lease.kind != "A"


# -- times


def _is_over(message: Message, take: Event, rules: Rules, *, moved: bool) -> float:
    """The earliest time at which the message can be received again, or (moved) from the exception queue."""
    receipt = take.lease.receipt
    over = rules.over(take)
    for each in message.extensions:
        if each.certain and each.done and each.lease.receipt == receipt:
            over = max(over, rules.over(each))
    for end in message.ends:
        if not end.possible or not end.done or end.lease.receipt != receipt or end.lease.kind == "A":
            continue
        if end.lease.kind == "J" and not moved:
            continue
        # a delay counts from the call, and nothing is given back before the commit
        free = max(float(end.t.before), end.lease.asked + (0.0 if moved else _delay(end.lease, take.lease.attempts, rules))) - SLACK
        over = free if end.certain else min(over, free)
    return over


def _delay(end: Lease, attempts: int, rules: Rules) -> float:
    """The retry delay of a message that was given back, in microseconds; attempts: before this one."""
    if end.ms != NO_DELAY:
        return end.ms * 1000.0
    return rules.rest(attempts + 1) * 1e6 if rules.rest is not None and end.kind == "F" else 0.0


def _follows(message: Message, later: Event, earlier: Event) -> bool:
    """Was the message certainly taken later by the one than by the other?"""
    if later.lease.asked >= earlier.lease.seen:
        return True
    counted = not any(end.lease.kind == "W" for end in message.ends)
    return counted and later.lease.kind == earlier.lease.kind == "G" and later.lease.attempts > earlier.lease.attempts


def _check_times(message: Message, report: Report, rules: Rules) -> None:
    for number, take in enumerate(message.takes):
        if rules.rest is not None and take.lease.seen and not take.t.broken and (take.undone or take.t.outcome == "R"):
            rested = take.lease.seen + rules.rest(take.lease.attempts + 1) * 1e6 - SLACK
            for other in message.takes:
                if other.lease.asked > take.t.after > 0 and other.lease.seen < rested and not other.t.client.moved:
                    report.add(
                        "early",
                        f"{message.name} came {(rested - other.lease.seen) / 1e6:.3f} s before its retry delay was over ({take}; {other})",
                    )
        if take.lease.kind != "G" or not take.certain:
            continue
        for moved in (False, True):
            over = _is_over(message, take, rules, moved=moved)
            for place, other in enumerate(message.takes):
                if other is take or other.t.client.moved != moved or other.lease.seen >= over:
                    continue
                # of two leases that overlap, one is wrong, whichever was first
                both = other.certain and other.lease.kind == "G" and take.lease.seen < _is_over(message, other, rules, moved=False)
                if _follows(message, other, take) or (both and number < place and not _follows(message, take, other)):
                    report.add("early", f"{message.name} came {(over - other.lease.seen) / 1e6:.3f} s too early ({take}; {other})")
        for each in (*message.ends, *message.extensions):
            if each.lease.receipt != take.lease.receipt or each.lease.answer != "stale" or each.lease.asked < take.t.after:
                continue
            over = rules.over(take)
            if each.lease.seen < over and not any(
                end.done and end.possible and end.lease.receipt == take.lease.receipt and end.lease.asked < each.lease.seen
                for end in message.ends
            ):
                report.add(
                    "early",
                    f"{message.name}: its receipt was stale {(over - each.lease.seen) / 1e6:.3f} s before its time was over ({take}; {each})",
                )


# -- ends


def _check_finished(message: Message, report: Report) -> None:
    """Nothing happens to a message that was acknowledged, rejected or dequeued."""
    finished = [end for end in message.ends if end.certain and end.done and end.lease.kind in "AJ" and end.t.after]
    finished += [take for take in message.takes if take.certain and take.lease.kind == "D" and take.t.after]
    for end in finished:
        for take in message.takes:
            if take.lease.asked >= end.t.after and not (end.lease.kind == "J" and take.t.client.moved):
                report.add("again", f"{message.name} came again after it was done with ({end}; {take})")
        for each in (*message.ends, *message.extensions):
            if each.good and each.lease.asked >= end.t.after:
                report.add("stale", f"{message.name} was done with, and a receipt was still good ({end}; {each})")


def _check_ends(message: Message, report: Report) -> None:
    given = {take.lease.receipt: take for take in message.takes if take.lease.kind == "G"}
    ended: dict[int, Event] = {}
    for end in message.ends:
        if not (end.certain and end.done):
            continue
        if ended.setdefault(end.lease.receipt, end) is not end:
            report.add("stale", f"{message.name}: one lease ended twice ({ended[end.lease.receipt]}; {end})")
    for each in (*message.ends, *message.extensions):
        if not each.good:
            continue
        take = given.get(each.lease.receipt)
        if take is None:
            report.add("receipt", f"{message.name}: receipt {each.lease.receipt} was good and never given out ({each})")
            continue
        for other in message.takes:
            if other is not take and other.lease.asked >= take.lease.seen and other.lease.seen <= each.lease.asked:
                report.add("stale", f"{message.name} was received again, and the old receipt was still good ({other}; {each})")
                break
        end = ended.get(each.lease.receipt)
        if end is not None and end is not each and end.t.after and each.lease.asked >= end.t.after and each.lease.kind == "H":
            report.add("stale", f"{message.name}: its lease had ended, and was extended ({end}; {each})")


def _check_attempts(message: Message, report: Report, unknown: int) -> None:
    """unknown: calls whose answer was lost, which may have held the message."""
    unseen = sum(1 for end in message.ends if end.lease.kind == "W" and end.possible and end.done)
    for take in message.takes:
        if take.lease.kind != "G":
            continue
        others = [other for other in message.takes if other is not take]
        before = sum(1 for other in others if other.lease.kind == "G" and other.certain and take.lease.asked >= other.lease.seen)
        most = sum(1 for other in others if other.lease.asked < take.lease.seen) + unknown
        if take.lease.attempts < before - unseen or take.lease.attempts > most:
            report.add(
                "attempts",
                f"{message.name} showed {take.lease.attempts} attempts after {before} leases, {most} deliveries at most ({take})",
            )
