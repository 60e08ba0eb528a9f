"""Simulated processors: the clock, the scheduler, pgaq's latch and mutex, the queue's channel; against what must hold exactly, or is known."""

from __future__ import annotations

import itertools
import statistics
from typing import Any, Iterator

import pytest

from pgaq.lab.simulate.costs import MS, Costs, Phase
from pgaq.lab.simulate.locks import Latch, Lock, Mutex
from pgaq.lab.simulate.machine import Machine, Task
from pgaq.lab.simulate.programs import hammer, queue_loop, row_cache, start

FREE = Costs(
    latch_ns=0, mutex_ns=0, poll_ns=1, transfer_ns=0, clock_ns=0, yield_ns=1, switch_ns=0, post_ns=0, wake_ns=0, late_ns=0, loop_ns=0, execution_ns=0,
)  # fmt: skip
SCHEMES = [{"kind": "latch"}, *({"kind": "mutex", "scheme": scheme} for scheme in range(4))]


def busy(machine: Machine, ns: float, number: int) -> list[Task]:
    """Tasks that only work."""

    def work(_: Task) -> Iterator[tuple[Any, ...]]:
        while True:
            yield ("run", ns)

    return [start(machine, work, str(n)) for n in range(number)]


# -- processors


@pytest.mark.parametrize("processors, tasks", [(1, 1), (1, 3), (2, 2), (2, 6), (6, 3)])
def test_processors_are_used_up(processors, tasks):
    """No processor idles while a task is ready, none does the work of two, and the tasks have equal shares."""
    machine = Machine(processors, FREE)
    made = busy(machine, 0.3 * MS, tasks)
    machine.run(1000 * MS)
    assert sum(t.used_ns for t in made) == pytest.approx(min(processors, tasks) * 1000 * MS)
    share = min(1, processors / tasks) * 1000 * MS
    assert all(t.used_ns == pytest.approx(share, rel=0.05) for t in made)


def test_tasks_are_preempted_at_ticks():
    """Two busy tasks of one processor take turns of a tick; one alone is never interrupted."""
    machine = Machine(1, FREE)
    made = busy(machine, 100 * MS, 2)
    machine.run(1000 * MS)
    assert sum(t.preempted for t in made) == pytest.approx(1000 * MS / FREE.tick_ns, rel=0.1)  # a tick is a little late
    machine = Machine(1, FREE)
    made = busy(machine, 100 * MS, 1)
    machine.run(1000 * MS)
    assert made[0].preempted == 0


def test_sleeps():
    """A sleep lasts as long as asked and the measured lateness, and uses no processor; on a busy processor it ends at the next tick at the latest."""
    lengths: list[float] = []
    costs = Costs(late_ns=100_000, switch_ns=0)

    def sleeper(_: Task) -> Iterator[tuple[Any, ...]]:
        for _ in range(50):
            began = machine.now
            yield ("sleep", MS)
            lengths.append(machine.now - began)

    machine = Machine(1, costs)
    alone = start(machine, sleeper, "")
    machine.run(1000 * MS)
    assert statistics.mean(lengths) == pytest.approx(1.1 * MS, rel=0.02) and alone.used_ns < 0.001 * MS and alone.ended
    lengths.clear()
    machine = Machine(1, costs)
    start(machine, sleeper, "")
    busy(machine, 10 * MS, 2)
    machine.run(1000 * MS)
    assert len(lengths) == 50 and max(lengths) < 1.2 * MS + 2 * costs.tick_ns


@pytest.mark.parametrize("number", [2, 8, 32])
def test_a_task_that_has_slept_runs_next(number):
    """At the next tick, however many tasks are busy: Linux was measured with 2.6 to 2.9 ms beside 2, 8 and 16."""
    late: list[float] = []
    machine = Machine(1, Costs(late_ns=0))

    def sleeper(_: Task) -> Iterator[tuple[Any, ...]]:
        while True:
            began = machine.now
            yield ("sleep", 5.0 * MS)
            late.append((machine.now - began) / MS - 5)
            yield ("run", 50_000.0)

    busy(machine, 100 * MS, number)
    start(machine, sleeper, "")
    machine.run(2000 * MS)
    assert 2 < statistics.median(late) < 4


def test_processors_of_one_core():
    """Work takes longer while the other processor of the core is busy, and only then."""
    machine = Machine(2, Costs(sharing=1.5, switch_ns=0))
    finished: list[float] = []

    def work(task: Task) -> Iterator[tuple[Any, ...]]:
        yield ("run", float(task.name) * MS)
        finished.append(machine.now)

    start(machine, work, "10")
    start(machine, work, "30")
    machine.run(100 * MS)
    # 15 ms together, in which 10 ms are done, then 20 ms alone
    assert finished == [pytest.approx(15 * MS), pytest.approx(35 * MS)]
    machine = Machine(1, Costs(sharing=1.5, switch_ns=0))
    finished.clear()
    start(machine, work, "10")
    machine.run(100 * MS)
    assert finished == [pytest.approx(10 * MS)]


