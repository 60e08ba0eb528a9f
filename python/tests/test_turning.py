"""Every verdict of the lab follows from measurements: records turn it, and each comparison that it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgaq.lab import experiment, verdict
from pgaq_proof import turning

SOURCES = experiment.load()
JUDGED = [(s, e) for s in SOURCES for e in s.experiments.values() if not e.cannot]
CONCLUDED = [(s, c) for s in SOURCES for c in s.contradictions.values() if not c.reason]


@pytest.mark.parametrize("source, e", JUDGED, ids=[e.id for _, e in JUDGED])
def test_verdict_turns(source, e):
    """Some records give the verdict, others its opposite; each comparison alone takes it away, while the account adds up."""
    assert turning.faults(source, e) == []
    assert turning.flattered(source, e) < 0.9


@pytest.mark.parametrize("source, c", CONCLUDED, ids=[str(c.number) for _, c in CONCLUDED])
def test_conclusion_turns(source, c):
    """Each comparison alone marks the conclusion."""
    assert turning.faults(source, c) == []
    assert turning.flattered(source, c) < 0.9


FILE = """
[source]
number = "9"
title = "a source"
[run.line]
workload = "{workload}"
axes.n = [1, 2, 4]
seconds = 1
[experiment.X1]
title = "an experiment"
lines = "1-2"
run = "line"
finding = "It is so."
shows = {shows}
{more}
"""


def faults(tmp_path: Path, shows: list[str], more: str = "", workload: str = "cost") -> list[str]:
    path = tmp_path / "one.toml"
    path.write_text(FILE.format(shows=str(shows), more=more, workload=workload))
    source = experiment.read(path)
    return turning.faults(source, source.experiments["X1"])


@pytest.mark.parametrize(
    "shows, more, workload, said",
    [
        (["repeats > 1"], "", "cost", "a record that turns shows: repeats > 1 while the others hold gives ['shows'"),
        (["1 < 2", "done > 5"], "", "cost", "no record turns shows: 1 < 2"),
        (["done == done"], "", "cost", "no record turns shows: done == done"),
        (["last(done) >= min(done)"], "", "cost", "no record turns shows: last(done) >= min(done)"),
        (["done > 5", "done > 3"], "", "cost", "no record turns shows: done > 3"),
        (["done > 5", "done < 4"], "", "cost", "no record satisfies all predicates"),
        (
            ["done > 5", "ratio(last(done), first(done)) < 4", "ratio(last(done), first(done)) > 2"],
            "",
            "cost",
            "no record gives does not show",
        ),
        (["done == 3"], "adds_up = ['done == 3']", "cost", "no record turns shows: done == 3"),
        (["done(n=1) > 0"], "adds_up = ['gets >= 0']", "cost", "no record turns adds_up: gets >= 0"),
        (["misses <= gets"], "", "hammer", "no record turns shows: misses <= gets"),
        (["ratio(1000000 * cpu_s, done) == cpu_us_per_get"], "", "hammer", "no record turns shows"),
        (
            ["done > 5"],
            "by_design = 'It is so.'\ndesigned = ['done > 3']",
            "cost",
            "a record that shows the finding gives ['by design not', ''], not unexpected",
        ),
    ],
)
def test_what_no_record_turns(tmp_path, shows, more, workload, said):
    """Constants, a figure beside itself, what is implied or contradicted by others, the account again, the workload's own arithmetic."""
    assert any(each.startswith(said) for each in faults(tmp_path, shows, more, workload))


@pytest.mark.parametrize(
    "shows",
    [["done > 5"], ["peak(done) between 2 and 3", "sum(gets) == 2 * sum(done)"], ["last(done) > 3 * first(done)", "rises(gets) > 0.4"]],
)
def test_what_records_turn(tmp_path, shows):
    assert faults(tmp_path, shows) == []


def changed(wanted: str, **metrics: float) -> verdict.Verdict:
    """The verdict on records that satisfy all predicates, but for these figures."""
    source, e = next((s, e) for s, e in JUDGED if e.id == wanted)
    records = turning.Records(source, e)
    made: list[dict[str, Any]] = records.find(
        {n: True for n, c in enumerate(records.clauses) if c.role in ("designed" if e.by_design else "shows", "adds_up")}
    )
    for record in made:
        record["metrics"].update({name: value for name, value in metrics.items() if name in record["metrics"]})
    return verdict.judge(source, e, made, "standard")


@pytest.mark.parametrize(
    "wanted, metrics, before, after",
    [
        ("B1", {"case1_channel": 3.0}, verdict.BY_DESIGN, verdict.UNEXPECTED),
        ("B8", {"slices": 8.0}, verdict.BY_DESIGN, verdict.UNEXPECTED),
        ("C15", {"names": 1035.0, "used": 1035.0, "undeclared_seen": 112.0}, verdict.SHOWS, verdict.WEAKLY),
        ("C16", {"limit": 5.0, "refused_by_limit": 0.0}, verdict.SHOWS, verdict.DOES_NOT),
        ("G13", {"out_of_order": 1.0, "left": 1.0}, verdict.SHOWS, verdict.DOES_NOT),
        ("D2", {"latch_samples": 0.0, "described_samples": 0.0}, verdict.SHOWS, verdict.DOES_NOT),
    ],
)
def test_named_records(wanted, metrics, before, after):
    """What a wrong implementation would measure."""
    assert changed(wanted).verdict == before
    assert changed(wanted, **metrics).verdict == after


def test_what_any_figures_show(tmp_path):
    """That something was counted is no finding."""
    for shows, most in ((["done > 0", "sum(gets) > 0"], 1.0), (["done > 1000", "last(done) > 2 * first(done)"], 0.5)):
        faults(tmp_path, shows)
        source = experiment.read(tmp_path / "one.toml")
        assert (turning.flattered(source, source.experiments["X1"]) >= 0.9) == (most == 1.0)
