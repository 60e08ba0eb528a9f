-- Schemas and catalog tables. Created once; changed only by upgrade scripts.

-- Names are not resolved in schema public, in which other roles may have created objects.
SET LOCAL search_path TO pg_catalog, pg_temp;

-- An existing schema of the same name is neither used nor dropped, because it may contain anything.
DO $$
DECLARE
	taken name := (SELECT n.nspname FROM pg_namespace n WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'aq_data') ORDER BY 1 LIMIT 1);
BEGIN
	IF taken IS NOT NULL THEN
		RAISE duplicate_schema USING MESSAGE = format('schema "%s" already exists', taken), DETAIL = 'The extension pgaq creates this schema.',
			HINT = format('If it is still needed, rename it: ALTER SCHEMA %I RENAME TO ...; otherwise drop it. Then create the extension again.', taken);
	END IF;
END $$;

CREATE SCHEMA aq;
COMMENT ON SCHEMA aq IS 'Advanced Queuing: functions, procedures and views';
GRANT USAGE ON SCHEMA aq TO PUBLIC;

CREATE SCHEMA aq_jms;
COMMENT ON SCHEMA aq_jms IS 'Advanced Queuing: functions of the Jakarta Messaging provider, and its messages for programs in SQL';
GRANT USAGE ON SCHEMA aq_jms TO PUBLIC;

CREATE SCHEMA aq_internal;
COMMENT ON SCHEMA aq_internal IS 'Advanced Queuing: the catalog and internal functions; not an interface';
CREATE SCHEMA aq_data;
COMMENT ON SCHEMA aq_data IS 'Advanced Queuing: the tables that hold messages; use the views of schema aq to look into them';

-- A role in a table: stored as its OID, so that a renamed role stays the same, and dumped as its name, see role.c.
CREATE TYPE aq_internal.role;
CREATE FUNCTION aq_internal.role_in(name cstring) RETURNS aq_internal.role LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_role_in';
COMMENT ON FUNCTION aq_internal.role_in(cstring) IS 'Internal: input of type aq_internal.role';
CREATE FUNCTION aq_internal.role_out(role aq_internal.role) RETURNS cstring LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_role_out';
COMMENT ON FUNCTION aq_internal.role_out(aq_internal.role) IS 'Internal: output of type aq_internal.role';
CREATE FUNCTION aq_internal.role_recv(name internal) RETURNS aq_internal.role LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_role_recv';
COMMENT ON FUNCTION aq_internal.role_recv(internal) IS 'Internal: binary input of type aq_internal.role';
CREATE FUNCTION aq_internal.role_send(role aq_internal.role) RETURNS bytea LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_role_send';
COMMENT ON FUNCTION aq_internal.role_send(aq_internal.role) IS 'Internal: binary output of type aq_internal.role';
CREATE TYPE aq_internal.role (INPUT = aq_internal.role_in, OUTPUT = aq_internal.role_out, RECEIVE = aq_internal.role_recv, SEND = aq_internal.role_send, LIKE = oid);
COMMENT ON TYPE aq_internal.role IS 'Internal: a role; its text is its name, or empty if there is no such role';
CREATE CAST (aq_internal.role AS oid) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (oid AS aq_internal.role) WITHOUT FUNCTION AS ASSIGNMENT;

-- Names are compared byte by byte, as in PostgreSQL's catalogs: an index that follows the database's collation is
-- wrong after an upgrade of the C library or of ICU, and its names are no longer found.

CREATE SEQUENCE aq_internal.queue_id_seq AS integer;
COMMENT ON SEQUENCE aq_internal.queue_id_seq IS 'Numbers of queues; never reused';
CREATE SEQUENCE aq_internal.session_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.session_id_seq IS 'Durable identities of enqueuing sessions; never reused';
CREATE SEQUENCE aq_internal.partition_number_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.partition_number_seq IS 'Numbers of partitions and of blocks of receipts, of all queues; never reused';

