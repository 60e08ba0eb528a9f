"""The packages that the tests try, and the Debian root that they begin with."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from roots import Root, made, run


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian packages and the images of it."""
    return made(tmp_path_factory.mktemp("dist"), "debian", "images")


@pytest.fixture(scope="session")
def debs(dist: Path) -> dict[str, Path]:
    """The packages: "pgaq", and the extension for each version of PostgreSQL."""
    return {path.name.split("_")[0]: path for path in (dist / "debian").glob("*.deb") if "-dbgsym" not in path.name}


@pytest.fixture(scope="session")
def minimal() -> Iterator[Root]:
    """A minimal Debian of the release that the packages are made for, as it comes from the mirror."""
    if os.getuid() != 0:
        pytest.skip("missing: root, to make a Debian root")
    if not shutil.which("mmdebstrap"):
        pytest.skip("missing: mmdebstrap")
    folder = Path(tempfile.mkdtemp(prefix="pgaq-roots-"))
    folder.chmod(0o755)
    try:
        yield _minimal(folder / "minimal")
    finally:
        # all copies, too
        shutil.rmtree(folder, ignore_errors=True)


def _minimal(path: Path) -> Root:
    codename = next(line[17:].strip() for line in Path("/etc/os-release").read_text().splitlines() if line.startswith("VERSION_CODENAME="))
    # what it mounts, and its processes, are gone when it ends, however it ends
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    try:
        run(
            *own,
            "mmdebstrap",
            "--variant=minbase",
            "--include=ca-certificates",
            "--dpkgopt=force-unsafe-io",
            "--skip=cleanup/apt/lists",
            codename,
            path,
        )
    except AssertionError as error:
        if "Could not" in str(error) or "Temporary failure" in str(error):
            pytest.skip("missing: a connection to the package servers")
        raise
    # nothing is started by an installation: there is no init
    (path / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (path / "usr/sbin/policy-rc.d").chmod(0o755)
    return Root(path)
