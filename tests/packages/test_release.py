"""tools/release: the same commit gives the same bytes; the archive for PGXN builds; no commit that is not a release is one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from roots import SOURCE, run


def sums(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made")
    run(SOURCE / "tools/release", "--snapshot", "--dist", path, "source", "python")
    return path


def test_same_bytes_again(made: Path, tmp_path: Path) -> None:
    """Source archives, sdist and wheel; tools/release --compare does it for all parts."""
    run(
        SOURCE / "tools/release",
        "--snapshot",
        "--dist",
        tmp_path / "again",
        "source",
        "python",
        env={**os.environ, "TZ": "Asia/Tokyo", "TMPDIR": str(tmp_path)},
    )
    assert sums(made) == sums(tmp_path / "again") and len(sums(made)) == 6


def test_no_release_without_tag(tmp_path: Path) -> None:
    """A commit without the tag of its version is refused; nothing is written."""
    tree = tmp_path / "clone"
    run("git", "clone", "-q", "--no-tags", SOURCE, tree)
    result = subprocess.run(
        [tree / "tools/release", "source", "--dist", tmp_path / "dist"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 1 and not (tmp_path / "dist").exists()
    assert "use --snapshot to try a commit without one" in result.stderr or "was not found" in result.stderr


@pytest.mark.parametrize("parts", [[], ["debian"]])
def test_other_folders_are_not_emptied(tmp_path: Path, parts: list[str]) -> None:
    """--dist with a folder that is not one of a release, such as a source tree, is refused; its files stay."""
    kept = tmp_path / "debian/control"
    kept.parent.mkdir()
    kept.write_text("")
    result = subprocess.run(
        [SOURCE / "tools/release", "--snapshot", "--dist", tmp_path, *parts], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 1 and "is neither empty nor a folder of a release" in result.stderr
    assert kept.exists()


def test_no_files_of_another_commit(tmp_path: Path) -> None:
    """A part that is made anew does not make the sums of the release those of other commits, too."""
    (tmp_path / "RELEASE").write_text('{"version": "0.1.0", "commit": "another", "snapshot": false}\n')
    (tmp_path / "old.deb").write_text("")
    run(SOURCE / "tools/release", "--snapshot", "--dist", tmp_path, "source")
    assert {path.name for path in tmp_path.iterdir()} == {"RELEASE", "SHA256SUMS", "source"}


def test_wheel_has_the_product_only(made: Path) -> None:
    """The command, its man page and its data, without what is only for the tests."""
    (wheel,) = (made / "python").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"pgaq/command/main.py", "pgaq/lab/experiments/listen.toml"} <= set(names) and any(
        name.endswith("share/man/man1/pgaq.1") for name in names
    )
    assert not any(name.startswith(("pgaq_proof/", "tests/")) for name in names)
