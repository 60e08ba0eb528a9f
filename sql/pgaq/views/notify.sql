-- Registrations for notification.

CREATE FUNCTION aq_internal.notifiers(OUT database_id oid, OUT role oid, OUT pid integer, OUT state text, OUT since timestamptz, OUT failures integer)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_notifier_pool_view';
COMMENT ON FUNCTION aq_internal.notifiers() IS 'Internal: what aq.notifiers shows';

CREATE VIEW aq.registrations AS
SELECT r.registration_id, r.role::text AS role, r.namespace,
	coalesce(r.name, (SELECT q.queue_name FROM aq_internal.queue q WHERE q.queue_id = r.queue_id)) AS name,
	r.consumer, r.callback, CASE WHEN pg_has_role(r.role::oid, 'USAGE') THEN r.context END AS context,
	r.reliable, r.once, r.with_payload, r.created, r.expires_at,
	r.group_time, r.group_type, r.group_start, r.groups_left, r.group_end,
	CASE WHEN k.error IS NOT NULL AND r.status <> 'disabled' THEN 'stuck' ELSE r.status END AS status, r.failures, CASE WHEN r.status <> 'disabled' THEN r.next_at END AS next_at, coalesce(k.error, r.last_error) AS last_error, r.last_error_time,
	r.notifications, r.last_notification
FROM aq_internal.registration r, LATERAL (SELECT CASE WHEN r.procedure_name IS NOT NULL THEN aq_internal.stuck(2, r.role) END) k(error)
WHERE (pg_has_role(r.role::oid, 'USAGE') OR pg_has_role('pg_monitor', 'USAGE'))
	AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp());
COMMENT ON VIEW aq.registrations IS 'Registrations for notification of the roles whose member the current role is; members of pg_monitor see all';
COMMENT ON COLUMN aq.registrations.registration_id IS 'number, for aq.unregister';
COMMENT ON COLUMN aq.registrations.role IS 'role that registered, as which the procedure runs; empty: dropped';
COMMENT ON COLUMN aq.registrations.namespace IS 'queue, or anonymous: notifications that aq.post sends';
COMMENT ON COLUMN aq.registrations.name IS 'the queue, or the name that is posted';
COMMENT ON COLUMN aq.registrations.consumer IS 'the consumer; null: a queue with a single consumer, or anonymous';
COMMENT ON COLUMN aq.registrations.callback IS 'what is called; client://name: a program waits';
COMMENT ON COLUMN aq.registrations.context IS 'what the procedure is passed; shown to members of the role only';
COMMENT ON COLUMN aq.registrations.reliable IS 'true: messages notified once are not notified again after a restart';
COMMENT ON COLUMN aq.registrations.once IS 'true: it ends with its first notification';
COMMENT ON COLUMN aq.registrations.with_payload IS 'true: the procedure gets payloads';
COMMENT ON COLUMN aq.registrations.created IS 'when it was made or renewed';
COMMENT ON COLUMN aq.registrations.expires_at IS 'when it ends; null: never';
COMMENT ON COLUMN aq.registrations.group_time IS 'one call for all messages of this time; null: a call for each message';
COMMENT ON COLUMN aq.registrations.group_type IS 'summary or last; null: no groups';
COMMENT ON COLUMN aq.registrations.group_start IS 'from when on groups are counted';
COMMENT ON COLUMN aq.registrations.groups_left IS 'groups until every message has a call of its own; null: no limit';
COMMENT ON COLUMN aq.registrations.group_end IS 'end of the group that has messages; null: none has';
COMMENT ON COLUMN aq.registrations.status IS 'enabled; retrying: the last call failed, the next one is at next_at; stuck: a call of the role cannot be interrupted, and the others wait until it ends; disabled: it failed pgaq.notification_failures times in a row, or its role cannot log in; aq.register enables it again';
COMMENT ON COLUMN aq.registrations.failures IS 'failed calls in a row';
COMMENT ON COLUMN aq.registrations.next_at IS 'when it is tried again; null: when there is a message';
COMMENT ON COLUMN aq.registrations.last_error IS 'error of the last failed call; null: none';
COMMENT ON COLUMN aq.registrations.last_error_time IS 'when that was';
COMMENT ON COLUMN aq.registrations.notifications IS 'calls that have succeeded, counted when the notifier has been idle for a second; of a program: notifications taken';
COMMENT ON COLUMN aq.registrations.last_notification IS 'when the last one was made or taken';
GRANT SELECT ON aq.registrations TO PUBLIC;

