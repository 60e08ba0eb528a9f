"""A private PostgreSQL server for demo, tests and benchmarks.

It has its own data directory, its own socket directory and, unless asked for,
no TCP port.  It never touches another cluster and never runs as root.  What it
logs goes to one file, which `problems` reads for lines that no test expected.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

from pgaq import db, places
from pgaq.places import SurroundingsError

__all__ = ["Server", "SurroundingsError", "free_port"]

# The longest path a socket may have, less the file's own name.
SOCKET_PATH_LIMIT = 107 - len("/.s.PGSQL.65535.lock")

# lower than those that Linux gives to connections
SERVER_PORTS = range(16_000, 32_000)

DEFAULTS = {
    "shared_preload_libraries": "pgaq",
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "max_prepared_transactions": "100",
    "max_worker_processes": "16",
    "log_line_prefix": "%m [%p] %b ",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

SHUTDOWN = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Log lines that are looked at, and those among them that are part of a server's life.
SUSPECT = re.compile(r"(WARNING|PANIC|TRAP): |terminated by signal (?!9: Killed|15: Terminated)|AddressSanitizer|runtime error:")
EXPECTED = [
    re.compile(pattern)
    for pattern in (
        r"terminating connection because of crash of another server process",
        r"out of logical replication worker slots",
        # said when DROP DATABASE is replayed after a crash
        r"could not open directory \"base/\d+\": No such file or directory",
        r"some useless files may be left behind in old database directory",
    )
]


_reserved: list[socket.socket] = []


def free_port() -> int:
    """A TCP port of this process: the kernel gives it to no connection, and no other process that calls this gets it.

    It stays bound here. A program that sets SO_REUSEADDR, as PostgreSQL does, can listen on it nevertheless.
    """
    while True:
        mine = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        port = secrets.choice(SERVER_PORTS)
        try:
            mine.bind(("127.0.0.1", port))
        except OSError:
            mine.close()
            continue
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _reserved.append(mine)
        return port


def port_taken(port: int) -> bool:
    """Does a process listen on 127.0.0.1:port?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


