-- Creating, changing and dropping queues, subscribers and privileges.

CREATE FUNCTION aq.create_queue(queue_name text, payload_type regtype DEFAULT 'jsonb',
	multiple_consumers boolean DEFAULT false, shards integer DEFAULT NULL,
	max_retries integer DEFAULT 5, retry_delay interval DEFAULT '1 second',
	retention interval DEFAULT '0', exception_queue text DEFAULT NULL,
	comment text DEFAULT NULL, queue_table text DEFAULT NULL, queue_type text DEFAULT 'normal', if_not_exists boolean DEFAULT false,
	retry_delay_factor double precision DEFAULT 5, retry_delay_max interval DEFAULT '10 minutes', retry_jitter double precision DEFAULT 0.1,
	distributed boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_create_queue';
COMMENT ON FUNCTION aq.create_queue IS
'Create a queue, started, owned by the current role; returns its name. payload_type: jsonb, text, bytea, xml or a composite type; multiple_consumers: a topic; shards 1 to 32 (null: pgaq.default_shards); max_retries: rolled back dequeues before a message goes to the exception queue (null: no limit; at most 255 in a sharded queue); retry_delay: delay after the first failed attempt (a rolled back dequeue, or aq.release); retry_delay_factor: the delay is multiplied by this for each further one (1: it does not grow); retry_delay_max: it grows up to this (null: no limit; a longer retry_delay does not grow); retry_jitter: largest random addition to the delay, as a fraction of it, 0 to 1; retention: time for which consumed messages remain visible; exception_queue: gets messages that have expired, were rejected, or have failed too often; its name, or none: they are dropped; null: a queue queue_name_exceptions is made for it, with its owner and privileges, or that of its queue table; queue_table: null for a sharded queue, or its queue table, which determines payload_type and multiple_consumers and has an exception queue for it; queue_type: normal or exception (not started; takes only messages that other queues could not deliver, and has no exception queue unless one is named), or non_persistent (its messages are not stored: they are passed to the registrations of aq.register, and cannot be dequeued; retries, retention, exception_queue, shards and queue_table do not apply); if_not_exists: does nothing if a queue of this name exists, whatever its settings; distributed: consumers on other nodes, which have a distributed queue of this name, get its messages, too, and its own consumers get theirs. Errors 22004, 22023, 42602, 42704, 42710, 42809';
REVOKE EXECUTE ON FUNCTION aq.create_queue FROM PUBLIC;

CREATE FUNCTION aq_internal.lock_name(table_name text, name text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_lock_name_sql';
COMMENT ON FUNCTION aq_internal.lock_name(text, text) IS
'Internal: no other transaction gives this name to a row of the table of aq_internal before this one has ended';
REVOKE EXECUTE ON FUNCTION aq_internal.lock_name(text, text) FROM PUBLIC;

CREATE FUNCTION aq.create_temporary_queue(payload_type regtype DEFAULT 'jsonb', multiple_consumers boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_create_temporary_queue';
COMMENT ON FUNCTION aq.create_temporary_queue(regtype, boolean) IS
'Create a queue that the server drops, with its messages, when the session ends, however it ends; returns its name, which the server chooses. For roles with a privilege on a queue that is not temporary, or with EXECUTE on aq.create_queue, or to which EXECUTE on this function was granted by name. The current role owns it; all such roles can enqueue, for replies. It has one shard, the retries of aq.create_queue, and no exception queue. To drop it earlier, call aq.drop_queue. A session can have pgaq.max_temporary_queues of them. Errors 22004, 42501, 42804, 53400';

CREATE FUNCTION aq.create_queue_table(queue_table text, payload_type regtype DEFAULT 'jsonb',
	sort_list text DEFAULT NULL, multiple_consumers boolean DEFAULT false,
	message_grouping boolean DEFAULT false, comment text DEFAULT NULL, if_not_exists boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_create';
COMMENT ON FUNCTION aq.create_queue_table(text, regtype, text, boolean, boolean, text, boolean) IS
'Create a queue table, owned by the current role: the classic store, for features that sharded queues cannot do; returns its name with the schema. Its name is schema.table, or a name in the current schema. sort_list: enq_time, priority, commit_time; priority, enq_time; enq_time, priority; or priority, commit_time (null: the order of the enqueue calls); multiple_consumers: its queues are topics; message_grouping: the messages of one transaction are dequeued by one transaction. Creates the exception queue schema.aq$_table_e, not started. if_not_exists: does nothing if a queue table of this name exists, whatever its settings. Errors 22004, 22023, 42602, 42710, 42804';
REVOKE EXECUTE ON FUNCTION aq.create_queue_table(text, regtype, text, boolean, boolean, text, boolean) FROM PUBLIC;

CREATE FUNCTION aq.alter_queue_table(queue_table text, comment text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_alter';
COMMENT ON FUNCTION aq.alter_queue_table(text, text) IS
'Change the comment of a queue table; null: none. For the queue table''s owner. Errors 42704';

CREATE FUNCTION aq.drop_queue_table(queue_table text, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_drop';
COMMENT ON FUNCTION aq.drop_queue_table(text, boolean) IS
'Drop a queue table, its exception queue and the views on it; force: with all its queues and their messages. Waits for transactions that use them. For the queue table''s owner. Errors 2BP01, 42704, 55000';

CREATE FUNCTION aq.convert_queue(queue_name text, shards integer DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_convert_queue';
COMMENT ON FUNCTION aq.convert_queue(text, integer) IS
'Convert a queue of a queue table to a sharded queue, while it is in use. From the commit on, new messages go into the sharded store. Those in the queue table are dequeued first, unchanged; after the last one the queue leaves its queue table. shards as in aq.create_queue. For the queue''s owner. Errors 0A000, 22023, 42501, 42704';

CREATE FUNCTION aq.conversion_obstacles(queue_name text, OUT obstacle text, OUT hint text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_convert_obstacles';
COMMENT ON FUNCTION aq.conversion_obstacles(text) IS
'The reasons for which aq.convert_queue would refuse the queue, and what to do about them; no row: it would convert the queue. Errors 22023, 42501, 42704';

CREATE FUNCTION aq.alter_queue(queue_name text, max_retries integer DEFAULT NULL,
	retry_delay interval DEFAULT NULL, retention interval DEFAULT NULL,
	exception_queue text DEFAULT NULL, comment text DEFAULT NULL,
	new_owner regrole DEFAULT NULL, new_name text DEFAULT NULL,
	retry_delay_factor double precision DEFAULT NULL, retry_delay_max interval DEFAULT NULL, retry_jitter double precision DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_alter_queue';
COMMENT ON FUNCTION aq.alter_queue IS
'Change a queue; null leaves a setting unchanged. max_retries -1: no limit, otherwise at most 255 in a sharded queue; retry_delay_max ''-1'': no limit; exception_queue none: messages that fail are dropped; comment '''': none; new_name also renames the exception queue that was made for the queue and is named after it, and new_owner is its owner, too. Messages that wait for their retry delay keep it. For the queue''s owner. Errors 22004, 22023, 42501, 42602, 42704, 42710, 42809';

CREATE FUNCTION aq.drop_queue(queue_name text, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_drop_queue';
COMMENT ON FUNCTION aq.drop_queue(text, boolean) IS
'Drop a queue, its tables and the exception queue that was made for it; force: even if one of them holds messages. Waits for transactions that use the queue. For the queue''s owner. Errors 2BP01, 42501, 42704, 55000';

CREATE PROCEDURE aq.drop_queues(pattern text, force boolean DEFAULT false, owner text DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_drop_many';
COMMENT ON PROCEDURE aq.drop_queues(text, boolean, text) IS
'Drop the queues whose names match the LIKE pattern (%: all) and that belong to owner (a role''s name without quotes; null: any role), as aq.drop_queue does. Queues that the caller may not drop are left out. Commits whenever a transaction has locked about a thousand objects, and reports the number of queues that are dropped: so it must be called by CALL, outside a transaction block and outside a function. An error undoes only what was not committed yet; call it again after that. Queue tables are not dropped. For owners of queues. Errors 22004, 25001, 2BP01, 42704, 55000';

CREATE FUNCTION aq.start_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_start_queue';
COMMENT ON FUNCTION aq.start_queue(text, boolean, boolean) IS
'Allow enqueue and dequeue again; false leaves that setting unchanged. For the queue''s owner. Errors 42501, 42704';

CREATE FUNCTION aq.stop_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true,
	wait boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_stop_queue';
COMMENT ON FUNCTION aq.stop_queue(text, boolean, boolean, boolean) IS
'Refuse enqueue and dequeue from the commit on; false leaves that setting unchanged. wait: refuse them at once to transactions that do not use the queue yet, and wait for the end of those that do, including prepared ones; fails with 40P01 if one of them waits for this transaction. For the queue''s owner. Errors 42501, 42704';

CREATE FUNCTION aq.purge_queue(queue_name text, consumer text DEFAULT NULL, condition text DEFAULT NULL,
	delivery_mode text DEFAULT NULL, "block" boolean DEFAULT false)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_purge_queue';
COMMENT ON FUNCTION aq.purge_queue(text, text, text, text, boolean) IS
'Remove messages without reading them, in the caller''s transaction: of one consumer or of all, those that meet the condition or all, of delivery_mode persistent (null), buffered or persistent_or_buffered. Returns the number of removed (message, consumer) pairs. Messages that other transactions have locked remain, and leased ones: aq.end_leases ends their leases first. With block, it waits for them, and other sessions wait until the purge commits. For the queue''s owner. Errors 22023, 42501, 42704, AQ018';

CREATE FUNCTION aq.check(patience interval DEFAULT '3 seconds', OUT queue_name text, OUT store text, OUT place text, OUT what text,
	OUT in_memory bigint, OUT expected bigint, OUT detail text)
RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_check';
COMMENT ON FUNCTION aq.check(interval) IS
'Compare shared memory with the tables and with itself; one row for each difference. Differences are read again for as long as patience, because concurrent work looks like a difference. Reads all messages of the queues that are in memory. For superusers';
REVOKE EXECUTE ON FUNCTION aq.check FROM PUBLIC;

CREATE FUNCTION aq.subscribe(queue_name text, consumer text, rule text DEFAULT NULL, comment text DEFAULT NULL,
	delivery_mode text DEFAULT NULL, if_not_exists boolean DEFAULT false, temporary boolean DEFAULT false)
RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_add';
COMMENT ON FUNCTION aq.subscribe(text, text, text, text, text, boolean, boolean) IS
'Add a subscriber; returns its name. It gets the messages that are enqueued after this commits and that satisfy the rule, an SQL condition over priority, correlation, properties, payload and the fields of a composite payload (names are looked up in pg_catalog; it runs with the privileges of the calling role). A rule that raises an error counts as false, and is counted in aq.subscribers. delivery_mode: persistent (null), buffered or persistent_or_buffered, the messages that it gets; it cannot be changed. For the queue''s owner, and roles with the subscribe privilege: these also get the right to dequeue for the subscriber, and the name must be neither in use nor granted to another role. if_not_exists: does nothing if a subscriber of this name exists; it keeps its rule. temporary: the server removes it, with its messages, when the session ends, however it ends. With both, a temporary subscriber that exists, and that the role could remove, belongs to this session as well, and is removed when the last of its sessions has ended; with if_not_exists alone it becomes lasting. Errors 22023, 42501, 42602, 42704, 42710, 42809, 54000, AQ018';

CREATE FUNCTION aq.alter_subscriber(queue_name text, consumer text, rule text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_alter';
COMMENT ON FUNCTION aq.alter_subscriber(text, text, text) IS
'Replace a subscriber''s rule for messages enqueued from then on; null: every message. The rule runs with the privileges of the calling role. For the queue''s owner, and, with the subscribe privilege, the role that subscribed it. Errors 42501, 42704, AQ018';

CREATE FUNCTION aq.unsubscribe(queue_name text, consumer text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_remove';
COMMENT ON FUNCTION aq.unsubscribe(text, text) IS
'Remove a consumer and its messages. For the queue''s owner, and, with the subscribe privilege, the role that subscribed it. Errors 42501, 42704';

CREATE FUNCTION aq.grant_queue(queue_name text, grantee text, privilege text DEFAULT 'all',
	grant_option boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_grant';
COMMENT ON FUNCTION aq.grant_queue(text, text, text, boolean) IS
'Grant privileges on a queue: enqueue, dequeue, subscribe, a list of these (enqueue, dequeue), or all. grantee: a role''s name without quotes, or PUBLIC (also: null). dequeue: for every consumer, in contrast to aq.grant_consumer; subscribe: aq.subscribe, and altering and removing the subscribers that the role has subscribed; its rules run inside enqueuers'' transactions, and its open transaction can hold the lock of the queue''s definition, so that enqueues that name a new recipient wait. grant_option: the role may grant them to others. For the queue''s owner, and roles with the grant option. Errors 22023, 42501, 42704';

CREATE FUNCTION aq.revoke_queue(queue_name text, grantee text, privilege text DEFAULT 'all')
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_revoke';
COMMENT ON FUNCTION aq.revoke_queue(text, text, text) IS
'Revoke enqueue, dequeue, subscribe, a list of these or all on a queue from a role or PUBLIC (also: null), and what the role has granted by its grant option. Subscribers of the role and rights on single consumers remain: see aq.unsubscribe and aq.revoke_consumer. The queue''s owner revokes grants made in the owner''s name; any other role revokes its own grants. Errors 22023, 42501, 42704';

CREATE FUNCTION aq.grant_consumer(queue_name text, consumer text, grantee text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_grant_consumer';
COMMENT ON FUNCTION aq.grant_consumer(text, text, text) IS
'Allow a role to dequeue, browse, wait and listen for one consumer of a topic, and to see its messages and counters. grantee: a role''s name without quotes, or PUBLIC (also: null). The name need not be a consumer''s yet. For the queue''s owner. Errors 42501, 42602, 42704, 42809';

CREATE FUNCTION aq.revoke_consumer(queue_name text, consumer text, grantee text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_rights_revoke_consumer';
COMMENT ON FUNCTION aq.revoke_consumer(text, text, text) IS
'Revoke the right of a role or PUBLIC (also: null) on one consumer; its sessions that wait for this consumer get an error. For the queue''s owner. Errors 42501, 42704, 42809';

CREATE FUNCTION aq.set_shards(queue_name text, shards integer) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_set_shards';
COMMENT ON FUNCTION aq.set_shards(text, integer) IS
'Change the number of shards of a sharded queue that is stopped and has not been used. shards: 1 to 32. For the queue''s owner';

CREATE FUNCTION aq.mark_hot(queue_name text, hot boolean DEFAULT true) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_shared_pool_mark_hot';
COMMENT ON FUNCTION aq.mark_hot(text, boolean) IS
'Give a queue copies of its entry in the object cache, so that sessions do not all use the same mutex; pgaq.hot_object_copies says how many; hot: false drops the copies. Not part of the transaction; superusers grant EXECUTE';
REVOKE EXECUTE ON FUNCTION aq.mark_hot(text, boolean) FROM PUBLIC;
