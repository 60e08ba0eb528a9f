"""docs/drivers.md: its programs, and the first one of docs/jms.md, run as they stand there, and untyped parameters have the types that it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from conftest import ROOT, end_server, take
from pgaq import db, places
from pgaq.load import java
from pgaq.load.workload import NoSource
from pgaq.server import Server

PAGE = (ROOT / "docs" / "drivers.md").read_text()
PASSWORD = "throw-away"
TEXT, BINARY = 0, 1


def program(heading, language, page=PAGE):
    """The program of a section."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.S | re.M)
    (text,) = re.findall(rf"```{language}\n(.*?)```", section, re.S)
    return text


@pytest.fixture(scope="module")
def server():
    made = Server.temporary("drivers", tcp=True)
    with made.connect() as conn:
        conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        conn.execute("CREATE DATABASE shop")
        conn.execute("CREATE EXTENSION pgaq")
    with made.connect("shop") as conn:
        (setup,) = re.findall(r"```sql\n(.*?)```", PAGE, re.S)
        conn.execute(setup)
        conn.execute("CREATE TYPE parcel AS (id int, weight numeric, destination text)")
        conn.execute(
            "SELECT aq.create_queue('text', 'text'), aq.create_queue('bytes', 'bytea'), aq.create_queue('xml', 'xml'), aq.create_queue('rows', 'parcel')"
        )
    yield made
    end_server(made)


