"""aq.metrics(): what it says is what the ledger of the test says; a member of pg_monitor sees it, and no message."""

from __future__ import annotations

import json
import re
import time

import pytest

from conftest import ROOT, put, put_many, take, until
from pgaq import db
from test_xmin import PARTITION

pytestmark = [pytest.mark.own_tables]
SETTINGS = {"pgaq.message_cache_size": "4MB", "max_prepared_transactions": "10"}
COLUMNS = "lag, ready, delayed, in_flight"


def metrics(conn, queue, consumer=None, columns=COLUMNS):
    query = (
        f"SELECT {columns} FROM aq.metrics() WHERE queue_name = %s AND consumer IS NOT DISTINCT FROM %s AND delivery_mode = 'persistent'"
    )
    return conn.execute(query, [queue, consumer]).fetchone()


def evictions(conn):
    return db.value(conn, "SELECT evictions FROM aq_internal.message_cache_use()")


def evict(conn, queues):
    """Fill the message cache, until the frames of these queues' full partitions are gone: what an enqueue goes on with is evicted last."""
    ids = [db.value(conn, "SELECT queue_id FROM aq.queues WHERE queue_name = %s", [queue]) for queue in queues]
    resident = "SELECT count(*) FROM aq_internal.partitions() WHERE queue_id = ANY (%s) AND resident AND state = 'closed'"
    db.execute(conn, "SELECT aq.create_queue('filler', if_not_exists => true, shards => 1)")
    rounds = 0
    while db.value(conn, resident, [ids]) > 0:
        put_many(conn, "filler", 1, PARTITION)
        rounds += 1
        assert rounds < 40, "nothing is evicted"


@pytest.fixture
def monitor(server, conn):
    """A connection of a role with pg_monitor only."""
    conn.execute("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    with server.connect(user="watcher") as connection:
        yield connection


# -- rights


def test_monitor_sees_counters_and_no_message(conn, monitor, queue, topic):
    put(conn, queue, {"secret": 1}, correlation="classified", properties='{"user": "me"}')
    put(conn, topic, {"secret": 2})
    assert db.value(monitor, "SELECT count(*) FROM aq.queues WHERE queue_name IN (%s, %s)", [queue, topic]) == 2
    assert metrics(monitor, queue) == metrics(monitor, topic, "a") == (1, 1, 0, 0)
    assert monitor.execute("SELECT lag, ready FROM aq.subscribers WHERE queue_name = %s", [queue]).fetchone() == (1, 1)
    assert db.value(monitor, "SELECT sum(enqueued) FROM aq.shards WHERE queue_name = %s", [queue]) == 1
    assert db.value(monitor, "SELECT sum(slots) FROM aq.partitions WHERE queue_name = %s", [queue]) == 1
    assert db.value(monitor, "SELECT count(*) FROM aq.messages") == 0
    for statement in ("aq.dequeue(%s)", "aq.browse(%s)", "aq.enqueue(%s, '1'::jsonb)", "aq.purge_queue(%s)"):
        with pytest.raises(db.Error):
            monitor.execute(f"SELECT * FROM {statement}", [queue])
        monitor.rollback()
    tables = conn.execute("SELECT relname FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind IN ('r', 'v')").fetchall()
    assert tables and not any(
        db.value(monitor, "SELECT has_table_privilege(c.oid, 'SELECT') FROM pg_class c WHERE relname = %s", [name]) for (name,) in tables
    )


def test_no_row_shows_what_a_message_holds(conn, monitor, queue):
    """Whatever view of the extension a member of pg_monitor can read, no text of a message is in it."""
    put(conn, queue, {"key": "xyzzypayload"}, correlation="xyzzycorrelation", properties='{"user": "xyzzyproperty"}')
    views = monitor.execute("""SELECT c.oid::regclass::text FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.deptype = 'e'
        JOIN pg_extension e ON e.oid = d.refobjid AND e.extname LIKE 'pgaq%%'
        WHERE c.relkind IN ('v', 'r') AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(c.relnamespace, 'USAGE')""").fetchall()
    assert len(views) > 20
    for (view,) in views:
        try:
            text = db.value(monitor, f"SELECT string_agg(v::text, ' ') FROM {view} v")
        except db.Error:
            monitor.rollback()
            continue
        # statements of other sessions are pg_monitor's to see, as in pg_stat_activity
        if not re.search(r"session|sql|ash|history|activity", view):
            assert "xyzzy" not in (text or ""), view


def test_others_see_their_queues_only(server, conn, queue):
    conn.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    put(conn, queue, 1)
    with server.connect(user="stranger") as stranger:
        assert stranger.execute("SELECT * FROM aq.metrics()").fetchall() == []
        db.execute(conn, "SELECT aq.grant_queue(%s, 'stranger', 'enqueue')", [queue])
        assert stranger.execute("SELECT queue_name, ready FROM aq.metrics() ORDER BY 1").fetchall()[0] == (queue, 1)
    db.execute(conn, "SELECT aq.revoke_queue(%s, 'stranger', 'enqueue')", [queue])


# -- the ledger


def test_every_state(server, conn, queue):
    """Ready, delayed, taken, taken by a prepared transaction, resting; an enqueue counts when it commits."""
    put_many(conn, queue, 1, 100)
    put_many(conn, queue, 101, 120, delay="1 hour")
    assert metrics(conn, queue) == (120, 100, 20, 0)
    with server.connect() as other, server.connect() as third:
        other.execute("BEGIN")
        assert len(take(other, queue, number=10)) == 10
        put_many(other, queue, 200, 210)
        assert metrics(conn, queue) == (120, 90, 20, 10)
        third.execute("BEGIN")
        assert len(take(third, queue, number=5)) == 5
        third.execute("PREPARE TRANSACTION 'metrics'")
        assert metrics(conn, queue) == (120, 85, 20, 15)
        other.execute("COMMIT")
        assert metrics(conn, queue) == (121, 96, 20, 5)
        assert metrics(conn, queue, columns="enqueued, dequeued") == (131, 10)
        third.execute("COMMIT PREPARED 'metrics'")
        until(lambda: metrics(conn, queue) == (116, 96, 20, 0), "the prepared transaction's end")
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '1 hour')", [queue])
    conn.execute("BEGIN")
    take(conn, queue, number=6)
    conn.execute("ROLLBACK")
    until(lambda: metrics(conn, queue) == (116, 90, 26, 0), "the retry counts")