-- src/queue/catalog/queue_column_list.h has the same columns. The defaults are those of queues to which a property does not apply, such as exception
-- queues; those of aq.create_queue are others. What a property means is said here for aq.queues as well.
CREATE TABLE aq_internal.queue (
	queue_id integer PRIMARY KEY DEFAULT nextval('aq_internal.queue_id_seq'),
	queue_name text COLLATE "C" NOT NULL UNIQUE,
	payload_type regtype NOT NULL,
	multiple_consumers boolean NOT NULL,
	shards smallint NOT NULL CHECK (shards BETWEEN 1 AND 32),
	max_retries integer CHECK (max_retries >= 0),
	retry_delay interval NOT NULL DEFAULT '0',
	retry_delay_factor double precision NOT NULL DEFAULT 1 CHECK (retry_delay_factor >= 1),
	retry_delay_max interval,
	retry_jitter double precision NOT NULL DEFAULT 0 CHECK (retry_jitter BETWEEN 0 AND 1),
	retention interval NOT NULL DEFAULT '0',
	exception_queue_id integer,
	enqueue_enabled boolean NOT NULL DEFAULT true,
	dequeue_enabled boolean NOT NULL DEFAULT true,
	key bigint NOT NULL,
	created timestamptz NOT NULL DEFAULT now(),
	comment text,
	store "char" NOT NULL DEFAULT 's' CHECK (store IN ('s', 'c', 'b')),
	queue_table_id integer CHECK ((queue_table_id IS NOT NULL) = (store <> 's')),
	queue_type text NOT NULL DEFAULT 'normal' CHECK (queue_type IN ('normal', 'exception', 'non_persistent')),
	converted timestamptz CHECK (store <> 'b' OR converted IS NOT NULL),
	rights_id integer NOT NULL,
	distributed boolean NOT NULL DEFAULT false,
	default_priority integer CHECK (default_priority >= 0),
	default_delay interval NOT NULL DEFAULT '0',
	default_expiration interval,
	paused timestamptz,
	paused_by text,
	pause_reason text,
	max_depth bigint CHECK (max_depth > 0),
	on_full text NOT NULL DEFAULT 'wait' CHECK (on_full IN ('wait', 'error')),
	max_running integer CHECK (max_running > 0),
	rate text
);
CREATE INDEX queue_exception_queue_id ON aq_internal.queue (exception_queue_id);
CREATE INDEX queue_rights_id ON aq_internal.queue (rights_id);
COMMENT ON TABLE aq_internal.queue IS 'One row per queue; its owner and privileges are those of the view aq_data.q<rights_id>';
COMMENT ON COLUMN aq_internal.queue.queue_id IS 'number of the queue, part of its tables'' names';
COMMENT ON COLUMN aq_internal.queue.queue_name IS 'name, unique in the database';
COMMENT ON COLUMN aq_internal.queue.payload_type IS 'type of the payload';
COMMENT ON COLUMN aq_internal.queue.multiple_consumers IS 'true: a topic, every message has its own set of consumers';
COMMENT ON COLUMN aq_internal.queue.shards IS 'number of shards; a session enqueues into one of them';
COMMENT ON COLUMN aq_internal.queue.max_retries IS 'rolled back dequeues before a message goes to the exception queue; null: no limit';
COMMENT ON COLUMN aq_internal.queue.retry_delay IS 'delay of a message after its first failed attempt';
COMMENT ON COLUMN aq_internal.queue.retry_delay_factor IS 'the delay is multiplied by this for each further failed attempt';
COMMENT ON COLUMN aq_internal.queue.retry_delay_max IS 'the delay grows up to this; null: no limit';
COMMENT ON COLUMN aq_internal.queue.retry_jitter IS 'largest random addition to the delay, as a fraction of it';
COMMENT ON COLUMN aq_internal.queue.retention IS 'time for which consumed messages remain visible in aq.messages';
COMMENT ON COLUMN aq_internal.queue.exception_queue_id IS 'queue that takes expired and failed messages; null: they are dropped';
COMMENT ON COLUMN aq_internal.queue.enqueue_enabled IS 'false after aq.stop_queue(enqueue)';
COMMENT ON COLUMN aq_internal.queue.dequeue_enabled IS 'false after aq.stop_queue(dequeue)';
COMMENT ON COLUMN aq_internal.queue.key IS 'random number that makes message ids of this queue unique';
COMMENT ON COLUMN aq_internal.queue.created IS 'when the queue was created';
COMMENT ON COLUMN aq_internal.queue.comment IS 'the creator''s comment';
COMMENT ON COLUMN aq_internal.queue.store IS 'the store of its messages: s sharded, c a queue table of the classic store, b both: converted, with messages left in the queue table';
COMMENT ON COLUMN aq_internal.queue.queue_table_id IS 'its queue table; null: sharded';
COMMENT ON COLUMN aq_internal.queue.queue_type IS 'normal; exception: takes only messages that other queues could not deliver; non_persistent: its messages are only notified';
COMMENT ON COLUMN aq_internal.queue.converted IS 'when aq.convert_queue converted it to a sharded queue; null: it was not converted';
COMMENT ON COLUMN aq_internal.queue.rights_id IS 'the queue whose owner view it uses: itself, or, for a default exception queue, the queue that it was made for';
COMMENT ON COLUMN aq_internal.queue.distributed IS 'true: consumers on other nodes get its messages, too';
COMMENT ON COLUMN aq_internal.queue.default_priority IS 'priority of messages that are enqueued without one; null: 1';
COMMENT ON COLUMN aq_internal.queue.default_delay IS 'delay of messages that are enqueued without one';
COMMENT ON COLUMN aq_internal.queue.default_expiration IS 'expiration of messages that are enqueued without one; null: they never expire';
COMMENT ON COLUMN aq_internal.queue.paused IS 'since when it is paused for all consumers, by aq.pause; null: it is not';
COMMENT ON COLUMN aq_internal.queue.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq_internal.queue.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq_internal.queue.max_depth IS 'number of unfinished messages of a consumer with which the queue is full; null: it is never full';
COMMENT ON COLUMN aq_internal.queue.on_full IS 'an enqueue into the full queue: wait, at most pgaq.flow_control_timeout, or error';
COMMENT ON COLUMN aq_internal.queue.max_running IS 'how many messages of each consumer may be in work at a time; null: no limit';
COMMENT ON COLUMN aq_internal.queue.rate IS 'how many messages each consumer gets in a time; null: no limit';

