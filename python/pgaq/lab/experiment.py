"""The experiments, as the files experiments/*.toml have them: one file for each source.

A file has the source, its runs, and its experiments.  A run is a workload with
axes; each combination of the axes is a point.  One run serves several
experiments.  README.md of this folder describes every key.
"""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgaq.lab import predicates

FOLDER = Path(__file__).with_name("experiments")
PROFILES = ("quick", "standard", "full")


class ExperimentError(Exception):
    """A mistake in a file of experiments: the file, the key, and what is wrong."""


@dataclass
class Run:
    """A workload with axes."""

    name: str
    workload: str
    title: str
    points: dict[str, list[dict[str, Any]]]  # by profile
    seconds: dict[str, float]
    repeats: dict[str, int]
    server: dict[str, str] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)  # axis -> parameter of the session
    options: dict[str, Any] = field(default_factory=dict)
    report: bool = False
    preparation: float = 1.0  # seconds of a measurement before and after what is measured


def _runs(sides: list[Any]) -> list[str]:
    """The runs that these expressions name."""
    return [run for side in sides for run, _ in sorted(predicates.names(side)) if run and run != "published"]


@dataclass
class Experiment:
    """One experiment, figure or table of a source."""

    id: str
    title: str
    lines: str
    source: str
    finding: str = ""
    run: str = ""
    shows: list[str] = field(default_factory=list)
    adds_up: list[str] = field(default_factory=list)
    settles: list[int] = field(default_factory=list)
    published: dict[str, Any] = field(default_factory=dict)  # expression of a point, or of a curve over x -> figure of the source
    published_seconds: float = 0  # how long the source measured; 0 if it does not matter or is not said
    computed: list[str] = field(default_factory=list)  # of these: those that the source does not print, and its figures give
    not_measured: dict[str, Any] = field(default_factory=dict)  # figures of the source that have no counterpart here
    x: str = ""
    by: str = ""
    draw: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)  # runs with the same points whose figures stand beside those of its run
    log: bool = False
    unit: str = ""
    note: str = ""
    by_design: str = ""  # why pgaq differs on purpose
    designed: list[str] = field(default_factory=list)  # what is measured then
    cannot: str = ""  # why it cannot be compared
    processors: int = 0  # simulated ones; 0: the experiment is measured, or compares both

    def runs(self) -> list[str]:
        """All runs that its predicates need."""
        if self.cannot:
            return []
        sides = [
            side for text in self.predicates() for comparison in predicates.parse(text) for side in (comparison.left, comparison.right)
        ]
        return list(dict.fromkeys([*([self.run] if self.run else []), *_runs(sides)]))

    def predicates(self) -> list[str]:
        """All of them: of the finding, of the design, of the account."""
        return [*self.shows, *self.designed, *self.adds_up]

    def figures(self) -> dict[str, Any]:
        """The published figures by the expression that they are of."""
        return {text: figure for text, figure in self.published.items() if text != "x"}

    def measured(self) -> list[str]:
        """These, and those that only its figure or its published figures have."""
        return list(
            dict.fromkeys([*self.runs(), *self.beside, *_runs([predicates.expression(text) for text in [*self.draw, *self.figures()]])])
        )


@dataclass
class Contradiction:
    """An error of the source, and what to measure about it."""

    number: int
    text: str
    figures: list[str]  # expressions of runs
    holds: list[str]  # predicates that the conclusion rests on
    concludes: str  # what the lab says about it if they hold
    reason: str  # why nothing is measured about it

    def runs(self) -> list[str]:
        """The runs of its figures and of its conclusion."""
        sides = [predicates.expression(text) for text in self.figures]
        sides += [side for text in self.holds for c in predicates.parse(text) for side in (c.left, c.right)]
        return sorted(set(_runs(sides)))


@dataclass
class Need:
    """What would show a finding that is weak or does not show, and the simulated experiments that have it."""

    text: str
    simulated: list[str]


@dataclass
class Source:
    """One file."""

    number: str
    title: str
    about: str
    processors: int
    contradictions: dict[int, Contradiction]
    runs: dict[str, Run]
    experiments: dict[str, Experiment]
    needs: dict[str, Need] = field(default_factory=dict)  # id of an experiment of any source -> what would show its finding


