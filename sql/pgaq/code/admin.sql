-- Creating, changing and dropping queues, subscribers and privileges.

CREATE FUNCTION aq.create_queue(queue_name text, payload_type regtype DEFAULT 'jsonb',
	multiple_consumers boolean DEFAULT false, shards integer DEFAULT NULL,
	max_retries integer DEFAULT 5, retry_delay interval DEFAULT '1 second',
	retention interval DEFAULT '0', exception_queue text DEFAULT NULL,
	comment text DEFAULT NULL, queue_table text DEFAULT NULL, queue_type text DEFAULT 'normal', if_not_exists boolean DEFAULT false,
	retry_delay_factor double precision DEFAULT 5, retry_delay_max interval DEFAULT '10 minutes', retry_jitter double precision DEFAULT 0.1,
	distributed boolean DEFAULT false, default_priority integer DEFAULT NULL, default_delay interval DEFAULT '0',
	default_expiration interval DEFAULT NULL, max_depth bigint DEFAULT NULL, on_full text DEFAULT 'wait',
	max_running integer DEFAULT NULL, rate text DEFAULT NULL)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_create_queue';
COMMENT ON FUNCTION aq.create_queue IS
'Create a queue, started, owned by the current role; returns its name.
payload_type: jsonb, text, bytea, xml or a composite type
multiple_consumers: true makes a topic
shards: 1 to 32 (null: pgaq.default_shards)
max_retries: number of failed attempts that are retried; the next one moves the message to the
  exception queue (null: no limit; at most 255 in a sharded queue)
retry_delay: delay after the first failed attempt (a rolled back dequeue, or aq.release)
retry_delay_factor: multiplies the delay after each further failed attempt (1: fixed delay)
retry_delay_max: largest delay (null: no limit); a longer retry_delay does not grow
retry_jitter: largest random addition to the delay, as a fraction of it, 0 to 1
retention: time for which consumed messages remain visible
exception_queue: gets messages that have expired, were rejected, or have failed too often; none: such
  messages are dropped; null: a new queue, named after the queue with the suffix _exceptions, with
  the same owner and privileges, or the exception queue of the queue table
queue_table: null for a sharded queue, or a queue table, which determines payload_type and
  multiple_consumers and has an exception queue for it
queue_type: normal; exception (not started; takes only messages that other queues could not deliver,
  and has no exception queue unless one is named); or non_persistent (messages are not stored and
  cannot be dequeued: the registrations of aq.register get them; retries, retention,
  exception_queue, shards and queue_table do not apply)
if_not_exists: true does nothing if a queue of this name exists, whatever its settings
distributed: true shares the queue with the distributed queues of this name on other nodes: consumers
  of any node get messages of all nodes
default_priority: priority of messages that are enqueued without one (null: 1)
default_delay: delay of messages that are enqueued without delay and run_at
default_expiration: expiration of messages that are enqueued without one (null: they never expire)
max_depth: number of messages that are committed and not finished, in a topic by one consumer, with
  which the queue is full (null: it is never full)
on_full: what an enqueue into the full queue does: wait until there is room, at most
  pgaq.flow_control_timeout, or error: fail at once
max_running: how many messages of each consumer may be in work at a time: taken by open or prepared
  transactions, or leased (null: no limit); not for queue tables and distributed queues
rate: how many messages each consumer gets in a time (null: no limit): a number, a slash, and a time in
  milliseconds, seconds, minutes, hours or days, such as ''100/minute'' or ''5/10 seconds''. At once it
  gets at most that number, or as many as ''100/minute burst 10'' says. A message that is dequeued
  again after a rollback counts again; not for queue tables and distributed queues
Errors 0A000, 22004, 22023, 42602, 42704, 42710, 42809';
REVOKE EXECUTE ON FUNCTION aq.create_queue FROM PUBLIC;

