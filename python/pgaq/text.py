"""Text output: aligned tables, human-readable numbers, JSON, a progress line."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Sequence, TextIO


def number(value: float | None, digits: int = 0) -> str:
    """1234567.8 -> '1,234,568'; None -> '-'."""
    return "-" if value is None else f"{value:,.{digits}f}"


def duration(microseconds: float | None) -> str:
    """Microseconds in the unit that suits: '420 us', '3.1 ms', '1.20 s'."""
    if microseconds is None:
        return "-"
    if microseconds < 999.5:
        return f"{microseconds:.0f} us"
    if microseconds < 999_500:
        return f"{microseconds / 1000:.3g} ms"
    if microseconds < 999_500_000:
        return f"{microseconds / 1_000_000:.3g} s"
    return f"{microseconds / 1_000_000:,.0f} s"


def printable(word: str) -> str:
    """Without characters that steer a terminal or change the order of what it shows: control characters (also C1), marks of direction, ends of lines."""
    if word.isprintable():
        return word
    return "".join(c if c.isprintable() else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c, f"\\x{ord(c):02x}") for c in word)


def identifier(name: str) -> str:
    """A name as SQL reads it."""
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def say(words: str = "", stream: TextIO | None = None) -> None:
    """One line.  With console() and write_json() of pgaq.command.output, the only way by which the command writes what may come from the database."""
    (stream or sys.stdout).write(printable(words) + "\n")


def escaped(document: str) -> str:
    """A JSON document in one line, with the characters of its strings that are not printable as escapes."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in document)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """An aligned table; the first `left` columns are text, the rest are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(head)]

    def line(row: Sequence[str]) -> str:
        done = [cell.ljust(width) if i < left else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        return "  ".join(done).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(head), rule, *(line(row) for row in cells)])


@dataclass(frozen=True)
class Digits:
    """A number of a JSON document, as it is written there: 1.10 is not 1.1, and no digit is lost."""

    digits: str

    def __str__(self) -> str:
        return self.digits


def from_json(words: str | bytes) -> Any:
    """A JSON document whose numbers keep their digits."""
    return json.loads(words, parse_float=Digits, parse_int=Digits)


def to_json(value: Any, other: Callable[[Any], Any] | None = None, indent: int | None = None, level: int = 0) -> str:
    """A JSON document, also with such numbers; `other` turns what JSON does not have into what it has."""
    if isinstance(value, Digits):
        return value.digits
    if isinstance(value, dict):
        pieces, ends = (
            [f"{escaped(json.dumps(key, ensure_ascii=False))}: {to_json(each, other, indent, level + 1)}" for key, each in value.items()],
            "{}",
        )
    elif isinstance(value, (list, tuple)):
        pieces, ends = [to_json(each, other, indent, level + 1) for each in value], "[]"
    else:
        return escaped(json.dumps(value, default=other, ensure_ascii=False))
    if indent is None or not pieces:
        return ends[0] + ", ".join(pieces) + ends[1]
    line = "\n" + " " * indent * (level + 1)
    return ends[0] + line + ("," + line).join(pieces) + line[:-indent] + ends[1]


class Progress:
    """One line that is drawn again and again; on a file, a line per step instead."""

    def __init__(self, total: float, stream=None) -> None:
        self.total = total
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self.began = time.monotonic()
        self._drawn = 0.0
        self._step = ""

    def show(self, step: str, detail: str = "") -> None:
        """The step we are in, and how it goes."""
        now = time.monotonic()
        if not self.live:
            if step != self._step:
                self._step = step
                print(f"{step} ...", file=self.stream, flush=True)
            return
        if now - self._drawn < 0.1 and step == self._step:
            return
        self._drawn, self._step = now, step
        share = min(1.0, (now - self.began) / self.total)
        width = 28
        bar = "#" * int(share * width)
        columns = shutil.get_terminal_size().columns - 1
        text = f"[{bar:<{width}}] {share:>4.0%}  {step}  {detail}"
        print(f"\r{text[:columns]:<{columns}}", end="", file=self.stream, flush=True)

    def clear(self) -> None:
        """Remove the line, before something else is printed."""
        if self.live:
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r{' ' * columns}\r", end="", file=self.stream, flush=True)
