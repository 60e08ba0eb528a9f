"""The ledger checker's rules about leases: each violation is found, and what is right is accepted."""

import pytest

from pgaq.load import tally
from pgaq.load.ledger import NO_DELAY, Writer, check

S = 1 << 12


def us(seconds):
    return int(1_000_000 + seconds * 1_000_000)


class Book:
    """Forged ledgers about message 1; times in seconds, each call takes 10 ms."""

    def __init__(self, directory):
        self.directory = directory
        self.clients = {}
        producer = Writer(directory, "producer", 0)
        producer.intent(S, 1)
        producer.outcome("C")
        producer.close()

    def client(self, name, **head):
        if name not in self.clients:
            self.clients[name] = Writer(self.directory, "consumer", len(self.clients) + 1, **head)
        return self.clients[name]

    def _call(self, name, at, outcome, note, **head):
        writer = self.client(name, **head)
        writer.time(us(at))
        writer.time(us(at + 0.01))
        note(writer)
        if outcome:
            writer.outcome(outcome, us(at + 0.02) if outcome != "U" else 0)

    def take(self, name, at, receipt, *, seconds=10, attempts=0, outcome="C"):
        """With a lease; a receipt of 0: without."""
        if receipt:
            self._call(name, at, outcome, lambda w: w.leased(receipt, seconds * 1000, attempts, S, 1))
        else:
            self._call(name, at, outcome, lambda w: w.delivered(S, 1))

    def moved(self, at):
        self._call("moved", at, "C", lambda w: w.delivered(S, 1), moved=True)

    def end(self, name, at, kind, receipt, answer="done", *, seconds=0, outcome="C"):
        ms = NO_DELAY if seconds is None else seconds * 1000
        self._call(name, at, outcome, lambda w: w.lease(kind, receipt, answer, S, 1, ms=ms))

    def kinds(self, **options):
        for writer in self.clients.values():
            writer.close()
        report = check(self.directory, subscribers=[""], **options)
        self.report = report
        if any(lease for lease in (report.leases, report.stale)):
            assert tally.check(self.directory, subscribers=[""]) is None
        return dict(report.counts)


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path)


def test_taken_and_acknowledged_from_another_session(book):
    book.take("a", 0, 77)
    book.end("b", 5, "A", 77)
    assert book.kinds() == {}
    assert (book.report.deliveries, book.report.leases, book.report.acknowledged) == (1, 1, 1)


def test_a_lease_alone_takes_no_effect(book):
    book.take("a", 0, 77)
    assert book.kinds() == {"lost": 1}


def test_an_acknowledgement_that_was_rolled_back_takes_none(book):
    book.take("a", 0, 77)
    book.end("a", 1, "A", 77, outcome="R")
    assert book.kinds() == {"lost": 1}


def test_a_stale_acknowledgement_takes_none(book):
    book.take("a", 0, 77)
    book.end("a", 12, "A", 77, "stale")
    assert book.kinds() == {"lost": 1}
    assert book.report.stale == 1


def test_an_acknowledgement_in_doubt_counts_when_nobody_else_got_it(book):
    book.take("a", 0, 77)
    book.end("a", 1, "A", 77, outcome="U")
    assert book.kinds() == {}


def test_an_acknowledgement_in_doubt_does_not_count_when_it_came_again(book):
    book.take("a", 0, 77)
    book.end("a", 1, "A", 77, outcome="U")
    book.take("b", 11, 78, attempts=1)
    book.end("b", 12, "A", 78)
    assert book.kinds() == {}
    assert book.report.deliveries == 1


# -- early


@pytest.mark.parametrize("receipt", [0, 78], ids=["dequeue", "lease"])
@pytest.mark.parametrize("at, wrong", [(9.98, True), (10.02, False)])
def test_received_while_the_lease_ran(book, receipt, at, wrong):
    book.take("a", 0, 77)
    book.take("b", at, receipt, attempts=1)
    if receipt:
        book.end("b", 11, "A", 78)
    assert book.kinds() == ({"early": 1} if wrong else {})


def test_the_time_of_a_lease_counts_from_the_commit_or_from_the_call(book):
    book.take("a", 0, 77, outcome=None)
    book.client("a").time(us(5), commits=True)
    book.client("a").outcome("C", us(5.1))
    book.take("b", 12, 0)
    assert book.kinds() == {"early": 1}
    assert dict(check(book.directory, leased_from_call=True).counts) == {}


