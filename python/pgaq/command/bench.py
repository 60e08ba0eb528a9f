"""pgaq bench: bench/run of the tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from pgaq import places
from pgaq.command import output
from pgaq.command.common import FAILURE, USAGE, Failure, chosen, command


def add_to(app: typer.Typer) -> None:
    command(app, "bench", context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})(bench)


def bench(context: typer.Context) -> None:
    """Measure throughput and latency on a private server: bench/run.

    Arguments are those of bench/run: --quick, --long, --shapes NAME,..., --contestants pgaq,classic,pgq,skip,bare.
    With --json the results are an array, one object for each shape, and are not saved; the tables go to standard error.
    """
    if chosen().dbname:
        raise Failure("the benchmark measures on a private server", "Leave -d out", USAGE)
    source = places.source()
    if source is None:
        raise Failure(
            "the benchmark is built from source, and there is no source here",
            "Run it in a clone of the project, or set PGAQ_SOURCE to one",
            FAILURE,
        )
    program = str(source / "bench" / "run")
    from pgaq.bench import throughput  # noqa: PLC0415 - only this command needs it

    # what is wrong is said before anything is installed or built
    given = throughput.parse(context.args)
    shapes = throughput.shapes_of(given)
    if chosen().json and given.list:
        output.write_json([{"shape": shape.name} for shape in shapes])
        return
    if chosen().json:
        raise typer.Exit(run_for_json(program, [each for each in context.args if each != "--no-save"]))
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and its programs would
    # in place of this process: signals reach it, and it ends its server
    os.execv(program, [program, *context.args])


def run_for_json(program: str, arguments: list[str]) -> int:
    """Writes what the benchmark would save, and returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="pgaq-bench-") as directory:
        running = subprocess.Popen([program, *arguments, "--output", directory], stdout=sys.stderr)
        signal.signal(signal.SIGTERM, lambda *_: running.terminate())
        try:
            status = running.wait()
        except KeyboardInterrupt:
            running.wait()  # the terminal has interrupted it as well; it ends its server
            raise
        found = [json.loads(path.read_text()) for path in sorted(Path(directory).glob("*.json"))]
    output.write_json(found)
    return status if status >= 0 else FAILURE
