-- aq.dequeue, aq.dequeue_full and aq.browse.
-- A polymorphic result requires an argument that determines it: as_type, a null of the payload's type; without it the payload is jsonb.

-- The three forms have the same options and the same first columns; a new one is added here once.
DO $do$
DECLARE
	options CONSTANT text := $$
	consumer text DEFAULT NULL,
	max_messages integer DEFAULT 1,
	mode text DEFAULT 'remove',
	correlation text DEFAULT NULL,
	msgid uuid DEFAULT NULL,
	condition text DEFAULT NULL,
	wait interval DEFAULT NULL,
	navigation text DEFAULT NULL,
	delivery_mode text DEFAULT NULL,
	lease interval DEFAULT NULL,
	acknowledge uuid[] DEFAULT NULL,
	receipt bigint DEFAULT NULL,
	visibility text DEFAULT NULL,
	key text DEFAULT NULL$$;
	columns CONSTANT text := $$priority integer, attempts integer, correlation text,
	properties jsonb, enqueue_time timestamptz, msgid uuid, receipt bigint$$;
	full_columns CONSTANT text := columns || $$,
	sender text, consumer_name text, ready_at timestamptz, expires_at timestamptz,
	exception_queue text, original_msgid uuid, shard integer, session_id bigint, state integer,
	transaction_group text, message_delivery_mode integer, dead_letter jsonb, key text$$;
	form record;
BEGIN
	FOR form IN SELECT * FROM (VALUES
		('aq.dequeue', '', 'jsonb', columns, $$AS 'MODULE_PATHNAME', 'aq_dequeue_jsonb'$$,
			'Dequeue up to max_messages messages of a jsonb queue.
consumer: its name, in a topic
mode: remove, remove_nodata (the payload comes back null), locked (locked until the end of the
  transaction, not consumed) or browse
correlation: a LIKE pattern
key: only messages with this key
msgid: exactly this message
condition: an SQL condition over priority, correlation, properties, enqueue_time, attempts, payload
  and the fields of a composite payload
wait: null does not wait, a negative interval waits forever; a number without a unit is in seconds
navigation: null and first_message start at the head; next_message continues behind the session''s last
  message; next_transaction continues with the next group; first_message_multi_group and
  next_message_multi_group do not stop at the end of a group
delivery_mode: persistent (null), buffered or persistent_or_buffered
lease: take the messages for this time, from the commit on (in a queue table from the call on), until
  they are acknowledged; not for buffered messages
acknowledge: messages of an earlier dequeue with a lease; they are finished first, as by
  aq.acknowledge, and a notice says how many leases no longer ran
receipt: that of the messages to acknowledge; as result, that of a new lease, null without one
visibility: on_commit (null), or immediate: the messages are taken in a separate transaction, which is
  committed before the call returns; not with mode locked or a lease
A call that acknowledges messages does not wait, so that this is committed. While it waits, the
  statement holds its snapshot, and therefore the xmin horizon; CALL aq.wait does not.
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018, AQ043, AQ044, AQ045, AQ046'),
		('aq.dequeue', 'as_type anyelement,', 'anyelement', columns, $$AS 'MODULE_PATHNAME', 'aq_dequeue_typed'$$,
			'Dequeue up to max_messages messages.
as_type: a null of the queue''s payload type (name it for text: as_type => null::text)
The other arguments are as in the jsonb form.
Errors as in the jsonb form'),
		('aq.dequeue_full', 'as_type anyelement,', 'anyelement', full_columns, $$AS 'MODULE_PATHNAME', 'aq_dequeue_typed'$$,
			'As aq.dequeue, with every property of the message.
state: 0 ready, 1 waiting, 3 expired, when it was dequeued
message_delivery_mode: 1 persistent, 2 buffered
dead_letter: in an exception queue, where it came from and why it failed: see aq.dead_letters
The other columns are sender, consumer_name, ready_at, expires_at, exception_queue, original_msgid,
  shard, session_id, transaction_group and key, which was given at enqueue.'))
		f (name, as_type, payload_type, columns, code, comment)
	LOOP
		EXECUTE format('CREATE FUNCTION %s(queue_name text, %s %s) RETURNS TABLE (payload %s, %s) LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 %s',
			form.name, form.as_type, options, form.payload_type, form.columns, form.code);
		EXECUTE format('COMMENT ON FUNCTION %s(queue_name text, %s %s) IS %L',
			form.name, form.as_type, regexp_replace(options, ' DEFAULT [^,]+', '', 'g'), form.comment);
	END LOOP;
END $do$;

CREATE FUNCTION aq.browse(queue_name text,
	consumer text DEFAULT NULL,
	max_messages integer DEFAULT 100,
	correlation text DEFAULT NULL,
	condition text DEFAULT NULL,
	after uuid DEFAULT NULL,
	key text DEFAULT NULL)
RETURNS TABLE (payload jsonb, priority integer, attempts integer, correlation text,
	properties jsonb, enqueue_time timestamptz, msgid uuid)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_dequeue_browse_jsonb';
COMMENT ON FUNCTION aq.browse(text, text, integer, text, text, uuid, text) IS
'Read the messages of a jsonb queue that the consumer could dequeue, in dequeue order, without taking
  them. Allowed in READ ONLY transactions.
after: continue behind this message
key: only messages with this key';

CREATE FUNCTION aq.browse(queue_name text, as_type anyelement,
	consumer text DEFAULT NULL,
	max_messages integer DEFAULT 100,
	correlation text DEFAULT NULL,
	condition text DEFAULT NULL,
	after uuid DEFAULT NULL,
	key text DEFAULT NULL)
RETURNS TABLE (payload anyelement, priority integer, attempts integer, correlation text,
	properties jsonb, enqueue_time timestamptz, msgid uuid)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_dequeue_browse_typed';
COMMENT ON FUNCTION aq.browse(text, anyelement, text, integer, text, text, uuid, text) IS
'As aq.browse for jsonb, for any payload type.
as_type: a null of the payload type';
