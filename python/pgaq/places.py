"""Where things lie: the source tree, PostgreSQL's programs, directories the server can use.

The server never runs as root.  When root starts it, it runs as user postgres,
who may not be able to read the tree (a clone in /root, say); what it needs then
goes below /var/tmp.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess
from functools import lru_cache
from pathlib import Path

MIN_MAJOR = 15
ROOT = Path(__file__).resolve().parents[2]


# Where tools/setup keeps what it has unpacked: PgBouncer, drivers, psycopg_c.
UNPACKED = (Path("/usr/local/lib") if os.getuid() == 0 else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")) / "pgaq"
DRIVERS = UNPACKED / "drivers/usr/share"
OPENTELEMETRY = UNPACKED / "opentelemetry"  # its SDK for Python, for tests
PSYCOPG_C = UNPACKED / "psycopg-c"  # psycopg_c, with which psycopg takes half the processor time


def source() -> Path | None:
    """The tree: this one, the one that PGAQ_SOURCE names, or the one that the current directory is in; null: this package is installed, and there is none."""
    here, given = Path.cwd(), os.environ.get("PGAQ_SOURCE")
    for path in [ROOT, *([Path(given)] if given else []), here, *here.parents]:
        if (path / "pgaq.control").exists() and (path / "bench" / "run").exists():
            return path
    return None


class SurroundingsError(Exception):
    """The missing requirements, in one sentence for the user."""


def _debian_versions() -> list[str]:
    """pg_config of each server that Debian's packages installed: 15 first, then the newest."""
    found = []
    for path in Path("/usr/lib/postgresql").glob("*/bin/postgres"):
        major = path.parts[4]
        if major.isdigit() and int(major) >= MIN_MAJOR:
            found.append((int(major) != MIN_MAJOR, -int(major), str(path.with_name("pg_config"))))
    return [name for _, _, name in sorted(found)]


@lru_cache(maxsize=None)
def pg_config_program() -> str:
    """The pg_config to go by: $PG_CONFIG, Debian's of PostgreSQL 15 or later, or the one on PATH."""
    wanted = os.environ.get("PG_CONFIG")
    for name in [wanted] if wanted else [*_debian_versions(), "pg_config"]:
        found = shutil.which(name)
        if found:
            return found
    raise SurroundingsError(
        f"{wanted} cannot be run; PG_CONFIG must name the pg_config of PostgreSQL {MIN_MAJOR} or later."
        if wanted
        else f"PostgreSQL {MIN_MAJOR} is not installed: run tools/setup."
    )


@lru_cache(maxsize=None)
def pg_config(option: str) -> str:
    """One answer of pg_config, such as pg_config('bindir')."""
    result = subprocess.run([pg_config_program(), f"--{option}"], capture_output=True, text=True)
    if result.returncode != 0:
        raise SurroundingsError(
            f"{pg_config_program()} --{option} fails; PG_CONFIG must name the pg_config of PostgreSQL {MIN_MAJOR} or later."
        )
    return result.stdout.strip()


def pg_major() -> int:
    """The major version; an error when it is too old."""
    text = pg_config("version")
    found = re.search(r"PostgreSQL (\d+)", text)
    if not found:
        raise SurroundingsError(f"{pg_config_program()} is no pg_config; PG_CONFIG must name that of PostgreSQL {MIN_MAJOR} or later.")
    major = int(found.group(1))
    if major < MIN_MAJOR:
        raise SurroundingsError(f"This is {text}, but pgaq needs PostgreSQL {MIN_MAJOR} or later (set PG_CONFIG to choose another).")
    return major


def program(name: str, bindir: Path | str | None = None) -> str:
    """Path of one of PostgreSQL's programs; of another installation if bindir is given."""
    path = Path(bindir or pg_config("bindir")) / name
    if not path.exists():
        raise SurroundingsError(f"{path} is missing: the server package of PostgreSQL {pg_major()} is not installed; run tools/setup.")
    return str(path)


@lru_cache(maxsize=None)
def server_user() -> str | None:
    """The user a server must run as, or None for ourselves."""
    if os.geteuid() != 0:
        return None
    name = os.environ.get("PGAQ_SERVER_USER", "postgres")
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise SurroundingsError(f"PostgreSQL does not run as root and there is no user {name} to run it: run tools/setup.") from None
    return name


def popen_user() -> dict[str, object]:
    """Arguments of subprocess that make a program run as the server's user."""
    name = server_user()
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(name, entry.pw_gid)}


def clean_up_when_terminated() -> None:
    """Let SIGTERM end the program the way Ctrl-C does, so that servers and clients are taken down."""

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)


def give_to_server(path: Path) -> None:
    """Make the server's user the owner of path."""
    name = server_user()
    if name is not None:
        entry = pwd.getpwnam(name)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def server_can_reach(path: Path) -> bool:
    """Can the server's user enter this directory?"""
    if server_user() is None:
        return os.access(path, os.X_OK)
    return subprocess.run(["test", "-x", str(path)], cwd="/", **popen_user()).returncode == 0


def private_directory(link: Path) -> Path:
    """The directory known as link (.pgaq): in place, or below /var/tmp and linked to."""
    if link.is_symlink() and not link.exists():
        target = Path(os.readlink(link))
        target.mkdir(mode=0o700)
        give_to_server(target)
        return target
    if link.exists():
        return link.resolve()
    parent = link.parent.resolve()
    if server_can_reach(parent):
        link.mkdir(mode=0o700)
        give_to_server(link)
        return link.resolve()
    target = Path("/var/tmp") / f"pgaq-{hashlib.sha256(str(parent).encode()).hexdigest()[:10]}"
    if target.is_symlink() or (
        target.exists() and target.stat().st_uid not in (0, os.geteuid(), pwd.getpwnam(server_user() or "root").pw_uid)
    ):
        raise SurroundingsError(f"{target} belongs to another user; remove it or clone elsewhere.")
    target.mkdir(mode=0o700, exist_ok=True)
    give_to_server(target)
    link.symlink_to(target)
    return target
