"""Simulated processors: a queue of events, and a scheduler like the one that the costs are measured with.

A task is a generator.  It yields what it does next, and is resumed when that is done:

        ("run", ns)			uses a processor for this time
        ("until", at)		uses a processor until the clock shows this time, as a loop that reads the clock does
        ("spin", lock, ns)	polls a lock for this time; resumed with True as its holder, or with False
        ("yield",)			lets other tasks run, if there are any on its processor
        ("sleep", ns)		needs no processor for this time
        ("wait", ns)		until it is posted, at most this long (None: without a limit); resumed with whether it was posted

Times are nanoseconds.  Each processor has a queue, as in Linux: the eligible task
with the earliest deadline runs (EEVDF); one that has used up its slice is preempted
at the next tick; a task that wakes up goes to an idle processor, and an idle
processor takes a task from the longest queue.
"""

from __future__ import annotations

import heapq
import math
import random
from typing import Any, Callable, Generator

from pgaq.lab.simulate.costs import MS, Costs

TICK_LATE = 0.1  # of a tick, at most: housekeeping and interrupts of the machine

Program = Generator[tuple[Any, ...], Any, None]


class Processor:
    """What runs on it, and what is ready to."""

    __slots__ = ("number", "current", "ready", "ticking", "protected", "other", "slow")

    def __init__(self, number: int) -> None:
        self.number = number
        self.other: Processor | None = None  # shares the core
        self.slow = 1.0  # how much longer work takes, because the other one is busy
        self.current: Task | None = None
        self.ready: list[Task] = []
        self.ticking = False
        self.protected = 0.0  # the virtual time before which the current task is not preempted


class Task:
    """One session."""

    __slots__ = (
        "program",
        "name",
        "processor",
        "version",
        "burst",
        "left",
        "lock",
        "since",
        "virtual",
        "deadline",
        "lag",
        "posted",
        "waiting",
        "used_ns",
        "ended",
        "preempted",
        "woken_at",
        "asked",
        "began",
    )

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.processor: Processor | None = None
        self.version = 0  # of the event that will end what it does
        self.burst = ""  # run, until, spin, or nothing
        self.left = 0.0  # of the burst; with "until" the time at which it ends
        self.lock: Any = None
        self.since = 0.0
        self.began = False  # the burst, after the switch to the task
        self.virtual = self.deadline = self.lag = 0.0
        self.posted = 0
        self.waiting = False
        self.used_ns = 0.0
        self.ended = False
        self.preempted = 0
        self.asked = 0.0  # when it asked for the lock that it waits for or holds
        self.woken_at = 0.0  # when its latest sleep ended; it runs when it gets a processor


