"""Ten dequeues of messages that are there, each after a listen or as a subscriber: what they get of the channel's latch."""

from __future__ import annotations

from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Sessions, Site
from pgaq.lab.workloads import harness

CALLS = 10
ONE = {"listen": "CALL lab_aq.listen_once(1, 10, NULL, NULL)", "subscriber": "CALL lab_aq.subscriber_once(1, 10, NULL)"}


def ten_calls(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The latch's gets by the views, and how many messages the calls have taken."""
    with site.server.connect() as look, Sessions(site) as sessions:
        harness.prepare(look, 1)
        try:
            sessions.prepare(["dequeuer"])
            conn = sessions.connections["dequeuer"]
            conn.execute(harness.PATH)
            look.execute("CALL lab_aq.put(1)")
            conn.execute(ONE[point["method"]])  # everything has been used once
            for _ in range(CALLS):
                look.execute("CALL lab_aq.put(1)")
            before = Counters(look)
            got = sum(int(db.value(conn, ONE[point["method"]])) for _ in range(CALLS))
            change = Counters(look) - before
        finally:
            sessions.close()
            harness.drop(look)
    return {"calls": float(CALLS), "got": float(got), "channel_gets": change("latch", harness.CHANNEL)}
