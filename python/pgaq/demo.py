"""./demo: the main job on a private server, checked and shown in one table."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgaq import db, demo_cluster, demo_console, places, report, text
from pgaq.load import machine
from pgaq.load.drivers import DRIVERS, Driver, Shape
from pgaq.load.ledger import Report
from pgaq.load.workload import LoadError, Metrics, Options, Workload
from pgaq.server import Server, SurroundingsError, free_port

HOME = places.ROOT / ".pgaq"
DATABASE = "demo"
QUEUES = ("demo_queue", "demo_topic", "demo_paced")
NEEDED_DISK = 3 << 30
SECONDS = 20
WARM_UP = 1.0
JMS = places.ROOT / "jms"
SHOP, SHOP_NEEDS = "pgaq-jms-demo", ("pgaq-jms", "pgaq-spring-boot-starter")
SHOP_TARGET, SHOP_JAR = JMS / SHOP / "target", f"{SHOP}-*.jar"


def server_at(home: Path, port: int | None = None, driver: Driver = DRIVERS["pgaq"]) -> Server:
    """The demo's server, as it is or will be on disk."""
    saved = _saved_port(home)
    memory = int(machine.describe()["memory_mb"])  # type: ignore[call-overload]
    settings = {
        "shared_buffers": f"{max(64, min(1024, memory // 8))}MB",
        "max_wal_size": "4GB",
        "synchronous_commit": "on",
        "fsync": "on",
        "shared_preload_libraries": "pgaq" if driver.preload else "",
    }
    chosen = port if port is not None else saved
    return Server(home / "server", name="demo", port=chosen, tcp=chosen is not None, settings=settings)


def _saved_port(home: Path) -> int | None:
    file = home / "port"
    return int(file.read_text()) if file.exists() else None


def _installed(driver: Driver) -> str:
    """A digest of the extension's files: a database with the objects of another build is of no use."""
    digest = hashlib.sha256()
    folder = Path(places.pg_config("sharedir")) / "extension"
    for file in [*sorted(folder.glob("pgaq*")), *sorted(Path(places.pg_config("pkglibdir")).glob("pgaq*.so"))]:
        digest.update(file.read_bytes())
    return f"{driver.extension} {digest.hexdigest()}\n"


def _make_database(server: Server, conn: db.Connection, home: Path, driver: Driver) -> None:
    """Database demo: that of an earlier demo without its queues, or a new one."""
    noted = home / "build"
    exists = db.value(conn, "SELECT count(*) FROM pg_database WHERE datname = %s", [DATABASE]) > 0
    if exists and driver.name == "pgaq" and noted.exists() and noted.read_text() == _installed(driver):
        with server.connect(DATABASE) as own:
            for queue in QUEUES:
                driver.teardown(own, queue)
        return
    if exists:
        print(f"The extension was built again, so database {DATABASE} is created again.")
        db.execute(conn, f"DROP DATABASE {DATABASE} WITH (FORCE)")
    db.execute(conn, f"CREATE DATABASE {DATABASE}")
    noted.write_text(_installed(driver))


def prepare(home: Path, port: int | None, driver: Driver) -> Server:
    """A started server with the database demo; what a user has made there stays."""
    free = machine.free_bytes(home)
    if free < NEEDED_DISK:
        raise SurroundingsError(f"Only {free / (1 << 30):.1f} GB are free where {home} lies; the demo needs {NEEDED_DISK >> 30} GB.")
    server = server_at(home, port, driver)
    if server.running():
        print("The server of an earlier demo is still running; it is restarted.")
        server.stop("fast")
    found = server.data / "PG_VERSION"
    if server.data.exists() and (not found.exists() or found.read_text().strip() != str(places.pg_major())):
        print("The server directory of an earlier demo cannot be used; it is created again.")
        shutil.rmtree(server.directory)
    fresh = not server.data.exists()
    if fresh:
        server.create()
    else:
        server.configure()
    server.start()
    with server.connect() as conn:
        if port is not None:
            (home / "port").write_text(f"{port}\n")
            password = secrets.token_hex(12)
            db.execute(conn, f"ALTER ROLE postgres PASSWORD '{password}'")
            file = home / "password"
            file.touch(mode=0o600)
            file.write_text(f"{password}\n")
        _make_database(server, conn, home, driver)
    try:
        with server.connect(DATABASE) as conn:
            if driver.extension:
                db.execute(conn, f"CREATE EXTENSION IF NOT EXISTS {driver.extension}")
    except db.Error as error:
        raise SurroundingsError(f"The extension could not be created: {str(error).splitlines()[0]}.") from None
    return server


