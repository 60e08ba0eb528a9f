"""The long runs: what their claims are made from, and what holds xmin meanwhile."""

import json
import os
import time
from types import SimpleNamespace

import pytest

from pgaq import db
from pgaq.bench import backlog, endure
from pgaq.bench.endure import Line
from pgaq.load import holders, machine, payload, results, tables
from pgaq.load.drivers import SKIP, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import Options, Workload
from pgaq.places import SurroundingsError

GIVEN = SimpleNamespace(interval=60, reuses=20)


def line(minute, delivered=1000.0, **more):
    """The line at the end of a minute, counted from 1."""
    plain = dict(
        at=60.0 * minute, seconds=60.0, held="none", delivered=delivered, enqueued=delivered, slowest_enqueue=0.1, slowest_dequeue=0.2,
        bytes=100 << 20, tables=20, dead=0, dead_pg_class=3, frozen_age=1000, xmin_age=100 * minute, reuses=30, average_uses=40.0,
    )  # fmt: skip
    return Line(**{**plain, **more})


def verdicts(lines, grace=30.0):
    return {claim.what: claim.ok for claim in endure.claims_of(lines, GIVEN, grace)}


# -- reuse


@pytest.mark.parametrize(
    "rows, reuses",
    [
        ({}, 0),
        ({"a": 0}, 0),
        ({"a": 99}, 0),
        ({"a": 100}, 0),
        ({"a": 199}, 0),
        ({"a": 200}, 1),
        ({"a": 2100, "b": 350}, 2),
        ({"a": 2100, "b": 0}, 0),
    ],
)
def test_reuses_are_the_full_turns_after_the_first_of_the_least_used(rows, reuses):
    assert tables.reuses(rows, slots=100) == reuses


def test_uses_are_averaged():
    assert tables.uses({"a": 100, "b": 250}, slots=100) == 1.75
    assert tables.uses({}) == 0


def test_too_few_reuses_fail():
    what = "reuses of the least reused partition"
    assert verdicts([line(1), line(2, reuses=20)])[what] is True
    assert verdicts([line(1), line(2, reuses=19)])[what] is False


# -- first and last


def test_first_and_last_are_the_complete_ones():
    lines = [line(1, 500.0), line(2, 800.0), line(3, 450.0), line(3.1, 9.0, seconds=6.0)]
    assert endure.first_and_last(lines, 60) == (500.0, 450.0)
    assert endure.first_and_last(lines[:1], 60) is None
    assert endure.first_and_last([line(1, 500.0, seconds=30.0), line(2)], 60) is None


def test_ninety_per_cent_of_the_first_is_enough_and_less_is_not():
    what = "rate of the last 60 s, of the first"
    assert verdicts([line(1, 1000.0), line(2, 900.0)])[what] is True
    assert verdicts([line(1, 1000.0), line(2, 899.0)])[what] is False
    assert verdicts([line(1, 1000.0)])[what] is None


def test_rate_weighs_by_time():
    assert endure.rate([line(1, 100.0, seconds=30.0), line(2, 400.0, seconds=10.0)]) == 175.0


def held(minute, delivered, **more):
    return line(minute, delivered, **{"held": "slot", "xmin_age": 1000 * minute, **more})


def test_held_is_compared_with_what_came_before_and_after():
    what = "rate, held of not held"
    before, after = line(1, 1200.0), line(4, 800.0)
    assert verdicts([before, held(2, 900.0), held(3, 900.0), after])[what] is True
    assert verdicts([before, held(2, 900.0), held(3, 898.0), after])[what] is False


def test_each_turn_is_compared_with_its_neighbours():
    lines = [line(1, 1000.0), held(2, 900.0), line(3, 800.0), held(4, 500.0), line(5, 200.0)]
    assert endure.turns(lines) == [1.0, 1.0]  # the machine became slower, whatever was held
    assert endure.turns([line(1, 1000.0), held(2, 900.0), line(3, 1000.0), held(4, 800.0), line(5, 1000.0)]) == [0.9, 0.8]


def test_xmin_must_be_held_in_each_turn():
    what = "xmin held all the time"
    first, again = held(2, 1000.0, xmin_age=500), held(4, 1000.0, xmin_age=400)
    assert verdicts([line(1), first, line(3), again])[what] is True
    assert verdicts([line(1), first, line(3), held(4, 1000.0, xmin_age=0)])[what] is False


