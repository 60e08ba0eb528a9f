"""pgaq top: live tables, with keys to sort and to drill down."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Iterator, Optional

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from pgaq import db
from pgaq.command import output, rates
from pgaq.command.common import USAGE, Failure, asking, chosen, command, duration, one_of, span
from pgaq.command.status import heading
from pgaq.subjects import (
    CACHE,
    CONSUMERS,
    LATCH_CHILDREN,
    LATCH_MISSES,
    LATCHES,
    QUEUES,
    SERVER,
    SESSION_STATISTICS,
    SESSION_WAITS,
    SESSIONS,
    SHARDS,
    WAITS,
    Subject,
)

VIEWS = {"queues": QUEUES, "sessions": SESSIONS, "waits": WAITS, "latches": LATCHES}
# a row of a view -> what is seen inside it, and the name of the parameter
INSIDE = {
    "queues": ("queue", (CONSUMERS, SHARDS)),
    "sessions": ("pid", (SESSION_WAITS, SESSION_STATISTICS)),
    "latches": ("latch", (LATCH_CHILDREN, LATCH_MISSES)),
}
KEYS = {
    "q": "quit", "1 2 3 4": "queues, sessions, waits, latches", "up down": "choose a row", "enter": "look into it", "esc": "back",
    "s S": "sort by the next, the previous column", "r": "reverse the order", "p": "pause", "+ -": "slower, faster", "space": "now", "?": "these keys",
}  # fmt: skip
ARROWS = {b"[A": "up", b"[B": "down", b"OA": "up", b"OB": "down", b"[5~": "page up", b"[6~": "page down", b"[C": "enter", b"[D": "esc"}


def add_to(app: typer.Typer) -> None:
    command(app, "top")(top)


@dataclass
class Screen:
    """What is looked at, and the last two readings of it."""

    view: str = "queues"
    chosen: int = 0
    inside: Any = None
    sort: dict[str, str] = field(default_factory=dict)
    reverse: bool = False
    paused: bool = False
    help: bool = False
    every: float = 2.0
    head: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    before: dict[str, tuple[float, dict[Any, dict[str, Any]]]] = field(default_factory=dict)
    note: str = ""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return INSIDE[self.view][1] if self.inside is not None else (VIEWS[self.view],)

    # -- reading

    def read(self, conn: db.Connection) -> None:
        """New rows, with counters turned into rates."""
        self.note = ""
        parameter = {INSIDE[self.view][0]: self.inside} if self.inside is not None else {}
        self.head = {"server": output.ask(conn, SERVER)[0], "sessions": [], "message_cache": output.ask_or_note(conn, CACHE)[0]}
        for subject in self.subjects:
            rows, note = output.ask_or_note(conn, subject, **parameter)
            self.note = note or self.note
            self.rows[subject.name] = self._rates(subject, rows, parameter)

    def _rates(self, subject: Subject, rows: list[dict[str, Any]], parameter: dict[str, Any]) -> list[dict[str, Any]]:
        counters = [column.name for column in subject.columns if column.counter]
        if not counters and not any(column.rate_of for column in subject.columns):
            return rows
        now, name = time.monotonic(), f"{subject.name} {parameter}"
        then, old = self.before.get(name, (now, {}))
        self.before[name] = (now, {rates.key(subject, row): dict(row) for row in rows})
        rates.put_rates(subject, rows, old, now - then)
        if now <= then:
            return rows
        for row in rows:
            last = old.get(rates.key(subject, row))
            for counter in counters:
                row[f"{counter} per second"] = (row[counter] - last[counter]) / (now - then) if last else None
        return rows

    # -- order

    def ordered(self, subject: Subject) -> list[dict[str, Any]]:
        name = self.sort.get(subject.name, subject.order)
        rows = self.rows.get(subject.name, [])
        if not name:
            return rows
        text = any(isinstance(row[name], str) for row in rows)
        # numbers begin with the largest, names with the first; nulls are last
        known = sorted((row for row in rows if row[name] is not None), key=lambda row: row[name], reverse=text == self.reverse)
        return known + [row for row in rows if row[name] is None]

    def sort_by(self, step: int) -> None:
        subject = self.subjects[0]
        names = [column.name for column in subject.columns]
        now = self.sort.get(subject.name, subject.order or names[0])
        self.sort[subject.name] = names[(names.index(now) + step) % len(names)]

    @staticmethod
    def _place(subject: Subject, name: str) -> int:
        return [column.name for column in subject.columns].index(name)

    # -- drawing

    def draw(self, width: int, height: int) -> Group:
        parts: list[Any] = [self._bar(width)]
        if self.head:
            parts.append(Text(heading(self.head).plain, style="dim", no_wrap=True, overflow="ellipsis"))
        if self.help:
            return Group(*parts, Text(), *(Text(f"{keys:<10} {what}") for keys, what in KEYS.items()))
        for number, subject in enumerate(self.subjects):
            rows = self.ordered(subject)
            room = max(3, (height - 6) // len(self.subjects) - 3)
            first = max(0, self.chosen - room + 1) if number == 0 else 0
            seen = rows[first : first + room]
            parts += [Text(), Text(self._title(subject, len(rows)), style="bold")]
            if rows:
                parts.append(
                    output.table(self._live(subject), seen, width, self.chosen - first if number == 0 and self.inside is None else None)
                )
            else:
                parts.append(Text(self.note or f"{subject.empty[:1].upper()}{subject.empty[1:]}."))
        return Group(*parts)

    def _bar(self, width: int) -> Text:
        views = [(f" {number} {name} ", "reverse" if name == self.view else "") for number, name in enumerate(VIEWS, 1)]
        state = "paused" if self.paused else f"every {self.every:g} s"
        return Text.assemble(*views, f"  {state}  ? keys  q quit", no_wrap=True, overflow="crop")

    def _title(self, subject: Subject, number: int) -> str:
        inside = f" of {self.inside}" if self.inside is not None else ""
        sort = self.sort.get(subject.name, subject.order)
        by = f", by {self._live(subject).columns[self._place(subject, sort)].title}{' upwards' if self.reverse else ''}" if sort else ""
        return f"{subject.title}{inside}: {number}{by}"

    def _live(self, subject: Subject) -> Subject:
        """The subject with rates instead of counters, when there are two readings."""
        rows = self.rows.get(subject.name, [])

        def live(column: Any) -> Any:
            name = f"{column.name} per second"
            return (
                replace(column, name=name, title=f"{column.title}/s", unit="rate")
                if column.counter and rows and name in rows[0]
                else column
            )

        return replace(subject, columns=tuple(live(column) for column in rates.live(subject).columns))

    # -- keys

    def press(self, key: str) -> bool:
        """What a key does; true: the rows must be read again."""
        rows = self.ordered(self.subjects[0])
        if key in "1234" and len(key) == 1:
            self.view, self.inside, self.chosen = list(VIEWS)[int(key) - 1], None, 0
            return True
        if key in ("up", "k"):
            self.chosen = max(0, self.chosen - 1)
        elif key in ("down", "j"):
            self.chosen = max(0, min(len(rows) - 1, self.chosen + 1))
        elif key in ("page up", "page down"):
            self.chosen = max(0, min(len(rows) - 1, self.chosen + (10 if key == "page down" else -10)))
        elif key == "enter" and self.inside is None and self.view in INSIDE and self.chosen < len(rows):
            self.inside = rows[self.chosen][VIEWS[self.view].key]
            return True
        elif key == "esc":
            back = self.inside is not None
            self.inside, self.help = None, False
            return back
        elif key in ("s", "S"):
            self.sort_by(1 if key == "s" else -1)
        elif key == "r":
            self.reverse = not self.reverse
        elif key == "p":
            self.paused = not self.paused
        elif key == "?":
            self.help = not self.help
        elif key in ("+", "-"):
            self.every = min(60.0, self.every * 2) if key == "+" else max(0.25, self.every / 2)
        return key == " "


@contextlib.contextmanager
def raw_keys() -> Iterator[int]:
    """The terminal gives each key at once, without showing it."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield number
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def read_key(number: int, patience: float) -> str | None:
    """The next key, or null after that time."""
    if not select.select([number], [], [], max(0.0, patience))[0]:
        return None
    byte = os.read(number, 1)
    if byte == b"":
        return "q"
    if byte in (b"\r", b"\n"):
        return "enter"
    if byte in (b"\x7f", b"\x08"):
        return "esc"
    if byte != b"\x1b":
        return byte.decode("latin-1")
    # an arrow comes as several bytes at once, Escape alone
    more = b""
    while len(more) < 8 and select.select([number], [], [], 0.03)[0]:
        more += os.read(number, 1)
        if more in ARROWS:
            break
    return ARROWS.get(more, "esc")


