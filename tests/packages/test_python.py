"""The Python package: its wheel works with the oldest and with the newest version of each dependency that it allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from roots import SOURCE, run

# the wheel is made once
pytestmark = pytest.mark.xdist_group("release")

PROJECT = tomllib.loads((SOURCE / "python/pyproject.toml").read_text())["project"]


def oldest() -> list[str]:
    """The lower bound of each dependency, pinned; libpq is installed, as the packages of the system need it."""
    return [re.sub(r">=([\d.]+).*", r"==\1", each) for each in PROJECT["dependencies"]]


@pytest.mark.parametrize("pinned", [oldest(), []], ids=["oldest", "newest"])
def test_help_of_arguments(pinned: list[str], first: Path, tmp_path: Path) -> None:
    """The help of a command has the help of its arguments, its options and its exit codes."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    environment = {**os.environ, "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    (wheel,) = (first / "python").glob("*.whl")
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", "install", "-q", "--no-compile", wheel, *pinned],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if "Could not find a version" in pip.stderr and "Retrying" in pip.stderr:
        pytest.skip("missing: a connection to PyPI")
    assert pip.returncode == 0, pip.stderr
    command = tmp_path / "venv/bin/pgaq"
    assert re.search(r"queue +TEXT +Name of the queue or topic", run(command, "send", "--help", env=environment))
    assert "Exit codes: 0 done" in run(command, "--help", env=environment)
    assert run(command, "--version", env=environment) == f"pgaq {PROJECT['version']}\n"
