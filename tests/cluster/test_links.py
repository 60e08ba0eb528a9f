"""Links to other servers: what a link says when it works and when it does not, and that no session waits for one."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest

from conftest import background, end_server, install, put, take, until
from pgaq import db
from pgaq.server import Server
from pgaq.subjects.advice import RULES

SAID = "SELECT connected, sqlstate, message, hint FROM aq.check_link(%s, '30 s')"


@pytest.fixture(scope="module")
def other(server):
    """A second server of the file, reached by TCP with a password."""
    made = Server.temporary("other", tcp=True)
    with made.connect() as conn:
        install(conn)
        conn.execute("CREATE ROLE remote LOGIN PASSWORD 'secret'")
        conn.execute("CREATE DATABASE empty")
        conn.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with made.connect("latin") as conn:
        install(conn)
    yield made
    end_server(made)


@pytest.fixture
def link(server, other):
    """Makes links: a server with options, and a user mapping of the role; returns a connection as that role."""
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(server.connect())
        admin.execute("DO $$ BEGIN CREATE ROLE shop LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")

        def make(user="remote", password="secret", role="shop", **options):
            options = {"host": "127.0.0.1", "port": other.port, "dbname": "postgres", **options}
            listed = ", ".join(f"{name} '{value}'" for name, value in options.items())
            admin.execute(f"CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS ({listed})")
            admin.execute("GRANT USAGE ON FOREIGN SERVER there TO shop")
            secret = f", password '{password}'" if password is not None else ""
            admin.execute(f"CREATE USER MAPPING FOR {role} SERVER there OPTIONS (user '{user}'{secret})")
            return stack.enter_context(server.connect(user=role))

        yield make
        admin.execute("DROP SERVER IF EXISTS there CASCADE")


def check(conn):
    """(connected, SQLSTATE, message, hint) of a check."""
    return conn.execute(SAID, ["there"]).fetchone()


def test_a_link_that_works(link, other):
    """The check says whom it has reached."""
    conn = link()
    found = db.row(conn, "SELECT * FROM aq.check_link('there')")
    assert found["connected"] and found["sqlstate"] is found["message"] is found["hint"] is None
    assert found["remote_host"] == f"127.0.0.1:{other.port}" and found["milliseconds"] > 0
    assert found["remote_version"] == db.value(conn, "SELECT extversion FROM pg_extension WHERE extname = 'pgaq'")


def test_a_link_that_is_disabled(server, link):
    """It could connect, but does not work; what helps is a command."""
    conn = link(enabled="false")
    found = db.row(conn, "SELECT * FROM aq.check_link('there')")
    assert (found["connected"], found["sqlstate"], found["message"]) == (False, "55000", 'link "there" is disabled')
    assert found["detail"] == "A connection to the other server works." and found["remote_version"] is not None
    with server.connect() as admin:
        admin.execute(found["hint"].rstrip("."))
    assert check(conn) == (True, None, None, None)


@pytest.mark.parametrize(
    "options, sqlstate, message, hint",
    [
        ({"password": "wrong"}, "28P01", 'password authentication failed for user "remote"', "ALTER USER MAPPING"),
        ({"user": "nobody"}, "28P01", 'password authentication failed for user "nobody"', "ALTER USER MAPPING"),
        ({"host": "no.such.host.invalid"}, "08001", 'could not translate host name "no.such.host.invalid"', "cannot be resolved"),
        ({"port": 1}, "08001", "Connection refused", "Check that the other server runs"),
        ({"dbname": "nowhere"}, "3D000", 'database "nowhere" does not exist', "dbname"),
        ({"dbname": "empty"}, "AQ160", 'database "empty" of the other server does not have the extension pgaq', "CREATE EXTENSION pgaq there"),
        ({"dbname": "latin"}, "AQ160", 'database "latin" of the other server has encoding LATIN1, and this one has UTF8', "the same encoding"),
    ],
)  # fmt: skip
def test_a_link_that_does_not_work(link, options, sqlstate, message, hint):
    """Each mistake has its SQLSTATE, a sentence and a hint; no secret is in them."""
    connected, code, said, helps = check(link(**options))
    assert (connected, code) == (False, sqlstate)
    assert message in said and hint in helps
    assert "secret" not in said and "LOCATION" not in said


def test_encryption(server, link, other):
    """A link to another machine needs TLS with a certificate that names the host, unless its options say otherwise; the check says what a link has."""
    key, certificate = other.data / "server.key", other.data / "server.crt"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        certificate,
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    ]
    subprocess.run(made, check=True, capture_output=True)
    key.chmod(0o600)
    owner = other.data.stat()  # the tests may run as root
    for path in (key, certificate):
        os.chown(path, owner.st_uid, owner.st_gid)
    conn = link(host="0.0.0.0")  # it leads here, but links do not know that
    query = "SELECT encryption, sqlstate, message, hint FROM aq.check_link('there')"

    def options(text):
        with server.connect() as admin:
            admin.execute(f"ALTER SERVER there OPTIONS ({text})")

    encryption, sqlstate, message, hint = conn.execute(query).fetchone()
    assert (encryption, sqlstate) == (None, "08001") and "SSL" in message and "sslmode" in hint
    other.configure(ssl="on")
    other.reload()
    until(lambda: "certificate" in conn.execute(query).fetchone()[2], "a server with TLS")
    with server.connect() as admin:  # not one of the account that runs the tests
        admin.execute(f"ALTER USER MAPPING FOR shop SERVER there OPTIONS (ADD sslcert '{other.data}/none')")
    options("ADD sslmode 'require'")
    assert conn.execute(query).fetchone()[0] == "unverified"
    options("SET sslmode 'disable'")
    assert conn.execute(query).fetchone()[0] == "none"
    options(f"SET host 'localhost', SET sslmode 'verify-full', ADD sslrootcert '{certificate}'")
    assert conn.execute(query).fetchone()[0] == "verified"
    options("SET sslmode 'disable'")
    assert conn.execute(query).fetchone()[0] == "local"
    other.configure(ssl="off")
    other.reload()


def test_pg_hba_rejects(link, other):
    """A rule of the other server that rejects the role is named, with what to change."""
    rules = (other.data / "pg_hba.conf").read_text()
    (other.data / "pg_hba.conf").write_text("host all remote 127.0.0.1/32 reject\n" + rules)
    other.reload()
    conn = link()
    try:
        connected, code, said, helps = until(lambda: (found := check(conn)) and not found[0] and found, "the rejection")
        assert code == "28000" and "pg_hba.conf" in said and "pg_hba.conf" in helps
    finally:
        (other.data / "pg_hba.conf").write_text(rules)
        other.reload()
    until(lambda: check(conn)[0], "the old rules")


def test_missing_rights_on_the_other_side(link, other):
    """Without CONNECT, and without USAGE of schema aq, the link says which privilege is missing."""
    conn = link()
    with other.connect() as there:
        there.execute("REVOKE USAGE ON SCHEMA aq FROM PUBLIC")
        try:
            assert check(conn)[1:3] == ("42501", "permission denied for schema aq")
        finally:
            there.execute("GRANT USAGE ON SCHEMA aq TO PUBLIC")
        there.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
        try:
            connected, code, said, helps = check(conn)
            assert code == "42501" and 'permission denied for database "postgres"' in said and "Grant the missing privilege" in helps
        finally:
            there.execute("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
    assert check(conn)[0]


def test_no_use_of_the_servers_own_credentials(link, other):
    """A role that is not a superuser has a password in its mapping, and the other server must have asked for it."""
    conn = link(password=None)
    assert check(conn)[1:3] == ("2F003", "password is required")


def test_a_server_that_trusts_is_refused(link, other):
    """Where no password is asked for, the server's own account would be what is trusted."""
    conn = link(host=str(other.socket_dir), user="postgres")
    connected, code, said, helps = check(conn)
    assert (connected, code, said) == (False, "2F003", "password is required") and "password_required" in helps
    with pytest.raises(db.Error) as caught:
        conn.execute("ALTER USER MAPPING FOR shop SERVER there OPTIONS (ADD password_required 'false')")
    assert caught.value.sqlstate == "42501"


