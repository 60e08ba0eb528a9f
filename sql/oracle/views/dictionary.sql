-- Oracle's dictionary views. Names are spelled as in Oracle (sys._oracle_case); OWNER is the schema in the name. DBA_ views show all queues
-- and are for administrators; ALL_ views show those that the current role may use, USER_ views those that it owns.

-- A helper of the installation, dropped by made.sql. It creates a view, under another name, of the rows of a DBA_ view that a role may see, with all
-- columns and their comments, except the columns in the list.
CREATE PROCEDURE sys._make_variant(name text, of_view text, comment text, condition text, without text DEFAULT '')
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
DECLARE
	columns name[] := ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = format('sys.%I', of_view)::regclass AND a.attnum > 0
		AND a.attname <> ALL (string_to_array(without, ', ')) ORDER BY a.attnum);
BEGIN
	EXECUTE format('CREATE VIEW sys.%I AS SELECT %s FROM sys.%I d WHERE %s', name,
		(SELECT string_agg(format('d.%I', c), ', ' ORDER BY n) FROM unnest(columns) WITH ORDINALITY u(c, n)), of_view, condition);
	EXECUTE format('COMMENT ON VIEW sys.%I IS %L', name, comment);
	FOR n IN 1 .. cardinality(columns) LOOP
		EXECUTE format('COMMENT ON COLUMN sys.%I.%I IS %L', name, columns[n], (SELECT col_description(a.attrelid, a.attnum) FROM pg_attribute a
			WHERE a.attrelid = format('sys.%I', of_view)::regclass AND a.attname = columns[n]));
	END LOOP;
	EXECUTE format('GRANT SELECT ON sys.%I TO PUBLIC', name);
END $make$;

CREATE VIEW sys.dual AS SELECT 'X'::text AS dummy;
COMMENT ON VIEW sys.dual IS 'One row, for queries without a table';
COMMENT ON COLUMN sys.dual.dummy IS 'X';
GRANT SELECT ON sys.dual TO PUBLIC;

CREATE FUNCTION sys._owned(rights_id integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'aq_data' AND c.relname = 'q' || $1 AND pg_get_userbyid(c.relowner) = current_user);
END;
COMMENT ON FUNCTION sys._owned(integer) IS 'Internal: does the current role own the queue with this rights_id?';

CREATE FUNCTION sys._oracle_type(type regtype) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN CASE type WHEN 'bytea'::regtype THEN 'RAW' WHEN 'jsonb'::regtype THEN 'JSON' ELSE 'OBJECT' END;
COMMENT ON FUNCTION sys._oracle_type(regtype) IS 'Internal: kind of a payload type';

CREATE FUNCTION sys._oracle_type_name(type regtype) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT CASE y.oid WHEN 'bytea'::regtype THEN NULL WHEN 'jsonb'::regtype THEN NULL WHEN 'xml'::regtype THEN 'SYS.XMLTYPE'
		WHEN 'text'::regtype THEN 'VARCHAR2' ELSE sys._oracle_case(n.nspname) || '.' || sys._oracle_case(y.typname) END
	FROM pg_type y JOIN pg_namespace n ON n.oid = y.typnamespace WHERE y.oid = type;
END;
COMMENT ON FUNCTION sys._oracle_type_name(regtype) IS 'Internal: name of an object payload type';

