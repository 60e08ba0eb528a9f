"""Private servers that are nodes of each other, over the loopback with a password: for the demo and for measurements."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from pgaq import db
from pgaq.server import Server, SurroundingsError

ROLE = "pgaq_node"
CALLS = "aq.node_beat, aq.node_want, aq.node_resume, aq.node_deliver, aq.node_recall, aq.node_finish, aq.node_return"


@dataclass
class Cluster:
    """Servers by the names under which they know each other; each has the extension in dbname."""

    servers: dict[str, Server]
    dbname: str = "postgres"

    def connect(self, name: str) -> db.Connection:
        return self.servers[name].connect(self.dbname)

    def join(self, timeout: float = 60) -> None:
        """Make each a node of the others, and wait until all are reachable."""
        password = secrets.token_hex(12)
        for name in self.servers:
            with self.connect(name) as conn:
                if db.value(conn, "SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]) is None:
                    db.execute(conn, f"CREATE ROLE {ROLE} LOGIN")
                db.execute(conn, f"ALTER ROLE {ROLE} PASSWORD '{password}'")
                db.execute(conn, f"GRANT EXECUTE ON FUNCTION {CALLS} TO {ROLE}")
        for name in self.servers:
            with self.connect(name) as conn:
                for other, server in self.servers.items():
                    if other != name:
                        self._link(conn, other, server.port, password)
        self.wait_reachable(timeout)

    def _link(self, conn: db.Connection, name: str, port: int, password: str) -> None:
        db.execute(
            conn, f"CREATE SERVER {name} FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{port}', dbname '{self.dbname}')"
        )
        db.execute(conn, f"CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS (user '{ROLE}', password '{password}')")
        db.execute(conn, "SELECT aq.add_node(%s)", [name])

    def wait_reachable(self, timeout: float = 60) -> None:
        """Wait until every node reaches every other."""
        deadline = time.monotonic() + timeout
        for name in self.servers:
            with self.connect(name) as conn:
                while bad := db.rows(
                    conn,
                    "SELECT server, state, error FROM aq.nodes WHERE server IS NOT NULL AND (state <> 'reachable' OR NOT coalesce(mutual, false))",
                ):
                    if time.monotonic() > deadline:
                        first = bad[0]
                        raise SurroundingsError(f"Node {name} does not reach node {first['server']}: {first['error'] or first['state']}.")
                    time.sleep(0.05)
