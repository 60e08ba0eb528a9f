"""The ledger checker must accept what is right and find every kind of violation."""

import pytest

from pgaq.load import ledger, tally
from pgaq.load.ledger import Writer, check, read

S = 1 << 12  # the first session of client 1
T = 2 << 12


@pytest.fixture
def book(tmp_path):
    """Writes forged ledgers and checks them."""
    return Book(tmp_path)


class Book:
    def __init__(self, directory):
        self.directory = directory
        self.numbers = iter(range(1000))

    def producer(self, *transactions):
        """transactions: (outcome, (session, first, count), ...)"""
        writer = Writer(self.directory, "producer", next(self.numbers))
        for outcome, *spans in transactions:
            for span in spans:
                writer.intent(*span)
            if outcome:
                writer.outcome(outcome)
        writer.close()

    def consumer(self, *transactions, name="", orderly=True, moved=False):
        """As producer; 'N' and 'X' among the spans are the lost connection and the lost dequeue."""
        writer = Writer(self.directory, "consumer", next(self.numbers), consumer=name, moved=moved)
        for outcome, *spans in transactions:
            for span in spans:
                if span == "N":
                    writer.connection_lost()
                elif span == "X":
                    writer.dequeue_lost(10)
                elif span == "S":
                    writer.savepoint()
                elif span == "B":
                    writer.back()
                elif span == "L":
                    writer.release()
                else:
                    writer.delivered(*span)
            if outcome:
                writer.outcome(outcome)
        writer.close(orderly=orderly)

    def check(self, **options):
        report = check(self.directory, **options)
        if not {"wanted", "retry_delay", "lossy"} & set(options):
            # the check of long runs says the same, where it says anything
            names = options.pop("subscribers", None) or sorted({read(path).consumer for path in self.directory.glob("consumer*")})
            quick = tally.check(self.directory, subscribers=names, **options)
            if quick is not None:
                assert (quick.counts, quick.committed, quick.deliveries) == (report.counts, report.committed, report.deliveries)
        return report

    def kinds(self, **options):
        return dict(self.check(**options).counts)


def test_everything_arrived(book):
    book.producer(("C", (S, 1, 10)), ("C", (S, 11, 10)))
    book.consumer(("C", (S, 1, 5)), ("C", (S, 6, 15)))
    report = book.check()
    assert report.ok, report
    assert (report.committed, report.deliveries) == (20, 20)


def test_two_sessions_may_interleave(book):
    book.producer(("C", (S, 1, 3)))
    book.producer(("C", (T, 1, 3)))
    book.consumer(("C", (T, 1, 1), (S, 1, 2), (T, 2, 2), (S, 3, 1)))
    assert book.kinds() == {}


def test_lost(book):
    book.producer(("C", (S, 1, 10)))
    book.consumer(("C", (S, 1, 4)), ("C", (S, 6, 5)))
    report = book.check()
    assert report.counts == {"lost": 1}
    assert "1.0:5 never took effect" in str(report)


def test_lost_at_both_ends_and_whole_sessions(book):
    book.producer(("C", (S, 1, 10)), ("C", (T, 1, 7)))
    book.consumer(("C", (S, 3, 6)))
    assert book.kinds() == {"lost": 2 + 2 + 7}


def test_not_drained_is_not_lost(book):
    book.producer(("C", (S, 1, 10)))
    book.consumer(("C", (S, 1, 4)))
    assert book.kinds(drained=False) == {}


def test_duplicate(book):
    book.producer(("C", (S, 1, 10)))
    book.consumer(("C", (S, 1, 10)))
    book.consumer(("C", (S, 4, 2)))
    assert book.kinds() == {"duplicate": 2}


def test_duplicate_in_one_transaction(book):
    book.producer(("C", (S, 1, 2)))
    book.consumer(("C", (S, 1, 2), (S, 2, 1)))
    assert book.kinds(order=False) == {"duplicate": 1}


def test_rolled_back_enqueue_is_a_ghost(book):
    book.producer(("R", (S, 1, 2)), ("C", (S, 3, 1)))
    book.consumer(("C", (S, 1, 3)))
    report = book.check()
    assert report.counts == {"ghost": 2}
    assert "was rolled back" in str(report)


def test_ghost_is_found_even_if_given_back(book):
    book.producer(("R", (S, 1, 1)), ("C", (S, 2, 1)))
    book.consumer(("R", (S, 1, 1)), ("C", (S, 2, 1)))
    assert book.kinds() == {"ghost": 1}


def test_message_never_enqueued(book):
    book.producer(("C", (S, 1, 1)))
    book.consumer(("C", (S, 1, 1), (T, 77, 1)))
    assert book.kinds() == {"ghost": 1}


def test_reordered(book):
    book.producer(("C", (S, 1, 3)))
    book.consumer(("C", (S, 1, 1), (S, 3, 1), (S, 2, 1)))
    assert book.kinds() == {"order": 1}
    assert book.kinds(order=False) == {}