CREATE SEQUENCE aq_internal.consumer_number_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.consumer_number_seq IS 'Numbers of consumers; never reused';

CREATE TABLE aq_internal.subscriber (
	queue_id integer NOT NULL,
	"position" smallint NOT NULL CHECK ("position" BETWEEN 0 AND 1023),
	consumer text COLLATE "C",
	kind text NOT NULL CHECK (kind IN ('subscriber', 'recipient', 'removed')),
	rule text,
	created timestamptz NOT NULL DEFAULT now(),
	comment text,
	transformation text,
	delivery_mode smallint NOT NULL DEFAULT 1 CHECK (delivery_mode BETWEEN 1 AND 3),
	number bigint NOT NULL DEFAULT pg_catalog.nextval('aq_internal.consumer_number_seq'),
	rule_role aq_internal.role,
	transformation_role aq_internal.role,
	owner aq_internal.role,
	paused timestamptz,
	paused_by text,
	pause_reason text,
	max_running integer CHECK (max_running > 0),
	rate text,
	PRIMARY KEY (queue_id, "position"),
	UNIQUE (queue_id, consumer)
);
COMMENT ON TABLE aq_internal.subscriber IS 'One row per possible consumer of the queue''s messages';
COMMENT ON COLUMN aq_internal.subscriber.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.subscriber."position" IS 'bit of the consumer in the messages'' sets of consumers';
COMMENT ON COLUMN aq_internal.subscriber.consumer IS 'name of the consumer; null once removed';
COMMENT ON COLUMN aq_internal.subscriber.kind IS 'subscriber: by aq.subscribe; recipient: named only in recipient lists; removed: the bit is not free yet';
COMMENT ON COLUMN aq_internal.subscriber.rule IS 'condition that a message must meet; null: none';
COMMENT ON COLUMN aq_internal.subscriber.created IS 'when the consumer was first named';
COMMENT ON COLUMN aq_internal.subscriber.comment IS 'the creator''s comment';
COMMENT ON COLUMN aq_internal.subscriber.transformation IS 'function that dbms_aq applies to the payloads it dequeues; null: none';
COMMENT ON COLUMN aq_internal.subscriber.delivery_mode IS 'which messages it gets: 1 persistent, 2 buffered, 3 both';

