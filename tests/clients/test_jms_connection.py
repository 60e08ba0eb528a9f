"""jms/: what the provider says to servers with other settings than those of `tests/jms.py`."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from conftest import db, end_server, until
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


def dequeue(server: Server, most: int = 1) -> list[str]:
    """The texts of messages; it waits for the first one."""
    query = "SELECT (payload).text FROM aq.dequeue('q', as_type => NULL::aq.jms_message, wait => '60 s', max_messages => %s)"
    with server.connect() as conn:
        return [text for (text,) in conn.execute(query, [most])]


def test_a_stopped_client_keeps_its_client_id(server: Server, class_path: str) -> None:
    """Its leases end, and its connections do not, because its machine answers: the client ID can be taken over.

    Then it is fenced: it gets nothing, and acknowledges, commits and sends nothing.
    """
    server.expect_log("terminating connection due to administrator command")
    # a lease is extended at a third: it ends more than 6 s later, after which the client asks whether it was taken over
    options = {"pgaq.clientId": "shop", "pgaq.keepAlive": "2000", "pgaq.lease": "10000", "pgaq.prefetchIdle": "60000"}
    with server.connect() as conn:
        for n in range(1, 4):
            conn.execute("SELECT aq.enqueue('q', aq_jms.text(%s))", [str(n)])
    with start(server, class_path, "hold", **options) as stopped:
        assert stopped.stdout.readline() == "holds: 1 2\n", stopped.communicate()
        stopped.send_signal(signal.SIGSTOP)
        try:
            taken = dequeue(server)
            with start(server, class_path, "pass", **options) as refused:
                assert 'client identifier "shop" is in use' in refused.communicate()[1]
            with start(server, class_path, "pass", **options, **{"pgaq.clientIdTakeover": "true"}) as taker:
                taken.append(taker.stdout.readline().removeprefix("received: ").rstrip())
                stopped.stdin.write("\n")
                stopped.stdin.flush()
                stopped.send_signal(signal.SIGCONT)
                said, errors = stopped.communicate()
                assert said.splitlines() == [f"{what}: failed" for what in ("receive", "acknowledge", "commit", "send")], errors
                assert taker.communicate("\n")[1] == ""
        finally:
            stopped.kill()
    assert sorted(taken + dequeue(server, most=100)) == ["1", "2", "3", "hello"]


def keepalive_timers(port: int, side: str) -> list[float | None]:
    """Seconds until the kernel asks the other side of each connection of a server; None: it does not."""
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, remote, state, _, timer, *_ = line.split()
            if state == "01" and (local if side == "server" else remote).endswith(f":{port:04X}"):
                kind, at = timer.split(":")
                found.append(int(at, 16) / 100 if kind == "02" else None)
    return found


@pytest.mark.parametrize("milliseconds, seconds", [(30_000, 15), (0, 7200)])
def test_the_kernel_asks_lost_clients(server: Server, class_path: str, milliseconds: int, seconds: int) -> None:
    """Both ends of each connection have a timer; with keepAlive=0, that of the server is as it is configured."""
    with start(server, class_path, "pass", **{"pgaq.keepAlive": str(milliseconds)}) as client:
        assert client.stdout.readline() == "received: hello\n", client.communicate()

        def timers() -> bool:
            # another timer is shown while an answer is on its way
            ours, theirs = keepalive_timers(server.port, "server"), keepalive_timers(server.port, "client")
            asked = len(ours) == 2 and all(at is not None and seconds - 10 < at <= seconds for at in ours)
            return asked and len(theirs) == 2 and all((at is not None) == (milliseconds > 0) for at in theirs)

        until(timers, "two connections with the timers")
        client.communicate("\n")
