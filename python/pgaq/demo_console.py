"""./demo console: the console on a load that runs, with messages that fail, a schedule, and a transaction that is left open."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from pgaq import db
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import LoadError, Options, Workload
from pgaq.server import Server

QUEUE = "demo_live"
ERRORS = ("no such customer: 4711", "connection to payments.example timed out")


def furnish(conn: db.Connection) -> None:
    """Queues that need attention: dead letters of two kinds, and messages without a consumer; and a schedule."""
    for queue in ("payments", "mails"):
        db.execute(conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = %s", [queue])
        db.execute(conn, "SELECT aq.create_queue(%s, max_retries => 3)", [queue])
    db.execute(conn, "SELECT count(aq.enqueue('mails', jsonb_build_object('to', format('customer %s', i)))) FROM generate_series(1, 40) i")
    db.execute(
        conn, "SELECT count(aq.enqueue('payments', jsonb_build_object('order', i, 'amount', 12.5 * i))) FROM generate_series(1, 30) i"
    )
    for error in ERRORS:
        taken = conn.execute("SELECT msgid, receipt FROM aq.dequeue('payments', max_messages => 12, lease => '1 minute')").fetchall()
        for msgid, receipt in taken:
            db.execute(conn, "SELECT aq.reject('payments', %s, %s, error => %s)", [[msgid], receipt, error])
    db.execute(conn, "SELECT aq.unschedule(schedule_name) FROM aq.schedules WHERE schedule_name = 'every morning'")
    db.execute(conn, "SELECT aq.schedule('every morning', 'mails', '{}'::jsonb, cron => '30 7 * * 1-5')")
    db.execute(conn, "SELECT aq.take_snapshot()")


def run(server: Server, database: str, home: Path, where: str) -> int:
    """Until Ctrl-C."""
    with server.connect(database) as conn:
        furnish(conn)
        db.execute(conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = %s", [QUEUE])
    password = (home / "password").read_text().strip()
    ledger = home / "ledger" / QUEUE
    shutil.rmtree(ledger, ignore_errors=True)  # of a run that was killed
    work = Workload(server, PGAQ, Shape(kind="topic", sessions=4, rate=500), Options(), queue=QUEUE, dbname=database, directory=ledger)
    command = [sys.executable, "-m", "pgaq", "console", "-d", f"host=127.0.0.1 port={server.port} dbname={database}", "--listen", where]
    with work, server.connect(database) as open_one:
        work.setup()
        work.start()
        open_one.execute("BEGIN; SELECT pg_current_xact_id() /* a transaction that is left open */")
        print(
            f"Open http://{where}/ in a browser, and log in as postgres with the password {password}.\n"
            "Ctrl-C ends the console and the load.",
            flush=True,
        )
        with subprocess.Popen(command) as console, contextlib.suppress(KeyboardInterrupt):
            try:
                while console.poll() is None:
                    work.run_for(0.5)
            except LoadError:
                open_one.close()
                with contextlib.suppress(db.OperationalError), server.connect(database):
                    raise
                raise LoadError("the server was stopped, and with it the load") from None
            finally:
                console.terminate()
        work.stop()
        work.forget()
    return 1 if console.returncode not in (0, -signal.SIGTERM, 130) else 0