CREATE TABLE aq_internal.buffered_queue (
	queue_id integer PRIMARY KEY,
	created timestamptz NOT NULL DEFAULT clock_timestamp(),
	losses integer NOT NULL DEFAULT 0,
	lost_at timestamptz
);
COMMENT ON TABLE aq_internal.buffered_queue IS 'Queues that have had buffered messages. The messages are in aq_data.b<queue_id>, their states for each consumer in aq_data.d<queue_id>, both unlogged';
COMMENT ON COLUMN aq_internal.buffered_queue.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.buffered_queue.created IS 'when the tables were created, for the first buffered message';
COMMENT ON COLUMN aq_internal.buffered_queue.losses IS 'how often the tables were found empty after a crash';
COMMENT ON COLUMN aq_internal.buffered_queue.lost_at IS 'time of the last loss; earlier buffered messages are gone';
COMMENT ON COLUMN aq_internal.subscriber.rule_role IS 'role that wrote the rule, which runs with its privileges; null (not known) or empty (dropped): with those of aq_user_role';
COMMENT ON COLUMN aq_internal.subscriber.transformation_role IS 'role that chose the transformation, and must have EXECUTE on it; empty: dropped';
COMMENT ON COLUMN aq_internal.subscriber.owner IS 'role that subscribed it, which can alter and remove it by the subscribe privilege; null: not a subscriber; empty: dropped';
COMMENT ON COLUMN aq_internal.subscriber.paused IS 'since when it is paused, by aq.pause; null: it is not';
COMMENT ON COLUMN aq_internal.subscriber.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq_internal.subscriber.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq_internal.subscriber.max_running IS 'how many of its messages may be in work at a time; null: as the queue says';
COMMENT ON COLUMN aq_internal.subscriber.rate IS 'how many messages it gets in a time; null: as the queue says';
COMMENT ON COLUMN aq_internal.subscriber.number IS 'distinguishes the consumer from earlier ones at its position: it is higher than theirs';

-- A right counts while the owner view has REFERENCES for the role itself: so DROP OWNED revokes it, and DROP ROLE is refused before.
CREATE TABLE aq_internal.consumer_grant (
	queue_id integer NOT NULL,
	consumer text COLLATE "C" NOT NULL,
	role aq_internal.role,
	subscribed boolean NOT NULL
);
CREATE INDEX consumer_grant_queue_id ON aq_internal.consumer_grant (queue_id);
-- several roles can have been dropped, or be missing where the rows were restored
CREATE UNIQUE INDEX consumer_grant_key ON aq_internal.consumer_grant (queue_id, consumer, (role::oid)) NULLS NOT DISTINCT
	WHERE role::oid IS DISTINCT FROM 0::oid;
ALTER TABLE aq_internal.consumer_grant REPLICA IDENTITY FULL;
COMMENT ON TABLE aq_internal.consumer_grant IS 'Privileges on single consumers of topics; they count for roles that have REFERENCES on the view aq_data.q<queue_id>';
COMMENT ON COLUMN aq_internal.consumer_grant.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.consumer_grant.consumer IS 'name of the consumer, which need not exist';
COMMENT ON COLUMN aq_internal.consumer_grant.role IS 'role that can dequeue for it; null: PUBLIC; empty: dropped, and without effect';
COMMENT ON COLUMN aq_internal.consumer_grant.subscribed IS 'true: granted by aq.subscribe to its caller, and revoked by aq.unsubscribe';

CREATE TABLE aq_internal.temporary (
	queue_id integer NOT NULL,
	consumer_number bigint NOT NULL,
	session_id bigint NOT NULL,
	PRIMARY KEY (queue_id, consumer_number, session_id)
);
COMMENT ON TABLE aq_internal.temporary IS 'Temporary queues and subscribers: the worker removes them when their sessions have ended';
COMMENT ON COLUMN aq_internal.temporary.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.temporary.consumer_number IS 'number of the subscriber; 0: the queue itself is temporary';
COMMENT ON COLUMN aq_internal.temporary.session_id IS 'a session that it belongs to, a number of aq_internal.session_id_seq; a subscriber can belong to several';

CREATE TABLE aq_internal.property (
	name text COLLATE "C" PRIMARY KEY,
	value text NOT NULL CHECK (length(value) BETWEEN 1 AND 200)
);
COMMENT ON TABLE aq_internal.property IS 'Properties of the database that differ from the defaults: see aq.database_properties';
COMMENT ON COLUMN aq_internal.property.name IS 'name of the property';
COMMENT ON COLUMN aq_internal.property.value IS 'its value';

CREATE TABLE aq_internal.message_table (
	queue_id integer NOT NULL,
	table_no integer NOT NULL,
	PRIMARY KEY (queue_id, table_no)
);
COMMENT ON TABLE aq_internal.message_table IS 'The tables of a sharded queue: messages, and chunks of their bodies with negative ordinals, in aq_data.q<queue_id>_<table_no>, dequeue log in aq_data.l<queue_id>_<table_no>';
COMMENT ON COLUMN aq_internal.message_table.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.message_table.table_no IS 'number of the table within the queue';

CREATE SEQUENCE aq_internal.queue_table_id_seq AS integer;
COMMENT ON SEQUENCE aq_internal.queue_table_id_seq IS 'Numbers of queue tables; never reused';