class Reader:
    """Takes keys from a table and says where a mistake is."""

    def __init__(self, file: str, where: str, table: Any) -> None:
        self.file, self.where = file, where
        if not isinstance(table, dict):
            self.fail("", "must be a table")
        self.table = dict(table)

    def fail(self, key: str, what: str) -> None:
        place = ".".join(part for part in (self.where, key) if part)
        raise ExperimentError(f"{self.file}: {place}: {what}")

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A key of this type; without a default it must be there."""
        if key not in self.table:
            if default is None:
                self.fail(key, "is missing")
            return default
        value = self.table.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):
            self.fail(key, f"must be {' or '.join(k.__name__ for k in kinds)}, not {type(value).__name__}")
        return value

    def end(self) -> None:
        """No key is left."""
        for key in self.table:
            self.fail(key, "is not a key of this table")


def read(path: Path) -> Source:
    """One file; ExperimentError when something is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path.name}: {error}") from None
    top = Reader(path.name, "", document)
    about = Reader(path.name, "source", top.take("source", dict))
    source = Source(
        number=about.take("number", str), title=about.take("title", str), about=about.take("about", str, ""),
        processors=about.take("processors", int, 1), contradictions={}, runs={}, experiments={},
    )  # fmt: skip
    about.end()
    for name, table in top.take("run", dict, {}).items():
        source.runs[name] = _run(path.name, name, table)
    for number, table in top.take("contradiction", dict, {}).items():
        source.contradictions[int(number)] = _contradiction(path.name, number, table, source)
    for name, table in top.take("experiment", dict).items():
        source.experiments[name] = _experiment(path.name, name, table, source)
    for name, table in top.take("needs", dict, {}).items():
        reader = Reader(path.name, f"needs.{name}", table)
        source.needs[name] = Need(reader.take("text", str), reader.take("simulated", list, []))
        reader.end()
        for each in source.needs[name].simulated:
            if each not in source.experiments:
                reader.fail("simulated", f'there is no experiment "{each}" in this file')
    top.end()
    return source


def _per_profile(reader: Reader, key: str, kind: type | tuple[type, ...], default: Any = None) -> dict[str, Any]:
    """A value for each profile: one for all, or a table."""
    value = reader.take(key, (dict, *(kind if isinstance(kind, tuple) else (kind,))), default)
    if not isinstance(value, dict):
        return {profile: value for profile in PROFILES}
    for profile in PROFILES:
        if profile not in value:
            reader.fail(key, f"has no value for profile {profile}")
    for profile in value:
        if profile not in PROFILES:
            reader.fail(key, f"{profile} is not a profile; there are {', '.join(PROFILES)}")
    return value


def _run(file: str, name: str, table: Any) -> Run:
    from pgaq.lab import workloads

    reader = Reader(file, f"run.{name}", table)
    workload = reader.take("workload", str)
    if workload not in workloads.WORKLOADS:
        reader.fail("workload", f'there is no workload "{workload}"; there are {", ".join(sorted(workloads.WORKLOADS))}')
    axes = reader.take("axes", dict, {})
    listed = reader.take("points", list, [])
    if axes and listed:
        reader.fail("points", "stand instead of axes")
    points = {profile: listed or _points(axes, profile) for profile in PROFILES}
    found = Run(
        name, workload, reader.take("title", str, name), points, _per_profile(reader, "seconds", (int, float)),
        _per_profile(reader, "repeats", int, 1), reader.take("server", dict, {}), reader.take("session", dict, {}),
        reader.take("options", dict, {}), reader.take("report", bool, False), reader.take("preparation", (int, float), 1.0),
    )  # fmt: skip
    reader.end()
    return found


def _points(axes: dict[str, Any], profile: str) -> list[dict[str, Any]]:
    """Every combination; an axis is a list, or a list for each profile."""
    values = [axis[profile] if isinstance(axis, dict) else axis for axis in axes.values()]
    return [dict(zip(axes, point)) for point in itertools.product(*values)]


def _contradiction(file: str, number: str, table: Any, source: Source) -> Contradiction:
    reader = Reader(file, f"contradiction.{number}", table)
    found = Contradiction(
        int(number), reader.take("text", str), reader.take("figures", list, []), reader.take("holds", list, []), reader.take("concludes", str, ""),
        reader.take("reason", str, ""),
    )  # fmt: skip
    reader.end()
    if not found.reason and not (found.holds and found.concludes):
        reader.fail("concludes", "is missing, with the predicates that it rests on (key holds): what does the lab say about it?")
    for key, parse in (("figures", predicates.expression), ("holds", predicates.parse)):
        for text in getattr(found, key):
            try:
                parse(text)  # type: ignore[operator]
            except predicates.PredicateError as error:
                reader.fail(key, str(error))
    for run in found.runs():
        if run not in source.runs:
            reader.fail("holds", f'there is no run "{run}" in this file')
    return found