def test_received_while_the_extended_lease_ran(book):
    book.take("a", 0, 77)
    book.end("a", 9, "H", 77, seconds=10)
    book.take("b", 12, 0)
    assert book.kinds() == {"early": 1}


def test_an_extension_that_was_rolled_back_extends_nothing(book):
    book.take("a", 0, 77)
    book.end("a", 9, "H", 77, seconds=10, outcome="R")
    book.take("b", 12, 0)
    assert book.kinds() == {}


def test_two_leases_at_a_time_whichever_was_first(book):
    book.take("a", 0, 77)
    book.take("b", 0.005, 78)
    book.end("a", 1, "A", 77)
    assert book.kinds() == {"early": 1}


@pytest.mark.parametrize("kind", ["F", "W"])
def test_given_back_before_its_time_was_over(book, kind):
    book.take("a", 0, 77)
    book.end("a", 1, kind, 77)
    book.take("b", 1.03, 0)
    assert book.kinds() == {}


@pytest.mark.parametrize("outcome, answer", [("R", "done"), ("C", "stale"), ("C", "busy")])
def test_not_given_back(book, outcome, answer):
    book.take("a", 0, 77)
    book.end("a", 1, "F", 77, answer, outcome=outcome)
    book.take("b", 1.03, 0)
    kinds = book.kinds()
    assert kinds.pop("early") == (2 if answer == "stale" else 1) and kinds == {}


@pytest.mark.parametrize("at, wrong", [(15.9, True), (16.1, False)])
def test_a_delay_is_kept_beyond_the_lease(book, at, wrong):
    book.take("a", 0, 77)
    book.end("a", 1, "F", 77, seconds=15)
    book.take("b", at, 0)
    assert book.kinds() == ({"early": 1} if wrong else {})


@pytest.mark.parametrize("at, wrong", [(5.9, True), (6.1, False)])
def test_the_retry_delay_of_the_queue_is_kept(book, at, wrong):
    """It grows with the attempts; this one was the second."""
    book.take("a", 0, 77, attempts=1)
    book.end("a", 1, "F", 77, seconds=None)
    book.take("b", at, 0)
    kinds = book.kinds(rest=lambda attempts: 5.0 ** (attempts - 1))
    kinds.pop("attempts")
    assert kinds == ({"early": 1} if wrong else {})


@pytest.mark.parametrize("receipt", [0, 77], ids=["dequeue", "lease"])
@pytest.mark.parametrize("at, wrong", [(0.9, True), (1.1, False)])
def test_the_retry_delay_is_kept_after_a_rollback(book, receipt, at, wrong):
    book.take("a", 0, receipt, outcome="R")
    book.take("b", at, 78)
    book.end("b", 2, "A", 78)
    assert book.kinds(rest=lambda attempts: 1.0) == ({"early": 1} if wrong else {})


def test_a_receipt_was_stale_too_early(book):
    book.take("a", 0, 77)
    book.end("a", 5, "A", 77, "stale")
    book.take("b", 11, 0)
    assert book.kinds() == {"early": 1}


def test_a_rejected_message_moves_at_once_and_not_back_to_the_queue(book):
    book.take("a", 0, 77)
    book.end("a", 1, "J", 77)
    book.moved(1.5)
    assert book.kinds() == {}
    book = Book(book.directory / "2") if (book.directory / "2").mkdir() is None else book
    book.take("a", 0, 77)
    book.end("a", 1, "J", 77)
    book.take("b", 11, 78, attempts=1)
    book.moved(22)
    assert book.kinds() == {"again": 1}


def test_a_rejected_message_is_dropped_where_nothing_reads_an_exception_queue(book):
    book.take("a", 0, 77)
    book.end("a", 1, "J", 77)
    assert book.kinds() == {}


# -- again, stale


@pytest.mark.parametrize("receipt", [0, 78], ids=["dequeue", "lease"])
def test_acknowledged_and_received_again(book, receipt):
    """Even if that took no effect."""
    book.take("a", 0, 77, seconds=1)
    book.end("a", 0.5, "A", 77)
    book.take("b", 5, receipt, attempts=1, outcome="C" if receipt else "R")
    assert book.kinds() == {"again": 1}