def test_yield():
    """It lets the other task of the processor run; without one only the call takes time."""
    order: list[str] = []

    def work(task: Task) -> Iterator[tuple[Any, ...]]:
        for _ in range(3):
            order.append(task.name)
            yield ("yield",)
            yield ("run", 10.0)

    machine = Machine(1, FREE)
    start(machine, work, "a")
    start(machine, work, "b")
    machine.run(MS)
    assert order[:2] == ["a", "b"] and sorted(order) == ["a", "a", "a", "b", "b", "b"]


# -- locks


@pytest.mark.parametrize("options", SCHEMES, ids=str)
@pytest.mark.parametrize("processors", [1, 2, 6])
def test_one_holder(options, processors, monkeypatch):
    """A lock has one holder at a time, also when that one loses its processor; its counters add up."""
    inside: list[Task] = []
    take, release = Lock._take, Lock.release

    def taken(self: Lock, task: Task) -> None:
        assert not inside
        inside.append(task)
        take(self, task)

    def released(self: Lock, task: Task) -> None:
        assert inside == [task]
        inside.clear()
        release(self, task)

    monkeypatch.setattr(Lock, "_take", taken)
    monkeypatch.setattr(Lock, "release", released)
    found = hammer(Costs(), {**options, "processors": processors, "sessions": 9, "hold_us": 300, "pause_us": 100}, 0.3, 1)
    assert found["gets"] - found["done"] in (0, 1) and found["done"] > 100
    if options["kind"] == "latch":
        # a sleep of one that is still asleep is counted when it has the latch
        assert found["sleeps"] + found["spin_gets"] >= found["misses"] > 0
    else:
        # those that wait at the end have missed, and their wait has begun
        assert found["misses"] - found["spin_gets"] - found["waits"] in range(9)
    assert found["cpus"] <= processors + 1e-6


@pytest.mark.parametrize("options", SCHEMES, ids=str)
def test_one_processor_serialises(options):
    """One processor makes of any number of sessions at most what it makes of one."""
    alone, many = (
        hammer(Costs(), {**options, "processors": 1, "sessions": n, "hold_us": 20, "pause_us": 50}, 0.5, 1)["throughput"] for n in (1, 6)
    )
    assert alone == pytest.approx(1e6 / 70, rel=0.02)  # the clock is read in whole microseconds
    assert many <= alone * 1.02


def test_hold_is_the_limit():
    """However many processors there are, a lock is held by one session at a time."""
    found = hammer(Costs(), {"kind": "latch", "processors": 8, "sessions": 8, "hold_us": 100}, 0.5, 1)
    assert 0.8e4 < found["throughput"] <= 1e6 / 99


def test_sleepers_of_a_latch_are_first_come_first_served():
    """Sessions that sleep for it get it in the order in which they came."""
    machine = Machine(16, FREE)
    latch, order = Latch(machine, spin_count=0), []

    def session(task: Task) -> Iterator[tuple[Any, ...]]:
        yield ("sleep", float(task.name) * 1000)
        yield from latch.get(task)
        order.append(int(task.name))
        yield ("run", 100_000.0)
        yield from latch.free(task)

    numbers = [3, 7, 1, 9, 5, 2, 8, 4, 6]
    for n in numbers:
        start(machine, session, str(n))
    machine.run(10 * MS)
    assert order == sorted(numbers)


def test_queue_with_one_server_and_constant_service():
    """M/D/1: sessions that come at random for a latch wait on average rho D / 2 (1 - rho)."""
    service, load, waits = 10_000.0, 0.7, []
    machine = Machine(64, FREE, seed=4)
    latch = Latch(machine, spin_count=0)

    def session(task: Task) -> Iterator[tuple[Any, ...]]:
        came = machine.now
        yield from latch.get(task)
        waits.append(machine.now - came)
        yield ("run", service)
        yield from latch.free(task)

    def source(_: Task) -> Iterator[tuple[Any, ...]]:
        for n in itertools.count():
            yield ("sleep", machine.random.expovariate(load / service))
            start(machine, session, str(n))

    start(machine, source, "source")
    machine.run(300 * MS)
    assert len(waits) > 15_000
    assert statistics.mean(waits) == pytest.approx(load * service / (2 * (1 - load)), rel=0.1)
    assert latch.counters.gets == pytest.approx(300 * MS * load / service, rel=0.03)


