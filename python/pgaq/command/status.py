"""pgaq status: one screen."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import typer
from rich.text import Text

from pgaq import db, text
from pgaq.command import output, rates
from pgaq.command.common import asking, chosen, command, duration, span
from pgaq.command.doctor import findings, write_findings
from pgaq.subjects import CACHE, QUEUES, SERVER, SESSIONS, WAITS


# as many queues as the screen shows, or those of these names: of thousands the others are not read
SHOWN = replace(
    QUEUES,
    query=f"""
SELECT *, count(*) OVER () AS found FROM ({QUEUES.query}) q
-- a default exception queue without messages says nothing
WHERE (%(most)s::int IS NULL OR kind !~ '^exception' OR backlog > 0) AND (%(names)s::text[] IS NULL OR queue = ANY(%(names)s))
ORDER BY backlog DESC NULLS LAST, queue LIMIT %(most)s::int""",
    parameters=("most", "names"),
)


def add_to(app: typer.Typer) -> None:
    command(app, "status")(status)


def queues(conn: db.Connection, **which: Any) -> tuple[list[dict[str, Any]], int]:
    """Rows, and how many there are without the limit."""
    rows = output.ask(conn, SHOWN, **which)
    return rows, max([row.pop("found") for row in rows], default=0)


def read(conn: db.Connection, seconds: float, most: int | None) -> tuple[dict[str, Any], int]:
    """All that the screen shows, with a maximum number of queues, and the number of queues that it would show without that limit.

    Parts that the role may not see are empty, and notes says so.  Rates are measured over this many seconds; with 0 they
    are averages since the queues came into use.
    """
    said = []
    (earlier, found), then = queues(conn, most=most), time.monotonic()
    state: dict[str, Any] = {"server": output.ask(conn, SERVER)[0], "queues": earlier}
    for name, subject in (("message_cache", CACHE), ("sessions", SESSIONS), ("waits", WAITS)):
        state[name], note = output.ask_or_note(conn, subject)
        said += [note] if note else []
    state["advice"], _ = findings(conn, thorough=False)
    if seconds:
        time.sleep(max(0.0, then + seconds - time.monotonic()))
        now, (state["queues"], _) = time.monotonic(), queues(conn, names=None if most is None else [row["queue"] for row in earlier])
        rates.put_rates(QUEUES, state["queues"], {rates.key(QUEUES, row): row for row in earlier}, now - then)
    state["notes"] = said
    return state, found


def status(
    everything: bool = typer.Option(False, "--all", "-a", help="All queues and waits, not only as many as a screen shows."),
    last: str = duration(
        "1s", "--last", help="Rates of this time, for which the command waits; 0: averages since the queues came into use."
    ),
) -> None:
    """One screen: queues, rates, backlogs, consumers, waits, advice."""
    seconds = (span(last) or timedelta()).total_seconds()
    most = None if everything or chosen().json else 12
    with asking() as conn:
        state, found = read(conn, seconds, most)
    if chosen().json:
        output.write_json(state)
        return
    out = output.console()
    out.print(heading(state))
    text.say()
    output.show(rates.live(QUEUES) if seconds else QUEUES, state["queues"], title=True)
    if most is not None and found > most:
        text.say(f"... and {found - most} more: pgaq status --all")
    if state["waits"]:
        text.say()
        output.show(WAITS, state["waits"][: None if everything else 5], title=True)
    text.say()
    if state["advice"]:
        write_findings(state["advice"], most, "pgaq status --all")
    else:
        text.say("Nothing is wrong.")
    output.notes(state["notes"])


def heading(state: dict[str, Any]) -> Text:
    """The server in a line."""
    server = state["server"]
    cache = state["message_cache"][0] if state["message_cache"] else None
    words = [f"pgaq {server['pgaq']} in {server['database']}", f"PostgreSQL {server['server']}, up {output.seconds(server['uptime'])}"]
    if server["standby"]:
        words.append("standby")
    if state["sessions"]:
        words.append(f"{sum(bool(row['active']) for row in state['sessions'])} of {len(state['sessions'])} sessions active")
    if cache:
        words.append(f"message cache {output.drawn(cache['used'], 'share')} of {output.size(cache['total_bytes'])}")
    return Text("; ".join(words), style="bold")
