"""The mutants of tests/mutants still fit the sources."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "mutants"))

import run as mutants  # noqa: E402

KINDS = {"flush", "clean-up", "wake-up", "announcement", "check", "condition", "pin", "order", "off by one", "time"}


def test_mutants_apply():
    """Each row's text is in the sources, once."""
    rows = mutants.read_mutants()
    assert len(rows) >= 150 and len({m.name for m in rows}) == len(rows)
    assert [m.name for m in mutants.stale_mutants(rows)] == [], "mend or remove their rows: tests/mutants/run.py --check shows them"


def test_mutants_are_complete():
    """Each has a known kind, changes something, and names tests that are there."""
    tests = Path(__file__).resolve().parents[2] / "tests"
    folders = {
        "sql": ("sql", ".sql"),
        "queue_tables": ("sql", ".sql"),
        "isolation": ("isolation/specs", ".spec"),
        "queue_tables_isolation": ("isolation/specs", ".spec"),
    }
    for mutant in mutants.read_mutants():
        assert mutant.kind in KINDS and mutant.old != mutant.new and mutant.tests, mutant.name
        for spec in mutant.tests:
            rung, names, *_ = spec.split(":")
            if rung in ("cluster", "cluster_tables"):
                assert (tests / "cluster" / names).exists(), f"{mutant.name}: {spec}"
            else:
                folder, suffix = folders[rung]
                assert all((tests / folder / f"{name}{suffix}").exists() for name in names.split(",")), f"{mutant.name}: {spec}"
