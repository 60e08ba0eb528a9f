"""Private servers, the load client and the demo's output, without the extension."""

import json
import random
import re
from pathlib import Path

import pytest

from pgaq import db, text
from pgaq.load import ledger
from pgaq.load.drivers import BARE, SKIP, Shape
from pgaq.load.workload import Histogram, Options, Workload
from pgaq.places import SurroundingsError
from pgaq.server import Server, free_port
from pgaq_proof import faults, stress


def test_server_survives_kill_of_the_postmaster(plain_server):
    with plain_server.connect() as conn:
        db.execute(conn, "CREATE TABLE kept AS SELECT 42 AS n")
    plain_server.kill_postmaster()
    assert not plain_server.running()
    plain_server.start()
    with plain_server.connect() as conn:
        assert db.value(conn, "SELECT n FROM kept") == 42


def test_nothing_is_left_of_a_destroyed_server():
    def segments():
        with open("/proc/sysvipc/shm") as file:
            return {line.split()[1] for line in file}

    server = Server.temporary("gone", settings={"shared_preload_libraries": ""})
    mine = (server.data / "postmaster.pid").read_text().split("\n")[6].split()[-1]
    maps = Path(f"/proc/{server.postmaster_pid()}/maps").read_text()
    files = [Path(name) for name in re.findall(r"/dev/shm/PostgreSQL\S+", maps)]
    assert mine in segments() and files and all(file.exists() for file in files)
    server.destroy()
    assert mine not in segments()
    assert not any(file.exists() for file in files)
    assert not server.directory.exists()


def test_server_does_not_run_as_root(plain_server):
    with plain_server.connect() as conn:
        assert db.value(conn, "SHOW listen_addresses") == ""
    pid = plain_server.postmaster_pid()
    with open(f"/proc/{pid}/status") as file:
        uid = next(line for line in file if line.startswith("Uid:")).split()[1]
    assert uid != "0"


def test_standby_follows_and_is_promoted(plain_server):
    standby = plain_server.basebackup("standby")
    try:
        standby.start()
        with plain_server.connect() as conn:
            db.execute(conn, "CREATE TABLE followed AS SELECT 1 AS n")
        standby.wait_for_replay(plain_server)
        standby.promote()
        with standby.connect() as conn:
            assert db.value(conn, "SELECT n FROM followed") == 1
            assert not db.value(conn, "SELECT pg_is_in_recovery()")
    finally:
        standby.destroy()


def test_a_bad_setting_is_explained(tmp_path_factory):
    with Server.temporary("bad", settings={"shared_preload_libraries": ""}, start=False) as server:
        server.configure(shared_buffers="nonsense")
        with pytest.raises(SurroundingsError, match="shared_buffers"):
            server.start()


def test_a_taken_port_is_explained():
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with Server.temporary(
            "port", port=holder.getsockname()[1], tcp=True, settings={"shared_preload_libraries": ""}, start=False
        ) as server:
            with pytest.raises(SurroundingsError, match="Port .* is taken"):
                server.start()


def test_a_free_port_is_given_once():
    """Other processes do not get it, and a server can listen on it: the test below."""
    import socket

    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", free_port()))


def test_tcp_needs_the_password():
    with Server.temporary("tcp", port=free_port(), tcp=True, settings={"shared_preload_libraries": ""}) as server:
        with pytest.raises(db.OperationalError):
            db.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres")


@pytest.mark.parametrize(
    "shape",
    [
        Shape(sessions=2),
        Shape(kind="topic", sessions=2, subscribers=3),
        Shape(sessions=2, single=True),
        Shape(batch=1, sessions=2, take=20, consumer_sessions=1),
    ],
    ids=lambda s: s.name,
)
def test_workload_is_checked(plain_server, shape):
    with Workload(plain_server, SKIP, shape, Options(rollback=10, savepoint=10)) as workload:
        workload.setup()
        workload.start()
        workload.measure(0.7)
        assert workload.drain()
        workload.stop()
        report = workload.check()
        assert report.ok, report
        assert report.committed > 0 and report.deliveries == report.committed * shape.fan_out
        assert report.given_back > 0 and report.rolled_back > 0
        metrics = workload.metrics()
        assert metrics.delivered > 0 and metrics.p50 > 0 and metrics.wal_per_message > 0
        workload.teardown()


def test_two_rows_of_the_yardstick_are_a_message(plain_server):
    with Workload(plain_server, BARE, Shape(sessions=2), queue="bare") as workload:
        workload.setup()
        workload.start()
        workload.measure(0.5)
        assert workload.drain()
        workload.stop()
        metrics = workload.metrics()
        assert metrics.delivered == metrics.enqueued > 0
        with plain_server.connect() as conn:
            rows = db.value(conn, "SELECT count(*) FROM bare")
        assert rows == workload.control.produced >= 2 * metrics.delivered * metrics.seconds
        workload.teardown()


