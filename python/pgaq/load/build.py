"""Builds of the extension other than the installed one: with test points, without accounting."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

from pgaq import places


PARTS = ("src", "sql", "Makefile", "pgaq.control", "pgaq_oracle.control", "pgaq_lab.control")


def make_library(*flags: str, parent: Path | str | None = None) -> Path:
    """Builds pgaq.so with make's flags ("TEST_POINTS=1"); returns a new directory that contains it, which the caller removes.

    The build is kept in build/ and begins with the objects of the clone: make compiles only what differs from them.
    """
    kept = places.ROOT / "build" / "-".join(["library", *flags]).replace("=", "-")
    kept.mkdir(parents=True, exist_ok=True)
    with open(f"{kept}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _refresh(kept)
        command = ["make", "-s", f"-j{os.cpu_count()}", *flags, f"PG_CONFIG={places.pg_config_program()}"]
        done = subprocess.run(command, cwd=kept, capture_output=True, text=True)
        if done.returncode != 0:
            raise places.SurroundingsError(f"building with {' '.join(flags)} failed:\n{done.stdout}{done.stderr}")
        directory = Path(tempfile.mkdtemp(prefix="pgaq-build-", dir=parent))
        directory.chmod(0o755)
        shutil.copy(kept / "pgaq.so", directory)
    return directory


def _refresh(kept: Path) -> None:
    """Makes the sources in the kept directory those of the clone."""
    if not (kept / "Makefile").exists():
        for name in PARTS:
            if (places.ROOT / name).is_dir():
                shutil.copytree(places.ROOT / name, kept / name, dirs_exist_ok=True)  # with the objects and the times of all files
            else:
                shutil.copy2(places.ROOT / name, kept / name)
        return
    for source, copy in _sources(places.ROOT, kept):
        if not copy.exists() or source.read_bytes() != copy.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    for copy, source in _sources(kept, places.ROOT):
        if not source.exists():
            copy.unlink()


def _sources(folder: Path, other: Path) -> Iterator[tuple[Path, Path]]:
    """The source files below the folder, each with the path of its counterpart below the other one."""
    for name in PARTS:
        found = (folder / name).rglob("*.*") if (folder / name).is_dir() else [folder / name]
        for path in found:
            if path.is_file() and path.suffix not in (".o", ".d") and not path.name.startswith("."):
                yield path, other / path.relative_to(folder)


def shared_library(name: str, *flags: str, parent: Path | str) -> Path:
    """Like make_library, for several processes: the first one builds it as parent/name, the others use it. The owner of parent removes it."""
    made = Path(parent) / name
    with open(Path(parent) / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make_library(*flags, parent=parent).rename(made)
    return made
