"""The build: options of the compiler, and what is built again."""

import os
import shutil
import subprocess

import pytest

from pgaq.load.build import WITH_POINTS
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


def test_probes_are_built_in_when_their_header_comes(tmp_path):
    """What was built before sys/sdt.h was there, or by ./demo, which does not need it, is built again."""
    for name in ("src", "sql"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.o", ".probes-*"))
    for path in [ROOT / "Makefile", *ROOT.glob("*.control")]:
        shutil.copy(path, tmp_path)
    for path in tmp_path.rglob("*.[ch]"):
        os.utime(path, (1, 1))

    def current(probes):
        made = tmp_path / "src" / f".probes-{probes}"
        made.touch()
        os.utime(made, (2, 2))
        (tmp_path / "src" / "module.o").touch()
        done = subprocess.run(["make", "-q", "-C", str(tmp_path), f"PG_CONFIG={pg_config_program()}", "src/module.o"], capture_output=True)
        for left in (tmp_path / "src").glob(".probes-*"):
            left.unlink()
        return done.returncode == 0

    assert [current("with"), current("without")].count(True) == 1


def test_objects_without_test_points_are_the_same():
    """A library with test points takes them from the clone (pgaq.load.build), so no header uses a point where it is included."""
    headers = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.h") if WITH_POINTS.search(path.read_text())}
    assert headers == {"base/base.h", "link/link_private.h"}
