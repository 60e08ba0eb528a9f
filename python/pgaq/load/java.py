"""The load of Jakarta Messaging clients (bench/jms-load), compiled by itself: without Maven and without another provider.

The libraries are those that a build of jms/ has fetched.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pgaq import places
from pgaq.load.workload import LoadError, NoSource

FACTORY = "io.github.pgaq.jms.PgaqConnectionFactory"
PACKAGE = "io.github.pgaq.jms.bench"
LIBRARIES = ("jakarta/jms/jakarta.jms-api", "org/postgresql/postgresql", "org/slf4j/slf4j-api", "org/slf4j/slf4j-simple")
PROGRAMS = ("Load", "Large")
# of a Java that lives for seconds: the best code is not worth its compilation
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
JAVAC = ("javac", *(f"-J{option}" for option in QUICK))


def _newest(library: str) -> Path | None:
    """The jar of the highest version in Maven's repository."""
    folder = Path.home() / ".m2" / "repository" / library

    def version(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", path.parent.name)]

    return max(
        (path for path in folder.glob(f"*/{folder.name}-[0-9]*.jar") if not path.stem.endswith(("-sources", "-javadoc"))),
        key=version,
        default=None,
    )


def class_path() -> str:
    """Of the load and the provider; compiled when that was not done since a source was changed."""
    source = places.source()
    if source is None:
        raise NoSource(
            "the load of Jakarta Messaging clients is built from source, and there is no source here: run it in a clone of the project, or set PGAQ_SOURCE to one"
        )
    if not (shutil.which("java") and shutil.which("javac")):
        raise NoSource("the Jakarta Messaging clients need a JDK: tools/setup jms installs it")
    jars = [_newest(library) for library in LIBRARIES]
    if None in jars:
        raise NoSource("the libraries of the Jakarta Messaging clients are not here: ./test jms fetches them")
    files = sorted((source / "jms/pgaq-jms/src/main/java").rglob("*.java"))
    files += [source / "bench/jms-load/src/main/java" / PACKAGE.replace(".", "/") / f"{name}.java" for name in PROGRAMS]
    target = source / "bench" / "build" / "jms"
    if not os.access(source / "bench", os.W_OK):
        target = Path(tempfile.gettempdir()) / f"pgaq-jms-load-{os.geteuid()}"
    libraries = ":".join(str(jar) for jar in jars)
    target.mkdir(parents=True, exist_ok=True)
    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _compile(files, libraries, target)
    return f"{target}:{libraries}"


def _compile(files: list[Path], libraries: str, target: Path) -> None:
    done = target / "compiled"
    if done.exists() and done.stat().st_mtime >= max(path.stat().st_mtime for path in files):
        return
    done.unlink(missing_ok=True)
    for path in target.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    command = [*JAVAC, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-cp", libraries, "-d", str(target), *map(str, files)]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode != 0:
        raise LoadError(f"the Jakarta Messaging clients did not compile:\n{compiled.stderr}")
    done.touch()