def test_what_a_superuser_allows(server, link, other):
    """password_required=false, set by a superuser, lets the role use a trusting server; it may not change that mapping."""
    conn = link(host=str(other.socket_dir), user="postgres", password=None)
    with server.connect() as admin:
        admin.execute("ALTER USER MAPPING FOR shop SERVER there OPTIONS (ADD password_required 'false')")
    assert check(conn)[0]
    with pytest.raises(db.Error) as caught:
        conn.execute("ALTER USER MAPPING FOR shop SERVER there OPTIONS (SET user 'remote')")
    assert caught.value.sqlstate == "42501"


def test_rights_here(server, link):
    """The role needs USAGE on the server and a user mapping; others learn nothing."""
    link()
    with server.connect() as admin:
        admin.execute("DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    with server.connect(user="stranger") as conn:
        for statement, sqlstate in (("there", "42501"), ("nowhere", "42704")):
            with pytest.raises(db.Error) as caught:
                check_named(conn, statement)
            assert caught.value.sqlstate == sqlstate
        assert conn.execute("SELECT * FROM aq.links").fetchall() == []
    with server.connect() as admin:
        admin.execute("GRANT USAGE ON FOREIGN SERVER there TO stranger")
    with server.connect(user="stranger") as conn:
        with pytest.raises(db.Error) as caught:
            check_named(conn, "there")
        assert caught.value.sqlstate == "42704" and "user mapping" in str(caught.value)
        assert conn.execute("SELECT server, owner, state FROM aq.links").fetchall() == [("there", "postgres", "idle")]


def check_named(conn, name):
    return conn.execute(SAID, [name]).fetchone()


def test_the_worker_comes_and_goes(server, link):
    """A check starts the link worker; DROP DATABASE, CREATE DATABASE and DROP EXTENSION do not wait for it."""
    link()
    with server.connect() as admin:
        admin.execute("CREATE DATABASE apart")
    with server.connect("apart") as there:
        install(there)
        there.execute("CREATE SERVER loop FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1')")
        there.execute("CREATE USER MAPPING FOR postgres SERVER loop")
        assert check_named(there, "loop")[1] == "08001"
        assert background(there, "link")
        there.execute("DROP EXTENSION pgaq CASCADE")
        until(lambda: not background(there, "link"), "the end of the link worker")
        install(there)
        there.execute("CREATE SERVER loop FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1')")
        there.execute("CREATE USER MAPPING FOR postgres SERVER loop")
        assert check_named(there, "loop")[1] == "08001"
    with server.connect() as admin:
        admin.execute("DROP DATABASE apart")


def test_no_slot_for_the_worker(new_server):
    """The check ends in time, and aq.links and the doctor say what is missing; no other session is affected."""
    own = new_server("slots", max_worker_processes="3", max_logical_replication_workers="0")
    with own.connect() as conn:
        conn.execute("CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1')")
        conn.execute("CREATE USER MAPPING FOR postgres SERVER there")
        connected, sqlstate, message, hint = conn.execute(
            "SELECT connected, sqlstate, message, hint FROM aq.check_link('there', '5 s')"
        ).fetchone()
        assert (connected, sqlstate, message) == (
            False,
            "57014",
            "the link worker has not begun with the check in time",
        ) and "aq.links" in hint
        problem = "the link worker does not run: no background worker slot is free"
        assert db.value(conn, "SELECT problem FROM aq.links") == problem
        [rule] = [rule for rule in RULES if rule.name == "link"]
        assert [row[:2] for row in conn.execute(rule.query)] == [("there", problem)]
        conn.execute("SELECT aq.create_queue('q')")
        assert len(put(conn, "q", 1)) == 1 and take(conn, "q") == [1]
    own.configure(max_worker_processes="8")
    own.restart()
    with own.connect() as conn:
        assert check(conn)[1] == "08001" and db.value(conn, "SELECT problem FROM aq.links") is None
