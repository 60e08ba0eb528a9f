"""What the programs that measure have in common: some options, the server's settings and place, how they end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Callable

from pgaq import places
from pgaq.lab import results
from pgaq.lab.load import LoadError
from pgaq.places import SurroundingsError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every such program."""
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another server setting")
    parser.add_argument("--parent", type=Path, help="directory for the server (default: beside the tree, or /var/tmp)")
    parser.add_argument("--no-save", action="store_true", help="write no file")
    parser.add_argument("--output", type=Path, default=results.RESULTS)


def settings(given: argparse.Namespace, **own: Any) -> dict[str, Any]:
    """Of the server: those of every measurement, the program's own, what --set says."""
    return {**results.SETTINGS, **own, **dict(item.split("=", 1) for item in given.set)}


def parent(given: argparse.Namespace) -> Path:
    """Directory for the server, on a real disk: /tmp may be memory."""
    return given.parent or places.private_directory(places.ROOT / ".pgaq")


def carry_out(name: str, run: Callable[[], int]) -> int:
    """The exit status of run(); what it cannot help becomes one line."""
    places.clean_up_when_terminated()
    try:
        return run()
    except (SurroundingsError, LoadError) as error:
        print(f"\n{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return 130