def test_consumers_of_a_topic(conn, topic):
    put_many(conn, topic, 1, 50)
    put_many(conn, topic, 51, 60, delay="1 hour")
    assert len(take(conn, topic, "a", 30)) == 30
    assert metrics(conn, topic, "a") == (30, 20, 10, 0)
    assert metrics(conn, topic, "b") == (60, 50, 10, 0)
    db.execute(conn, "SELECT aq.unsubscribe(%s, 'b')", [topic])
    assert metrics(conn, topic, "b") is None


def test_failed_messages(conn, queue):
    """They count for the queue they came from, and are in the exception queue."""
    db.execute(conn, "SELECT aq.create_queue('broken', if_not_exists => true)")
    db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => 0, exception_queue => 'broken')", [queue])
    put_many(conn, queue, 1, 7)
    for number in (1, 2, 3):
        conn.execute("BEGIN")
        assert take(conn, queue, number=1) == [number]
        conn.execute("ROLLBACK")
    until(lambda: metrics(conn, "broken")[1] == 3, "messages in the exception queue")
    assert metrics(conn, queue, columns="lag, ready, failed, exception_queue") == (4, 4, 3, "broken")
    assert len(take(conn, "broken")) == 3


def test_age_of_the_oldest(conn, queue):
    assert metrics(conn, queue, columns="oldest_ready_seconds") == (None,)
    put(conn, queue, 1, delay="1 hour")
    assert metrics(conn, queue, columns="oldest_ready_seconds") == (None,)
    before = time.monotonic()
    put(conn, queue, 2)
    between = time.monotonic()
    put(conn, queue, 3)
    (age,) = metrics(conn, queue, columns="oldest_ready_seconds")
    after = time.monotonic()
    assert after - between - 0.1 <= age <= after - before + 0.1
    assert take(conn, queue, number=1) == [2]
    (age,) = metrics(conn, queue, columns="oldest_ready_seconds")
    assert 0 <= age <= time.monotonic() - between + 0.1


# -- what is not in memory


def test_evicted_partitions(conn, queue, topic):
    for name in (queue, topic):
        put_many(conn, name, 1, 17_000)
        put_many(conn, name, 17_001, 34_000, delay="1 hour")
    assert len(take(conn, queue, number=100)) == 100
    assert len(take(conn, topic, "a", 150)) == 150
    evict(conn, [queue, topic])
    before = evictions(conn)
    for _ in range(2):
        assert metrics(conn, queue) == (33_900, 16_900, 17_000, 0)
        assert metrics(conn, topic, "a") == (33_850, 16_850, 17_000, 0)
        assert metrics(conn, topic, "b") == (34_000, 17_000, 17_000, 0)
        assert 0 < metrics(conn, queue, columns="oldest_ready_seconds")[0] < 600
    assert evictions(conn) == before, "no frame was loaded for that"
    assert conn.execute("SELECT * FROM aq.check('20 s')").fetchall() == []
    # a removed consumer's share goes, the others' stays
    db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
    until(lambda: metrics(conn, topic, "b") == (34_000, 17_000, 17_000, 0), "the counts after the removal")
    assert conn.execute("SELECT * FROM aq.check('20 s')").fetchall() == []
    assert len(take(conn, topic, "b")) == 17_000
    assert len(take(conn, queue)) == 16_900
    assert metrics(conn, queue) == (17_000, 0, 17_000, 0)
    assert metrics(conn, topic, "b") == (17_000, 0, 17_000, 0)
    assert metrics(conn, queue, columns="enqueued, dequeued") == (34_000, 17_000)


