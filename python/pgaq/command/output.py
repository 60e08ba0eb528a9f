"""Draws subjects: tables and lists in a terminal, plain columns in a pipe, JSON."""

from __future__ import annotations

import datetime
import decimal
import os
import sys
import uuid
from typing import Any, Iterable, Sequence, TextIO, cast

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pgaq import db, text
from pgaq.command.common import Failure, chosen, failure, without_trailing_spaces
from pgaq.subjects import Column, Subject

RIGHT_HAND = {"count", "rate", "share", "seconds", "us", "ns", "bytes"}
WIDE = 100_000  # of a pipe: nothing is cut


class _Trimmed:
    """A pipe or file that gets tables without the spaces that fill their lines."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, words: str) -> int:
        return self.stream.write(without_trailing_spaces(words))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Console(Console):
    """A console that draws printable characters, and control sequences of its own only."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, str):
            renderable = text.printable(renderable)
        elif isinstance(renderable, Text) and not renderable.plain.isprintable():
            # without the styles of its parts, whose places are others now
            renderable = Text(
                text.printable(renderable.plain),
                renderable.style,
                justify=renderable.justify,
                overflow=renderable.overflow,
                no_wrap=renderable.no_wrap,
                end=renderable.end,
            )
        for segment in super().render(renderable, options):
            yield segment if segment.control or not segment.text.strip("\r\n") else Segment(text.printable(segment.text), segment.style)


def console(stderr: bool = False) -> Console:
    """A console on standard output, or on standard error."""
    stream = sys.stderr if stderr else sys.stdout
    plain = not chosen().color or bool(os.environ.get("NO_COLOR"))
    width = None if stream.isatty() or os.environ.get("COLUMNS") else WIDE
    return _Console(
        file=stream if stream.isatty() else cast(TextIO, _Trimmed(stream)),
        no_color=plain,
        width=width,
        highlight=False,
        soft_wrap=False,
        emoji=False,
        markup=False,
    )


# -- values


def seconds(value: float) -> str:
    """0.42 -> '0.4 s', 400 -> '6.7 min'."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def length(value: float) -> str:
    """A setting in seconds, exactly, in the largest unit that needs few digits: 90 -> '1.5 min'."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms")):
        if value >= size and round(value / size, 2) * size == value:
            return f"{value / size:.12g} {unit}"
    return f"{value:.12g} s"


def size(value: float) -> str:
    """Bytes in the unit that suits."""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"


def drawn(value: Any, unit: str) -> str:
    """A value as a person reads it; null is a dash."""
    if value is None:
        return "-"
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if unit == "flag":
        return "yes" if value else "no"
    if unit == "time" and isinstance(value, datetime.datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, datetime.timedelta):
        return length(value.total_seconds())
    if isinstance(value, (dict, list)) or (unit == "json" and not isinstance(value, str)):
        value = text.to_json(value, plain)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if unit == "rate":
            return text.number(value, 1 if 0 < value < 100 else 0)
        if unit == "count":
            return text.number(value, 0 if value == int(value) else 2)
        shapes = {
            "share": lambda v: f"{100 * v:.0f} %",
            "seconds": seconds,
            "us": text.duration,
            "ns": lambda v: text.duration(v / 1000),
            "bytes": size,
        }
        if unit in shapes:
            return shapes[unit](value)
    return text.printable(str(value))


def plain(value: Any) -> Any:
    """A value of PostgreSQL that JSON does not have."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, memoryview)):
        return "\\x" + bytes(value).hex()
    return str(value)


def write_json(value: Any, indent: int | None = 2) -> None:
    """A JSON document; one line if indent is null."""
    sys.stdout.write(text.to_json(value, plain, indent) + "\n")
    sys.stdout.flush()


# -- subjects


def ask(conn: db.Connection, subject: Subject, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of a subject."""
    return db.rows(conn, subject.query, {name: parameters.get(name) for name in subject.parameters} if subject.parameters else None)


def ask_or_note(conn: db.Connection, subject: Subject, **parameters: Any) -> tuple[list[dict[str, Any]], str]:
    """The same; where the role has no right, no rows and a sentence instead of an error."""
    try:
        return ask(conn, subject, **parameters), ""
    except db.Error as error:
        found = failure(error, conn)
        if found.sqlstate != "42501":
            raise
        return [], f"{subject.title}: permission denied; it takes {subject.needs or 'a privilege'}."


def widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max([len(column.title), *(len(row[i]) for row in cells)]) for i, column in enumerate(columns)]


def fitting(subject: Subject, cells: list[list[str]], room: int) -> list[int]:
    """Numbers of the columns for which there is room; those that say nothing in any row, and the least important ones, go first."""
    wide = widths(subject.columns, cells)
    names = [column.name for column in subject.columns]
    name = names.index(subject.key)
    # of rows with the same name, what tells them apart is as important as the name
    alike = len({row[name] for row in cells}) < len(cells)
    rank = [0 if alike and column.name in subject.within else column.rank for column in subject.columns]
    keep = [i for i in range(len(names)) if rank[i] < 9]
    for i in list(keep):
        if subject.columns[i].rank and cells and all(row[i] == "-" for row in cells):
            keep.remove(i)

    def total() -> int:
        # of a long text the first forty characters must be seen
        return sum(min(wide[i], 40) + 2 for i in keep)

    for i in sorted(keep, key=lambda i: (-rank[i], -i)):
        if total() <= room or rank[i] == 0:
            break
        keep.remove(i)
    return keep


def shared(wide: list[int], room: int) -> list[int]:
    """Widths of columns that fit, with two spaces behind each: the widest give first."""
    given = [min(each, room) for each in wide]
    while sum(given) + 2 * len(given) > room and max(given) > 1:
        given[given.index(max(given))] -= 1
    return given


def table(subject: Subject, rows: list[dict[str, Any]], room: int, selected: int | None = None, title: bool = False) -> Table:
    """A table of the rows, of this width in characters."""
    cells = [[drawn(row.get(column.name), column.unit) for column in subject.columns] for row in rows]
    keep = fitting(subject, cells, room)
    wide = widths(subject.columns, cells)
    given = dict(zip(keep, shared([wide[i] for i in keep], room)))
    made = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        title=subject.title if title else None,
        title_justify="left",
        title_style="bold",
    )
    for i in keep:
        column = subject.columns[i]
        made.add_column(
            column.title, justify="right" if column.unit in RIGHT_HAND else "left", no_wrap=True, overflow="ellipsis", width=given[i]
        )
    for number, row in enumerate(cells):
        made.add_row(*(Text(row[i], overflow="ellipsis", no_wrap=True) for i in keep), style="reverse" if number == selected else "")
    return made


def payloads(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """In JSON, a jsonb payload that was read as text is what it is."""
    for row in rows:
        if chosen().json and kind == "jsonb" and isinstance(row["payload"], str):
            row["payload"] = text.from_json(row["payload"])
    return rows


def show(subject: Subject, rows: list[dict[str, Any]], *, title: bool = False) -> None:
    """The rows of a subject, in the form that was asked for."""
    if chosen().json:
        write_json(rows)
        return
    out = console()
    if not rows:
        out.print(f"{subject.title}: {subject.empty}." if title else f"{subject.empty[:1].upper()}{subject.empty[1:]}.")
        return
    out.print(table(subject, rows, out.width, title=title))


def show_one(subject: Subject, row: dict[str, Any]) -> None:
    """One row, a line for each column."""
    if chosen().json:
        write_json(row)
        return
    out = console()
    wide = max(len(column.title) for column in subject.columns)
    for column in subject.columns:
        value = drawn(row.get(column.name), column.unit)
        if value not in ("-", ""):
            out.print(Text.assemble((f"{column.title:<{wide}}  ", "bold"), value), soft_wrap=True)


def say(sentence: str, **facts: Any) -> None:
    """What was done: a sentence, or the facts as JSON."""
    if chosen().json:
        write_json(facts)
    else:
        console().print(sentence, soft_wrap=True)


def notes(lines: Iterable[str]) -> None:
    """What could not be shown, on standard error."""
    out = console(stderr=True)
    for line in lines:
        out.print(line, style="yellow", soft_wrap=True)


def write_failure(found: Failure, name: str, as_json: bool) -> None:
    """The one line on standard error."""
    if as_json:
        error = {"message": found.message, "do": found.do or None, "sqlstate": found.sqlstate, "exit": found.code}
        sys.stderr.write(text.to_json({"error": error}) + "\n")
    else:
        text.say(f"{name}: {found.line()}", sys.stderr)
