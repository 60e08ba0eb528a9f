"""Who is logged in: a role of the server with connections of its own, a signed cookie, tokens, and limits for those who guess.

A login keeps the password in the memory of this process, because connections are opened again after a restart of the server.
It is in no file, in no log, and in no cookie, and is forgotten at the end of the login.  Nothing here survives the process.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping

from pgaq import db

CONNECTIONS = 4  # of a login
LOGINS = 500  # at a time
IDLE = 30 * 60.0  # seconds without a request after which a login ends
LONGEST = 12 * 3600.0
LIMIT = "15s"  # of a statement of a page
LOGINS_OF_ROLE = 20  # at a time; the one that has been unused for longest ends
SWEEP = 30.0  # seconds between looks for logins whose time is over
WINDOW = 300.0  # seconds in which failed logins are counted
FAILURES = 5  # as a role from one address; then this address must wait
FAILURES_OF_ADDRESS = 20  # as any roles
FAILURES_OF_ROLE = 100  # from all addresses: a few cannot lock a role out, many cannot guess without limit
REMEMBERED = 10_000  # addresses and roles with failures
NAME = 63  # bytes of the name of a role


class Refused(Exception):
    """No login; the text is for the person who tries."""


class Busy(Exception):
    """All connections of the login are in use."""


class Pool:
    """The connections of one login."""

    def __init__(self, open_connection: Callable[[], db.Connection]) -> None:
        self._open = open_connection
        self._idle: list[db.Connection] = []
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._closed = False

    @contextlib.contextmanager
    def borrow(self, fresh: bool = False) -> Iterator[tuple[db.Connection, bool]]:
        """A connection, and whether it was used before; fresh: one that is known to live."""
        if not self._free.acquire(timeout=10):
            raise Busy
        conn = None
        try:
            conn = self._idle.pop() if self._idle else None
            if conn is not None and fresh and not _lives(conn):
                conn = None
            used = conn is not None
            conn = conn or self._open()
            yield conn, used
            if not conn.closed and not self._closed:
                self._idle.append(conn)
                conn = None
        finally:
            if conn is not None:
                conn.close()
            self._free.release()

    def clear(self) -> None:
        """Closes what is not in use."""
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        self._closed = True
        self.clear()


def _lives(conn: db.Connection) -> bool:
    try:
        db.value(conn, "SELECT 1")
        return True
    except db.Error:
        conn.close()
        return False


@dataclass
class Login:
    """A role that has logged in."""

    role: str
    pool: Pool
    read_only: bool
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    began: float = field(default_factory=time.monotonic)
    seen: float = field(default_factory=time.monotonic)
    streams: int = 0
    kept: dict[str, Any] = field(default_factory=dict)  # advice and earlier readings, for rates and curves
    lock: threading.Lock = field(default_factory=threading.Lock)  # of what is kept
    ended: bool = False

    def ask(self, work: Callable[[db.Connection], Any], *, change: bool = False) -> Any:
        """work(connection) in a transaction.  Reading is tried again if the connection was dead; a change is never made twice."""
        try:
            return self._once(work, change)
        except db.OperationalError as error:
            if change or db.said(error)[0] not in (None, "57P01", "57P02", "57P03"):
                raise
            self.pool.clear()
            return self._once(work, change)

    def _once(self, work: Callable[[db.Connection], Any], change: bool) -> Any:
        with self.pool.borrow(fresh=change) as (conn, _):
            with conn.transaction():
                if not change:
                    db.execute(conn, "SET TRANSACTION READ ONLY")
                db.execute(conn, f"SET LOCAL statement_timeout = '{'10min' if change else LIMIT}'")
                return work(conn)

    def ends(self, now: float) -> bool:
        return self.ended or now - self.seen > IDLE or now - self.began > LONGEST


class Guard:
    """Counts failed logins within the last minutes.  A try counts before it is made: many at once are not more than one after another."""

    def __init__(self) -> None:
        self._tries: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def begin(self, limits: Mapping[str, int]) -> int:
        """Counts a try under each key, and returns 0; if that would exceed a limit, returns the seconds to wait."""
        now = time.monotonic()
        with self._lock:
            waits = []
            for key, limit in limits.items():
                tries = self._tries.get(key, ())
                if len(tries) >= limit and now - tries[-limit] < WINDOW:
                    waits.append(int(tries[-limit] + WINDOW - now) + 1)
            if waits:
                return max(waits)
            for key, limit in limits.items():
                # the newest at the end, so that the oldest are forgotten
                tries = self._tries.pop(key, None) or deque(maxlen=limit)
                tries.append(now)
                self._tries[key] = tries
            while len(self._tries) > REMEMBERED:
                self._tries.pop(next(iter(self._tries)))
        return 0

    def take_back(self, keys: Iterable[str]) -> None:
        """The try was no wrong guess."""
        with self._lock:
            for key in keys:
                tries = self._tries.get(key)
                if tries:
                    tries.pop()
                if not tries:
                    self._tries.pop(key, None)

    def forget(self, key: str) -> None:
        with self._lock:
            self._tries.pop(key, None)


def network(address: str) -> str:
    """What one person has: an address of IPv4, 2^64 addresses of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 6 and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


