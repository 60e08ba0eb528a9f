"""The figures of the page: SVG by matplotlib, in the colours of the page."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

# Colours that stand for those of the page, which has two schemes.
INK, FAINT = "#010203", "#040506"
SERIES = ["#a1b2c1", "#a1b2c2", "#a1b2c3", "#a1b2c4", "#a1b2c5", "#a1b2c6"]
MARKS = ["o", "s", "^", "D", "v", "P"]
STYLES = ["-", "--", "-.", ":", "-", "--"]
# on a page without styles: readable on white and on black
PLAIN = {INK: "#6e7781", FAINT: "#8c959f", **dict(zip(SERIES, ["#3b82f6", "#d97706", "#16a34a", "#a855f7", "#b45309", "#db2777"]))}
REPLACE = {INK: "currentColor", FAINT: "var(--faint)", **{color: f"var(--c{n})" for n, color in enumerate(SERIES, 1)}}

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "text.color": INK, "axes.edgecolor": FAINT, "axes.labelcolor": INK,
        "xtick.color": INK, "ytick.color": INK, "grid.color": FAINT, "grid.alpha": 0.35, "axes.grid": True, "axes.spines.top": False,
        "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.6, "lines.markersize": 4,
        "figure.facecolor": "none", "axes.facecolor": "none", "savefig.transparent": True,
    }
)  # fmt: skip


def figure(card: dict[str, Any], processors: int, colors: dict[str, str] | None = None) -> str:
    """Published and ours on the same axes, and both normalised; ours alone without published points. Empty without curves.

    The colours are those of the page, if no others are given.
    """
    ours = [s for s in card["series"] if s["x"]]
    theirs = card["published"]
    if not ours and not theirs:
        return ""
    here = "simulated" if card["simulated"] else "here"
    panels = 3 if ours and theirs else 1
    made, axes = pyplot.subplots(1, panels, figsize=(3.9 * panels, 3.0), squeeze=False)
    try:
        if panels == 3:
            published, mine, normal = axes[0]
            _draw(published, theirs, card, "published")
            _draw(mine, ours, card, here)
            _same(published, mine, theirs, ours, card)
            _draw(
                normal,
                [_normal(s, card["processors"] if card["x"] == "sessions" else 1) for s in theirs],
                card,
                "both, normalised",
                dotted=True,
            )
            _draw(
                normal,
                [_normal(s, (card["processors"] if card["simulated"] else processors) if card["x"] == "sessions" else 1) for s in ours],
                card,
                "both, normalised",
            )
            if mine.get_xscale() == "linear":
                _linear(normal)
            normal.legend(loc="best")
            normal.set_ylabel("of the highest")
            if card["x"] == "sessions":
                normal.set_xlabel("sessions per processor")
        else:
            _draw(axes[0][0], ours or theirs, card, here if ours else "published")
        made.tight_layout()
        return _save(made, card["id"], colors or REPLACE)
    finally:
        pyplot.close(made)


def _draw(axes: Axes, series: list[dict[str, Any]], card: dict[str, Any], title: str, dotted: bool = False) -> None:
    for n, one in enumerate(series):
        style = {"color": SERIES[n % len(SERIES)], "marker": MARKS[n % len(MARKS)], "linestyle": ":" if dotted else STYLES[n % len(STYLES)]}
        label = f"{one['name']} (published)" if dotted else one["name"]
        axes.errorbar(
            one["x"],
            one["mean"],
            yerr=one["error"],
            capsize=2,
            label=label,
            markerfacecolor="none" if dotted else SERIES[n % len(SERIES)],
            **style,
        )
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(card["x"])
    axes.set_ylabel(card["unit"])
    xs = [x for one in series for x in one["x"]]
    if xs and min(xs) > 0 and max(xs) / min(xs) >= 16:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        _linear(axes)
    if card["log"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if len(series) > 1 or dotted:
        axes.legend(loc="best")


def _linear(axes: Axes) -> None:
    """A scale of whole numbers, where there are enough of them: of sessions, of sleeps."""
    axes.set_xscale("linear")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))


def _same(a: Axes, b: Axes, theirs: list[dict[str, Any]], ours: list[dict[str, Any]], card: dict[str, Any]) -> None:
    """Both panels have the same axes, on a logarithmic scale when one would be a flat line on the other's."""
    values = [y for s in [*theirs, *ours] for y in s["mean"] if y > 0]
    highest = [max((y for s in group for y in s["mean"]), default=0) for group in (theirs, ours)]
    if values and min(highest) > 0 and max(highest) / min(highest) > 10:
        for axes in (a, b):
            axes.set_yscale("log")
            axes.set_ylim(min(values) / 2, max(values) * 2)
    elif not card["log"]:
        top = max(a.get_ylim()[1], b.get_ylim()[1])
        a.set_ylim(0, top)
        b.set_ylim(0, top)
    left, right = min(a.get_xlim()[0], b.get_xlim()[0]), max(a.get_xlim()[1], b.get_xlim()[1])
    if a.get_xscale() != b.get_xscale():
        _linear(a)
        _linear(b)
    a.set_xlim(left, right)
    b.set_xlim(left, right)


def _normal(one: dict[str, Any], processors: int) -> dict[str, Any]:
    """In shares of its highest point; sessions for each processor."""
    top = max(one["mean"], default=0) or 1
    scale = processors or 1
    return {**one, "x": [x / scale for x in one["x"]], "mean": [y / top for y in one["mean"]], "error": [e / top for e in one["error"]]}


def _save(made: Any, name: str, colors: dict[str, str]) -> str:
    """The figure as an element of the page: its ids are its own, its colours those of the page."""
    out = io.StringIO()
    matplotlib.rcParams["svg.hashsalt"] = name
    made.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    for sentinel, color in colors.items():
        text = text.replace(sentinel, color)
    width = re.search(r'width="([\d.]+)pt"', text)
    return text.replace("<svg", f'<svg aria-hidden="true" focusable="false" style="width:{float(width[1]) if width else 300:.0f}pt"', 1)
