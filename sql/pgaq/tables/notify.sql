-- Registrations for notification: see src/notify/README.md.

CREATE SEQUENCE aq_internal.registration_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.registration_id_seq IS 'Numbers of registrations; never reused';

CREATE TABLE aq_internal.registration (
	registration_id bigint PRIMARY KEY DEFAULT pg_catalog.nextval('aq_internal.registration_id_seq'),
	role aq_internal.role NOT NULL,
	namespace text NOT NULL CHECK (namespace IN ('queue', 'anonymous')),
	queue_id integer CHECK ((queue_id IS NOT NULL) = (namespace = 'queue')),
	name text COLLATE "C" CHECK ((name IS NOT NULL) = (namespace = 'anonymous')),
	consumer text COLLATE "C",
	callback text COLLATE "C" NOT NULL,
	procedure_schema text,
	procedure_name text CHECK ((procedure_name IS NULL) = (procedure_schema IS NULL)),
	procedure_owner aq_internal.role CHECK (procedure_owner IS NOT NULL OR procedure_name IS NULL),
	context bytea,
	reliable boolean NOT NULL,
	once boolean NOT NULL,
	with_payload boolean NOT NULL,
	created timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	expires_at timestamptz,
	group_time interval CHECK (group_time >= interval '1 second'),
	group_type text CHECK (group_type IN ('summary', 'last')),
	group_start timestamptz,
	groups_left integer,
	group_end timestamptz,
	status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'retrying', 'disabled')),
	failures integer NOT NULL DEFAULT 0,
	next_at timestamptz DEFAULT pg_catalog.clock_timestamp(),
	running boolean NOT NULL DEFAULT false,
	last_error text,
	last_error_time timestamptz,
	notifications bigint NOT NULL DEFAULT 0,
	last_notification timestamptz
) WITH (fillfactor = 50);
CREATE INDEX registration_queue_id ON aq_internal.registration (queue_id);
CREATE INDEX registration_name ON aq_internal.registration (name);
-- several roles can be missing where the rows were restored
CREATE UNIQUE INDEX registration_key ON aq_internal.registration ((role::oid), queue_id, name, consumer, callback) NULLS NOT DISTINCT
	WHERE role::oid <> 0::oid;
COMMENT ON TABLE aq_internal.registration IS 'Registrations for notification: whose code is called when a queue has messages, or a notification is posted';
COMMENT ON COLUMN aq_internal.registration.registration_id IS 'number of the registration';
COMMENT ON COLUMN aq_internal.registration.role IS 'role that registered, as which the procedure runs; empty: dropped';
COMMENT ON COLUMN aq_internal.registration.namespace IS 'queue, or anonymous: notifications that aq.post sends';
COMMENT ON COLUMN aq_internal.registration.queue_id IS 'the queue; null: anonymous';
COMMENT ON COLUMN aq_internal.registration.name IS 'the name that aq.post names; null: a queue';
COMMENT ON COLUMN aq_internal.registration.consumer IS 'the consumer of a queue with several; null: none';
COMMENT ON COLUMN aq_internal.registration.callback IS 'what is called, as it was given';
COMMENT ON COLUMN aq_internal.registration.procedure_schema IS 'schema of the procedure; null: a program waits for the registration';
COMMENT ON COLUMN aq_internal.registration.procedure_name IS 'its name; null: a program waits for the registration';
COMMENT ON COLUMN aq_internal.registration.procedure_owner IS 'its owner when it was registered: a procedure of another owner is not called in its place; empty: dropped';
COMMENT ON COLUMN aq_internal.registration.context IS 'passed to the procedure; null: nothing';
COMMENT ON COLUMN aq_internal.registration.reliable IS 'true: what was notified is kept in aq_internal.notified; false: only in memory, so it is notified again after a restart';
COMMENT ON COLUMN aq_internal.registration.once IS 'true: it ends with its first notification';
COMMENT ON COLUMN aq_internal.registration.with_payload IS 'true: the procedure gets the message''s payload';
COMMENT ON COLUMN aq_internal.registration.created IS 'when it was made or renewed';
COMMENT ON COLUMN aq_internal.registration.expires_at IS 'when it ends; null: never';
COMMENT ON COLUMN aq_internal.registration.group_time IS 'one call for all messages of this time; null: a call for each message';
COMMENT ON COLUMN aq_internal.registration.group_type IS 'summary: the call gets the ids of all messages; last: only that of the last one';
COMMENT ON COLUMN aq_internal.registration.group_start IS 'from when on groups are counted';
COMMENT ON COLUMN aq_internal.registration.groups_left IS 'groups until every message has a call of its own; null: no limit';
COMMENT ON COLUMN aq_internal.registration.group_end IS 'end of the group that has messages; null: none has';
COMMENT ON COLUMN aq_internal.registration.status IS 'enabled; retrying: the last call failed; disabled: it failed too often';
COMMENT ON COLUMN aq_internal.registration.failures IS 'failed calls in a row';
COMMENT ON COLUMN aq_internal.registration.next_at IS 'when it is tried again, or looked at first; null: when there is a message';
COMMENT ON COLUMN aq_internal.registration.running IS 'true: a notifier works for it; one that finds this at its start knows that another one has died';
COMMENT ON COLUMN aq_internal.registration.last_error IS 'error of the last failed call; null: none';
COMMENT ON COLUMN aq_internal.registration.last_error_time IS 'when that was';
COMMENT ON COLUMN aq_internal.registration.notifications IS 'calls that have succeeded';
COMMENT ON COLUMN aq_internal.registration.last_notification IS 'when the last one was';