class Logins:
    """All logins of this process."""

    def __init__(self, dsn: str, *, read_only: bool = False) -> None:
        self.dsn, self.read_only = dsn, read_only
        self.guard = Guard()
        self._key = secrets.token_bytes(32)
        self._all: dict[str, Login] = {}
        self._lock = threading.Lock()
        self._sweeper: threading.Thread | None = None

    def log_in(self, role: str, password: str, address: str) -> str:
        """The value of the cookie."""
        if not role or not password or "\0" in role + password:
            raise Refused("Name a role and its password.")
        if len(role.encode()) > NAME:
            raise Refused("Login failed.")  # the server would cut the name, so it would be another one for the guard
        address = network(address)
        limits = {f"role {role} at {address}": FAILURES, f"address {address}": FAILURES_OF_ADDRESS, f"role {role}": FAILURES_OF_ROLE}
        wait = self.guard.begin(limits)
        if wait:
            raise Refused(f"Too many failed logins. Try again in {wait} s.")
        pool = Pool(lambda: self._connect(role, password))
        wrong = False
        try:
            with pool.borrow() as (conn, _):
                if db.value(conn, "SELECT 1 FROM pg_extension WHERE extname = 'pgaq'") is None:
                    raise Refused("The database does not have the extension pgaq.")
        except db.Error as error:
            # before the authentication there is no SQLSTATE, only words, in the language of the server
            said = str(error)
            wrong = "authentication failed" in said or 'database "' not in said and db.password_refused(error)
            if wrong or 'role "' in said and "does not exist" in said:
                raise Refused("Login failed.") from None
            if 'database "' in said:
                raise Refused("The database does not exist, or does not let this role connect.") from None
            raise Refused("The database does not answer, or does not let this role connect.") from None
        finally:
            if not wrong:
                self.guard.take_back(limits)
        self.guard.forget(f"role {role} at {address}")
        return self._remember(Login(role, pool, self.read_only))

    def _connect(self, role: str, password: str) -> db.Connection:
        # given here, they are stronger than what PGPASSWORD, a password file or a service says
        conn = db.connect(
            self.dsn, user=role, password=password, connect_timeout="5", client_encoding="UTF8", application_name="pgaq console", prepare_threshold=None
        )  # fmt: skip
        if not db.used_password(conn):
            conn.close()
            raise Refused(
                "The server has not asked for the password, so anybody could log in as any role. "
                "Have pg_hba.conf demand scram-sha-256 for connections of the console."
            )
        if self.read_only:
            db.execute(conn, "SET default_transaction_read_only = on")
        return conn

    def _remember(self, login: Login) -> str:
        self.sweep()
        name = secrets.token_urlsafe(24)
        with self._lock:
            own = [(each.seen, name) for name, each in self._all.items() if each.role == login.role]
        if len(own) >= LOGINS_OF_ROLE:
            self._end(min(own)[1])
        with self._lock:
            if len(self._all) >= LOGINS:
                login.pool.close()
                raise Refused("Too many people are logged in.")
            self._all[name] = login
            if self._sweeper is None:
                self._sweeper = threading.Thread(target=self._sweep_on, daemon=True, name="pgaq console logins")
                self._sweeper.start()
        return f"{name}.{self.sign(name)}"

    def find(self, cookie: str | None, touch: bool = True) -> Login | None:
        """The login of a cookie; None if it is over, or forged."""
        name, _, signature = (cookie or "").partition(".")
        if not name or not hmac.compare_digest(signature.encode(), self.sign(name).encode()):
            return None
        with self._lock:
            login = self._all.get(name)
        if login is None or login.ends(time.monotonic()):
            self.log_out(cookie)
            return None
        if touch:
            login.seen = time.monotonic()
        return login

    def log_out(self, cookie: str | None) -> None:
        self._end((cookie or "").partition(".")[0])

    def _end(self, name: str) -> None:
        with self._lock:
            login = self._all.pop(name, None)
        if login:
            login.ended = True
            login.kept.clear()
            login.pool.close()

    def sweep(self) -> None:
        """End those whose time is over."""
        now = time.monotonic()
        with self._lock:
            over = [name for name, login in self._all.items() if login.ends(now)]
        for name in over:
            self._end(name)

    def _sweep_on(self) -> None:
        """In a thread as long as there are logins: a password is forgotten in time, even if no further request arrives."""
        while True:
            time.sleep(SWEEP)
            self.sweep()
            with self._lock:
                if not self._all:
                    self._sweeper = None
                    return

    def sign(self, word: str) -> str:
        return hmac.new(self._key, word.encode(), hashlib.sha256).hexdigest()

    def close(self) -> None:
        for name in list(self._all):
            self._end(name)
