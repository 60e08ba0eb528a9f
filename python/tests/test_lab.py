"""The lab without a server: the language of predicates, the files of experiments, resuming, verdicts."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from pgaq import places
from pgaq.lab import collect, costs, experiment, page, predicates, run, verdict
from pgaq.lab.experiment import ExperimentError
from pgaq.lab.site import Calls, Unsuitable
from pgaq.lab.workloads import queues

SOURCES = experiment.load()
EXPERIMENTS = [(source, e) for source in SOURCES for e in source.experiments.values()]

FILE = """
[source]
number = "9"
title = "a source"
[run.line]
workload = "cost"
axes.n = [1, 2, 4]
seconds = 1
repeats = { quick = 2, standard = 3, full = 4 }
[experiment.X1]
title = "an experiment"
lines = "1-2"
run = "line"
finding = "It grows."
shows = ["last(done) > first(done)"]
adds_up = ["gets == done"]
published = { x = [1, 2, 4], done = [10, 20, 40] }
draw = ["done"]
x = "n"
"""


def source_of(tmp_path: Path, text: str = FILE) -> experiment.Source:
    path = tmp_path / "one.toml"
    path.write_text(text)
    return experiment.read(path)


def records_of(source: experiment.Source, repeats: int = 2, **more: object) -> list[dict]:
    """Measurements that show what the file says."""
    tasks = run.tasks([source], list(source.experiments.values()), "quick", repeats)
    return [
        {
            "source": source.number, "run": t.run.name, "workload": t.run.workload, "point": t.point, "repeat": t.repeat, "key": t.key, "settings": {}, "seconds": t.seconds,
            "metrics": {"done": 10.0 * t.point["n"] + t.repeat, "gets": 10.0 * t.point["n"] + t.repeat}, "other_cpu": 0.5, **more,
        }
        for t in tasks
    ]  # fmt: skip


# -- predicates


def lookup(run_name: str, metric: str, axes: dict) -> object:
    values = {"total": {1.0: 10.0, 8.0: 50.0, 64.0: 40.0}, "gets": 7.0, "done": 7.0, "nothing": 0.0}
    if metric == "total" and axes:
        return values["total"][float(axes["sessions"])]
    return values[metric]


@pytest.mark.parametrize(
    "text, holds",
    [
        ("peak(total) between 4 and 16", True),
        ("peak(total) between 16 and 64", False),
        ("gets == done", True),
        ("gets != done", False),
        ("ratio(total(sessions=8), total(sessions=1)) > 4", True),
        ("total >= 10", True),
        ("total > 10", False),  # at every point
        ("last(total) < max(total) and first(total) < last(total)", True),
        ("off(total(sessions=64), total(sessions=8)) < 5", False),
        ("rises(total) == 0.5", True),
        ("sum(total) == 100", True),
        ("2 * gets - done / 1 == 7", True),
        ("ratio(gets, nothing) > 1000", True),
    ],
)
def test_predicates(text, holds):
    outcomes = [predicates.judge(c, [lookup]) for c in predicates.parse(text)]
    assert all(o.verdict == predicates.CLEAR for o in outcomes) == holds


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("gets", "compares nothing"), ("gets = 5", "invalid syntax"), ("__import__('os') > 1", "no function __import__"), ("gets.x.y > 1", "not part of the language"),
        ("[1] < 2", "not part of the language"), ("gets in 5", "only <"), ("peak(gets, n=1) > 1", "both axes and arguments"), ("gets < 1 or gets > 2", "compares nothing"),
        ("(lambda: 1) > 0", "not part of the language"), ("gets ** 2 > 1", "not part of the language"),
    ],
)  # fmt: skip
def test_what_is_no_predicate(text, wrong):
    with pytest.raises(predicates.PredicateError, match=wrong):
        predicates.parse(text)


def test_error_of_the_mean():
    """The mean alone holds weakly when its 95 % interval reaches over the limit."""
    (above,) = predicates.parse("speed > 10")

    def verdict_of(*values: float) -> str:
        return predicates.judge(above, [lambda *_, value=value: value for value in values]).verdict

    assert verdict_of(12, 12.1, 11.9) == predicates.CLEAR
    assert verdict_of(9, 12, 11) == predicates.WEAK
    assert verdict_of(9, 9.9, 8) == predicates.NOT
    assert verdict_of(11) == predicates.CLEAR


# -- the files


@pytest.mark.parametrize("source, e", EXPERIMENTS, ids=[e.id for _, e in EXPERIMENTS])
def test_entry(source, e):
    """An experiment says what must be seen, or why it cannot be compared; its lines are those of the source."""
    assert e.cannot or (e.finding and (e.shows or e.by_design))
    assert e.lines == "-" or all(part.strip().replace("-", "").isdigit() for part in e.lines.split(","))
    for number in e.settles:
        assert number in source.contradictions
    if e.draw and e.by:
        assert e.by in {axis for point in source.runs[e.run].points["full"] for axis in point}


def test_every_experiment_has_an_entry():
    """lab_ids.txt lists every experiment, figure and table of the sources, and the number of their contradictions."""
    ids = [e.id for _, e in EXPERIMENTS]
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted(Path(__file__).with_name("lab_ids.txt").read_text().split())
    numbers = sorted(number for source in SOURCES for number in source.contradictions)
    assert numbers == list(range(1, 29))
    for source in SOURCES:
        for c in source.contradictions.values():
            assert (c.figures and c.holds and c.concludes.endswith(".")) or c.reason.endswith("."), c.number


@pytest.mark.parametrize(
    "old, new, wrong",
    [
        ('title = "an experiment"\n', "", r"one.toml: experiment.X1.title: is missing"),
        ('workload = "cost"', 'workload = "costs"', r'one.toml: run.line.workload: there is no workload "costs"'),
        ('run = "line"', 'run = "lines"', r'experiment.X1.run: there is no run "lines"'),
        ('finding = "It grows."', "finding = 5", r"experiment.X1.finding: must be str, not int"),
        ('x = "n"', 'axis = "n"', r"experiment.X1.axis: is not a key"),
        ("seconds = 1", "seconds = { quick = 1 }", r"run.line.seconds: has no value for profile standard"),
        ("last(done) > first(done)", "last(done)", r"experiment.X1.shows: .*compares nothing"),
        ('draw = ["done"]', 'draw = ["lines.done"]', r'experiment.X1.run: there is no run "lines"'),
        ('draw = ["done"]', 'draw = ["done("]', r"experiment.X1.draw: "),
        ("[source]", "[source", r"one.toml: .*line 2"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, wrong):
    assert old in FILE
    with pytest.raises(ExperimentError, match=wrong):
        source_of(tmp_path, FILE.replace(old, new, 1))


def test_page_of_results():
    """docs/lab.md has each experiment with what its predicates test; a finding that it does not show, or weakly, has its cause there."""
    text = (Path(__file__).parents[2] / "docs/lab.md").read_text()
    rows = re.findall(
        r"^\| (\w+) \| (.*) \| (shows|weak|does not show|by design not|unexpected|cannot be compared) \| [^|]* \| (.*) \|$", text, re.M
    )
    assert sorted(id for id, *_ in rows) == sorted(e.id for _, e in EXPERIMENTS)
    for id, title, found, words in rows:
        e = next(e for _, e in EXPERIMENTS if e.id == id)
        reason = {verdict.BY_DESIGN: e.by_design, verdict.CANNOT: e.cannot}.get(found, e.finding)
        assert title == e.title and (e.by_design in words if found == verdict.UNEXPECTED else words.startswith(reason)), id
        if found in (verdict.WEAKLY, verdict.DOES_NOT, verdict.UNEXPECTED):
            assert e.note and words != e.finding, id


def test_runs_beside(tmp_path):
    """Figures of another run with the same points stand beside those of the experiment's run, under its name; its predicates are of its own run."""
    other = FILE.replace("[experiment.X1]", '[run.other]\nworkload = "cost"\naxes.n = [1, 2, 4]\nseconds = 1\n[experiment.X1]').replace(
        "run =", 'beside = ["other"]\nrun ='
    )
    source = source_of(tmp_path, other)
    e = source.experiments["X1"]
    assert {t.run.name for t in run.tasks([source], [e], "quick")} == {"line", "other"} and e.runs() == ["line"]
    records = records_of(source)
    for record in records:
        record["metrics"]["gets"] += record["run"] == "other"
    found = {row["name"]: row["ours"] for row in collect.values(e, verdict.Measurements(records, source, "quick"))}
    assert found["gets"] != found["other.gets"] and found["done"] == found["other.done"]
    assert verdict.judge(source, e, records, "quick").account == "adds up"
    with pytest.raises(ExperimentError, match="there is no run"):
        source_of(tmp_path, other.replace('["other"]', '["another"]'))
    with pytest.raises(ExperimentError, match='beside: "other" has another workload'):
        source_of(tmp_path, other.replace('[run.other]\nworkload = "cost"', '[run.other]\nworkload = "hammer"'))


