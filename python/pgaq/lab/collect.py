"""From measurements to results.json: everything that the page and the comparison show."""

from __future__ import annotations

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

from pgaq.lab import costs, predicates, verdict
from pgaq.lab.experiment import Experiment, Source
from pgaq.lab.run import read_records
from pgaq.lab.verdict import Measurements, Verdict


COMPUTED = " (computed)"  # from other figures of the source, which does not print it


def collect(sources: list[Source], output: Path) -> dict[str, Any]:
    """The results of an output directory, for all its experiments."""
    records = read_records(output)
    about = json.loads((output / "run.json").read_text())
    cards = []
    for source in sources:
        mine = [r for r in records if r["source"] == source.number]
        cards += [
            card(source, verdict.judge(source, e, mine, about["profile"]), mine, about["profile"]) for e in source.experiments.values()
        ]
    return {
        "about": {**about, "measurements": len(records), "other_cpu": _mean([r["other_cpu"] for r in records]), "failed": sum("error" in r for r in records)},
        "sources": [{"number": s.number, "title": s.title, "about": s.about, "processors": s.processors} for s in sources],
        "cards": cards,
        "contradictions": [c for s in sources for c in _contradictions(s, [r for r in records if r["source"] == s.number], cards, about["profile"])],
        "needs": needs(sources, cards),
        "model": costs.of_records(records),
    }  # fmt: skip


