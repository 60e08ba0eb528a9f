-- What the Jakarta Messaging provider calls: jms/README.md. Other programs use aq.receive, aq.dequeue, aq.browse and aq.acknowledge.

CREATE PROCEDURE aq_jms.receive(queue_names text[], consumers text[], conditions text[], max_messages integer[],
	timeout interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	ack_queues text[] DEFAULT NULL,
	ack_consumers text[] DEFAULT NULL,
	ack_msgids uuid[] DEFAULT NULL,
	ack_receipts bigint[] DEFAULT NULL,
	max_bytes integer DEFAULT NULL,
	INOUT messages bytea DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_jms_receive';
COMMENT ON PROCEDURE aq_jms.receive(text[], text[], text[], integer[], interval, interval, text[], text[], uuid[], bigint[], integer, bytea) IS
'For the Jakarta Messaging provider: acknowledge leased messages, then dequeue from the first of
  several sources that has messages, or wait for one.
queue_names, consumers, conditions, max_messages: the sources: each has a queue, its consumer (null:
  none), a condition (null: none) and the largest number of messages to dequeue
timeout: null: forever
lease: null: the transaction consumes the messages
ack_queues, ack_consumers, ack_msgids, ack_receipts: the leases to acknowledge, one element for each,
  as in aq_jms.acknowledge
max_bytes: null: no limit; when the payloads together exceed it, the messages behind the first one
  come without payload, to be released
messages: a binary value that jms/README.md describes
Called by CALL outside a transaction block and outside a function, it commits the acknowledgements
  before it waits. It does not wait if one of them is busy. Leases on sharded queues also end soon
  after the session that has taken them, as if they had expired.
Payloads are of type aq.jms_message; text, jsonb and bytea are delivered as text and bytes messages,
  with the correlation and the properties of the server.
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018';

CREATE FUNCTION aq_jms.browse(queue_name text, consumer text DEFAULT NULL, condition text DEFAULT NULL, after uuid DEFAULT NULL,
	max_messages integer DEFAULT 100,
	max_bytes integer DEFAULT NULL)
RETURNS bytea LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_receive_browse';
COMMENT ON FUNCTION aq_jms.browse(text, text, text, uuid, integer, integer) IS
'For the Jakarta Messaging provider: messages that a consumer could dequeue, in the form of
  aq_jms.receive, with receipt 0.
after: continue behind this message (null: from the head)
max_bytes: as in aq_jms.receive
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018';

CREATE FUNCTION aq_jms.send(messages bytea, acknowledge bytea DEFAULT NULL, affinity text DEFAULT NULL, skip_gone boolean DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_send';
COMMENT ON FUNCTION aq_jms.send(bytea, bytea, text, boolean) IS
'For the Jakarta Messaging provider: enqueue messages of type aq.jms_message and acknowledge leased
  messages; if a lease has ended, the call fails, so that neither happens.
messages: in binary form; null: none
acknowledge: the leases, in binary form; null: none
affinity: a name that chooses the shard (null: the producer does, or the session; empty: the key does
  first): messages with the same affinity that are sent one after another, each after the commit of
  the one before, keep their order across sessions; nothing waits
skip_gone: true: a message to a temporary destination that has ended is not sent, instead of an error
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ049, AQ053, AQ118';

CREATE FUNCTION aq_jms.enqueue(queue_name text, payloads anycompatiblearray, priority integer DEFAULT NULL, delay interval DEFAULT NULL,
	expiration interval DEFAULT NULL, correlation text DEFAULT NULL, producer text DEFAULT NULL, affinity text DEFAULT NULL,
	options jsonb DEFAULT NULL)
RETURNS uuid[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_send_enqueue';
COMMENT ON FUNCTION aq_jms.enqueue(text, anycompatiblearray, integer, interval, interval, text, text, text, jsonb) IS
'For the Jakarta Messaging provider: aq.enqueue_array with an affinity, for messages that aq_jms.send
  does not enqueue: those of other payload types, and large ones.
payloads, priority, delay, expiration, correlation, producer, options: as in aq.enqueue_array
affinity: as in aq_jms.send
Errors as in aq.enqueue';

CREATE FUNCTION aq_jms.commit(messages bytea, acknowledge bytea, queue_name text, consumer text, condition text, max_messages integer, lease interval,
	max_bytes integer DEFAULT NULL, affinity text DEFAULT NULL, skip_gone boolean DEFAULT NULL)
RETURNS bytea LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_receive_commit';
COMMENT ON FUNCTION aq_jms.commit(bytea, bytea, text, text, text, integer, interval, integer, text, boolean) IS
'For the Jakarta Messaging provider: aq_jms.send(messages, acknowledge), and in the same transaction
  dequeue the messages that a source has, without waiting. The result is as in aq_jms.receive.
messages, acknowledge, affinity, skip_gone: as in aq_jms.send
queue_name, consumer, condition, max_messages, lease, max_bytes: as in aq_jms.receive
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018, AQ049, AQ053, AQ118';

CREATE FUNCTION aq_jms.acknowledge(queue_names text[], consumers text[], msgids uuid[], receipts bigint[])
RETURNS integer[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_lease_acknowledge';
COMMENT ON FUNCTION aq_jms.acknowledge(text[], text[], uuid[], bigint[]) IS
'For the Jakarta Messaging provider: aq.acknowledge for messages of several queues and dequeues:
  queue, consumer (null: none), message id and receipt of each. Returns the indexes, from 0 on, of
  those that are not done. The index i stands for a stale lease, a queue that does not exist or has
  no such consumer, or a missing dequeue privilege; -1 - i stands for busy.
Errors 0A000, 22004, 22023';

CREATE FUNCTION aq_jms.extend(queue_names text[], consumers text[], msgids uuid[], receipts bigint[], lease interval)
RETURNS integer[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_lease_extend';
COMMENT ON FUNCTION aq_jms.extend(text[], text[], uuid[], bigint[], interval) IS
'For the Jakarta Messaging provider: aq.extend for messages of several queues and dequeues. Lists and
  result as in aq_jms.acknowledge.
Errors 0A000, 22004, 22023';

CREATE FUNCTION aq_jms.release(queue_names text[], consumers text[], msgids uuid[], receipts bigint[],
	delay interval DEFAULT NULL,
	error text DEFAULT NULL,
	count boolean DEFAULT true)
RETURNS integer[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_lease_release';
COMMENT ON FUNCTION aq_jms.release(text[], text[], uuid[], bigint[], interval, text, boolean) IS
'For the Jakarta Messaging provider: aq.release for messages of several queues and dequeues. Lists
  and result as in aq_jms.acknowledge.
delay, error, count: as in aq.release
Errors 0A000, 22004, 22023';

CREATE FUNCTION aq_jms.write_chunk(queue_name text, msgid uuid, number integer, data bytea)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_body_write';
COMMENT ON FUNCTION aq_jms.write_chunk(text, uuid, integer, bytea) IS
'For the Jakarta Messaging provider: write a chunk of the body of a large message, which the same
  transaction has enqueued into the queue with the header content_length.
number: of the chunk, from 0 on, without gaps, each once
data: its bytes
The body goes with its message, also to an exception queue. Requires the enqueue privilege on the
  queue.
Errors 22004, 22023, 42704, 42804';

CREATE FUNCTION aq_jms.read_chunk(queue_name text, consumer text, msgid uuid, number integer)
RETURNS bytea LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_body_read';
COMMENT ON FUNCTION aq_jms.read_chunk(text, text, uuid, integer) IS
'For the Jakarta Messaging provider: read a chunk of the body of a large message that the consumer
  (null: the queue has a single consumer) can dequeue or has dequeued. Returns null if the body has
  fewer chunks, or if the message no longer exists.
number: of the chunk, from 0 on
Requires the dequeue privilege on the queue, or the privilege on the consumer.
Errors 22004, 22023, 42501, 42704';

CREATE FUNCTION aq_jms.claim(queue_name text, first bigint, count integer)
RETURNS text[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_gone_claim';
COMMENT ON FUNCTION aq_jms.claim(text, bigint, integer) IS
'For the Jakarta Messaging provider: names for temporary destinations in a temporary queue of this session.
  The session claims them until it ends or calls aq_jms.unclaim. Then they have ended: aq_jms.send no
  longer sends to them.
first: number of the first one; the others follow
count: number of names, at most 100
A claim takes a place in the server''s table of locks. If that is full, none of them is claimed.
Errors 22004, 22023, 42704';

CREATE FUNCTION aq_jms.unclaim(name text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_gone_unclaim';
COMMENT ON FUNCTION aq_jms.unclaim(text) IS
'For the Jakarta Messaging provider: a temporary destination that this session has claimed has ended.
name: the destination, as aq_jms.claim has returned it
Errors 22004';