CREATE FUNCTION aq_internal.lock_name(table_name text, name text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_lock_name_sql';
COMMENT ON FUNCTION aq_internal.lock_name(text, text) IS
'Internal: no other transaction gives this name to a row of the table of aq_internal before this one has ended';
REVOKE EXECUTE ON FUNCTION aq_internal.lock_name(text, text) FROM PUBLIC;

CREATE FUNCTION aq.create_temporary_queue(payload_type regtype DEFAULT 'jsonb', multiple_consumers boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_create_temporary_queue';
COMMENT ON FUNCTION aq.create_temporary_queue(regtype, boolean) IS
'Create a queue that the server drops, with its messages, when the session ends, however it ends;
  returns its name, which the server chooses. It has one shard, the retries of aq.create_queue, and
  no exception queue. The function aq.drop_queue drops it earlier. A session can have
  pgaq.max_temporary_queues of them.
The current role owns the queue. For roles with a privilege on a queue that is not temporary, with
  EXECUTE on aq.create_queue, or to which EXECUTE on this function was granted by name. All these
  roles can enqueue into it, for replies.
Errors 22004, 42501, 42804, 53400';

CREATE FUNCTION aq.create_queue_table(queue_table text, payload_type regtype DEFAULT 'jsonb',
	sort_list text DEFAULT NULL, multiple_consumers boolean DEFAULT false,
	message_grouping boolean DEFAULT false, comment text DEFAULT NULL, if_not_exists boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_create';
COMMENT ON FUNCTION aq.create_queue_table(text, regtype, text, boolean, boolean, text, boolean) IS
'Create a queue table, owned by the current role: the classic store, for features that sharded queues
  do not have; returns its name with the schema. Also creates its exception queue,
  schema.aq$_table_e, not started.
queue_table: schema.table, or a name in the current schema
sort_list: one of enq_time; priority; commit_time; priority, enq_time; enq_time, priority; priority,
  commit_time (null: the order of the enqueue calls)
multiple_consumers: true makes its queues topics
message_grouping: true groups the messages of each transaction; one transaction dequeues a group
if_not_exists: true does nothing if a queue table of this name exists, whatever its settings
Errors 22004, 22023, 42602, 42710, 42804';
REVOKE EXECUTE ON FUNCTION aq.create_queue_table(text, regtype, text, boolean, boolean, text, boolean) FROM PUBLIC;

CREATE FUNCTION aq.alter_queue_table(queue_table text, comment text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_alter';
COMMENT ON FUNCTION aq.alter_queue_table(text, text) IS
'Change the comment of a queue table; null: none. For the queue table''s owner.
Errors 42704';

CREATE FUNCTION aq.drop_queue_table(queue_table text, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_drop';
COMMENT ON FUNCTION aq.drop_queue_table(text, boolean) IS
'Drop a queue table, its exception queue and the views on it.
force: true also drops its queues and their messages, and ends waits for these in other sessions at
  once, as aq.drop_queue does
Waits for transactions that use them. For the queue table''s owner.
Errors 2BP01, 42704, 55000';

CREATE FUNCTION aq.convert_queue(queue_name text, shards integer DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_convert_queue';
COMMENT ON FUNCTION aq.convert_queue(text, integer) IS
'Convert a queue of a queue table to a sharded queue, while it is in use. From the commit on, new
  messages go into the sharded store. Those in the queue table are dequeued first, unchanged; after
  the last one the queue leaves its queue table.
shards: as in aq.create_queue
For the queue''s owner.
Errors 0A000, 22023, 42501, 42704';

CREATE FUNCTION aq.conversion_obstacles(queue_name text, OUT obstacle text, OUT hint text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_convert_obstacles';
COMMENT ON FUNCTION aq.conversion_obstacles(text) IS
'The reasons for which aq.convert_queue would refuse the queue, and what to do about them; no row: it
  would convert the queue.
Errors 22023, 42501, 42704';

CREATE FUNCTION aq.alter_queue(queue_name text, max_retries integer DEFAULT NULL,
	retry_delay interval DEFAULT NULL, retention interval DEFAULT NULL,
	exception_queue text DEFAULT NULL, comment text DEFAULT NULL,
	new_owner regrole DEFAULT NULL, new_name text DEFAULT NULL,
	retry_delay_factor double precision DEFAULT NULL, retry_delay_max interval DEFAULT NULL, retry_jitter double precision DEFAULT NULL,
	default_priority integer DEFAULT NULL, default_delay interval DEFAULT NULL, default_expiration interval DEFAULT NULL,
	max_depth bigint DEFAULT NULL, on_full text DEFAULT NULL,
	max_running integer DEFAULT NULL, rate text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_alter_queue';
COMMENT ON FUNCTION aq.alter_queue IS
'Change a queue; null leaves a setting unchanged.
max_retries: -1 for no limit; otherwise at most 255 in a sharded queue
retry_delay_max: ''-1'' for no limit
default_priority: -1 for no default
default_expiration: ''-1'' for no default
max_depth: -1 for no limit
max_running: -1 for no limit; a lower limit takes effect as messages in work end
rate: none for no limit
exception_queue: none drops messages that fail
comment: '''' removes it
new_name: also renames the exception queue that was made for the queue and is named after it
new_owner: also owns that exception queue
Messages that wait for their retry delay keep it. For the queue''s owner.
Errors 0A000, 22004, 22023, 42501, 42602, 42704, 42710, 42809';

CREATE FUNCTION aq.drop_queue(queue_name text, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_drop_queue';
COMMENT ON FUNCTION aq.drop_queue(text, boolean) IS
'Drop a queue, its tables and the exception queue that was made for it.
force: true drops them even if one of the queues holds messages, and ends waits for their messages in
  other sessions at once, with error 42704, also if the drop is rolled back
Waits for transactions that use the queue. Until the drop is committed or rolled back, calls of other
  sessions for the queue wait, and with force, waits for messages that begin fail with error 42704. The
  commit ends waits for messages without force, too. For the queue''s owner.
Errors 2BP01, 42501, 42704, 55000';

CREATE PROCEDURE aq.drop_queues(pattern text, force boolean DEFAULT false, owner text DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_drop_many';
COMMENT ON PROCEDURE aq.drop_queues(text, boolean, text) IS
'Drop several queues, as aq.drop_queue does. Queues that the caller may not drop are left out. Queue
  tables are not dropped.
pattern: a LIKE pattern of names (%: all)
force: as in aq.drop_queue
owner: only queues of this role, a name without quotes (null: of any role)
Commits whenever a transaction has locked about a thousand objects, and reports the number of dropped
  queues. So it must be called by CALL, outside a transaction block and outside a function. An error
  rolls back only what was not committed yet; call it again after that. For owners of queues.
Errors 22004, 25001, 2BP01, 42704, 55000';

CREATE FUNCTION aq.start_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_start_queue';
COMMENT ON FUNCTION aq.start_queue(text, boolean, boolean) IS
'Allow enqueue and dequeue again; false leaves that setting unchanged. For the queue''s owner.
Errors 42501, 42704';

CREATE FUNCTION aq.stop_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true,
	wait boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_stop_queue';
COMMENT ON FUNCTION aq.stop_queue(text, boolean, boolean, boolean) IS
'Refuse enqueue and dequeue from the commit on; false leaves that setting unchanged.
wait: true refuses them at once to transactions that do not use the queue yet, and waits until those
  that do have ended, including prepared ones; fails with 40P01 if one of them waits for this
  transaction
For the queue''s owner.
Errors 42501, 42704';

CREATE FUNCTION aq.pause(queue_name text, consumer text DEFAULT NULL, reason text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_pause';
COMMENT ON FUNCTION aq.pause(text, text, text) IS
'Give a consumer no messages from the commit on, without errors: a dequeue finds nothing, and sessions
  that wait go on waiting, until aq.resume. Enqueue continues, and messages that were dequeued before
  can be committed, rolled back and acknowledged.
consumer: a subscriber of a topic (null: all consumers of the queue)
reason: shown with the role and the time in aq.queues and aq.subscribers
A consumer gets messages when neither it nor the queue is paused. aq.browse, aq.cancel, aq.purge_queue
  and aq.redrive work as always. A distributed queue is paused on this node. For the queue''s owner,
  and, with the subscribe privilege, the role that subscribed the consumer.
Errors 22004, 42501, 42704, 42809';

CREATE FUNCTION aq.resume(queue_name text, consumer text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_pause_end';
COMMENT ON FUNCTION aq.resume(text, text) IS
'End what aq.pause has begun, and wake the sessions that wait.
consumer: as in aq.pause; null does not resume consumers that were paused by name
For the same roles as aq.pause.
Errors 22004, 42501, 42704, 42809';

CREATE FUNCTION aq.purge_queue(queue_name text, consumer text DEFAULT NULL, condition text DEFAULT NULL,
	delivery_mode text DEFAULT NULL, "block" boolean DEFAULT false)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_purge_queue';
COMMENT ON FUNCTION aq.purge_queue(text, text, text, text, boolean) IS
'Remove messages without reading them, in the caller''s transaction; returns the number of removed
  (message, consumer) pairs.
consumer: only its messages (null: of all consumers)
condition: only messages that meet it (null: all)
delivery_mode: persistent (null), buffered or persistent_or_buffered
block: true waits for messages that other transactions have locked; other sessions then wait until
  the purge commits
Without block, locked messages remain. Leased messages remain in any case: call aq.end_leases first.
  For the queue''s owner.
Errors 22023, 42501, 42704, AQ018';

CREATE FUNCTION aq.check(patience interval DEFAULT '3 seconds', OUT queue_name text, OUT store text, OUT place text, OUT what text,
	OUT in_memory bigint, OUT expected bigint, OUT detail text)
RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_check';
COMMENT ON FUNCTION aq.check(interval) IS
'Compare shared memory with the tables and with itself; one row for each difference. Reads all messages
  of the queues that are in memory. For superusers.
patience: time for which differences are read again, because concurrent work looks like a
  difference';
REVOKE EXECUTE ON FUNCTION aq.check FROM PUBLIC;

CREATE FUNCTION aq.subscribe(queue_name text, consumer text, rule text DEFAULT NULL, comment text DEFAULT NULL,
	delivery_mode text DEFAULT NULL, if_not_exists boolean DEFAULT false, temporary boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_add';
COMMENT ON FUNCTION aq.subscribe(text, text, text, text, text, boolean, boolean) IS
'Add a subscriber; returns its name. It gets the messages that are enqueued after this commits and
  that satisfy its rule.
rule: an SQL condition over priority, correlation, properties, payload and the fields of a composite
  payload (null: every message); names are looked up in pg_catalog, and it runs with the privileges
  of the calling role; a rule that raises an error counts as false, and aq.subscribers counts it
delivery_mode: the messages that it gets: persistent (null), buffered or persistent_or_buffered; it
  cannot be changed
if_not_exists: true does nothing if a subscriber of this name exists; it keeps its rule
temporary: true makes the server remove it, with its messages, when the session ends, however it ends
With if_not_exists and temporary, an existing temporary subscriber that the role could remove is
  shared with this session and removed when the last of its sessions has ended. With if_not_exists
  alone, it becomes permanent.
For the queue''s owner, and roles with the subscribe privilege: these also get the privilege to
  dequeue for the subscriber, and the name must be neither in use nor granted to another role.
Errors 22023, 42501, 42602, 42704, 42710, 42809, 54000, AQ018';

CREATE FUNCTION aq.alter_subscriber(queue_name text, consumer text, rule text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_alter';
COMMENT ON FUNCTION aq.alter_subscriber(text, text, text) IS
'Replace a subscriber''s rule for messages enqueued from then on; null: every message. The rule runs
  with the privileges of the calling role. For the queue''s owner, and, with the subscribe privilege,
  the role that subscribed it.
Errors 42501, 42704, AQ018';

CREATE FUNCTION aq.limit_subscriber(queue_name text, consumer text, max_running integer DEFAULT NULL, rate text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_limit';
COMMENT ON FUNCTION aq.limit_subscriber(text, text, integer, text) IS
'Limit how many messages of a subscriber may be in work at a time: taken by open or prepared
  transactions, or leased; and how many it gets in a time. A dequeue gets no others, and sessions that
  wait are woken when it gets the next one. Each call sets both limits.
max_running: instead of the queue''s limit (null: the queue''s limit applies)
rate: instead of the queue''s rate, as in aq.create_queue (null: the queue''s rate applies)
A lower limit takes effect as messages in work end. Not for queue tables and distributed queues. For
  the queue''s owner, and, with the subscribe privilege, the role that subscribed it.
Errors 0A000, 22023, 42501, 42704, 42809';

CREATE FUNCTION aq.unsubscribe(queue_name text, consumer text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_remove';
COMMENT ON FUNCTION aq.unsubscribe(text, text) IS
'Remove a consumer and its messages. For the queue''s owner, and, with the subscribe privilege, the
  role that subscribed it.
Errors 42501, 42704';

CREATE FUNCTION aq.grant_queue(queue_name text, grantee text, privilege text DEFAULT 'all',
	grant_option boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_grant';
COMMENT ON FUNCTION aq.grant_queue(text, text, text, boolean) IS
'Grant privileges on a queue.
grantee: a role''s name without quotes, or PUBLIC (also: null)
privilege: enqueue, dequeue, subscribe, a list of these (enqueue, dequeue), or all
grant_option: true lets the role grant them to others
The privilege dequeue is for every consumer; aq.grant_consumer is for one. The privilege subscribe
  allows aq.subscribe, and altering and removing the subscribers that the role has subscribed. Its
  rules run inside enqueuers'' transactions, and its open transaction can lock the queue''s
  definition, so that enqueues that name a new recipient wait. For the queue''s owner, and roles
  with the grant option.
Errors 22023, 42501, 42704';

CREATE FUNCTION aq.revoke_queue(queue_name text, grantee text, privilege text DEFAULT 'all')
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_revoke';
COMMENT ON FUNCTION aq.revoke_queue(text, text, text) IS
'Revoke enqueue, dequeue, subscribe, a list of these or all on a queue from a role or PUBLIC (also:
  null), and what the role has granted by its grant option. Subscribers of the role and privileges on
  single consumers remain: see aq.unsubscribe and aq.revoke_consumer. The queue''s owner revokes
  grants made in the owner''s name; any other role revokes its own grants.
Errors 22023, 42501, 42704';

CREATE FUNCTION aq.grant_consumer(queue_name text, consumer text, grantee text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_grant_consumer';
COMMENT ON FUNCTION aq.grant_consumer(text, text, text) IS
'Allow a role to dequeue, browse, wait and listen for one consumer of a topic, and to see its
  messages and counters.
grantee: a role''s name without quotes, or PUBLIC (also: null)
The name need not be a consumer''s yet. For the queue''s owner.
Errors 42501, 42602, 42704, 42809';

CREATE FUNCTION aq.revoke_consumer(queue_name text, consumer text, grantee text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_revoke_consumer';
COMMENT ON FUNCTION aq.revoke_consumer(text, text, text) IS
'Revoke the privilege of a role or PUBLIC (also: null) on one consumer; its sessions that wait for this
  consumer get an error. For the queue''s owner.
Errors 42501, 42704, 42809';

CREATE FUNCTION aq.set_shards(queue_name text, shards integer) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_set_shards';
COMMENT ON FUNCTION aq.set_shards(text, integer) IS
'Change the number of shards of a sharded queue that is stopped and has not been used.
shards: 1 to 32
For the queue''s owner.';

CREATE FUNCTION aq.mark_hot(queue_name text, hot boolean DEFAULT true) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_mark_hot';
COMMENT ON FUNCTION aq.mark_hot(text, boolean) IS
'Give a queue copies of its entry in the object cache, so that sessions do not all use the same
  mutex; pgaq.hot_object_copies says how many.
hot: false drops the copies
It is not part of the transaction. Superusers grant EXECUTE.';
REVOKE EXECUTE ON FUNCTION aq.mark_hot(text, boolean) FROM PUBLIC;
