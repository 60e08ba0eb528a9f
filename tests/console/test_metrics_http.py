"""pgaq metrics: OpenMetrics that Prometheus reads, and health that says what is true, also when the database does not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from conftest import ROOT, put, put_many, until
from pgaq import db
from pgaq.metrics import exporter as exporters
from pgaq.metrics.exporter import Exporter, escaped
from pgaq.metrics.families import COLLECTORS, FAMILIES, LATENCY_BOUNDS, Family

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="missing: python3-prometheus-client")
ODD = 'shop "a"\\b\nc {x="y"} # 1'


@pytest.fixture(scope="module")
def server(shared_server):
    return shared_server


def make_exporter(server, user="watcher", dbname="postgres", timeout=5.0, limit=500, **more):
    info = server.conninfo(dbname, user)
    return Exporter(lambda seconds: db.connect(info, connect_timeout="2", **more), version="1.2.3", timeout=timeout, limit=limit)


@pytest.fixture
def exporter(server, conn):
    conn.execute("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    with contextlib.closing(make_exporter(server)) as made:
        yield made


def read(text):
    """{family: (type, unit, {labels: value})}, by the parser of Prometheus' own client."""
    families = list(parser.text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {
        family.name: (family.type, family.unit, {frozenset(sample.labels.items()): sample.value for sample in family.samples})
        for family in families
    }


def value(found, family, **labels):
    return found[family][2].get(frozenset(labels.items()))


def stem(name):
    return re.sub("_(total|info)$", "", name)


def test_families_follow_the_conventions():
    for family in FAMILIES:
        assert family.name.startswith("pgaq_") and family.text.endswith(".")
        assert family.name.endswith("_total") == (family.kind == "counter") and family.name.endswith("_info") == (family.kind == "info")
        assert not family.unit or stem(family.name).endswith("_" + family.unit)
        assert family.unit or not re.search("_(seconds|bytes)$", stem(family.name)), f"{family.name} has a unit"
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_each_collector_has_what_its_families_name(conn, exporter, server):
    with server.connect(user="watcher") as watcher:
        for collector in COLLECTORS:
            columns = [column.name for column in watcher.execute(collector.query, {"limit": 5, "consumers": 5}).description]
            for family in collector.families:
                assert {family.value, *family.labels, *filter(None, [family.total])} <= set(columns), family.name


def test_histogram_of_latencies(conn, server, queue, topic):
    """Cumulative buckets, with the server's bounds; queues beyond the limit are added up; none before the first dequeue."""
    bounds = db.value(conn, "SELECT array_agg(aq.latency_bound(2 * n)) FROM generate_series(1, %s) n", [len(LATENCY_BOUNDS)])
    assert LATENCY_BOUNDS == pytest.approx(bounds) and db.value(conn, "SELECT aq.latency_bound(33)") is None
    conn.execute("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    put_many(conn, topic, 1, 5)
    conn.execute("SELECT aq.dequeue(%s, consumer => 'a', max_messages => 3)", [topic])
    with contextlib.closing(make_exporter(server)) as made:
        text = made.scrape()
    family = next(family for family in parser.text_string_to_metric_families(text) if family.name == "pgaq_latency_seconds")
    assert (family.type, family.unit) == ("histogram", "seconds")
    assert not [sample for sample in family.samples if sample.labels["queue"] == queue]
    samples = [sample for sample in family.samples if sample.labels["queue"] == topic]
    buckets = {sample.labels["le"]: sample.value for sample in samples if sample.name.endswith("_bucket")}
    assert len(buckets) == len(LATENCY_BOUNDS) + 1 and buckets["+Inf"] == 3 and list(buckets.values()) == sorted(buckets.values())
    (count,) = (sample.value for sample in samples if sample.name.endswith("_count"))
    (total,) = (sample.value for sample in samples if sample.name.endswith("_sum"))
    assert count == 3 and total == pytest.approx(db.value(conn, "SELECT total_seconds FROM aq.latencies WHERE queue_name = %s", [topic]))
    with contextlib.closing(make_exporter(server, limit=0)) as small:
        found = read(small.scrape())["pgaq_latency_seconds"][2]
    assert {dict(labels)["queue"] for labels in found} == {"other"}
    all_messages = db.value(conn, "SELECT sum(messages) FROM aq.latencies WHERE delivery_mode = 'persistent'")
    assert found[frozenset({"database": "postgres", "queue": "other", "delivery_mode": "persistent", "le": "+Inf"}.items())] == all_messages


def test_numbers_are_those_of_the_database(conn, exporter, queue, topic):
    db.execute(conn, "SELECT aq.create_queue('broken', if_not_exists => true)")
    db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => 'broken')", [queue])
    db.execute(conn, "SELECT aq.create_queue(%s)", [ODD])
    put_many(conn, queue, 1, 7)
    put(conn, queue, 8, delay="1 hour")
    put_many(conn, topic, 1, 3)
    put(conn, ODD, 1)
    put(conn, "broken", 1)
    db.execute(conn, "SELECT aq.pause(%s), aq.pause(%s, 'a')", [ODD, topic])
    db.execute(conn, "SELECT aq.schedule('nightly', %s, '1'::jsonb, cron => '0 3 * * *')", [queue])
    db.execute(conn, "SELECT aq.create_propagation('broken', %s, start_time => now() + interval '1 hour')", [queue])
    try:
        found = read(exporter.scrape())
        named = {"database": "postgres", "delivery_mode": "persistent"}
        assert value(found, "pgaq_up") == 1
        assert found["pgaq_build"][2] == {
            frozenset({"version": "1.2.3", "extension": "0.2.0", "server": db.value(conn, "SHOW server_version")}.items()): 1
        }
        assert value(found, "pgaq_ready", queue=queue, consumer="", **named) == 7
        assert value(found, "pgaq_delayed", queue=queue, consumer="", **named) == 1
        assert value(found, "pgaq_lag", queue=queue, consumer="", **named) == 8
        assert value(found, "pgaq_enqueued", queue=queue, consumer="", **named) == 8
        assert value(found, "pgaq_ready", queue=topic, consumer="b", **named) == 3
        assert value(found, "pgaq_ready", queue=ODD, consumer="", **named) == 1
        paused = {
            name: value(found, "pgaq_paused_seconds", queue=name, consumer=consumer, **named)
            for name, consumer in ((queue, ""), (ODD, ""), (topic, "a"))
        }
        assert paused[queue] == 0 < min(paused[ODD], paused[topic]) and max(paused.values()) < 3600
        assert value(found, "pgaq_paused_seconds", queue=topic, consumer="b", **named) == 0
        assert value(found, "pgaq_exception_messages", queue="broken", database="postgres") == 1
        assert 0 < value(found, "pgaq_oldest_ready_seconds", queue=queue, consumer="", **named) < 3600
        assert value(found, "pgaq_schedule_runs", schedule="nightly", database="postgres") == 0
        assert value(found, "pgaq_schedule_overdue_seconds", schedule="nightly", database="postgres") == 0
        assert value(found, "pgaq_propagation_lag", queue="broken", destination=queue, database="postgres") is not None
        assert value(found, "pgaq_message_cache_bytes", state="total") > value(found, "pgaq_message_cache_bytes", state="used") > 0
        assert value(found, "pgaq_worker_running", database="postgres") == 1
        assert {value for value in found["pgaq_collector_success"][2].values()} == {1}
        for family in FAMILIES:
            if stem(family.name) in found:
                assert found[stem(family.name)][:2] == (family.kind, family.unit), family.name
    finally:
        db.execute(conn, "SELECT aq.unschedule('nightly')")
        db.execute(conn, "SELECT aq.drop_propagation('broken', %s)", [queue])
        db.execute(conn, "SELECT aq.drop_queue(q, force => true) FROM unnest(%s::text[]) q", [[ODD, queue, "broken"]])


def test_a_pause_silences_no_alert_of_others(server, conn, exporter, queue, topic):
    """The rule of docs/metrics.md: what is summed has the pause of one of them."""
    rule = re.search(r"alert: QueueNotServed\n +expr: .* unless pgaq_paused_seconds(.*) > 0\n", (ROOT / "docs/metrics.md").read_text())[1]
    excluded = re.findall(r'(\w+)!="(\w+)"', rule)
    conn.execute("SELECT aq.pause(%s), aq.pause(%s, 'a')", [queue, topic])
    put(conn, topic, 1)
    for limits, named in (({"limit": 0}, set()), ({}, {queue, topic})):
        with contextlib.closing(make_exporter(server, **limits)) as made:
            found = read(made.scrape())["pgaq_paused_seconds"][2]
        silent = {key for key, value in found.items() if value > 0 and not any(dict(key)[name] == word for name, word in excluded)}
        assert {dict(key)["queue"] for key, value in found.items() if value > 0} == (named or {"other"})
        assert {dict(key)["queue"] for key in silent} == named
    conn.execute("SELECT aq.resume(%s), aq.resume(%s, 'a')", [queue, topic])


def test_what_is_beyond_the_limit_is_summed(server, conn, exporter, queue, topic, monkeypatch):
    put_many(conn, queue, 1, 5)
    put_many(conn, topic, 1, 3)
    with contextlib.closing(make_exporter(server, limit=0)) as small:
        found = read(small.scrape())
        assert {dict(labels)["queue"] for labels in found["pgaq_ready"][2]} == {"other"}
        all_ready = db.value(conn, "SELECT sum(ready) FROM aq.metrics() WHERE delivery_mode = 'persistent'")
        assert value(found, "pgaq_ready", database="postgres", queue="other", consumer="", delivery_mode="persistent") == all_ready >= 11
    with contextlib.closing(make_exporter(server, limit=1)) as small:
        assert len({dict(labels)["queue"] for labels in read(small.scrape())["pgaq_ready"][2]} - {"other"}) == 1
    monkeypatch.setattr(exporters, "CONSUMERS_OF_A_QUEUE", 1)
    found = read(exporter.scrape())
    assert {dict(labels)["consumer"] for labels in found["pgaq_ready"][2] if dict(labels)["queue"] == topic} == {"a", "other"}


def test_a_role_without_privileges_sees_nothing_of_others(server, conn, queue):
    conn.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    put(conn, queue, 1)
    with contextlib.closing(make_exporter(server, "stranger")) as made:
        text = made.scrape()
        found = read(text)
    assert value(found, "pgaq_up") == 1 and queue not in text
    assert value(found, "pgaq_collector_success", collector="queues") == 1
    assert value(found, "pgaq_collector_success", collector="waits") == 0 and "pgaq_waits" not in found


def test_sql_exporter_and_pages_name_the_same_metrics():
    yaml = pytest.importorskip("yaml", reason="missing: python3-yaml")
    known = {family.name: family for family in FAMILIES}
    (collector,) = yaml.safe_load((ROOT / "docs/sql_exporter.yml").read_text())["collectors"]
    for metric in collector["metrics"]:
        family = known[metric["metric_name"]]
        labels = {*metric.get("key_labels", []), *([metric["value_label"]] if "value_label" in metric else [])}
        assert (metric["type"], metric["help"], labels) == (family.kind, family.text, set(family.labels)), family.name
    page = (ROOT / "docs/metrics.md").read_text()
    rules = yaml.safe_load(re.search(r"```yaml\n(groups:.*?)```", page, re.S)[1])
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads((ROOT / "docs/grafana/pgaq.json").read_text())
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 20
    for expression in expressions:
        for name, selector in re.findall(r"(pgaq_\w+)(?:\{([^}]*)\})?", expression):
            assert name in known and set(re.findall(r"(\w+)=~?", selector)) <= set(known[name].labels), expression
    table = set(re.findall(r"^\| `(pgaq_\w+)`", page, re.M))
    assert table == set(known), "the table of metrics in docs/metrics.md"


def test_escapes():
    family = Family("pgaq_x", "gauge", 'a "b" \\ c', labels=("l",))
    text = exporters.written(family, {(ODD,): 1}) + "# EOF\n"
    assert value(read(text), "pgaq_x", l=ODD) == 1
    assert escaped('"\\\n') == '\\"\\\\\\n'


def test_no_extension_and_no_database(server, conn):
    conn.execute("CREATE DATABASE bare")
    for name, state in (("bare", "ok"), ("missing", "no answer")):
        with contextlib.closing(make_exporter(server, "postgres", name)) as made:
            found = read(made.scrape())
            assert value(found, "pgaq_up") == 0 and set(found) == {"pgaq_build", "pgaq_up", "pgaq_scrape_duration_seconds"}
            assert made.ready() == (False, {"ready": False, "database": state, "extension": None, "worker": None})
    conn.execute("DROP DATABASE bare")


def test_part_that_takes_too_long(server, conn, exporter, queue):
    """One view is locked: the other numbers come in time."""
    with contextlib.closing(make_exporter(server, timeout=1)) as made, server.connect(autocommit=False) as other:
        made.scrape()
        db.execute(other, "LOCK TABLE aq_internal.schedule IN ACCESS EXCLUSIVE MODE")
        found = read(made.scrape())
        assert value(found, "pgaq_up") == 1
        assert value(found, "pgaq_collector_success", collector="schedules") == 0
        assert value(found, "pgaq_collector_success", collector="links") == 1
        assert made.ready()[0]


def test_server_that_does_not_answer(server, conn, queue, capsys):
    """Its process is stopped: nothing comes, neither data nor an error.  When it goes on, so do the numbers."""
    with contextlib.closing(make_exporter(server, "postgres", timeout=0.5)) as made:
        assert value(read(made.scrape()), "pgaq_up") == 1
        pid = db.value(made._scraping._conn, "SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert value(read(made.scrape()), "pgaq_up") == 0
            assert time.monotonic() - began < 3
        finally:
            os.kill(pid, signal.SIGCONT)
        # a busy machine may need more than the half second for one of them
        until(lambda: value(read(made.scrape()), "pgaq_up") == 1, "numbers")
        assert re.search("no metrics: .*\n.*the database answers again", capsys.readouterr().err)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


@pytest.fixture
def command(server):
    """pgaq metrics on a free port."""
    words = [sys.executable, "-m", "pgaq", "metrics", "--listen", "127.0.0.1:0", "--timeout", "2s", "-d", server.conninfo()]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        url = re.search(r"http://[\d.:]+", process.stderr.readline())[0]
        yield process, url
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_command(command, server):
    """It lives through a restart of the server, and says meanwhile what is wrong."""
    server.expect_log("terminating connection due to administrator command")
    process, url = command
    status, headers, text = get(url + "/metrics")
    assert status == 200 and headers["Content-Type"] == exporters.CONTENT_TYPE and value(read(text), "pgaq_up") == 1
    until(lambda: get(url + "/readyz")[0] == 200, "readiness")
    assert get(url + "/healthz")[2] == "ok\n"
    assert get(url + "/../etc/passwd")[0] == get(url + "/metrics/x")[0] == 404
    server.stop()
    try:
        status, _, text = get(url + "/metrics")
        assert status == 200 and value(read(text), "pgaq_up") == 0
        until(lambda: get(url + "/readyz")[0] == 503, "the end of readiness")
        assert str(server.socket_dir) not in get(url + "/readyz")[2]
        assert get(url + "/healthz")[0] == 200
    finally:
        server.start()
    assert value(read(get(url + "/metrics")[2]), "pgaq_up") == 1
    until(lambda: get(url + "/readyz")[0] == 200, "readiness again")
    assert process.poll() is None