class Act:
    """One part of the demo: a workload, what it measured, what the ledger says."""

    def __init__(self, title: str, server: Server, queue: str, shape: Shape, home: Path, seconds: float, driver: Driver) -> None:
        self.title = title
        self.seconds = seconds
        self.shape = shape
        directory = home / "ledger" / queue
        shutil.rmtree(directory, ignore_errors=True)
        self.workload = Workload(server, driver, shape, Options(), queue=queue, dbname=DATABASE, directory=directory)
        self.metrics: Metrics | None = None
        self.report: Report | None = None

    def play(self, progress: text.Progress) -> None:
        last: dict[str, Any] = {"time": time.monotonic(), "in": 0, "out": 0, "rate_in": 0.0, "rate_out": 0.0}

        def show(workload: Workload) -> None:
            now = time.monotonic()
            passed = now - last["time"]
            if passed >= 0.5:
                control = workload.control
                last["rate_in"] = (control.produced - last["in"]) / passed
                last["rate_out"] = (control.delivered - last["out"]) / passed
                last.update(time=now, **{"in": control.produced, "out": control.delivered})
            progress.show(self.title, f"{last['rate_in']:>9,.0f}/s in {last['rate_out']:>9,.0f}/s out")

        with self.workload as workload:
            progress.show(self.title)
            workload.setup()
            workload.start()
            workload.run_for(WARM_UP, show)
            workload.measure(self.seconds, show)
            progress.show(self.title, "taking what is left")
            drained = workload.drain(60)
            workload.stop()
            progress.show(self.title, "checking every message")
            self.metrics = workload.metrics()
            self.report = workload.check()
            if not drained and self.report.ok:
                self.report.add("undrained", "the consumers did not get to the end in 60 s")
            if self.report.ok:
                workload.forget()


def acts(server: Server, home: Path, seconds: float, sessions: int, driver: Driver) -> list[Act]:
    """The three parts; seconds is what they take together."""
    part = max(1.0, seconds * 0.4 - WARM_UP)
    return [
        Act(f"queue, {sessions} + {sessions} sessions", server, QUEUES[0], Shape(sessions=sessions), home, part, driver),
        Act(
            f"topic, {sessions} + {-(-max(sessions, 10) // 10) * 10} sessions, 10 subscribers", server, QUEUES[1],
            Shape(kind="topic", sessions=sessions), home, part, driver,
        ),
        Act(
            "queue at 2,000/s, 1 per transaction", server, QUEUES[2], Shape(batch=1, sessions=4, rate=2000), home,
            max(1.0, seconds * 0.2 - WARM_UP), driver,
        ),
    ]  # fmt: skip


def results(played: list[Act]) -> str:
    """The table."""
    rows = []
    for act in played:
        m = act.metrics
        rows.append(
            [
                act.title, text.number(m.enqueued), text.number(m.delivered), text.duration(m.p50), text.duration(m.p99),
                f"{m.server_cpu:.2f}", f"{m.client_cpu:.2f}", text.number(m.cpu_us_per_message, 1), text.number(m.wal_per_message),
            ]
        )  # fmt: skip
    head = ["", "msg/s in", "msg/s out", "p50", "p99", "server CPU", "client CPU", "CPU us/msg", "WAL B/msg"]
    return text.table(head, rows)