def test_the_database_losing_a_message_is_noticed(plain_server):
    with Workload(plain_server, SKIP, Shape(sessions=2), Options(messages=500), queue="robbed") as workload:
        workload.setup()
        with plain_server.connect() as conn:
            db.execute(
                conn,
                """CREATE FUNCTION rob() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN IF NEW.id % 50 = 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;
                   CREATE TRIGGER rob BEFORE INSERT ON robbed FOR EACH ROW EXECUTE FUNCTION rob()""",
            )
        workload.start()
        workload.until(lambda: workload.control.delivered > 200, 60, "no messages")
        workload.drain(quiet=0.3, patience=0.5)
        workload.stop()
        assert set(workload.check().counts) == {"lost"}


def test_the_database_repeating_a_message_is_noticed(plain_server):
    with Workload(plain_server, SKIP, Shape(sessions=2), Options(messages=500), queue="doubled") as workload:
        workload.setup()
        with plain_server.connect() as conn:
            db.execute(
                conn,
                """CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN IF pg_trigger_depth() = 1 AND NEW.id % 50 = 0 THEN
                      INSERT INTO doubled (payload) VALUES (NEW.payload); END IF; RETURN NEW; END $$;
                   CREATE TRIGGER rob BEFORE INSERT ON doubled FOR EACH ROW EXECUTE FUNCTION double()""",
            )
        workload.start()
        workload.until(lambda: workload.control.delivered > 200, 60, "no messages")
        workload.drain(quiet=0.3, patience=0.5)
        workload.stop()
        assert set(workload.check(drained=False).counts) >= {"duplicate"}


@pytest.mark.parametrize("fault", ["kill_backend", "kill_postmaster", "terminate_backend"])
def test_stress_survives(plain_server, fault):
    plan = stress.choose(7, kind="queue", fault=fault, seconds=1, driver=SKIP)
    outcome = stress.carry_out(plain_server, SKIP, plan)
    assert outcome.ok, f"{outcome.report}\n{outcome.log}\n{outcome.said}"
    assert outcome.reconnects > 0


def test_plans_repeat():
    assert stress.choose(3) == stress.choose(3)
    assert len({str(stress.choose(seed)) for seed in range(50)}) == 50


def test_points_are_found_in_the_source():
    assert all(name.strip() == name for name in faults.test_points())


def test_histogram_is_close():
    rng = random.Random(1)
    values = [int(rng.lognormvariate(7, 2)) for _ in range(20000)]
    histogram = Histogram()
    for value in values:
        if value < 64:
            index = value
        else:
            exponent = value.bit_length() - 1
            index = 64 + (exponent - 6) * 32 + (value >> (exponent - 5) & 31)
        histogram.add({str(index): 1})
    values.sort()
    for percent in (50, 90, 99):
        exact = values[int(len(values) * percent / 100)]
        assert histogram.percentile(percent) == pytest.approx(exact, rel=0.04)


def test_empty_histogram_has_no_percentile():
    assert Histogram().percentile(50) is None


def test_table_is_aligned():
    shown = text.table(["name", "n"], [["a", "1"], ["longer", "1,000"]])
    assert shown.splitlines() == ["name        n", "------  -----", "a           1", "longer  1,000"]


def test_numbers_for_people():
    assert [text.duration(x) for x in (None, 420, 3140, 1_200_000)] == ["-", "420 us", "3.14 ms", "1.2 s"]
    assert [text.number(x) for x in (None, 1234567.8)] == ["-", "1,234,568"]


@pytest.mark.parametrize("indent", [None, 2])
def test_json(indent):
    """As Python writes it; numbers have the digits that were read."""
    value = {"a": [1, -2.5, 1e300, True, None], "ö": {"b": [], "c": {}, "d": [[], [{"e": '"\\\n'}]]}}
    assert text.to_json(value, indent=indent) == json.dumps(value, ensure_ascii=False, indent=indent)
    words = '{"a": 1.10, "b": [-0, 100000000000000000000.0, 1E+2], "c": "1.10"}'
    assert text.to_json(text.from_json(words)) == words
    assert text.to_json({"a": Path("b")}, str) == '{"a": "b"}'


def test_ledger_writer_and_client_agree(plain_server, tmp_path):
    """The load client in C and the reader in Python speak of the same records."""
    with Workload(plain_server, SKIP, Shape(sessions=1, batch=7), Options(messages=70), queue="agree", directory=tmp_path) as workload:
        workload.setup()
        workload.start()
        assert workload.drain() or True
        workload.stop()
        clients = [ledger.read(path) for path in sorted(workload.ledger_dir.glob("*.led"))]
        assert {client.role for client in clients} == {"producer", "consumer"}
        assert all(client.ended for client in clients)
