"""What the measurements say of each experiment: a verdict on its finding, and whether the figures add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgaq.lab import predicates
from pgaq.lab.experiment import Contradiction, Experiment, Source
from pgaq.lab.predicates import CLEAR, NOT, WEAK, Lookup, Outcome, Value

SHOWS, WEAKLY, DOES_NOT, BY_DESIGN, CANNOT, NOT_RUN = "shows", "weak", "does not show", "by design not", "cannot be compared", "not run"
UNEXPECTED = "unexpected"  # what the design says was not measured
NOT_MEASURED = "not measured"  # why it was not run: it was not asked for, or not begun
ADDS_UP, DOES_NOT_ADD_UP = "adds up", "does not add up"


@dataclass
class Verdict:
    """Of one experiment."""

    experiment: Experiment
    verdict: str
    why: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    account: str = ""  # whether the figures add up; empty: the experiment has no such check
    checks: list[Outcome] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # measurements that ended in an error

    @property
    def settled(self) -> str:
        """The outcomes in one line."""
        return "; ".join(f"{o.said} ({o.verdict})" for o in self.outcomes)


class Measurements:
    """All records of one source."""

    def __init__(self, records: list[dict[str, Any]], source: Source, profile: str) -> None:
        self.points = {name: len(run.points[profile]) for name, run in source.runs.items()}
        self.records = [r for r in records if "error" not in r]
        self.failed = [r for r in records if "error" in r]

    def of(self, run: str) -> list[dict[str, Any]]:
        return [r for r in self.records if r["run"] == run]

    def repeats(self, runs: list[str]) -> list[int]:
        """The repeats in which every point of these runs was measured."""
        common: set[int] | None = None
        for run in runs:
            by_repeat: dict[int, int] = {}
            for record in self.of(run):
                by_repeat[record["repeat"]] = by_repeat.get(record["repeat"], 0) + 1
            whole = {repeat for repeat, number in by_repeat.items() if number >= self.points[run]}
            common = whole if common is None else common & whole
        return sorted(common or ())

    def lookup(self, experiment: Experiment, repeat: int) -> Lookup:
        """How a predicate finds its values in one repeat."""

        def find(run: str, metric: str, axes: dict[str, Any]) -> Value:
            if run == "published":
                return published(experiment, metric)
            if metric == "repeats":
                return float(len(self.repeats(experiment.runs())))
            if metric.endswith("_error"):
                return self.error(run or experiment.run, metric.removesuffix("_error"), axes, experiment.x)
            return self.value(run or experiment.run, metric, axes, repeat, experiment.x)

        return find

    def error(self, run: str, metric: str, axes: dict[str, Any], x: str) -> Value:
        """Half the 95 % interval over the repeats, in per cent of the mean."""

        def of(values: list[float]) -> float:
            mean, half = predicates.interval(values)
            return 100 * half / mean if mean else 0.0

        several = [self.value(run, metric, axes, repeat, x) for repeat in sorted({r["repeat"] for r in self.of(run)})]
        if isinstance(several[0], dict):
            return {at: of([curve[at] for curve in several if at in curve]) for at in several[0]}  # type: ignore[index,operator]
        return of(several)  # type: ignore[arg-type]

    def value(self, run: str, metric: str, axes: dict[str, Any], repeat: int, x: str) -> Value:
        """A number when one point is left, otherwise a curve over the one axis that is left, or over x."""
        points = [r for r in self.of(run) if r["repeat"] == repeat]
        for axis, wanted in axes.items():
            chosen = max((r["point"][axis] for r in points if axis in r["point"]), default=None) if wanted == "last" else wanted
            points = [r for r in points if _same(r["point"].get(axis), chosen)]
        points = [r for r in points if metric in r["metrics"]]
        if not points:
            reasons = {r["unsuitable"] for r in self.of(run) if "unsuitable" in r}
            raise predicates.NotMeasured("; ".join(sorted(reasons)) or f"{run} has no {metric}" + (f" at {axes}" if axes else ""))
        if len(points) == 1:
            found = points[0]["metrics"][metric]
            return {float(a): float(b) for a, b in found} if isinstance(found, list) else float(found)
        free = [axis for axis in points[0]["point"] if axis not in axes and len({str(r["point"].get(axis)) for r in points}) > 1]
        axis = free[0] if len(free) == 1 else ""
        if axis and all(_number(r["point"][axis]) for r in points):
            return {float(r["point"][axis]): float(r["metrics"][metric]) for r in points}
        # over several axes, or one without numbers: only for what must hold everywhere
        return {float(number): float(r["metrics"][metric]) for number, r in enumerate(sorted(points, key=lambda r: str(r["point"])))}


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(a: Any, b: Any) -> bool:
    return a == b or str(a) == str(b)


def published(experiment: Experiment, name: str) -> Value:
    """A published number, or a curve over the published x, by the name of its metric."""
    several = [figure for text, figure in experiment.figures().items() if predicates.metric_of(text) == name]
    if len(several) != 1:
        raise predicates.PredicateError(f"{experiment.id} has {len(several) or 'no'} published {name}")
    (found,) = several
    if isinstance(found, list):
        return {float(x): float(y) for x, y in zip(experiment.published["x"], found)}
    return float(found)


def judge(source: Source, experiment: Experiment, records: list[dict[str, Any]], profile: str) -> Verdict:
    """The verdict of one experiment from the records of its source."""
    if experiment.cannot:
        return Verdict(experiment, CANNOT, experiment.cannot)
    measured = Measurements(records, source, profile)
    runs = experiment.runs()
    mine = [r for run in runs for r in measured.of(run)]
    found = Verdict(experiment, NOT_RUN, records=mine)
    found.failed = [f"{r['run']} {r['point']}: {r['error']}" for r in measured.failed if r["run"] in runs]
    repeats = measured.repeats(runs)
    if not repeats:
        found.why = found.failed[0] if found.failed else "not all of its points are measured" if mine else NOT_MEASURED
        return found
    lookups = [measured.lookup(experiment, repeat) for repeat in repeats]
    try:
        found.outcomes = _all(experiment.shows, lookups)
    except predicates.PredicateError as error:
        found.verdict, found.why = CANNOT, str(error)
    else:
        found.verdict = _together(found.outcomes)
        if experiment.by_design:
            _by_design(found, lookups)
    try:
        found.checks = _each(experiment.adds_up, lookups)
        if found.checks:
            found.account = ADDS_UP if all(o.verdict == CLEAR for o in found.checks) else DOES_NOT_ADD_UP
    except predicates.PredicateError as error:
        found.account = f"not checked: {error}"
    if found.failed:
        found.why = found.why or f"a point failed: {found.failed[0]}"
    return found


def _by_design(found: Verdict, lookups: list[Lookup]) -> None:
    """The verdict where pgaq differs on purpose: what the design says must be measured."""
    designed = _all(found.experiment.designed, lookups)
    found.outcomes += designed
    if _together(designed) == SHOWS:
        found.verdict, found.why = BY_DESIGN, found.experiment.by_design
    else:
        measured = "Measured otherwise" if any(o.verdict == NOT for o in designed) else "True of the means only"
        found.verdict, found.why = (
            UNEXPECTED,
            f"{measured}: {'; '.join(o.said for o in designed if o.verdict != CLEAR)}. {found.experiment.by_design}",
        )


def figures(source: Source, contradiction: Contradiction, records: list[dict[str, Any]], profile: str) -> list[tuple[str, str]]:
    """What was measured about a contradiction: expressions and their values."""
    measured = Measurements(records, source, profile)
    found = []
    for text in contradiction.figures:
        repeats = sorted({r["repeat"] for r in measured.records})
        anything = Experiment("", "", "", source.number)
        values = []
        for repeat in repeats:
            try:
                values.append(predicates.evaluate(predicates.expression(text), measured.lookup(anything, repeat)))
            except predicates.PredicateError:
                pass  # a point that is not there yet
        if values:
            found.append((text, predicates.shown(values)))
    return found


def conclusion(source: Source, contradiction: Contradiction, records: list[dict[str, Any]], profile: str) -> str:
    """What the lab says about a contradiction: its sentence, marked if the measurements do not bear it out."""
    if contradiction.reason:
        return contradiction.reason
    measured = Measurements(records, source, profile)
    anything = Experiment("", "", "", source.number)
    repeats = measured.repeats(contradiction.runs())
    try:
        outcomes = _all(contradiction.holds, [measured.lookup(anything, repeat) for repeat in repeats]) if repeats else []
    except predicates.PredicateError:
        outcomes = []
    if not outcomes:
        return "Not measured in this run."
    verdict = _together(outcomes)
    begin = {SHOWS: "", WEAKLY: "Only in part, or on average: ", DOES_NOT: "Not confirmed in this run: "}[verdict]
    return begin + contradiction.concludes


def _all(texts: list[str], lookups: list[Lookup]) -> list[Outcome]:
    return [predicates.judge_text(text, lookups) for text in texts]


def _each(texts: list[str], lookups: list[Lookup]) -> list[Outcome]:
    """An account must add up in every repeat, not on average: the worst repeat of each predicate."""
    found = []
    for text in texts:
        outcomes = [predicates.judge_text(text, [lookup]) for lookup in lookups]
        found.append(next((o for o in outcomes if o.verdict != CLEAR), outcomes[0]))
    return found


def _together(outcomes: list[Outcome]) -> str:
    """All hold clearly, none holds, or something between."""
    verdicts = {o.verdict for o in outcomes}
    if verdicts == {CLEAR}:
        return SHOWS
    return DOES_NOT if verdicts == {NOT} else WEAKLY


def judge_all(sources: list[Source], records: list[dict[str, Any]], profile: str) -> list[Verdict]:
    """Every experiment of these sources."""
    return [judge(s, e, [r for r in records if r["source"] == s.number], profile) for s in sources for e in s.experiments.values()]


__all__ = [
    "ADDS_UP",
    "BY_DESIGN",
    "CANNOT",
    "DOES_NOT",
    "DOES_NOT_ADD_UP",
    "NOT_MEASURED",
    "NOT_RUN",
    "SHOWS",
    "UNEXPECTED",
    "WEAK",
    "WEAKLY",
    "Measurements",
    "Verdict",
    "conclusion",
    "figures",
    "judge",
    "judge_all",
]