class Server:
    """One private server; directory holds all it has."""

    def __init__(
        self,
        directory: Path | str,
        *,
        name: str = "server",
        port: int | None = None,
        settings: dict[str, Any] | None = None,
        tcp: bool = False,
        bindir: Path | str | None = None,
        initdb: tuple[str, ...] = (),
        copy_of: Path | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.bindir = Path(bindir or places.pg_config("bindir"))
        self.initdb = initdb
        self.copy_of = copy_of  # data directory of a server that was stopped, in place of initdb
        self.name = name
        self.data = self.directory / "data"
        self.port = port or (free_port() if tcp else 5432)
        self.tcp = tcp
        self.settings: dict[str, Any] = dict(DEFAULTS)
        library = os.environ.get("PGAQ_LIBDIR")
        if library:
            # a test build of the extension, in place of the installed one
            self.settings["dynamic_library_path"] = f"{library}:$libdir"
        self.settings.update(settings or {})
        log_dir = os.environ.get("PGAQ_LOG_DIR")
        stem = f"{name}-{os.getpid()}-{secrets.token_hex(3)}"
        self.log = Path(log_dir) / f"{stem}.log" if log_dir else self.directory / "log"
        self._expected: list[re.Pattern[str]] = []
        self._socket_dir: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # -- making and removing

    @classmethod
    def temporary(cls, name: str = "test", *, parent: Path | str | None = None, start: bool = True, **arguments: Any) -> "Server":
        """Creates and starts a new server in its own directory."""
        parent = parent or os.environ.get("PGAQ_RUN_DIR") or "/tmp"
        directory = Path(tempfile.mkdtemp(prefix=f"pgaq-{name}-", dir=parent))
        directory.chmod(0o700)
        places.give_to_server(directory)
        arguments.setdefault("settings", {})
        arguments["settings"] = {"fsync": "off", "jit": "off", **arguments["settings"]}
        server = cls(directory, name=name, **arguments)
        try:
            server.create()
            if start:
                server.start()
        except BaseException:
            server.destroy()
            raise
        return server

    def create(self) -> None:
        """initdb, or a copy, and settings."""
        places.pg_major()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        places.give_to_server(self.directory)
        if self.copy_of is not None:
            subprocess.run(["cp", "-a", str(self.copy_of), str(self.data)], check=True)
            self.configure()
            return
        command = [
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        ]
        result = self._run("initdb", *command, *self.initdb)
        if result.returncode != 0:
            raise SurroundingsError(f"initdb failed in {self.directory}: {_reason(result.stderr) or _last_line(result.stderr)}")
        self.configure()

    def configure(self, **settings: Any) -> None:
        """Add settings (None removes one) and write the configuration and access rules; the caller restarts or reloads."""
        for key, value in settings.items():
            if value is None:
                self.settings.pop(key, None)
            else:
                self.settings[key] = value
        values = {"port": self.port, "unix_socket_directories": self.socket_dir, **self.settings}
        if self.tcp:
            values["listen_addresses"] = "127.0.0.1"
        rules = "local all all trust\nlocal replication all trust\n"
        if self.tcp:
            rules += "host all all 127.0.0.1/32 scram-sha-256\n"
        self._write(self.data / "pg_hba.conf", rules)
        lines = [f"{key} = '{_setting(value)}'\n" for key, value in values.items()]
        self._write(self.data / "pgaq.conf", "".join(lines))
        main = self.data / "postgresql.conf"
        text = main.read_text()
        if "include 'pgaq.conf'" not in text:
            self._write(main, text + "\ninclude 'pgaq.conf'\n")

    def destroy(self) -> None:
        """Stop it at once and remove everything of it but a log kept elsewhere."""
        if self.data.exists():
            self._quit()
            self._remove_segment()
        if self._socket_dir is not None and self._socket_dir != self.directory:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _quit(self) -> None:
        """An immediate shutdown, in which the postmaster removes its shared memory; kill -9 for one that does not listen."""
        pid = self.postmaster_pid()
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
            if not _wait_for(lambda: not _alive(pid), 10):
                self.kill()
            self._reap()

    def _remove_segment(self) -> None:
        """The shared memory by which a killed server would be recognised at its next start, named in its lock file: the machine has room for some thousand."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return
        if len(lines) > 6 and lines[6].split():
            subprocess.run(["ipcrm", "-m", lines[6].split()[-1]], capture_output=True)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    # -- running

    @property
    def socket_dir(self) -> Path:
        """Where the socket lies: beside the data, or in /tmp when that path is too long."""
        if self._socket_dir is None:
            remembered = self.directory / "socket_dir"
            if len(str(self.directory)) <= SOCKET_PATH_LIMIT:
                self._socket_dir = self.directory
            elif remembered.exists():
                self._socket_dir = Path(remembered.read_text().strip())
            else:
                made = Path(tempfile.mkdtemp(prefix="pgaq-s-", dir="/tmp"))
                places.give_to_server(made)
                remembered.write_text(f"{made}\n")
                self._socket_dir = made
            if not self._socket_dir.exists():
                self._socket_dir.mkdir(mode=0o700)
                places.give_to_server(self._socket_dir)
        return self._socket_dir

    def start(self, timeout: float = 120) -> None:
        """Start and wait until connections are accepted (for a standby: as soon as recovery allows them)."""
        if self.running():
            return
        if self.tcp and port_taken(self.port):
            raise SurroundingsError(f"Port {self.port} is taken by another program; choose another with --port.")
        deadline = time.monotonic() + timeout
        # what is left of a killed server must be gone first: sessions notice it in their own time
        _wait_for(lambda: not self._orphans(), 10)
        self._forget_zombie()
        self._prepare_log()
        said = self._launch(deadline)
        # a killed process is gone before its memory is, if another program is just reading about it in /proc
        while said is not None and "pre-existing shared memory block" in said and time.monotonic() < deadline:
            time.sleep(0.1)
            said = self._launch(deadline)
        if said is not None:
            raise SurroundingsError(f"The server in {self.directory} did not start: {_reason(said) or _last_line(said)}")

    def _launch(self, deadline: float) -> str | None:
        """Start the postmaster and wait until it accepts connections; what it said if it has ended instead."""
        began = self.log.stat().st_size
        # our own child, not pg_ctl's: if it is killed, we reap it, whatever process 1 of a container does
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [places.program("postgres", self.bindir), "-D", str(self.data)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", env=self._clean_environment(), start_new_session=True, **places.popen_user(),
            )  # fmt: skip
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._status().startswith(("ready", "standby")):
                return None
            time.sleep(0.005)
        if self._process.poll() is None:
            raise SurroundingsError(f"The server in {self.directory} did not start in time; its log is {self.log}.")
        return self.log_text()[began:]

    def _status(self) -> str:
        """The contents of the lock file of the postmaster that we started."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return ""
        return lines[7].strip() if len(lines) > 7 and lines[0] == str(self._process.pid) else ""

    def _forget_zombie(self) -> None:
        """Remove the lock file of a postmaster that is dead but not yet reaped by its parent."""
        file = self.data / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (OSError, ValueError):
            return
        if not _alive(pid) and not self._orphans():
            file.unlink()

    def stop(self, mode: str = "fast", timeout: int = 120) -> None:
        """An ordinary shutdown: smart, fast or immediate.  No error when it does not run."""
        pid = self.postmaster_pid()
        if pid is None:
            return
        _kill(pid, SHUTDOWN[mode])
        if not _wait_for(lambda: not _alive(pid), timeout):
            raise RuntimeError(f"the server in {self.directory} did not stop within {timeout} seconds")
        self._reap()

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def reload(self) -> None:
        self._check("pg_ctl", "reload", "-s", "-D", str(self.data))

    def promote(self) -> None:
        """End recovery and wait until the server takes writes."""
        self._check("pg_ctl", "promote", "-w", "-s", "-D", str(self.data))

    def kill_postmaster(self) -> None:
        """kill -9 of the postmaster alone; the others notice and leave.  Returns when all are gone."""
        pid = self.postmaster_pid()
        if pid is None:
            return
        family = [pid, *self.child_pids()]
        os.kill(pid, signal.SIGKILL)
        if not _wait_for(lambda: not any(_alive(p) for p in family), 30):
            for p in family:
                _kill(p)
            _wait_for(lambda: not any(_alive(p) for p in family), 10)
        self._reap()

    def kill(self) -> None:
        """kill -9 of every process of the server, like a power cut that spares the disk."""
        pid = self.postmaster_pid()
        if pid is None:
            return
        # stopped, not killed first: sessions that wait for a standby would notice its end, and commit
        _kill(pid, signal.SIGSTOP)
        family = [*self.child_pids(), pid]
        for p in family:
            _kill(p)
        _wait_for(lambda: not any(_alive(p) for p in family), 10)
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait(10)
            self._process = None

    def running(self) -> bool:
        return self.postmaster_pid() is not None

    def postmaster_pid(self) -> int | None:
        """Process id of a live postmaster of this data directory."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError, PermissionError, NotADirectoryError):
            return None
        if not _alive(pid):
            return None
        try:
            if Path(os.readlink(f"/proc/{pid}/cwd")) != self.data.resolve():
                return None
        except OSError:
            return None
        return pid

    def child_pids(self) -> list[int]:
        """Processes whose parent is the postmaster."""
        pid = self.postmaster_pid()
        return [] if pid is None else [child for child, parent in _parents() if parent == pid]

    def _orphans(self) -> list[int]:
        """The processes of this data directory, whatever their parents."""
        data = str(self.data.resolve())
        found = []
        for pid, _ in _parents():
            try:
                if os.readlink(f"/proc/{pid}/cwd") == data:
                    found.append(pid)
            except OSError:
                pass
        return found

    # -- standby and backup

    def basebackup(
        self, name: str = "standby", *, standby: bool = True, settings: dict[str, Any] | None = None, directory: Path | str | None = None
    ) -> "Server":
        """A base backup as a separate server, not started; a standby by default."""
        target = Path(directory) if directory else Path(tempfile.mkdtemp(prefix=f"pgaq-{name}-", dir=self.directory.parent))
        target.mkdir(mode=0o700, exist_ok=True)
        target.chmod(0o700)
        places.give_to_server(target)
        copy = Server(target, name=name, port=self.port, bindir=self.bindir, settings={**self.settings, **(settings or {})})
        command = ["-D", str(copy.data), "-d", self.conninfo("postgres"), "-X", "stream", "-c", "fast", "--no-sync"]
        result = self._run("pg_basebackup", *command, *(["-R"] if standby else []))
        if result.returncode != 0:
            raise RuntimeError(f"pg_basebackup failed: {_last_line(result.stderr)}")
        copy.configure()
        return copy

    def wait_for_replay(self, primary: "Server", timeout: float = 60) -> None:
        """Wait until this standby has replayed all that the primary has written."""
        with primary.connect() as conn:
            target = db.value(conn, "SELECT pg_current_wal_flush_lsn()")
        with self.connect() as conn:
            query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            if not _wait_for(lambda: db.value(conn, query, [target]), timeout):
                raise RuntimeError("the standby did not catch up")

    def reset_wal(self, *options: str) -> None:
        """Change what pg_control says; the server is stopped."""
        self._check("pg_resetwal", "-D", str(self.data), *options)

    def upgrade(self, old: "Server", *options: str) -> None:
        """pg_upgrade: this new server, created and not started, becomes what the old, stopped one is."""
        command = [
            "-b",
            str(old.bindir),
            "-B",
            str(self.bindir),
            "-d",
            str(old.data),
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-s",
            str(self.socket_dir),
            "--no-sync",
        ]
        # it leaves scripts for afterwards where it runs
        result = self._run("pg_upgrade", *command, *options, cwd=self.directory)
        if result.returncode != 0:
            logs = [log.read_text(errors="replace") for log in (self.data / "pg_upgrade_output.d").glob("*/log/*.log")]
            reasons = "\n".join(line for log in logs for line in log.splitlines() if re.search(r"(ERROR|FATAL|error): ", line))
            raise RuntimeError(f"pg_upgrade failed: {result.stdout}{result.stderr}{reasons}")

    # -- connecting

    def conninfo(self, dbname: str = "postgres", user: str = "postgres", **more: Any) -> str:
        """libpq's connection string, over the private socket."""
        parts = {"host": self.socket_dir, "port": self.port, "dbname": dbname, "user": user, **more}
        return " ".join(f"{key}='{value}'" for key, value in parts.items())

    def connect(self, dbname: str = "postgres", *, autocommit: bool = True, user: str = "postgres", **more: Any) -> db.Connection:
        return db.connect(self.conninfo(dbname, user, **more), autocommit=autocommit)

    def environment(self, dbname: str = "postgres", user: str = "postgres") -> dict[str, str]:
        """Variables with which psql, pg_dump and others reach this server."""
        return {**os.environ, "PGHOST": str(self.socket_dir), "PGPORT": str(self.port), "PGDATABASE": dbname, "PGUSER": user}

    def psql(self, script: str, dbname: str = "postgres", *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run psql -X with the script on its standard input, stopping at the first error."""
        command = [places.program("psql", self.bindir), "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments]
        return subprocess.run(command, input=script, text=True, capture_output=True, env=self.environment(dbname))

    def run(
        self, name: str, *arguments: str, dbname: str = "postgres", bindir: Path | str | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run one of PostgreSQL's client programs against this server, as ourselves."""
        command = [places.program(name, bindir or self.bindir), *arguments]
        return subprocess.run(command, text=True, capture_output=True, env=self.environment(dbname), **options)

    # -- the log

    def log_text(self) -> str:
        try:
            return self.log.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def expect_log(self, pattern: str) -> None:
        """Declare that lines matching pattern are meant to be logged."""
        self._expected.append(re.compile(pattern))
        allowed = Path(f"{self.log}.allow")
        with allowed.open("a") as file:
            file.write(f"{pattern}\n")

    def problems(self) -> list[str]:
        """Unexpected log lines with a WARNING, PANIC, failed assertion or crash."""
        return list(log_problems(self.log, self._expected))

    # -- plumbing

    @staticmethod
    def _clean_environment() -> dict[str, str]:
        """Ours without libpq's variables, which may point to another server."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PG") or k.startswith("PGAQ")}
        return {**kept, "LC_ALL": "C"}

    def _run(self, name: str, *arguments: str, cwd: Path | str = "/") -> subprocess.CompletedProcess[str]:
        # a daemon must not inherit a pipe, or its reader never ends: output goes to files
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                [places.program(name, self.bindir), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=cwd,
                env=self._clean_environment(),
                text=True,
                **places.popen_user(),
            )
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, out.read(), err.read())

    def _check(self, name: str, *arguments: str) -> None:
        result = self._run(name, *arguments)
        if result.returncode != 0:
            raise RuntimeError(f"{name} failed: {_last_line(result.stderr)}")

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o600)
        places.give_to_server(path)

    def _prepare_log(self) -> None:
        if not self.log.exists():
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.touch(mode=0o644)
            places.give_to_server(self.log)


def log_problems(log: Path, expected: list[re.Pattern[str]] | None = None) -> Iterator[str]:
    """Unexpected lines of one log; patterns also come from LOG.allow beside it."""
    patterns = EXPECTED + list(expected or [])
    allowed = Path(f"{log}.allow")
    if allowed.exists():
        patterns += [re.compile(line) for line in allowed.read_text().splitlines() if line]
    if not log.exists():
        return
    with log.open(errors="replace") as file:
        for line in file:
            if SUSPECT.search(line) and not any(p.search(line) for p in patterns):
                yield line.rstrip("\n")


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).replace("'", "''")


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _reason(log: str) -> str:
    """The last FATAL or PANIC of a log without its prefix, and the setting it complains of."""
    found = re.findall(r"(?:FATAL|PANIC):\s+(.*)", log)
    if not found:
        return ""
    causes = re.findall(r"LOG:\s+((?:invalid value for|parameter|unrecognized configuration|syntax error).*)", log)
    return "; ".join([found[-1], *causes[-1:]])


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        yield int(entry), int(text.rpartition(")")[2].split()[1])


def _alive(pid: int) -> bool:
    """Exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _kill(pid: int, sent: signal.Signals = signal.SIGKILL) -> None:
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        pass


def _wait_for(condition: Any, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
