"""pgaq lab: list, run, report, compare, load.  `./lab` starts it from a clone."""

from __future__ import annotations

import datetime
import difflib
import os
import sys
from pathlib import Path
from typing import Any, Callable, List, Optional

import click
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from pgaq import places, text
from pgaq.command import output
from pgaq.command.common import FAILURE, INTERRUPTED, OK, USAGE, Failure, Group, choice, chosen, command, group
from pgaq.lab import experiment as model
from pgaq.lab import jobs
from pgaq.lab import run as runs
from pgaq.lab.site import SETTINGS
from pgaq.lab.workloads.harness import Program


class LabGroup(Group):
    """The word run may be left out before an experiment or an option of it."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if arguments and not context.resilient_parsing and self._runs(context, arguments[0]):
            arguments = ["run", *arguments]
        return super().parse_args(context, arguments)

    def _runs(self, context: click.Context, word: str) -> bool:
        if word.startswith("-"):
            return word.partition("=")[0] not in [name for parameter in self.get_params(context) for name in parameter.opts]
        commands = self.list_commands(context)
        return word not in commands and (model.knows(model.load(), word) or not difflib.get_close_matches(word, commands))


app = group("Repeat the experiments of the sources and draw them beside the published figures.", LabGroup, add_completion=False)
COLORS = {"shows": "green", "weak": "yellow", "does not show": "red", "does not add up": "red"}


@app.callback()
def begin() -> None:
    pass


def _heed_options() -> None:
    """The lab has a server of its own for each run of measurements: it needs other parameters, and a restart."""
    if chosen().dbname:
        output.notes(["The lab measures on private servers of its own: -d is not used."])


def _console() -> Console:
    """Where words and tables go: with --json to standard error."""
    return output.console(stderr=chosen().json)


def _needs_figures() -> None:
    """Before a measurement is made, not after the last one: the page can be drawn."""
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise Failure(
            "the page needs matplotlib", "Run tools/setup lab, or apt-get install python3-matplotlib, or pip install matplotlib", FAILURE
        ) from None


def _load(wanted: list[str]) -> tuple[list[model.Source], list[model.Experiment]]:
    try:
        sources = model.load()
        return sources, model.choose(sources, wanted)
    except model.ExperimentError as error:
        raise Failure(str(error), code=USAGE) from None


def _ids(incomplete: str) -> list[str]:
    """Completion: the ids of the experiments."""
    return [each.id for each in model.choose(model.load(), []) if each.id.startswith(incomplete)]


def _profile(quick: bool, full: bool) -> str:
    if quick and full:
        raise Failure("--quick and --full cannot be combined", code=USAGE)
    return "quick" if quick else "full" if full else "standard"


def _number(things: list[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _minutes(work: list[runs.Task]) -> str:
    seconds = sum(runs.expected_seconds(task) for task in work)
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@command(app, "list")
def list_experiments(
    names: Optional[List[str]] = typer.Argument(None, metavar="[ID...]", autocompletion=_ids, help="ids, runs or sources; all without any"),
    quick: bool = typer.Option(False, "--quick", help="durations of the profile quick"),
    full: bool = typer.Option(False, "--full", help="durations of the profile full"),
) -> None:
    """List the experiments with their runs and durations."""
    sources, experiments = _load(names or [])
    profile = _profile(quick, full)
    _heed_options()
    if chosen().json:
        keys = ("id", "title", "source", "lines", "finding", "run", "cannot", "settles")
        output.write_json([{key: getattr(e, key) for key in keys} for e in experiments])
        return
    shown = Table("id", "experiment", "source", "run", "shows", box=None, pad_edge=False)
    for e in experiments:
        shown.add_row(e.id, e.title, f"{e.source}:{e.lines}", e.run or "-", e.finding or f"cannot be compared: {e.cannot}")
    console = _console()
    console.print(shown)
    console.print(
        f"{_number(experiments, 'experiment')}, about {_minutes(runs.tasks(sources, experiments, profile))} with profile {profile}",
        highlight=False,
    )


@command(app, "run")
def run_experiments(
    names: Optional[List[str]] = typer.Argument(None, metavar="[ID...]", autocompletion=_ids, help="ids, runs or sources; all without any"),
    quick: bool = typer.Option(False, "--quick", help="under 10 minutes for all"),
    full: bool = typer.Option(False, "--full", help="the durations of the sources"),
    repeat: Optional[int] = typer.Option(None, "--repeat", min=1, help="repeats of each point instead of the profile's"),
    seconds: Optional[float] = typer.Option(
        None, "--seconds", min=0.1, help="maximum seconds for each measurement, to see that all experiments run; findings need more"
    ),
    only: Optional[List[str]] = typer.Option(
        None, "--only", metavar="ID", autocompletion=_ids, help="like an argument; may be given several times"
    ),
    directory: Optional[Path] = typer.Option(None, "--output", "-o", help="directory of the results; one that is there is continued"),
    markdown: Optional[Path] = typer.Option(
        None, "--markdown", metavar="FILE", help="put the verdicts between the marks of this page, too, and draw its figures again"
    ),
) -> int:
    """Run experiments, then write the report."""
    sources, experiments = _load([*(names or []), *(only or [])])
    profile = _profile(quick, full)
    _heed_options()
    _needs_figures()
    if markdown is not None:
        _marked(markdown)
    work = runs.tasks(sources, experiments, profile, repeat, seconds)
    directory = directory or Path("lab-results") / f"{datetime.datetime.now():%Y%m%d-%H%M}-{profile}"
    known = _known_profile(directory)
    if known not in (None, profile):
        raise Failure(f"{directory} has measurements of profile {known}", "Choose another --output", USAGE)
    console = _console()
    console.print(
        f"{_number(experiments, 'experiment')}, {_number(work, 'measurement')}, about {_minutes(work)}; results in {directory}",
        highlight=False,
        soft_wrap=True,
    )
    places.clean_up_when_terminated()
    try:
        whole = _execute(work, directory, runs.about(profile, experiments), console)
    except places.SurroundingsError as error:
        raise Failure(str(error), code=FAILURE) from None
    results = _report(sources, directory)
    if markdown is not None and whole:
        _publish(results, markdown)
    mine = [card for card in results["cards"] if card["id"] in {e.id for e in experiments}]
    _tell(directory, mine, interrupted=not whole)
    if not whole:
        console.print("Interrupted. The same command with the same --output continues.")
        return INTERRUPTED
    return FAILURE if any(card["failed"] or card["account"] == "does not add up" for card in mine) else OK


def _known_profile(directory: Path) -> str | None:
    import json

    try:
        return json.loads((directory / "run.json").read_text())["profile"]
    except OSError:
        return None
    except (ValueError, KeyError) as error:
        raise Failure(f"{directory / 'run.json'} cannot be read: {error}", "Choose another --output", USAGE) from None


def _progress(console: Console) -> Progress:
    """A bar with its times; nothing where there is no terminal."""
    # in a narrow terminal the description is cut, not the times
    last = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = [
        TextColumn("{task.percentage:>3.0f} %"), BarColumn(20), TimeElapsedColumn(Column(min_width=7)), TextColumn("left"), TimeRemainingColumn(table_column=Column(min_width=7)), last,
    ]  # fmt: skip
    return Progress(*columns, expand=True, console=console, disable=not console.is_terminal)


def _execute(work: list[runs.Task], directory: Path, description: dict[str, Any], console: Console) -> bool:
    """Measure with a progress bar, or a line for each measurement where there is no terminal."""
    with _progress(console) as progress:
        bar = progress.add_task("", total=sum(runs.expected_seconds(task) for task in work))

        def tell(task: runs.Task, number: int, record: dict[str, Any] | None) -> None:
            progress.update(bar, description=f"{number + 1} of {len(work)}: {task}")
            if record is None:
                if not console.is_terminal:
                    console.print(f"{number + 1} of {len(work)}: {task}", soft_wrap=True)
                return
            progress.advance(bar, runs.expected_seconds(task))
            if "error" in record:
                progress.console.print(f"{task}: {record['error']}", markup=False, highlight=False, soft_wrap=True)

        return runs.execute(work, directory, description, tell=tell)


def _report(sources: list[model.Source], directory: Path) -> dict[str, Any]:
    """results.json and the page."""
    from pgaq.lab import collect, page

    results = collect.collect(sources, directory)
    collect.save(results, directory)
    page.write(results, directory)
    return results


def _marked(markdown: Path) -> None:
    """Before a measurement is made, not after the last one: the page takes the verdicts."""
    from pgaq.lab import page

    try:
        page.read_markdown(markdown)
    except OSError as error:
        raise Failure(f"{markdown}: {error.strerror}", code=USAGE) from None
    except ValueError as error:
        raise Failure(str(error), code=USAGE) from None


def _publish(results: dict[str, Any], markdown: Path, pictures: list[str] | None = None) -> None:
    """The verdicts in a page of a documentation, and its figures."""
    from pgaq.lab import page

    _marked(markdown)
    page.write_markdown(results, markdown, pictures)


def _tell(directory: Path, cards: list[dict[str, Any]], *, interrupted: bool = False) -> None:
    """What the experiments have shown, and where the page is."""
    page = str(directory / "index.html")
    if chosen().json:
        keys = ("id", "title", "verdict", "account", "failed")
        output.write_json({"page": page, "interrupted": interrupted, "experiments": [{key: card[key] for key in keys} for card in cards]})
        return
    shown = Table("id", "experiment", "finding", "account", box=None, pad_edge=False)
    for card in cards:
        verdict, account = card["verdict"], card["account"]
        shown.add_row(
            card["id"], card["title"], Text(verdict, COLORS.get(verdict, "default")), Text(account, COLORS.get(account, "default"))
        )
    console = _console()
    console.print(shown)
    console.print(f"page: {page}", highlight=False, soft_wrap=True)


@command(app, "report")
def report(
    directory: Path = typer.Argument(..., metavar="DIRECTORY", help="directory of the results"),
    markdown: Optional[Path] = typer.Option(
        None, "--markdown", metavar="FILE", help="put the verdicts between the marks of this page, too"
    ),
    pictures: str = typer.Option(
        "", "--pictures", metavar="ID,...", help="with --markdown: figures that it shows; without it those that it has"
    ),
) -> None:
    """Write the page again from the measurements of a directory."""
    if not (directory / "run.json").exists():
        raise Failure(f"{directory} has no results", code=USAGE)
    _known_profile(directory)
    _heed_options()
    _needs_figures()
    sources, _ = _load([])
    results = _report(sources, directory)
    if markdown is not None:
        _publish(results, markdown, pictures.split(",") if pictures else None)
    _tell(directory, [card for card in results["cards"] if card["verdict"] != "not run"])


@command(app, "compare")
def compare(
    first: Path = typer.Argument(..., metavar="FIRST", help="a directory of results, or a results.json"),
    second: Path = typer.Argument(..., metavar="SECOND", help="another one"),
    file: Path = typer.Option(Path("lab-compare.html"), "--output", "-o", metavar="FILE", help="the page"),
    every: bool = typer.Option(False, "--all", help="list the experiments with the same verdict, too"),
) -> None:
    """Put two runs side by side, first what differs: machines, versions or settings."""
    _heed_options()
    _needs_figures()
    from pgaq.lab import collect, page

    try:
        both = collect.read(first), collect.read(second)
    except OSError as error:
        raise Failure(f"no results: {error.filename}: {error.strerror}", code=USAGE) from None
    except ValueError as error:
        raise Failure(f"no results: {error}", code=USAGE) from None
    file.write_text(page.compare(*both, (first.name, second.name)), encoding="utf-8")
    apart, alike = page.pairs(*both)
    if chosen().json:
        keys = {"verdicts": "verdict", "accounts": "account"}
        found = [
            {"id": a["id"], "title": a["title"], **{name: [a[key], b[key]] for name, key in keys.items()}} for a, b in [*apart, *alike]
        ]
        output.write_json({"page": str(file), "differ": len(apart), "experiments": found})
        return
    shown = Table("id", "experiment", first.name, second.name, box=None, pad_edge=False)
    for card, other in [*apart, *(alike if every else [])]:
        said = [
            f"{c['verdict']}, {c['account']}" if c["account"] and card["account"] != other["account"] else c["verdict"]
            for c in (card, other)
        ]
        shown.add_row(card["id"], card["title"], *said)
    console = _console()
    if shown.row_count:
        console.print(shown)
    console.print(
        page.share(len(apart), len(apart) + len(alike)) + ("." if every or not alike else "; --all lists the others."),
        highlight=False,
        soft_wrap=True,
    )
    for line in page.alone(*both, (first.name, second.name)):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"page: {file}", highlight=False, soft_wrap=True)


@command(app, "load")
def load(
    sessions: int = typer.Option(16, "--sessions", metavar="N", min=1, help="N sessions enqueue, and N dequeue."),
    method: str = choice("listen", "--method", jobs.METHODS, metavar="METHOD", help="How they dequeue"),
    store: str = choice("table", "--store", jobs.STORES, metavar="STORE", help="Where the messages are"),
    visibility: str = choice("immediate", "--visibility", jobs.VISIBILITIES, metavar="VISIBILITY", help="Option of every call"),
    seconds: float = typer.Option(60, "--seconds", "-s", min=0.1, help="How long they run."),
    burn_us: float = typer.Option(
        Program.burn_us,
        "--burn-us",
        metavar="MICROSECONDS",
        min=0,
        help="Processor time that a session burns before each message that it enqueues.",
    ),
    file: Path = typer.Option(Path("lab-load.html"), "--output", "-o", metavar="FILE", help="The report, as a page."),
) -> None:
    """Run N + N sessions of the first source's program on a private server, between two snapshots, and report that time."""
    if sessions > jobs.MOST:
        many = f"{sessions} + {sessions} sessions need {2 * sessions + jobs.BESIDE} connections, and the server of the lab has {SETTINGS['max_connections']} (max_connections)"
        raise Failure(many, f"Give --sessions {jobs.MOST} or fewer", USAGE)
    _heed_options()
    _writable(file)
    program = Program(sessions, method, store, visibility, burn_us)
    console = _console()
    console.print(
        f"{sessions} + {sessions} sessions for {seconds:g} s: {method}, {store}, {visibility}, burner of {burn_us:g} us",
        highlight=False,
        soft_wrap=True,
    )
    places.clean_up_when_terminated()
    try:
        with _progress(console) as progress:
            found = jobs.run(program, seconds, _teller(progress, seconds))
    except places.SurroundingsError as error:
        raise Failure(str(error), code=FAILURE) from None
    file.write_text(found.report.page, encoding="utf-8")
    if chosen().json:
        given = {"sessions": sessions, "method": method, "store": store, "visibility": visibility, "burn_us": burn_us, "seconds": seconds}
        output.write_json({**given, **found.figures(), **found.lines(), "page": str(file)})
        return
    figures = found.figures()
    for name in ("enqueued", "dequeued"):
        console.print(
            f"{name}  {text.number(figures[name]):>11} messages  {text.number(figures[f'{name}_per_s'], 1):>9} per second",
            highlight=False,
            soft_wrap=True,
        )
    console.print()
    for line in found.text:
        text.say(line)
    console.print(f"page: {file}", highlight=False, soft_wrap=True)


def _writable(file: Path) -> None:
    """Before the load runs, not after it: the page can be written."""
    if file.is_dir():
        raise Failure(f"{file} is a directory", "Give --output a file", USAGE)
    if not file.parent.is_dir():
        raise Failure(f"{file}: there is no directory {file.parent}", "Create it, or give another --output", USAGE)
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise Failure(f"{file}: permission denied", "Give another --output", USAGE)


def _teller(progress: Progress, seconds: float) -> Callable[[str, float], None]:
    """Shows the steps of a load: in the bar, or a line for each where there is no terminal."""
    bar, said = progress.add_task("", total=seconds), [""]

    def tell(step: str, done: float) -> None:
        progress.update(bar, completed=done, description=step)
        if step != said[0] and progress.disable:
            progress.console.print(step, highlight=False)
        said[0] = step

    return tell


def main() -> None:
    """`./lab` alone runs everything."""
    arguments = sys.argv[1:] or ["run"]
    from pgaq.command.main import run  # noqa: PLC0415  it loads the lab when it is asked for

    sys.exit(run(arguments, app, "lab"))


if __name__ == "__main__":
    main()
