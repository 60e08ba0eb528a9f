"""Rules: what is wrong with a server, or will be.  Thresholds are those of docs/monitoring.md.

There can be thousands of queues: a view is read once, by IN, not once for each row of another.
The advice is a sentence whose commands can be copied; a rule's query returns the names in them as further columns.
"""

from __future__ import annotations

from pgaq.subjects.model import Rule
from pgaq.subjects.queues import PAUSES

MONITOR = "membership in pg_monitor"
LOST = "Restore the table from a backup, or drop the queue with its messages: pgaq queue drop --force {queue:word}"
NOT_PAUSED = f"""queue_name NOT IN (SELECT p.queue_name FROM ({PAUSES}) p WHERE p.consumer IS NULL)
              AND (queue_name, consumer) NOT IN (SELECT p.queue_name, p.consumer FROM ({PAUSES}) p WHERE p.consumer IS NOT NULL)"""
PAUSED = f"""SELECT p.queue_name || COALESCE(' (' || p.consumer || ')', '') AS case, format('it has been paused for %s s by %s%s, and %s', round(extract(epoch FROM clock_timestamp() - p.paused)),
                p.paused_by, ' (' || p.pause_reason || ')', CASE WHEN sum(m.lag) > 0 THEN format('%s message%s', sum(m.lag), CASE WHEN sum(m.lag) > 1 THEN 's wait' ELSE ' waits' END)
                ELSE 'no message waits' END) AS found, p.queue_name AS queue, CASE WHEN p.consumer IS NOT NULL THEN ' --consumer=' END AS option, p.consumer
            FROM ({PAUSES}) p JOIN aq.metrics() m ON m.queue_name = p.queue_name AND (p.consumer IS NULL OR p.consumer = m.consumer)
            GROUP BY p.queue_name, p.consumer, p.paused, p.paused_by, p.pause_reason
            HAVING (p.paused < clock_timestamp() - interval '5 minutes' AND COALESCE(sum(m.lag) > 0, false)) ="""
RESUME = "To resume it: pgaq queue resume{option}{consumer:value} {queue:word}"