def test_profiles():
    """The quick profile takes less than ten minutes, the standard one less than 45."""
    chosen = [e for _, e in EXPERIMENTS]
    for profile, minutes in (("quick", 10), ("standard", 45)):
        assert sum(run.expected_seconds(t) for t in run.tasks(SOURCES, chosen, profile)) < 60 * minutes


def test_what_is_drawn_is_measured():
    """Also where the predicates do not need it: one experiment alone has its whole figure."""
    assert {t.run.name for t in run.tasks(SOURCES, experiment.choose(SOURCES, ["A6"]), "quick")} == {
        "ab",
        "ab_on_commit",
        "ab_sharded",
        "px",
        "count",
    }


def test_short_measurements():
    """A limit of the seconds shortens what is longer and leaves the rest; what was measured otherwise is measured again."""
    chosen = [e for _, e in EXPERIMENTS]
    whole, short = run.tasks(SOURCES, chosen, "quick", 1), run.tasks(SOURCES, chosen, "quick", 1, 1.5)
    assert [t.seconds for t in short] == [min(t.seconds, 1.5) for t in whole]
    assert all((a.key == b.key) == (a.seconds <= 1.5) for a, b in zip(whole, short)) and max(t.seconds for t in whole) > 1.5


# -- verdicts


def test_a_turned_predicate_turns_the_verdict(tmp_path):
    """The same measurements: `>` shows, `<=` does not."""
    source = source_of(tmp_path)
    records = records_of(source)
    assert verdict.judge(source, source.experiments["X1"], records, "quick").verdict == verdict.SHOWS
    turned = source_of(tmp_path, FILE.replace("last(done) > first(done)", "last(done) <= first(done)"))
    assert verdict.judge(turned, turned.experiments["X1"], records, "quick").verdict == verdict.DOES_NOT


