"""pgaq doctor: what is wrong, what will be, and what the role can do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from rich.text import Text

from pgaq import db, text
from pgaq.command import output
from pgaq.command.common import FAILURE, asking, chosen, command, failure
from pgaq.subjects import CACHE, PARAMETERS, RULES, SERVER, WORKERS, Rule

STYLES = {"problem": "bold red", "warning": "yellow", "note": "cyan"}


def add_to(app: typer.Typer) -> None:
    command(app, "doctor")(doctor)


def findings(conn: db.Connection, *, thorough: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """What the rules find, the worst first, and the rules that the role may not ask."""
    found: list[dict[str, Any]] = []
    unasked = []
    for rule in RULES:
        if not (rule.live or thorough):
            continue
        try:
            with conn.transaction():  # in a transaction of the caller, the next rule can be asked after an error
                found += [_finding(rule, row) for row in db.rows(conn, rule.query)]
        except db.Error as error:
            if failure(error, conn).sqlstate != "42501":
                raise
            unasked.append(rule.name)
    return sorted(found, key=lambda each: list(STYLES).index(each["level"])), unasked


def _finding(rule: Rule, row: dict[str, Any]) -> dict[str, Any]:
    return {"rule": rule.name, "level": rule.level, "case": row["case"], "found": row["found"], "do": rule.advice(row)}


def write_findings(found: list[dict[str, Any]], most: int | None = None, more: str = "") -> None:
    """A line for each, and what to do; each rule has a maximum number of lines, because there can be thousands of queues."""
    out = output.console()
    written: Counter[str] = Counter()
    for each in found:
        written[each["rule"]] += 1
        if most is not None and written[each["rule"]] > most:
            continue
        case = f"{each['case']}: " if each["case"] else ""
        out.print(Text.assemble((f"{each['level']:<8}", STYLES[each["level"]]), f"{case}{each['found']}. {each['do']}"), soft_wrap=False)
    for rule, number in written.items():
        if most is not None and number > most:
            text.say(f"... and {number - most} more of {rule}: {more}")


def doctor() -> int:
    """Look for what is wrong: versions, settings, sizes, workers, privileges."""
    with asking() as conn:
        server = output.ask(conn, SERVER)[0]
        cache, note = output.ask_or_note(conn, CACHE)
        parameters = output.ask(conn, PARAMETERS)
        workers, worker_note = output.ask_or_note(conn, WORKERS)
        sizes = db.row(
            conn,
            """SELECT count(*) AS tables, COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'aq_data' AND c.relkind = 'r'""",
        )
        rights = db.row(
            conn,
            """SELECT count(*) AS queues, count(*) FILTER (WHERE may_enqueue) AS enqueue, count(*) FILTER (WHERE may_dequeue) AS dequeue,
                      count(*) FILTER (WHERE pg_has_role(owner, 'USAGE')) AS owned FROM aq.queues""",
        )
        found, unasked = findings(conn, thorough=True)
    bad = any(each["level"] == "problem" for each in found)
    if chosen().json:
        output.write_json({
            "server": server, "client": db.versions(), "message_cache": cache[0] if cache else None, "tables": sizes, "rights": rights,
            "parameters": parameters, "workers": workers, "findings": found, "not_examined": unasked,
        })  # fmt: skip
        return FAILURE if bad else 0
    out = output.console()
    lines = [
        ("Server", f"PostgreSQL {server['server']}, up {output.seconds(server['uptime'])}{', standby' if server['standby'] else ''}"),
        ("Extension", f"pgaq {server['pgaq']}{', pgaq_oracle ' + server['pgaq_oracle'] if server['pgaq_oracle'] else ''} in database {server['database']}"),
        ("Client", ", ".join(f"{name} {version}" for name, version in db.versions().items())),
        ("Role", f"{server['role']}{', member of pg_monitor' if server['monitor'] else ''}: sees {rights['queues']} queues, owns {rights['owned']}, enqueues into {rights['enqueue']}, dequeues from {rights['dequeue']}"),
        ("Tables", f"{sizes['tables']} with {output.size(sizes['bytes'])}"),
    ]  # fmt: skip
    if cache:
        lines.append(
            (
                "Message cache",
                f"{output.size(cache[0]['used_bytes'])} of {output.size(cache[0]['total_bytes'])} used; {cache[0]['known_partitions']} of {cache[0]['max_partitions']} partitions",
            )
        )
    lines += [("Worker", f"{row['database']}: {row['state']}") for row in workers if row["database"] == server["database"]]
    changed = ", ".join(f"{row['name']} = {row['setting']}{row['unit'] or ''}" for row in parameters)
    lines.append(("Parameters", changed or PARAMETERS.empty))
    for title, words in lines:
        out.print(Text.assemble((f"{title:<15}", "bold"), words))
    text.say()
    write_findings(found, 100, "pgaq doctor --json")
    if not found:
        text.say("Nothing is wrong.")
    output.notes(
        [
            *([note] if note else []),
            *([worker_note] if worker_note else []),
            *([f"Not examined, for lack of privileges: {', '.join(unasked)}."] if unasked else []),
        ]
    )
    return FAILURE if bad else 0