CREATE FUNCTION sys._yes_no(answer boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN answer THEN 'YES' ELSE 'NO' END;
COMMENT ON FUNCTION sys._yes_no(boolean) IS 'Internal: YES or NO';

CREATE VIEW sys.dba_queues AS
SELECT
	sys._oracle_case(sys._name_schema(q.queue_name)) AS owner, sys._oracle_case(sys._bare_name(q.queue_name)) AS name,
	CASE WHEN q.queue_type <> 'non_persistent' THEN sys._oracle_case(coalesce(t.table_name, sys._bare_name(q.queue_name)))
		WHEN q.multiple_consumers THEN 'AQ$_MEM_MC' ELSE 'AQ$_MEM_SC' END AS queue_table, q.queue_id AS qid,
	CASE q.queue_type WHEN 'exception' THEN 'EXCEPTION_QUEUE' WHEN 'non_persistent' THEN 'NON_PERSISTENT_QUEUE' ELSE 'NORMAL_QUEUE' END AS queue_type,
	q.max_retries,
	extract(epoch FROM q.retry_delay)::integer AS retry_delay, sys._yes_no(q.enqueue_enabled) AS enqueue_enabled,
	sys._yes_no(q.dequeue_enabled) AS dequeue_enabled,
	CASE WHEN q.retention >= '1000 years' THEN 'FOREVER' ELSE extract(epoch FROM q.retention)::bigint::text END AS retention,
	q.comment AS user_comment, NULL::text AS network_name,
	CASE WHEN q.store <> 'c' AND q.queue_type <> 'non_persistent' THEN 'TRUE' ELSE 'FALSE' END AS sharded,
	CASE WHEN q.store <> 'c' AND q.queue_type <> 'non_persistent' THEN 'Transactional Event Queue' ELSE 'Classic Queue' END AS queue_category,
	CASE WHEN q.multiple_consumers THEN 'MULTIPLE' ELSE 'SINGLE' END AS recipients
FROM aq_internal.queue q LEFT JOIN aq_internal.queue_table t ON t.queue_table_id = q.queue_table_id;
COMMENT ON VIEW sys.dba_queues IS 'All queues';
COMMENT ON COLUMN sys.dba_queues.owner IS 'schema of the queue; null for a queue of aq.create_queue';
COMMENT ON COLUMN sys.dba_queues.name IS 'name';
COMMENT ON COLUMN sys.dba_queues.queue_table IS 'queue table; of a sharded queue its own name, of a non-persistent one AQ$_MEM_SC or AQ$_MEM_MC';
COMMENT ON COLUMN sys.dba_queues.qid IS 'number of the queue';
COMMENT ON COLUMN sys.dba_queues.queue_type IS 'NORMAL_QUEUE, EXCEPTION_QUEUE or NON_PERSISTENT_QUEUE';
COMMENT ON COLUMN sys.dba_queues.max_retries IS 'rolled back dequeues before a message goes to the exception queue; null: no limit';
COMMENT ON COLUMN sys.dba_queues.retry_delay IS 'seconds of retry delay after a rolled back dequeue';
COMMENT ON COLUMN sys.dba_queues.enqueue_enabled IS 'YES or NO';
COMMENT ON COLUMN sys.dba_queues.dequeue_enabled IS 'YES or NO';
COMMENT ON COLUMN sys.dba_queues.retention IS 'seconds for which consumed messages remain visible, or FOREVER';
COMMENT ON COLUMN sys.dba_queues.user_comment IS 'comment';
COMMENT ON COLUMN sys.dba_queues.network_name IS 'always null';
COMMENT ON COLUMN sys.dba_queues.sharded IS 'TRUE or FALSE';
COMMENT ON COLUMN sys.dba_queues.queue_category IS 'the store of its messages';
COMMENT ON COLUMN sys.dba_queues.recipients IS 'SINGLE or MULTIPLE';
GRANT SELECT ON sys.dba_queues TO aq_administrator_role;

CALL sys._make_variant('all_queues', 'dba_queues', 'Queues that the current role can use',
	$$aq_internal.may((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.qid), 'ANY')$$);

CALL sys._make_variant('all_dequeue_queues', 'dba_queues', 'Queues from which the current role can dequeue',
	-- the right on one consumer does not include the queue's default exception queue
	$$(SELECT aq_internal.may(q.rights_id, CASE WHEN q.rights_id = q.queue_id THEN 'CONSUMER' ELSE 'DELETE' END)
		FROM aq_internal.queue q WHERE q.queue_id = d.qid)$$);

CALL sys._make_variant('user_queues', 'dba_queues', 'Queues that the current role owns',
	$$sys._owned((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.qid))$$, 'owner');

CREATE VIEW sys.dba_queue_tables AS
SELECT sys._oracle_case(t.schema_name) AS owner, sys._oracle_case(t.table_name) AS queue_table, sys._oracle_type(t.payload_type) AS type,
	sys._oracle_type_name(t.payload_type) AS object_type,
	CASE WHEN t.sort_list = '{}' THEN 'ENQUEUE_TIME'
		ELSE replace(upper(array_to_string(t.sort_list, ', ')), 'ENQ_TIME', 'ENQUEUE_TIME') END AS sort_order,
	CASE WHEN t.multiple_consumers THEN 'MULTIPLE' ELSE 'SINGLE' END AS recipients,
	CASE WHEN t.message_grouping THEN 'TRANSACTIONAL' ELSE 'NONE' END AS message_grouping, t.compatible,
	0 AS primary_instance, 0 AS secondary_instance, 1 AS owner_instance, t.comment AS user_comment,
	sys._yes_no(t.secure) AS secure, 'NONE' AS replication_mode
FROM aq_internal.queue_table t
UNION ALL
SELECT sys._oracle_case(sys._name_schema(q.queue_name)), sys._oracle_case(sys._bare_name(q.queue_name)), sys._oracle_type(q.payload_type),
	sys._oracle_type_name(q.payload_type), 'PRIORITY, ENQUEUE_TIME', CASE WHEN q.multiple_consumers THEN 'MULTIPLE' ELSE 'SINGLE' END,
	'NONE', '12.1', 0, 0, 1, q.comment, 'NO', 'NONE'
FROM aq_internal.queue q WHERE q.store <> 'c';
COMMENT ON VIEW sys.dba_queue_tables IS 'All queue tables';
COMMENT ON COLUMN sys.dba_queue_tables.owner IS 'schema of the queue table';
COMMENT ON COLUMN sys.dba_queue_tables.queue_table IS 'name; a sharded queue counts as its own queue table';
COMMENT ON COLUMN sys.dba_queue_tables.type IS 'kind of payload: RAW, JSON or OBJECT';
COMMENT ON COLUMN sys.dba_queue_tables.object_type IS 'payload type of OBJECT';
COMMENT ON COLUMN sys.dba_queue_tables.sort_order IS 'order of dequeue';
COMMENT ON COLUMN sys.dba_queue_tables.recipients IS 'SINGLE or MULTIPLE';
COMMENT ON COLUMN sys.dba_queue_tables.message_grouping IS 'NONE or TRANSACTIONAL';
COMMENT ON COLUMN sys.dba_queue_tables.compatible IS 'release that it was created compatible with';
COMMENT ON COLUMN sys.dba_queue_tables.primary_instance IS 'always 0';
COMMENT ON COLUMN sys.dba_queue_tables.secondary_instance IS 'always 0';
COMMENT ON COLUMN sys.dba_queue_tables.owner_instance IS 'always 1';
COMMENT ON COLUMN sys.dba_queue_tables.user_comment IS 'comment';
COMMENT ON COLUMN sys.dba_queue_tables.secure IS 'always NO';
COMMENT ON COLUMN sys.dba_queue_tables.replication_mode IS 'always NONE';
GRANT SELECT ON sys.dba_queue_tables TO aq_administrator_role;

CALL sys._make_variant('all_queue_tables', 'dba_queue_tables', 'Queue tables of the queues that the current role can use',
	$$EXISTS (SELECT FROM sys.all_queues a WHERE a.owner IS NOT DISTINCT FROM d.owner AND a.queue_table = d.queue_table)$$);

CALL sys._make_variant('user_queue_tables', 'dba_queue_tables', 'Queue tables of the queues that the current role owns',
	$$EXISTS (SELECT FROM sys.dba_queues a WHERE a.owner IS NOT DISTINCT FROM d.owner AND a.queue_table = d.queue_table AND sys._owned((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = a.qid)))$$, 'owner');

CREATE VIEW sys.dba_queue_subscribers AS
SELECT
	q.owner, q.name AS queue_name, q.queue_table, (sys._agent_of(s.consumer)).name AS consumer_name, (sys._agent_of(s.consumer)).address,
	(sys._agent_of(s.consumer)).protocol::integer AS protocol, sys._oracle_case(s.transformation) AS transformation, s.rule,
	sys._oracle_delivery(s.delivery_mode) AS delivery_mode,
	'NO' AS if_nondurable_subscriber, 'FALSE' AS queue_to_queue, s."position"::integer AS subscriber_id,
	s."position"::integer AS pos_bitmap, q.qid
FROM sys.dba_queues q JOIN aq_internal.subscriber s ON s.queue_id = q.qid WHERE s.kind = 'subscriber';
COMMENT ON VIEW sys.dba_queue_subscribers IS 'Subscribers of all queues, without recipients that are not subscribers';
COMMENT ON COLUMN sys.dba_queue_subscribers.owner IS 'schema of the queue';
COMMENT ON COLUMN sys.dba_queue_subscribers.queue_name IS 'name of the queue';
COMMENT ON COLUMN sys.dba_queue_subscribers.queue_table IS 'its queue table';
COMMENT ON COLUMN sys.dba_queue_subscribers.consumer_name IS 'name of the subscriber; null: the subscribers at the address';
COMMENT ON COLUMN sys.dba_queue_subscribers.address IS 'queue to which its messages are propagated; null: this one';
COMMENT ON COLUMN sys.dba_queue_subscribers.protocol IS '0 with an address, else null';
COMMENT ON COLUMN sys.dba_queue_subscribers.transformation IS 'transformation of its payloads; null: none';
COMMENT ON COLUMN sys.dba_queue_subscribers.rule IS 'condition that messages must meet; null: none';
COMMENT ON COLUMN sys.dba_queue_subscribers.delivery_mode IS 'which messages it gets: PERSISTENT, BUFFERED or PERSISTENT_OR_BUFFERED';
COMMENT ON COLUMN sys.dba_queue_subscribers.if_nondurable_subscriber IS 'always NO';
COMMENT ON COLUMN sys.dba_queue_subscribers.queue_to_queue IS 'always FALSE';
COMMENT ON COLUMN sys.dba_queue_subscribers.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.dba_queue_subscribers.pos_bitmap IS 'its bit in the messages'' sets of consumers';
COMMENT ON COLUMN sys.dba_queue_subscribers.qid IS 'number of the queue';
GRANT SELECT ON sys.dba_queue_subscribers TO aq_administrator_role;

CALL sys._make_variant('all_queue_subscribers', 'dba_queue_subscribers', 'Subscribers of the queues that the current role can use',
	$$aq_internal.may((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.qid), 'ANY') AND aq_internal.shows_consumer(d.qid, d.subscriber_id)$$);

CALL sys._make_variant('user_queue_subscribers', 'dba_queue_subscribers', 'Subscribers of the queues that the current role owns',
	$$sys._owned((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.qid))$$, 'owner');

CREATE VIEW sys.dba_queue_schedules AS
SELECT
	q.owner AS schema, q.name AS qname, sys._oracle_address(p.destination) AS destination, p.start_time AS start_date,
	to_char(p.start_time, 'HH24:MI:SS') AS start_time, extract(epoch FROM p.duration)::bigint AS propagation_window,
	'SYSDATE + ' || extract(epoch FROM p.every - p.duration)::bigint || '/86400' AS next_time, extract(epoch FROM p.latency)::bigint AS latency,
	CASE WHEN p.enabled THEN 'N' ELSE 'Y' END AS schedule_disabled, NULL::text AS process_name,
	(SELECT a.pid::text FROM pg_stat_activity a WHERE a.backend_type = 'pgaq propagation' AND a.datname = current_database() AND p.enabled LIMIT 1) AS session_id,
	1 AS instance, p.last_run AS last_run_date, to_char(p.last_run, 'HH24:MI:SS') AS last_run_time,
	p.elapsed / 1000000 AS total_time, p.messages AS total_number, p.bytes AS total_bytes, p.most_messages AS max_number, p.most_bytes AS max_bytes,
	round(p.messages::numeric / nullif(p.batches, 0), 2) AS avg_number, round(p.bytes::numeric / nullif(p.messages, 0), 2) AS avg_size,
	round(p.elapsed::numeric / 1000000 / nullif(p.messages, 0), 6) AS avg_time, p.failures, p.last_error_time AS last_error_date,
	to_char(p.last_error_time, 'HH24:MI:SS') AS last_error_time, CASE WHEN pg_has_role(p.role::oid, 'USAGE') OR pg_has_role('pg_monitor', 'USAGE') THEN p.last_error END AS last_error_msg, 'PERSISTENT' AS message_delivery_mode,
	NULL::text AS job_name, q.qid
FROM sys.dba_queues q JOIN aq_internal.propagation p ON p.queue_id = q.qid;
COMMENT ON VIEW sys.dba_queue_schedules IS 'All propagation schedules';
COMMENT ON COLUMN sys.dba_queue_schedules.schema IS 'schema of the queue';
COMMENT ON COLUMN sys.dba_queue_schedules.qname IS 'name of the queue';
COMMENT ON COLUMN sys.dba_queue_schedules.destination IS 'queue that gets the messages, QUEUE@SERVER in another database; null, @SERVER: all addresses in this database, or there, without a schedule of their own';
COMMENT ON COLUMN sys.dba_queue_schedules.start_date IS 'when the first window begins';
COMMENT ON COLUMN sys.dba_queue_schedules.start_time IS 'its time of day';
COMMENT ON COLUMN sys.dba_queue_schedules.propagation_window IS 'seconds of a window; null: without end';
COMMENT ON COLUMN sys.dba_queue_schedules.next_time IS 'when the next window begins, computed at the end of one; null: there is one';
COMMENT ON COLUMN sys.dba_queue_schedules.latency IS 'seconds of the pause after the queue was found empty';
COMMENT ON COLUMN sys.dba_queue_schedules.schedule_disabled IS 'Y or N';
COMMENT ON COLUMN sys.dba_queue_schedules.process_name IS 'always null';
COMMENT ON COLUMN sys.dba_queue_schedules.session_id IS 'process id of the background process; null: disabled';
COMMENT ON COLUMN sys.dba_queue_schedules.instance IS 'always 1';
COMMENT ON COLUMN sys.dba_queue_schedules.last_run_date IS 'when messages were last propagated';
COMMENT ON COLUMN sys.dba_queue_schedules.last_run_time IS 'its time of day';
COMMENT ON COLUMN sys.dba_queue_schedules.total_time IS 'seconds spent on propagation';
COMMENT ON COLUMN sys.dba_queue_schedules.total_number IS 'messages propagated';
COMMENT ON COLUMN sys.dba_queue_schedules.total_bytes IS 'their payloads, bytes';
COMMENT ON COLUMN sys.dba_queue_schedules.max_number IS 'messages in the largest batch';
COMMENT ON COLUMN sys.dba_queue_schedules.max_bytes IS 'bytes in the largest batch';
COMMENT ON COLUMN sys.dba_queue_schedules.avg_number IS 'messages per batch';
COMMENT ON COLUMN sys.dba_queue_schedules.avg_size IS 'bytes per message';
COMMENT ON COLUMN sys.dba_queue_schedules.avg_time IS 'seconds per message';
COMMENT ON COLUMN sys.dba_queue_schedules.failures IS 'errors in a row; 16 disable the schedule';
COMMENT ON COLUMN sys.dba_queue_schedules.last_error_date IS 'when the last error was';
COMMENT ON COLUMN sys.dba_queue_schedules.last_error_time IS 'its time of day';
COMMENT ON COLUMN sys.dba_queue_schedules.last_error_msg IS 'its message; only for members of the role that has scheduled it and of pg_monitor';
COMMENT ON COLUMN sys.dba_queue_schedules.message_delivery_mode IS 'PERSISTENT: buffered messages are not propagated';
COMMENT ON COLUMN sys.dba_queue_schedules.job_name IS 'always null';
COMMENT ON COLUMN sys.dba_queue_schedules.qid IS 'number of the queue';
GRANT SELECT ON sys.dba_queue_schedules TO aq_administrator_role;

CALL sys._make_variant('user_queue_schedules', 'dba_queue_schedules', 'Propagation schedules of the queues that the current role owns',
	$$sys._owned((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.qid))$$, 'schema');

CREATE VIEW sys.dba_transformations AS
SELECT
	t.oid AS transformation_id, sys._oracle_case(t.schema_name) AS owner, sys._oracle_case(t.name) AS name,
	coalesce(sys._oracle_type_name(t.from_type), sys._oracle_type(t.from_type)) AS from_type,
	coalesce(sys._oracle_type_name(t.to_type), sys._oracle_type(t.to_type)) AS to_type
FROM sys._transformations() t;
COMMENT ON VIEW sys.dba_transformations IS 'All transformations, created by dbms_transform';
COMMENT ON COLUMN sys.dba_transformations.transformation_id IS 'number of its function';
COMMENT ON COLUMN sys.dba_transformations.owner IS 'schema';
COMMENT ON COLUMN sys.dba_transformations.name IS 'name';
COMMENT ON COLUMN sys.dba_transformations.from_type IS 'type of the payload given';
COMMENT ON COLUMN sys.dba_transformations.to_type IS 'type of the resulting payload';
GRANT SELECT ON sys.dba_transformations TO aq_administrator_role;

CREATE VIEW sys.dba_attribute_transformations AS
SELECT
	sys._oracle_case(t.schema_name) AS owner, sys._oracle_case(t.name) AS name, a.key::integer AS attribute,
	a.value AS attribute_transformation
FROM sys._transformations() t, LATERAL jsonb_each_text(t.parts) a;
COMMENT ON VIEW sys.dba_attribute_transformations IS 'All transformations, by attribute';
COMMENT ON COLUMN sys.dba_attribute_transformations.owner IS 'schema';
COMMENT ON COLUMN sys.dba_attribute_transformations.name IS 'name';
COMMENT ON COLUMN sys.dba_attribute_transformations.attribute IS 'number of the attribute; 0: the whole payload';
COMMENT ON COLUMN sys.dba_attribute_transformations.attribute_transformation IS 'expression over source.user_data';
GRANT SELECT ON sys.dba_attribute_transformations TO aq_administrator_role;

CALL sys._make_variant('all_transformations', 'dba_transformations', 'Transformations that the current role can use, created by dbms_transform',
	$$has_function_privilege(d.transformation_id, 'EXECUTE')$$);

CALL sys._make_variant('all_attribute_transformations', 'dba_attribute_transformations', 'Transformations that the current role can use, by attribute',
	$$EXISTS (SELECT FROM sys.all_transformations a WHERE a.owner = d.owner AND a.name = d.name)$$);

CALL sys._make_variant('user_transformations', 'dba_transformations', 'Transformations that the current role owns, created by dbms_transform',
	$$EXISTS (SELECT FROM pg_proc p WHERE p.oid = d.transformation_id AND p.proowner = current_user::regrole)$$, 'owner');

CALL sys._make_variant('user_attribute_transformations', 'dba_attribute_transformations', 'Transformations that the current role owns, by attribute',
	$$EXISTS (SELECT FROM sys.dba_transformations a JOIN pg_proc p ON p.oid = a.transformation_id WHERE a.owner = d.owner AND a.name = d.name
		AND p.proowner = current_user::regrole)$$, 'owner');
