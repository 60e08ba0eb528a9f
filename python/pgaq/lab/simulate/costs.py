"""What the simulated server's operations cost: measured.py has it from the running one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

MS = 1_000_000


@dataclass
class Phase:
    """A part of the queue's loop: processor time, and gets of the mutex of the queue's object."""

    ns: float
    gets: float


@dataclass
class Costs:
    """Nanoseconds; the defaults are for tests."""

    latch_ns: float = 16.0  # get and release of a latch that no other session uses
    mutex_ns: float = 16.0
    poll_ns: float = 27.0  # one poll of a spin
    transfer_ns: float = 60.0  # a cache line comes from another processor
    sharing: float = 1.0  # how much longer work takes while the other processor of the core is busy; 1: each has a core of its own
    clock_ns: float = 30.0  # a reading of the clock
    yield_ns: float = 500.0  # a yield without another task
    switch_ns: float = 1500.0  # from one task to another
    post_ns: float = 2000.0  # to post a sleeping task
    wake_ns: float = 30_000.0  # from the post until the task runs on an idle processor
    late_ns: float = 90_000.0  # how much longer than asked for a sleep lasts
    loop_ns: float = 45.0  # of the loop that hammers, beside the get, hold and pause
    execution_ns: float = 20_000.0  # of an execution that reads the dictionary cache, with an uncontended get for each step
    rows: float = 26.0  # of the dictionary cache
    tick_ns: float = 4.0 * MS
    slice_ns: float = 1.4 * MS
    # the queue's loop: to enqueue; to take a message that is there; to listen without a message; a false wake-up
    put: Phase = field(default_factory=lambda: Phase(250_000.0, 12))
    take: Phase = field(default_factory=lambda: Phase(300_000.0, 45))
    vain: Phase = field(default_factory=lambda: Phase(150_000.0, 22))
    recheck: Phase = field(default_factory=lambda: Phase(60_000.0, 11))

    @property
    def miss_ns(self) -> float:
        """Of a get that did not succeed at once, beside its spin: two readings of the clock, and counters on another line."""
        return 2 * self.clock_ns + self.transfer_ns

    def flat(self) -> dict[str, float]:
        """As the metrics of a record have them."""
        found: dict[str, float] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            found |= (
                {f"{each.name}_{part}": getattr(value, part) for part in ("ns", "gets")} if isinstance(value, Phase) else {each.name: value}
            )
        return found

    @classmethod
    def of(cls, metrics: dict[str, float]) -> "Costs":
        """From a record; what it does not have keeps its default."""
        made = cls()
        for each in fields(cls):
            value = getattr(made, each.name)
            if isinstance(value, Phase):
                setattr(
                    made, each.name, Phase(*(float(metrics.get(f"{each.name}_{part}", getattr(value, part))) for part in ("ns", "gets")))
                )
            else:
                setattr(made, each.name, float(metrics.get(each.name, value)))
        return made
