"""The report: one self-contained HTML page, made from results.json; and two of them side by side."""

from __future__ import annotations

import html
import re
import statistics
import textwrap
from pathlib import Path
from typing import Any

from pgaq.lab import plot, predicates, verdict

CLASSES = {
    "shows": "good", "weak": "half", "does not show": "bad", "unexpected": "bad", "by design not": "plain", "cannot be compared": "plain", "not run": "plain",
    "adds up": "good", "does not add up": "bad",
}  # fmt: skip
SIGNS = {
    "shows": "●",
    "weak": "◐",
    "does not show": "○",
    "unexpected": "!",
    "by design not": "◇",
    "cannot be compared": "–",
    "not run": "·",
}
STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --box: #f5f6f8; --line: #d5d9de; --faint: #79818a; --link: #0b5cad;
  --good: #11692f; --half: #8a5300; --bad: #b3261e; --c1: #0b62b8; --c2: #b8460b; --c3: #1a7f37; --c4: #8250df; --c5: #9a6700; --c6: #a4175d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --paper: #14171a; --box: #1e2327; --line: #3a4046; --faint: #8d96a0; --link: #7db8f5;
  --good: #5fd17e; --half: #e8b04a; --bad: #ff8a80; --c1: #6cb2ff; --c2: #ff9d66; --c3: #66d487; --c4: #c3a3ff; --c5: #e8c15c; --c6: #ff8ac2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