def top(
    view: str = typer.Option("queues", "--view", metavar="VIEW", autocompletion=one_of(VIEWS), help=f"Begin with {', '.join(VIEWS)}."),
    every: str = duration("2s", "--every", "-s", help="Time between readings, at least 100ms."),
    times: Optional[int] = typer.Option(
        None, "--times", "-n", min=1, help="Stop after this number of readings; write them one below the other.", show_default=False
    ),
) -> None:
    """Live: queues, sessions with their waits, latches; keys to sort and to drill down."""
    if view not in VIEWS:
        raise Failure(f"there is no view '{view}'", f"Views: {', '.join(VIEWS)}", USAGE)
    pause = (span(every) or timedelta()).total_seconds()
    if pause < 0.1:
        raise Failure(f"--every {every} is too short", "At least 100ms", USAGE)
    screen = Screen(view=view, every=pause)
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and times is None and not chosen().json
    with asking() as conn:
        if interactive:
            _live(conn, screen)
            return
        for number in range(times or 1):
            if number:
                time.sleep(pause)
            screen.read(conn)
            _frame(screen)


def _frame(screen: Screen) -> None:
    """One reading on a pipe or in a file."""
    if chosen().json:
        import datetime

        at = datetime.datetime.now(datetime.timezone.utc)
        output.write_json(
            {"time": at, "view": screen.view, "rows": screen.ordered(screen.subjects[0]), "note": screen.note or None}, indent=None
        )
        return
    subject = screen.subjects[0]
    if not screen.note:
        output.show(screen._live(subject), screen.ordered(subject), title=True)
    output.notes([screen.note] if screen.note else [])


def _live(conn: db.Connection, screen: Screen) -> None:
    out = output.console()
    with raw_keys() as keyboard, Live(console=out, screen=True, auto_refresh=False, transient=True) as live:
        due = 0.0
        while True:
            if time.monotonic() >= due and not screen.paused:
                screen.read(conn)
                due = time.monotonic() + screen.every
            live.update(screen.draw(out.width, out.height), refresh=True)
            key = read_key(keyboard, 3600 if screen.paused else due - time.monotonic())
            if key == "q":
                return
            if key is not None and screen.press(key):
                screen.read(conn)
            if key == "p":
                due = 0.0
