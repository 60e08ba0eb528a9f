-- Registrations for notification.

CREATE FUNCTION aq.register(queue_name text, callback text, consumer text DEFAULT NULL, context bytea DEFAULT NULL,
	reliable boolean DEFAULT true, once boolean DEFAULT false, with_payload boolean DEFAULT false, timeout interval DEFAULT NULL,
	group_time interval DEFAULT NULL, group_type text DEFAULT 'summary', group_start timestamptz DEFAULT NULL,
	group_repeat integer DEFAULT NULL, namespace text DEFAULT 'queue') RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_add';
COMMENT ON FUNCTION aq.register(text, text, text, bytea, boolean, boolean, boolean, interval, interval, text, timestamptz, integer, text) IS
'Register for notifications: when the queue has messages for the consumer, a procedure is called in a
  background worker with the privileges of the current role, or a program is notified; returns the
  registration''s number.
consumer: null for a single-consumer queue
callback: plsql://schema.procedure: a procedure with one argument of type aq.notification;
  https://host/path, http://host/path or mailto:address: the notification is enqueued into
  pgaq_outgoing, from where pgaq notify delivers it; client:// or client://name (null: client://): a
  program waits with aq.wait and takes notifications with aq.notifications
context: passed on
reliable: true remembers across a restart which messages a procedure was notified of; a program is
  always notified once
once: true ends the registration after one notification
with_payload: true passes the payload
timeout: how long the registration lasts (null: forever)
group_time: collects the messages of this time, at least 1 second, in one notification
group_start: when the first group begins (null: now)
group_type: summary (all message ids) or last (the last one)
group_repeat: number of groups (null: no limit); after that, each message has its own notification
namespace: queue, or anonymous: notifications that aq.post sends to queue_name
An existing registration of the role for the same queue, consumer and callback is replaced and
  enabled. Requires the dequeue privilege; for a procedure also EXECUTE on it and LOGIN, for an
  address the privilege to enqueue into pgaq_outgoing and LOGIN.
Errors 22004, 22023, 42501, 42602, 42704, 42809, 54000';

CREATE PROCEDURE aq.wait(INOUT registration_ids bigint[], timeout anycompatible DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_client_wait';
COMMENT ON PROCEDURE aq.wait(bigint[], anycompatible) IS
'Wait until a client registration has notifications.
registration_ids: the registrations to wait for (null: all client registrations of the current role);
  as result, those that have notifications, null after the timeout
timeout: an interval with a unit; null or negative: forever
Holds no snapshot while it waits, when called by CALL outside a function. Takes nothing: call
  aq.notifications afterwards. Another session may be faster.
Errors 22004, 22023, 42501, 42704';

CREATE FUNCTION aq.notifications(registration_ids bigint[] DEFAULT NULL, max_notifications integer DEFAULT 100) RETURNS SETOF aq.notification
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_client_news_take';
COMMENT ON FUNCTION aq.notifications(bigint[], integer) IS
'Take up to max_notifications pending notifications of the given client registrations (null: all of
  the current role), in the order of their numbers. This is part of the transaction: after a
  rollback they are delivered again. Their messages remain in the queue. Waits for another
  transaction that has taken notifications of the same registration. Requires the privileges of the
  role that registered, and the dequeue privilege.
Errors 22004, 22023, 42501, 42704';

CREATE FUNCTION aq.unregister(registration_id bigint) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_remove';
COMMENT ON FUNCTION aq.unregister(bigint) IS
'End a registration; its procedure may be running a last time. For members of the role that
  registered, and the owner of the queue.
Errors 22004, 42704';

CREATE FUNCTION aq.post(name text, payload bytea DEFAULT NULL) RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_posting_post';
COMMENT ON FUNCTION aq.post(text, bytea) IS
'Send a notification, at the commit, to the registrations for this name in namespace anonymous, and
  return their number. Superusers grant EXECUTE.
Errors 22004';
REVOKE EXECUTE ON FUNCTION aq.post(text, bytea) FROM PUBLIC;

-- Also rows that a restore inserts, and those that the worker deletes.
CREATE FUNCTION aq_internal.registrations_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_changed';
COMMENT ON FUNCTION aq_internal.registrations_changed() IS 'Internal: tells the worker and waiting programs of registrations that were made or ended, and of posted notifications';
REVOKE EXECUTE ON FUNCTION aq_internal.registrations_changed() FROM PUBLIC;
CREATE TRIGGER changed AFTER INSERT ON aq_internal.registration FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.registrations_changed();
-- for each row: the worker's DELETE, which it repeats after each such change, mostly deletes none
CREATE TRIGGER ended AFTER DELETE ON aq_internal.registration FOR EACH ROW EXECUTE FUNCTION aq_internal.registrations_changed();
CREATE TRIGGER changed AFTER INSERT ON aq_internal.posting FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.registrations_changed();
