"""A report as one HTML page: no scripts, nothing to load, light and dark, printable.

The document comes from aq.report_awr and similar functions; aq.report_text writes the same document as text. The names in it
can be hostile, so every text of it goes through `escaped`.
"""

from __future__ import annotations

import html
import math
from decimal import Decimal
from importlib import resources
from itertools import groupby
from typing import Any, Iterable, NamedTuple

from pgaq.text import Digits

WIDTH, HEIGHT, RIGHT = 640, 200, 30  # of the plot, and the margin beside it
BARS = 740  # width of a chart with horizontal bars
LABEL = 50  # characters of a label beside a bar
# a wait class has the same colour in every chart
CLASSES = {
    "CPU": 0, "ON CPU": 0, "DB CPU": 0, "User I/O": 1, "System I/O": 2, "Commit": 3, "Concurrency": 4, "Application": 5, "Configuration": 6, "Network": 7,
    "Other": 8, "Idle": 9, "PostgreSQL, not timed": 9, "Scheduler": 10, "Administrative": 10, "Queueing": 11,
}  # fmt: skip
OTHERS = (1, 3, 0, 4, 10, 11, 6, 7, 5, 2, 8, 9)  # the first colours differ clearly


class Series(NamedTuple):
    """One series of a chart; a value that is None is a gap."""

    name: str
    color: str
    values: list[float | None]


def page(report: dict[str, Any]) -> str:
    """The whole page."""
    title = escaped(report["title"])
    head = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in report["header"])
    links = "\n".join(f'<a href="#{escaped(each["id"])}">{escaped(each["title"])}</a>' for each in report["sections"])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{resources.files('pgaq').joinpath('report.css').read_text()}</style></head>\n<body><main><h1>{title}</h1>"
        f'<dl>{head}</dl>{_advice(report.get("advice") or [])}\n<nav aria-label="Sections">{links}</nav>\n{"".join(map(_section, report["sections"]))}'
        "<footer>Made by pgaq. A figure that is missing could not be computed.</footer></main></body></html>\n"
    )


def escaped(value: Any) -> str:
    """Text for an element or an attribute. Characters that are not printable, such as marks of direction, become spaces; None is empty."""
    return "" if value is None else html.escape("".join(c if c.isprintable() else " " for c in str(value)))


def number(value: Any, digits: int | None = None) -> str:
    """A number with thousands separators, by default with the digits that it has, up to three; another value as text."""
    exact = _exact(value)
    if exact is None:
        return escaped(value)
    return f"{exact:,.{min(max(-exact.as_tuple().exponent, 0), 3) if digits is None else digits}f}"


def _exact(value: Any) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, (int, float, Digits)) and not isinstance(value, bool) else None


def _section(section: dict[str, Any]) -> str:
    notes = "".join(f'<p class="note">{escaped(note)}</p>' for note in section["notes"])
    return f'<section id="{escaped(section["id"])}"><h2>{escaped(section["title"])}</h2>{notes}{_chart(section["chart"])}{_table(section)}</section>\n'