def top_waits(server: Server, limit: int = 6) -> str:
    """The extension's own waits since the server started."""
    try:
        with server.connect(DATABASE) as conn:
            rows = db.rows(
                conn,
                """SELECT event, waits, total_us FROM aq.waits
                   WHERE wait_class <> 'Idle' ORDER BY total_us DESC LIMIT %s""",
                [limit],
            )
    except db.Error as error:
        return f"(aq.waits could not be read: {str(error).splitlines()[0]})"
    if not rows:
        return "(no session had to wait in the extension)"
    cells = [
        [
            row["event"], text.number(row["waits"]), text.duration(float(row["total_us"])),
            text.duration(float(row["total_us"]) / row["waits"]),
        ]
        for row in rows
    ]  # fmt: skip
    return text.table(["waits of the extension", "waits", "time", "average"], cells)


def snapshot(server: Server) -> int | None:
    """Take one; its number.  None where the driver has no repository."""
    try:
        with server.connect(DATABASE) as conn:
            return int(db.value(conn, "SELECT aq.take_snapshot()"))
    except db.Error:
        return None


def save_report(server: Server, home: Path, first: int | None, last: int | None) -> str:
    """The report between two snapshots, as a page; a line that says where it is."""
    if first is None or last is None:
        return "(there is no report: a snapshot could not be taken)"
    file = home / "report.html"
    with server.connect(DATABASE) as conn:
        file.write_text(report.page(db.value(conn, "SELECT aq.report_awr(%s, %s)", [first, last])), encoding="utf-8")
    return f"Where the time went, latches, waits and queues, with charts, for any browser:\n  {file}"


def connect_hints(server: Server, home: Path) -> str:
    """How to get in, and how to end it."""
    psql = f"psql -h {shlex.quote(str(server.socket_dir))} -p {server.port} -U postgres {DATABASE}"
    lines = [
        f"The server runs on, as user {places.server_user() or os.environ.get('USER', 'yourself')}, in {server.directory} (log: {server.log}).",
        "  ./demo psql     a session on it, the same as",
        f"                  {psql}",
    ]
    if server.tcp:
        lines.append(f"                  or 127.0.0.1:{server.port}, user postgres, password in {home / 'password'}")
    lines += [
        "  ./demo console  the console in the browser, on a load that runs",
        "  ./demo stop     stops the server and keeps its data",
        "  ./demo remove   removes all of it",
    ]
    return "\n".join(lines)


def run(given: argparse.Namespace) -> int:
    home, seconds = _home(), given.seconds or SECONDS
    driver = DRIVERS[given.driver]
    server = prepare(home, given.port, driver)
    played: list[Act] = []
    program = acts(server, home, seconds, given.sessions, driver)
    progress = text.Progress(seconds + 3)
    snapshots = [snapshot(server)]
    try:
        for act in program:
            act.play(progress)
            played.append(act)
            snapshots.append(snapshot(server))
            if not act.report.ok:
                break
    except KeyboardInterrupt:
        progress.clear()
        server.stop("immediate")
        print("Interrupted; the server is stopped. ./demo remove removes it.")
        return 130
    finally:
        progress.clear()
    print(
        f"\n512-byte persistent messages, 10 per transaction unless said otherwise, fsync and synchronous_commit on, {os.cpu_count()} CPUs:\n"
    )
    print(results(played))
    print("\nLatency is from the enqueue call to the receipt; at full load it is the time in the queue.\n")
    print(top_waits(server))
    print()
    failed = [act for act in played if not act.report.ok]
    messages = sum(act.report.committed for act in played)
    deliveries = sum(act.report.deliveries for act in played)
    if failed:
        for act in failed:
            print(f"CHECK FAILED for {act.title}; the ledger is in {act.workload.ledger_dir}\n{act.report}")
    else:
        print(
            f"Checked against the clients' ledgers: {messages:,} messages, {deliveries:,} deliveries, every message exactly once\n"
            "at every subscriber, in the order of its session, every byte of it."
        )
    print()
    print(connect_hints(server, home))
    print("\n" + save_report(server, home, snapshots[0], snapshots[-1]))
    return 1 if failed else 0