def test_evicted_after_a_rewrite(conn, queue):
    """VACUUM FULL has moved the rows of a partition that is not in memory: the oldest message's age is found all the same."""
    put_many(conn, queue, 1, 17_000)
    assert len(take(conn, queue, number=100)) == 100
    evict(conn, [queue])
    (table,) = conn.execute("SELECT messages::text FROM aq.partitions WHERE queue_name = %s AND state = 'closed'", [queue]).fetchone()
    conn.execute(f"VACUUM FULL {table}")
    assert 0 < metrics(conn, queue, columns="oldest_ready_seconds")[0] < 600


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_after_a_restart(new_server, how):
    """The first question after the start, before any use of the queues."""
    server = new_server("again", max_prepared_transactions="10")
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q'), aq.create_queue('t', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('t', c) FROM unnest(ARRAY['a', 'b']) c")
        put_many(conn, "q", 1, 40_000)
        put_many(conn, "q", 40_001, 40_010, delay="1 hour")
        put_many(conn, "t", 1, 100)
        assert len(take(conn, "q", number=1000)) == 1000
        assert len(take(conn, "t", "a", 60)) == 60
        conn.execute("BEGIN")
        assert len(take(conn, "q", number=3)) == 3
        conn.execute("PREPARE TRANSACTION 'held'")
        conn.execute("CHECKPOINT")
    server.stop(how)
    server.start()
    with server.connect() as conn:
        assert metrics(conn, "q") == (39_010, 38_997, 10, 3)
        assert metrics(conn, "t", "a") == (40, 40, 0, 0)
        assert metrics(conn, "t", "b") == (100, 100, 0, 0)
        assert metrics(conn, "q", columns="enqueued, dequeued") == (0, 0)
        assert metrics(conn, "q", columns="oldest_ready_seconds")[0] > 0
        conn.execute("ROLLBACK PREPARED 'held'")
        until(lambda: metrics(conn, "q") == (39_010, 39_000, 10, 0), "the end of the prepared transaction")
        assert metrics(conn, "q", columns="enqueued, dequeued") == (0, 0)


# -- queue tables, buffered messages


def test_queue_tables_say_when_they_were_counted(server, conn):
    conn.execute("SELECT aq.create_queue_table('public.metrics_t', multiple_consumers => true)")
    conn.execute("SELECT aq.create_queue('counted', queue_table => 'public.metrics_t')")
    conn.execute("SELECT aq.subscribe('counted', c) FROM unnest(ARRAY['a', 'b']) c")
    put_many(conn, "counted", 1, 20)
    put_many(conn, "counted", 21, 25, delay="1 hour")
    assert len(take(conn, "counted", "a", 4)) == 4
    with server.connect() as other:
        other.execute("BEGIN")
        assert len(take(other, "counted", "a", 3)) == 3
        # the first call asks the worker to count; the lag needs no count
        assert metrics(conn, "counted", "a", "lag, ready, delayed, in_flight, oldest_ready_seconds, counted_at") == (
            21,
            None,
            None,
            None,
            None,
            None,
        )
        until(lambda: metrics(conn, "counted", "a", "counted_at")[0], "a count")
        assert metrics(conn, "counted", "a") == (21, 13, 5, 3)
        assert metrics(conn, "counted", "b") == (25, 20, 5, 0)
        assert metrics(conn, "counted", "a", "oldest_ready_seconds")[0] > 0
        assert db.value(conn, "SELECT counted_at < clock_timestamp() FROM aq.metrics() WHERE consumer = 'a' AND queue_name = 'counted'")
    conn.execute("SELECT aq.drop_queue('counted', force => true), aq.drop_queue_table('public.metrics_t')")


def test_buffered_messages_have_rows_of_their_own(conn, queue):
    put_many(conn, queue, 1, 3)
    put(conn, queue, 4, 5, delivery_mode="buffered")
    query = "SELECT lag, ready FROM aq.metrics() WHERE queue_name = %s AND delivery_mode = %s"
    until(lambda: conn.execute(query, [queue, "buffered"]).fetchone() == (2, 2), "the buffered ones")
    assert conn.execute(query, [queue, "persistent"]).fetchone() == (3, 3)


# -- the exporter's file and the dashboard


