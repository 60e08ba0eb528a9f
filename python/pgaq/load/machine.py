"""Resource usage of processes and of the machine: CPU seconds from /proc, load, disk."""

from __future__ import annotations

import os
import platform
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pgaq.server import Server

TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Cpu:
    """CPU seconds at one moment: of a server, and of everything on the machine."""

    server: float
    machine: float
    steal: float


def _stat(pid: int) -> tuple[int, float, float] | None:
    """Parent, own CPU seconds, CPU seconds of children that are gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), _own(pid, (int(fields[11]) + int(fields[12])) / TICK), (int(fields[13]) + int(fields[14])) / TICK


def _own(pid: int, otherwise: float) -> float:
    """CPU seconds of the process by the scheduler's account, which is in nanoseconds; without it, in ticks."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        return otherwise


def process_seconds(pid: int) -> float:
    """CPU seconds of one process so far."""
    found = _stat(pid)
    return found[1] if found else 0.0


def private_memory(pid: int) -> int:
    """Bytes that a process has for itself."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def cpu(server: Server) -> Cpu:
    """CPU used so far by the server's processes and by the machine."""
    postmaster = server.postmaster_pid()
    used = 0.0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        found = _stat(int(entry))
        if found is None:
            continue
        if int(entry) == postmaster:
            used += found[1] + found[2]
        elif found[0] == postmaster:
            used += found[1]
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(fields[i] for i in (0, 1, 2, 5, 6)) / TICK
    return Cpu(used, busy, (fields[7] if len(fields) > 7 else 0) / TICK)


def busy(seconds: float = 1.0) -> float:
    """The number of busy CPUs of the machine now."""

    def used() -> float:
        fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return sum(fields[i] for i in (0, 1, 2, 5, 6, 7)) / TICK

    began, first = time.monotonic(), used()
    time.sleep(seconds)
    return (used() - first) / (time.monotonic() - began)


def free_bytes(path: Path) -> int:
    """Free disk space where path lies."""
    return shutil.disk_usage(path).free


def describe() -> dict[str, object]:
    """The machine, as a benchmark result states it."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = Path("/proc/meminfo").read_text().split("\n", 1)[0].split()[1]
    return {
        "cpus": os.cpu_count(),
        "cpu_model": model,
        "memory_mb": int(memory) // 1024,
        "kernel": platform.release(),
        "loadavg": list(os.getloadavg()),
    }
