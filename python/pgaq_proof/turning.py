"""Changed records for the lab: can a measurement turn each verdict, and each comparison that it rests on?

From a predicate and the points of its runs this makes records: first such that
every predicate holds, then for each comparison such that this one alone does
not.  The values are found by a search: those that the predicates read are set,
scaled and copied until the comparisons are as wanted.  What no record turns is
no measurement: a comparison of constants, of a figure with itself, or of what
another predicate has said already.

A workload computes some figures from others, and some relations hold whatever
it measures.  DERIVED and KNOWN list them, so that a search does not set them
free: a predicate that repeats its workload's arithmetic cannot be turned then.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

from pgaq.lab import predicates, verdict
from pgaq.lab.experiment import Contradiction, Experiment, Source
from pgaq.lab.predicates import Comparison

KINDS = ("lock", "pin", "latch", "mutex", "channel")

# workload -> metric -> how it is computed from others of the same record
DERIVED: dict[str, dict[str, str]] = {
    "queue_loop": {
        "false_per_message": "false_wakeups / dequeued", "channel_recurrent": "channel_sleeps + channel_spin_gets - channel_misses",
        "channel_expected": "2 * (listen_waits + listens) + enqueued", "latch_ns_per_deq": "ns_per_latch_get * latch_gets_per_deq",
        "mutex_ns_per_deq": "ns_per_mutex_get * mutex_gets_per_deq", "latch_gets_per_deq": "own_channel / own", "mutex_gets_per_deq": "own_object_gets / own",
    },
    "traced_cases": {
        **{f"wake_{kind}": f"case3_{kind} - case2_{kind}" for kind in KINDS}, **{f"predicted5_{kind}": f"case2_{kind} + 4 * wake_{kind}" for kind in KINDS},
        **{f"case{n}_operations": f"case{n}_gets + case{n}_releases" for n in range(1, 6)},
    },
    "hammer": {"cpu_us_per_get": "1000000 * cpu_s / done", "recurrent": "sleeps + spin_gets - misses"},
    "static_wait": {
        "sleeps_per_s": "sleeps / took_s", "ms_per_sleep": "1000 * took_s / sleeps", "cpu_percent": "100 * cpu_s / took_s",
        "wanted_percent": "100 * wanted_s / took_s", "yields_per_sleep": "yields / sleep_calls",
    },
    "row_cache": {
        "gets_per_execution": "gets / executions", "expected_gets": "executions * properties", "latch_gets_per_get": "latch_gets / gets",
        "wait_ms": "1000 * wait_s / waits", "recurrent": "latch_sleeps + latch_spin_gets - latch_misses",
        "cpu_percent": "100 * cpu_s / elapsed_s", "wait_percent": "100 * wait_s / elapsed_s",
    },
    "queue_curve": {"both_per_s": "enqueued_per_s + delivered_per_s"},
}  # fmt: skip

# workload -> what holds whatever is measured
KNOWN: dict[str, list[str]] = {
    "queue_loop": [
        "channel_misses <= channel_gets", "object_misses <= object_gets", "latch_mode_ns <= latch_longest_ns", "mutex_mode_ns <= mutex_longest_ns",
        "mutex_x_samples + latch_free_samples <= samples", "mutex_x_percent <= 100",
    ],
    "hammer": ["cpus <= processors", "misses <= gets", "spin_gets <= misses"],
    "static_wait": ["cpu_s <= took_s", "held_s <= took_s", "max(steps) <= longest_ms"],
    "row_cache": ["wait_s <= elapsed_s", "cache_samples <= mutex_samples", "described_samples <= latch_samples", "latch_misses <= latch_gets", "cache_misses <= gets"],
    "queue_curve": ["exactly_once <= 1", "drained <= 1"],
    "many_names": ["used <= names", "dequeued <= names", "undeclared_seen <= names"],
}  # fmt: skip

SIGNED = ("first_dequeue_s",)  # a difference of two times; other figures that are counted are not negative
FACTORS = (-0.5, 0.0, 0.3, 0.9, 0.995, 1.0, 1.005, 1.1, 1.5, 3.0, 30.0)
LOOKUP = functools.cache(predicates.expression)
SPAN = [*range(6, 31)]  # of a histogram: powers of two


class Unturned(Exception):
    """No record was found."""


@dataclass
class Clause:
    """One comparison, and what the search knows of it."""

    role: str
    text: str  # of its predicate
    comparison: Comparison
    touched: set[tuple[int, str]] = field(default_factory=set)  # (record, metric)

    def __str__(self) -> str:
        return f"{self.role}: {self.comparison}"


class Metrics(dict[str, Any]):
    """The metrics of one record; tells what is read of it."""

    def __init__(self, number: int, seen: set[tuple[int, str]]) -> None:
        super().__init__()
        self.number, self.seen = number, seen

    def __getitem__(self, metric: str) -> Any:
        self.seen.add((self.number, metric))
        return super().__getitem__(metric)


def _is_curve(metric: str) -> bool:
    return metric == "steps" or metric.endswith("_histogram")


class Records:
    """Records of every point that an experiment or a contradiction needs, and its predicates."""

    def __init__(self, source: Source, subject: Experiment | Contradiction, seed: int = 1, profile: str = "standard") -> None:
        self.source, self.subject, self.profile, self.random = source, subject, profile, random.Random(seed)
        experiment = isinstance(subject, Experiment)
        self.experiment = subject if isinstance(subject, Experiment) else Experiment("", "", "", source.number)
        roles = (
            {"shows": subject.shows, "designed": subject.designed, "adds_up": subject.adds_up}
            if isinstance(subject, Experiment)
            else {"holds": subject.holds}
        )
        self.clauses = [
            Clause(role, text, comparison) for role, texts in roles.items() for text in texts for comparison in predicates.parse(text)
        ]
        self.seen: set[tuple[int, str]] = set()
        runs = subject.runs()
        wanted = {name: self._metrics(name, runs if not experiment else [subject.run]) for name in runs}  # type: ignore[union-attr]
        self.records: list[dict[str, Any]] = []
        self.several = any(metric.endswith("_error") for metrics in wanted.values() for metric in metrics)
        for repeat, name in itertools.product((1, 2) if self.several else (1,), runs):
            for point in source.runs[name].points[profile]:
                metrics = Metrics(len(self.records), self.seen)
                self.records.append(
                    {
                        "source": source.number,
                        "run": name,
                        "workload": source.runs[name].workload,
                        "point": point,
                        "repeat": repeat,
                        "metrics": metrics,
                    }
                )
        self.known = [clause for number, record in enumerate(self.records) for clause in self._known(number, record, wanted[record["run"]])]
        self.wanted = {name: sorted(metric.removesuffix("_error") for metric in metrics) for name, metrics in wanted.items()}
        measured = verdict.Measurements(self.records, source, profile)
        self.lookups = [measured.lookup(self.experiment, repeat) for repeat in ((1, 2) if self.several else (1,))]

    def _metrics(self, name: str, default: list[str]) -> set[str]:
        """What its predicates read of a run, and what that is computed from."""
        found = {
            metric for clause in self.clauses for side in (clause.comparison.left, clause.comparison.right) for of, metric in predicates.names(side)
            if of == name or (not of and name in default)
        } - {"repeats"}  # fmt: skip
        derived = DERIVED.get(self.source.runs[name].workload, {})
        while True:
            more = {metric for each in found if each in derived for _, metric in predicates.names(predicates.expression(derived[each]))}
            if more <= found:
                return found
            found |= more

    def _known(self, number: int, record: dict[str, Any], metrics: set[str]) -> Iterator[Clause]:
        for text in KNOWN.get(record["workload"], []):
            for comparison in predicates.parse(text):
                if all(metric in metrics for side in (comparison.left, comparison.right) for _, metric in predicates.names(side)):
                    yield Clause(f"known of {number}", text, comparison)

    # -- values

    def begin(self) -> None:
        """Draws every figure again: the same at all points, or not."""
        uniform = self.random.random() < 0.7
        for name, metrics in self.wanted.items():
            for metric in metrics:
                value = self._anything()
                for number, record in enumerate(self.records):
                    if record["run"] == name:
                        of_point = value if uniform else self._anything()
                        dict.__setitem__(record["metrics"], metric, self._start(metric, of_point * (1 + 0.005 * (record["repeat"] - 1))))
        for number in range(len(self.records)):
            self._derive(number)

    def _anything(self) -> float:
        return float(self.random.choice([0, 1, 2, 3, 7, 12, 40, 100, 500, 1000, 20000, 10**6, 10**9]))

    def _start(self, metric: str, value: float) -> Any:
        if metric == "steps":
            return [[float(n), value] for n in range(1, 17)]
        if _is_curve(metric):
            return [[2.0**n, value] for n in SPAN]
        return value

    def _derive(self, number: int, changed: str = "") -> None:
        """Compute what is computed from others, or only from the changed one."""
        record = self.records[number]
        metrics = record["metrics"]
        for metric, text, of in _derived(record["workload"]):
            if metric in metrics and (not changed or changed in of):
                dict.__setitem__(metrics, metric, predicates.evaluate(LOOKUP(text), lambda _, name, __: metrics.get(name)))

    def _set(self, cells: list[tuple[int, str]], value: Callable[[float, int, float], float]) -> None:
        """New values: a function of the old one, the record, and the x of a curve."""
        for number, metric in cells:
            record = self.records[number]
            old = record["metrics"].get(metric)
            if isinstance(old, list):
                n = self.random.randrange(len(old)) if len(cells) == 1 and self.random.random() < 0.5 else None
                new: Any = [[x, max(0.0, value(y, number, x))] if n in (None, i) else [x, y] for i, (x, y) in enumerate(old)]
            else:
                axes = [axis for axis in record["point"].values() if isinstance(axis, (int, float))]
                new = value(old, number, float(axes[-1]) if axes else math.nan)
                new = new if metric in SIGNED else max(0.0, new)
            dict.__setitem__(record["metrics"], metric, new)
            self._derive(number, metric)

    # -- truth

    def _sides(self, clause: Clause) -> tuple[Any, Any, bool | None]:
        """Both sides, and whether the comparison holds; None if it says nothing, as with 0 / 0."""
        self.seen.clear()
        if clause.role.startswith("known"):
            metrics = self.records[int(clause.role.split()[-1])]["metrics"]
            lookups = [lambda _, name, __: {x: y for x, y in metrics[name]} if isinstance(metrics[name], list) else metrics[name]]
        else:
            lookups = self.lookups
        found = [predicates._margins(clause.comparison, lookup) for lookup in lookups]
        clause.touched = set(self.seen)
        left, right, points = found[0]
        every = [y for _, _, margins in found for y in margins.values()]
        if not all(math.isfinite(y) for y in every):
            return left, right, None
        sign = clause.comparison.sign
        if sign in ("==", "!="):
            near = 1e-6 * max(
                1.0, *(abs(float(y)) for side in (left, right) for y in (side.values() if isinstance(side, dict) else [side]))
            )
            if any(0 < abs(y) < near for y in every):
                return left, right, None  # by rounding only
            return left, right, all(y == 0 for y in every) == (sign == "==")
        return left, right, all(predicates._verdict(sign, [margins[x] for _, _, margins in found]) == predicates.CLEAR for x in points)

    # -- the search

    def find(self, want: dict[int, bool], tries: int = 40, steps: int = 250) -> list[dict[str, Any]]:
        """Records in which these comparisons hold, or do not; Unturned if there are none."""
        aims = [(self.clauses[n], aim) for n, aim in want.items()] + [(clause, True) for clause in self.known]
        for _ in range(tries):
            self.begin()
            state = {id(clause): self._sides(clause) for clause, _ in aims}
            for _ in range(steps):
                unmet = _unmet(aims, state)
                if not unmet:
                    return self.plain()
                self._step(aims, state, *self.random.choice(list(unmet.values())), len(unmet))
        raise Unturned

    def _step(self, aims: list[tuple[Clause, bool]], state: dict[int, Any], clause: Clause, aim: bool, unmet: int) -> None:
        """Change what a comparison reads; take it back if that is worse."""
        cells = self._base(clause.touched)
        if not cells:
            return
        chosen = self._choose(cells)
        kept = [(number, dict(self.records[number]["metrics"])) for number in {n for n, _ in chosen}]
        self._set(chosen, self._value(state[id(clause)], chosen))
        changed = {(number, of) for number, metric in chosen for of in _moved(self.records[number]["workload"], metric)}
        after = {id(c): state[id(c)] if c.touched.isdisjoint(changed) else self._sides(c) for c, _ in aims}
        if len(_unmet(aims, after)) <= unmet or self.random.random() < 0.02:
            state.update(after)
            return
        for number, metrics in kept:
            dict.update(self.records[number]["metrics"], metrics)
        for c, _ in aims:
            if after[id(c)] is not state[id(c)]:
                state[id(c)] = self._sides(c)

    def _base(self, touched: set[tuple[int, str]]) -> list[tuple[int, str]]:
        """The figures to set: what is computed from others is not set itself."""
        return sorted({(number, base) for number, metric in touched for base in _bases(self.records[number]["workload"], metric)})

    def _choose(self, cells: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """One figure, the same figure of all points, or of those of one point on."""
        one = self.random.choice(cells)
        alike = [cell for cell in cells if cell[1] == one[1] and self.records[cell[0]]["run"] == self.records[one[0]]["run"]]
        kind = self.random.random()
        return [one] if kind < 0.45 else alike if kind < 0.85 else [cell for cell in alike if cell[0] >= one[0]]

    def _value(self, sides: tuple[Any, Any, Any], chosen: list[tuple[int, str]]) -> Callable[[float, int, float], float]:
        """A new value: the other side of the comparison, what makes both sides alike, the value of another figure; or a little more or less."""
        choose, flat = self.random.choice, [list(side.values()) if isinstance(side, dict) else [side] for side in sides[:2]]
        either = [choose(values) for values in flat]
        factor = 1.0 if self.random.random() < 0.5 else choose(FACTORS)
        turn = choose([1, -1])

        def both(x: float) -> tuple[float, float]:
            left, right = (side.get(x, any_) if isinstance(side, dict) else side for side, any_ in zip(sides, either))
            return (left, right)[::turn]

        def alike(old: float, number: int, x: float) -> float:
            one, other = both(x)
            return _sound(round(old * one / other * factor, 9)) if other else _sound(one * factor)

        def moved(old: float, number: int, x: float) -> float:
            one, other = both(x)
            return _sound(old + (one - other) * factor)

        def copied(old: float, number: int, x: float) -> float:
            value = self.records[number]["metrics"].get(name)
            return _sound(value * factor) if isinstance(value, float) else old

        name = choose(list(self.records[chosen[0][0]]["metrics"]))
        anything = self._anything()
        return self.random.choices(
            [lambda old, number, x: _sound(both(x)[0] * factor), alike, moved, copied, lambda old, number, x: _sound(old * factor + (factor == 1.0)), lambda old, number, x: anything],
            [25, 25, 20, 15, 8, 7],
        )[0]  # fmt: skip

    def plain(self) -> list[dict[str, Any]]:
        """The records as a directory has them."""
        both = self.records if self.several else [{**record, "repeat": repeat} for repeat in (1, 2) for record in self.records]
        return [{**record, "metrics": dict(record["metrics"]), "settings": {}, "other_cpu": 0.0, "seconds": 1.0} for record in both]


def _unmet(aims: list[tuple[Clause, bool]], state: dict[int, Any]) -> dict[str, tuple[Clause, bool]]:
    """The comparisons that are not as wanted; what is known counts once for all records."""
    return {
        clause.text if clause.role.startswith("known") else str(id(clause)): (clause, aim)
        for clause, aim in aims
        if state[id(clause)][2] is not aim
    }


def _sound(value: float) -> float:
    """A figure is finite."""
    return float(value) if math.isfinite(value) else 0.0


@functools.cache
def _derived(workload: str) -> list[tuple[str, str, frozenset[str]]]:
    """What a workload computes, in an order in which it can be: metric, expression, and all that it is computed from."""
    texts = DERIVED.get(workload, {})
    ordered: list[str] = []
    while len(ordered) < len(texts):
        ordered += [
            m
            for m in texts
            if m not in ordered and all(name in ordered or name not in texts for _, name in predicates.names(LOOKUP(texts[m])))
        ]
    return [(metric, texts[metric], frozenset(_bases(workload, metric))) for metric in ordered]


@functools.cache
def _bases(workload: str, metric: str) -> tuple[str, ...]:
    """The figures that a metric is computed from in the end; itself if it is counted."""
    texts = DERIVED.get(workload, {})
    if metric not in texts:
        return (metric,)
    return tuple(sorted({base for _, name in predicates.names(LOOKUP(texts[metric])) for base in _bases(workload, name)}))


@functools.cache
def _moved(workload: str, metric: str) -> tuple[str, ...]:
    """A figure, and those that are computed from it."""
    return (metric, *(other for other, _, of in _derived(workload) if metric in of))


def _falsities(clauses: list[Clause], role: str) -> Iterator[tuple[int, ...]]:
    """For each predicate of a role one of its comparisons."""
    by_text: dict[str, list[int]] = {}
    for n, clause in enumerate(clauses):
        if clause.role == role:
            by_text.setdefault(clause.text, []).append(n)
    return itertools.product(*by_text.values())


def faults(source: Source, subject: Experiment | Contradiction) -> list[str]:
    """What is wrong with the predicates of an experiment or contradiction; nothing if records turn all of them."""
    records = Records(source, subject)
    clauses = records.clauses
    role = "holds" if isinstance(subject, Contradiction) else "designed" if subject.by_design else "shows"
    judged = [n for n, c in enumerate(clauses) if c.role == role]
    account = [n for n, c in enumerate(clauses) if c.role == "adds_up"]
    found = []

    def expect(what: str, want: dict[int, bool], said: str, tries: int = 40) -> None:
        try:
            made = records.find(want, tries)
        except Unturned:
            found.append(f"no record {what}")
            return
        got = said_of(source, subject, made)
        if said not in got:
            found.append(f"a record that {what} gives {got}, not {said}")

    good = {"holds": "confirmed", "designed": verdict.BY_DESIGN, "shows": verdict.SHOWS}[role]
    bad = {"holds": "not confirmed", "designed": verdict.UNEXPECTED, "shows": verdict.DOES_NOT}[role]
    partly = {"holds": "in doubt", "designed": verdict.UNEXPECTED, "shows": "not shown"}[role]
    whole = {n: True for n in [*judged, *account]}
    expect("satisfies all predicates", whole, good)
    for n in judged:
        expect(f"turns {clauses[n]} while the others hold", {**whole, n: False}, partly)
    for n in account:
        expect(
            f"turns {clauses[n]} while the others of the account hold", {**{m: True for m in account}, n: False}, verdict.DOES_NOT_ADD_UP
        )
    # a conclusion is one sentence, and marked if it holds in part only
    for chosen in _falsities(clauses, role) if role != "holds" else ():
        try:
            made = records.find({n: False for n in chosen}, 5)
        except Unturned:
            continue
        if bad in said_of(source, subject, made):
            break
    else:
        if role != "holds":
            found.append(f"no record gives {bad}")
    if role == "designed":
        expect("shows the finding", {n: True for n, c in enumerate(clauses) if c.role == "shows"}, verdict.UNEXPECTED)
    return found


# with less processor time, it matters that sessions do not begin at the same moment: their time is divided by that of one of them
COUNTED_CPU_S = 4.0


def misdescribed(record: dict[str, Any]) -> list[str]:
    """What DERIVED and KNOWN say of a record's workload, and the record does not have."""
    metrics = {name: dict(value) if isinstance(value, list) else value for name, value in record["metrics"].items()}

    def look(_: str, name: str, __: dict[str, Any]) -> predicates.Value:
        if name not in metrics:
            raise predicates.NotMeasured(name)
        return metrics[name]

    found = []
    for metric, text in DERIVED.get(record["workload"], {}).items():
        with contextlib.suppress(predicates.NotMeasured):
            value = predicates.evaluate(LOOKUP(text), look)
            if math.isfinite(value) and metric in metrics and not math.isclose(value, metrics[metric], rel_tol=0.01, abs_tol=1e-6):
                found.append(f"{metric} is {metrics[metric]}, and {text} is {value}")
    for text in KNOWN.get(record["workload"], []):
        if text == "cpus <= processors" and metrics.get("cpu_s", 0) < COUNTED_CPU_S:
            continue
        with contextlib.suppress(predicates.NotMeasured):
            small, large = (predicates.evaluate(LOOKUP(side), look) for side in text.split(" <= "))
            if small > large * 1.02 + 0.001:  # times of two clocks
                found.append(f"{text} does not hold")
    return found


def flattered(source: Source, subject: Experiment | Contradiction, tries: int = 40) -> float:
    """The share of records with any positive figures in which all its predicates hold: a finding is not of every machine."""
    records = Records(source, subject)
    judged = [clause for clause in records.clauses if clause.role in ("shows", "holds")]
    records._anything = lambda: 10 ** records.random.uniform(-2, 6)  # type: ignore[method-assign]
    number = 0
    for _ in range(tries):
        records.begin()
        number += all(records._sides(clause)[2] for clause in judged)
    return number / tries


def said_of(source: Source, subject: Experiment | Contradiction, records: list[dict[str, Any]]) -> list[str]:
    """What the lab says of these records."""
    if isinstance(subject, Contradiction):
        said = verdict.conclusion(source, subject, records, "standard")
        if said == subject.concludes:
            return ["confirmed"]
        return ["in doubt", "not confirmed"] if said.startswith("Not confirmed") else ["in doubt"]
    made = verdict.judge(source, subject, records, "standard")
    return [made.verdict, made.account] + (["not shown"] if made.verdict in (verdict.WEAKLY, verdict.DOES_NOT) else [])


__all__ = ["DERIVED", "KNOWN", "Records", "Unturned", "faults", "flattered", "misdescribed"]
