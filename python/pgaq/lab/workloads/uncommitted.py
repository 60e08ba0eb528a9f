"""LISTEN beside a dequeue that is not committed: is there a message, or is there none?"""

from __future__ import annotations

from typing import Any

from pgaq import db
from pgaq.lab.site import Sessions, Site
from pgaq.lab.workloads import harness

ATTEMPTS = 5
AFTER_ROLLBACK = 5  # seconds; the message is retried after two
# listen, and the dequeue that follows it: what each has found.  A session that listens commits nothing here.
PROGRAM = """
CREATE FUNCTION lab_aq.dequeue_one(visibility integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	message lab_aq.message;
	msgid uuid;
BEGIN
	options.consumer_name := 'KSUB_1';
	options.visibility := visibility;
	options.navigation := dbms_aq.first_message();
	options.wait := dbms_aq.no_wait();
	CALL dbms_aq.dequeue('lab_aq.messages', options, properties, message, msgid);
	RETURN 1;
EXCEPTION
	WHEN SQLSTATE 'AQ063' THEN RETURN 0;
END $$;

CREATE FUNCTION lab_aq.listen_once(wait integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	agents dbms_aq.aq$_agent_list_t;
	agent sys.aq$_agent;
BEGIN
	agents[1] := sys.aq$_agent('KSUB_1', 'lab_aq.messages', NULL);
	CALL dbms_aq.listen(agent_list => agents, wait => wait, agent => agent);
	RETURN 1;
EXCEPTION
	WHEN SQLSTATE 'AQ064' THEN RETURN 0;
END $$;
"""
DEQUEUE = "SELECT lab_aq.dequeue_one(dbms_aq.{}())"


def listen_beside(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """How often listen finds a message that another session has dequeued, and one that it has not."""
    found = {
        "attempts": float(ATTEMPTS),
        "beside_on_commit": 0.0,
        "beside_immediate": 0.0,
        "in_vain": 0.0,
        "beside_another": 0.0,
        "after_commit": 0.0,
    }
    with site.server.connect() as look, Sessions(site) as sessions:
        harness.prepare(look, 1, str(point["store"]))
        look.execute(PROGRAM)
        sessions.prepare(["taker", "listener"])
        taker, listener = sessions.connections["taker"], sessions.connections["listener"]
        for conn in (taker, listener):
            conn.execute(harness.PATH)

        def take(visibility: str) -> None:
            """Another session dequeues the message, and its transaction stays open."""
            taker.execute("BEGIN")
            assert db.value(taker, DEQUEUE.format(visibility)) == 1

        def listen(wait: int = 0) -> tuple[int, int]:
            """Did listen return, and did the dequeue find nothing then?"""
            positive = db.value(listener, "SELECT lab_aq.listen_once(%s)", [wait])
            return positive, positive and 1 - db.value(listener, DEQUEUE.format("on_commit"))

        try:
            for _ in range(ATTEMPTS):
                for visibility in ("on_commit", "immediate"):
                    look.execute("CALL lab_aq.put(1)")
                    take(visibility)
                    positive, vain = listen()
                    found[f"beside_{visibility}"] += positive
                    found["in_vain"] += vain
                    if visibility == "on_commit":
                        # and with a message beside it that is free
                        look.execute("CALL lab_aq.put(1)")
                        positive, vain = listen()
                        found["beside_another"] += positive and not vain
                    taker.execute("COMMIT")
                    found["after_commit"] += listen()[0]
            look.execute("CALL lab_aq.put(1)")
            take("on_commit")
            taker.execute("ROLLBACK")
            positive, vain = listen(AFTER_ROLLBACK)
            found["after_rollback"] = float(positive and not vain)
        finally:
            sessions.close()
            harness.drop(look)
    return found