@pytest.mark.parametrize("source, e", EXPERIMENTS, ids=[e.id for _, e in EXPERIMENTS])
def test_every_predicate_can_be_turned(source, e):
    """A comparison and its opposite never hold both."""
    for text in [*e.shows, *e.adds_up]:
        for comparison in predicates.parse(text):
            assert comparison.turned().turned() == comparison

            def constant(left: float, right: float):
                return predicates.Comparison(predicates.expression(str(left)), comparison.sign, predicates.expression(str(right)))

            for left, right in ((1, 2), (2, 1), (1, 1)):
                made = constant(left, right)
                held = [predicates.judge(c, [lookup]).verdict == predicates.CLEAR for c in (made, made.turned())]
                assert sorted(held) == [False, True]


class Everything(dict):
    """A measurement that has every metric."""

    def __contains__(self, metric: object) -> bool:
        return True

    def __getitem__(self, metric: str) -> object:
        return [[1.0, 1.0], [2.0, 1.0]] if metric == "steps" else 1.0


@pytest.mark.parametrize(
    "source, e", [(source, e) for source, e in EXPERIMENTS if not e.cannot], ids=[e.id for _, e in EXPERIMENTS if not e.cannot]
)
def test_every_profile_has_the_points(source, e):
    """The predicates of an experiment can be evaluated in each profile, also where an axis has one value there."""
    for profile in ("quick", "standard", "full"):
        tasks = run.tasks([source], [e], profile, 1)
        found = verdict.judge(
            source, e, [{"run": t.run.name, "point": t.point, "repeat": 1, "metrics": Everything()} for t in tasks], profile
        )
        assert found.verdict != verdict.CANNOT and not found.account.startswith("not checked"), (profile, found.why, found.account)


