"""Debian roots to install packages in: layers that are kept, and one in memory with what a test changes."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import time
from datetime import date
from pathlib import Path
from typing import Callable

from pgaq import places

SOURCE = Path(__file__).resolve().parents[2]
# tools/release without tools/setup, which ./test has called, and which waits for that of other trees
RELEASE = ("/usr/bin/python3", SOURCE / "tools/release.py", "--snapshot")
KEPT = places.UNPACKED / "roots"
CLONE_NEWNS = 0x20000
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
    mark = SOURCE / "dist/RELEASE"
    if mark.exists() and all((SOURCE / "dist" / part).exists() for part in parts):
        # the same files, even if the commit has another name
        trees = [run("git", "-C", SOURCE, "rev-parse", f"{commit}^{{tree}}") for commit in ("HEAD", json.loads(mark.read_text())["commit"])]
        if trees[0] == trees[1]:
            return SOURCE / "dist"
    # the compiler takes half the time
    run(*RELEASE, "--dist", path, *parts, env={**os.environ, "DEB_BUILD_OPTIONS": "noopt noautodbgsym"})
    return path


def own_mounts(folder: Path) -> None:
    """Memory at the folder; what this thread and its programs mount is gone when it ends, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """A layer that is made once a week; those of earlier weeks are removed when no test can use them any more."""
    year, week, _ = date.today().isocalendar()
    folder = KEPT / f"{year}w{week:02}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            for old in KEPT.glob("*w*"):
                if old.stat().st_mtime < time.time() - 14 * 86400:
                    shutil.rmtree(old)
            new = folder / "new"
            shutil.rmtree(new, ignore_errors=True)
            make(new)
            new.rename(folder / name)
    return folder / name


class Root:
    """A Debian root: its own processes, and no network but its own loopback, except for apt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def on(cls, path: Path, *layers: Path, upper: Path | None = None) -> Root:
        """The layers, the first on top; what is written goes beside the path, or into a new layer."""
        upper = upper or path.with_name(f"{path.name}.upper")
        work = upper.with_name(f"{upper.name}.work")
        for each in (path, upper, work):
            each.mkdir()
        options = f"lowerdir={':'.join(map(str, layers))},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "-o", options, "overlay", path)
        return cls(path)

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
