"""The compiler options of the build."""

import os
import subprocess

import pytest

from pgaq.places import ROOT, pg_config_program


@pytest.mark.parametrize("arguments", [[], ["WERROR=1"]])
def test_warnings_fail_only_our_own_builds(arguments):
    """A compiler newer than ours may warn of more: no reason for a user's build to fail."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "WERROR")}
    made = subprocess.run(
        ["make", "-n", "-B", "-C", str(ROOT), f"PG_CONFIG={pg_config_program()}", *arguments, "src/module.o"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert ("-Werror " in made.stdout) == bool(arguments)
    assert "WERROR=1" in (ROOT / "tools" / "setup").read_text()