def _shop_is_current(built: Path) -> bool:
    modules = (SHOP, *SHOP_NEEDS)
    sources = [
        JMS / "pom.xml",
        *(JMS / name / "pom.xml" for name in modules),
        *(file for name in modules for file in (JMS / name / "src" / "main").glob("**/*")),
    ]
    return built.exists() and any(SHOP_TARGET.glob(SHOP_JAR)) and all(file.stat().st_mtime < built.stat().st_mtime for file in sources)


@contextlib.contextmanager
def _building_shop(home: Path) -> Iterator[None]:
    """Builds the shop if its sources have changed, while the caller does something else."""
    built, log, began = home / "shop", home / "maven.log", time.time()
    if _shop_is_current(built):
        yield
        return
    print("Building the Jakarta Messaging provider and the shop (the first time, Maven fetches Spring Boot) ...", flush=True)
    command = [
        "mvn",
        "--batch-mode",
        "--quiet",
        "--projects",
        SHOP,
        "--also-make",
        "-DskipTests",
        "-Dmaven.javadoc.skip=true",
        "-Dmaven.source.skip=true",
        "package",
    ]
    with (
        open(log, "w") as output,
        subprocess.Popen(command, cwd=JMS, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as maven,
    ):
        yield
    if maven.returncode != 0:
        raise SurroundingsError(f"The build failed; see {log}.")
    built.touch()
    os.utime(built, (began, began))


def jms(given: argparse.Namespace) -> int:
    """./demo jms: builds the shop of jms/pgaq-jms-demo and runs it on the demo's server."""
    home = places.private_directory(HOME)
    with _building_shop(home):
        server = prepare(home, given.port or _saved_port(home) or free_port(), DRIVERS["pgaq"])
    jar = max(SHOP_TARGET.glob(SHOP_JAR), key=lambda file: file.stat().st_mtime)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{DATABASE}?user=postgres&password={(home / 'password').read_text().strip()}"
    print(
        "Each order and its message are one transaction, each parcel and the receipt of the message another one; some fail on purpose.\n",
        flush=True,
    )
    half = max(2, round((given.seconds or SECONDS) / 2))
    command = ["java", "-jar", str(jar)]
    surroundings = {**os.environ, "SPRING_DATASOURCE_URL": url}
    with subprocess.Popen([*command, "--shop.seconds=600"], env=surroundings, stdout=subprocess.PIPE, text=True) as shop:
        for count, line in enumerate(shop.stdout):
            print(line, end="", flush=True)
            if count == half:
                shop.kill()
    if shop.returncode != -signal.SIGKILL:
        return shop.returncode or 1
    print("Killed (kill -9), with transactions in between. The next run continues:\n", flush=True)
    done = subprocess.run([*command, f"--shop.seconds={half}", "--shop.continue=true"], env=surroundings)
    print("\nThe program: jms/pgaq-jms-demo/src/main/java/io/github/pgaq/demo/; how to begin: docs/jms.md.")
    print(connect_hints(server, home))
    return done.returncode


def _home() -> Path:
    """A directory in which servers can be made."""
    existed = HOME.exists()
    home = places.private_directory(HOME)
    if home != HOME and not existed:
        print(f"User {places.server_user()} cannot read {HOME.parent}, so the server lives in {home} (linked as .pgaq).")
    if not os.access(home, os.W_OK):
        raise SurroundingsError(f"{home} is not yours to write to; remove it (as its owner: ./demo remove) and try again.")
    return home


def cluster(given: argparse.Namespace) -> int:
    """./demo cluster: one queue on three servers."""
    return demo_cluster.run(_home(), DATABASE, given.seconds or demo_cluster.SECONDS)


def console(given: argparse.Namespace) -> int:
    """./demo console: the console on a load that runs."""
    home = places.private_directory(HOME)
    server = prepare(home, given.port or _saved_port(home) or free_port(), DRIVERS["pgaq"])
    code = demo_console.run(server, DATABASE, home, given.listen)
    print(connect_hints(server, home))
    return code


def stop(_: argparse.Namespace) -> int:
    if not HOME.exists():
        print("There is no demo here.")
        return 0
    others = demo_cluster.stop(HOME.resolve())
    if others:
        print("The servers of ./demo cluster are stopped.")
    server = server_at(HOME.resolve())
    if server.running():
        server.stop("fast")
        print("The demo's server is stopped. ./demo starts it again, with your own data; ./demo remove removes it.")
    elif not others:
        print("The demo's server does not run.")
    return 0


def remove(_: argparse.Namespace) -> int:
    if not HOME.exists() and not HOME.is_symlink():
        print("There is nothing to remove.")
        return 0
    home = HOME.resolve()
    demo_cluster.remove(home)
    server = server_at(home)
    server.destroy()
    shutil.rmtree(home, ignore_errors=True)
    if HOME.is_symlink():
        HOME.unlink()
    if home.exists():
        raise SurroundingsError(f"{home} could not be removed whole; it belongs to another user.")
    print("The demo's server and its data are removed. The extension stays installed.")
    return 0


def psql(given: argparse.Namespace) -> int:
    server = server_at(HOME.resolve()) if HOME.exists() else None
    if server is None or not server.running():
        raise SurroundingsError("The demo's server does not run: ./demo starts it.")
    return subprocess.run([places.program("psql"), *given.arguments], env=server.environment(DATABASE)).returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./demo", description="A queue and a topic under load on a private server; see README.md.")
    parser.add_argument("--seconds", type=float, help=f"how long the load runs ({SECONDS}; cluster: {demo_cluster.SECONDS})")
    parser.add_argument("--sessions", type=int, default=16, help="producers, and consumers (16)")
    parser.add_argument("--port", type=int, help="listen on 127.0.0.1 too; without it the server has a Unix socket only")
    parser.add_argument("--driver", choices=sorted(DRIVERS), default="pgaq", help=argparse.SUPPRESS)  # to test the demo itself
    actions = parser.add_subparsers(dest="action", metavar="{console,cluster,jms,stop,remove,psql}")
    nodes = actions.add_parser("cluster", help="one queue on three servers, one of which is killed")
    nodes.add_argument("--seconds", type=float, default=argparse.SUPPRESS, help=f"how long the load runs ({demo_cluster.SECONDS})")
    nodes.set_defaults(function=cluster)
    browser = actions.add_parser("console", help="the console in the browser, on a load that runs until Ctrl-C")
    browser.add_argument("--listen", default="127.0.0.1:8410", metavar="HOST:PORT", help="address of the console (127.0.0.1:8410)")
    browser.set_defaults(function=console)
    actions.add_parser("jms", help="a shop with Spring Boot: orders, messages and parcels in transactions").set_defaults(function=jms)
    actions.add_parser("stop", help="stop the servers").set_defaults(function=stop)
    actions.add_parser("remove", help="stop the servers and remove everything").set_defaults(function=remove)
    actions.add_parser("psql", help="a psql session; what follows is psql's").set_defaults(function=psql)
    words = sys.argv[1:] if arguments is None else arguments
    given, rest = parser.parse_known_args(words)
    if rest and getattr(given, "action", None) != "psql":
        parser.error(f"what is {rest[0]}?")
    given.arguments = words[words.index("psql") + 1 :] if given.action == "psql" else []
    if given.sessions < 1 or given.sessions > 64:
        parser.error("--sessions must be from 1 to 64")
    places.clean_up_when_terminated()
    try:
        return getattr(given, "function", run)(given)
    except (SurroundingsError, LoadError) as error:
        print(f"demo: {error}", file=sys.stderr)
    except PermissionError as error:
        print(
            f"demo: {error.filename} is not accessible: {error.strerror}. It may be another user's; ./demo remove as that user helps.",
            file=sys.stderr,
        )
    except OSError as error:
        print(f"demo: {error.strerror or error} ({error.filename or HOME})", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