def test_spinning_costs_what_it_takes_from_others():
    """A line that several processors poll is handed on more slowly: with a short hold more processors do less."""
    few, many = (
        row_cache(Costs(transfer_ns=120, execution_ns=6000), {"kind": "latch", "processors": n, "sessions": n}, 0.01, 1)["executions_per_s"]
        for n in (2, 6)
    )
    assert many < few


def test_wait_of_one_mutex():
    """The steps of the schemes: yields first, then sleeps that grow to their limit; polling uses the processor."""

    def steps(**options: Any) -> tuple[list[float], float, int]:
        machine = Machine(2, Costs(late_ns=0))
        mutex, seen = Mutex(machine, **options), []

        def holder(task: Task) -> Iterator[tuple[Any, ...]]:
            yield from mutex.get(task)
            yield ("sleep", 1500 * MS)
            yield from mutex.free(task)

        start(machine, holder, "")
        task = start(machine, lambda task: waiting(machine, mutex, task, seen), "")
        machine.run(1000 * MS)
        return seen, task.used_ns, mutex.counters.sleeps

    seen, used, sleeps = steps(scheme=2, time=1)
    assert seen[:4] == [0, 0, 10, 10] and set(seen[2:]) == {10} and used < 5 * MS and sleeps == len(seen)
    seen, _, _ = steps(scheme=2, time=30)
    assert (
        seen[:6] == [0, 0, 10, 10, 30, 30]
        and all(70 <= ms <= 80 for ms in seen[6:8])
        and all(145 <= ms <= 165 for ms in seen[8:10])
        and 280 <= seen[10] <= 300
    )
    seen, _, _ = steps(scheme=1, time=4)
    assert seen[0] == 0 and set(seen[1:]) == {4}
    seen, _, _ = steps(scheme=0)
    assert seen[:200].count(1) == 2 and seen[99] == seen[199] == 1
    _, used, sleeps = steps(scheme=3)
    assert used == pytest.approx(999 * MS, rel=0.01) and sleeps == pytest.approx(used / (255 * Costs().poll_ns), rel=0.02)


def waiting(machine: Machine, mutex: Mutex, task: Task, seen: list[float]) -> Iterator[tuple[Any, ...]]:
    """A get whose steps are recorded."""
    yield ("sleep", float(MS))
    program, value = mutex.get(task), None
    while True:
        try:
            asked = program.send(value)
        except StopIteration:
            return
        if asked[0] in ("sleep", "yield"):
            seen.append(round(asked[1] / MS) if asked[0] == "sleep" else 0)
        value = yield asked


# -- programs


@pytest.mark.parametrize("method", ["listen", "subscriber"])
@pytest.mark.parametrize("processors", [1, 8])
def test_messages_are_conserved(method, processors):
    """What was enqueued was dequeued or is there; who listens is woken by every message, a subscriber by its own."""
    found = queue_loop(Costs(), {"method": method, "processors": processors, "sessions": 12}, 0.3, 1)
    assert found["enqueued"] == found["dequeued"] + found["left"] and found["dequeued"] > 30
    assert (found["false_wakeups"] > 0) == (method == "listen")
    assert (found["latch_free_gets"] > 0) == (method == "listen")
    assert found["cpus"] <= processors + 1e-6


def test_gets_of_a_message():
    """A message that is waited for costs the gets of its phases: what the model of the counted gets says."""
    costs = Costs(put=Phase(1000, 3), take=Phase(1000, 5), vain=Phase(1000, 7), recheck=Phase(1000, 2))
    found = queue_loop(costs, {"method": "listen", "processors": 4, "sessions": 1}, 1, 1)
    assert found["mutex_x_gets_per_deq"] == pytest.approx(3 + 5 + 7 + 2, rel=0.02)
    # to join, to be taken from the list, to leave and join again, to leave
    assert found["latch_free_gets_per_deq"] == pytest.approx(5, rel=0.02)


def test_seeds():
    """The same seed gives the same figures, another one others."""
    given = {"kind": "latch", "processors": 2, "sessions": 6, "hold_us": 20, "pause_us": 50}
    one, again, other = (hammer(Costs(), given, 0.1, seed) for seed in (1, 1, 2))
    assert one == again != other


def test_costs_are_those_of_a_record():
    made = Costs(poll_ns=11.5, take=Phase(7, 8))
    assert Costs.of(made.flat()) == made
    assert Costs.of({"poll_ns": 3.0, "another": 1.0}) == Costs(poll_ns=3.0)
