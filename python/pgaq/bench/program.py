"""Common code of the measuring programs: options, the server's settings and directory, exit handling."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, NoReturn

from pgaq import db, places
from pgaq.load import results
from pgaq.load.workload import LoadError
from pgaq.places import SurroundingsError


# the load client numbers and names each message inside its payload
LEAST_PAYLOAD = 39


def at_least(least: float, kind: type = int) -> Callable[[str], Any]:
    """Type of an option: a number, and not less."""

    def read(word: str) -> Any:
        number = kind(word)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least:g}, not {word}")
        return number

    read.__name__ = kind.__name__  # argparse names it when the word is no number
    return read


def above_zero(word: str) -> float:
    """Type of an option: a number of seconds or minutes."""
    number = float(word)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be above 0, not {word}")
    return number


def setting(word: str) -> str:
    """Type of the option --set."""
    if "=" not in word.lstrip("="):
        raise argparse.ArgumentTypeError(f"{word!r} is not of the form NAME=VALUE")
    return word


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every such program."""
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE", help="another server setting")
    parser.add_argument("--parent", type=Path, help="directory for the server (default: beside the tree, or /var/tmp)")
    parser.add_argument("--no-save", action="store_true", help="write no file")
    parser.add_argument("--output", type=Path, default=results.RESULTS, help="directory for the file (bench/results)")


def add_rounds(parser: argparse.ArgumentParser, rounds: int, warm_up: float, parts: Iterable[str], measured: str = "in a round") -> None:
    """The options of programs whose contestants play several rounds of several parts, with their defaults."""
    known = list(parts)

    def chosen(value: str) -> list[str]:
        for part in value.split(","):
            if part not in known:
                raise argparse.ArgumentTypeError(f"there is no part {part!r}; there are {', '.join(known)}")
        return value.split(",")

    parser.add_argument("--rounds", type=at_least(1), default=rounds, help=f"of each contestant ({rounds})")
    parser.add_argument("--seconds", type=above_zero, default=6, help=f"measured {measured} (6)")
    parser.add_argument("--warm-up", type=at_least(0, float), default=warm_up)
    parser.add_argument("--parts", type=chosen, default=known, metavar="PART,...", help=f"of {', '.join(known)}")


def settings(given: argparse.Namespace, **own: Any) -> dict[str, Any]:
    """The server's settings: those of every measurement, the program's own, those of --set."""
    return {**results.SETTINGS, **own, **dict(item.split("=", 1) for item in given.set)}


def parent(given: argparse.Namespace) -> Path:
    """Directory for the server, on a real disk: /tmp may be memory."""
    return given.parent or places.private_directory(places.ROOT / ".pgaq")


def check(given: argparse.Namespace) -> None:
    """Reports missing requirements and obstacles before anything is built or measured."""
    places.pg_major()
    if given.parent is not None:
        if not given.parent.is_dir():
            raise SurroundingsError(f"--parent: there is no directory {given.parent}; make it first, on a disk with room.")
        if not (os.access(given.parent, os.W_OK | os.X_OK) and places.server_can_reach(given.parent)):
            who = places.server_user() or "you"
            raise SurroundingsError(
                f"--parent: {given.parent} cannot be written by us or entered by {who}, who runs the server; choose another, such as /var/tmp."
            )
    if not given.no_save:
        try:
            given.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SurroundingsError(f"--output: {given.output} cannot be made ({error.strerror}); choose another, or --no-save.") from None
        if not os.access(given.output, os.W_OK | os.X_OK):
            raise SurroundingsError(f"--output: {given.output} cannot be written; choose another, or --no-save.")


def conclude(name: str, content: dict[str, Any], claims: list[results.Claim], problems: list[str], given: argparse.Namespace) -> int:
    """Prints the claims and the first unexpected lines of the server's log, and writes the file; returns the exit status."""
    print(results.verdict_table(claims))
    for line in problems[:20]:
        print(line)
    if not given.no_save:
        print(f"\nwritten: {results.save(name, content, claims, given.output)}")
    return 1 if results.failed(claims) or problems else 0


def carry_out(name: str, given: argparse.Namespace, run: Callable[[], int]) -> int:
    """The exit status of run(); what it cannot help becomes one line."""
    places.clean_up_when_terminated()
    try:
        check(given)
        return run()
    except (SurroundingsError, LoadError) as error:
        print(f"\n{name}: {error}", file=sys.stderr)
        return 1
    except db.Error as error:
        print(f"\n{name}: the server says: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise  # to leave()
    except OSError as error:
        # no room, too many open files
        print(f"\n{name}: {error.filename or given.parent or 'this machine'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"\n{name}: {error}: {(error.stderr or '').strip()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return 130


def leave(main: Callable[[], int]) -> NoReturn:
    """Runs the program and ends this process; the reader of its output may have left before."""
    code = 1
    try:
        try:
            code = main()
        finally:
            sys.stdout.flush()  # also what argparse wrote
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