def test_order_is_kept_per_priority(book):
    book.producer(("C", (S, 1, 2, 5), (S, 3, 2, 0)))
    book.consumer(("C", (S, 3, 2, 0), (S, 1, 2, 5)))
    assert book.kinds() == {}


def test_delayed_messages_have_no_order(book):
    book.producer(("C", (S, 1, 3, ledger.UNORDERED)))
    book.consumer(("C", (S, 3, 1), (S, 1, 2)))
    assert book.kinds() == {}


def test_given_back_and_taken_again_at_its_place(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("R", (S, 1, 2)), ("C", (S, 1, 2)), ("C", (S, 3, 2)))
    report = book.check()
    assert report.ok and report.given_back == 2


def test_one_consumer_must_get_its_own_rollback_back_first(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("R", (S, 1, 2)), ("C", (S, 3, 2)), ("C", (S, 1, 2)))
    assert book.kinds() == {"order": 2}


def test_with_a_retry_delay_what_was_given_back_may_be_late_and_nothing_else(book):
    book.producer(("C", (S, 1, 6)))
    book.consumer(("R", (S, 1, 2)), ("C", (S, 4, 3)), ("C", (S, 1, 2)), ("C", (S, 3, 1)))
    report = book.check(retry_delay=True)
    assert report.counts == {"order": 1}
    assert report.late == 2


def test_exception_queue_delivers_in_no_order(book):
    book.producer(("C", (S, 1, 6)))
    book.consumer(("C", (S, 1, 1)), ("R", (S, 2, 2)), ("C", (S, 5, 2)))
    book.consumer(("C", (S, 4, 1), (S, 2, 2)), moved=True)
    report = book.check()
    assert report.ok, report
    assert report.moved == 3


def test_exception_queue_delivers_what_the_queue_has_not(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("C", (S, 1, 2)))
    book.consumer(("C", (S, 2, 1), (S, 3, 1)), moved=True)
    assert book.kinds() == {"duplicate": 1, "lost": 1}


def test_a_crash_may_lose_and_must_not_repeat(book):
    book.producer(("C", (S, 1, 6)), ("R", (S, 7, 1)))
    book.consumer(("C", (S, 1, 2)), ("U", (S, 3, 1), "N"), ("C", (S, 6, 1)))
    assert book.kinds() == {"lost": 2}
    report = book.check(lossy=True)
    assert report.ok and report.lost_in_crash == 2
    book.consumer(("C", (S, 2, 1), (S, 7, 1)))
    assert book.kinds(lossy=True) == {"duplicate": 1, "ghost": 1}


def test_late_because_another_consumer_held_it(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("C", (S, 3, 2)), ("C", (S, 1, 2)))
    book.consumer(("R", (S, 1, 2)))
    report = book.check()
    assert report.ok and report.late == 2


def test_late_because_a_dequeue_was_lost_but_not_more_than_it_held(book):
    book.producer(("C", (S, 1, 30)))
    book.consumer(("C", (S, 21, 10)), ("C", (S, 1, 20)))
    book.consumer(("R", "X", "N"))
    report = book.check()
    assert report.counts == {"order": 10}
    assert report.late == 10


def test_savepoints(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("C", (S, 1, 1), "S", (S, 2, 2), "B", (S, 2, 2), "L"), ("C", (S, 4, 1)))
    report = book.check()
    assert report.ok, report
    assert report.given_back == 2


def test_rolled_back_to_savepoint_by_producer(book):
    writer = Writer(book.directory, "producer", 500)
    writer.intent(S, 1, 2)
    writer.savepoint()
    writer.intent(S, 3, 2)
    writer.back()
    writer.intent(S, 5, 1)
    writer.outcome("C")
    writer.close()
    book.consumer(("C", (S, 1, 2), (S, 5, 1)))
    assert book.kinds() == {}
    book.consumer(("C", (S, 3, 1)))
    assert book.kinds() == {"ghost": 1}


def test_enqueue_in_doubt_may_be_there_or_not(book):
    book.producer(("U", (S, 1, 2)), ("C", (T, 1, 1)))
    book.consumer(("C", (T, 1, 1)))
    assert book.kinds() == {}
    book.consumer(("C", (S, 1, 2)))
    report = book.check()
    assert report.ok and report.found_committed == 2


def test_enqueue_in_doubt_must_be_whole(book):
    book.producer(("U", (S, 1, 3)))
    book.consumer(("C", (S, 1, 2)))
    assert book.kinds() == {"lost": 1}


def test_enqueue_in_doubt_must_reach_every_subscriber(book):
    book.producer(("U", (S, 1, 3)))
    book.consumer(("C", (S, 1, 3)), name="a")
    book.consumer(name="b")
    assert book.kinds() == {"lost": 3}


def test_file_cut_off_leaves_the_enqueue_in_doubt(book):
    book.producer(("C", (S, 1, 1)), (None, (S, 2, 1)))
    book.consumer(("C", (S, 1, 1)))
    assert book.kinds() == {}


