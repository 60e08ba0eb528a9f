"""Nodes, links and propagation."""

from __future__ import annotations

from pgaq.subjects.model import Column, Subject

NODES = Subject(
    name="nodes",
    title="Nodes",
    text="This database and the nodes that it knows.",
    query="""
SELECT COALESCE(server, 'this database') AS server, state, extract(epoch FROM lag)::float8 AS lag, latency_us, forwarded, reported, granted,
       COALESCE(error, queue_error) AS error, hint FROM aq.nodes ORDER BY server IS NOT NULL, 1""",
    columns=(
        Column("server", "Node", text="foreign server of the link to it"),
        Column("state", "State", text="reachable, unreachable, refused, unknown; of this database: this node, or copy"),
        Column("lag", "Last answer", "seconds", "time since it last answered"),
        Column("latency_us", "Latency", "us", "time between the last heartbeat and its answer"),
        Column("forwarded", "Sent", "count", "messages of this node that were sent to it"),
        Column("reported", "Consumed", "count", "messages of this node that were consumed there"),
        Column("granted", "Units", "count", "units that it was given"),
        Column("error", "Error", text="its latest error"),
        Column("hint", "Hint", text="what helps"),
    ),
    key="server",
    empty="this database is not a node",
)

LINKS = Subject(
    name="links",
    title="Links",
    text="Links to other servers.",
    query="""
SELECT server::text AS server, role::text AS role, state, since, requests, lost, rows, latency_us, encryption,
       concat_ws('. ', problem, error, hint) AS error FROM aq.links ORDER BY 1, 2""",
    columns=(
        Column("server", "Server", text="foreign server"),
        Column("role", "Role", text="role whose user mapping is used"),
        Column("state", "State", text="disabled, idle, connecting, connected, backing off or failed"),
        Column("since", "Since", "time", "when this state began"),
        Column("requests", "Requests", "count", "requests that were answered"),
        Column("lost", "Lost", "count", "requests without an answer"),
        Column("rows", "Messages", "count", "messages in the requests that were executed"),
        Column("latency_us", "Latency", "us", "average time between a request and its answer"),
        Column("encryption", "Encryption", text="verified, unverified, none or local"),
        Column("error", "Error", text="its latest error"),
    ),
    key="server",
    empty="no link that this role can use",
)

PROPAGATIONS = Subject(
    name="propagations",
    title="Propagation",
    text="Queues whose messages go on to other queues.",
    query="""
SELECT queue_name AS queue, COALESCE(destination, 'all queues') AS destination, state, lag, messages, bytes, last_run, failures, last_error
FROM aq.propagations WHERE %(queue)s::text IS NULL OR queue_name = %(queue)s ORDER BY 1, 2""",
    columns=(
        Column("queue", "Queue", text="queue whose messages go on"),
        Column("destination", "Destination", text="queue that gets them"),
        Column("state", "State", text="enabled, waiting, retrying, stuck, disabled or diverged"),
        Column("lag", "Waiting", "count", "messages that are not propagated yet"),
        Column("messages", "Moved", "count", "messages that were moved"),
        Column("bytes", "Size", "bytes", "size of their payloads"),
        Column("last_run", "Last", "time", "when messages were last moved"),
        Column("failures", "Failures", "count", "errors in a row"),
        Column("last_error", "Last error", text="message of the last error"),
    ),
    key="queue",
    within=("destination",),
    parameters=("queue",),
    empty="no propagation",
)