CREATE TABLE aq_internal.notified (
	registration_id bigint NOT NULL REFERENCES aq_internal.registration ON DELETE CASCADE,
	msgid uuid NOT NULL,
	attempts integer NOT NULL,
	PRIMARY KEY (registration_id, msgid)
);
COMMENT ON TABLE aq_internal.notified IS 'Messages that reliable registrations were notified of and that are still in the queue';
COMMENT ON COLUMN aq_internal.notified.registration_id IS 'the registration';
COMMENT ON COLUMN aq_internal.notified.msgid IS 'the message';
COMMENT ON COLUMN aq_internal.notified.attempts IS 'its failed attempts then: after another one it is notified again';

CREATE SEQUENCE aq_internal.posting_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.posting_id_seq IS 'Numbers of posted notifications';
CREATE TABLE aq_internal.posting (
	posting_id bigint PRIMARY KEY DEFAULT pg_catalog.nextval('aq_internal.posting_id_seq'),
	registration_id bigint NOT NULL REFERENCES aq_internal.registration ON DELETE CASCADE,
	payload bytea,
	posted timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	msgid uuid,
	priority integer,
	correlation text,
	sender text,
	expires_at timestamptz,
	original_msgid uuid
);
CREATE INDEX posting_registration_id ON aq_internal.posting (registration_id, posting_id);
COMMENT ON TABLE aq_internal.posting IS 'Notifications that are not delivered yet, of aq.post and of messages of non-persistent queues';
COMMENT ON COLUMN aq_internal.posting.posting_id IS 'their order';
COMMENT ON COLUMN aq_internal.posting.registration_id IS 'the registration that gets it';
COMMENT ON COLUMN aq_internal.posting.payload IS 'what was posted; the payload of the message, of other types than bytea its text in the database''s encoding';
COMMENT ON COLUMN aq_internal.posting.posted IS 'when';
COMMENT ON COLUMN aq_internal.posting.msgid IS 'id of the message; null: sent by aq.post, and so are the following';
COMMENT ON COLUMN aq_internal.posting.priority IS 'its priority';
COMMENT ON COLUMN aq_internal.posting.correlation IS 'its correlation; null: none';
COMMENT ON COLUMN aq_internal.posting.sender IS 'its producer; null: none';
COMMENT ON COLUMN aq_internal.posting.expires_at IS 'when it is no longer delivered; null: always';
COMMENT ON COLUMN aq_internal.posting.original_msgid IS 'its id in the queue that it was propagated from; null: none';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.registration_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.posting_id_seq', '');

CREATE TYPE aq.notification AS (
	registration_id bigint, namespace text, name text, consumer text, msgids uuid[], message_count integer, context bytea, payload bytea,
	priority integer, correlation text, attempts integer, enqueue_time timestamptz, ready_at timestamptz, expires_at timestamptz,
	sender text, exception_queue text, original_msgid uuid);
COMMENT ON TYPE aq.notification IS 'What a procedure that was registered by aq.register gets';
COMMENT ON COLUMN aq.notification.registration_id IS 'number of the registration';
COMMENT ON COLUMN aq.notification.namespace IS 'queue, or anonymous: it was sent by aq.post';
COMMENT ON COLUMN aq.notification.name IS 'the queue, or the name that was posted';
COMMENT ON COLUMN aq.notification.consumer IS 'the consumer; null: a queue with a single consumer, or anonymous';
COMMENT ON COLUMN aq.notification.msgids IS 'ids of the messages: one, or all of a group; null: anonymous';
COMMENT ON COLUMN aq.notification.message_count IS 'how many messages the notification is for';
COMMENT ON COLUMN aq.notification.context IS 'context of the registration';
COMMENT ON COLUMN aq.notification.payload IS 'what was posted; of a queue, if the registration is with_payload or the queue non-persistent: the payload, of other types than bytea its text in the database''s encoding; null for a summary of a group';
COMMENT ON COLUMN aq.notification.priority IS 'priority of the message; this and the following properties are null for a summary of a group';
COMMENT ON COLUMN aq.notification.correlation IS 'its correlation';
COMMENT ON COLUMN aq.notification.attempts IS 'its failed attempts';
COMMENT ON COLUMN aq.notification.enqueue_time IS 'when it was enqueued';
COMMENT ON COLUMN aq.notification.ready_at IS 'when its delay was over; null: no delay';
COMMENT ON COLUMN aq.notification.expires_at IS 'when it expires; null: never';
COMMENT ON COLUMN aq.notification.sender IS 'its producer';
COMMENT ON COLUMN aq.notification.exception_queue IS 'where it goes when it fails; null: the queue''s own';
COMMENT ON COLUMN aq.notification.original_msgid IS 'its id in the queue it came from, by propagation or as a failed message';
