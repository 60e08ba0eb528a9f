"""The build: options of the compiler, and what is built again."""

import os
import re
import shutil
import subprocess
import sys

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


def test_other_flags_build_again(tmp_path):
    """What was compiled with other flags is compiled again; test points concern only the files that have some."""
    for name in ("src", "sql"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.o", "*.d"))
    for path in [ROOT / "Makefile", *ROOT.glob("*.control")]:
        shutil.copy(path, tmp_path)

    def make(*arguments):
        command = ["make", "-s", "-C", str(tmp_path), f"PG_CONFIG={pg_config_program()}", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def current(name, *arguments):
        return make("-q", *arguments, f"src/{name}.o").returncode == 0

    made = make("src/.flags", "src/.points")
    assert made.returncode == 0, made.stderr
    without, pointed = "module", "shard/leases/lease"
    for name in (without, pointed):
        assert not current(name)
        (tmp_path / "src" / f"{name}.o").touch()
    for path in tmp_path.rglob("*.[ch]"):
        os.utime(path, (1, 1))
    assert current(without) and current(pointed)
    assert not current(without, "ASSERTS=1") and not current(pointed, "ASSERTS=1")
    assert current(without, "TEST_POINTS=1") and not current(pointed, "TEST_POINTS=1")
    assert current(without, "WERROR=1"), "its objects are the same"
    flags = tmp_path / "src" / ".flags"
    other = {" with probes": " without probes", " without probes": " with probes"}
    flags.write_text(re.sub("|".join(other), lambda found: other[found[0]], flags.read_text()))
    assert not current(without), "the header of the static probes came or went"


def test_objects_without_test_points_are_the_same():
    """Makefile compiles the others again for a library with test points, so no header uses a point where it is included."""
    with_points = re.compile(r"\b(aq_point|aq_point_held|AQ_TEST_POINTS)\b")
    headers = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.h") if with_points.search(path.read_text())}
    assert headers == {"base/base.h", "link/link_private.h"}


def test_the_format_of_a_tree_without_git(tmp_path):
    """All files that .gitignore does not name are compared."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/format", "tools/typedefs.list", "ruff.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "wrong.py").write_text("a=1\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "made.py").write_text("a=1\n")
    result = subprocess.run([sys.executable, "tools/format", "--check"], capture_output=True, text=True, cwd=tmp_path)
    if "not checked" in result.stderr and "ruff" in result.stderr:
        pytest.skip("missing: ruff")
    assert (result.stdout, result.returncode) == ("wrong.py\n", 1), result.stderr