a { color: var(--link); } a:focus-visible, summary:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -999rem; } .skip:focus { position: static; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; } h3 { font-size: 1.05rem; margin: 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; } caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid var(--line); } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td p { margin: 0; } .wide { min-width: 18rem; }
article { background: var(--box); border: 1px solid var(--line); border-radius: .4rem; padding: .8rem 1rem; margin: 1rem 0; overflow-wrap: anywhere; }
article > header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; justify-content: space-between; }
.verdict { font-weight: 600; white-space: nowrap; } .good { color: var(--good); } .half { color: var(--half); } .bad { color: var(--bad); } .plain { color: var(--ink); }
figure { margin: .8rem 0; overflow-x: auto; } figure svg { max-width: none; height: auto; } figcaption { font-size: .9em; }
code, pre { font: .9em ui-monospace, monospace; } pre { overflow-x: auto; background: var(--paper); padding: .5rem; border: 1px solid var(--line); }
.small { font-size: .9em; } dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0; } dd { margin: 0; }
@media (max-width: 40rem) { body { padding: .6rem; } dl { grid-template-columns: 1fr; } dt { font-weight: 600; } article { padding: .6rem; } }
@media print { :root { color-scheme: light; } article { break-inside: avoid; background: none; } a { color: inherit; } details > *:not(summary) { display: block; } }
"""


OF_VERDICTS = "A verdict is that of one run. Figures near the edge of a predicate give another one in the next run of the same machine; compare the figures and their intervals."


def text(value: Any) -> str:
    return html.escape(str(value))


def table(head: list[str], rows: list[list[str]], caption: str = "", numbers: tuple[int, ...] = ()) -> str:
    """Cells are HTML; the first column names the row."""
    css = [' class="n"' if i in numbers else "" for i in range(len(head))]
    top = "".join(f'<th scope="col"{c}>{text(name)}</th>' for name, c in zip(head, css))
    body = "".join(
        "<tr>" + "".join(f'<th scope="row">{cell}</th>' if i == 0 else f"<td{css[i]}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption or "table")}"><table>{named}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def mark(said: str) -> str:
    """A verdict in words, with a sign, in its colour."""
    if not said:
        return ""
    sign = SIGNS.get(said, "")
    return f'<span class="verdict {CLASSES.get(said, "plain")}"><span aria-hidden="true">{sign}</span> {text(said)}</span>'


def page(results: dict[str, Any]) -> str:
    """The whole page."""
    about = results["about"]
    machine = about["machine"]
    cards = {source["number"]: [c for c in results["cards"] if c["source"] == source["number"]] for source in results["sources"]}
    parts = [
        _summary(results),
        _verdicts(results),
        _needs(results.get("needs") or []),
        _contradictions(results),
        _model(results.get("model") or {}),
        *(
            f'<h2 id="source-{text(source["number"])}">Source {text(source["number"])}: {text(source["title"])}</h2><p>{text(source["about"])}</p>'
            + "".join(_card(card, machine["cpus"]) for card in cards[source["number"]] if _measured(card))
            for source in results["sources"]
        ),
    ]
    return document(f"Experiments, {about['began'][:16].replace('T', ' ')}", "".join(parts))


def document(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{text(title)}</title><style>{STYLE}</style></head><body>'
        f'<a class="skip" href="#main">Skip to the content</a><main id="main"><h1>{text(title)}</h1>{body}</main></body></html>\n'
    )


def _summary(results: dict[str, Any]) -> str:
    about, machine = results["about"], results["about"]["machine"]
    counts = {each: sum(c["verdict"] == each for c in results["cards"]) for each in SIGNS}
    accounts = [c["account"] for c in results["cards"] if c["account"]]
    said = ", ".join(f"{number} {text(each)}" for each, number in counts.items() if number)
    return (
        f"<p>{len(results['cards'])} experiments of {len(results['sources'])} sources: {said}. "
        f"The figures add up in {sum(a == 'adds up' for a in accounts)} of {len(accounts)} checks.</p>"
        f'<dl class="small"><dt>Machine</dt><dd>{text(machine["cpus"])} processors, {text(machine["cpu_model"])}, {text(machine["memory_mb"])} MB, {text(machine["kernel"])}</dd>'
        f"<dt>Profile</dt><dd>{text(about['profile'])}, {about['measurements']} measurements, {about['failed']} failed</dd>"
        f"<dt>Other work</dt><dd>{about['other_cpu']:.2f} processors busy with other work, on average</dd>"
        f"<dt>Version</dt><dd>{text(about['commit'])}</dd></dl>"
    )


def _measured(card: dict[str, Any]) -> bool:
    """Not of an experiment that was not asked for, or not begun."""
    return card["verdict"] != verdict.NOT_RUN or card["why"] != verdict.NOT_MEASURED


def _verdicts(results: dict[str, Any]) -> str:
    rest = [f"{text(c['id'])} {text(c['title'])}" for c in results["cards"] if not _measured(c)]
    rows = [
        [
            f'<a href="#{text(c["id"])}">{text(c["id"])}</a>', text(c["title"]), mark(c["verdict"]), mark(c["account"]) if c["account"] in CLASSES else text(c["account"]),
            text(c["why"] or c["finding"]),
        ]
        for c in results["cards"] if _measured(c)
    ]  # fmt: skip
    folded = f"<details><summary>{len(rest)} not run</summary><p>{'; '.join(rest)}</p></details>" if rest else ""
    return (
        '<h2 id="verdicts">Verdicts</h2>'
        + table(["id", "experiment", "finding", "account", "in words"], rows, "All experiments" if not rest else "Experiments of this run")
        + folded
    )


def _needs(found: list[dict[str, Any]]) -> str:
    """What would show the findings that do not show here."""
    if not found:
        return ""
    rows = [
        [
            f'<a href="#{text(n["id"])}">{text(n["id"])}</a>', mark(n["verdict"]), text(n["text"]),
            ", ".join(f'<a href="#{text(s["id"])}">{text(s["id"])}</a> (simulated: {text(s["verdict"])})' for s in n["simulated"]) or "not simulated",
        ]
        for n in found
    ]  # fmt: skip
    return '<h2 id="needs">What would show the other findings</h2>' + table(
        ["id", "finding", "what would show it", "on simulated processors"], rows, "Findings that are weak or do not show on this machine"
    )


def _contradictions(results: dict[str, Any]) -> str:
    rows = []
    verdicts = {c["id"]: c["verdict"] for c in results["cards"]}
    shown = {c["id"] for c in results["cards"] if _measured(c)}
    for c in sorted(results["contradictions"], key=lambda c: c["number"]):
        measured = "".join(f"<p><code>{text(f['what'])}</code> = {text(f['value'])}</p>" for f in c["figures"])
        cards = ", ".join(
            f'<a href="#{text(i)}">{text(i)}</a> ({text(verdicts[i])})' if i in shown else f"{text(i)} ({text(verdicts[i])})"
            for i in c["cards"]
        )
        rows.append(
            [
                str(c["number"]),
                text(c["source"]),
                f'<div class="wide">{text(c["text"])}</div>',
                f'<div class="wide">{text(c["concludes"])}</div>{measured}',
                cards,
            ]
        )
    if not rows:
        return ""
    return '<h2 id="contradictions">Errors and contradictions of the sources</h2>' + table(
        ["no.", "source", "it says", "what the lab says", "experiments"], rows, "Contradictions"
    )


def _model(model: dict[str, Any]) -> str:
    if not model:
        return ""
    parts = ['<h2 id="model">Cost model and scaling</h2>']
    if "phases" in model:
        rows = [
            [text(kind), *(f"{model['phases'][kind][phase]:g}" for phase in "SWUQ"), text(f["ours"]), text(f["printed"]), text(f["right"])]
            for kind, f in model["formulas"].items()
        ]
        parts.append(
            table(
                ["operation", "S", "W", "U", "Q", "a message with F false wake-ups", "printed by the source", "what its traces say"],
                rows,
                "Phases fitted from the traced cases",
                (1, 2, 3, 4),
            )
        )
    if model.get("predictions"):
        rows = []
        for p in model["predictions"]:
            for kind in ("latch", "channel", "mutex"):
                if kind in p:
                    counted, expected = p[kind]["counted"], p[kind]["predicted"]
                    off = f"{100 * (counted - expected) / expected:+.1f} %" if expected else ""
                    rows.append(
                        [f"{p['sessions']}, repeat {p['repeat']}", kind, f"{p['waits']:.2f}", f"{counted:.2f}", f"{expected:.2f}", off]
                    )
        parts.append(
            table(
                ["sessions", "operation", "waits per message", "counted", "predicted", "residual"],
                rows,
                "Operations per message, predicted from the phases",
                (2, 3, 4, 5),
            )
        )
    for method, law in model.get("laws", {}).items():
        parts.append(f"<p>Scaling of {text(method)}: {text(law['said'])}.</p>")
    return "".join(parts)


def _card(card: dict[str, Any], processors: int) -> str:
    name = text(card["id"])
    parts = [
        f'<article id="{name}" aria-labelledby="{name}-title"><header><h3 id="{name}-title">{name}. {text(card["title"])}</h3>'
        f"<div>{mark(card['verdict'])}{(', ' + mark(card['account'])) if card['account'] else ''}</div></header>"
    ]
    if card["finding"]:
        parts.append(f"<p>{text(card['finding'])}</p>")
    if card["why"]:
        parts.append(f"<p>{text(card['why'])}</p>")
    drawn = plot.figure(card, processors)
    if drawn:
        parts.append(
            f'<figure role="group" aria-label="{text(card["title"])}">{drawn}<figcaption>Vertical lines: 95 % interval of the mean.</figcaption></figure>'
            + _data(card)
        )
    if card["values"]:
        rows = [[f"<code>{text(v['name'])}</code>", text(v["published"]), text(v["ours"] or "–")] for v in card["values"]]
        parts.append(
            table(
                ["figure", "published", "simulated" if card["simulated"] else "here"],
                rows,
                f"Figures of {card['id']}{_seconds(card)}",
                (1, 2),
            )
        )
    parts.append(_curves(card))
    parts.append(_outcomes(card))
    if card["note"]:
        parts.append(f'<p class="small">{text(card["note"])}</p>')
    parts.append(_repeat(card))
    return "".join(parts) + "</article>"


def _data(card: dict[str, Any]) -> str:
    """What is drawn, as a table for those who do not see it."""
    rows = [[text(s["name"]), f"{x:g}", f"{y:,.6g}", f"{e:,.3g}"] for s in card["series"] for x, y, e in zip(s["x"], s["mean"], s["error"])]
    rows += [[f"{text(s['name'])} (published)", f"{x:g}", f"{y:,.6g}", ""] for s in card["published"] for x, y in zip(s["x"], s["mean"])]
    return f"<details><summary>The curves as a table</summary>{table(['curve', card['x'] or 'x', card['unit'] or 'value', '±'], rows, 'Curves of ' + card['id'], (1, 2, 3))}</details>"


def _seconds(card: dict[str, Any]) -> str:
    """How long was measured there and here, where totals stand beside each other."""
    here = [run["seconds"] for run in card["runs"]]
    if not card["published_seconds"] or not here:
        return ""
    return f"; published of {card['published_seconds']:g} s, here of {here[0]:g} s"


def _curves(card: dict[str, Any]) -> str:
    """The published curves beside ours, a line for each x."""
    curves = card["curves"]
    if not curves:
        return ""
    head = [curves["of"] or "x"]
    for column in curves["columns"]:
        head += [
            f"{column['name']}, {'computed from published figures' if column['computed'] else 'published'}",
            f"{column['name']}, {'simulated' if card['simulated'] else 'here'}",
        ]
    rows = [
        [f"{x:,g}", *(text(cell) for column in curves["columns"] for cell in (column["published"][n], column["ours"][n] or "–"))]
        for n, x in enumerate(curves["x"])
    ]
    return table(head, rows, f"Published curves of {card['id']}{_seconds(card)}", tuple(range(1, len(head))))


def _outcomes(card: dict[str, Any]) -> str:
    if not card["outcomes"] and not card["checks"]:
        return ""
    rows = [[f"<code>{text(o['text'])}</code>", text(o["said"]), text(o["verdict"])] for o in card["outcomes"]]
    rows += [[f"<code>{text(o['text'])}</code>", text(o["said"]), f"account: {text(o['verdict'])}"] for o in card["checks"]]
    return f"<details><summary>How it was judged</summary>{table(['predicate', 'in figures', ''], rows, 'Predicates of ' + card['id'])}</details>"


def _repeat(card: dict[str, Any]) -> str:
    """Commands, settings, lines, reports."""
    where = f"{card['processors']} simulated processors" if card["simulated"] else f"{card['source']}, lines {card['lines']}"
    parts = [f"<dt>Source</dt><dd>{text(where)}</dd>"]
    if card["runs"]:
        parts.append(f"<dt>Repeat it</dt><dd><code>{text(card['command'])}</code></dd>")
    for run in card["runs"]:
        settings = ", ".join(
            f"{k} = {v}" for k, v in {**run["settings"], **{k: v for k, v in run["options"].items() if not k.startswith("pgaq.")}}.items()
        )
        parts.append(
            f"<dt>Run {text(run['name'])}</dt><dd>{text(run['title'])}: {run['points']} points of {run['seconds']:g} s, {run['repeats']} times; "
            f"{run['other_cpu']:.2f} processors busy with other work. {text(settings)}</dd>"
        )
    if card["reports"]:
        links = ", ".join(f'<a href="{text(r["file"])}">{text(r["of"])}</a>' for r in card["reports"])
        parts.append(f"<dt>Workload reports</dt><dd>{links}</dd>")
    for failed in card["failed"]:
        parts.append(f"<dt>Failed</dt><dd>{text(failed)}</dd>")
    return f'<details><summary>Commands, settings, reports</summary><dl class="small">{"".join(parts)}</dl></details>'


def compare(first: dict[str, Any], second: dict[str, Any], names: tuple[str, str]) -> str:
    """Two runs side by side: verdicts and figures of each experiment."""
    columns = ["id", "experiment", names[0], names[1], "figures"]
    apart, alike = pairs(first, second)
    heads = []
    for results, name in zip((first, second), names):
        machine = results["about"]["machine"]
        heads.append(
            f"<dt>{text(name)}</dt><dd>{text(results['about']['profile'])}, {text(machine['cpus'])} processors, {text(machine['cpu_model'])}, {text(results['about']['commit'])}</dd>"
        )
    body = (
        table(columns, [_pair(*both) for both in apart], f"{len(apart)} experiments with another verdict or account")
        if apart
        else "<p>No verdict and no account differs.</p>"
    )
    body += f"<details><summary>{len(alike)} experiments with the same verdict and account</summary>{table(columns, [_pair(*both) for both in alike], 'The same in both')}</details>"
    body += "".join(f"<p>{text(line)}</p>" for line in alone(first, second, names))
    return document(
        "Two runs compared",
        f"<dl>{''.join(heads)}</dl><p>{text(share(len(apart), len(apart) + len(alike)))}. {text(OF_VERDICTS)}</p>{body}",
    )


def pairs(first: dict[str, Any], second: dict[str, Any]) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """The cards that both runs have measured: those whose verdict or account differs, and the others."""
    others = {c["id"]: c for c in second["cards"] if c["verdict"] != verdict.NOT_RUN}
    both = [(card, others[card["id"]]) for card in first["cards"] if card["id"] in others and card["verdict"] != verdict.NOT_RUN]
    both = [pair for pair in both if any(card["verdict"] != verdict.CANNOT for card in pair)]
    differ = [card["verdict"] != other["verdict"] or card["account"] != other["account"] for card, other in both]
    return [pair for pair, apart in zip(both, differ) if apart], [pair for pair, apart in zip(both, differ) if not apart]


def alone(first: dict[str, Any], second: dict[str, Any], names: tuple[str, str]) -> list[str]:
    """Which experiments only one of the runs has, in words."""
    ids = [[c["id"] for c in results["cards"] if c["verdict"] != verdict.NOT_RUN] for results in (first, second)]
    said = []
    for mine, theirs, name in ((ids[0], ids[1], names[0]), (ids[1], ids[0], names[1])):
        only = [each for each in mine if each not in theirs]
        if only:
            said.append(f"Only in {name}: {', '.join(only)}.")
    return said


def share(apart: int, both: int) -> str:
    """How many differ, in words, with the interval that the number gives."""
    low, high = predicates.wilson(apart, both)
    return f"{apart} of {both} experiments differ in verdict or account ({100 * low:.0f} to {100 * high:.0f} %, Wilson's 95 % interval)"


def _pair(card: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """A row of the comparison."""
    theirs = {v["name"]: v["ours"] for v in other["values"]}
    figures = "".join(
        f"<p><code>{text(v['name'])}</code>: {text(v['ours'])} | {text(theirs.get(v['name'], '-'))}</p>" for v in card["values"]
    )
    said = [
        mark(c["verdict"]) + (", " + mark(c["account"]) if c["account"] and card["account"] != other["account"] else "")
        for c in (card, other)
    ]
    return [text(card["id"]), text(card["title"]), *said, figures]


def markdown(results: dict[str, Any]) -> str:
    """The verdicts as a table for a page of the documentation, and the cost model."""
    about, machine = results["about"], results["about"]["machine"]
    made = (
        f"Made on {about['began'][:10]} with profile {about['profile']} by `./lab` at {about['commit']}: {machine['cpus']} processors ({machine['cpu_model']}), "
        f"{about['measurements']} measurements, {about['other_cpu']:.1f} processors busy with other work on average."
    )
    lines = [
        textwrap.fill(made, 118), "",
        "| id | experiment | finding | figures | in words |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for card in results["cards"]:
        said = card["finding"] if card["verdict"] in ("does not show", "weak") else card["why"] or card["finding"]
        if card["verdict"] in ("does not show", "weak", "unexpected") and card["note"]:
            said = f"{said} {card['note']}"
        lines.append(f"| {card['id']} | {card['title']} | {card['verdict']} | {card['account']} | {said} |")
    if results.get("needs"):
        lines += [
            "",
            "What would show the findings that are weak or do not show on this machine, and what the simulation says of them:",
            "",
        ]
        lines += ["| id | finding | what would show it | on simulated processors |", "|---|---|---|---|"]
        for n in results["needs"]:
            simulated = ", ".join(f"{s['id']} (simulated: {s['verdict']})" for s in n["simulated"]) or "not simulated"
            lines.append(f"| {n['id']} | {n['verdict']} | {n['text']} | {simulated} |")
    found = sorted(results.get("contradictions", []), key=lambda c: c["number"])
    if found:
        lines += [
            "",
            "Errors and contradictions of the sources, and what was measured about them:",
            "",
            "| no. | it says | what the lab says | measured |",
            "|---|---|---|---|",
        ]
        for c in found:
            measured = "; ".join(f"`{f['what']}` = {f['value']}" for f in c["figures"])
            lines.append(f"| {c['number']} | {c['text']} | {c['concludes']} | {measured} |")
    model = results.get("model") or {}
    if "formulas" in model:
        lines += [
            "",
            "| operation | a message with F false wake-ups | printed by the source | what its traces add up to |",
            "|---|---|---|---|",
        ]
        lines += [f"| {kind} | {f['ours']} | {f['printed']} | {f['right']} |" for kind, f in model["formulas"].items()]
    lines += _residuals(model.get("predictions") or [])
    for method, law in model.get("laws", {}).items():
        lines += ["", textwrap.fill(f"Scaling of {method}: {law['said']}.", 118)]
    return "\n".join(lines) + "\n"


def _residuals(predictions: list[dict[str, Any]]) -> list[str]:
    """Counted gets beside those that the cost model predicts, means of the repeats."""
    lines = []
    for sessions in sorted({p["sessions"] for p in predictions}):
        mine = [p for p in predictions if p["sessions"] == sessions]
        cells = [str(sessions), f"{statistics.mean(p['waits'] for p in mine):.2f}"]
        for kind in ("mutex", "channel"):
            counted, expected = (statistics.mean(p[kind][what] for p in mine) for what in ("counted", "predicted"))
            cells += [f"{counted:.2f}", f"{expected:.2f}", f"{100 * (counted - expected) / expected:+.1f} %" if expected else ""]
        lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return []
    head = ["sessions", "waits", "mutex", "predicted", "residual", "channel", "predicted", "residual"]
    return [
        "",
        "Gets for each message, counted and as the formulas predict them:",
        "",
        f"| {' | '.join(head)} |",
        "|" + "---:|" * len(head),
        *lines,
    ]


BEGIN, END = "<!-- results of the lab: begin -->\n", "<!-- results of the lab: end -->"


def read_markdown(path: Path) -> str:
    """A page with the two marks; ValueError without them."""
    found = path.read_text(encoding="utf-8")
    if BEGIN not in found or END not in found:
        raise ValueError(f"{path} has no marks {BEGIN.strip()} and {END}")
    return found


def write_markdown(results: dict[str, Any], path: Path, pictures: list[str] | None = None) -> None:
    """Replace what stands between the two marks of a page; the pictures go to img/ beside it: those given, or those that it has."""
    text = read_markdown(path)
    if pictures is None:
        pictures = re.findall(r"\(img/lab-(\w+)\.svg\)", text)
    drawn = []
    for card in results["cards"]:
        svg = plot.figure(card, results["about"]["machine"]["cpus"], plot.PLAIN) if card["id"] in pictures else ""
        if svg:
            (path.parent / "img").mkdir(exist_ok=True)
            (path.parent / "img" / f"lab-{card['id']}.svg").write_text(svg, encoding="utf-8")
            drawn.append(
                f"{card['id']}, {card['title']}: {card['verdict']}.\n\n![{card['id']}: {card['title']}](img/lab-{card['id']}.svg)\n"
            )
    before, rest = text.split(BEGIN, 1)
    path.write_text(
        before + BEGIN + "\n" + markdown(results) + "\n" + "\n".join(drawn) + ("\n" if drawn else "") + END + rest.split(END, 1)[1],
        encoding="utf-8",
    )


def write(results: dict[str, Any], output: Path) -> Path:
    """index.html of an output directory."""
    path = output / "index.html"
    path.write_text(page(results), encoding="utf-8")
    return path
