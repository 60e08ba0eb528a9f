"""The time of day is set forward and back under a server: what is due comes, and nothing waits for the difference but what has a time of day."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import struct
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import conftest
import pytest
from conftest import PATIENCE, arrived, at_rest, background, end_server, make_server, put, take, until, waiting_for
from pgaq import db
from test_wait import Waiter, asleep

# the time of day of all processes of a server, moved by the seconds in a file
SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *moved;

__attribute__((constructor)) static void start(void)
{
	int			file = open(getenv("MOVED_CLOCK"), O_RDONLY);

	moved = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int			result = syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_REALTIME)
		time->tv_sec += *moved;
	return result;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	value->tv_sec = time.tv_sec;
	value->tv_usec = time.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *value)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (value)
		*value = now.tv_sec;
	return now.tv_sec;
}
"""


class Clock:
    def __init__(self, file):
        self.memory = mmap.mmap(file.fileno(), 8)
        self.hours = 0

    def move(self, hours):
        self.hours += hours
        self.memory[:8] = struct.pack("q", round(self.hours * 3600))


@contextlib.contextmanager
def moving(tmp_path_factory):
    """The clock of the servers that are started meanwhile."""
    place = tmp_path_factory.mktemp("clock")
    temporary = Path(tempfile.gettempdir())  # its mode is not ours
    for directory in itertools.takewhile(lambda above: above not in (temporary, *temporary.parents), (place, *place.parents)):
        directory.chmod(0o755)
    (place / "clock.c").write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", "clock.so", "clock.c"], cwd=place, check=True)
    (place / "moved").write_bytes(bytes(8))
    with pytest.MonkeyPatch.context() as patch, (place / "moved").open("r+b") as file:
        patch.setenv("MOVED_CLOCK", str(place / "moved"))
        patch.setenv("LD_PRELOAD", str(place / "clock.so"))
        yield Clock(file)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A server, and its clock."""
    with moving(tmp_path_factory) as clock:
        server = make_server("clock", **{"pgaq.fetch_patience": "2 s"})
        yield server, clock
        end_server(server)


def test_set_forward(moved):
    """A virtual machine was paused: what has become due meanwhile comes at once."""
    server, clock = moved
    with server.connect() as conn:
        for name in ("delayed", "scheduled", "leased"):
            conn.execute("SELECT aq.create_queue(%s)", [name])
        conn.execute("SELECT aq.schedule('hourly', 'scheduled', '\"hourly\"', every => '1 hour')")
        put(conn, "delayed", 1, delay="1 hour")
        put(conn, "leased", 1)
        assert len(db.rows(conn, "SELECT * FROM aq.dequeue('leased', lease => '1 hour')")) == 1
        until(lambda: at_rest(conn, "worker"), "the worker at rest")
        clock.move(2)
        for name, payload in (("delayed", 1), ("scheduled", "hourly"), ("leased", 1)):
            assert arrived(conn, name, 1)[:1] == [payload], name
        conn.execute("SELECT aq.unschedule('hourly')")


def test_window_of_propagation(moved):
    """One that begins in an hour, when the clock is set forward."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('from'), aq.create_queue('to')")
        conn.execute("SELECT aq.create_propagation('from', 'to', start_time => now() + interval '1 hour')")
        put(conn, "from", 1)
        until(lambda: waiting_for(conn, "aq: propagation idle"), "the process at rest")
        clock.move(2)
        assert arrived(conn, "to", 1) == [1]


def test_set_back(moved):
    """Pauses of the worker, and delays that begin now, do not wait for the old time."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('back', retry_delay => '1 s'), aq.create_queue('watched')")
        put(conn, "watched", 0)
        assert arrived(conn, "watched", 1) == [0]
        first, second = (Waiter(server, "watched").wait() for _ in range(2))
        asleep(conn, [first, second])
        put(conn, "watched", 1)
        until(lambda: first.done() or second.done(), "the first of two")
        clock.move(-1)
        until(lambda: first.done() and second.done(), "the other one, when the first does not fetch the message")
        put(conn, "back", 1, delay="1 s")
        assert arrived(conn, "back", 1) == [1]
        put(conn, "back", 2)
        with pytest.raises(ZeroDivisionError), conn.transaction():
            assert take(conn, "back") == [2]
            raise ZeroDivisionError
        assert arrived(conn, "back", 1) == [2]
        first.close()
        second.close()


def test_a_notifier_that_rests(moved):
    """One that has ended with an error is started again after its pause, also if the clock is set back meanwhile."""
    server, clock = moved
    server.expect_log('terminating background worker "pgaq notifier"')
    with server.connect() as conn:
        conn.execute("""CREATE TABLE seen (payload text);
                        CREATE PROCEDURE note(n aq.notification) LANGUAGE sql AS 'INSERT INTO public.seen VALUES (convert_from(n.payload, ''UTF8''))'""")
        conn.execute("SELECT aq.create_queue('told'), aq.register('told', 'plsql://public.note', with_payload => true)")
        put(conn, "told", 1)
        until(lambda: db.value(conn, "SELECT count(*) FROM seen") == 1, "the first notification")
        conn.execute("SELECT pg_terminate_backend(pid) FROM aq.notifiers")
        until(lambda: db.value(conn, "SELECT state = 'backing off' FROM aq.notifiers"), "its pause")
        clock.move(-1)
        put(conn, "told", 2)
        until(lambda: db.value(conn, "SELECT count(*) FROM seen") == 2, "the second notification")
        conn.execute("SELECT aq.unregister(registration_id) FROM aq.registrations")


def test_the_link_worker(moved):
    """It is replaced after a step back, so none of its pauses lasts longer."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("CREATE SERVER nowhere FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '/nowhere', dbname 'far')")
        conn.execute("CREATE USER MAPPING FOR postgres SERVER nowhere OPTIONS (user 'postgres')")
        conn.execute("SELECT aq.create_queue('away'), aq.create_propagation('away', 'there@nowhere')")
        put(conn, "away", 1)
        first = until(lambda: background(conn, "link"), "the link worker")
        clock.move(-1)
        until(lambda: background(conn, "link") not in (None, first), "the next one")
        conn.execute("SELECT aq.drop_queue('away', force => true)")


def test_order_after_a_restart(moved):
    """The order of a queue table's messages of one priority is that of the calls, also when the clock is behind after a restart."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue_table('ordered_table', 'jsonb', sort_list => 'priority')")
        conn.execute("SELECT aq.create_queue('ordered', queue_table => 'ordered_table')")
        put(conn, "ordered", 1, 2, priority=3)
    server.stop()
    clock.move(-1)
    server.start()
    with server.connect() as conn:
        put(conn, "ordered", 3, 4, priority=3)
        assert take(conn, "ordered") == [1, 2, 3, 4]


def test_a_machine_that_stands_still(moved, monkeypatch):
    """A virtual machine is paused: a test that waits gives the server its time afterwards."""
    server, _ = moved
    pauses = itertools.count(0, 2 * PATIENCE)
    looks = iter([False, False, True])
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('late')")
        put(conn, "late", 1, delay="0.2 s")
        monkeypatch.setattr(conftest, "time", SimpleNamespace(monotonic=lambda: next(pauses), sleep=lambda _: None))
        assert until(lambda: next(looks))
        assert arrived(conn, "late", 1) == [1]
