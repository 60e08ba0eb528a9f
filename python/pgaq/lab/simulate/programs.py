"""What simulated sessions do: the lab's workloads, with metrics of the same names as the measured ones have."""

from __future__ import annotations

from typing import Any, Callable

from pgaq.lab.simulate.costs import MS, Costs, Phase
from pgaq.lab.simulate.locks import Latch, Lock, Mutex, Step
from pgaq.lab.simulate.machine import Machine, Task

US = 1000.0


def start(machine: Machine, program: Callable[[Task], Step], name: str) -> Task:
    """A task whose program knows it."""

    def begin() -> Step:
        yield from program(machine.tasks[number])

    number = len(machine.tasks)
    return machine.start(begin(), name)


def used(machine: Machine, seconds: float) -> dict[str, float]:
    """Processor time of all tasks."""
    cpu = sum(task.used_ns for task in machine.tasks) / 1e9
    return {
        "cpu_s": cpu, "cpus": cpu / seconds, "processors": float(len(machine.processors)), "simulated_s": seconds,
        "cpu_percent": 100 * cpu / (len(machine.tasks) * seconds), "preempted": float(sum(task.preempted for task in machine.tasks)),
    }  # fmt: skip


def counted(locks: list[Lock]) -> dict[str, float]:
    """The views' counters of several locks together."""
    figures = ("gets", "misses", "spin_gets", "sleeps", "waits")
    found = {figure: float(sum(getattr(lock.counters, figure) for lock in locks)) for figure in figures}
    found["wait_s"] = sum(lock.counters.wait_ns for lock in locks) / 1e9
    found["wait_ms"] = 1000 * found["wait_s"] / found["waits"] if found["waits"] else 0.0
    found["spun_percent"] = 100 * found["spin_gets"] / found["misses"] if found["misses"] else 100.0
    return found


