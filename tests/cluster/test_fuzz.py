"""Odd arguments of every function, by several roles; random queries over the views.

The long form, best on a server with assertions (tools/setup assert): tests/fuzz.py --minutes 60.
"""

from __future__ import annotations

import fuzz
import pytest

SETTINGS = fuzz.SETTINGS


@pytest.fixture(scope="module")
def fuzzed(server):
    fuzz.install(server)
    return server


@pytest.fixture(scope="module")
def fixed_seed(pytestconfig, seed, is_long):
    """The same calls in each short run, unless another seed is given."""
    return seed if is_long else pytestconfig.getoption("--seed") or 1


@pytest.mark.own_tables
def test_odd_arguments_of_every_function(fuzzed, fixed_seed, is_long):
    """No crash, no internal error, no right gained, and the queues work: nulls, negative numbers, names of others, empty and huge arrays."""
    made, broken = fuzz.call_functions(fuzzed, fixed_seed, 600 if is_long else 0)
    assert not broken, f"seed {fixed_seed}: " + "\n".join(broken)
    assert made > 1500


@pytest.mark.own_tables
def test_random_queries_over_the_views(fuzzed, fixed_seed, is_long):
    """sqlsmith's, as a member of pg_monitor."""
    broken = fuzz.run_queries(fuzzed, fixed_seed, 20000 if is_long else 200)
    assert not broken, f"seed {fixed_seed}: " + "\n".join(broken)
