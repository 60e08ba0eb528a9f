"""A storm of terminated, cancelled and lost sessions: nothing is left of them (the long form: python3 -m pgaq_proof.storm --minutes 10)."""

from __future__ import annotations

import pytest

from pgaq.load.drivers import DRIVERS
from pgaq_proof import storm

SETTINGS = storm.SETTINGS
pytestmark = pytest.mark.own_tables


@pytest.mark.parametrize("kind", sorted(storm.SHAPES))
@pytest.mark.parametrize("store", ["pgaq", "classic"])
def test_nothing_is_left_of_sessions_that_end(server, seed, is_long, store, kind):
    """Delivered once and in order, some consumer makes progress all the time, and aq.check() has nothing to say."""
    server.expect_log(r"WARNING:  (there is (already a|no) transaction in progress|PID \d+ is not a PostgreSQL backend process)")
    outcome = storm.storm(server, DRIVERS[store], storm.SHAPES[kind], 60 if is_long else 3, seed, name=f"{store}_{kind}")
    assert outcome.trouble == [], f"seed {seed}: {outcome.strikes}"
    assert outcome.delivered > 0 and outcome.strikes["terminate"] > 0