def test_dequeued_and_leased_again(book):
    book.take("a", 0, 0)
    book.take("b", 5, 78)
    assert book.kinds() == {"again": 1}


@pytest.mark.parametrize("second", "AFWJ")
def test_one_lease_ended_twice(book, second):
    book.take("a", 0, 77)
    book.end("a", 1, "F", 77, seconds=20)
    book.end("a", 2, second, 77)
    assert book.kinds()["stale"] == 1


def test_a_receipt_was_good_after_the_message_had_come_again(book):
    book.take("a", 0, 77, seconds=1)
    book.take("b", 2, 78, attempts=1)
    book.end("a", 3, "A", 77)
    assert book.kinds() == {"stale": 1}


def test_a_receipt_was_good_after_the_acknowledgement(book):
    book.take("a", 0, 77)
    book.end("a", 1, "A", 77)
    book.end("a", 2, "H", 77, seconds=5)
    assert set(book.kinds()) == {"stale"}


# -- attempts, receipts


@pytest.mark.parametrize("attempts, wrong", [(0, True), (1, False), (2, True)])
def test_attempts(book, attempts, wrong):
    book.take("a", 0, 77, seconds=1)
    book.take("b", 2, 78, attempts=attempts)
    book.end("b", 3, "A", 78)
    assert book.kinds() == ({"attempts": 1} if wrong else {})


def test_what_was_given_back_unseen_does_not_count(book):
    book.take("a", 0, 77)
    book.end("a", 1, "W", 77)
    book.take("b", 2, 78)
    book.end("b", 3, "A", 78)
    assert book.kinds() == {}


def test_a_lost_answer_may_have_counted(book):
    book.take("a", 0, 77, seconds=1)
    book.client("lost").dequeue_lost(10)
    book.client("lost").outcome("R")
    book.take("b", 2, 78, attempts=2)
    book.end("b", 3, "A", 78)
    assert book.kinds() == {}


def test_a_receipt_given_out_twice(book):
    book.take("a", 0, 77, seconds=1, outcome="R")
    book.take("b", 2, 77)
    book.end("b", 3, "A", 77)
    assert book.kinds() == {"receipt": 1}


def test_a_receipt_never_given_out(book):
    book.take("a", 0, 77)
    book.end("a", 1, "A", 76)
    assert book.kinds() == {"receipt": 1}


def test_savepoints(book):
    """A lease or an acknowledgement that is rolled back to a savepoint has no effect."""
    writer = book.client("a")
    writer.savepoint()
    book.take("a", 0, 77, outcome=None)
    writer.back()
    writer.outcome("C", us(1))
    book.take("a", 2, 78, attempts=1)
    writer.savepoint()
    book.end("a", 3, "A", 78, outcome=None)
    writer.back()
    writer.outcome("C", us(4))
    book.take("b", 13, 79, attempts=2)
    book.end("b", 14, "A", 79)
    assert book.kinds() == {}


def test_later_messages_may_overtake_a_leased_one(tmp_path):
    producer = Writer(tmp_path, "producer", 0)
    producer.intent(S, 1, 4)
    producer.outcome("C")
    producer.close()
    writer = Writer(tmp_path, "consumer", 1)

    def at(seconds):
        writer.time(us(seconds))
        writer.time(us(seconds + 0.01))

    at(0)
    writer.leased(77, 1000, 0, S, 1, 2)
    writer.outcome("C", us(0.02))
    at(0.5)
    writer.delivered(S, 3)
    writer.outcome("C", us(0.52))
    at(2)
    writer.delivered(S, 1, 2)
    writer.delivered(S, 4)
    writer.outcome("C", us(2.02))
    writer.close()
    report = check(tmp_path)
    assert report.ok and report.late == 2, report


def test_leases_are_given_out_in_order(tmp_path):
    producer = Writer(tmp_path, "producer", 0)
    producer.intent(S, 1, 2)
    producer.outcome("C")
    producer.close()
    writer = Writer(tmp_path, "consumer", 1)
    for number, start in ((2, 0), (1, 1)):
        writer.time(us(start))
        writer.time(us(start + 0.01))
        writer.leased(number, 9000, 0, S, number)
        writer.lease("A", number, "done", S, number)
        writer.outcome("C", us(start + 0.02))
    writer.close()
    assert dict(check(tmp_path).counts) == {"order": 1}