def hammer(costs: Costs, given: dict[str, Any], seconds: float, seed: int) -> dict[str, float]:
    """Sessions get and free one latch or mutex as often as they can; hold and pause end by the clock."""
    machine = Machine(int(given["processors"]), costs, seed)
    lock: Lock
    if given.get("kind", "latch") == "latch":
        lock = Latch(machine, int(given.get("spin", 200)))
    else:
        lock = Mutex(machine, int(given.get("scheme", 2)), int(given.get("time", 1)), int(given.get("spin", 255)))
    hold, pause = float(given.get("hold_us", 0)) * US, float(given.get("pause_us", 0)) * US
    done = [0] * int(given["sessions"])

    def spend(ns: float) -> Step:
        # the clock is read in whole microseconds
        if ns:
            yield ("until", machine.now // US * US + ns)

    def program(task: Task) -> Step:
        own = int(task.name)
        while True:
            yield from lock.get(task, costs.loop_ns)
            yield from spend(hold)
            yield from lock.free(task)
            done[own] += 1
            yield from spend(pause)

    for n in range(len(done)):
        start(machine, program, str(n))
    machine.run(seconds * 1e9)
    total = float(sum(done))
    found = counted([lock]) | used(machine, seconds)
    return found | {
        "done": total, "throughput": total / seconds, "cpu_us_per_get": found["cpu_s"] * 1e6 / max(1.0, total), "unfair": max(done) / max(1, min(done)),
        "held": float(lock.holder is not None), "spun_us_per_miss": lock.counters.spun_ns / US / max(1, lock.counters.misses),
    }  # fmt: skip


def row_cache(costs: Costs, given: dict[str, Any], seconds: float, seed: int) -> dict[str, float]:
    """Sessions read all rows of a cache in each execution: three steps for a row, under one latch, or under the mutexes of its bucket and of the row.

    Under the latch a step gets its mutex as well, which is free then, but whose line comes from another processor.
    """
    machine = Machine(int(given["processors"]), costs, seed)
    rows, latched = int(costs.rows), str(given.get("kind", "latch")) == "latch"
    copies = int(given.get("copies", 1))
    latch = Latch(machine, int(given.get("spin", 200)))
    finds = [[Mutex(machine) for _ in range(rows)] for _ in range(copies)]
    pins = [[Mutex(machine) for _ in range(rows)] for _ in range(copies)]
    # the work of an execution: a third before its rows, the others beside their steps
    gets = 3 * rows * (costs.mutex_ns + (costs.latch_ns if latched else 0.0))
    work = max(0.0, costs.execution_ns - gets)
    done = [0]

    def step(task: Task, mutex: Mutex, before: float) -> Step:
        if not latched:
            yield from mutex.get(task, before)
            yield from mutex.free(task)
            return
        yield from latch.get(task, before)
        yield from latch.free(task, costs.mutex_ns + (mutex.fetch(task) if mutex.line is not task.processor else 0.0))

    def program(task: Task) -> Step:
        own, random = int(task.name) % copies, machine.random.random
        while True:
            before = work / 3 * (0.5 + random())
            for find, pin in zip(finds[own], pins[own]):
                yield from step(task, find, before + work * 2 / 3 / rows * (0.5 + random()))
                yield from step(task, pin, 0.0)
                yield from step(task, pin, 0.0)
                before = 0.0
            done[0] += 1

    for n in range(int(given["sessions"])):
        start(machine, program, str(n))
    machine.run(seconds * 1e9)
    find_locks, pin_locks = ([m for group in groups for m in group] for groups in (finds, pins))
    locks: list[Lock] = [latch] if latched else [*find_locks, *pin_locks]
    found = counted(locks) | used(machine, seconds)
    found |= {f"{figure}_per_s": found[figure] / seconds for figure in ("waits", "sleeps", "misses", "wait_s")}
    return found | {
        "executions": float(done[0]), "executions_per_s": done[0] / seconds, "executions_per_cpu_s": done[0] / max(1e-9, found["cpu_s"]),
        "find_sleeps": float(sum(m.counters.sleeps for m in find_locks)), "other_sleeps": float(sum(m.counters.sleeps for m in pin_locks)),
    }  # fmt: skip


class Queue:
    """One queue with named consumers: messages, the mutex of its object, the channel with its latch and its listeners."""

    POP_NS = 10.0  # to take one listener from the list, under the latch
    BATCH = 64

    def __init__(self, machine: Machine, consumers: int) -> None:
        self.machine = machine
        self.mutex = Mutex(machine)
        self.channel = Latch(machine)
        self.messages = [0] * consumers
        self.listeners: list[Task] = []  # in the channel's list
        self.woken: set[Task] = set()  # were taken from it and have not left it
        self.targets: list[Task | None] = [None] * consumers  # subscribers that wait, by consumer

    def phase(self, task: Task, phase: Phase) -> Step:
        """Work with its gets of the object's mutex."""
        number = round(phase.gets)
        part = phase.ns / (number + 1)
        for _ in range(number):
            yield from self.mutex.get(task, part)
            yield from self.mutex.free(task)
        yield ("run", part)

    def join(self, task: Task) -> Step:
        yield from self.channel.get(task)
        self.listeners.append(task)
        yield from self.channel.free(task, self.POP_NS)

    def leave(self, task: Task) -> Step:
        yield from self.channel.get(task)
        if task in self.woken:
            self.woken.remove(task)
        else:
            self.listeners.remove(task)
        yield from self.channel.free(task, self.POP_NS)

    def wake_listeners(self, task: Task) -> Step:
        """As many as there are now: those that come back meanwhile are not woken again."""
        left = len(self.listeners)
        while left > 0:
            yield from self.channel.get(task)
            some = self.listeners[: min(left, self.BATCH)]
            del self.listeners[: len(some)]
            self.woken |= set(some)
            yield from self.channel.free(task, self.POP_NS * len(some))
            for each in some:
                yield ("run", self.machine.costs.post_ns)
                self.machine.post(each)
            if not some:
                break
            left -= len(some)


def queue_loop(costs: Costs, given: dict[str, Any], seconds: float, seed: int) -> dict[str, float]:
    """As many sessions enqueue as dequeue, each for its own consumer, by listen on the channel or as subscribers."""
    machine = Machine(int(given["processors"]), costs, seed)
    number, listen = int(given["sessions"]), given.get("method", "listen") == "listen"
    queue = Queue(machine, number)
    burn = float(given.get("burn_us", 4000)) * US
    sums = {"enqueued": 0.0, "dequeued": 0.0, "false_wakeups": 0.0, "useful_wakeups": 0.0, "idle_ns": 0.0, "listens": 0.0}

    def enqueue(task: Task) -> Step:
        own = int(task.name)
        while True:
            # no session burns exactly as long as another one, so they do not stay in step
            yield ("run", burn * (0.9 + 0.2 * machine.random.random()))
            yield from queue.phase(task, costs.put)
            queue.messages[own] += 1
            sums["enqueued"] += 1
            if listen:
                yield from queue.wake_listeners(task)
            elif queue.targets[own] is not None:
                yield ("run", costs.post_ns)
                waiting, queue.targets[own] = queue.targets[own], None
                if waiting is not None:
                    machine.post(waiting)

    def sleep(task: Task, ns: float) -> Step:
        asleep = machine.now
        posted = yield ("wait", ns)
        sums["idle_ns"] += max(0.0, task.woken_at - asleep)
        return posted

    def take(task: Task, own: int) -> Step:
        yield from queue.phase(task, costs.take)
        queue.messages[own] -= 1
        sums["dequeued"] += 1

    def listener(task: Task) -> Step:
        own = int(task.name)
        while True:
            sums["listens"] += 1
            if not queue.messages[own]:
                yield from queue.phase(task, costs.vain)
                yield from queue.join(task)
                ends = machine.now + 1000 * MS
                while not queue.messages[own] and machine.now < ends:
                    if not (yield from sleep(task, ends - machine.now)):
                        break
                    sums["useful_wakeups" if queue.messages[own] else "false_wakeups"] += 1
                    # out of the list, and in again before it checks
                    yield from queue.leave(task)
                    yield from queue.join(task)
                    yield from queue.phase(task, costs.recheck)
                yield from queue.leave(task)
            if queue.messages[own]:
                yield from take(task, own)

    def subscriber(task: Task) -> Step:
        own = int(task.name)
        while True:
            if not queue.messages[own]:
                yield from queue.phase(task, costs.vain)
                queue.targets[own] = task
                if not queue.messages[own]:
                    yield from sleep(task, 1000 * MS)
                queue.targets[own] = None
            if queue.messages[own]:
                yield from take(task, own)

    for n in range(number):
        start(machine, listener if listen else subscriber, str(n))
    for n in range(number):
        start(machine, enqueue, str(n))
    machine.run(seconds * 1e9)
    return _of_queue(queue, machine, sums, number, seconds)


def _of_queue(queue: Queue, machine: Machine, sums: dict[str, float], number: int, seconds: float) -> dict[str, float]:
    per = max(1.0, sums["dequeued"])
    db_time = 2 * number * seconds - sums.pop("idle_ns") / 1e9
    found = (
        sums
        | used(machine, seconds)
        | {
            "total_per_s": sums["dequeued"] / seconds,
            "false_per_message": sums["false_wakeups"] / per,
            "db_time_s": db_time,
            "left": float(sum(queue.messages)),
        }
    )
    for name, lock in (("mutex_x", queue.mutex), ("latch_free", queue.channel)):
        counters = counted([lock])
        found |= {f"{name}_{figure}": counters[figure] for figure in ("waits", "sleeps", "misses", "gets", "wait_ms")}
        longest, mode = _histogram(lock)
        found |= {
            f"{name}_ns_per_deq": lock.counters.ns / per,
            f"{name}_ns_per_get": lock.counters.ns / max(1.0, counters["gets"]),
            f"{name}_mode_ns": mode,
            f"{name}_longest_ns": longest,
        }
        found |= {
            f"{name}_s": counters["wait_s"],
            f"{name}_percent": 100 * counters["wait_s"] / db_time if db_time else 0.0,
            f"{name}_gets_per_deq": counters["gets"] / per,
        }
    return found


def _histogram(lock: Lock) -> tuple[float, float]:
    """The lower bounds of the last bucket and of the fullest one."""
    buckets = lock.counters.histogram
    if not buckets:
        return 0.0, 0.0
    return float(2 ** max(buckets)), float(2 ** max(buckets, key=lambda n: buckets[n]))


PROGRAMS = {"hammer": hammer, "row_cache": row_cache, "queue_loop": queue_loop}
