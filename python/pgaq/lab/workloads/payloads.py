"""Large payloads: what sessions wait for that enqueue them at the same time."""

from __future__ import annotations

import time
from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Sessions, Site
from pgaq.lab.workloads import harness

# the source's program with a body of a size; its text cannot be compressed, as a CLOB of Oracle is not
PROGRAM = """
CREATE TABLE lab_aq.bodies (body text);
ALTER TABLE lab_aq.bodies ALTER body SET STORAGE EXTERNAL;

CREATE PROCEDURE lab_aq.put_large(number integer, seconds double precision, OUT sent bigint) LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	options dbms_aq.enqueue_options_t;
	properties dbms_aq.message_properties_t;
	recipients dbms_aq.aq$_recipient_list_t;
	message lab_aq.message;
	msgid uuid;
BEGIN
	options.visibility := lab_aq.visibility();
	recipients[1] := sys.aq$_agent('KSUB_' || number, NULL, NULL);
	properties.recipient_list := recipients;
	message := ROW('large', 'large', (SELECT body || '' FROM lab_aq.bodies));
	sent := 0;
	WHILE sent = 0 OR clock_timestamp() < ends LOOP
		CALL dbms_aq.enqueue('lab_aq.messages', options, properties, message, msgid);
		COMMIT;
		sent := sent + 1;
	END LOOP;
END $$;
"""
BODY = """INSERT INTO lab_aq.bodies
	SELECT left(string_agg(encode(decode(md5(random()::text) || md5(random()::text), 'hex'), 'base64'), ''), %s * 1000) FROM generate_series(1, %s * 25)"""
# relation extension is what enq: HW is in Oracle: the end of a table moves, for one session at a time
SAMPLE = """SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND wait_event = 'extend')::float8 AS extending, count(*)::float8 AS sampled
	FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (query LIKE 'CALL lab_aq.put_large%' OR wait_event = 'extend')"""


def large_bodies(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Messages, and the share of their time that sessions waited for another one to extend a table."""
    given = {"sessions": 16, "visibility": "immediate", **site.options, **point}
    numbers, kilobytes = range(1, int(given["sessions"]) + 1), int(given["kb"])
    with site.server.connect() as look, Sessions(site) as sessions:
        harness.prepare(look, len(numbers), str(given["store"]), str(given["visibility"]))
        look.execute(PROGRAM)
        look.execute(BODY, [kilobytes, kilobytes])
        sessions.prepare(numbers)
        for conn in sessions.connections.values():
            conn.execute(harness.PATH)
        before, began = Counters(look), time.monotonic()
        for number in numbers:
            sessions.start(number, lambda conn, number=number: db.value(conn, "CALL lab_aq.put_large(%s, %s, NULL)", [number, seconds]))
        extending = sampled = 0.0
        while sessions.running():
            row = db.row(look, SAMPLE) or {}
            extending, sampled = extending + row["extending"], sampled + row["sampled"]
            time.sleep(0.002)
        sent = float(sum(sessions.join().values()))
        took = time.monotonic() - began
        change = Counters(look) - before
        stored = float(db.value(look, "SELECT count(*) FROM lab_aq.bodies WHERE length(body) = %s * 1000", [kilobytes]))
        sessions.close()
        harness.drop(look)
    share = extending / max(1.0, sampled)
    return {
        "enqueued": sent, "counted_in": change("statistic", "queue messages enqueued"), "enqueued_per_s": sent / took, "bodies": stored, "samples": sampled,
        "extending_percent": 100 * share, "extending_ms": 1000 * share * took * len(numbers) / max(1.0, sent), "megabytes_per_s": sent * kilobytes / 1000 / took,
    }  # fmt: skip
