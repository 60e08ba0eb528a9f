"""pgaq lab: list, run, report, compare.  `./lab` starts it from a clone."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any, List, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pgaq import places
from pgaq.lab import experiment as model
from pgaq.lab import run as runs

app = typer.Typer(help="Repeat the experiments of the sources and draw them beside the published figures.", no_args_is_help=True, add_completion=False)
COLORS = {"shows": "green", "weak": "yellow", "does not show": "red", "does not add up": "red"}


def _stop(message: object, code: int = 2) -> None:
    Console(stderr=True).print(f"lab: {message}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def _needs_figures() -> None:
    """Before a measurement is made, not after the last one: the page can be drawn."""
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        _stop("the page needs matplotlib: run tools/setup lab, or apt-get install python3-matplotlib, or pip install matplotlib", 1)


def _load(wanted: list[str]) -> tuple[list[model.Source], list[model.Experiment]]:
    try:
        sources = model.load()
        return sources, model.choose(sources, wanted)
    except model.ExperimentError as error:
        _stop(error)
        raise AssertionError from error


def _profile(quick: bool, full: bool) -> str:
    if quick and full:
        _stop("--quick and --full exclude each other")
    return "quick" if quick else "full" if full else "standard"


def _minutes(work: list[runs.Task]) -> str:
    seconds = sum(runs.expected_seconds(task) for task in work)
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@app.command("list")
def list_experiments(
    names: Optional[List[str]] = typer.Argument(None, metavar="[ID...]", help="ids, runs or sources; all without any"),
    quick: bool = typer.Option(False, "--quick", help="durations of the profile quick"),
    full: bool = typer.Option(False, "--full", help="durations of the profile full"),
    as_json: bool = typer.Option(False, "--json", help="as JSON"),
) -> None:
    """List the experiments with their runs and durations."""
    sources, chosen = _load(names or [])
    profile = _profile(quick, full)
    if as_json:
        import json

        keys = ("id", "title", "source", "lines", "finding", "run", "cannot", "settles")
        print(json.dumps([{key: getattr(e, key) for key in keys} for e in chosen], indent=1))
        return
    shown = Table("id", "experiment", "source", "run", "shows", box=None, pad_edge=False)
    for e in chosen:
        shown.add_row(e.id, e.title, f"{e.source}:{e.lines}", e.run or "-", e.finding or f"cannot be compared: {e.cannot}")
    console = Console()
    console.print(shown)
    console.print(f"{len(chosen)} experiments, about {_minutes(runs.tasks(sources, chosen, profile))} with profile {profile}", highlight=False)


@app.command("run")
def run_experiments(
    names: Optional[List[str]] = typer.Argument(None, metavar="[ID...]", help="ids, runs or sources; all without any"),
    quick: bool = typer.Option(False, "--quick", help="under 10 minutes for all"),
    full: bool = typer.Option(False, "--full", help="the durations of the sources"),
    repeat: Optional[int] = typer.Option(None, "--repeat", min=1, help="repeats of each point instead of the profile's"),
    only: Optional[List[str]] = typer.Option(None, "--only", metavar="ID", help="like an argument; may be given several times"),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="directory of the results; one that is there is continued"),
) -> None:
    """Run experiments, then write the report."""
    sources, chosen = _load([*(names or []), *(only or [])])
    profile = _profile(quick, full)
    _needs_figures()
    work = runs.tasks(sources, chosen, profile, repeat)
    output = output or Path("lab-results") / f"{datetime.datetime.now():%Y%m%d-%H%M}-{profile}"
    known = _known_profile(output)
    if known not in (None, profile):
        _stop(f"{output} has measurements of profile {known}; choose another --output")
    console = Console()
    console.print(f"{len(chosen)} experiments, {len(work)} measurements, about {_minutes(work)}; results in {output}", highlight=False, soft_wrap=True)
    places.clean_up_when_terminated()
    try:
        whole = _execute(work, output, runs.about(profile, chosen), console)
    except places.SurroundingsError as error:
        _stop(error, 1)
        return
    results = _report(sources, output)
    _summary(console, results, {e.id for e in chosen})
    console.print(f"page: {output / 'index.html'}", highlight=False, soft_wrap=True)
    if not whole:
        console.print("Interrupted. The same command with the same --output continues.")
        raise typer.Exit(130)
    mine = [c for c in results["cards"] if c["id"] in {e.id for e in chosen}]
    raise typer.Exit(1 if any(c["failed"] or c["account"] == "does not add up" for c in mine) else 0)


def _known_profile(output: Path) -> str | None:
    import json

    try:
        return json.loads((output / "run.json").read_text())["profile"]
    except (OSError, ValueError, KeyError):
        return None


def _execute(work: list[runs.Task], output: Path, description: dict[str, Any], console: Console) -> bool:
    """Measure with a progress bar, or a line for each measurement where there is no terminal."""
    columns = [TextColumn("{task.percentage:>3.0f} %"), BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}", markup=False)]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=sum(runs.expected_seconds(task) for task in work))

        def tell(task: runs.Task, number: int, record: dict[str, Any] | None) -> None:
            progress.update(bar, description=f"{number + 1} of {len(work)}: {task}")
            if record is None:
                if not console.is_terminal:
                    print(f"{number + 1} of {len(work)}: {task}", flush=True)
                return
            progress.advance(bar, runs.expected_seconds(task))
            if "error" in record:
                progress.console.print(f"{task}: {record['error']}", markup=False, highlight=False, soft_wrap=True)

        return runs.execute(work, output, description, tell=tell)


def _report(sources: list[model.Source], output: Path) -> dict[str, Any]:
    """results.json and the page."""
    from pgaq.lab import collect, page

    results = collect.collect(sources, output)
    collect.save(results, output)
    page.write(results, output)
    return results


def _summary(console: Console, results: dict[str, Any], ids: set[str]) -> None:
    shown = Table("id", "experiment", "finding", "account", box=None, pad_edge=False)
    for card in results["cards"]:
        if card["id"] in ids:
            verdict, account = card["verdict"], card["account"]
            color, other = COLORS.get(verdict, "default"), COLORS.get(account, "default")
            shown.add_row(card["id"], card["title"], f"[{color}]{verdict}[/]", f"[{other}]{account}[/]")
    console.print(shown)


@app.command("report")
def report(
    output: Path = typer.Argument(..., help="directory of the results"),
    markdown: Optional[Path] = typer.Option(None, "--markdown", metavar="FILE", help="put the verdicts between the marks of this page, too"),
    pictures: str = typer.Option("", "--pictures", metavar="ID,...", help="with --markdown: figures that it shows"),
) -> None:
    """Write the page again from the measurements of a directory."""
    if not (output / "run.json").exists():
        _stop(f"{output} has no results")
    _needs_figures()
    sources, _ = _load([])
    results = _report(sources, output)
    if markdown is not None:
        from pgaq.lab import page

        try:
            page.write_markdown(results, markdown, pictures.split(","))
        except (OSError, ValueError) as error:
            _stop(error)
    _summary(Console(), results, {c["id"] for c in results["cards"] if c["verdict"] != "not run"})
    Console().print(f"page: {output / 'index.html'}", highlight=False, soft_wrap=True)


@app.command("compare")
def compare(
    first: Path = typer.Argument(..., help="a directory of results, or a results.json"),
    second: Path = typer.Argument(..., help="another one"),
    output: Path = typer.Option(Path("lab-compare.html"), "--output", "-o", help="the page"),
) -> None:
    """Put two runs side by side: machines, versions or settings."""
    _needs_figures()
    from pgaq.lab import collect, page

    try:
        both = collect.read(first), collect.read(second)
    except OSError as error:
        _stop(f"no results: {error.filename}: {error.strerror}")
        return
    except ValueError as error:
        _stop(f"no results: {error}")
        return
    output.write_text(page.compare(*both, (first.name, second.name)), encoding="utf-8")
    theirs = {c["id"]: c for c in both[1]["cards"]}
    shown = Table("id", "experiment", first.name, second.name, box=None, pad_edge=False)
    for card in both[0]["cards"]:
        if card["id"] in theirs:
            shown.add_row(card["id"], card["title"], card["verdict"], theirs[card["id"]]["verdict"])
    Console().print(shown)
    Console().print(f"page: {output}", highlight=False, soft_wrap=True)


def main() -> None:
    """`./lab` alone runs everything; `./lab --quick` does not need the word run."""
    arguments = sys.argv[1:]
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("--help", "-h")):
        arguments = ["run", *arguments]
    app(args=arguments, prog_name="lab")


if __name__ == "__main__":
    main()