CREATE VIEW aq.notifiers AS
SELECT d.datname::text AS database, pg_get_userbyid(n.role)::text AS role, n.pid, n.state, n.since, n.failures
FROM aq_internal.notifiers() n LEFT JOIN pg_database d ON d.oid = n.database_id
WHERE pg_has_role('pg_monitor', 'USAGE') OR pg_has_role(n.role, 'USAGE');
COMMENT ON VIEW aq.notifiers IS 'Background workers that call registered procedures, in all databases: one for each database and role, as long as there is something to do';
COMMENT ON COLUMN aq.notifiers.database IS 'name of the database';
COMMENT ON COLUMN aq.notifiers.role IS 'role as which it runs';
COMMENT ON COLUMN aq.notifiers.pid IS 'process id; null: no process';
COMMENT ON COLUMN aq.notifiers.state IS 'starting; busy; stuck: its call cannot be interrupted, and another notifier has its place; idle: it ends after pgaq.notifier_idle_timeout; backing off: it ended with an error, and is started again after a pause';
COMMENT ON COLUMN aq.notifiers.since IS 'when this state began';
COMMENT ON COLUMN aq.notifiers.failures IS 'how many times in a row it has ended with an error';
GRANT SELECT ON aq.notifiers TO PUBLIC;

CREATE FUNCTION aq_internal.outgoing_queue() RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_outgoing_queue';
COMMENT ON FUNCTION aq_internal.outgoing_queue() IS 'Internal: pgaq_outgoing, or an error if it is not fit for notifications';
CREATE FUNCTION aq_internal.outgoing_address(callback text) RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_outgoing_address';
COMMENT ON FUNCTION aq_internal.outgoing_address(text) IS 'Internal: the address of a callback, or an error';

CREATE PROCEDURE aq.send_notification(notification aq.notification) LANGUAGE sql
BEGIN ATOMIC
	SELECT aq.enqueue(aq_internal.outgoing_queue(), jsonb => jsonb_build_object('to', a.address, 'subject', 'Notification: ' || n.name,
		'body', CASE WHEN a.address LIKE 'mailto:%' THEN to_jsonb(jsonb_pretty(b.body)) ELSE b.body END))
	FROM (SELECT (notification).*) n,
		LATERAL (SELECT aq_internal.outgoing_address(
			(SELECT r.callback FROM aq.registrations r WHERE r.registration_id = n.registration_id)) AS address OFFSET 0) a,
		LATERAL (SELECT (SELECT q.payload_type FROM aq.queues q WHERE q.queue_name = n.name AND n.namespace = 'queue') AS type) t,
		LATERAL (SELECT jsonb_strip_nulls(to_jsonb(notification) - 'payload') || CASE
			WHEN n.payload IS NULL THEN '{}'
			WHEN t.type IS NULL OR t.type = 'bytea'::regtype THEN jsonb_build_object('payload', n.payload)
			WHEN t.type = 'jsonb'::regtype THEN jsonb_build_object('payload', convert_from(n.payload, getdatabaseencoding())::jsonb)
			ELSE jsonb_build_object('payload', convert_from(n.payload, getdatabaseencoding())) END AS body) b;
END;
COMMENT ON PROCEDURE aq.send_notification(aq.notification) IS
'Enqueue a notification of a registration with an address into pgaq_outgoing, from where pgaq notify
  delivers it: what is called for such a registration. Requires the privilege to enqueue there.
Errors 22023, 42501, 42704';
