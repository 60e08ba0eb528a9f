"""Runs experiments: every point of their runs, repeats interleaved, each result in a file of its own.

A finished point is a JSON file in the output directory, so an interrupted run
continues where it was: what is there, and was measured as asked for now, is not
measured again.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

from pgaq.lab import experiment as model
from pgaq.lab import workloads
from pgaq.lab.site import SETTINGS, Site, Unsuitable, pinned, reported
from pgaq.load import machine, results
from pgaq.server import Server


@dataclass
class Task:
    """One measurement."""

    source: model.Source
    run: model.Run
    point: dict[str, Any]
    repeat: int
    seconds: float

    @property
    def name(self) -> str:
        """Of its file: the run, the point's axes, the repeat."""
        axes = "-".join(f"{key}_{value}" for key, value in self.point.items())
        text = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{self.source.number}-{self.run.name}-{axes}".rstrip("-"))
        return f"{text}-r{self.repeat}"

    @property
    def key(self) -> str:
        """What was asked for; a change of the experiment's file makes another key."""
        asked = [self.run.workload, self.point, self.seconds, self.run.server, self.run.session, self.run.options]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        axes = ", ".join(f"{key} {value}" for key, value in self.point.items())
        return f"{self.run.title}{': ' if axes else ''}{axes}"


def tasks(
    sources: list[model.Source], chosen: list[model.Experiment], profile: str, repeats: int | None = None, at_most: float | None = None
) -> list[Task]:
    """All measurements of the experiments: each run once, repeat after repeat; none longer than `at_most` seconds."""
    found: list[Task] = []
    for source in sources:
        mine = [e for e in chosen if e.source == source.number]
        settled = [source.contradictions[number] for e in mine for number in e.settles]
        names = dict.fromkeys([*(name for e in mine for name in e.measured()), *(name for c in settled for name in c.runs())])
        # what is simulated needs what was measured
        runs = sorted((source.runs[name] for name in names), key=lambda run: run.workload == "simulated")
        most = max((repeats or run.repeats[profile] for run in runs), default=0)
        for repeat in range(1, most + 1):
            for run in runs:
                if repeat > (repeats or run.repeats[profile]):
                    continue
                points = run.points[profile]
                # the order changes, so that no point always follows the same one
                shift = (repeat - 1) % len(points) if points else 0
                for point in points[shift:] + points[:shift]:
                    seconds = float(run.seconds[profile])
                    found.append(Task(source, run, point, repeat, seconds if at_most is None else min(seconds, at_most)))
    return found