def test_last_point_of_an_axis(tmp_path):
    """The highest that was measured, in each profile."""
    source = source_of(tmp_path, FILE.replace("last(done) > first(done)", "done(n='last') == last(done) and done(n='last') > done(n=2)"))
    assert verdict.judge(source, source.experiments["X1"], records_of(source), "quick").verdict == verdict.SHOWS


def test_account(tmp_path):
    source = source_of(tmp_path)
    records = records_of(source)
    assert verdict.judge(source, source.experiments["X1"], records, "quick").account == verdict.ADDS_UP
    records[0]["metrics"]["gets"] += 1
    assert verdict.judge(source, source.experiments["X1"], records, "quick").account == verdict.DOES_NOT_ADD_UP


def test_what_is_missing_is_no_verdict(tmp_path):
    """Nothing measured, a machine without strace, a failed point."""
    source = source_of(tmp_path)
    mine = source.experiments["X1"]
    assert verdict.judge(source, mine, [], "quick").verdict == verdict.NOT_RUN
    unsuitable = verdict.judge(source, mine, records_of(source, metrics={}, unsuitable="strace is not installed"), "quick")
    assert (unsuitable.verdict, unsuitable.why) == (verdict.CANNOT, "strace is not installed")
    failed = verdict.judge(source, mine, records_of(source, metrics={}, error="it broke"), "quick")
    assert failed.verdict == verdict.NOT_RUN and len(failed.failed) == 6


# -- running