def _table(section: dict[str, Any]) -> str:
    columns, rows = section["columns"], section["rows"]
    if not columns:
        return ""
    if not rows:
        return '<p class="empty">no rows</p>'
    head = "".join(
        f'<th scope="col"{"" if each["type"] == "text" else " class=n"}>{escaped(each["name"])}<small>{escaped(each.get("unit"))}</small></th>'
        for each in columns
    )
    body = "\n".join(f"<tr>{''.join(map(_cell, row, columns))}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(section["title"])}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any, column: dict[str, Any]) -> str:
    if column["type"] == "text":
        return f"<td{' class=long' if len(str(value)) > 40 else ''}>{escaped(value)}</td>"
    exact = _exact(value)
    share = f' style="--share:{min(max(exact, 0), 100):.1f}%"' if column["type"] == "percent" and exact is not None else ""
    return f"<td class=n{share}>{number(value, column.get('digits', 0))}</td>"


def _advice(advice: list[dict[str, Any]]) -> str:
    parts = []
    for each in advice:
        figures = "".join(f"<li>{escaped(name)}: {number(value)} {escaped(unit)}</li>" for name, value, unit in each["figures"])
        parts.append(
            f'<div class="advice {each["severity"] if each["severity"] in ("high", "medium") else "low"}"><b>{escaped(each["severity"])}</b>'
            f"<h3>{escaped(each['title'])}</h3><p>{escaped(each['why'])}</p><p>{escaped(each['do'])}</p><ul>{figures}</ul></div>\n"
        )
    return f'<section id="advice"><h2>Advice</h2>{"".join(parts)}</section>' if parts else ""


def _chart(chart: dict[str, Any] | None) -> str:
    """A figure: area (stacked), line, histogram (columns side by side), or bar (horizontal)."""
    if not chart:
        return ""
    series = [
        Series(
            each["name"],
            f"color:var(--c{CLASSES.get(each['name'], OTHERS[n % 12])})",
            [None if v is None else float(str(v)) for v in each["values"]],
        )
        for n, each in enumerate(chart["series"])
    ]
    labels = [str(label) for label in chart["x"]["values"]]
    title, unit = escaped(chart["title"]), chart["y"]["unit"]
    legend = "".join(f'<li><i style="{each.color}"></i>{escaped(each.name)}</li>' for each in series)
    if all(value is None for each in series for value in each.values):
        drawn = '<p class="empty">nothing to draw</p>'
    else:
        box, parts = _bars(labels, series, unit) if chart["kind"] == "bar" else _upright(chart["kind"], labels, series, unit)
        drawn = f'<svg viewBox="{box}" role="img" aria-label="{title}">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{title}</figcaption>{drawn}{f'<ul class=legend>{legend}</ul>' if len(series) > 1 else ''}</figure>"


def _bars(labels: list[str], series: list[Series], unit: str) -> tuple[str, list[str]]:
    """Horizontal bars, those of one label below each other, each with its value at its end."""
    bar, gap = (13, 2) if len(series) > 1 else (16, 0)
    row = bar * len(series) + 6
    shown = [label if len(label) <= LABEL else f"{label[: LABEL - 2]}.." for label in labels]
    left = 10 + max(map(_width, shown))
    values = [value for each in series for value in each.values if value is not None]
    scale = (BARS - left - 12 - max(_width(f"{_short(value)} {unit}") for value in values)) / (max(*values, 0) or 1)
    parts = []
    for x, label in enumerate(labels):
        parts.append(f'<text class="y" x="-6" y="{x * row + row / 2 + 4}">{escaped(shown[x])}</text>')
        for s, each in enumerate(series):
            value, y = each.values[x], x * row + 3 + s * bar
            if value is not None:
                width = round(max(value, 0) * scale, 1)
                parts.append(_rect(each, label, value, unit, 0, y, width, bar - gap))
                parts.append(f'<text class="total" x="{width + 5}" y="{y + bar / 2 + 4 - gap / 2}">{_short(value)} {escaped(unit)}</text>')
    return f"{-left} 0 {BARS} {len(labels) * row}", parts


def _upright(kind: str, labels: list[str], series: list[Series], unit: str) -> tuple[str, list[str]]:
    """Lines, columns, or stacked areas. Areas are columns while they are few: a value is of an interval, not of a moment."""
    stacked, columns = kind == "area", kind == "histogram" or len(labels) == 1 or kind == "area" and len(labels) <= 24
    band = WIDTH / (len(labels) if columns else max(len(labels) - 1, 1))
    places = range(len(labels))
    below = [[sum(each.values[x] or 0 for each in series[:s]) if stacked else 0 for x in places] for s in range(len(series))]
    step, top = _scale(max((value or 0) + under for each, unders in zip(series, below) for value, under in zip(each.values, unders)))
    ticks = [n * step for n in range(round(top / step) + 1)]
    left = 12 + max(_width(_short(tick)) for tick in ticks)

    def y(value: float) -> float:
        return round(HEIGHT - value / top * HEIGHT, 1)

    def points(where: Iterable[int], values: list[float]) -> str:
        return " ".join(f"{x * band:.1f},{y(values[x])}" for x in where)

    parts = [f'<text x="{-left}" y="-10">{escaped(unit)}</text>']
    parts += [
        f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y(t)}" y2="{y(t)}"/><text class="y" x="-6" y="{y(t) + 4}">{_short(t)}</text>'
        for t in ticks
    ]
    for x in places[:: math.ceil(len(labels) * (max(map(_width, labels)) + 14) / WIDTH)]:
        half = _width(labels[x]) / 2  # outer labels stay within the frame
        at = max(half - left, min(WIDTH + RIGHT - half, (x + (0.5 if columns else 0)) * band))
        parts.append(f'<text class="x" x="{at:.1f}" y="{HEIGHT + 16}">{escaped(labels[x])}</text>')
    for s, (each, under) in enumerate(zip(series, below)):
        over = [(value or 0) + low for value, low in zip(each.values, under)]
        if columns:
            width, offset = (0.8 * band, 0.0) if stacked else (0.8 * band / len(series), s * 0.8 * band / len(series))
            parts += [
                _rect(each, labels[x], value, unit, x * band + 0.1 * band + offset, y(over[x]), width, HEIGHT - y(value))
                for x in places
                if (value := each.values[x])
            ]
        elif stacked:
            parts.append(f'<polygon style="{each.color}" points="{points(places, over)} {points(reversed(places), under)}"/>')
        else:
            for gap, run in groupby(places, lambda x: each.values[x] is None):
                where = list(run)
                if not gap and len(where) > 1:
                    parts.append(f'<polyline style="{each.color}" points="{points(where, over)}"/>')
                elif not gap:
                    parts.append(f'<circle style="{each.color}" cx="{where[0] * band:.1f}" cy="{y(over[where[0]])}" r="2.5"/>')
    if not columns:
        # pointing at a place shows the values of all series
        for x in places:
            values = "\n".join(
                [escaped(labels[x]), *(f"{escaped(each.name)}: {_short(each.values[x])} {escaped(unit)}" for each in series)]
            )
            parts.append(
                f'<rect class="hover" x="{(x - 0.5) * band:.1f}" y="0" width="{band:.1f}" height="{HEIGHT}"><title>{values}</title></rect>'
            )
    return f"{-left} -22 {WIDTH + left + RIGHT} {HEIGHT + 44}", parts


def _rect(series: Series, label: str, value: float, unit: str, x: float, y: float, width: float, height: float) -> str:
    title = f"{escaped(label)}, {escaped(series.name)}: {_short(value)} {escaped(unit)}"
    return f'<rect style="{series.color}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}"><title>{title}</title></rect>'


def _width(word: str) -> int:
    """Width of a label, in units of the SVG."""
    return 7 * len(word)


def _short(value: float | None) -> str:
    """A number that is short enough for an axis: 1.5k, 20M."""
    if value is None:
        return "-"
    factor, sign = next((f, s) for f, s in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")) if abs(value) >= f or f == 1)
    return f"{value / factor:.{2 if abs(value) >= 0.01 else 6}f}".rstrip("0").rstrip(".") + sign


def _scale(highest: float) -> tuple[float, float]:
    """The distance of the grid lines, 1, 2 or 5 times a power of ten with four to six lines; and the last of them."""
    highest = highest if highest > 0 else 1
    power = 10.0 ** math.floor(math.log10(highest / 5))
    step = power * next(n for n in (1, 2, 5, 10) if highest / power / 5 <= n)
    return step, math.ceil(highest / step) * step
