-- aq.enqueue and aq.enqueue_array.
-- Text payloads are converted by the input function of the queue's payload type, so that plain literals and untyped parameters of drivers work.
-- There is a form for each kind of payload; all have the same options, and a new option is added here once.

DO $do$
DECLARE
	options CONSTANT text := $$
	priority integer DEFAULT NULL,
	delay interval DEFAULT NULL,
	expiration interval DEFAULT NULL,
	correlation text DEFAULT NULL,
	recipients text[] DEFAULT NULL,
	sender text DEFAULT NULL,
	exception_queue text DEFAULT NULL,
	properties jsonb DEFAULT NULL,
	relative_msgid uuid DEFAULT NULL,
	deviation text DEFAULT NULL,
	delivery_mode text DEFAULT NULL,
	producer text DEFAULT NULL,
	run_at timestamptz DEFAULT NULL$$;
	meaning CONSTANT text :=
'returns its id, or null when no subscriber of a topic wants it.
priority: 0 to 9, smaller first (null: 1)
delay: time until the message is ready (negative: none)
expiration: time from then until the message expires
correlation: any text, by which consumers can select
recipients: consumers of a topic (null: the subscribers)
sender: any text
key: any text of at most 512 bytes: messages with the same key are in one shard, so they keep their
  order whichever sessions enqueue them
exception_queue: null for that of the queue
properties: any JSON object
deviation: in queue tables: top (before all others), or before (before the message relative_msgid)
delivery_mode: persistent (null) or buffered (not logged: faster, and lost in a crash)
producer: a name that orders the messages of several sessions (null: only those of each session have
  an order); the transaction waits until the one before it with the same producer in the queue has
  ended
run_at: time at which the message becomes ready, instead of a delay (in the past: at once)
visibility: on_commit (null), or immediate: in a separate transaction, which is committed before the
  call returns
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ039, AQ053, AQ118';
	form record;
BEGIN
	FOR form IN SELECT * FROM (VALUES
		('aq.enqueue', 'payload text', options, 'uuid', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_text'$$,
			'Enqueue one message, payload as text, read by the payload type''s input function;
  ' || meaning),
		('aq.enqueue', 'jsonb jsonb', options, 'uuid', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_typed'$$,
			'The same for a payload of type jsonb. Named, jsonb => $2, it makes a driver send an untyped parameter
  as jsonb.'),
		('aq.enqueue', 'bytea bytea', options, 'uuid', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_typed'$$,
			'The same for a payload of type bytea. Named, bytea => $2, it makes a driver send an untyped parameter
  as bytea.'),
		('aq.enqueue', 'payload anyelement', options, 'uuid', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_typed'$$,
			'Enqueue one message, payload of the queue''s payload type, or json where that is jsonb;
  ' || meaning),
		-- One function for arrays of all types: then an untyped parameter is text[], for which drivers accept a list.
		('aq.enqueue_array', 'payloads anycompatiblearray', options || ', options jsonb DEFAULT NULL', 'uuid[]', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_array'$$,
			'Enqueue one message per array element, in their order; returns their ids in that order, null for
  messages that no subscriber wants. The other arguments are as in aq.enqueue and apply to all
  messages.
payloads: an array of the queue''s payload type or of text, which the payload type''s input function
  reads; json where the payload type is jsonb. An untyped literal or parameter is an array of text
options: an array with one object per payload. Its keys priority, delay, run_at, expiration,
  correlation, key, recipients, properties and exception_queue override the arguments for this message; a
  key that is missing or null, or null instead of an object, leaves the argument
Errors as in aq.enqueue'))
		f (name, payload, options, result, code, comment)
	LOOP
		EXECUTE format('CREATE FUNCTION %s(queue_name text, %s, %s, visibility text DEFAULT NULL, key text DEFAULT NULL) RETURNS %s LANGUAGE c VOLATILE PARALLEL UNSAFE %s',
			form.name, form.payload, form.options, form.result, form.code);
		EXECUTE format('COMMENT ON FUNCTION %s(queue_name text, %s, %s, visibility text, key text) IS %L',
			form.name, form.payload, replace(form.options, ' DEFAULT NULL', ''), form.comment);
	END LOOP;
	FOR form IN SELECT * FROM (VALUES
		('payload text', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_unique_text'$$, 'Enqueue one message with a unique key, payload as text, read by the payload type''s input function, unless
  another message of the queue has the key; '),
		('payload anyelement', $$AS 'MODULE_PATHNAME', 'aq_enqueue_calls_unique_typed'$$, 'Enqueue one message with a unique key, payload of the queue''s payload type, or json where that is
  jsonb, unless another message of the queue has the key; '))
		f (payload, code, comment)
	LOOP
		EXECUTE format('CREATE FUNCTION aq.enqueue_unique(queue_name text, %s, unique_key text, %s, key text DEFAULT NULL, unique_for interval DEFAULT NULL, on_conflict text DEFAULT ''ignore'', OUT msgid uuid, OUT is_new boolean) LANGUAGE c VOLATILE PARALLEL UNSAFE %s',
			form.payload, options, form.code);
		EXECUTE format('COMMENT ON FUNCTION aq.enqueue_unique(queue_name text, %s, unique_key text, %s, key text, unique_for interval, on_conflict text) IS %L',
			form.payload, replace(options, ' DEFAULT NULL', ''), form.comment || 'returns
  the id of the message that has it, and whether that is a new one.
unique_key: any text of at most 512 bytes
unique_for: how long no other message gets the key, whatever happens to this one (null: until it is
  done for all its consumers: consumed, also by this transaction, cancelled, expired, or moved to an
  exception queue)
on_conflict: what is done if another message has the key: ignore (nothing), error (23505), or replace
  (that message is cancelled if no transaction or lease holds it; otherwise nothing is done)
msgid: null if no subscriber of a topic wants the message
is_new: false if another message has the key
The other arguments are as in aq.enqueue. A call waits for other transactions that have used the key,
  until they end. Not for queue tables, distributed queues and buffered messages.
Errors as in aq.enqueue');
	END LOOP;
END $do$;
