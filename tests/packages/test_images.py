"""The images: what their Dockerfiles say is done in a Debian root; the server inside gets a message and delivers it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Callable

import pytest
from roots import Root

# one root for both files
pytestmark = pytest.mark.xdist_group("roots")

# as the entry point of the official image: the data directory is made, a server runs the files of the first start
FIRST_START = """
mkdir -p /var/run/postgresql /docker-entrypoint-initdb.d
chown postgres /var/run/postgresql
install -d -o postgres /data
bin=/usr/lib/postgresql/15/bin
as() { runuser -u postgres -- "$@"; }
sql() { as psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
as $bin/initdb -D /data -A trust >/dev/null
"""
SEND_AND_RECEIVE = """
sql -c "SELECT aq.create_queue('orders')" >/dev/null
sql -c "SELECT aq.enqueue('orders', '{\\"order\\": 1}')" >/dev/null
sql -c "SELECT payload FROM aq.dequeue('orders', wait => '10 seconds')"
"""


@pytest.fixture
def root(new_root: Callable[[str], Root], request: pytest.FixtureRequest) -> Root:
    """A root with the server, and initdb's sample file where the official image has it."""
    root = new_root(request.node.name.partition("@")[0])
    root.sh("""
        cp /usr/share/postgresql/15/postgresql.conf.sample /usr/share/postgresql/
        ln -sf ../postgresql.conf.sample /usr/share/postgresql/15/postgresql.conf.sample
    """)
    return root


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """The instructions with their arguments in place."""
    text = re.sub(r"\\\n", " ", "".join(line for line in dockerfile.read_text().splitlines(True) if not line.startswith("#")))
    found = [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.splitlines() if line.strip()]
    values = dict(rest.split("=", 1) for name, rest in found if name == "ARG")
    return [(name, re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), rest)) for name, rest in found]


def build(dockerfile: Path, root: Root) -> dict[str, str]:
    """COPY and RUN in the root; the other instructions are returned."""
    others = {}
    for name, rest in instructions(dockerfile):
        if name == "COPY":
            *sources, target = rest.split()
            to = root.path / target.lstrip("/")
            for source in (path for pattern in sources for path in dockerfile.parent.glob(pattern)):
                if target.endswith("/"):
                    to.mkdir(parents=True, exist_ok=True)
                # of a directory, COPY takes the content
                shutil.copytree(source, to, dirs_exist_ok=True) if source.is_dir() else shutil.copy(source, to)
        elif name == "RUN" and "apt-get" in rest:
            for command in rest.split("&&"):
                words = shlex.split(command)
                if words[0] == "apt-get":
                    found = [
                        f"/{path.relative_to(root.path)}" for word in words if "*" in word for path in root.path.glob(word.lstrip("/"))
                    ]
                    root.apt(*(word for word in words[1:] if "*" not in word), *found)
        elif name == "RUN":
            root.sh(rest)
        else:
            others[name] = rest
    return others


def test_postgres_image(root: Root, dist: Path) -> None:
    """The first start makes a database with the extension; the health check succeeds; a message is received."""
    others = build(dist / "images/postgres/Dockerfile", root)
    health = others["HEALTHCHECK"].partition("CMD ")[2]
    said = root.sh(
        FIRST_START
        + f"""
        as $bin/pg_ctl -D /data -w -l /tmp/log -o '-c listen_addresses=' start >/dev/null
        if {health}; then echo 'healthy before the first start was over'; fi
        for file in /docker-entrypoint-initdb.d/*.sql; do sql -f "$file"; done
        as $bin/pg_ctl -D /data -w stop >/dev/null
        as $bin/pg_ctl -D /data -w -l /tmp/log start >/dev/null
        {health}
        {SEND_AND_RECEIVE}
        as $bin/pg_ctl -D /data -w stop >/dev/null
    """
    )
    assert said == '{"order": 1}\n'


def test_extension_image_has_only_the_extension(dist: Path) -> None:
    """lib/ and share/extension/, and in them what belongs to pgaq."""
    for dockerfile in (dist / "images/cloudnativepg").glob("*/Dockerfile"):
        files = [path.relative_to(dockerfile.parent) for path in dockerfile.parent.rglob("*") if path.is_file() and path != dockerfile]
        assert Path("lib/pgaq.so") in files and Path("share/extension/pgaq.control") in files
        assert {str(path) for path in files if not re.fullmatch(r"share/extension/pgaq[a-z_]*(--[\d.-]+\.sql|\.control)", str(path))} == {
            "lib/pgaq.so"
        }


def test_extension_image(root: Root, dist: Path) -> None:
    """A server that finds the library in the mounted image delivers a message.

    PostgreSQL 18 also finds control files there (extension_control_path); for 15 they are linked to where it looks.
    """
    volume = Root(root.path / "extensions/pgaq")
    volume.path.mkdir(parents=True)
    others = build(dist / "images/cloudnativepg/15/Dockerfile", volume)
    assert others["FROM"] == "scratch"
    said = root.sh(
        FIRST_START
        + f"""
        ln -s /extensions/pgaq/share/extension/* /usr/share/postgresql/15/extension/
        as $bin/pg_ctl -D /data -w -l /tmp/log -o "-c shared_preload_libraries=pgaq -c dynamic_library_path='\\$libdir:/extensions/pgaq/lib'" start >/dev/null
        sql -c 'CREATE EXTENSION pgaq'
        {SEND_AND_RECEIVE}
        as $bin/pg_ctl -D /data -w stop >/dev/null
    """
    )
    assert said == '{"order": 1}\n'
