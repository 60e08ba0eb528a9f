-- The background workers, one for each database that uses pgaq.

CALL aq_internal.make_source('workers', 'aq_workers_view', 'Internal: what aq.workers shows',
	'database_id oid, state text, since timestamptz, pid integer, due timestamptz, problem text, error text, error_time timestamptz, hint text', 10);

CREATE FUNCTION aq_internal.stuck(kind integer, role oid) RETURNS text
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_stuck_error';
COMMENT ON FUNCTION aq_internal.stuck(integer, oid) IS
'Internal: the error of a process of this database that runs code for the role and cannot be interrupted; kind 0: the scheduler, 1: propagation, 2: a notifier; null: there is none';

CALL aq_internal.make_view('aq', 'workers', 'Databases of the server that use pgaq, and their background workers. A worker with nothing to do leaves when another database needs its background worker slot, and comes back when it is needed',
	'FROM aq_internal.workers() w LEFT JOIN pg_catalog.pg_database d ON d.oid = w.database_id', $$
	database = d.datname | name of the database; null: it was just dropped
	database_id = w.database_id | its OID
	state = CASE WHEN NOT d.datallowconn THEN 'closed' ELSE w.state END | running; starting; away: nothing to do, it comes back when it is needed; waiting: for a background worker slot; failed: it ended with an error, and is started again after a pause; stopped: a command such as CREATE DATABASE needs the database without it; closed: ALLOW_CONNECTIONS is false
	since = w.since | when the worker last started or ended, or began to wait, or a command stopped it
	pid = w.pid | process id; null: no process
	due = w.due | when it has something to do next; null: when it is asked
	problem = w.problem | why it does not run; null: nothing is wrong
	hint = w.hint | what helps
	error = w.error | its last error since the server started; null: none
	error_time = w.error_time | when that was
$$);
