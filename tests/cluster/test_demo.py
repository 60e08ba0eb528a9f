"""./demo on the server of an earlier one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from pgaq import db, demo, places
from pgaq.load.drivers import DRIVERS


@pytest.mark.own_tables
def test_a_later_demo_keeps_what_a_user_has_made():
    """After ./demo stop, ./demo goes on with its database, and makes only its own queues anew; not with that of another build."""
    above = Path(tempfile.mkdtemp(prefix="pgaq-demo-"))
    above.chmod(0o711)
    home = places.private_directory(above / "home")
    server = demo.prepare(home, None, DRIVERS["pgaq"])
    try:
        with server.connect(demo.DATABASE) as conn:
            db.execute(conn, "SELECT aq.create_queue('demo_queue', 'text'), aq.create_queue('mine')")
            db.execute(conn, "SELECT aq.enqueue('mine', '1')")
        for build, kept in (("same", 1), ("other", 0)):
            server.stop()
            if build == "other":
                (home / "build").write_text("pgaq 0\n")
            server = demo.prepare(home, None, DRIVERS["pgaq"])
            with server.connect(demo.DATABASE) as conn:
                assert db.value(conn, "SELECT count(*) FROM aq.queues WHERE queue_name LIKE 'demo%'") == 0
                assert db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = 'mine'") == kept
    finally:
        server.destroy()
        shutil.rmtree(above, ignore_errors=True)