def run(server, command, folder):
    """The program prints the three parcels."""
    done = subprocess.run(
        command, cwd=folder, env={**server.environment("shop"), "GO111MODULE": "on"}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["1", "2", "3"], done.stdout


@pytest.mark.parametrize("heading", ["psycopg", "psycopg, asynchronous", "asyncpg"])
def test_python(server, tmp_path, heading):
    path = tmp_path / "parcels.py"
    path.write_text(program(heading, "python"))
    run(server, [sys.executable, str(path)], tmp_path)


def test_pgjdbc(server, tmp_path):
    driver = os.environ.get("PGJDBC", "/usr/share/java/postgresql.jar")
    text = program("pgjdbc", "java")
    assert "localhost/shop" in text
    (tmp_path / "Parcels.java").write_text(
        text.replace("localhost/shop", f"127.0.0.1:{server.port}/shop?user=postgres&password={PASSWORD}")
    )
    run(server, ["java", *java.QUICK, "-cp", driver, "Parcels.java"], tmp_path)


def test_jms(server, tmp_path):
    try:
        path = java.class_path()
    except NoSource as error:
        pytest.skip(f"missing: {error}")
    with server.connect("shop") as conn:
        conn.execute("SELECT aq.create_queue('orders', 'aq.jms_message')")
    text = program("A first program", "java", (ROOT / "docs" / "jms.md").read_text())
    login = "localhost/shop?user=app&password=secret"
    assert login in text
    (tmp_path / "Pears.java").write_text(text.replace(login, f"127.0.0.1:{server.port}/shop?user=postgres&password={PASSWORD}"))
    done = subprocess.run(["java", *java.QUICK, "-cp", path, "Pears.java"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "two pears\n"), done.stderr


def test_node_postgres(server, tmp_path, monkeypatch):
    monkeypatch.setenv("NODE_PATH", os.environ.get("NODE_PATH") or str(places.DRIVERS / "nodejs"))
    if not shutil.which("node") or subprocess.run(["node", "-e", "require('pg')"], capture_output=True).returncode != 0:
        pytest.skip("missing: node, or its package pg (NODE_PATH)")
    path = tmp_path / "parcels.js"
    path.write_text(program("node-postgres", "js"))
    run(server, ["node", str(path)], tmp_path)


def test_pgx(server, tmp_path):
    module = os.environ.get("PGAQ_GO_MODULE")
    if not module:
        pytest.skip("missing: a Go module that requires pgx (PGAQ_GO_MODULE)")
    for name in ("go.mod", "go.sum"):
        shutil.copy(Path(module) / name, tmp_path)
    (tmp_path / "main.go").write_text(program("pgx", "go"))
    run(server, ["go", "run", "."], tmp_path)


# -- what drivers that are not there do


@pytest.fixture
def wire(server):
    """A connection of libpq, by which a test says types and formats of parameters itself."""
    with server.connect("shop") as conn:
        yield conn.pgconn


def answer(result):
    assert result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK), result.error_message.decode()
    return result


def types_of(wire, statement):
    """The types that the server finds for parameters without a type: what pgx and asyncpg ask for."""
    answer(wire.prepare(b"", statement.encode()))
    described = answer(wire.describe_prepared(b""))
    return [described.param_type(i) for i in range(described.nparams)]


EXPECTED = {
    "SELECT aq.enqueue($1, $2)": "text text",
    "SELECT aq.enqueue($1, jsonb => $2)": "text jsonb",
    "SELECT aq.enqueue($1, bytea => $2)": "text bytea",
    "SELECT aq.enqueue_array($1, $2)": "text text[]",
    "SELECT aq.enqueue_array(queue_name => $1, payloads => $2)": "text text[]",
    "SELECT aq.enqueue($1, $2, priority => $3, delay => $4, recipients => $5, properties => $6, producer => $7)": "text text integer interval text[] jsonb text",
    "SELECT * FROM aq.dequeue($1, $2)": "text text",
    "SELECT * FROM aq.dequeue($1, $2, max_messages => $3)": "text text integer",
    "SELECT * FROM aq.dequeue($1, max_messages => $2, msgid => $3)": "text integer uuid",
    "SELECT * FROM aq.dequeue($1, as_type => null::bytea, max_messages => $2)": "text integer",
    "CALL aq.wait($1, $2)": "text text",
    "CALL aq.wait($1, $2, $3)": "text text text",
    "CALL aq.receive($1, max_messages => $2, timeout => $3)": "text integer text",
    "CALL aq.listen($1, $2, $3, null, null)": "text[] text[] text",
    "SELECT * FROM aq.acknowledge($1, $2, $3)": "text text bigint",
}


@pytest.mark.parametrize("statement", EXPECTED)
def test_types_of_untyped_parameters(wire, server, statement):
    with server.connect("shop") as conn:
        names = [db.value(conn, "SELECT format_type(%s::oid, NULL)", [oid]) for oid in types_of(wire, statement)]
    assert " ".join(names) == EXPECTED[statement]


def binary_array(element_type, elements):
    """An array as pgx and asyncpg send it."""

    def number(n):
        return n.to_bytes(4, "big")

    head = number(1) + number(0) + number(element_type) + number(len(elements)) + number(1)
    return head + b"".join(number(len(e)) + e for e in elements)


def test_binary_values(wire, server):
    """Maps, lists of strings and bytes of pgx and asyncpg, a Buffer of node-postgres: untyped, in binary format."""

    def send(statement, name, value):
        answer(wire.exec_params(statement.encode(), [name, value], None, [TEXT, BINARY], TEXT))

    send("SELECT aq.enqueue($1, jsonb => $2)", b"parcels", b"\x01" + b'{"parcel": 1}')
    send("SELECT aq.enqueue_array($1, $2)", b"parcels", binary_array(25, [b'{"parcel": 2}', b'{"parcel": 3}']))
    send("SELECT aq.enqueue($1, $2)", b"parcels", b'{"parcel": 4}')
    send("SELECT aq.enqueue($1, bytea => $2)", b"bytes", b"\x00\xff")
    with server.connect("shop") as conn:
        assert [p["parcel"] for p in take(conn, "parcels")] == [1, 2, 3, 4]
        assert db.value(conn, "SELECT payload FROM aq.dequeue('bytes', as_type => null::bytea)") == b"\x00\xff"


def test_text_values(wire, server):
    """Objects, and arrays of objects, of node-postgres: untyped, as text."""
    for statement, value in (
        (b"SELECT aq.enqueue($1, $2)", b'{"parcel":1}'),
        (b"SELECT aq.enqueue_array($1, $2)", rb'{"{\"parcel\":2}","{\"parcel\":3}"}'),
    ):
        answer(wire.exec_params(statement, [b"parcels", value]))
    with server.connect("shop") as conn:
        assert [p["parcel"] for p in take(conn, "parcels")] == [1, 2, 3]


@pytest.mark.parametrize(
    "queue, array",
    [
        ("parcels", """'["a"]'"""), ("parcels", """'["a"]'::json"""), ("parcels", """'["a"]'::jsonb"""), ("parcels", """'["a"]'::varchar"""), ("parcels", """'["a"]'::char(5)"""),
        ("text", "'a'"), ("text", "'a'::text"), ("text", "'a'::varchar"), ("bytes", r"'\x61'"), ("bytes", r"'\x61'::bytea"), ("bytes", r"'\x61'::varchar"),
        ("xml", "'<a/>'"), ("xml", "'<a/>'::xml"), ("rows", "'(1,2.5,a)'"), ("rows", "ROW(1, 2.5, 'a')::parcel"),
    ],
)  # fmt: skip
def test_payloads_of_each_type(server, queue, array):
    """One message, and an array: a literal, text, json, the payload's own type."""
    with server.connect("shop") as conn:
        for call in (
            f"aq.enqueue('{queue}', {array})",
            f"aq.enqueue_array('{queue}', ARRAY[{array}])",
            f"aq.enqueue('{queue}', payload => {array})",
        ):
            conn.execute(f"SELECT {call}")
        of_type = {"parcels": "jsonb", "text": "text", "bytes": "bytea", "xml": "xml", "rows": "parcel"}[queue]
        found = conn.execute(f"SELECT payload::text FROM aq.dequeue('{queue}', as_type => null::{of_type}, max_messages => 10)").fetchall()
        assert len(found) == 3 and len(set(found)) == 1, found


def test_other_types_are_refused(server):
    with server.connect("shop") as conn:
        for call in (
            "aq.enqueue('text', '1'::json)",
            "aq.enqueue('parcels', 1)",
            "aq.enqueue_array('parcels', ARRAY[1])",
            "aq.enqueue_array('bytes', ARRAY['1'::json])",
        ):
            with pytest.raises(psycopg.Error) as caught:
                conn.execute(f"SELECT {call}")
            assert caught.value.sqlstate == "42804", call
