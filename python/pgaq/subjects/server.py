"""The server: versions, the message cache, workers, snapshots, parameters."""

from __future__ import annotations

from pgaq.subjects.model import Column, Subject

# the number of this database in its history: aq_internal.dbid(), which not every role may call
DBID = """(SELECT hashint8extended(system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())) & 4294967295
    FROM pg_control_system())"""

SERVER = Subject(
    name="server",
    title="Server",
    text="The server and the role that looks at it.",
    query="""
SELECT current_setting('server_version') AS server, (SELECT extversion FROM pg_extension WHERE extname = 'pgaq') AS pgaq,
       (SELECT extversion FROM pg_extension WHERE extname = 'pgaq_oracle') AS pgaq_oracle, current_database() AS database, current_user AS role,
       pg_has_role('pg_monitor', 'USAGE') AS monitor, pg_is_in_recovery() AS standby, pg_postmaster_start_time() AS started,
       extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8 AS uptime""",
    columns=(
        Column("server", "PostgreSQL", text="version of the server"),
        Column("pgaq", "pgaq", text="version of the extension"),
        Column("pgaq_oracle", "pgaq_oracle", text="version of that extension"),
        Column("database", "Database", text="the database"),
        Column("role", "Role", text="the current role"),
        Column("monitor", "Monitor", "flag", "the role is a member of pg_monitor"),
        Column("standby", "Standby", "flag", "the server is a standby"),
        Column("started", "Started", "time", "when the server started"),
        Column("uptime", "Up", "seconds", "time since then"),
    ),
    key="server",
)

CACHE = Subject(
    name="cache",
    title="Message cache",
    text="Use of the shared memory for messages, of all databases.",
    query="SELECT total_bytes, used_bytes, used_bytes::float8 / NULLIF(total_bytes, 0) AS used, resident_partitions, known_partitions, max_partitions FROM aq.message_cache",
    columns=(
        Column("total_bytes", "Size", "bytes", "pgaq.message_cache_size"),
        Column("used_bytes", "Used", "bytes", "in use or reserved"),
        Column("used", "Share", "share", "used part of it"),
        Column("resident_partitions", "Partitions in memory", "count", "partitions in the cache"),
        Column("known_partitions", "Partitions", "count", "partitions of all queues in use"),
        Column("max_partitions", "Limit", "count", "pgaq.max_partitions"),
    ),
    key="total_bytes",
)

WORKERS = Subject(
    name="workers",
    title="Workers",
    text="The background workers of the databases that use pgaq.",
    query="SELECT database::text AS database, state, pid, since, problem, hint, error, error_time FROM aq.workers ORDER BY database",
    columns=(
        Column("database", "Database", text="its database"),
        Column("state", "State", text="running, starting, away, waiting, failed or stopped"),
        Column("pid", "Pid", "text", "process id", rank=3),
        Column("since", "Since", "time", "when this state began", rank=2),
        Column("problem", "Problem", text="why it does not run"),
        Column("hint", "Hint", text="what helps", rank=1),
        Column("error", "Error", text="its latest error", rank=1),
        Column("error_time", "At", "time", "when that was", rank=4),
    ),
    key="database",
    needs="membership in pg_monitor",
    empty="no database uses pgaq",
)

SNAPSHOTS = Subject(
    name="snapshots",
    title="Snapshots",
    text="Snapshots of all counters, for reports.",
    query=f"""
SELECT snap_id, begins, taken, by_worker, errors, startup_time FROM aq.snapshots WHERE dbid = {DBID} ORDER BY snap_id DESC LIMIT %(limit)s""",
    columns=(
        Column("snap_id", "Snapshot", "text", "number"),
        Column("begins", "Begins", "time", "when the snapshot before was taken, or the counters started at zero", rank=1),
        Column("taken", "Taken", "time", "when it was taken"),
        Column("by_worker", "By the worker", "flag", "taken by the worker, not by a call", rank=2),
        Column("errors", "Errors", "count", "sources of figures that could not be read", rank=2),
        Column("startup_time", "Counters since", "time", "when the counters started at zero", rank=3),
    ),
    key="snap_id",
    parameters=("limit",),
    needs="membership in pg_monitor",
    empty="no snapshot; pgaq snapshot takes one",
)

PARAMETERS = Subject(
    name="parameters",
    title="Parameters",
    text="Parameters of pgaq that differ from their defaults.",
    query="SELECT name, setting, unit, boot_val AS default, source FROM pg_settings WHERE name LIKE 'pgaq.%' AND setting IS DISTINCT FROM boot_val ORDER BY name",
    columns=(
        Column("name", "Parameter", text="name"),
        Column("setting", "Value", text="its value"),
        Column("unit", "Unit", text="unit of the value", rank=1),
        Column("default", "Default", text="its default", rank=1),
        Column("source", "Set in", text="where it was set", rank=2),
    ),
    key="name",
    empty="all have their defaults",
)