def test_an_xmin_that_moves_was_not_held():
    what = "xmin held all the time"
    assert verdicts([line(1), held(2, 1000.0), held(3, 1000.0)])[what] is True
    assert verdicts([line(1), held(2, 1000.0), held(3, 1000.0, xmin_age=5)])[what] is False


def test_dumps_must_have_come_to_an_end():
    assert verdicts([line(1), held(2, 1000.0, held="dump", dumps=1)])["complete dumps"] is True
    assert verdicts([line(1), held(2, 1000.0, held="dump", dumps=0)])["complete dumps"] is False


# -- tables


def test_any_dead_tuple_of_ours_fails():
    assert verdicts([line(1), line(2)])["dead tuples in our tables"] is True
    assert verdicts([line(1), line(2, dead=1), line(3)])["dead tuples in our tables"] is False


def test_growth_compares_the_halves_after_the_grace():
    sizes = [line(n, bytes=size) for n, size in enumerate([1, 50, 70, 60, 80, 75], 1)]
    assert endure.growth(sizes, grace=30) == (70, 80)  # the first minute ends at twice the grace
    assert endure.growth(sizes, grace=60) == (70, 80)
    assert endure.growth(sizes, grace=170) is None
    assert endure.growth([], grace=1) is None


def test_growth_fails_when_the_disk_goes_on_filling():
    what = "bytes on disk, second half of first"
    assert verdicts([line(n, bytes=1000 << 20) for n in range(1, 7)])[what] is True
    assert verdicts([line(n, bytes=(1000 + 200 * n) << 20) for n in range(1, 7)])[what] is False


def test_a_stall_fails_unless_the_machine_stalls_without_us():
    assert verdicts([line(1), line(2, slowest_enqueue=1.1)])["slowest call"] is False
    assert verdicts([line(1), held(2, 1000.0, slowest_dequeue=1.1)])["slowest call"] is False
    assert verdicts([line(1, slowest_enqueue=0.9), held(2, 1000.0, slowest_dequeue=1.1)])["slowest call"] is True


# -- results


def test_a_claim_that_could_not_be_judged_is_no_failure():
    claims = [Claim("a", "1", "1", True), Claim("b", "1", "-", None)]
    assert not results.failed(claims)
    assert results.failed([*claims, Claim("c", "1", "2", False)])
    assert "FAILED" in results.verdict_table([Claim("c", "1", "2", False)])


def test_a_result_is_a_file_with_the_claims(tmp_path):
    path = results.save("x", {"date": "20300101-0000", "rate": 1234.56789}, [Claim("a", "1", "1", True)], tmp_path)
    content = json.loads(path.read_text())
    assert path.name == "20300101-0000-x.json"
    assert content["rate"] == 1234.57 and content["claims"][0]["ok"] is True


def test_a_disk_that_is_too_small_is_explained(tmp_path):
    results.require_disk(tmp_path, 1)
    with pytest.raises(SurroundingsError, match="GB of disk are needed"):
        results.require_disk(tmp_path, 1 << 60)
    held, alone = SimpleNamespace(minutes=10, hold="slot", turns=1), SimpleNamespace(minutes=1, hold="none", turns=1)
    assert endure.room(alone) < endure.room(held) < endure.room(SimpleNamespace(minutes=10, hold="logical-slot", turns=1))


# -- the backlog


def test_the_cache_that_a_backlog_would_need():
    assert backlog.needed_cache(1_000_000, 1) == 32_250_000
    assert backlog.needed_cache(5_000_000, 10) == 172_500_000


def test_subscribers_go_to_places_of_their_own():
    names = [f"s{n}" for n in range(10)]
    shares = backlog.quotas(1000, names)
    assert "s0" not in shares  # has nothing to take, and 0 would mean: without limit
    assert list(shares.values()) == [100, 200, 300, 400, 500, 600, 700, 800, 900]


def test_private_memory_is_that_of_the_process():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4096
    assert 1 << 20 < machine.private_memory(os.getpid()) <= resident
    assert machine.private_memory(1 << 30) == 0


