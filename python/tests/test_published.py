"""The published figures: each stands beside the point that it is of, and the page shows all of them."""

from __future__ import annotations

from typing import Any

import pytest

from pgaq.lab import collect, experiment, page, predicates, run, verdict

SOURCES = experiment.load()
EXPERIMENTS = [(source, e) for source in SOURCES for e in source.experiments.values()]
IDS = [e.id for _, e in EXPERIMENTS]


class Everything(dict[str, Any]):
    """A measurement that has every metric."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __contains__(self, metric: object) -> bool:
        return True

    def __getitem__(self, metric: str) -> Any:
        if metric == "steps":
            return [[float(n), 1.0 + n] for n in range(1, 17)]
        if metric.endswith("_histogram"):
            return [[2.0**n, 1.0] for n in range(6, 32)]
        return 1000.0 + self.number


def card(source: experiment.Source, e: experiment.Experiment, profile: str = "standard") -> dict[str, Any]:
    tasks = run.tasks([source], [e], profile, 1)
    records = [
        {
            "source": source.number, "run": t.run.name, "workload": t.run.workload, "point": t.point, "repeat": 1, "settings": {}, "seconds": t.seconds,
            "metrics": Everything(number), "other_cpu": 0.0,
        }
        for number, t in enumerate(tasks)
    ]  # fmt: skip
    return collect.card(source, verdict.judge(source, e, records, profile), records, profile)


@pytest.mark.parametrize("source, e", EXPERIMENTS, ids=IDS)
def test_published_figures_are_shown(source, e, monkeypatch):
    """Each has a row, with what was measured at its point: one number, no curve over points of which it is not; other rows have none."""
    monkeypatch.setattr(page.plot, "figure", lambda *_: "")
    made = card(source, e)
    html = page._card(made, 2)
    rows = {row["name"]: row for row in made["values"]}
    for text, figure in e.figures().items():
        if isinstance(figure, list):
            column = next(c for c in made["curves"]["columns"] if c["name"] == text)
            assert len(column["published"]) == len(figure) and all(column["ours"]), text
            assert all("[" not in ours for ours in column["ours"]), text
            shown = column["published"]
        else:
            row = rows[predicates.ast.unparse(predicates.expression(text))]
            assert row["published"] and row["ours"] and "[" not in row["ours"], f"{text}: of which point?"
            shown = [row["published"]]
        assert all(f">{page.text(each)}<" in html for each in shown), text
    for what in e.not_measured:
        assert rows[what]["published"] and page.text(what) in html
    if e.draw and made["curves"]:
        assert made["published"], "a published curve is drawn beside ours"
    theirs = {predicates.ast.unparse(predicates.expression(text)) for text in e.figures()} | set(e.not_measured)
    assert {row["name"] for row in made["values"] if row["published"]} <= theirs


class NotPublished(Exception):
    """A predicate needs a figure that the source does not have."""


def of_the_source(e: experiment.Experiment) -> predicates.Lookup:
    """The published figures in place of measurements."""
    theirs = {
        (
            text.split("(")[0].split(".")[-1],
            text.split(".")[0] if "." in text.split("(")[0] else "",
            *sorted(predicates.point_of(text).items()),
        ): figure
        for text, figure in e.figures().items()
    }

    def find(of: str, metric: str, axes: dict[str, Any]) -> predicates.Value:
        if of == "published":
            return verdict.published(e, metric)
        if metric == "properties":
            return max(verdict.published(e, "usage").values()) if "usage" in e.figures() else missing()
        if (metric, of, *sorted(axes.items())) in theirs:
            figure = theirs[metric, of, *sorted(axes.items())]
            return (
                dict(zip(map(float, e.published["x"]), map(float, figure)))
                if isinstance(figure, list)
                else float(figure)
                if not isinstance(figure, str)
                else missing()
            )
        rest = {axis: value for axis, value in axes.items() if axis != e.x}
        figure = theirs.get((metric, of, *sorted(rest.items())))
        if len(rest) < len(axes) and isinstance(figure, list) and axes[e.x] in e.published["x"]:
            return float(figure[e.published["x"].index(axes[e.x])])
        return missing()

    def missing() -> float:
        raise NotPublished

    return find


@pytest.mark.parametrize("source, e", EXPERIMENTS, ids=IDS)
def test_the_source_shows_its_finding(source, e):
    """Predicates whose figures are all published hold for the source's own figures."""
    for text in e.shows:
        try:
            found = predicates.judge_text(text, [of_the_source(e)])
        except NotPublished:
            continue
        assert found.verdict == predicates.CLEAR, (text, found.said)