def test_dequeue_in_doubt_counts_when_nobody_else_got_it(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("U", (S, 1, 2), "N"))
    book.consumer(("C", (S, 3, 2)))
    report = book.check()
    assert report.ok and report.deliveries == 4


def test_dequeue_in_doubt_does_not_count_when_somebody_else_got_it(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("U", (S, 1, 2), "N"))
    book.consumer(("C", (S, 1, 4)))
    report = book.check()
    assert report.ok and report.given_back == 2


def test_dequeue_in_doubt_must_not_be_torn(book):
    book.producer(("C", (S, 1, 4)))
    book.consumer(("U", (S, 1, 2), "N"))
    book.consumer(("C", (S, 2, 3)))
    kinds = book.kinds()
    assert kinds["torn"] == 1 and kinds["lost"] == 1


def test_chain_of_doubts_is_settled(book):
    # the second took 1 again, so the first was undone; 3 is explained by the third only
    book.producer(("C", (S, 1, 3)))
    book.consumer(("U", (S, 1, 2), "N"))
    book.consumer(("U", (S, 1, 1), "N"))
    book.consumer(("C", (S, 2, 1)))
    book.consumer(("U", (S, 3, 1), "N"))
    assert book.kinds() == {}


def test_equal_doubts_count_once(book):
    book.producer(("C", (S, 1, 2)))
    book.consumer(("U", (S, 1, 2), "N"))
    book.consumer(("U", (S, 1, 2), "N"))
    report = book.check()
    assert report.ok and report.deliveries == 2


def test_every_subscriber_is_checked(book):
    book.producer(("C", (S, 1, 2)))
    book.consumer(("C", (S, 1, 2)), name="a")
    book.consumer(("C", (S, 1, 1)), name="b")
    assert book.kinds(subscribers=["a", "b", "c"]) == {"lost": 3}


def test_subscriber_with_a_rule(book):
    book.producer(("C", (S, 1, 2)))
    book.producer(("C", (T, 1, 2)))
    book.consumer(("C", (S, 1, 2)), name="a")
    assert book.kinds(wanted=lambda name, session: session == S) == {}


def test_wrong_payload(book):
    book.producer(("C", (S, 1, 1)))
    writer = Writer(book.directory, "consumer", 900)
    writer.delivered(S, 1)
    writer.bad_payload(S, 1)
    writer.outcome("C")
    writer.close()
    assert book.kinds() == {"payload": 1}


def test_no_ledger_is_a_violation(book):
    assert book.kinds() == {"malformed": 1}


def test_a_record_cut_short_is_ignored(book):
    book.producer(("C", (S, 1, 1)))
    book.consumer(("C", (S, 1, 1)))
    for path in book.directory.glob("consumer*"):
        with path.open("ab") as file:
            file.write(b"D\0\0")
    assert book.kinds() == {}


def test_main_prints_and_fails(book, capsys):
    book.producer(("C", (S, 1, 2)))
    book.consumer(("C", (S, 1, 1)))
    assert ledger.main([str(book.directory)]) == 1
    assert "VIOLATIONS: 1 lost" in capsys.readouterr().out


# -- the check of long runs


@pytest.mark.parametrize(
    "producer, consumer",
    [
        (("U", (S, 1, 1)), ("C", (S, 1, 1))),
        (("R", (S, 1, 1)), ("C", (T, 1, 1))),
        (("C", (S, 1, 1)), ("R", (S, 1, 1))),
        (("C", (S, 1, 1)), ("C", (S, 1, 1), "N")),
        (("C", (S, 1, 1, ledger.UNORDERED)), ("C", (S, 1, 1))),
    ],
    ids=["in doubt", "rolled back", "given back", "connection lost", "delayed"],
)
def test_tally_leaves_to_the_full_check_what_it_does_not_know(book, producer, consumer):
    book.producer(producer, ("C", (T, 1, 1)))
    book.consumer(consumer)
    assert tally.check(book.directory, subscribers=[""]) is None


def test_tally_leaves_exception_queues_to_the_full_check(book):
    book.producer(("C", (S, 1, 1)))
    book.consumer(("C", (S, 1, 1)), moved=True)
    assert tally.check(book.directory, subscribers=[""]) is None


def test_tally_knows_the_orderly_run_and_each_violation(book):
    book.producer(("C", (S, 1, 5)), ("C", (S, 6, 5)), ("C", (T, 1, 4)))
    book.consumer(("C", (S, 1, 10)), ("R",), ("C", (T, 1, 4)), name="a")
    assert tally.check(book.directory, subscribers=["a"]).ok
    book.consumer(("C", (S, 1, 2)), ("C", (S, 5, 2)), ("C", (S, 3, 1)), ("C", (S, 9, 4)), name="b")
    book.consumer(("C", (S, 6, 1)), name="b")
    report = tally.check(book.directory, subscribers=["a", "b"])
    assert report.counts == {"lost": 3 + 4, "order": 1, "ghost": 2, "duplicate": 1}