class Machine:
    """Processors, tasks and the clock."""

    def __init__(self, processors: int, costs: Costs, seed: int = 1) -> None:
        self.costs = costs
        self.random = random.Random(seed)
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[..., None], Any, int]] = []
        self.sequence = 0
        self.processors = [Processor(n) for n in range(processors)]
        if costs.sharing > 1:
            for one, two in zip(self.processors[::2], self.processors[1::2]):
                one.other, two.other = two, one
        self.tasks: list[Task] = []
        self.switches = 0

    # -- events

    def at(self, time: float, action: Callable[..., None], argument: Any, version: int = 0) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, action, argument, version))

    def run(self, until: float) -> None:
        """Play all events before this time."""
        events, pop = self.events, heapq.heappop
        while events and events[0][0] <= until:
            self.now, _, action, argument, version = pop(events)
            action(argument, version)
        self.now = until
        for processor in self.processors:
            if processor.current is not None:
                self._account_running(processor.current)

    def start(self, program: Program, name: str = "") -> Task:
        """A task that is ready now."""
        task = Task(program, name)
        self.tasks.append(task)
        self._enqueue(task, 0.0)
        return task

    # -- what tasks do to each other

    def post(self, task: Task) -> None:
        """Wake a task that waits, or let its next wait end at once."""
        if task.waiting:
            task.version += 1
            self._wake(task, True, self.costs.wake_ns)
        else:
            task.posted += 1

    def grant(self, task: Task) -> None:
        """The spin of a running task ends with the lock."""
        task.version += 1
        self._account(task)
        task.burst, task.lock, task.began = "", None, False
        self._resume(task, True)

    # -- bursts

    def _account(self, task: Task) -> None:
        spent = self.now - task.since
        task.used_ns += spent
        task.virtual += spent
        task.since = self.now

    def _resume(self, task: Task, value: Any) -> None:
        """Let the program go on until it does something that takes time."""
        send = task.program.send
        while True:
            try:
                asked = send(value)
            except StopIteration:
                task.ended = True
                self._leave(task)
                return
            kind = asked[0]
            if kind == "run":
                if asked[1] > 0:
                    task.burst, task.left = "run", asked[1]
                    self._begin(task)
                    return
                value = None
            elif kind == "until":
                task.burst, task.left = "until", asked[1]
                self._begin(task)
                return
            elif kind == "spin":
                task.burst, task.lock, task.left = "spin", asked[1], asked[2]
                self._begin(task)
                return
            elif kind == "yield":
                self._yield(task)
                return
            elif kind == "sleep":
                self._block(task, asked[1] + self._late())
                return
            elif task.posted:
                task.posted -= 1
                value = True
            else:
                self._block(task, None if asked[1] is None else asked[1] + self._late())
                return

    def _late(self) -> float:
        return self.costs.late_ns * self.random.uniform(0.7, 1.3)

    def _begin(self, task: Task) -> None:
        """A burst of the running task begins or continues."""
        task.since, task.began = self.now, True
        if task.burst == "spin" and task.lock.polled(task):
            self.at(self.now, self._granted, task, task.version)
            return
        self._ends(task)

    def _ends(self, task: Task) -> None:
        """When the burst of a running task will be over; what the clock ends does not take longer on a slow processor."""
        if task.burst == "until":
            end = max(self.now, task.left)
        else:
            end = self.now + task.left * task.processor.slow  # type: ignore[union-attr]
        self.at(end, self._over, task, task.version)

    def _share(self, processor: Processor) -> None:
        """The processor has become busy or idle: the other one of its core is slower or faster from now on."""
        other = processor.other
        if other is None:
            return
        task, slow = other.current, 1.0 if processor.current is None else self.costs.sharing
        if task is not None and slow != other.slow:
            self._account_running(task)
        was, other.slow = other.slow, slow
        if task is not None and slow != was and task.began and task.burst in ("run", "spin"):
            task.version += 1
            self._ends(task)

    def _granted(self, task: Task, version: int) -> None:
        if version == task.version:
            self.grant(task)

    def _over(self, task: Task, version: int) -> None:
        """A burst was long enough."""
        if version != task.version:
            return
        task.version += 1
        self._account(task)
        spun = task.burst == "spin"
        if spun:
            task.lock.gave_up(task)
        task.burst, task.lock, task.began = "", None, False
        self._resume(task, False if spun else None)

    def _suspend(self, task: Task) -> None:
        """The task loses its processor in a burst."""
        task.version += 1
        self._account_running(task)
        task.began = False
        if task.burst == "spin":
            task.lock.gave_up(task)

    # -- the scheduler

    def _mean(self, processor: Processor) -> float:
        """The virtual time of a processor: a task is eligible if it has not had more."""
        current = processor.current
        number = len(processor.ready) + (current is not None)
        if number == 0:
            return 0.0
        total = sum(task.virtual for task in processor.ready)
        if current is not None:
            total += current.virtual + (self.now - current.since)
        return total / number

    def _pick(self, processor: Processor) -> Task | None:
        ready = processor.ready
        if not ready:
            return None
        mean = sum(task.virtual for task in ready) / len(ready) + 1e-3
        best = min((task for task in ready if task.virtual <= mean), key=lambda task: task.deadline)
        ready.remove(best)
        return best

    def _enqueue(self, task: Task, delay: float) -> None:
        """A task becomes ready: on an idle processor, on its last one, or where the queue is shortest."""
        processor = self._place(task)
        task.processor = processor
        task.virtual = self._mean(processor) - task.lag
        # earlier than that of a task that has used up a slice: one that has slept is the next to run, however many are ready
        task.deadline = task.virtual
        if processor.current is None and not processor.ready:
            processor.ready.append(task)
            self.at(self.now + delay, self._dispatch, processor)
            return
        processor.ready.append(task)
        current = processor.current
        if current is None:
            return  # it is about to take one
        self._tick_later(processor)
        # later in this moment: the current task may be the one that posts
        self.at(self.now, self._compete, processor)

    def _compete(self, processor: Processor, _: int) -> None:
        """Does a task that has woken up run at once?"""
        current = processor.current
        if current is None or not processor.ready:
            return
        self._account_running(current)
        if current.virtual >= processor.protected:
            self._preempt(processor)

    def _place(self, task: Task) -> Processor:
        last = task.processor
        if last is not None and last.current is None and not last.ready:
            return last
        return min(
            self.processors,
            key=lambda p: (len(p.ready) + (p.current is not None), p is not last, self.random.random() if last is None else p.number),
        )

    def _wake(self, task: Task, value: Any, delay: float) -> None:
        task.waiting = False
        task.woken_at = self.now
        task.burst, task.lock = "resume", value
        self._enqueue(task, delay)

    def _dispatch(self, processor: Processor, _: int = 0) -> None:
        """A processor without a task takes the next one."""
        if processor.current is not None:
            return
        task = self._pick(processor)
        if task is None:
            busiest = max(self.processors, key=lambda p: len(p.ready))
            if not busiest.ready or (busiest.current is None and len(busiest.ready) < 2):
                return
            mean = self._mean(busiest)
            task = self._pick(busiest)
            assert task is not None
            task.lag = mean - task.virtual
            task.virtual = -task.lag
            task.deadline = task.virtual + self.costs.slice_ns
        self.switches += 1
        task.processor = processor
        processor.current = task
        self._share(processor)
        processor.protected = task.virtual + self.costs.slice_ns
        if processor.ready:
            self._tick_later(processor)
        task.since = self.now
        task.version += 1
        self.at(self.now + self.costs.switch_ns, self._go_on, task, task.version)

    def _go_on(self, task: Task, version: int) -> None:
        """The switch is over: the task is where it was."""
        if version != task.version:
            return
        self._account(task)
        if task.burst in ("", "resume"):
            value, task.burst, task.lock = task.lock, "", None
            self._resume(task, value)
        else:
            self._begin(task)

    def _tick_later(self, processor: Processor) -> None:
        """Ticks matter only while another task is ready."""
        if not processor.ticking:
            processor.ticking = True
            tick = self.costs.tick_ns
            # they do not tick all at once, nor on time: else sessions of fixed steps fall in step with the ticks
            phase = tick * processor.number / len(self.processors)
            rounds = math.floor((self.now - phase) / tick) + 1
            if rounds * tick + phase <= self.now:  # by rounding
                rounds += 1
            self.at(rounds * tick + phase + self.random.random() * TICK_LATE * tick, self._tick, processor)

    def _tick(self, processor: Processor, _: int) -> None:
        processor.ticking = False
        self._balance(processor)
        if not processor.ready:
            return
        self._tick_later(processor)
        self._compete(processor, 0)

    def _account_running(self, task: Task) -> None:
        """Bring the account of a running task up to now, without an end of its burst."""
        ran = self.now - task.since
        self._account(task)
        if task.began and task.burst in ("run", "spin"):
            task.left = max(0.0, task.left - ran / task.processor.slow)  # type: ignore[union-attr]

    def _preempt(self, processor: Processor) -> None:
        """The current task goes back to the queue, and the next one runs, which may be the same."""
        current = processor.current
        assert current is not None
        if current.virtual >= current.deadline:
            current.deadline = current.virtual + self.costs.slice_ns
        processor.ready.append(current)
        best = self._pick(processor)
        if best is current:
            processor.protected = current.virtual + self.costs.slice_ns
            return
        assert best is not None
        processor.ready.append(best)
        self._suspend(current)
        current.preempted += 1
        processor.current = None
        self._dispatch(processor)

    def _balance(self, processor: Processor) -> None:
        """At a tick: a processor that has two tasks less than another takes one."""
        busiest = max(self.processors, key=lambda p: len(p.ready))
        if busiest is not processor and len(busiest.ready) >= len(processor.ready) + 2:
            mean = self._mean(busiest)
            task = self._pick(busiest)
            assert task is not None
            task.lag = mean - task.virtual
            task.virtual = self._mean(processor) - task.lag
            task.deadline = task.virtual + self.costs.slice_ns
            task.processor = processor
            processor.ready.append(task)

    def _yield(self, task: Task) -> None:
        """Give up the slice: the deadline is later, the time had so far is not, so a task that has had more does not run for that."""
        processor = task.processor
        assert processor is not None
        self._account(task)
        task.deadline += self.costs.slice_ns
        task.burst, task.lock, task.left = "run", None, self.costs.yield_ns
        if processor.ready:
            processor.ready.append(task)
            best = self._pick(processor)
            assert best is not None
            if best is not task:
                processor.ready.append(best)
                processor.current = None
                task.version += 1
                self._dispatch(processor)
                return
        self._begin(task)

    def _block(self, task: Task, ns: float | None) -> None:
        """Sleep, or wait for a post."""
        task.waiting = True
        self._leave(task)
        if ns is not None:
            self.at(self.now + ns, self._time_out, task, task.version)

    def _time_out(self, task: Task, version: int) -> None:
        if version == task.version:
            task.version += 1
            self._wake(task, False, 0.0)

    def _leave(self, task: Task) -> None:
        """The task needs no processor; the next one runs."""
        processor = task.processor
        assert processor is not None
        task.version += 1
        self._account(task)
        task.lag = max(0.0, min(self._mean(processor) - task.virtual, self.costs.slice_ns))
        task.began = False
        processor.current = None
        self._dispatch(processor)
        if processor.current is None:
            self._share(processor)
