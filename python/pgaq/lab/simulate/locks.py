"""pgaq's latch and mutex as the server has them (src/sync/latches, src/sync/mutexes), on simulated processors.

A lock is one cache line.  To change it, a processor needs it for itself: that costs
a transfer unless the processor was the last to have it.  Transfers of one line come
one after another.  When a lock becomes free, every session that polls it tries to
change it: one gets the lock, the attempts of the others keep the line busy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generator

from pgaq.lab.simulate.costs import MS
from pgaq.lab.simulate.machine import Machine, Processor, Task

Step = Generator[tuple[Any, ...], Any, Any]
BACKOFF_MS = (10, 30, 75, 155, 310, 630, 1270, 2000)
SPIN_ONLY_STEPS = 65536


@dataclass
class Counters:
    """What the views count."""

    gets: int = 0
    misses: int = 0
    spin_gets: int = 0
    sleeps: int = 0
    waits: int = 0
    wait_ns: float = 0.0
    spun_ns: float = 0.0
    ns: float = 0.0  # from the request to the release of all gets
    histogram: dict[int, int] = field(default_factory=dict)  # the same by powers of two


class Lock:
    """The word: who holds it, who polls it, which processor has its line."""

    def __init__(self, machine: Machine, cost_ns: float) -> None:
        self.machine = machine
        # a get and a release are half of the measured cost each
        self.get_ns = self.free_ns = cost_ns / 2
        self.holder: Task | None = None
        self.spinners: list[Task] = []
        self.attempting = False
        self.line: Processor | None = None  # that had it last; None: several have read it
        self.line_free = 0.0  # when its transfers are over
        self.counters = Counters()

    # -- for the machine

    def polled(self, task: Task) -> bool:
        """A task begins to poll: does it get the lock at once?"""
        if self.holder is None and not self.attempting:
            self._take(task)
            return True
        self.spinners.append(task)
        self.line = None
        return False

    def gave_up(self, task: Task) -> None:
        if task in self.spinners:
            self.spinners.remove(task)

    # -- the word

    def _take(self, task: Task) -> None:
        assert self.holder is None
        self.holder = task
        self.counters.gets += 1

    def fetch(self, task: Task) -> float:
        """Nanoseconds until the task's processor has the line."""
        if self.line is task.processor:
            return 0.0
        now = self.machine.now
        arrives = max(now, self.line_free) + self.machine.costs.transfer_ns
        self.line, self.line_free = task.processor, arrives
        return arrives - now

    def try_get(self, task: Task) -> bool:
        if self.holder is not None:
            self.line = None
            return False
        self._take(task)
        return True

    def release(self, task: Task) -> None:
        """The word is free; a session that polls it sees that a transfer later, and at its next poll."""
        assert self.holder is task
        self.holder = None
        if self.spinners and not self.attempting:
            self._offer()

    def _offer(self) -> None:
        costs, number = self.machine.costs, len(self.spinners)
        self.attempting = True
        # the earliest of this number of polls
        phase = min(self.machine.random.random() for _ in range(number)) * costs.poll_ns
        self.machine.at(max(self.machine.now, self.line_free) + costs.transfer_ns + phase, self._attempt, None)

    def _attempt(self, _: Any, __: int) -> None:
        self.attempting = False
        if not self.spinners or self.holder is not None:
            return
        task = self.machine.random.choice(self.spinners)
        self.spinners.remove(task)
        self._take(task)
        # those that were too late keep the line busy
        self.line = None if self.spinners else task.processor
        self.line_free = self.machine.now + len(self.spinners) * self.machine.costs.transfer_ns
        self.machine.grant(task)

    def spin(self, task: Task, polls: int) -> Step:
        """Poll this number of times; True as the holder."""
        began = task.used_ns
        got = yield ("spin", self, max(1, polls) * self.machine.costs.poll_ns)
        self.counters.spun_ns += task.used_ns - began
        return got

    def get(self, task: Task, before: float = 0.0) -> Step:
        """Get it after this much other work."""
        yield ("run", before + self.get_ns)
        task.asked = self.machine.now - self.get_ns
        if self.line is not task.processor:
            yield ("run", self.fetch(task))
        if not self.try_get(task):
            yield from self._get_slow(task)

    def _get_slow(self, task: Task) -> Step:
        raise NotImplementedError

    def free(self, task: Task, held: float = 0.0) -> Step:
        """Release it after this much work under it; how long that takes depends on who has polled it."""
        yield ("run", held + self.free_ns)
        if self.line is not task.processor:
            yield ("run", self.fetch(task))
        counters, took = self.counters, self.machine.now - task.asked
        counters.ns += took
        bucket = int(took).bit_length() - 1
        counters.histogram[bucket] = counters.histogram.get(bucket, 0) + 1
        self.release(task)