@pytest.mark.parametrize("length", [39, 40, 512, 10_000])
def test_payloads_of_the_load_client_are_understood(plain_server, length):
    with Workload(
        plain_server, SKIP, Shape(sessions=1, payload=length), Options(consumer_sessions=0, messages=20), queue=f"payload{length}"
    ) as workload:
        workload.setup()
        workload.start()
        workload.until(lambda: workload.control.quiet == 1, 30, "the producer does not end")
        workload.stop()
        with plain_server.connect() as conn:
            found = [row[0] for row in conn.execute(f"SELECT payload FROM payload{length} ORDER BY id")]
    assert [payload.read(text, length) for text in found] == [(0, n) for n in range(1, 21)]
    last = found[-1]
    for at in {0, 8, 9, 21, 22, 38, length // 2, length - 1}:
        changed = last[:at] + ("x" if last[at] != "x" else "y") + last[at + 1 :]
        assert payload.read(changed, length) is None
    assert payload.read(last + "a", length) is None and payload.read(last[:-1], length) is None


# -- the load client


def test_a_quota_ends_each_subscribers_consumption(plain_server):
    shape = Shape(kind="topic", sessions=2, subscribers=2, batch=5)
    filled = Options(consumer_sessions=0, messages=400, backlog=0)
    with Workload(plain_server, SKIP, shape, filled, queue="quotas") as workload:
        workload.setup()
        workload.start()
        workload.until(lambda: workload.control.quiet == 2, 30, "the producers do not end")
        workload.stop()
        workload.options = Options(producer_sessions=0, consumer_sessions=2, quotas={"s00": 100, "s01": 250})
        workload.start()
        workload.until(lambda: workload.control.delivered >= 350, 30, "the quotas are not reached")
        workload.stop()
        assert [result["messages"] for result in workload.results] == [100, 250]
        assert workload.check(drained=False).ok
        report = workload.check()
        assert report.committed >= 400 and report.counts == {"lost": 2 * report.committed - 350}


def test_the_slowest_call_is_seen_once(plain_server):
    with Workload(plain_server, SKIP, Shape(sessions=1, batch=5), queue="slow") as workload:
        workload.setup()
        with plain_server.connect() as conn:
            conn.execute(
                """CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN IF NEW.id = 1 THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$;
                   CREATE TRIGGER dawdle BEFORE INSERT ON slow FOR EACH ROW EXECUTE FUNCTION dawdle()"""
            )
        workload.start()
        workload.until(lambda: workload.control.slowest_producing > 0, 30, "no call has returned")
        assert workload.control.slowest()[0] >= 2_000_000
        assert workload.control.slowest()[0] < 2_000_000
        workload.stop()


# -- holders


@pytest.fixture(scope="module")
def any_server(plain_server):
    plain_server.configure(max_prepared_transactions=5, autovacuum="off")  # whose workers hold an xmin, too
    plain_server.restart()
    return plain_server


def turn(conn, number):
    for _ in range(number):
        conn.execute("SELECT pg_current_xact_id()")


@pytest.mark.parametrize("name", ["idle", "repeatable-read", "prepared", "slot", "slow-dump"])
def test_a_holder_holds_xmin_and_lets_it_go(any_server, name):
    with any_server.connect() as conn:
        with holders.HOLDERS[name](any_server) as hold:
            first = holders.oldest_xmin(conn)
            turn(conn, 50)
            hold.turn()
            assert holders.oldest_xmin(conn) >= first + 50
        turn(conn, 50)
        assert holders.oldest_xmin(conn) < 50


def test_the_slot_holds_both_xmins_but_no_wal(any_server):
    with any_server.connect() as conn, holders.slot(any_server) as hold:
        conn.execute("CREATE TABLE wal AS SELECT generate_series(1, 10000)")
        hold.turn()
        query = "SELECT xmin = catalog_xmin AND restart_lsn >= pg_current_wal_flush_lsn() - 1000 FROM pg_replication_slots"
        assert db.value(conn, query) is True


def test_dumps_follow_each_other(any_server):
    deadline = time.monotonic() + 60
    with holders.dump(any_server) as hold:
        while hold.dumps < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert hold.dumps >= 2