class Laboratory:
    """One private server, restarted when a run needs other settings."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory
        self.settings: dict[str, str] = {}  # beyond those of every run
        self.base: dict[str, str] = {}
        self._server: Server | None = None

    def server(self, settings: dict[str, str]) -> Server:
        if self._server is None:
            self._server = Server.temporary("lab", settings=SETTINGS, parent=self.directory, tcp=True)
            with self._server.connect() as conn:
                conn.execute("CREATE EXTENSION pgaq_oracle CASCADE; CREATE EXTENSION pgaq_lab")
            self.base = dict(self._server.settings)
        if settings != self.settings:
            self._server.stop()
            self._server.configure(**{name: self.base.get(name) for name in self.settings})
            self._server.configure(**settings)
            self.settings = dict(settings)
        self._server.start()
        return self._server

    def close(self) -> None:
        if self._server is not None:
            self._server.destroy()

    def __enter__(self) -> "Laboratory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def measure(laboratory: Laboratory, task: Task, output: Path) -> dict[str, Any]:
    """One measurement, as its file has it."""
    server = laboratory.server(task.run.server)
    settings = {parameter: task.point[axis] for axis, parameter in task.run.session.items() if axis in task.point}
    settings |= {name: value for name, value in task.run.options.items() if name.startswith("pgaq.")}
    site = Site(
        server, settings, {name: value for name, value in task.run.options.items() if not name.startswith("pgaq.")}, output, task.repeat
    )
    # a simulated point has its processors by the simulation
    processors = None if task.run.workload == "simulated" else task.point.get("processors")
    record: dict[str, Any] = {
        "source": task.source.number, "run": task.run.name, "workload": task.run.workload, "point": task.point, "repeat": task.repeat,
        "seconds": task.seconds, "key": task.key, "began": datetime.datetime.now().isoformat(timespec="seconds"),
        "settings": {**task.run.server, **settings}, "options": site.options,
    }  # fmt: skip
    before, began = machine.cpu(server), time.monotonic()
    clients = time.process_time()
    try:
        with pinned(server, processors), _snapshots(server, task, output) as report:
            found = workloads.WORKLOADS[task.run.workload](site, task.point, task.seconds)
        record["metrics"] = {name: _plain(value) for name, value in found.items()}
        record["report"] = report.get("file")
    except Unsuitable as error:
        record |= {"metrics": {}, "unsuitable": str(error)}
    except Exception as error:  # noqa: BLE001 - an experiment that fails must not end the others
        record |= {"metrics": {}, "error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"}
        _calm(server)
    took = time.monotonic() - began
    after = machine.cpu(server)
    others = after.machine - before.machine - (after.server - before.server) - (time.process_time() - clients)
    record |= {
        "took": took,
        "server_cpu": after.server - before.server,
        "other_cpu": max(0.0, others) / took,
        "stolen_cpu": (after.steal - before.steal) / took,
    }
    return record


@contextlib.contextmanager
def _snapshots(server: Server, task: Task, output: Path) -> Iterator[dict[str, str]]:
    """The workload report of the interval, if the run asks for one."""
    report: dict[str, str] = {}
    if not task.run.report:
        yield report
        return
    with reported(server) as made:
        yield report
    report["file"] = f"{task.name}.html"
    (output / report["file"]).write_text(made.page, encoding="utf-8")


def _calm(server: Server) -> None:
    """No session of a failed measurement continues."""
    if server.running():
        with server.connect() as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgaq lab' AND pid <> pg_backend_pid()"
            )


def _plain(value: Any) -> Any:
    """A curve as pairs, since the keys of JSON are text."""
    return [[float(x), float(y)] for x, y in sorted(value.items())] if isinstance(value, dict) else float(value)


# -- the output directory


def read_records(output: Path) -> list[dict[str, Any]]:
    """All finished measurements of a directory.  One whose file cannot be read counts as missing, and is measured again."""
    records = []
    for path in sorted((output / "runs").glob("*.json")):
        with contextlib.suppress(ValueError):
            records.append(json.loads(path.read_text()))
    return records


def _write(path: Path, content: Any) -> None:
    """A file is whole, or not there."""
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def finished(task: Task, output: Path) -> dict[str, Any] | None:
    """The measurement, if it was made as asked for now."""
    path = output / "runs" / f"{task.name}.json"
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return record if record.get("key") == task.key and "error" not in record else None


def expected_seconds(task: Task) -> float:
    """A measurement with its preparation; a simulation has none."""
    return task.seconds + task.run.preparation


def about(profile: str, chosen: list[model.Experiment]) -> dict[str, Any]:
    """What run.json says."""
    return {
        "profile": profile, "began": datetime.datetime.now().isoformat(timespec="seconds"), "commit": results.commit_id(),
        "machine": machine.describe(), "experiments": [e.id for e in chosen],
    }  # fmt: skip


def execute(
    work: list[Task],
    output: Path,
    description: dict[str, Any],
    *,
    directory: Path | None = None,
    tell: Callable[[Task, int, dict[str, Any] | None], None] = lambda *_: None,
) -> bool:
    """Measure what is not there yet; False when interrupted.  `tell` hears of each task before (None) and after it."""
    (output / "runs").mkdir(parents=True, exist_ok=True)
    if not (output / "run.json").exists():
        _write(output / "run.json", description)
    else:
        known = json.loads((output / "run.json").read_text())
        known["experiments"] = list(dict.fromkeys([*known["experiments"], *description["experiments"]]))
        _write(output / "run.json", known)
    try:
        with Laboratory(directory) as laboratory:
            for number, task in enumerate(work):
                record = finished(task, output)
                if record is None:
                    tell(task, number, None)
                    record = measure(laboratory, task, output)
                    _write(output / "runs" / f"{task.name}.json", record)
                tell(task, number, record)
    except KeyboardInterrupt:
        return False
    return True


__all__ = ["Task", "about", "execute", "expected_seconds", "finished", "read_records", "tasks"]
