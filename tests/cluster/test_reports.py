"""Reports: every figure is the difference of two snapshots, none is negative, none lacks its unit; advice has its reasons."""

from __future__ import annotations

import json
import re

import pytest

from conftest import drop, put_many, take
from pgaq import db
from test_snapshots import snapshot

SETTINGS = {"shared_preload_libraries": "pgaq,pg_stat_statements", "pg_stat_statements.track": "all", "max_worker_processes": "24"}


def report(conn, begin, end):
    return db.value(conn, "SELECT aq.report_awr(%s, %s)", [begin, end])


def section(model, name):
    return next(s for s in model["sections"] if s["id"] == name)


def lines(model, name):
    """Rows of a section as dictionaries by the columns' names."""
    found = section(model, name)
    names = [c["name"] for c in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def rules(model):
    return [a["rule"] for a in model["advice"]]


def work(conn, queue, topic):
    put_many(conn, queue, 1, 2000)
    take(conn, queue, number=1500)
    put_many(conn, topic, 1, 100)
    take(conn, topic, "a", number=60)


@pytest.fixture(scope="module")
def interval(server):
    """Two snapshots with some work in between, and the report."""
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        db.execute(
            conn,
            "SELECT aq.create_queue('work_q'), aq.create_queue('work_t', multiple_consumers => true), aq.subscribe('work_t', 'a'), aq.subscribe('work_t', 'b')",
        )
        work(conn, "work_q", "work_t")
        begin = snapshot(conn)
        work(conn, "work_q", "work_t")
        conn.execute("SELECT pg_stat_force_next_flush()")
        end = snapshot(conn)
        model = report(conn, begin, end)
    yield begin, end, model
    with server.connect() as conn:
        drop(conn, "work_q")
        drop(conn, "work_t")


@pytest.fixture(scope="module")
def contended(server):
    """The same, with sessions that fight for a latch and a mutex."""
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab CASCADE")
        begin = snapshot(conn)
        conn.execute("SELECT aq_lab.hammer_latch('lab', sessions => 3, seconds => 0.5, hold_us => 2000)")
        conn.execute("SELECT aq_lab.hammer_mutex('lab 1', sessions => 3, seconds => 0.5, hold_us => 2000)")
        end = snapshot(conn)
        return begin, end, report(conn, begin, end)


GROWTH = """SELECT {keys}, {figures} FROM sys.{view} e LEFT JOIN (SELECT * FROM sys.{view} WHERE snap_id = %s) b USING ({keys})
    WHERE e.snap_id = %s"""


def growth(conn, interval, view, keys, *columns):
    """Differences of a history view between the two snapshots, by key."""
    figures = ", ".join(f"e.{c} - coalesce(b.{c}, 0)" for c in columns)
    query = GROWTH.format(keys=keys, figures=figures, view=view)
    found = conn.execute(query, interval[:2]).fetchall()
    width = len(keys.split(","))
    return {row[:width] if width > 1 else row[0]: [float(v) for v in row[width:]] for row in found}


def test_latch_activity(conn, interval):
    found = growth(conn, interval, "dba_hist_latch", "latch_name", "gets", "misses", "immediate_gets")
    shown = lines(interval[2], "latch_activity")
    assert shown and {r["Latch Name"] for r in shown} == {name for name, (gets, _, nowait) in found.items() if gets + nowait}
    for r in shown:
        gets, misses, nowait = found[r["Latch Name"]]
        assert (r["Get Requests"], r["NoWait Requests"]) == (gets, nowait)
        assert r["Pct Get Miss"] == pytest.approx(100 * misses / gets) if gets else r["Pct Get Miss"] is None


def test_events(conn, interval):
    found = growth(conn, interval, "dba_hist_system_event", "event_name, wait_class", "total_waits_fg", "time_waited_micro_fg")
    for r in lines(interval[2], "top_events"):
        # estimates from samples: test_ash.py
        if r["Event"] not in ("DB CPU", "PostgreSQL, not timed") and r["Sampled, +-"] is None:
            waits, micros = found[r["Event"], r["Wait Class"]]
            assert r["Waits"] == waits and r["Total Wait Time"] == pytest.approx(micros / 1e6)
            assert r["Avg Wait"] == pytest.approx(micros / waits / 1000)
            assert r["Wait Class"] != "Idle"


def test_latch_sleeps(conn, contended):
    """Breakdown, children, sources and spin time of a latch that was fought for."""
    found = growth(conn, contended, "dba_hist_latch", "latch_name", "gets", "misses", "sleeps", "spin_gets", "wait_time", "spin_time")
    assert found["lab"][1] > 0 and found["lab"][2] > 0
    shown = {r["Latch Name"]: r for r in lines(contended[2], "latch_sleeps")}
    assert shown.keys() == {name for name, (_, misses, *_) in found.items() if misses}
    for name, r in shown.items():
        gets, misses, sleeps, spin_gets, _, _ = found[name]
        assert (r["Get Requests"], r["Misses"], r["Sleeps"], r["Spin Gets"]) == (gets, misses, sleeps, spin_gets)
        assert r["Recurrent Sleeps"] == sleeps + spin_gets - misses
    [child] = [r for r in lines(contended[2], "latch_children") if r["Latch Name"] == "lab"]
    assert (child["Child Num"], child["Misses"], child["Sleeps"]) == (1, found["lab"][1], found["lab"][2])
    assert child["Spin & Sleeps 1->3+"] == f"{found['lab'][3]:.0f}/0/0/0"
    assert all(r["Misses"] > 0 for r in lines(contended[2], "latch_parent"))
    sources = growth(conn, contended, "dba_hist_latch_misses_summary", "parent_name, where_in_code", "sleep_count", "wtr_slp_count")
    for r in lines(contended[2], "latch_misses"):
        assert [r["Sleeps"], r["Waiter Sleeps"]] == sources[r["Latch Name"], r["Where"]]
    assert sum(r["Sleeps"] for r in lines(contended[2], "latch_misses") if r["Latch Name"] == "lab") > 0
    [activity] = [r for r in lines(contended[2], "latch_activity") if r["Latch Name"] == "lab"]
    assert activity["Avg Slps /Miss"] == pytest.approx(found["lab"][2] / found["lab"][1])
    assert activity["Wait Time"] == pytest.approx(found["lab"][4] / 1e6)
    [spin] = [r for r in lines(contended[2], "spin_time") if r["Name"] == "lab" and r["Kind"] == "latch"]
    assert spin["Spin Time"] == pytest.approx(found["lab"][5] / 1e6)


def test_mutex_sleeps(conn, contended):
    found = growth(conn, contended, "dba_hist_mutex", "mutex_type, location", "gets", "misses", "waits", "sleeps", "wait_time")
    shown = lines(contended[2], "mutex_sleeps")
    assert shown and [r["Sleeps"] for r in shown] == sorted((r["Sleeps"] for r in shown), reverse=True)
    for r in shown:
        _, _, waits, sleeps, micros = found[r["Mutex Type"], r["Location"]]
        assert (r["Sleeps"], r["Waits"]) == (sleeps, waits) and r["Wait Time"] == pytest.approx(micros / 1000)
    for r in lines(contended[2], "mutex_activity"):
        gets, misses, waits, _, _ = found[r["Mutex Type"], r["Location"]]
        assert (r["Get Requests"], r["Waits"], r["Spin Gets"]) == (gets, waits, misses - waits)
    assert lines(contended[2], "hot_mutexes")
    check_form(contended[2])


def test_objects(conn, interval):
    """What sessions do with an object: the counters of aq.cached_objects, less those at the begin."""
    source = "SELECT l FROM aq_internal.snapshot_data, jsonb_array_elements(data) l WHERE snap_id = %s AND source = 'cached_objects'"
    before, after = ({o["addr"]: o for (o,) in conn.execute(source, [snap])} for snap in interval[:2])
    shown = {r["Full Hash"]: r for r in lines(interval[2], "objects")}
    for addr, o in after.items():
        grown = {c: o[c] - before.get(addr, {}).get(c, 0) for c in ("mutex_gets", "mutex_sleeps", "locked_total", "pinned_total")}
        if grown["mutex_gets"]:
            r = shown[o["full_hash"]]
            assert [r["Mutex Gets"], r["Mutex Sleeps"], r["Locks"], r["Pins"]] == list(grown.values())
    found = growth(conn, interval, "dba_hist_librarycache", "namespace", "gets", "pins")
    assert {r["Namespace"]: [r["Get Requests"], r["Pin Requests"]] for r in lines(interval[2], "library_cache")} == {
        n: v for n, v in found.items() if sum(v)
    }


def test_objects_of_other_databases(server, conn):
    """An object whose name is in another database's catalog is named by its hash."""
    conn.execute("CREATE DATABASE objects_elsewhere")
    try:
        begin = snapshot(conn)
        with server.connect("objects_elsewhere") as there:
            there.execute("CREATE EXTENSION pgaq_oracle CASCADE")
            db.execute(there, "SELECT aq.create_queue('elsewhere')")
            there.execute("SET pgaq.session_pins = off")
            take(there, "elsewhere")
        model = report(conn, begin, snapshot(conn))
    finally:
        conn.execute("DROP DATABASE objects_elsewhere WITH (FORCE)")
    names = [r["Object"] for r in lines(model, "objects")]
    assert any(re.fullmatch(r"hash \d+", name) for name in names), names
    assert "" not in names


def test_dictionary_cache(conn):
    """Gets of the properties that a query reads row by row."""
    begin = snapshot(conn)
    rows = db.value(conn, "SELECT count(*) FROM sys.nls_database_parameters")
    end = snapshot(conn)
    found = growth(conn, (begin, end), "dba_hist_rowcache_summary", "parameter", "gets", "getmisses", "modifications")
    shown = {r["Cache"]: r for r in lines(report(conn, begin, end), "dictionary_cache")}
    assert shown["dc_props"]["Get Requests"] == found["dc_props"][0] >= rows > 0
    for name, r in shown.items():
        gets, misses, changes = found[name]
        assert (r["Get Requests"], r["Mod Reqs"]) == (gets, changes)
        assert r["Pct Miss"] == (pytest.approx(100 * misses / gets) if gets else None)


def test_db_time_is_all_there(conn, interval):
    """Waits, CPU and the rest add up to DB time, by event and by class; both agree with the time model.

    CPU time is of whole processes, so there may be more of it than of DB time; then there is no rest.
    """
    found = growth(conn, interval, "dba_hist_sys_time_model", "stat_name", "value")
    shown = {r["Statistic"]: r["Time"] for r in lines(interval[2], "time_model")}
    assert shown == {name: pytest.approx(micros / 1e6) for name, (micros,) in found.items() if micros}
    for name in ("top_events", "wait_classes"):
        parts = {r.get("Event", r["Wait Class"]): r["Total Wait Time"] for r in lines(interval[2], name)}
        assert sum(parts.values()) >= 0.99 * shown["DB time"]
        if "PostgreSQL, not timed" in parts:
            assert sum(parts.values()) == pytest.approx(shown["DB time"], rel=0.01)
    by_class = {r["Wait Class"]: r["Time"] for r in lines(interval[2], "activity")}
    assert by_class == {r["Wait Class"]: pytest.approx(r["Total Wait Time"]) for r in lines(interval[2], "wait_classes")}


def test_statistics(conn, interval):
    found = growth(conn, interval, "dba_hist_sysstat", "stat_name", "value")
    shown = {r["Statistic"]: r["Total"] for r in lines(interval[2], "statistics")}
    assert shown == {name: value for name, (value,) in found.items()}
    assert shown["queue messages enqueued"] == 2100 and shown["queue messages dequeued"] == 1560


def test_html(conn, interval):
    """The packages' pages are what the model draws, with Oracle's titles."""
    page = db.value(conn, "SELECT aq.report_html(dbms_workload_repository._report_titled(aq.report_awr(%s, %s)))", interval[:2])
    for query, arguments in (
        ("SELECT string_agg(output, E'\\n') FROM dbms_workload_repository.awr_report_html(%s, %s)", interval[:2]),
        ("SELECT string_agg(output, E'\\n') FROM dbms_workload_repository.awr_report_html(NULL, 1, %s, %s)", interval[:2]),
    ):
        assert db.value(conn, query, arguments) == page
    after = snapshot(conn)
    query = "SELECT string_agg(output, E'\\n') FROM dbms_workload_repository.awr_diff_report_html(NULL, 1, %s, %s, NULL, 1, %s, %s)"
    assert "</html>" in db.value(conn, query, [*interval[:2], interval[1], after])


def test_histogram_adds_up(conn, interval):
    found = growth(conn, interval, "dba_hist_event_histogram", "event_name, wait_time_micro", "wait_count")
    for r in lines(interval[2], "wait_histogram"):
        assert r["Total Waits"] == sum(n for (event, _), (n,) in found.items() if event == r["Event"])
        assert sum(r[c] for c in r if c[0] in "<>") == pytest.approx(100)


def test_histogram_chart(contended):
    """The chart's bounds are written like the table's: powers of two, with the unit next to them."""
    chart = section(contended[2], "wait_histogram")["chart"]
    assert chart["x"]["values"]
    for bound in chart["x"]["values"]:
        number = int(re.fullmatch(r"<(\d+)(us|ms|s)", bound)[1])
        assert number & (number - 1) == 0, bound


def test_queues_and_subscribers(conn, interval):
    [queue] = [r for r in lines(interval[2], "queues") if r["Queue"] == "work_q"]
    assert (queue["Enqueued"], queue["Done"], queue["Backlog Begin"], queue["Backlog End"]) == (2000, 1500, 500, 1000)
    consumed, micros = growth(conn, interval, "dba_hist_queue", "queue_name", "consumed_msgs", "latency_us")["work_q"]
    assert consumed == 1500 and queue["Avg Latency"] == pytest.approx(micros / 1500 / 1000)
    found = growth(conn, interval, "dba_hist_subscriber", "queue_name, consumer", "consumed_msgs", "latency_us")
    for r in lines(interval[2], "subscribers"):
        consumed, micros = found[r["Queue"], r["Consumer"]]
        assert consumed == r["Done"]
        assert r["Avg Latency"] == (pytest.approx(micros / consumed / 1000) if consumed else None)
    seen = {r["Consumer"]: (r["For It"], r["Done"], r["Lag Begin"], r["Lag End"]) for r in lines(interval[2], "subscribers")}
    assert seen == {"a": (100, 60, 40, 80), "b": (100, 0, 100, 200)}
    assert sum(r["Enqueued"] for r in lines(interval[2], "shards") if r["Queue"] == "work_q") == 2000


def test_sql(conn, interval):
    found = growth(conn, interval, "dba_hist_sqlstat", "sql_id, parsing_user_id", "executions_total", "elapsed_time_total")
    [shown] = [r for r in lines(interval[2], "sql_elapsed") if "cardinality(aq.enqueue_array" in r["SQL Text"]]
    assert shown["Executions"] == 2
    [(_, micros)] = [v for (sql_id, _), v in found.items() if str(sql_id) == shown["SQL Id"]]
    assert shown["Elapsed Time"] == pytest.approx(micros / 1e6)


def test_sql_id_joins(conn, interval):
    """A sample's statement is found among those of the snapshots."""
    conn.execute("""SELECT 1 FROM sys."v$session" JOIN sys.dba_hist_sqlstat USING (sql_id) WHERE false""")
    known = db.value(conn, "SELECT count(*) FROM sys.dba_hist_sqltext JOIN pg_stat_statements ON sql_id = queryid")
    assert known > 0


def test_sql_in_functions_and_by_clients(conn, interval):
    """A statement that is run by the client and in a function has two counts in pg_stat_statements; their sum is its figure."""
    statement = "SELECT count(*) AS run_by_both FROM generate_series(1, 300000)"
    both = f"DO $$ BEGIN FOR i IN 1..3 LOOP EXECUTE $s${statement}$s$; END LOOP; END $$"
    conn.execute(statement)
    conn.execute(both)
    begin = snapshot(conn)
    conn.execute(statement)
    conn.execute(both)
    end = snapshot(conn)
    shown = [r["Executions"] for r in lines(report(conn, begin, end), "sql_elapsed") if re.match("SELECT .* AS run_by_both", r["SQL Text"])]
    assert shown == [4]


def test_cpu_of_sql(conn, interval):
    """CPU time of statements is there when pg_stat_kcache has counted it, and is not guessed when it has not."""
    begin, end, model = interval
    assert {r["%CPU"] for r in lines(model, "sql_elapsed")} == {None}
    [first] = [r for r in lines(model, "sql_elapsed") if "cardinality(aq.enqueue_array" in r["SQL Text"]]
    key = db.row(
        conn,
        """SELECT DISTINCT r.queryid, r.userid, r.dbid FROM aq_internal.snapshot_data, jsonb_to_recordset(data) r(queryid text, userid bigint, dbid bigint)
        WHERE source = 'sql' AND snap_id = %s AND r.queryid = %s""",
        [end, first["SQL Id"]],
    )
    counted = "INSERT INTO aq_internal.snapshot_data SELECT aq_internal.dbid(), %s, 'sql_cpu', jsonb_build_array(%s::jsonb)"
    conn.execute(counted, [begin, json.dumps({**key, "cpu_us": 1000})])
    conn.execute(counted, [end, json.dumps({**key, "cpu_us": 1500})])
    shown = {r["SQL Id"]: r["%CPU"] for r in lines(report(conn, begin, end), "sql_elapsed")}
    assert shown.pop(first["SQL Id"]) == pytest.approx(100 * 500e-6 / first["Elapsed Time"])
    assert set(shown.values()) == {None}
    delta = "SELECT cpu_time_total, cpu_time_delta FROM sys.dba_hist_sqlstat WHERE snap_id = %s AND sql_id = %s"
    assert conn.execute(delta, [end, first["SQL Id"]]).fetchall() == [(1500, 500)]
    conn.execute("DELETE FROM aq_internal.snapshot_data WHERE source = 'sql_cpu'")


def test_load_profile(conn, interval):
    grown = growth(conn, interval, "dba_hist_sysstat", "stat_name", "value")
    transactions = sum(grown[name][0] for name in ("user commits", "user rollbacks"))
    [shown] = [r for r in lines(interval[2], "load_profile") if r[""].startswith("Transactions")]
    elapsed = db.value(
        conn,
        "SELECT extract(epoch FROM max(end_interval_time) - min(end_interval_time)) FROM sys.dba_hist_snapshot WHERE snap_id IN (%s, %s)",
        interval[:2],
    )
    assert shown["Per Second"] == pytest.approx(transactions / float(elapsed))
    assert shown["Per Transaction"] == 1


def numbers(model):
    """(section, column, value) of all numbers."""
    for s in model["sections"]:
        for row in s["rows"]:
            for column, value in zip(s["columns"], row, strict=True):
                if column["type"] != "text":
                    yield s["id"], column, value


# differences of gauges may be negative
SIGNED = {("subscribers", "Lag Growth")}


def check_form(model, signed=()):
    found = list(numbers(model))
    assert found
    for name, column, value in found:
        assert column["unit"], f"{name}: {column['name']} has no unit"
        assert value is None or isinstance(value, (int, float)), f"{name}: {column['name']} is {value!r}"
        assert value is None or value >= 0 or (name, column["name"]) in SIGNED or column["name"] in signed, (
            f"{name}: {column['name']} is {value}"
        )
    for s in model["sections"]:
        if s["chart"]:
            assert s["chart"]["y"]["unit"]
            for series in s["chart"]["series"]:
                assert len(series["values"]) == len(s["chart"]["x"]["values"])


def test_form(interval):
    """No figure without unit, none negative; charts have a value for each point; nothing is wrong with this system."""
    check_form(interval[2])
    assert interval[2]["advice"] == []


def test_text(conn, interval):
    """Columns line up under their rules; numbers are on the right, with separators."""
    text = [r[0] for r in conn.execute("SELECT output FROM dbms_workload_repository.awr_report_text(%s, %s)", interval[:2])]
    assert text == [
        r[0]
        for r in conn.execute("SELECT output FROM dbms_workload_repository.awr_report_text(aq_internal.dbid(), 1, %s, %s)", interval[:2])
    ]
    at = text.index("Queues")
    rule = next(n for n in range(at, len(text)) if text[n].startswith("-----"))
    row = next(line for line in text[rule:] if line.startswith("work_q"))
    spans = [m.span() for m in re.finditer("-+", text[rule])]
    cells = [row[a:b].strip() for a, b in spans]
    assert cells[:3] == ["work_q", "queue", "2,000"]
    assert row[spans[2][1] - 1] == "0" and row[spans[2][1] : spans[3][0]].strip() == ""
    # nothing stands between the columns
    for line in text[rule + 1 :]:
        if line == "":
            break
        assert all(line[a:b].strip() == "" for (_, a), (b, _) in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize("model", ["null", "{}", "[]", '{"title": "x"}', '{"title": "x", "header": [], "sections": {}}'])
def test_no_report(conn, model):
    """A document that is not a report is not drawn as an empty report."""
    for draw in "aq.report_text", "aq.report_html":
        with pytest.raises(db.Error, match="this is not a report"):
            db.value(conn, f"SELECT {draw}(%s)", [model])
        with pytest.raises(db.Error, match="this is not a report"):
            db.value(conn, f"SELECT {draw}(NULL)")


def test_diff(conn, interval):
    """Rates of both intervals, and their difference; what one of them does not have is 0 there."""
    begin, end, model = interval
    db.execute(conn, "SELECT aq.create_queue('later_q')")
    put_many(conn, "later_q", 1, 500)
    after = snapshot(conn)
    found = db.value(conn, "SELECT aq.report_awr_diff(%s, %s, %s, %s)", [begin, end, end, after])
    check_form(found, signed={"Diff"})
    intervals = lines(found, "intervals")
    assert [(r["Interval"], r["Begin"].split(",")[0], r["End"].split(",")[0]) for r in intervals] == [
        ("1st", f"snapshot {begin}", f"snapshot {end}"),
        ("2nd", f"snapshot {end}", f"snapshot {after}"),
    ]
    labels = [label for label, _ in found["header"]]
    assert len(labels) == len(set(labels)) and "Database" in labels
    # rows that have each a unit of its own are not drawn on one scale
    assert section(found, "load_profile")["chart"] is None and section(found, "queues")["chart"]["y"]["unit"] == "messages/s"
    rates = {r[0]: r[1:4] for r in section(found, "queues")["rows"]}
    [first] = [r["Enqueue Rate"] for r in lines(model, "queues") if r["Queue"] == "work_q"]
    assert rates["work_q"] == [pytest.approx(first), 0, -100]
    assert rates["later_q"][0] == 0 and rates["later_q"][1] > 0 and rates["later_q"][2] is None
    gets = {r[0]: r[1] for r in section(found, "latch_activity")["rows"]}
    counted = growth(conn, interval, "dba_hist_latch", "latch_name", "gets")
    seconds = db.value(
        conn,
        "SELECT extract(epoch FROM e.end_interval_time - b.end_interval_time) FROM sys.dba_hist_snapshot b, sys.dba_hist_snapshot e WHERE b.snap_id = %s AND e.snap_id = %s",
        [begin, end],
    )
    assert gets["shard stream"] == pytest.approx(counted["shard stream"][0] / float(seconds))
    text = conn.execute(
        "SELECT output FROM dbms_workload_repository.awr_diff_report_text(NULL, 1, %s, %s, NULL, 1, %s, %s)", [begin, end, end, after]
    ).fetchall()
    assert any(line.startswith("later_q") for (line,) in text)
    drop(conn, "later_q")


def waited(conn):
    """Microseconds of each wait event that is not idle."""
    return dict(conn.execute("""SELECT event, time_waited_micro FROM sys."v$system_event" WHERE wait_class <> 'Idle'""").fetchall())


def grown(before, after):
    return {event: time - before.get(event, 0) for event, time in after.items() if time > before.get(event, 0)}


def test_rtpctx(server):
    """Two calls bracket an interval: a wait in it is there, with its time, and nothing that was before."""
    with server.connect() as conn, server.connect() as other:
        # the database's worker runs, so that nothing below waits for its start
        db.execute(other, "SELECT aq.create_queue('rt_first')")
        put_many(other, "rt_first", 1, 10)
        drop(other, "rt_first")
        # what others wait for next to the interval may be in the report or not: read before and after each of its ends
        outer = waited(conn)
        mark = db.value(conn, "SELECT aq.rtpctx_start()::text")
        inner = waited(conn)
        # the first message of a queue waits for a worker to provide a partition
        db.execute(other, "SELECT aq.create_queue('rt_q')")
        put_many(other, "rt_q", 1, 10)
        least = grown(inner, waited(conn))
        model = db.value(conn, "SELECT aq.rtpctx_report(%s)", [mark])
        most = grown(outer, waited(conn))
        check_form(model)
        shown = {r["RT Component"]: r for r in lines(model, "response_time")}
        assert "aq: waiting for a partition" in least
        assert least.keys() <= {c for c, r in shown.items() if "CPU" not in c and r["Time"] > 0} <= most.keys()
        assert shown["aq: waiting for a partition"]["Time"] == pytest.approx(least["aq: waiting for a partition"] / 1e6)
        assert sum(r["% RT"] for r in shown.values()) == pytest.approx(100)
        with pytest.raises(db.Error, match="this is not a mark"):
            db.value(conn, "SELECT aq.rtpctx_report('{}')")
        drop(conn, "rt_q")
        begin, end = snapshot(conn), snapshot(conn)
        check_form(db.value(conn, "SELECT aq.report_rtpctx(%s, %s)", [begin, end]))


def test_ash_of_an_idle_time(conn):
    """No samples, no figures, no division by zero; both forms."""
    model = db.value(conn, "SELECT aq.report_ash(now() - interval '30 days', now() - interval '29 days')")
    assert all(s["rows"] == [] for s in model["sections"])
    arguments = "NULL, 1, now() - interval '30 days', now() - interval '29 days'"
    assert conn.execute(f"SELECT output FROM dbms_workload_repository.ash_report_text({arguments})").fetchall()
    assert "</html>" in [line for (line,) in conn.execute(f"SELECT output FROM dbms_workload_repository.ash_report_html({arguments})")]
    with pytest.raises(db.Error, match="must begin before it ends"):
        db.value(conn, "SELECT aq.report_ash(now(), now())")


def test_rights(server):
    """Reports are for pg_monitor; its members need no other right."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE nobody LOGIN")
        with server.connect(user="watcher") as watcher:
            begin, end = snapshot(watcher), snapshot(watcher)
            assert db.value(watcher, "SELECT count(*) FROM sys.dba_hist_snap_error WHERE snap_id IN (%s, %s)", [begin, end]) == 0
            assert section(report(watcher, begin, end), "latch_activity")["rows"]
            assert watcher.execute("SELECT output FROM dbms_workload_repository.awr_report_text(%s, %s)", [begin, end]).fetchall()
            assert section(db.value(watcher, "SELECT aq.rtpctx_report(aq.rtpctx_start())"), "work")
            granted = """SELECT oid::regclass::text AS view FROM pg_class WHERE relkind = 'v' AND relnamespace IN ('aq'::regnamespace, 'sys'::regnamespace)
                         AND has_table_privilege(oid, 'SELECT')"""
            for found in db.rows(watcher, granted):
                watcher.execute(f"SELECT * FROM {found['view']}")
        with server.connect(user="nobody") as nobody:
            for query in (
                "SELECT aq.report_awr(1, 2)",
                "SELECT aq.rtpctx_start()",
                "SELECT aq.rtpctx_report('{}')",
                "SELECT aq.report_awr_diff(1, 2, 2, 3)",
                "SELECT dbms_workload_repository.awr_report_text(1, 2)",
            ):
                with pytest.raises(db.Error, match="permission denied"):
                    nobody.execute(query)


def test_no_division_by_zero(conn):
    """Between two snapshots in which nothing happened; on a snapshot without half of its sources."""
    begin, end = snapshot(conn), snapshot(conn)
    check_form(report(conn, begin, end))
    conn.execute("DELETE FROM aq_internal.snapshot_data WHERE snap_id = %s AND source > 'm'", [begin])
    check_form(report(conn, begin, end))
    conn.execute("UPDATE aq_internal.snapshot_data SET data = '[]' WHERE snap_id = %s", [end])
    model = report(conn, begin, end)
    assert all(value is None or value >= 0 for _, _, value in numbers(model))


@pytest.mark.parametrize(
    "begin, end, message",
    [(1, 999999, "999999 does not exist"), (None, 1, "null does not exist"), ("end", "begin", "is not a range of snapshots")],
)
def test_wrong_snapshots(conn, interval, begin, end, message):
    names = {"begin": interval[0], "end": interval[1], 1: interval[0], 999999: 999999, None: None}
    with pytest.raises(db.Error, match=message):
        report(conn, names[begin], names[end])


def test_snapshot_in_a_gap(conn):
    """A snapshot that was dropped: the error names those next to it."""
    first, dropped, last = (snapshot(conn) for _ in range(3))
    conn.execute("CALL dbms_workload_repository.drop_snapshot_range(%s, %s)", [dropped, dropped])
    with pytest.raises(db.Error) as error:
        report(conn, first, dropped)
    assert error.value.diag.message_hint.startswith(f"The nearest are {first} and {last},")
    with pytest.raises(db.Error) as error:
        db.value(conn, "SELECT aq.report_awr(%s, %s, 1)", [first, last])
    assert error.value.diag.message_hint.startswith("There are none of this database")


def test_short_times_are_in_seconds(interval):
    """An interval of less than a minute is not "0.00 min"."""
    begin, end, model = interval
    seconds = re.fullmatch(r"\d+\.\d\d min \((\d+\.\d\d) s\)", dict(model["header"])["Elapsed"]).group(1)
    assert 0 < float(seconds) < 60


def test_restart_in_between(new_server):
    """The report mentions the restart, and nothing is negative: it begins with the first snapshot after the restart, or
    with the restart."""
    own = new_server("restarted")
    own.expect_log(r"terminat|crash")
    with own.connect() as conn:
        first = snapshot(conn)
        db.execute(conn, "SELECT aq.create_queue('q')")
        put_many(conn, "q", 1, 5000)
        before = snapshot(conn)
    own.restart()
    with own.connect() as conn:
        put_many(conn, "q", 1, 10)
        only = snapshot(conn)
        model = report(conn, before, only)
        assert any("restarted" in value for label, value in model["header"] if label == "Note")
        check_form(model)
        assert sum(r["Enqueued"] for r in lines(model, "shards")) == 10
        # the time since the restart is there, by class
        shown = {r["Wait Class"]: r["Time"] for r in lines(model, "activity")}
        assert shown == {r["Wait Class"]: pytest.approx(r["Total Wait Time"]) for r in lines(model, "wait_classes") if r["Total Wait Time"]}
        # compared with an interval before, what is not known of it is not 0
        compared = {
            r[""]: r
            for r in (
                dict(zip([c["name"] for c in s["columns"]], row))
                for s in [
                    section(db.value(conn, "SELECT aq.report_awr_diff(%s, %s, %s, %s)", [first, before, before, only]), "load_profile")
                ]
                for row in s["rows"]
            )
        }
        assert compared["Logons (sessions)"]["Per Second 1st"] is not None and compared["Logons (sessions)"]["Per Second 2nd"] is None
        assert compared["WAL (bytes)"]["Per Second 1st"] > 0 and compared["WAL (bytes)"]["Per Second 2nd"] > 0
        assert compared["Messages enqueued (messages)"]["Per Second 2nd"] > 0
        put_many(conn, "q", 1, 20)
        later = snapshot(conn)
        model = report(conn, before, later)
        assert any(f"begins with snapshot {only}" in value for label, value in model["header"] if label == "Note")
        check_form(model)
        assert [r["Enqueued"] for r in lines(model, "queues")] == [20]
