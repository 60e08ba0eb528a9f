"""The layout of the extension image with a server that looks for extensions outside of its own directory (18 and later)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from roots import SOURCE, run

SERVER = Path("/usr/local/lib/pgaq/postgresql-18/usr/lib/postgresql/18/bin")
# without the server's own folders, which may have pgaq, too; of them, only PL/pgSQL is needed
SCRIPT = """
cd /
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
sql() { as "$BIN/psql" -XAtq -v ON_ERROR_STOP=1 -h "$HERE" -d postgres -c "$1"; }
as "$BIN/initdb" -D "$HERE/data" -U postgres -A trust >/dev/null
mkdir "$HERE/plpgsql"
cp "$("$BIN/pg_config" --pkglibdir)/plpgsql.so" "$HERE/plpgsql"
cat >>"$HERE/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$HERE'
shared_preload_libraries = 'pgaq'
extension_control_path = '$HERE/pgaq/share'
dynamic_library_path = '$HERE/pgaq/lib:$HERE/plpgsql'
END
as "$BIN/pg_ctl" -D "$HERE/data" -w -l "$HERE/log" start >/dev/null
trap 'as "$BIN/pg_ctl" -D "$HERE/data" -w -m fast stop >/dev/null' EXIT
export PGUSER=postgres
sql 'CREATE EXTENSION pgaq_oracle CASCADE' 2>/dev/null
sql "SELECT aq.create_queue('orders')" >/dev/null
sql "SELECT aq.enqueue('orders', '{\\"order\\": 1}')" >/dev/null
sql "SELECT payload FROM aq.dequeue('orders', wait => '10 seconds')"
"""


@pytest.fixture
def here() -> Iterator[Path]:
    """A directory that the server's user may write to."""
    path = Path(tempfile.mkdtemp(prefix="pgaq-image-", dir="/var/tmp"))
    path.chmod(0o755)
    if os.getuid() == 0:
        shutil.chown(path, "postgres")
    yield path
    shutil.rmtree(path)


def test_extension_control_path(here: Path, tmp_path: Path) -> None:
    """The server finds library, control files and scripts in the folders of the image, and delivers a message."""
    if not SERVER.exists():
        pytest.skip("missing: PostgreSQL 18 (tools/setup server 18)")
    config = SERVER / "pg_config"
    run("git", "clone", "-q", "--no-tags", SOURCE, tmp_path / "source")
    more = {"cwd": tmp_path / "source", "env": {**os.environ, "COPT": "-O0"}}
    run("make", f"-j{os.cpu_count()}", f"PG_CONFIG={config}", **more)
    run("make", "install", f"PG_CONFIG={config}", f"DESTDIR={tmp_path}/installed", **more)
    installed = {option: tmp_path / "installed" / run(config, f"--{option}").strip().lstrip("/") for option in ("pkglibdir", "sharedir")}
    (here / "pgaq/lib").mkdir(parents=True)
    shutil.copy(installed["pkglibdir"] / "pgaq.so", here / "pgaq/lib")
    shutil.copytree(installed["sharedir"] / "extension", here / "pgaq/share/extension")
    said = run("sh", "-eu", "-c", SCRIPT, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HERE": str(here), "BIN": str(SERVER)})
    assert said == '{"order": 1}\n'