class Latch(Lock):
    """Spin, then sleep until posted: one at a time, first come first served, in competition with newcomers."""

    def __init__(self, machine: Machine, spin_count: int = 200) -> None:
        super().__init__(machine, machine.costs.latch_ns)
        self.spin_count = spin_count
        self.sleepers: list[Task] = []
        self.waking = False

    def _get_slow(self, task: Task) -> Step:
        machine, counters = self.machine, self.counters
        posted, sleeps = False, 0
        while not (yield from self.spin(task, self.spin_count + 1)):
            # at the end of the list, or at its head if it was posted and did not get the lock
            if posted:
                self.sleepers.insert(0, task)
                self.waking = False
            else:
                self.sleepers.append(task)
            if self.try_get(task):
                self.sleepers.remove(task)
                posted = False
                break
            asleep = machine.now
            sleeps += 1
            yield ("wait", None)
            counters.wait_ns += machine.now - asleep
            posted = True
        if posted:
            self.waking = False
        counters.misses += 1
        if sleeps:
            counters.sleeps += sleeps
            counters.waits += sleeps
        else:
            counters.spin_gets += 1
        yield ("run", machine.costs.miss_ns)

    def free(self, task: Task, held: float = 0.0) -> Step:
        yield from super().free(task, held)
        if self.sleepers and not self.waking:
            sleeper = self.sleepers.pop(0)
            self.waking = True
            yield ("run", self.machine.costs.post_ns)
            self.machine.post(sleeper)


class Mutex(Lock):
    """Spin, then steps of the wait scheme, each followed by a spin; waiters are not posted."""

    def __init__(self, machine: Machine, scheme: int = 2, time: int = 1, spin_count: int = 255) -> None:
        super().__init__(machine, machine.costs.mutex_ns)
        self.scheme, self.time, self.spin_count = scheme, time, spin_count

    def _get_slow(self, task: Task) -> Step:
        counters = self.counters
        counters.misses += 1
        if (yield from self.spin(task, self.spin_count)):
            counters.spin_gets += 1
        else:
            began, step = self.machine.now, 0
            counters.waits += 1
            while True:
                step += 1
                counters.sleeps += 1
                yield from self._step(step)
                if (yield from self.spin(task, self.spin_count)):
                    break
            counters.wait_ns += self.machine.now - began
        yield ("run", self.machine.costs.miss_ns)

    def _step(self, step: int) -> Step:
        if self.scheme == 0 or (self.scheme == 1 and self.time == 0):
            yield ("sleep", MS) if step % 100 == 0 else ("yield",)
        elif self.scheme == 1:
            yield ("yield",) if step == 1 else ("sleep", self.time * MS)
        elif self.scheme == 2:
            yield ("yield",) if step <= 2 else ("sleep", self._backoff(step) * MS)
        elif step % SPIN_ONLY_STEPS == 0:
            yield ("yield",)

    def _backoff(self, step: int) -> float:
        pair = (step - 3) // 2
        ms = BACKOFF_MS[min(pair, len(BACKOFF_MS) - 1)]
        if pair >= 2:
            width = ms // 8
            ms = ms - width // 2 + self.machine.random.randint(0, width)
        return min(ms, 2000 if self.time == 0 else self.time * 10)
