"""The packages that the tests try, and the Debian root that they begin with."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Callable, Iterator

import pytest
from roots import RELEASE, Root, kept, made, own_mounts, run


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian packages and the images of it."""
    return made(tmp_path_factory.mktemp("dist"), "debian", "images")


@pytest.fixture(scope="session")
def debs(dist: Path) -> dict[str, Path]:
    """The packages: "pgaq", and the extension for each version of PostgreSQL."""
    return {path.name.split("_")[0]: path for path in (dist / "debian").glob("*.deb") if "-dbgsym" not in path.name}


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archives, the sdist and the wheel."""
    path = tmp_path_factory.mktemp("made")
    run(*RELEASE, "--dist", path, "source", "python")
    return path


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A directory for roots."""
    if os.getuid() != 0:
        pytest.skip("missing: root, to make a Debian root")
    if not shutil.which("mmdebstrap"):
        pytest.skip("missing: mmdebstrap")
    folder = Path(tempfile.mkdtemp(prefix="pgaq-roots-"))
    folder.chmod(0o755)
    own_mounts(folder)
    yield folder
    run("umount", "--recursive", folder)
    folder.rmdir()


@pytest.fixture(scope="session")
def new_root(memory: Path, debs: dict[str, Path]) -> Callable[[str], Root]:
    """Makes a root: a minimal Debian of the release that the packages are made for, with what they depend on, from the mirror."""
    codename = next(line[17:].strip() for line in Path("/etc/os-release").read_text().splitlines() if line.startswith("VERSION_CODENAME="))
    depends = [run("dpkg-deb", "-f", debs[name], "Depends").strip() for name in ("postgresql-15-pgaq", "pgaq")]

    def add_dependencies(layer: Path) -> None:
        root = Root.on(memory / "dependencies", minimal, upper=layer)
        try:
            root.apt("satisfy", "--no-install-recommends", *depends)
        finally:
            run("umount", root.path)

    try:
        minimal = kept(codename, lambda path: _minimal(path, codename))
        dependencies = kept(f"{codename}-{hashlib.sha256(repr(depends).encode()).hexdigest()[:16]}", add_dependencies)
    except AssertionError as error:
        if "Could not" in str(error) or "Temporary failure" in str(error):
            pytest.skip("missing: a connection to the package servers")
        raise
    return lambda name: Root.on(memory / name, dependencies, minimal)


def _minimal(path: Path, codename: str) -> None:
    # what it mounts, and its processes, are gone when it ends, however it ends
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    options = ("--variant=minbase", "--include=ca-certificates", "--dpkgopt=force-unsafe-io", "--skip=cleanup/apt/lists")
    run(*own, "mmdebstrap", *options, codename, path)
    # nothing is started by an installation: there is no init
    (path / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (path / "usr/sbin/policy-rc.d").chmod(0o755)
