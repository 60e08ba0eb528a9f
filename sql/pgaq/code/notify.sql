-- Registrations for notification.

CREATE FUNCTION aq.register(queue_name text, callback text, consumer text DEFAULT NULL, context bytea DEFAULT NULL,
	reliable boolean DEFAULT true, once boolean DEFAULT false, with_payload boolean DEFAULT false, timeout interval DEFAULT NULL,
	group_time interval DEFAULT NULL, group_type text DEFAULT 'summary', group_start timestamptz DEFAULT NULL,
	group_repeat integer DEFAULT NULL, namespace text DEFAULT 'queue') RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_add';
COMMENT ON FUNCTION aq.register(text, text, text, bytea, boolean, boolean, boolean, interval, interval, text, timestamptz, integer, text) IS
'Have a procedure called, in a background worker with the privileges of the current role, when the queue has messages for the consumer (null: a queue with a single consumer); returns the registration''s number. callback: plsql://schema.procedure, a procedure with one argument of type aq.notification. context: passed to it; reliable: it is not notified again of the same messages after a restart; once: only one notification; with_payload: it gets the payload; timeout: how long the registration lasts (null: forever); group_time: one call for all messages of each such time, at least 1 second, from group_start on (null: now), of group_type summary (all message ids) or last (the last one), for group_repeat groups (null: always), then a call for each message; namespace: queue, or anonymous: notifications that aq.post sends to queue_name. An existing registration of the role for the same queue, consumer and callback is replaced and enabled. Requires the dequeue privilege, EXECUTE on the procedure, and LOGIN. Errors 22004, 22023, 42501, 42602, 42704, 42809, 54000';

CREATE FUNCTION aq.unregister(registration_id bigint) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_remove';
COMMENT ON FUNCTION aq.unregister(bigint) IS
'End a registration; its procedure may be running a last time. For members of the role that registered, and the owner of the queue. Errors 22004, 42704';

CREATE FUNCTION aq.post(name text, payload bytea DEFAULT NULL) RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_post';
COMMENT ON FUNCTION aq.post(text, bytea) IS
'Send a notification, at the commit, to the registrations for this name in namespace anonymous, and return their number. Superusers grant EXECUTE. Errors 22004';
REVOKE EXECUTE ON FUNCTION aq.post(text, bytea) FROM PUBLIC;

-- Also rows that a restore inserts.
CREATE FUNCTION aq_internal.registrations_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_changed';
COMMENT ON FUNCTION aq_internal.registrations_changed() IS 'Internal: tells the worker of new registrations and posted notifications';
REVOKE EXECUTE ON FUNCTION aq_internal.registrations_changed() FROM PUBLIC;
CREATE TRIGGER changed AFTER INSERT ON aq_internal.registration FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.registrations_changed();
CREATE TRIGGER changed AFTER INSERT ON aq_internal.posting FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.registrations_changed();