CREATE TABLE aq_internal.queue_table (
	queue_table_id integer PRIMARY KEY DEFAULT nextval('aq_internal.queue_table_id_seq'),
	schema_name text COLLATE "C" NOT NULL,
	table_name text COLLATE "C" NOT NULL,
	payload_type regtype NOT NULL,
	sort_list text[] NOT NULL,
	multiple_consumers boolean NOT NULL,
	message_grouping boolean NOT NULL,
	secure boolean NOT NULL DEFAULT false,
	compatible text NOT NULL DEFAULT '10.0.0',
	owner aq_internal.role NOT NULL,
	comment text,
	created timestamptz NOT NULL DEFAULT now(),
	UNIQUE (schema_name, table_name)
);
COMMENT ON TABLE aq_internal.queue_table IS 'Queue tables of the classic store. The messages are in aq_data.t<queue_table_id>, their states for each consumer in aq_data.c<queue_table_id>, bodies of large messages in aq_data.k<queue_table_id>';
COMMENT ON COLUMN aq_internal.queue_table.queue_table_id IS 'number of the queue table, part of its tables'' names';
COMMENT ON COLUMN aq_internal.queue_table.schema_name IS 'schema of its name';
COMMENT ON COLUMN aq_internal.queue_table.table_name IS 'name, unique in the schema';
COMMENT ON COLUMN aq_internal.queue_table.payload_type IS 'type of the payload of all its queues';
COMMENT ON COLUMN aq_internal.queue_table.sort_list IS 'order of dequeue: priority, enq_time, commit_time; empty: in the order of the enqueue calls';
COMMENT ON COLUMN aq_internal.queue_table.multiple_consumers IS 'true: its queues are topics';
COMMENT ON COLUMN aq_internal.queue_table.message_grouping IS 'true: what a transaction enqueues is dequeued by one transaction';
COMMENT ON COLUMN aq_internal.queue_table.secure IS 'true: a secure queue table';
COMMENT ON COLUMN aq_internal.queue_table.compatible IS 'release that it was created compatible with; for the dictionary views';
COMMENT ON COLUMN aq_internal.queue_table.owner IS 'role that created it; empty: dropped';
COMMENT ON COLUMN aq_internal.queue_table.comment IS 'the creator''s comment';
COMMENT ON COLUMN aq_internal.queue_table.created IS 'when it was created';

-- A template for the logs. A log row never needs TOAST.
CREATE TABLE aq_data.log_template (
	kind "char" NOT NULL,
	stream smallint NOT NULL,
	consumer smallint NOT NULL,
	at timestamptz NOT NULL,
	ordinals bigint[] NOT NULL,
	receipt bigint,
	detail text,
	written timestamptz
);
ALTER TABLE aq_data.log_template ALTER ordinals SET STORAGE PLAIN;
ALTER TABLE aq_data.log_template ALTER detail SET STORAGE PLAIN;
ALTER TABLE aq_data.log_template REPLICA IDENTITY FULL;
COMMENT ON TABLE aq_data.log_template IS 'Form of the dequeue logs: which consumer has finished which messages';
COMMENT ON COLUMN aq_data.log_template.kind IS 't taken, p purged, c purged after it was taken, r dequeue rolled back, x expired or failed, m moved to the exception queue or dropped, l locked by a prepared transaction, s leased, e lease extended, o lease over, b given back, u given back unseen';
COMMENT ON COLUMN aq_data.log_template.stream IS 'stream of the messages: (shard * 10 + priority) * 2, plus 1 if delayed';
COMMENT ON COLUMN aq_data.log_template.consumer IS 'position of the consumer, see aq_internal.subscriber; 0 in single-consumer queues';
COMMENT ON COLUMN aq_data.log_template.at IS 'time of the dequeue; of kinds r, b and u, when the message may be tried again; of s and e, when the lease ends';
COMMENT ON COLUMN aq_data.log_template.ordinals IS 'the messages'' ordinals in their stream';
COMMENT ON COLUMN aq_data.log_template.receipt IS 'receipt of the lease; null: the row is not about a lease';
COMMENT ON COLUMN aq_data.log_template.detail IS 'application_name of the holder, or the error that was given with the message; of kind x, behind a letter for the reason: j rejected, r released with too many attempts, l lease over';
COMMENT ON COLUMN aq_data.log_template.written IS 'when the row was written; null: it is neither of kind r nor about a lease';

-- The catalog is dumped with its rows; message tables are dumped as ordinary tables.
SELECT pg_catalog.pg_extension_config_dump('aq_internal.property', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.queue', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.subscriber', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.consumer_grant', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.temporary', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.buffered_queue', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.message_table', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.queue_table', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.queue_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.queue_table_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.session_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.partition_number_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.consumer_number_seq', '');
