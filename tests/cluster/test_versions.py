"""From one version of the extensions to the next: ALTER EXTENSION ... UPDATE, with messages inside, comes to what a new installation has.

The next version is made up here, of changes of the kinds that versions have, in a copy of the installed server. A real one brings its upgrade scripts
(sql/upgrade), and those are tried in the same way.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog import differences, members
from conftest import end_server, look, put, put_many, take
from pgaq import db, places
from pgaq.server import Server

pytestmark = pytest.mark.own_tables

OLD, NEW = "0.1.0", "0.1.1"
EXTENSIONS = ["pgaq", "pgaq_oracle"]

# What the made-up version changes. A column comes last in both, and a view's new one, too.
UPGRADE = {
    "pgaq": """
ALTER TABLE aq_internal.queue ADD COLUMN colour text CHECK (colour <> '');
COMMENT ON COLUMN aq_internal.queue.colour IS 'made up';
ALTER TABLE aq_internal.subscriber ADD COLUMN colour text DEFAULT 'red';
ALTER TABLE aq_internal.queue_table ADD COLUMN colour text DEFAULT 'red';
ALTER TABLE aq_internal.consumer_grant ADD COLUMN colour text DEFAULT 'red';
COMMENT ON COLUMN aq_internal.subscriber.colour IS 'made up';
COMMENT ON COLUMN aq_internal.queue_table.colour IS 'made up';
COMMENT ON COLUMN aq_internal.consumer_grant.colour IS 'made up';
CREATE TABLE aq_internal.made_up (queue_id integer PRIMARY KEY, note text NOT NULL);
COMMENT ON TABLE aq_internal.made_up IS 'made up';
SELECT pg_catalog.pg_extension_config_dump('aq_internal.made_up', '');
GRANT SELECT ON aq_internal.made_up TO pg_database_owner;
INSERT INTO aq_internal.made_up SELECT queue_id, 'was there' FROM aq_internal.queue;
CREATE OR REPLACE VIEW aq.errors AS SELECT code, "sqlstate", meaning, upper(meaning) AS loud FROM aq_internal.errors();
COMMENT ON COLUMN aq.errors.loud IS 'made up';
DROP FUNCTION aq.conversion_obstacles(text);
CREATE FUNCTION aq.conversion_obstacles(queue_name text, "limit" integer DEFAULT 10, OUT obstacle text, OUT hint text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_convert_obstacles';
COMMENT ON FUNCTION aq.conversion_obstacles IS 'made up';
CREATE OR REPLACE FUNCTION aq_internal.severity(share numeric) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE RETURN 'made up';
""",
    "pgaq_oracle": """
CREATE VIEW sys.v$made_up AS SELECT queue_id, note FROM aq_internal.made_up;
COMMENT ON VIEW sys.v$made_up IS 'made up';
GRANT SELECT ON sys.v$made_up TO pg_monitor;
CREATE OR REPLACE FUNCTION dbms_aq.never() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN -2;
""",
}


@dataclass
class Installation:
    bindir: Path
    scripts: Path  # folder of control files and scripts


def script(folder: Path, extension: str, versions: str) -> Path:
    return folder / f"{extension}--{versions}.sql"


def made_up_version(folder: Path) -> None:
    """The scripts that install it and that lead to it."""
    for extension, change in UPGRADE.items():
        header = f'\\echo Use "ALTER EXTENSION {extension} UPDATE" to load this file. \\quit\n'
        script(folder, extension, f"{OLD}--{NEW}").write_text(header + change)
        # an installation has no rows yet
        fresh = re.sub(r"INSERT INTO .*?;\n", "", change)
        script(folder, extension, NEW).write_text(script(folder, extension, OLD).read_text() + fresh)


@pytest.fixture(scope="module")
def installation():
    """A copy of the server's installation, in which files may be added.  Programs find their files by their own place."""
    parts = {name: Path(places.pg_config(name)) for name in ("bindir", "sharedir", "pkglibdir")}
    root = Path(os.path.commonpath(list(parts.values())))
    copy = Path(tempfile.mkdtemp(prefix="pgaq-versions-", dir=os.environ.get("PGAQ_RUN_DIR") or "/tmp"))
    copy.chmod(0o755)
    there = {name: copy / path.relative_to(root) for name, path in parts.items()}
    try:
        there["bindir"].mkdir(parents=True)
        for program in parts["bindir"].iterdir():
            # these ask where they are; the others may be links
            shutil.copy(program, there["bindir"]) if program.name in ("postgres", "initdb") else (
                there["bindir"] / program.name
            ).symlink_to(program)
        shutil.copytree(parts["sharedir"], there["sharedir"], ignore=shutil.ignore_patterns("man", "doc", "locale"), symlinks=True)
        there["pkglibdir"].parent.mkdir(parents=True, exist_ok=True)
        there["pkglibdir"].symlink_to(parts["pkglibdir"])
        made_up_version(there["sharedir"] / "extension")
        yield Installation(there["bindir"], there["sharedir"] / "extension")
    finally:
        shutil.rmtree(copy)


@pytest.fixture(scope="module")
def server(installation):
    made = Server.temporary("versions", bindir=installation.bindir)
    yield made
    end_server(made)


@pytest.fixture
def database(server):
    """Makes databases, and drops them."""
    names = []

    def make(name):
        with server.connect() as conn:
            conn.execute(f"CREATE DATABASE {name}")
        names.append(name)
        return server.connect(name)

    yield make
    with server.connect() as conn:
        for name in names:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def create(conn, version):
    for extension in EXTENSIONS:
        conn.execute(f"CREATE EXTENSION {extension} VERSION '{version}'")


def update(conn):
    for extension in EXTENSIONS:
        conn.execute(f"ALTER EXTENSION {extension} UPDATE TO '{NEW}'")


def test_upgraded_is_as_installed(database):
    with database("installed") as installed, database("upgraded") as upgraded:
        create(installed, NEW)
        create(upgraded, OLD)
        old = {extension: members(upgraded, extension) for extension in EXTENSIONS}
        update(upgraded)
        for extension in EXTENSIONS:
            now = members(upgraded, extension)
            assert len(now) > 100 and differences(old[extension], now) != {}
            assert differences(members(installed, extension), now) == {}


def test_a_difference_is_seen(database):
    """Things that an upgrade script could miss: privileges, comments, a constraint, whether rows are dumped."""
    with database("installed") as conn:
        create(conn, NEW)
        before = members(conn, "pgaq")
        for change, seen in (
            ("COMMENT ON VIEW aq.queues IS 'other'", "view aq.queues"),
            ("GRANT SELECT ON aq_internal.made_up TO PUBLIC", "table aq_internal.made_up"),
            ("ALTER TABLE aq_internal.made_up ALTER note DROP NOT NULL", "table aq_internal.made_up"),
            ("COMMENT ON COLUMN aq.queues.owner IS NULL", "view aq.queues"),
            ("REVOKE EXECUTE ON FUNCTION aq.report_text FROM PUBLIC", "function aq.report_text(pg_catalog.jsonb)"),
            ("ALTER EXTENSION pgaq DROP VIEW aq.errors", "view aq.errors"),
        ):
            conn.execute("BEGIN")
            conn.execute(change)
            assert seen in differences(before, members(conn, "pgaq")), change
            conn.execute("ROLLBACK")


def test_messages_survive(server, database):
    """Dequeued before and after, also in a session that continues, with a running worker."""
    with database("filled") as conn, server.connect("filled") as other:
        create(conn, OLD)
        conn.execute(
            "SELECT aq.create_queue('q', max_retries => 3, shards => 1), aq.create_queue('t', shards => 1, multiple_consumers => true), aq.create_queue_table('public.tab')"
        )
        conn.execute(
            "SELECT aq.create_queue('tabled', queue_table => 'public.tab'), aq.subscribe('t', 'ann', 'priority < 5'), aq.subscribe('t', 'bob')"
        )
        put_many(conn, "q", 1, 100)
        put_many(conn, "tabled", 1, 10)
        put(conn, "t", 1, 2)
        put(conn, "q", "b", delivery_mode="buffered")
        assert take(other, "q", number=50) == list(range(1, 51)) and take(other, "t", "ann", 1) == [1]
        update(conn)
        assert db.value(conn, "SELECT count(*) = (SELECT count(*) FROM aq_internal.queue) FROM aq_internal.made_up")
        for session in (other, conn):
            put(session, "q", "new")
            put(session, "t", "new")
        assert take(other, "q") == [*range(51, 101), "new", "new"] and take(conn, "tabled") == list(range(1, 11))
        assert take(conn, "t", "ann") == [2, "new", "new"] and look(other, "t", "bob") == [1, 2, "new", "new"]
        assert db.value(conn, "SELECT payload FROM aq.dequeue('q', delivery_mode => 'buffered')") == "b"


def test_a_failed_update_changes_nothing(server, database, installation):
    """It is one transaction: queues are used as before."""
    script(installation.scripts, "pgaq", f"{OLD}--0.1.2").write_text(UPGRADE["pgaq"] + "SELECT 1 / 0;\n")
    with database("failing") as conn:
        create(conn, OLD)
        before = members(conn, "pgaq")
        conn.execute("SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        with pytest.raises(db.Error):
            conn.execute("ALTER EXTENSION pgaq UPDATE TO '0.1.2'")
        assert differences(before, members(conn, "pgaq")) == {}
        assert take(conn, "q") == [1]
    server.expect_log("division by zero")


def real_upgrades():
    return sorted((places.ROOT / "sql" / "upgrade").glob("*--*--*.sql"))


@pytest.mark.parametrize("path", real_upgrades(), ids=lambda path: getattr(path, "stem", "none"))
def test_each_upgrade_script(database, path):
    """The upgrade scripts of a released version to the next one."""
    extension, old, new = path.stem.split("--")
    with database("installed") as installed, database("upgraded") as upgraded:
        installed.execute(f"CREATE EXTENSION {extension} VERSION '{new}' CASCADE")
        upgraded.execute(f"CREATE EXTENSION {extension} VERSION '{old}' CASCADE")
        upgraded.execute(f"ALTER EXTENSION {extension} UPDATE TO '{new}'")
        assert differences(members(installed, extension), members(upgraded, extension)) == {}