class Nothing:
    """A laboratory without a server."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_interrupted_run_resumes(tmp_path, monkeypatch):
    """What is finished is not measured again; what was asked for otherwise, or failed, is."""
    source = source_of(tmp_path)
    work = run.tasks([source], list(source.experiments.values()), "quick")
    assert [t.repeat for t in work] == [1, 1, 1, 2, 2, 2], "repeats are interleaved"
    measured = []

    def measure(_: object, task: run.Task, __: Path) -> dict:
        measured.append(task.name)
        if len(measured) == 3:
            raise KeyboardInterrupt
        record = next(r for r in records_of(source) if (r["point"], r["repeat"]) == (task.point, task.repeat))
        return {**record, "key": task.key, **({"error": "broken"} if len(measured) == 1 else {})}

    monkeypatch.setattr(run, "Laboratory", Nothing)
    monkeypatch.setattr(run, "measure", measure)
    output = tmp_path / "out"
    about = {
        "profile": "quick",
        "experiments": ["X1"],
        "machine": {"cpus": 2, "cpu_model": "", "memory_mb": 1, "kernel": ""},
        "began": "2026-01-01T00:00",
        "commit": "x",
    }
    assert not run.execute(work, output, about)
    assert len(run.read_records(output)) == 2
    assert page.page(collect.collect([source], output)).count("<article") == 1, "a report of what was done"
    assert run.execute(work, output, about)
    assert measured == [t.name for t in work[:3]] + [work[0].name] + [t.name for t in work[2:]]
    assert verdict.judge(source, source.experiments["X1"], run.read_records(output), "quick").verdict == verdict.SHOWS
    changed = source_of(tmp_path, FILE.replace("seconds = 1", "seconds = 2"))
    assert run.finished(run.tasks([changed], list(changed.experiments.values()), "quick")[0], output) is None


def test_page_is_whole(tmp_path):
    """A card for every experiment, its curves as a table, nothing fetched, hostile text quoted."""
    source = source_of(tmp_path, FILE.replace('"an experiment"', '"<script>alert(1)</script>"'))
    output = tmp_path / "out"
    (output / "runs").mkdir(parents=True)
    (output / "run.json").write_text(
        json.dumps(
            {
                "profile": "quick",
                "experiments": [],
                "began": "2026-01-01T00:00",
                "commit": "x",
                "machine": {"cpus": 2, "cpu_model": "m", "memory_mb": 1, "kernel": "k"},
            }
        )
    )
    for n, record in enumerate(records_of(source)):
        (output / "runs" / f"{n}.json").write_text(json.dumps(record))
    results = collect.collect([source], output)
    html = page.page(results)
    assert "<script" not in html and "&lt;script&gt;" in html
    assert (
        html.count("<svg") == 1
        and "currentColor" in html
        and "http" not in html.replace("http://www.w3.org/", "").replace("http://", "http://", 0)
    )
    assert "done (published)" in html
    legend = re.findall(r">(done[^<]*)</text>", html)
    assert sorted(legend) == ["done", "done (published)"], "both curves of the normalised panel are named"
    assert "1 shows" in html
    both = page.compare(results, results, ("one", "two"))
    assert both.count("shows") >= 2 and both.index("<details>") < both.index(">X1<"), "what is alike is folded"
    other = json.loads(json.dumps(results))
    other["cards"][0]["verdict"] = "weak"
    other["cards"][0]["verdict"] = results["cards"][0]["verdict"] = verdict.CANNOT
    assert page.pairs(results, other) == ([], []), "what cannot be compared does not count"
    other["cards"][0]["verdict"], results["cards"][0]["verdict"] = "weak", "shows"
    apart = page.compare(results, other, ("one", "two"))
    assert apart.index(">X1<") < apart.index("<details>") and "1 of 1 experiments differ" in apart


def test_what_was_not_run(tmp_path):
    """It is named, without a card; a comparison leaves it out, and says which run has it; a broken file is no measurement."""
    source = source_of(tmp_path, FILE)
    output = tmp_path / "out"
    (output / "runs").mkdir(parents=True)
    (output / "run.json").write_text(
        json.dumps(
            {
                "profile": "quick",
                "experiments": [],
                "began": "2026-01-01T00:00",
                "commit": "x",
                "machine": {"cpus": 2, "cpu_model": "m", "memory_mb": 1, "kernel": "k"},
            }
        )
    )
    (output / "runs" / "broken.json").write_text('{"a":')
    nothing = collect.collect([source], output)
    html = page.page(nothing)
    assert "<article" not in html and "1 not run" in html and "X1 " in html and 'href="#X1"' not in html
    for n, record in enumerate(records_of(source)):
        (output / "runs" / f"{n}.json").write_text(json.dumps(record))
    whole = collect.collect([source], output)
    both = page.compare(whole, nothing, ("one", "two"))
    assert "0 of 0 experiments differ" in both and "Only in one: X1." in both
    assert page.alone(whole, whole, ("one", "two")) == []


def test_wilson():
    """The textbook's interval; none and all have one as well."""
    assert predicates.wilson(1, 10) == pytest.approx((0.0179, 0.4042), abs=0.0002)
    assert predicates.wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=0.0002)
    assert predicates.wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=0.0002)
    assert predicates.wilson(0, 0) == (0.0, 1.0)


CONTRADICTION = """
[contradiction.1]
text = "It is said to fall."
figures = ["line.done"]
holds = ["last(line.done) > first(line.done)", "line.gets == line.done"]
concludes = "It grows."
"""


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("", "", "It grows."),
        ("line.gets == line.done", "line.gets == 0", "Only in part, or on average: It grows."),
        ('> first(line.done)", "line.gets == line.done"', '<= first(line.done)"', "Not confirmed in this run: It grows."),
        ("line.gets == line.done", "line.other == 0", "Not measured in this run."),
    ],
)
def test_conclusion_of_a_contradiction(tmp_path, old, new, said):
    """Its sentence is marked when the measurements do not bear it out."""
    source = source_of(tmp_path, FILE + CONTRADICTION.replace(old, new))
    assert verdict.conclusion(source, source.contradictions[1], records_of(source), "quick") == said
    assert verdict.conclusion(source, source.contradictions[1], [], "quick") == "Not measured in this run."


