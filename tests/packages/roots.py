"""Debian roots to install packages in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
# tools/release without tools/setup, which ./test has called, and which waits for that of other trees
RELEASE = ("/usr/bin/python3", SOURCE / "tools/release.py", "--snapshot")
ENTER = """
mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && ip link set lo up || exit
exec chroot "$0" /bin/sh -eu -c "$1"
"""


def run(*command: str | Path, **more: object) -> str:
    """Standard output; the test fails with everything that the program said."""
    result = subprocess.run(
        [str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **more
    )
    assert result.returncode == 0, f"{command[0]} ended with {result.returncode}:\n{result.stdout[-6000:]}\n{result.stderr[-6000:]}"
    return result.stdout


def made(path: Path, *parts: str) -> Path:
    """The folder of a release: PGAQ_DIST; dist/ if it has these parts of this commit; otherwise the path, where they are made."""
    if os.environ.get("PGAQ_DIST"):
        return Path(os.environ["PGAQ_DIST"]).resolve()
    commit = run("git", "-C", SOURCE, "rev-parse", "HEAD").strip()
    mark = SOURCE / "dist/RELEASE"
    if mark.exists() and json.loads(mark.read_text())["commit"] == commit and all((SOURCE / "dist" / part).exists() for part in parts):
        return SOURCE / "dist"
    run(*RELEASE, "--dist", path, *parts)
    return path


class Root:
    """A Debian root: its own processes, and no network but its own loopback, except for apt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def copy(self, path: Path) -> Root:
        run("cp", "-a", "--reflink=auto", self.path, path)
        return Root(path)

    def sh(self, script: str) -> str:
        """Run a script as root; servers that it starts end with it."""
        return run(
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            ENTER,
            self.path,
            script,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"},
        )

    def apt(self, *arguments: str) -> str:
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
        }
        script = 'mount -t proc proc "$0/proc" && exec chroot "$0" apt-get -q -y -o Dpkg::Options::=--force-unsafe-io "$@"'
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, self.path, *arguments, env=environment)

    def install(self, *packages: Path) -> str:
        """apt-get install of package files."""
        for package in packages:
            shutil.copy(package, self.path / "tmp")
        return self.apt("install", "--no-install-recommends", *(f"/tmp/{package.name}" for package in packages))
