"""Notifiers, the link worker and the worker of a database share few background worker slots."""

from __future__ import annotations

import pytest

from conftest import background, install, until
from pgaq import db

# the launcher, the worker, the sampler, and one slot for the link worker and the notifiers
SETTINGS = {
    "max_worker_processes": "4",
    "max_logical_replication_workers": "0",
    "pgaq.notifiers": "1",
    "pgaq.notifier_idle_timeout": "100ms",
}

SETUP = """
CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1');
CREATE USER MAPPING FOR postgres SERVER there;
CREATE TABLE seen (what text);
CREATE PROCEDURE note(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen VALUES (convert_from(n.payload, 'UTF8')); END $$;
SELECT aq.create_queue('jobs');
SELECT aq.register('jobs', 'plsql://public.note', with_payload => true);
"""

pytestmark = [pytest.mark.own_tables, pytest.mark.long]


def notified(conn, number):
    conn.execute("SELECT aq.enqueue('jobs', %s::text::jsonb)", [str(number)])
    until(lambda: db.value(conn, "SELECT count(*) FROM seen WHERE what = %s", [str(number)]) == 1, f"notification {number}")


def link_has_tried(conn):
    until(lambda: db.value(conn, "SELECT sqlstate FROM aq.check_link('there', '5 s')") == "08001", "the link worker to try the link")


def test_both_run_in_turn_and_after_a_restart(new_server):
    server = new_server("shared", **SETTINGS)
    with server.connect() as conn:
        conn.execute(SETUP)
        for i in range(5):
            notified(conn, i)
            link_has_tried(conn)
    server.restart()
    with server.connect() as conn:
        link_has_tried(conn)
        notified(conn, 5)
        link_has_tried(conn)
    server.kill()
    server.start()
    with server.connect() as conn:
        notified(conn, 6)
        link_has_tried(conn)
        assert db.value(conn, "SELECT count(*) FROM seen") == 7


def test_drop_database_waits_for_neither(new_server):
    server = new_server("dropped", max_worker_processes="8")
    with server.connect() as conn:
        for _ in range(3):
            conn.execute("CREATE DATABASE apart")
            with server.connect("apart") as there:
                install(there)
                there.execute(SETUP)
                link_has_tried(there)
                notified(there, 1)
                assert background(there, "link")
                assert db.value(there, "SELECT count(*) FROM aq.notifiers WHERE database = 'apart' AND pid IS NOT NULL") == 1
            conn.execute("DROP DATABASE apart")
        assert db.value(conn, "SELECT count(*) FROM aq.notifiers") == 0