RULES: tuple[Rule, ...] = (
    Rule("preload", "problem", "The library is not loaded at server start.",
         """SELECT NULL::text AS case, 'shared_preload_libraries does not contain pgaq' AS found
            WHERE current_setting('shared_preload_libraries') !~ '\\mpgaq\\M'""",
         "Add pgaq to shared_preload_libraries and restart the server.", needs="membership in pg_read_all_settings", live=False),
    Rule("standby", "note", "The server is a standby.",
         "SELECT NULL::text AS case, 'this server is a standby' AS found WHERE pg_is_in_recovery()",
         "Enqueue and dequeue on the primary; a standby shows neither numbers nor messages."),
    Rule("update", "warning", "The installed files have another version than the extension in this database.",
         """SELECT name::text AS case, format('version %s is installed here, %s is available', installed_version, default_version) AS found
            FROM pg_available_extensions WHERE name LIKE 'pgaq%' AND installed_version <> default_version""",
         "ALTER EXTENSION {case:identifier} UPDATE", live=False),
    Rule("worker", "problem", "A background worker does not run.",
         "SELECT database::text AS case, 'worker: ' || problem AS found, COALESCE(hint, 'The server log says why it ends.') AS hint FROM aq.workers WHERE problem IS NOT NULL AND database = current_database()",
         "{hint}"),
    Rule("link", "problem", "A link to another server does not work.",
         """SELECT server::text AS case, COALESCE(problem, format('it is %s with SQLSTATE %s: %s', state, sqlstate, COALESCE(error, 'the message is for its owner'))) AS found,
                server::text AS server, CASE WHEN problem IS NOT NULL THEN 'Raise max_worker_processes, if no slot is free; otherwise the server log says why the worker ends.' ELSE COALESCE(hint, '') END AS hint
            FROM aq.links WHERE problem IS NOT NULL OR state IN ('failed', 'backing off')""",
         "{hint} To try it at once: SELECT * FROM aq.check_link({server:literal})"),
    Rule("propagation", "problem", "A propagation schedule fails.",
         """SELECT queue_name || ' -> ' || COALESCE(destination, 'all queues') AS case, format('it is %s after %s errors in a row: %s', state, failures,
                COALESCE(last_error, 'the message is for its role')) AS found,
                queue_name AS queue, destination FROM aq.propagations WHERE failures > 0 AND state NOT IN ('diverged', 'stuck')""",
         "Mend the destination. To try it at once: SELECT aq.alter_propagation({queue:literal}, {destination:literal}, enabled => true)"),
    Rule("link_disabled", "warning", "Messages wait for a link that is disabled.",
         """SELECT p.queue_name || ' -> ' || p.destination AS case, format('%s messages wait, because the link is disabled', p.lag) AS found, l.server
            FROM aq.propagations p JOIN (SELECT DISTINCT server::text AS server FROM aq.links WHERE state = 'disabled') l ON l.server = substring(p.destination, '@(.*)$')
            WHERE p.lag > 0 AND p.state NOT IN ('disabled', 'diverged')""",
         "To enable it: ALTER SERVER {server:identifier} OPTIONS (SET enabled 'true')"),
    Rule("propagation_diverged", "problem", "A propagation schedule and its destination do not agree on what was sent.",
         """SELECT queue_name || ' -> ' || destination AS case, format('it is diverged: %s', COALESCE(last_error, 'the message is for its role')) AS found
            FROM aq.propagations WHERE state = 'diverged'""",
         "Decide what happens to the messages: \"Divergence\" in docs/propagation.md."),
    Rule("propagation_stuck", "problem", "A propagation schedule waits for code that cannot be interrupted.",
         """SELECT queue_name || ' -> ' || COALESCE(destination, 'all queues') AS case, format('it is stuck: %s', COALESCE(last_error, 'the message is for its role')) AS found
            FROM aq.propagations WHERE state = 'stuck'""",
         "It continues when the function returns."),
    Rule("schedule", "problem", "A schedule fails.",
         """SELECT schedule_name AS case, format('it is %s after %s errors in a row: %s', state, failures, last_error) AS found, schedule_name AS schedule
            FROM aq.schedules WHERE failures > 0 AND state <> 'stuck'""",
         "Correct what the message says. To try it at once: pgaq schedule start {schedule:word}"),
    Rule("schedule_stuck", "problem", "A schedule waits for code that cannot be interrupted.",
         "SELECT schedule_name AS case, format('it is stuck: %s', last_error) AS found FROM aq.schedules WHERE state = 'stuck'",
         "It continues when the function returns."),
    Rule("node", "problem", "A node does not answer, or this database is a copy of one.",
         """SELECT server::text AS case, CASE state WHEN 'copy' THEN 'this database is a copy of a node, and does not act as it'
                ELSE format('it is %s with SQLSTATE %s: %s', state, sqlstate, COALESCE(error, 'the message is for members of pg_monitor')) END AS found,
                COALESCE(hint, 'Members of pg_monitor see a hint in aq.nodes.') AS hint
            FROM aq.nodes WHERE state IN ('unreachable', 'refused', 'copy')""",
         "{hint}"),
    Rule("node_queue", "problem", "Messages of distributed queues are not sent to a node.",
         "SELECT server::text AS case, 'messages of distributed queues wait: ' || queue_error AS found FROM aq.nodes WHERE queue_error IS NOT NULL",
         "Remove the cause, on this node or on that one; it is tried again every second."),
    Rule("node_units", "problem", "A node that does not answer holds messages.",
         """SELECT n.server::text AS case, format('it is %s, and holds %s shards of distributed queues', n.state, count(*)) AS found
            FROM aq.nodes n JOIN aq.node_units u USING (node_id) WHERE n.state IN ('unreachable', 'refused') AND u.direction = 'lent' GROUP BY n.server, n.state""",
         "Start it; if it does not come back, aq.reclaim_unit takes them from it, at a price: see docs/distributed.md."),
    Rule("lost_tables", "problem", "Tables of a queue are missing.",
         "SELECT queue_name AS case, 'a table of its messages was dropped, or left out of a restore' AS found, queue_name AS queue FROM aq.metrics() WHERE lag IS NULL",
         LOST),
    # as long as the queue is in memory, only its partitions tell
    Rule("dropped_tables", "problem", "Tables of a queue in use were dropped.",
         """SELECT DISTINCT queue_name AS case, 'a table of its messages was dropped' AS found, queue_name AS queue FROM aq.partitions
            WHERE (messages::text ~ '^[0-9]+$' OR log::text ~ '^[0-9]+$') AND queue_name NOT IN (SELECT queue_name FROM aq.metrics() WHERE lag IS NULL)""",
         LOST, live=False),
    Rule("not_served", "problem", "Messages are ready, and no session takes them.",
         f"""SELECT queue_name || COALESCE(' (' || consumer || ')', '') AS case, format('%s ready, the oldest for %s s, and no session waits',
                CASE ready WHEN 1 THEN '1 message is' ELSE ready || ' messages are' END, round(oldest_ready_seconds)) AS found,
                CASE WHEN consumer IS NULL THEN '' ELSE ', or remove this one with its messages, if it is not needed: pgaq subscriber remove ' END AS remove,
                CASE WHEN consumer IS NOT NULL THEN queue_name END AS queue, consumer
            FROM aq.metrics() m WHERE oldest_ready_seconds > 300 AND COALESCE(dequeue_rate, 0) = 0 AND waiting = 0 AND {NOT_PAUSED}
              AND queue_id NOT IN (SELECT q.queue_id FROM aq.queues q WHERE q.queue_type = 'exception')
              AND queue_name NOT IN (SELECT q.exception_queue FROM aq.queues q WHERE q.exception_queue IS NOT NULL)""",
         "Start consumers{remove}{queue:word} {consumer:word}"),
    Rule("behind", "warning", "Consumers are too slow.",
         f"""SELECT queue_name || COALESCE(' (' || consumer || ')', '') AS case, format('the oldest of %s ready messages has waited %s s', ready, round(oldest_ready_seconds)) AS found
            FROM aq.metrics() WHERE oldest_ready_seconds > 300 AND dequeue_rate > 0 AND {NOT_PAUSED}""",
         "Add consumers, or dequeue in larger batches."),
    Rule("dead_letters", "warning", "Exception queues hold messages.",
         """SELECT m.queue_name AS case, format('%s dead letter%s', sum(m.lag), CASE WHEN sum(m.lag) > 1 THEN 's' END) AS found,
                m.queue_name AS queue, min(s.source) AS source, CASE WHEN min(s.sources) > 1 THEN format(' (and the same for %s other queues)', min(s.sources) - 1) END AS others
            FROM aq.metrics() m JOIN (SELECT q.exception_queue, min(q.queue_name) AS source, count(*) AS sources FROM aq.queues q GROUP BY q.exception_queue) s
                ON s.exception_queue = m.queue_name
            GROUP BY m.queue_name HAVING sum(m.lag) > 0""",
         "They and their errors: pgaq dead list {queue:word}. To put them back: pgaq dead redrive {source:word}{others}"),
    Rule("stopped", "note", "A queue is stopped.",
         """SELECT queue_name AS case, queue_name AS queue, CASE WHEN enqueue_enabled THEN 'it is stopped for dequeue' WHEN dequeue_enabled THEN 'it is stopped for enqueue'
                ELSE 'it is stopped' END AS found
            FROM aq.queues WHERE queue_type = 'normal' AND NOT (enqueue_enabled AND dequeue_enabled)""",
         "To start it: pgaq queue start {queue:word}"),
    Rule("paused", "note", "A consumer is paused.", f"{PAUSED} false", RESUME),
    Rule("paused_long", "warning", "Messages wait for a consumer that has been paused for long.", f"{PAUSED} true", RESUME),
    Rule("rule_errors", "warning", "Rules of subscribers raise errors.",
         """SELECT queue_name || ' (' || consumer || ')' AS case, format('its rule has failed %s, the latest time with SQLSTATE %s',
                CASE rule_failures WHEN 1 THEN 'once' ELSE rule_failures || ' times' END, rule_error) AS found, queue_name AS queue, consumer
            FROM aq.subscribers WHERE rule_failures > 0""",
         "It does not get those messages. The server log has the message. To replace the rule: pgaq subscriber alter --rule CONDITION {queue:word} {consumer:word}"),
    Rule("message_cache", "warning", "The message cache is full.",
         """SELECT 'pgaq.message_cache_size' AS case, format('%s %% of the message cache are used', round(100.0 * used_bytes / total_bytes)) AS found
            FROM aq.message_cache WHERE used_bytes > 0.9 * total_bytes""",
         "Raise pgaq.message_cache_size if sessions wait for aq: partition load; aq.message_cache_advice estimates the size."),
    Rule("partitions", "warning", "Partitions run out.",
         """SELECT 'pgaq.max_partitions' AS case, format('%s of %s partitions are in use', known_partitions, max_partitions) AS found
            FROM aq.message_cache WHERE known_partitions > 0.8 * max_partitions""",
         "Raise pgaq.max_partitions, or reduce the backlog."),
    Rule("old_transaction", "warning", "A transaction has been open for long.",
         """SELECT 'pid ' || pid AS case, format('%s of %s has had a transaction open for %s s', COALESCE(NULLIF(application_name, ''), 'a session'), usename,
                round(extract(epoch FROM clock_timestamp() - xact_start))) AS found, pid
            FROM pg_stat_activity WHERE xact_start < clock_timestamp() - interval '5 minutes' AND backend_type = 'client backend' AND pid <> pg_backend_pid()""",
         "Consumed partitions wait for its end. Commit it, or end the session: SELECT pg_terminate_backend({pid})"),
    Rule("prepared", "warning", "A prepared transaction is not finished.",
         """SELECT gid AS case, format('prepared %s s ago by %s', round(extract(epoch FROM clock_timestamp() - prepared)), owner) AS found, gid
            FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - interval '5 minutes'""",
         "Its messages are locked. To finish it: COMMIT PREPARED {gid:literal} or ROLLBACK PREPARED {gid:literal}"),
    Rule("old_tables", "problem", "Autovacuum does not freeze the tables of queues in time.",
         """SELECT 'autovacuum' AS case, format('%s of %s tables of queues are older than autovacuum_freeze_max_age, the oldest %s million transactions',
                count(*) FILTER (WHERE old), count(*), round(max(age) / 1e6)) AS found
            FROM (SELECT age(relfrozenxid) AS age, age(relfrozenxid) > 1.1 * current_setting('autovacuum_freeze_max_age')::int AS old
                FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r') t HAVING bool_or(old)""",
         "See pg_stat_progress_vacuum and locks; raise autovacuum_max_workers and autovacuum_vacuum_cost_limit, or run VACUUM (FREEZE).", live=False),
    Rule("workers_limit", "warning", "Background worker slots are scarce.",
         """SELECT 'max_worker_processes' AS case, format('it is %s, for every extension of the server', setting) AS found
            FROM pg_settings WHERE name = 'max_worker_processes' AND setting::int < 8""",
         "Set it to 8 or more: pgaq needs a launcher, a sampler, a worker for each database, and helpers.", live=False),
    Rule("timeouts", "warning", "Timeouts that end consumers which wait for messages.",
         """SELECT name AS case, format('it is %s ms for this role', setting) AS found FROM pg_settings
            WHERE name IN ('statement_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout') AND setting::bigint > 0""",
         "Use shorter waits than this, or SET it to 0 in sessions that wait for messages.", live=False),
    Rule("isolation", "note", "Transactions have a higher isolation level by default.",
         """SELECT name AS case, format('it is %s', setting) AS found FROM pg_settings
            WHERE name = 'default_transaction_isolation' AND setting <> 'read committed'""",
         "A dequeue then sees only messages of the transaction's snapshot; READ COMMITTED suits consumers.", live=False),
    Rule("read_only", "problem", "Transactions are read-only by default.",
         """SELECT name AS case, 'it is on' AS found FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'""",
         "Enqueue and dequeue fail; set it to off.", live=False),
    Rule("durability", "warning", "A crash of the machine can lose committed messages.",
         "SELECT name AS case, 'it is off' AS found FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'",
         "Set it to on, unless that is intended.", live=False),
    Rule("io_timing", "note", "Reports cannot tell what time goes into reads and writes.",
         "SELECT name AS case, 'it is off' AS found FROM pg_settings WHERE name IN ('track_io_timing', 'track_wal_io_timing', 'pgaq.timed_statistics') AND setting = 'off'",
         "Set it to on if reports are wanted; pg_test_timing shows what it costs.", live=False),
    Rule("query_id", "note", "Reports cannot name statements.",
         "SELECT name AS case, 'it is ' || setting AS found FROM pg_settings WHERE name = 'compute_query_id' AND setting = 'off'",
         "Set compute_query_id to on or auto, and load pg_stat_statements.", live=False),
    Rule("monitor", "note", "The role does not see everything.",
         "SELECT current_user::text AS case, 'it sees its own queues, no sessions, no waits and no latches' AS found WHERE NOT pg_has_role('pg_monitor', 'USAGE')",
         "To show it every counter, and no payload: GRANT pg_monitor TO {case:identifier}"),
    Rule("create", "note", "The role cannot create queues.",
         """SELECT current_user::text AS case, 'it cannot create queues' AS found
            WHERE NOT has_function_privilege((SELECT p.oid FROM pg_proc p WHERE p.proname = 'create_queue' AND p.pronamespace = 'aq'::regnamespace LIMIT 1), 'EXECUTE')""",
         "GRANT EXECUTE ON FUNCTION aq.create_queue TO {case:identifier}, or let an administrator create queues and grant privileges on them.", live=False),
)  # fmt: skip
