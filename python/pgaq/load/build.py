"""Builds of the extension other than the installed one: with test points, without accounting."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pgaq import places


# what the preprocessor looks at where TEST_POINTS=1 makes a difference
WITH_POINTS = re.compile(r"\b(aq_point|aq_point_held|AQ_TEST_POINTS)\b")


def make_library(*flags: str, parent: Path | str | None = None) -> Path:
    """Builds pgaq.so with make's flags ("TEST_POINTS=1") in a new directory, which is returned; the caller removes it.

    Two of three files have no test point: their objects are taken from the clone, where make finds them up to date.
    """

    def left_out(folder: str, names: list[str]) -> list[str]:
        def same(name: str) -> bool:
            source = Path(folder, name).with_suffix(".c")
            return flags == ("TEST_POINTS=1",) and source.exists() and not WITH_POINTS.search(source.read_text())

        return [name for name in names if name.endswith((".bc", ".so", ".d")) or (name.endswith(".o") and not same(name))]

    directory = Path(tempfile.mkdtemp(prefix="pgaq-build-", dir=parent))
    directory.chmod(0o755)
    for name in ("src", "sql", "Makefile", "pgaq.control", "pgaq_oracle.control", "pgaq_lab.control"):
        source = places.ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=left_out)
        else:
            shutil.copy(source, directory / name)
    command = ["make", "-s", f"-j{os.cpu_count()}", *flags, f"PG_CONFIG={places.pg_config_program()}"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise places.SurroundingsError(f"building with {' '.join(flags)} failed:\n{done.stdout}{done.stderr}")
    return directory


def shared_library(name: str, *flags: str, parent: Path | str) -> Path:
    """Like make_library, for several processes: the first one builds it as parent/name, the others use it. The owner of parent removes it."""
    made = Path(parent) / name
    with open(Path(parent) / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make_library(*flags, parent=parent).rename(made)
    return made