def _experiment(file: str, name: str, table: Any, source: Source) -> Experiment:
    reader = Reader(file, f"experiment.{name}", table)
    found = Experiment(
        id=name, title=reader.take("title", str), lines=reader.take("lines", str), source=source.number,
        finding=reader.take("finding", str, ""), run=reader.take("run", str, ""), shows=reader.take("shows", list, []),
        adds_up=reader.take("adds_up", list, []), settles=reader.take("settles", list, []), published=reader.take("published", dict, {}),
        x=reader.take("x", str, ""), by=reader.take("by", str, ""), draw=reader.take("draw", list, []), log=reader.take("log", bool, False),
        unit=reader.take("unit", str, ""), note=reader.take("note", str, ""), by_design=reader.take("by_design", str, ""), designed=reader.take("designed", list, []),
        cannot=reader.take("cannot", str, ""), not_measured=reader.take("not_measured", dict, {}),
        computed=reader.take("computed", list, []), published_seconds=reader.take("published_seconds", (int, float), 0),
        beside=reader.take("beside", list, []), processors=reader.take("processors", int, 0),
    )  # fmt: skip
    reader.end()
    if found.cannot:
        return found
    if not found.run:
        reader.fail("run", "is missing, and there is no reason why it cannot be compared (key cannot)")
    if not found.finding:
        reader.fail("finding", "is missing")
    for key, parse in (
        ("shows", predicates.parse),
        ("designed", predicates.parse),
        ("adds_up", predicates.parse),
        ("draw", predicates.expression),
        ("figures", predicates.expression),
    ):
        for text in found.figures() if key == "figures" else getattr(found, key):
            try:
                parse(text)  # type: ignore[operator]
            except predicates.PredicateError as error:
                reader.fail("published" if key == "figures" else key, str(error))
    for run in found.measured():
        if run not in source.runs:
            reader.fail("run", f'there is no run "{run}" in this file')
    for run in found.beside:
        if source.runs[run].workload != source.runs[found.run].workload:
            reader.fail("beside", f'"{run}" has another workload than "{found.run}"')
    if not found.shows:
        reader.fail("shows", "is missing: what must be seen?")
    if bool(found.by_design) != bool(found.designed):
        reader.fail("designed", "and by_design go together: what is measured where pgaq differs on purpose, and why?")
    _check_published(reader, found)
    return found


def _check_published(reader: Reader, found: Experiment) -> None:
    """Each figure is a number, words such as "< 8,000", or as many numbers as x has."""
    xs = found.published.get("x", [])
    for text, figure in found.figures().items():
        if isinstance(figure, list) and len(figure) != len(xs):
            reader.fail("published", f"{text} has {len(figure)} figures for {len(xs)} values of x")
        if not isinstance(figure, (list, int, float, str)):
            reader.fail("published", f"{text} must be a number, text or a list")
    for text in found.computed:
        if text not in found.figures():
            reader.fail("computed", f"{text} is not a published figure")


def load(folder: Path = FOLDER) -> list[Source]:
    """All sources, in order."""
    return sorted((read(path) for path in folder.glob("*.toml")), key=lambda source: source.number)


def choose(sources: list[Source], wanted: list[str]) -> list[Experiment]:
    """The experiments with these ids, runs or sources; all without any."""
    every = [experiment for source in sources for experiment in source.experiments.values()]
    if not wanted:
        return every
    for name in wanted:
        if not knows(sources, name):
            raise ExperimentError(f"there is no experiment, run or source {name}; see pgaq lab list")
    chosen = {name.casefold() for name in wanted}
    return [e for e in every if chosen & _names(e)]


def knows(sources: list[Source], name: str) -> bool:
    """It is the id, the run or the source of an experiment, in capitals or not."""
    return any(name.casefold() in _names(e) for source in sources for e in source.experiments.values())


def _names(e: Experiment) -> set[str]:
    return {name.casefold() for name in (e.id, e.source, *e.runs())}
