"""The form of a subject."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from pgaq.text import identifier

# unit -> what a value of it is
UNITS = {
    "text": "a name or a sentence",
    "count": "a number of things",
    "rate": "a number per second",
    "share": "a fraction from 0 to 1",
    "seconds": "seconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "bytes": "bytes",
    "time": "a point in time",
    "interval": "an interval of PostgreSQL",
    "flag": "true or false",
    "json": "a JSON value",
}


@dataclass(frozen=True)
class Column:
    """A column of a subject's query."""

    name: str  # in the query and in JSON
    title: str  # over the column
    unit: str = "text"
    text: str = ""  # what it is, in a phrase
    rank: int = 0  # 0: always shown; of the others the highest goes first where there is too little room; 9: not in tables
    counter: bool = False  # grows since the start of the server: a live view shows it per second
    rate_of: str = ""  # an average since this counter of the row began; a live view shows the rate between two readings
    live: str = ""  # title over that rate


@dataclass(frozen=True)
class Subject:
    """Something to look at: a query with named parameters, and its columns."""

    name: str
    title: str
    text: str
    query: str
    columns: tuple[Column, ...]
    key: str  # the column that names a row
    within: tuple[str, ...] = ()  # the columns that tell rows of the same name apart
    order: str = ""  # the column by which a live view sorts at first, descending
    parameters: tuple[str, ...] = ()  # of the query, all required
    needs: str = ""  # the right that it takes, if not every role has it
    empty: str = "none"

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def across_versions(query: str) -> str:
    """The query, which may name columns that are new in 0.2.0, without their table; in a catalog of 0.1.0 they are null."""
    absent = (
        "SELECT NULL::text AS key, NULL::timestamptz AS paused, NULL::text AS paused_by, NULL::text AS pause_reason, "
        "NULL::bigint AS max_depth, NULL::text AS on_full, NULL::integer AS max_running, NULL::text AS rate"
    )
    return f"SELECT found.* FROM ({absent}) AS absent, LATERAL ({query}) AS found\n"


@dataclass(frozen=True)
class Rule:
    """Something that is wrong or will be: a query with a row for each case."""

    name: str
    level: str  # problem, warning or note
    text: str  # what the rule looks for
    query: str  # columns: case (the name of the queue, setting or session, or null), found (a sentence), and what `do` names
    do: str  # what helps; {column} is replaced, see Value
    needs: str = ""
    live: bool = True  # cheap enough, and of interest, for a status; the others are for a thorough look

    def advice(self, row: dict[str, Any]) -> str:
        return self.do.format_map({name: Value(value) for name, value in row.items()}).strip()


class Value:
    """A value in a sentence: {x} as it is, {x:word} for a shell, {x:value} of an option, {x:literal} and {x:identifier} for SQL.  Null is nothing, as a literal NULL."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, form: str) -> str:
        text = "" if self.value is None else str(self.value)
        if form == "literal":
            return "NULL" if self.value is None else "'" + text.replace("'", "''") + "'"
        if form == "identifier":
            return identifier(text)
        if form == "value" and self.value is not None:
            return shlex.quote(text)
        if form == "word" and self.value is not None:
            return ("-- " if text.startswith("-") else "") + shlex.quote(text)  # such a name is no option
        return text
