"""`pgaq lab load`: the first source's test run.  N sessions enqueue and N dequeue between two snapshots; then comes the report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable

from pgaq.lab import experiment as model
from pgaq.lab.run import Laboratory
from pgaq.lab.site import SETTINGS, Report, Sessions, Site, reported
from pgaq.lab.workloads import harness
from pgaq.text import to_json

SOURCE, RUN = "000", "ab"  # whose settings a load has
METHODS, STORES, VISIBILITIES = ("listen", "subscriber"), tuple(harness.QUEUES), ("immediate", "on_commit")
BESIDE = 2  # connections beside those of the jobs: one looks on, one takes the snapshots
MOST = (int(SETTINGS["max_connections"]) - BESIDE) // 2  # jobs of each kind

# of the report: sections, and their columns with the names that they have in JSON
SHOWN = {
    "top_events": {
        "Event": "event",
        "Waits": "waits",
        "Total Wait Time": "seconds",
        "Avg Wait": "avg_ms",
        "% DB time": "percent_db_time",
        "Wait Class": "wait_class",
    },
    "latch_sleeps": {"Latch Name": "latch", "Get Requests": "gets", "Misses": "misses", "Sleeps": "sleeps", "Spin Gets": "spin_gets"},
    "mutex_sleeps": {"Mutex Type": "mutex_type", "Location": "location", "Sleeps": "sleeps", "Waits": "waits", "Wait Time": "wait_ms"},
}
LINES = {"top_events": 10}  # of a section; 5 of the others


@dataclass
class Found:
    """What a load has done: messages by the count of its clients, and how many seconds that took; the report, and its first lines as text."""

    enqueued: int
    dequeued: int
    took: float
    report: Report
    text: list[str]

    def figures(self) -> dict[str, float]:
        """Messages, and messages per second of the time that it took."""
        counts = {"enqueued": self.enqueued, "dequeued": self.dequeued}
        return {**counts, **{f"{name}_per_s": count / self.took for name, count in counts.items()}, "took": self.took}

    def lines(self) -> dict[str, list[dict[str, Any]]]:
        """The first lines of the report as objects, by section."""
        return {
            section["id"]: [dict(zip(SHOWN[section["id"]].values(), row)) for row in section["rows"]]
            for section in excerpt(self.report)["sections"]
        }


def run(program: harness.Program, seconds: float, tell: Callable[[str, float], None]) -> Found:
    """On a server of its own.  `tell` hears of each step, and of the seconds that the jobs have run."""
    (source,) = (each for each in model.load() if each.number == SOURCE)
    settings = source.runs[RUN]
    tell("starting a server", 0)
    with Laboratory() as laboratory:
        server = laboratory.server(settings.server)
        site = Site(server, {name: value for name, value in settings.options.items() if name.startswith("pgaq.")})
        tell("creating the queue and the sessions", 0)
        with server.connect() as look, Sessions(site) as sessions:
            jobs = harness.Jobs(look, sessions, program)
            with reported(server) as report:
                began = time.monotonic()
                jobs.start(seconds)
                results = sessions.watch(lambda: tell("running", min(seconds, time.monotonic() - began)))
                took = time.monotonic() - began
                tell("writing the report", seconds)
            text = [line for (line,) in look.execute("SELECT * FROM aq.report_text(%s::jsonb)", [to_json(excerpt(report))])]
    return Found(*harness.messages(results), took, report, text)


def excerpt(report: Report) -> dict[str, Any]:
    """The report with those of its lines that matter most: events, latches, mutexes."""
    sections = {section["id"]: section for section in report.model["sections"]}
    return {**report.model, "advice": [], "sections": [_cut(sections[name]) for name in SHOWN]}


def _cut(section: dict[str, Any]) -> dict[str, Any]:
    names = [column["name"] for column in section["columns"]]
    keep = [names.index(name) for name in SHOWN[section["id"]]]
    rows = [[row[i] for i in keep] for row in section["rows"][: LINES.get(section["id"], 5)]]
    return {**section, "notes": [], "columns": [section["columns"][i] for i in keep], "rows": rows, "chart": None}


__all__ = ["BESIDE", "METHODS", "MOST", "STORES", "VISIBILITIES", "Found", "run"]
