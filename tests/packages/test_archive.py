"""The archive for PGXN builds, and its files serve a server that looks for extensions elsewhere (18 and later)."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Iterator

import pytest
from pgaq import places
from roots import RELEASE, SOURCE, run

# the build is made once
pytestmark = pytest.mark.xdist_group("archive")

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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """make && make install in the unpacked zip, for PostgreSQL 18 if it is here: the directories of the library and of the extension."""
    path = tmp_path_factory.mktemp("archive")
    run(*RELEASE, "--dist", path / "dist", "source")
    (archive,) = (path / "dist/source").glob("*.zip")
    zipfile.ZipFile(archive).extractall(path)
    tree, config = path / archive.stem, SERVER / "pg_config" if SERVER.exists() else places.pg_config_program()
    assert (tree / "META.json").exists() and not (tree / "debian").exists()
    more = {"cwd": tree, "env": {**os.environ, "COPT": "-O0 -g0"}}
    run("make", f"-j{os.cpu_count()}", f"PG_CONFIG={config}", **more)
    run("make", "install", f"PG_CONFIG={config}", f"DESTDIR={path}/installed", **more)
    yield {name: path / "installed" / run(config, f"--{name}").strip().lstrip("/") for name in ("pkglibdir", "sharedir")}
    shutil.rmtree(path)


def test_archive_for_pgxn_installs(installed: dict[str, Path]) -> None:
    """Library, control files and scripts of the three extensions."""
    names = {path.name for path in installed["sharedir"].rglob("*")}
    assert (installed["pkglibdir"] / "pgaq.so").exists()
    assert {"pgaq.control", "pgaq_oracle.control", "pgaq_lab.control"} < names and any(name.startswith("pgaq--") for name in names)


def test_extension_control_path(installed: dict[str, Path], here: Path) -> None:
    """The server finds library, control files and scripts in the folders of the image, and delivers a message."""
    if not SERVER.exists():
        pytest.skip("missing: PostgreSQL 18 (tools/setup server 18)")
    (here / "pgaq/lib").mkdir(parents=True)
    shutil.copy(installed["pkglibdir"] / "pgaq.so", here / "pgaq/lib")
    shutil.copytree(installed["sharedir"] / "extension", here / "pgaq/share/extension")
    said = run("sh", "-eu", "-c", SCRIPT, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HERE": str(here), "BIN": str(SERVER)})
    assert said == '{"order": 1}\n'