def needs(sources: list[Source], cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What would show the findings that are weak or do not show here, and what the simulation says of them."""
    verdicts = {card["id"]: card["verdict"] for card in cards}
    every = {name: need for source in sources for name, need in source.needs.items()}
    return [
        {"id": card["id"], "verdict": card["verdict"], "text": every[card["id"]].text, "simulated": [{"id": each, "verdict": verdicts[each]} for each in every[card["id"]].simulated]}
        for card in cards if card["verdict"] in (verdict.WEAKLY, verdict.DOES_NOT) and card["id"] in every
    ]  # fmt: skip


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def card(source: Source, found: Verdict, records: list[dict[str, Any]], profile: str) -> dict[str, Any]:
    """One experiment as the page shows it."""
    e = found.experiment
    runs = [source.runs[name] for name in [*e.runs(), *e.beside]] if not e.cannot else []
    measured = Measurements(records, source, profile)
    mine = found.records + [r for name in e.beside for r in measured.of(name)]
    return {
        "id": e.id, "title": e.title, "source": e.source, "lines": e.lines, "finding": e.finding, "verdict": found.verdict, "why": found.why,
        "outcomes": [vars(o) for o in found.outcomes], "account": found.account, "checks": [vars(o) for o in found.checks], "note": e.note,
        "values": values(e, measured), "curves": curves(e, measured), "published_seconds": e.published_seconds, "series": series(e, measured), "published": drawn(e), "x": e.x, "unit": e.unit, "log": e.log,
        "settles": e.settles, "failed": found.failed, "processors": e.processors or source.processors, "simulated": e.processors > 0,
        "runs": [
            {
                "name": run.name, "title": run.title, "workload": run.workload, "seconds": max((r["seconds"] for r in mine if r["run"] == run.name), default=run.seconds[profile]), "points": len(run.points[profile]),
                "repeats": len({r["repeat"] for r in mine if r["run"] == run.name}), "settings": _settings(run.name, mine), "options": run.options,
                "other_cpu": _mean([r["other_cpu"] for r in mine if r["run"] == run.name]),
            }
            for run in runs
        ],
        "reports": [{"file": r["report"], "of": _point(r)} for r in mine if r.get("report")],
        "command": f"./lab run {e.id}" + ("" if profile == "standard" else f" --{profile}"),
    }  # fmt: skip


def _point(record: dict[str, Any]) -> str:
    axes = ", ".join(f"{key} {value}" for key, value in record["point"].items())
    return f"{record['run']}{': ' if axes else ''}{axes}, repeat {record['repeat']}"


def _settings(run: str, records: list[dict[str, Any]]) -> dict[str, str]:
    """The settings of a run; those of an axis with all their values."""
    found: dict[str, list[str]] = {}
    for record in records:
        for name, value in record["settings"].items() if record["run"] == run else ():
            if str(value) not in found.setdefault(name, []):
                found[name].append(str(value))
    return {name: ", ".join(values) for name, values in found.items()}


def _repeats(measured: Measurements, e: Experiment) -> list[int]:
    return measured.repeats(e.runs()) if not e.cannot else []


def values(e: Experiment, measured: Measurements) -> list[dict[str, Any]]:
    """The figures of the source, each beside ours of the same point; then those that only the predicates use."""
    repeats = _repeats(measured, e)
    theirs = {ast.unparse(predicates.expression(text)): figure for text, figure in e.figures().items() if not isinstance(figure, list)}
    used = [
        expression
        for text in e.predicates()
        for comparison in predicates.parse(text)
        for side in (comparison.left, comparison.right)
        for expression in _metrics(side)
    ]
    computed = {ast.unparse(predicates.expression(text)) for text in e.computed}
    found = [
        _value(measured, e, text, repeats, f"{_figure(figure)}{COMPUTED if text in computed else ''}") for text, figure in theirs.items()
    ]
    found += [_value(measured, e, text, repeats, None) for text in dict.fromkeys(used) if text not in theirs]
    # of the same points of other runs, which are named
    for run in e.beside:
        mine = [text for text in dict.fromkeys([*theirs, *used]) if predicates.run_of(text) in ("", e.run)]
        found += [_value(measured, e, f"{run}.{text.removeprefix(f'{e.run}.')}", measured.repeats([run]), None) for text in mine]
    found = [row for row in found if row["ours"] or row["published"]]
    return found + [{"name": what, "published": _figure(figure), "ours": ""} for what, figure in e.not_measured.items()]


def _metrics(node: Any) -> list[str]:
    """The metrics in an expression, with their axes."""
    if isinstance(node, (ast.Name, ast.Attribute)) or (isinstance(node, ast.Call) and node.keywords):
        text = ast.unparse(node)
        return [] if text.startswith("published.") or text == "repeats" else [text]
    return [
        found
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func)
        for found in _metrics(child)
    ]


def _value(measured: Measurements, e: Experiment, text: str, repeats: list[int], published: Any) -> dict[str, Any]:
    several = _evaluated(measured, e, text, repeats)
    return {
        "name": text,
        "ours": predicates.shown(several) if several else "",
        "published": "" if published is None else _figure(published),
    }


def _evaluated(measured: Measurements, e: Experiment, text: str, repeats: list[int]) -> list[predicates.Value]:
    """Its value in each repeat that has one."""
    found = []
    for repeat in repeats:
        with contextlib.suppress(predicates.PredicateError):
            found.append(predicates.evaluate(predicates.expression(text), measured.lookup(e, repeat)))
    return found


def _figure(published: Any) -> str:
    return published if isinstance(published, str) else f"{published:,}" if isinstance(published, int) else f"{published:,.10g}"


def curves(e: Experiment, measured: Measurements) -> dict[str, Any]:
    """The published curves as a table: for each x the published figures and ours."""
    theirs = {text: figure for text, figure in e.figures().items() if isinstance(figure, list)}
    if not theirs:
        return {}
    repeats = _repeats(measured, e)
    columns = []
    for text, figures in theirs.items():
        several = [value for value in _evaluated(measured, e, text, repeats) if isinstance(value, dict)]
        ours = [[value[x] for value in several if x in value] for x in map(float, e.published["x"])]
        columns.append(
            {
                "name": text,
                "computed": text in e.computed,
                "published": [_figure(y) for y in figures],
                "ours": [predicates.shown(ys) if ys else "" for ys in ours],
            }
        )
    return {"x": e.published["x"], "of": e.x, "columns": columns}


def drawn(e: Experiment) -> list[dict[str, Any]]:
    """The published curves of the metrics that are drawn."""
    found = []
    for text, figure in e.figures().items():
        of = [each for each in e.draw if _same_curve(each, text, e.by)]
        if isinstance(figure, list) and of:
            point, metric = predicates.point_of(text), predicates.metric_of(text)
            name = f"{of[0]}, {e.by} {point[e.by]}" if e.by in point else metric if len(_of_metric(e, metric)) == 1 else text
            found.append({"name": name, "x": e.published["x"], "mean": figure, "error": [0] * len(figure)})
    return found


def _same_curve(mine: str, theirs: str, by: str) -> bool:
    """A published curve is of a drawn one: of its run, metric and point; the last value of an axis is any."""
    (one, at), (other, of) = ((text.split("(")[0], predicates.point_of(text)) for text in (mine, theirs))
    return one == other and all(axis in (by,) or at.get(axis) in (value, "last") for axis, value in of.items())


def _of_metric(e: Experiment, metric: str) -> list[str]:
    return [text for text in e.draw if predicates.metric_of(text) == metric]


def series(e: Experiment, measured: Measurements) -> list[dict[str, Any]]:
    """Our curves: mean and error at every x."""
    repeats = _repeats(measured, e)
    if not repeats or not e.draw:
        return []
    found = []
    for text in e.draw:
        for label, axes in _labels(measured, e, text):
            node = predicates.expression(text if not axes else f"{text}({axes})")
            curves = []
            for repeat in repeats:
                try:
                    value = predicates.evaluate(node, measured.lookup(e, repeat))
                except predicates.PredicateError:
                    continue
                if isinstance(value, dict) and value:
                    curves.append(value)
            if curves:
                found.append({"name": label, **_points(curves)})
    return found


def _labels(measured: Measurements, e: Experiment, text: str) -> list[tuple[str, str]]:
    """The series of one drawn metric: one for each value of the axis `by`.  Its axes are left out where the metric alone is clear."""
    if not e.by:
        metric = text.split("(")[0]
        return [(metric if [other.split("(")[0] for other in e.draw].count(metric) == 1 else text, "")]
    values = list(dict.fromkeys(r["point"].get(e.by) for r in measured.of(e.run) if e.by in r["point"]))
    return [(f"{text}, {e.by} {value}", f"{e.by}={value!r}") for value in values]


def _points(curves: list[dict[float, float]]) -> dict[str, list[float]]:
    xs = sorted(set().union(*curves))
    pairs = [predicates.interval([curve[x] for curve in curves if x in curve]) for x in xs]
    return {"x": xs, "mean": [mean for mean, _ in pairs], "error": [error for _, error in pairs]}


def _contradictions(source: Source, records: list[dict[str, Any]], cards: list[dict[str, Any]], profile: str) -> list[dict[str, Any]]:
    """The source's errors, and what was measured about each."""
    return [
        {
            "number": c.number, "source": source.number, "text": c.text, "concludes": verdict.conclusion(source, c, records, profile),
            "figures": [{"what": what, "value": value} for what, value in verdict.figures(source, c, records, profile)],
            "cards": [card["id"] for card in cards if card["source"] == source.number and c.number in card["settles"]],
        }
        for c in source.contradictions.values()
    ]  # fmt: skip


def save(results: dict[str, Any], output: Path) -> Path:
    """results.json of an output directory."""
    path = output / "results.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> dict[str, Any]:
    """results.json of a directory, or the file itself."""
    return json.loads((path / "results.json" if path.is_dir() else path).read_text(encoding="utf-8"))
