"""The Debian packages: installed, used, upgraded, removed and purged in a fresh root."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Callable

import pytest
from roots import SOURCE, Root, run

# one root for both files
pytestmark = pytest.mark.xdist_group("roots")

# a cluster as a user has it; the quoting of SQL is the shell's
START = """
pg_ctlcluster 15 main start
trap 'pg_ctlcluster 15 main stop' EXIT
sql() { runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1 -d postgres -c "$1"; }
"""


# a service is started; its page is printed as soon as it is there
ASK = """
import subprocess, sys, urllib.error, urllib.request
service = subprocess.Popen(sys.argv[2:])
while service.poll() is None:
    try:
        print(urllib.request.urlopen(sys.argv[1]).read().decode())
        break
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError):
            raise
service.terminate()
"""


def older(package: Path, folder: Path) -> Path:
    """The same package with a lower version."""
    run("dpkg-deb", "-R", package, folder / "content")
    control = folder / "content/DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*", "Version: 0.0.1-1", control.read_text(), flags=re.M))
    path = folder / (re.sub(r"_.*_", "_0.0.1-1_", package.name))
    run("dpkg-deb", "--root-owner-group", "-Znone", "-b", folder / "content", path)
    return path


@pytest.fixture(scope="module")
def root(new_root: Callable[[str], Root], debs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A root with a lower version of the extension, loaded by the server, and the command."""
    root = new_root("debian")
    root.install(older(debs["postgresql-15-pgaq"], tmp_path_factory.mktemp("older")), debs["pgaq"])
    root.sh("pg_conftool 15 main set shared_preload_libraries pgaq")
    return root


def test_sends_and_receives(root: Root) -> None:
    """The test of the package, debian/tests: in SQL and with the command."""
    shutil.copy(SOURCE / "debian/tests/send-and-receive", root.path / "tmp/send-and-receive")
    said = root.sh("/tmp/send-and-receive")
    assert "ok: a message was received in SQL" in said and "ok: a message was received by the command" in said


def test_upgrade_keeps_messages(root: Root, debs: dict[str, Path]) -> None:
    """A message sent before the upgrade is received by the server after its restart."""
    root.sh(START + """sql "CREATE EXTENSION pgaq; SELECT aq.create_queue('orders'); SELECT aq.enqueue('orders', '{\\"order\\": 1}')" """)
    root.install(debs["postgresql-15-pgaq"])
    installed = root.sh("dpkg-query -W -f '${Version}' postgresql-15-pgaq")
    assert installed == debs["postgresql-15-pgaq"].name.split("_")[1]
    assert root.sh(START + """sql "SELECT payload FROM aq.dequeue('orders', wait => '10 seconds')" """) == '{"order": 1}\n'


def test_upgrade_leaves_the_running_server(root: Root, debs: dict[str, Path]) -> None:
    """A server that runs during an installation keeps its library and serves on."""
    said = root.sh(
        START
        + f"""
        sql "SELECT aq.enqueue('orders', '{{\\"order\\": 2}}')" >/dev/null
        dpkg --force-unsafe-io -i /tmp/{debs["postgresql-15-pgaq"].name} >/dev/null
        sql "SELECT payload FROM aq.dequeue('orders', wait => '10 seconds')"
    """
    )
    assert said == '{"order": 2}\n'


def test_command_has_its_pages(root: Root) -> None:
    """The man page, the completion of three shells, and the units."""
    files = root.sh("dpkg -L pgaq").split()
    for path in (
        "/usr/share/man/man1/pgaq.1.gz", "/usr/share/bash-completion/completions/pgaq", "/usr/share/zsh/vendor-completions/_pgaq",
        "/usr/share/fish/vendor_completions.d/pgaq.fish", "/lib/systemd/system/pgaq-notify@.service", "/lib/systemd/system/pgaq-metrics.service",
        "/lib/systemd/system/pgaq-console.service", "/etc/pgaq",
    ):  # fmt: skip
        assert path in files
    assert "_PGAQ_COMPLETE" in (root.path / "usr/share/bash-completion/completions/pgaq").read_text()
    assert "ExecStart=/usr/bin/pgaq notify" in (root.path / "lib/systemd/system/pgaq-notify@.service").read_text()
    assert root.sh("getent passwd pgaq").endswith("/usr/sbin/nologin\n")


@pytest.mark.parametrize(("unit", "port", "page"), [("metrics", 9188, "metrics"), ("console", 8410, "login")])
def test_unit_serves(root: Root, unit: str, port: int, page: str) -> None:
    """What a unit starts, as its user, has all that it needs from the package's dependencies: it answers with pages of the database."""
    (root.path / "tmp/ask").write_text(ASK)
    said = root.sh(
        START
        + f"""
        sql "CREATE EXTENSION IF NOT EXISTS pgaq" 2>/dev/null
        sql "SELECT 1 FROM pg_roles WHERE rolname = 'pgaq'" | grep -q . || sql "CREATE ROLE pgaq LOGIN IN ROLE pg_monitor"
        file=/lib/systemd/system/pgaq-{unit}.service
        user=$(sed -n 's/^User=//p' $file) start=$(sed -n 's/^ExecStart=//p' $file)
        PGDATABASE=postgres python3 /tmp/ask http://127.0.0.1:{port}/{page} runuser -u "$user" -- $start
    """
    )
    assert ("pgaq_build_info" if unit == "metrics" else "<form") in said


def test_removed_server_starts(root: Root) -> None:
    """Without the library in shared_preload_libraries, the server starts after the removal, and the data is still there."""
    root.sh("pg_conftool 15 main remove shared_preload_libraries")
    root.apt("remove", "postgresql-15-pgaq", "pgaq")
    assert root.sh(START + """sql "SELECT extname FROM pg_extension WHERE extname = 'pgaq'" """) == "pgaq\n"


def test_purge_leaves_nothing(root: Root, debs: dict[str, Path]) -> None:
    """No file of the packages is left; the system user stays, as is Debian's habit."""
    root.install(debs["postgresql-15-pgaq"], debs["pgaq"])
    root.apt("purge", "postgresql-15-pgaq", "pgaq")
    left = root.sh(
        "find / -xdev -name '*pgaq*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/var/lib/postgresql/*' -not -path '/var/cache/apt/*'"
    )
    assert left == ""