def test_a_contradiction_needs_a_conclusion(tmp_path):
    with pytest.raises(ExperimentError, match=r"contradiction.1.concludes: is missing"):
        source_of(tmp_path, FILE + CONTRADICTION.replace('concludes = "It grows."\n', ""))


def test_without_the_source_of_the_load_client(tmp_path, monkeypatch):
    """Where only the package is installed, curves of queues cannot be measured, and say what is missing."""
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("PGAQ_SOURCE", "PGAQ_LOAD"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unsuitable, match="set PGAQ_SOURCE"):
        queues.curve(None, {"sessions": 1}, 1)
    monkeypatch.setenv("PGAQ_SOURCE", str(Path(__file__).parents[2]))
    assert places.source() == Path(__file__).parents[2]


def test_nothing_is_left_of_a_trace(tmp_path, monkeypatch):
    """The system calls of a process, and no file of them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            calls = Calls(process.pid)
            assert list(tmp_path.iterdir())
            process.kill()
            assert [name for name, _ in calls.end()] == []
        except Unsuitable as error:
            pytest.skip(str(error))
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


# -- the model, the comparison, the page of the documentation


def test_phases_of_the_source():
    """The source's own cases, with a time-out that costs a wake-up as here, give the formula that its text has not: 30 + 12 F and 9 + 6 F."""
    cases = {
        "waiting_mutex": 12,
        "case2_mutex": 30,
        "case3_mutex": 42,
        "case4_mutex": 12 + 12,
        "waiting_channel": 1,
        "case2_channel": 9,
        "case3_channel": 15,
        "case4_channel": 3 + 6,
    }
    found = costs.phases(cases)
    assert costs.formula(found["mutex"]) == "30 + 12 F"
    assert costs.formula(found["channel"]) == "9 + 6 F"
    assert costs.predicted(found["mutex"], false=2) == 54


@pytest.mark.parametrize("sigma, kappa", [(0.05, 0.0), (0.1, 0.002), (0.3, 0.01)])
def test_scaling_law_is_found(sigma, kappa):
    points = {n: 100 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32, 64)}
    law = costs.scalability(points)
    assert law["error_percent"] < 3
    assert law["sigma"] == pytest.approx(sigma, abs=0.03) and law["kappa"] == pytest.approx(kappa, abs=0.002)
    assert ("no peak" in costs.said(law)) == (law["peak"] == float("inf"))
    assert costs.scalability({1: 1, 2: 2}) == {}


def test_page_of_the_documentation(tmp_path):
    """What stands between the marks is replaced, each time alike."""
    source = source_of(tmp_path)
    results = {
        "about": {
            "began": "2026-01-01",
            "profile": "quick",
            "commit": "x",
            "machine": {"cpus": 2, "cpu_model": "m"},
            "measurements": 1,
            "other_cpu": 0.1,
        },
        "cards": [
            collect.card(source, verdict.judge(source, source.experiments["X1"], records_of(source), "quick"), records_of(source), "quick")
        ],
    }
    counts = {kind: {"counted": 11.0, "predicted": 10.0} for kind in ("mutex", "channel")}
    results["model"] = {"predictions": [{"sessions": 4, "repeat": n, "waits": 1.0 + n, **counts} for n in (1, 2)]}
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- results of the lab: begin -->\nold\n<!-- results of the lab: end -->\nafter\n")
    page.write_markdown(results, path, ["X1"])
    once = path.read_text()
    assert "| X1 | an experiment | shows | adds up | It grows. |" in once and "old" not in once
    assert "| 4 | 2.50 | 11.00 | 10.00 | +10.0 % | 11.00 | 10.00 | +10.0 % |" in once
    assert once.startswith("before\n") and once.endswith("after\n")
    assert "currentColor" not in (tmp_path / "img/lab-X1.svg").read_text()
    (tmp_path / "img/lab-X1.svg").unlink()
    page.write_markdown(results, path)
    assert path.read_text() == once and (tmp_path / "img/lab-X1.svg").exists(), "without a list those that it has"
    path.write_text("no marks")
    with pytest.raises(ValueError, match="has no marks"):
        page.write_markdown(results, path, [])
