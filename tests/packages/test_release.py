"""tools/release: the same commit gives the same bytes; the archive for PGXN builds; no commit that is not a release is one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path

import pytest
from roots import RELEASE, SOURCE, made, run


def sums(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


# what is made once serves all tests
pytestmark = pytest.mark.xdist_group("release")


def test_same_bytes_again(first: Path, tmp_path: Path) -> None:
    """Source archives, sdist and wheel; tools/release --compare does it for all parts."""
    run(*RELEASE, "--dist", tmp_path / "again", "source", "python", env={**os.environ, "TZ": "Asia/Tokyo", "TMPDIR": str(tmp_path)})
    assert sums(first) == sums(tmp_path / "again") and len(sums(first)) == 6


def test_no_release_without_tag(tmp_path: Path) -> None:
    """A commit without the tag of its version is refused; nothing is written."""
    tree = tmp_path / "clone"
    run("git", "clone", "-q", "--no-tags", SOURCE, tree)
    result = subprocess.run(
        [RELEASE[0], tree / "tools/release.py", "source", "--dist", tmp_path / "dist"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 1 and not (tmp_path / "dist").exists()
    assert "use --snapshot to try a commit without one" in result.stderr or "was not found" in result.stderr


@pytest.mark.parametrize("parts", [[], ["debian"]])
def test_other_folders_are_not_emptied(tmp_path: Path, parts: list[str]) -> None:
    """--dist with a folder that is not one of a release, such as a source tree, is refused; its files stay."""
    kept = tmp_path / "debian/control"
    kept.parent.mkdir()
    kept.write_text("")
    result = subprocess.run([*RELEASE, "--dist", tmp_path, *parts], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert result.returncode == 1 and "is neither empty nor a folder of a release" in result.stderr
    assert kept.exists()


def test_no_files_of_another_commit(tmp_path: Path) -> None:
    """A part that is made anew does not make the sums of the release those of other commits, too."""
    (tmp_path / "RELEASE").write_text('{"version": "0.1.0", "commit": "another", "snapshot": false}\n')
    (tmp_path / "old.deb").write_text("")
    run(*RELEASE, "--dist", tmp_path, "source")
    assert {path.name for path in tmp_path.iterdir()} == {"RELEASE", "SHA256SUMS", "source"}


def test_wheel_has_the_product_only(first: Path) -> None:
    """The command, its man page and its data, without what is only for the tests."""
    (wheel,) = (first / "python").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"pgaq/command/main.py", "pgaq/lab/experiments/listen.toml"} <= set(names) and any(
        name.endswith("share/man/man1/pgaq.1") for name in names
    )
    assert not any(name.startswith(("pgaq_proof/", "tests/")) for name in names)


# modules of jms/ that are tests, or a demo
NOT_RELEASED = {"pgaq-jms-conformance", "pgaq-jms-clients", "pgaq-jms-demo"}


def test_jars_of_every_module(tmp_path: Path) -> None:
    """The bundle for Maven Central has POM, jar, sources and Javadoc of every module that programs use, each with its sums."""
    (path,) = (made(tmp_path, "maven") / "maven").glob("*.zip")
    bundle = zipfile.ZipFile(path)
    pom = xml.parse(SOURCE / "jms/pom.xml")
    modules = {each.text or "" for each in pom.iterfind("{*}modules/{*}module")}
    version = path.stem.removeprefix("pgaq-maven-")
    wanted = {f"pgaq-jms-parent-{version}.pom"} | {
        f"{module}-{version}{kind}" for module in modules - NOT_RELEASED for kind in (".pom", ".jar", "-sources.jar", "-javadoc.jar")
    }
    assert {name.rsplit("/", 1)[1] for name in bundle.namelist()} == {f"{name}{end}" for name in wanted for end in ("", ".md5", ".sha1")}

    folder = f"io/github/pgaq/pgaq-jms-opentelemetry/{version}/pgaq-jms-opentelemetry-{version}"
    for kind, end in (("", "class"), ("-sources", "java"), ("-javadoc", "html")):
        jar = zipfile.ZipFile(bundle.open(f"{folder}{kind}.jar"))
        # Javadoc has a folder for the module around it
        assert any(name.endswith(f"io/github/pgaq/jms/opentelemetry/TracingConnectionFactory.{end}") for name in jar.namelist())
    assert f"<version>{version}</version>" in bundle.read(f"{folder}.pom").decode()
