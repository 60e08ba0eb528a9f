"""pgaq status: one screen."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import typer
from rich.text import Text

from pgaq import db, text
from pgaq.command import output, rates
from pgaq.command.common import asking, chosen, command, duration, span
from pgaq.command.doctor import findings, write_findings
from pgaq.subjects import CACHE, QUEUES, SERVER, SESSIONS, WAITS


def add_to(app: typer.Typer) -> None:
    command(app, "status")(status)


def read(conn: db.Connection, seconds: float) -> dict[str, Any]:
    """All that the screen shows; what the role may not see is empty, with a sentence in notes.

    Rates are those of so many seconds; 0: averages since the queues came into use.
    """
    said = []
    earlier, then = output.ask(conn, QUEUES), time.monotonic()
    state: dict[str, Any] = {"server": output.ask(conn, SERVER)[0], "queues": earlier}
    for name, subject in (("message_cache", CACHE), ("sessions", SESSIONS), ("waits", WAITS)):
        state[name], note = output.ask_or_note(conn, subject)
        said += [note] if note else []
    state["advice"], _ = findings(conn, thorough=False)
    if seconds:
        time.sleep(max(0.0, then + seconds - time.monotonic()))
        now, state["queues"] = time.monotonic(), output.ask(conn, QUEUES)
        rates.put_rates(QUEUES, state["queues"], {rates.key(QUEUES, row): row for row in earlier}, now - then)
    state["notes"] = said
    return state


def status(
    everything: bool = typer.Option(False, "--all", "-a", help="All queues and waits, not only as many as a screen shows."),
    last: str = duration("1s", "--last", help="Rates of this time, for which the command waits; 0: averages since the queues came into use."),
) -> None:
    """One screen: queues, rates, backlogs, consumers, waits, advice."""
    seconds = (span(last) or timedelta()).total_seconds()
    with asking() as conn:
        state = read(conn, seconds)
    if chosen().json:
        output.write_json(state)
        return
    out = output.console()
    out.print(heading(state))
    most = None if everything else 12
    # a default exception queue without messages says nothing
    queues = [row for row in state["queues"] if everything or not row["kind"].startswith("exception") or row["backlog"]]
    text.say()
    output.show(rates.live(QUEUES) if seconds else QUEUES, queues[:most], title=True)
    if most is not None and len(queues) > most:
        text.say(f"... and {len(queues) - most} more: pgaq status --all")
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
