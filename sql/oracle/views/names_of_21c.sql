-- Views of Oracle that show what others show, under the names of 21c, and privileges, notification and propagation under Oracle's names.

CALL aq_internal.make_view('sys', 'v$eq_message_cache_stat', 'The same as v$aq_message_cache_stat, with the name of 21c', 'FROM sys.v$aq_message_cache_stat', $$
	num_evicted
	num_prefetched
	num_unevicted
	num_uncached
	num_tracked
	num_cached
	max_subsh_size
	min_subsh_size
	mean_subsh_size
	avg_miss_ratio
	con_id
$$, 'sys.v$aq_message_cache_stat');
GRANT SELECT ON sys.v$eq_message_cache_stat TO aq_administrator_role;

CALL aq_internal.make_view('sys', 'v$eq_message_cache_advice', 'The same as v$aq_message_cache_advice, with the names of 21c', 'FROM sys.v$aq_message_cache_advice', $$
	size_for_estimate
	size_factor
	estd_size_type
	estd_cached_partitions = estd_cached_subshards
	estd_uncached_partitions = estd_uncached_subshards
	estd_evictions
	estd_eviction_rate
	estd_fg_unevictions
	estd_fg_uneviction_rate
	estd_bg_unevictions
	estd_bg_uneviction_rate
	avg_partition_size = avg_subshard_size
	avg_partition_memory = avg_subshard_memory
	con_id
$$, 'sys.v$aq_message_cache_advice');
GRANT SELECT ON sys.v$eq_message_cache_advice TO PUBLIC;

CALL aq_internal.make_view('sys', 'v$eq_partition_stats', 'The same as v$aq_partition_stats, with the name of 21c', 'FROM sys.v$aq_partition_stats', $$
	queue_id
	partitions_qt
	used_partitions_qt
	cached_partitions_qt
	partitions_dq
	bytes
	add_partition_fg
	add_partition_bg
	trunc_partition_qt
	trunc_partition_dq
	con_id
$$, 'sys.v$aq_partition_stats');
GRANT SELECT ON sys.v$eq_partition_stats TO PUBLIC;

CALL aq_internal.make_view('sys', 'v$eq_subscriber_load', 'The backlog of each subscriber of a sharded queue: as v$aq_subscriber_load, with names',
	$$FROM sys.v$aq_subscriber_load l JOIN aq.queues q ON q.queue_id = l.queue_id LEFT JOIN LATERAL (SELECT x.consumer FROM sys._queue_consumers(q.queue_name) x WHERE x."position" = l.subscriber_id) c ON true$$, $$
	queue_id = l.queue_id
	queue_schema = sys._oracle_case(sys._name_schema(q.queue_name)) | schema of the queue; null for a queue of aq.create_queue
	queue_name = sys._oracle_case(sys._bare_name(q.queue_name)) | name of the queue
	subscriber_id = l.subscriber_id
	subscriber_name = sys._oracle_case(c.consumer) | name of the subscriber; null: the queue has a single consumer
	latency_state
	latency
	dequeue_requests
	active_event_stream_id = active_shards
	active_listener
	dequeue_sessions
	con_id
$$, 'sys.v$aq_subscriber_load');
GRANT SELECT ON sys.v$eq_subscriber_load TO PUBLIC;

CALL aq_internal.make_view('sys', 'queue_privileges', 'Privileges granted on queues: those of the current role and of PUBLIC, and on the queues that it can administer',
	$$FROM aq.privileges p WHERE p.privilege IN ('enqueue', 'dequeue') GROUP BY p.queue_name, p.grantee, p.grantor$$, $$
	grantee = coalesce(sys._oracle_case(p.grantee::text), 'PUBLIC') | role that has the privileges, or PUBLIC
	owner = sys._oracle_case(sys._name_schema(p.queue_name)) | schema of the queue; null for a queue of aq.create_queue
	name = sys._oracle_case(sys._bare_name(p.queue_name)) | name of the queue
	grantor = sys._oracle_case(p.grantor::text) | role that granted them
	enqueue_privilege = bool_or(p.privilege = 'enqueue')::integer | 1: may enqueue, 0: may not by this grant
	dequeue_privilege = bool_or(p.privilege = 'dequeue')::integer | 1: may dequeue, 0: may not by this grant
$$);
GRANT SELECT ON sys.queue_privileges TO PUBLIC;

CALL aq_internal.make_view('sys', 'v$subscr_registration_stats', 'Notifications of each registration of the roles whose member the current role is; members of pg_monitor see all', 'FROM aq.registrations', $$
	reg_id = registration_id | number of the registration, as in dba_subscr_registrations
	num_ntfns = notifications
	num_grouping_ntfns = NULL::bigint | always null: groups are not counted apart
	last_ntfn_sent_time = last_notification
	num_retries = failures
	last_err = last_error
	last_err_time = last_error_time
	con_id = NULL::integer | always null
$$);
GRANT SELECT ON sys.v$subscr_registration_stats TO PUBLIC;

CALL aq_internal.make_view('sys', 'v$propagation_sender', 'Propagation schedules of the queues that the current role can use, persistent messages; members of pg_monitor see all',
	'FROM aq.propagations p JOIN aq_internal.queue q ON q.queue_name = p.queue_name', $$
	queue_id = q.queue_id | number of the queue
	queue_schema = sys._oracle_case(sys._name_schema(p.queue_name)) | schema of the queue; null for a queue of aq.create_queue
	queue_name = sys._oracle_case(sys._bare_name(p.queue_name)) | name of the queue
	dst_queue_schema = sys._oracle_case(sys._name_schema(nullif(split_part(p.destination, '@', 1), ''))) | schema of the queue that gets the messages; null: it has none, or the schedule is for several queues
	dst_queue_name = sys._oracle_case(sys._bare_name(nullif(split_part(p.destination, '@', 1), ''))) | name of the queue that gets the messages; null: the schedule is for several queues
	startup_time = p.start_time
	dblink = substring(p.destination, '@(.*)$') | the server of another database; null: this database
	schedule_status = CASE WHEN p.state IN ('disabled', 'diverged') THEN 'SCHEDULE DISABLED' ELSE 'SCHEDULE ENABLED' END | SCHEDULE ENABLED or SCHEDULE DISABLED; aq.propagations tells more
	total_msgs = p.messages
	total_bytes = p.bytes
	elapsed_propagation_time = p.elapsed_us / 10000 | total time of the transactions that have moved them, hundredths of a second
	max_num_per_win = p.most_messages
	max_size = p.most_bytes
	last_msg_propagation_time = p.last_run
	con_id = NULL::integer | always null
$$);
GRANT SELECT ON sys.v$propagation_sender TO PUBLIC;