def exporter():
    yaml = pytest.importorskip("yaml", reason="missing: python3-yaml")
    (collector,) = yaml.safe_load((ROOT / "docs/sql_exporter.yml").read_text())["collectors"]
    return collector["metrics"], {query["query_name"]: query["query"] for query in collector["queries"]}


def test_exporter_runs_as_pg_monitor(conn, monitor, queue):
    """Each query returns the columns that its metrics name, and a number for each value."""
    db.execute(conn, "SELECT aq.create_queue('broken', if_not_exists => true)")
    db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => 'broken')", [queue])
    put(conn, queue, 1)
    listed, queries = exporter()
    used = set()
    for metric in listed:
        assert metric["type"] in ("gauge", "counter") and metric["help"]
        assert metric["metric_name"].endswith("_total") == (metric["type"] == "counter")
        cursor = monitor.execute(queries[metric["query_ref"]].replace("%", "%%"))
        columns = [column.name for column in cursor.description]
        assert {*metric.get("key_labels", []), *metric["values"]} <= set(columns), metric
        rows = [dict(zip(columns, row)) for row in cursor.fetchall()]
        assert rows or metric["query_ref"] == "waits", metric
        assert len(metric["values"]) == 1 or metric["value_label"]
        for row in rows:
            assert all(isinstance(row[label], str) for label in metric.get("key_labels", []))
            assert all(row[value] is None or isinstance(row[value], (int, float)) for value in metric["values"])
        used.add(metric["query_ref"])
    assert used == set(queries)


def read_as(monitor, query, labels, values):
    """The query's columns are these, and what it returns is text and numbers."""
    cursor = monitor.execute(query.replace("%", "%%"))
    columns = [column.name for column in cursor.description]
    for row in (dict(zip(columns, row)) for row in cursor.fetchall()):
        assert all(isinstance(row[label], str) for label in labels)
        assert all(row[value] is None or isinstance(row[value], (int, float)) for value in values)
    return columns


def test_pg_exporter_runs_as_pg_monitor(conn, monitor, queue):
    """Its metrics have the names, kinds, descriptions and labels of those of sql_exporter, and all queues are in both."""
    yaml = pytest.importorskip("yaml", reason="missing: python3-yaml")
    put(conn, queue, 1)
    listed, queries = exporter()
    known = {metric["metric_name"]: metric for metric in listed}
    for collector in yaml.safe_load((ROOT / "docs/pg_exporter.yml").read_text()).values():
        described = {name: what for column in collector["metrics"] for name, what in column.items()}
        labels = [name for name, what in described.items() if what["usage"] == "LABEL"]
        values = [name for name in described if name not in labels]
        assert sorted(read_as(monitor, collector["query"], labels, values)) == sorted(described), collector["name"]
        for name in values:
            full = f"{collector['name']}_{described[name].get('rename', name)}"
            metric = known.pop(full)
            assert (described[name]["usage"].lower(), described[name]["description"]) == (metric["type"], metric["help"]), full
            assert set(labels) == {*metric.get("key_labels", []), *([metric["value_label"]] if "value_label" in metric else [])}, full
    assert set(known) == {"pgaq_partitions"}


def test_pgwatch_runs_as_pg_monitor(conn, monitor, queue):
    """Every metric of the preset exists and runs; what is no gauge only grows."""
    yaml = pytest.importorskip("yaml", reason="missing: python3-yaml")
    put(conn, queue, 1)
    found = yaml.safe_load((ROOT / "docs/pgwatch.yaml").read_text())
    assert set(found["presets"]["pgaq"]["metrics"]) == set(found["metrics"])
    growing = {"failed", "enqueued", "dequeued", "waits", "seconds", "gets", "misses", "sleeps"}
    for name, metric in found["metrics"].items():
        (query,) = metric["sqls"].values()
        columns = read_as(monitor, query, [], [])
        labels = [column for column in columns if column.startswith("tag_")]
        values = [column for column in columns if column not in labels]
        assert columns == read_as(monitor, query, labels, values) and columns[0] == "epoch_ns", name
        gauges = set(values[1:]) if metric.get("gauges") == ["*"] else set(metric.get("gauges", []))
        assert gauges == set(values[1:]) - growing, name


def test_dashboard_uses_what_the_exporter_makes():
    listed, _ = exporter()
    labels = {
        metric["metric_name"]: {*metric.get("key_labels", []), *([metric["value_label"]] if "value_label" in metric else [])}
        for metric in listed
    }
    dashboard = json.loads((ROOT / "docs/grafana/pgaq.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    found = set()
    for expression in expressions:
        for name, selector in re.findall(r"(pgaq_\w+)(?:\{([^}]*)\})?", expression):
            assert name in labels, f"{name} is not in docs/sql_exporter.yml"
            assert set(re.findall(r"(\w+)=~?", selector)) <= labels[name], expression
            found.add(name)
    assert found == set(labels), "metrics that no panel shows"
