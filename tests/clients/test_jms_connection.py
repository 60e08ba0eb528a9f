"""jms/: what the provider says to servers with other settings than those of `tests/jms.py`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from conftest import db, end_server
from pgaq import places
from pgaq.server import Server
from test_jms_faults import JAVA, PASSWORD, compiled


@pytest.fixture(scope="module")
def class_path(tmp_path_factory) -> str:
    return compiled(tmp_path_factory.mktemp("classes"), Path(__file__).with_name("JmsConnection.java"))


@pytest.fixture
def server() -> Iterator[Server]:
    """It has a certificate that it has signed itself, and no prepared transactions."""
    made = Server.temporary("jms_connection", tcp=True, start=False, settings={"max_prepared_transactions": 0})
    certificate, key = made.directory / "certificate.pem", made.directory / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=pgaq",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    places.give_to_server(key)
    places.give_to_server(certificate)
    made.configure(ssl="on", ssl_cert_file=certificate, ssl_key_file=key)
    made.start()
    with made.connect() as conn:
        conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        conn.execute("CREATE EXTENSION pgaq")
        conn.execute("SELECT aq.create_queue('q', 'aq.jms_message')")
    yield made
    end_server(made)


def start(server: Server, class_path: str, what: str, password: str = PASSWORD, **options: str | Path) -> subprocess.Popen[str]:
    more = "".join(f"&{name}={value}" for name, value in options.items())
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=postgres&password={password}{more}"
    return subprocess.Popen(
        [*JAVA, "-cp", class_path, "JmsConnection", what, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_tls_and_scram(server: Server, class_path: str) -> None:
    """All connections of the provider are encrypted, to the server whose certificate is trusted, and use the password."""
    options = {"sslmode": "verify-full", "sslrootcert": server.directory / "certificate.pem"}
    with start(server, class_path, "pass", channelBinding="require", **options) as client:
        assert client.stdout.readline() == "received: hello\n", client.communicate()
        with server.connect() as conn:
            sessions = db.rows(conn, "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL")
        assert [session["ssl"] for session in sessions] == [True, True]
        assert client.communicate("\n")[1] == ""
        assert client.returncode == 0
    with start(server, class_path, "pass", password="wrong", **options) as client:
        assert "JMSSecurityRuntimeException" in client.communicate()[1]
    with start(server, class_path, "pass", sslmode="verify-full", sslrootcert="/dev/null") as client:
        assert "JMSRuntimeException: could not connect" in client.communicate()[1]


def test_xa_needs_prepared_transactions(server: Server, class_path: str) -> None:
    """Without them a branch is rolled back, with one sentence that says what to set; the session goes on."""
    server.expect_log("prepared transactions are disabled")
    with start(server, class_path, "xa") as client:
        said, errors = client.communicate()
    reason = "distributed transactions need prepared transactions, and the server's max_prepared_transactions is 0"
    fix = "set it to the number of connections, and restart the server"
    assert said.splitlines() == [f"100: the transaction was rolled back: {reason}; {fix}", "received: hello"], errors
    assert errors == ""
