"""The result of a long measurement: environment, claims with their verdicts, a JSON file in bench/results."""

from __future__ import annotations

import datetime
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pgaq import places, text
from pgaq.load import machine
from pgaq.places import SurroundingsError

RESULTS = places.ROOT / "bench" / "results"

WIDTH = 800  # of a line of a file: one round

# Settings of every measured server.
SETTINGS = {
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
    "max_connections": "300",
    "jit": "off",
}


@dataclass
class Claim:
    """Something that must hold; ok is None when the run cannot tell."""

    what: str
    wanted: str
    measured: str
    ok: bool | None

    @property
    def verdict(self) -> str:
        return {True: "ok", False: "FAILED", None: "-"}[self.ok]


def verdict_table(claims: list[Claim]) -> str:
    return text.table(["claim", "wanted", "measured", ""], [[c.what, c.wanted, c.measured, c.verdict] for c in claims], left=4)


def failed(claims: list[Claim]) -> bool:
    return any(claim.ok is False for claim in claims)


def commit_id() -> str:
    """The measured commit, according to git."""
    done = subprocess.run(["git", "-C", str(places.ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def require_disk(directory: Path, needed: int) -> None:
    """An error when less is free: better now than after an hour."""
    free = machine.free_bytes(directory)
    if free < needed:
        raise SurroundingsError(
            f"Up to {needed / (1 << 30):.0f} GB of disk are needed where {directory} lies, {free / (1 << 30):.0f} GB are free."
        )


def about(settings: dict[str, Any], busy: float) -> dict[str, Any]:
    """When, what, where."""
    return {
        "date": datetime.datetime.now().strftime("%Y%m%d-%H%M"), "commit": commit_id(), "machine": machine.describe(),
        "cpus_busy_before": busy, "settings": settings,
    }  # fmt: skip


def save(name: str, content: dict[str, Any], claims: list[Claim] | None = None, directory: Path = RESULTS) -> Path:
    """One JSON file; content has what `about` gave."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{content['date']}-{name}.json"
    if claims is not None:
        content = {**content, "claims": [asdict(claim) for claim in claims]}
    path.write_text(layout(rounded(content)) + "\n")
    return path


def layout(value: Any, indent: str = "") -> str:
    """JSON: a list or an object is on one line if it fits, else each of its elements has lines of its own."""
    flat = json.dumps(value)
    if len(flat) <= WIDTH or not isinstance(value, (dict, list)):
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        elements, brackets = [f"{json.dumps(k)}: {layout(v, deeper)}" for k, v in value.items()], "{}"
    else:
        elements, brackets = [layout(v, deeper) for v in value], "[]"
    return brackets[0] + "\n" + ",\n".join(deeper + element for element in elements) + "\n" + indent + brackets[1]


def rounded(value: Any) -> Any:
    """Six digits say enough."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return value
