"""./demo on the server of an earlier one, and ./demo cluster."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest

from pgaq import db, demo, demo_cluster, places
from pgaq.load.drivers import DRIVERS


@pytest.fixture
def home():
    """A directory for a demo's servers, which are gone at the end."""
    above = Path(tempfile.mkdtemp(prefix="pgaq-demo-"))
    above.chmod(0o711)
    yield places.private_directory(above / "home")
    demo_cluster.remove(above / "home")
    shutil.rmtree(above, ignore_errors=True)


@pytest.mark.own_tables
def test_a_later_demo_keeps_what_a_user_has_made(home):
    """After ./demo stop, ./demo goes on with its database, and makes only its own queues anew; not with that of another build."""
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


@pytest.mark.sharded("a distributed queue is sharded")
def test_cluster(home, capsys):
    """./demo cluster checks every message, shows the nodes, and leaves its servers running, until ./demo stop."""
    assert demo_cluster.run(home, "demo", 4) == 0
    shown = capsys.readouterr().out
    assert "every one consumed exactly once" in shown
    rows = {words[0]: words for words in map(str.split, shown.splitlines()) if words and words[0] in demo_cluster.NODES and len(words) > 7}
    assert rows.keys() == set(demo_cluster.NODES)
    assert any(row[3] != "0" for row in rows.values()), "messages came from other nodes"
    # what it shows can be copied
    address = dict(
        zip(("host", "port", "user", "dbname"), re.search(r"psql -h (\S+) -p (\d+) -U (\w+) (\w+)", shown).groups(), strict=True)
    )
    with psycopg.connect(**address, autocommit=True) as conn:
        for statement in re.findall(r"SELECT .*?;", shown):
            conn.execute(statement)
    assert demo_cluster.stop(home)
    assert not demo_cluster.stop(home)


@pytest.mark.sharded("a distributed queue is sharded")
def test_interrupted_cluster(home, monkeypatch):
    """Ctrl-C leaves neither servers nor clients running."""
    clients = []

    def interrupt(workload, seconds, progress=None):
        clients.extend(workload.processes)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_cluster.Workload, "run_for", interrupt)
    with pytest.raises(KeyboardInterrupt):
        demo_cluster.run(home, "demo", 4)
    assert clients and all(process.poll() is not None for process in clients)
    assert not any(server.running() for server in demo_cluster.servers_at(home).values())
