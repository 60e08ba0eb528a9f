-- Oracle's packages: their schemas, types, roles and tables. Created once; changed only by upgrade scripts.

-- Names are not resolved in schema public, in which other roles may have created objects.
SET LOCAL search_path TO pg_catalog, pg_temp;

-- An existing schema of the same name is neither used nor dropped, because it may contain anything.
DO $$
DECLARE
	taken name := (SELECT n.nspname FROM pg_namespace n WHERE n.nspname IN ('sys', 'dbms_aq', 'dbms_aqadm', 'dbms_transform', 'dbms_aqmigtool', 'dbms_aqelm', 'dbms_aqjms', 'dbms_jms_plsql', 'dbms_shared_pool',
		'dbms_workload_repository', 'dbms_application_info') ORDER BY 1 LIMIT 1);
BEGIN
	IF taken IS NOT NULL THEN
		RAISE duplicate_schema USING MESSAGE = format('schema "%s" already exists', taken), DETAIL = 'The extension pgaq_oracle creates this schema.',
			HINT = format('If it is still needed, rename it: ALTER SCHEMA %I RENAME TO ...; otherwise drop it. Then create the extension again.', taken);
	END IF;
END $$;

CREATE SCHEMA sys;
COMMENT ON SCHEMA sys IS 'Advanced Queuing: performance views under Oracle''s names';
GRANT USAGE ON SCHEMA sys TO PUBLIC;

CREATE SCHEMA dbms_aq;
COMMENT ON SCHEMA dbms_aq IS 'Advanced Queuing: Oracle''s package to enqueue and dequeue';
CREATE SCHEMA dbms_aqadm;
COMMENT ON SCHEMA dbms_aqadm IS 'Advanced Queuing: Oracle''s package to administer queues';
CREATE SCHEMA dbms_transform;
COMMENT ON SCHEMA dbms_transform IS 'Advanced Queuing: Oracle''s package to define transformations';
CREATE SCHEMA dbms_aqmigtool;
COMMENT ON SCHEMA dbms_aqmigtool IS 'Advanced Queuing: Oracle''s package to make sharded queues of queue tables'' queues';
CREATE SCHEMA dbms_aqelm;
COMMENT ON SCHEMA dbms_aqelm IS 'Advanced Queuing: Oracle''s package to configure notification by e-mail and HTTP, not supported';
CREATE SCHEMA dbms_shared_pool;
COMMENT ON SCHEMA dbms_shared_pool IS 'Advanced Queuing: Oracle''s package of what is in shared memory';
CREATE SCHEMA dbms_workload_repository;
COMMENT ON SCHEMA dbms_workload_repository IS 'Advanced Queuing: Oracle''s package of snapshots and reports';
GRANT USAGE ON SCHEMA dbms_workload_repository, dbms_aq, dbms_aqadm, dbms_aqmigtool, dbms_aqelm, dbms_transform, dbms_shared_pool TO PUBLIC;

-- Roles belong to the whole server and remain when the extension is dropped. The setting pgaq.system_role, which only a
-- superuser can give a role, and which a dump of roles includes, shows that the extension made it, in this database or
-- another: its members are meant. Any other role of the name is used only if it has no members and no privileges.
DO $$
DECLARE
	role name;
	attributes record;
BEGIN
	FOREACH role IN ARRAY ARRAY['aq_enqueue_any', 'aq_dequeue_any', 'aq_manage_any', 'aq_user_role',
			'aq_administrator_role'] LOOP
		SELECT r.oid, rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls
				OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE r.oid IN (m.roleid, m.member)) AS used,
			EXISTS (SELECT FROM pg_catalog.pg_db_role_setting s WHERE s.setrole = r.oid AND s.setdatabase = 0
				AND pg_catalog.concat('pgaq.system_role=', role) = ANY (s.setconfig)) AS own
			INTO attributes FROM pg_catalog.pg_roles r WHERE r.rolname = role;
		CONTINUE WHEN attributes.own;
		IF attributes.oid IS NULL THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role);
		ELSIF attributes.used THEN
			RAISE EXCEPTION USING ERRCODE = 'duplicate_object', MESSAGE = pg_catalog.format('role "%s" already exists', role),
				DETAIL = 'It has members, is a member of a role, or has attributes, and was not made by pgaq_oracle.',
				HINT = pg_catalog.format('Rename or drop the role. If its members are to have its privileges on queues, ALTER ROLE %I SET pgaq.system_role = %L.', role, role);
		END IF;
		EXECUTE pg_catalog.format('ALTER ROLE %I SET pgaq.system_role = %L', role, role);
		IF role = 'aq_administrator_role' THEN
			GRANT aq_enqueue_any, aq_dequeue_any, aq_manage_any, aq_user_role TO aq_administrator_role
				WITH ADMIN OPTION;
		END IF;
	END LOOP;
END $$;

CREATE VIEW aq_internal.system_privilege AS SELECT NULL::boolean AS nothing WHERE false;
COMMENT ON VIEW aq_internal.system_privilege IS
'No rows; its privileges are those on all queues: INSERT to enqueue, DELETE to dequeue, TRIGGER to act for every owner';
COMMENT ON COLUMN aq_internal.system_privilege.nothing IS 'a view has a column';
GRANT INSERT ON aq_internal.system_privilege TO aq_enqueue_any;
GRANT DELETE ON aq_internal.system_privilege TO aq_dequeue_any;
GRANT TRIGGER ON aq_internal.system_privilege TO aq_manage_any;

-- Types of schema sys

CREATE TYPE sys.aq$_agent AS (name text, address text, protocol integer);
COMMENT ON TYPE sys.aq$_agent IS 'A producer or consumer of messages';
COMMENT ON COLUMN sys.aq$_agent.name IS 'name of the producer, subscriber or recipient';
COMMENT ON COLUMN sys.aq$_agent.address IS '[schema.]queue; null: the queue of the call';
COMMENT ON COLUMN sys.aq$_agent.protocol IS '0 or null: a queue';

CREATE TYPE sys.aq$_sig_prop AS (signature bytea, canalgo text, digalgo text, sigalgo text, certificate text,
	digval bytea);
COMMENT ON TYPE sys.aq$_sig_prop IS 'Signature of a message; not used';
COMMENT ON COLUMN sys.aq$_sig_prop.signature IS 'not used';
COMMENT ON COLUMN sys.aq$_sig_prop.canalgo IS 'not used';
COMMENT ON COLUMN sys.aq$_sig_prop.digalgo IS 'not used';
COMMENT ON COLUMN sys.aq$_sig_prop.sigalgo IS 'not used';
COMMENT ON COLUMN sys.aq$_sig_prop.certificate IS 'not used';
COMMENT ON COLUMN sys.aq$_sig_prop.digval IS 'not used';

CREATE DOMAIN sys.aq$_recipient_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN sys.aq$_recipient_list_t IS 'Recipients of a message';
CREATE DOMAIN sys.aq$_agent_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN sys.aq$_agent_list_t IS 'Agents to listen for';
CREATE DOMAIN sys.aq$_subscriber_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN sys.aq$_subscriber_list_t IS 'Subscribers of a queue';

CREATE TYPE sys.aq$_reg_info AS (name text, namespace integer, callback text, context bytea, anyctx jsonb, ctxtype integer, qosflags integer,
	payloadcbk text, timeout integer, ntfn_grouping_class integer, ntfn_grouping_value integer,
	ntfn_grouping_type integer, ntfn_grouping_start_time timestamptz, ntfn_grouping_repeat_count integer);
COMMENT ON TYPE sys.aq$_reg_info IS 'A registration for notification';
COMMENT ON COLUMN sys.aq$_reg_info.name IS 'queue, or queue:consumer';
COMMENT ON COLUMN sys.aq$_reg_info.namespace IS 'namespace_aq() or namespace_anonymous()';
COMMENT ON COLUMN sys.aq$_reg_info.callback IS 'what is to be called: plsql://schema.procedure';
COMMENT ON COLUMN sys.aq$_reg_info.context IS 'handed to the callback';
COMMENT ON COLUMN sys.aq$_reg_info.anyctx IS 'not used';
COMMENT ON COLUMN sys.aq$_reg_info.ctxtype IS 'not used';
COMMENT ON COLUMN sys.aq$_reg_info.qosflags IS 'quality of service: sum of ntfn_qos_reliable(), ntfn_qos_payload(), ntfn_qos_purge_on_ntfn(); null: 0';
COMMENT ON COLUMN sys.aq$_reg_info.payloadcbk IS 'must be null';
COMMENT ON COLUMN sys.aq$_reg_info.timeout IS 'seconds until the registration ends; null or 0: never';
COMMENT ON COLUMN sys.aq$_reg_info.ntfn_grouping_class IS 'ntfn_grouping_class_time(): grouping by time; null or 0: none';
COMMENT ON COLUMN sys.aq$_reg_info.ntfn_grouping_value IS 'seconds of a group; null or 0: 600';
COMMENT ON COLUMN sys.aq$_reg_info.ntfn_grouping_type IS 'ntfn_grouping_type_summary() (default) or ntfn_grouping_type_last()';
COMMENT ON COLUMN sys.aq$_reg_info.ntfn_grouping_start_time IS 'when grouping begins; null: now';
COMMENT ON COLUMN sys.aq$_reg_info.ntfn_grouping_repeat_count IS 'number of groups; null, 0 or ntfn_grouping_forever(): no limit';
CREATE DOMAIN sys.aq$_reg_info_list AS sys.aq$_reg_info[];
COMMENT ON DOMAIN sys.aq$_reg_info_list IS 'Registrations';
CREATE TYPE sys.aq$_post_info AS (name text, namespace integer, payload bytea);
COMMENT ON TYPE sys.aq$_post_info IS 'A notification to be sent';
COMMENT ON COLUMN sys.aq$_post_info.name IS 'name of the subscription';
COMMENT ON COLUMN sys.aq$_post_info.namespace IS 'namespace_anonymous()';
COMMENT ON COLUMN sys.aq$_post_info.payload IS 'what is sent';
CREATE DOMAIN sys.aq$_post_info_list AS sys.aq$_post_info[];
COMMENT ON DOMAIN sys.aq$_post_info_list IS 'Notifications to be sent';

CREATE TYPE sys.msg_prop_t AS (priority integer, delay integer, expiration integer, correlation text, attempts integer, exception_queue text,
	enqueue_time timestamptz, state integer, sender_id sys.aq$_agent, original_msgid uuid, delivery_mode integer);
COMMENT ON TYPE sys.msg_prop_t IS 'Properties of a message in a notification';
COMMENT ON COLUMN sys.msg_prop_t.priority IS 'smaller goes first';
COMMENT ON COLUMN sys.msg_prop_t.delay IS 'seconds that it was delayed';
COMMENT ON COLUMN sys.msg_prop_t.expiration IS 'seconds from then until it expires; -1: never';
COMMENT ON COLUMN sys.msg_prop_t.correlation IS 'free text';
COMMENT ON COLUMN sys.msg_prop_t.attempts IS 'dequeues that were rolled back';
COMMENT ON COLUMN sys.msg_prop_t.exception_queue IS 'queue to go to when it fails; null: the queue''s own';
COMMENT ON COLUMN sys.msg_prop_t.enqueue_time IS 'time of the enqueue call';
COMMENT ON COLUMN sys.msg_prop_t.state IS 'ready()';
COMMENT ON COLUMN sys.msg_prop_t.sender_id IS 'the producer';
COMMENT ON COLUMN sys.msg_prop_t.original_msgid IS 'in an exception queue, its id in the queue it came from';
COMMENT ON COLUMN sys.msg_prop_t.delivery_mode IS 'persistent()';
CREATE TYPE sys.aq$_ntfn_descriptor AS (ntfn_flags integer);
COMMENT ON TYPE sys.aq$_ntfn_descriptor IS 'General part of a notification';
COMMENT ON COLUMN sys.aq$_ntfn_descriptor.ntfn_flags IS '0';
CREATE DOMAIN sys.aq$_ntfn_msgid_array AS uuid[];
COMMENT ON DOMAIN sys.aq$_ntfn_msgid_array IS 'Message ids of a group';
CREATE TYPE sys.aq$_descriptor AS (queue_name text, consumer_name text, msg_id uuid, msg_prop sys.msg_prop_t, gen_desc sys.aq$_ntfn_descriptor,
	msgid_array sys.aq$_ntfn_msgid_array, ntfnsrecdingrp integer);
COMMENT ON TYPE sys.aq$_descriptor IS 'What a procedure is notified of';
COMMENT ON COLUMN sys.aq$_descriptor.queue_name IS 'the queue, as "SCHEMA"."QUEUE"; or the name that was posted';
COMMENT ON COLUMN sys.aq$_descriptor.consumer_name IS 'the consumer; null: a queue with a single consumer';
COMMENT ON COLUMN sys.aq$_descriptor.msg_id IS 'the message, for dequeue_options_t.msgid; null for a summary';
COMMENT ON COLUMN sys.aq$_descriptor.msg_prop IS 'its properties; null for a summary';
COMMENT ON COLUMN sys.aq$_descriptor.gen_desc IS 'not used';
COMMENT ON COLUMN sys.aq$_descriptor.msgid_array IS 'of a summary: all messages of the group';
COMMENT ON COLUMN sys.aq$_descriptor.ntfnsrecdingrp IS 'number of messages of the group';

-- Types of package dbms_aq.  A null field, and a null record, mean the defaults.

CREATE DOMAIN dbms_aq.aq$_recipient_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN dbms_aq.aq$_recipient_list_t IS 'Recipients of a message';
CREATE DOMAIN dbms_aq.aq$_agent_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN dbms_aq.aq$_agent_list_t IS 'Agents to listen for';
CREATE DOMAIN dbms_aq.msgid_array_t AS uuid[];
COMMENT ON DOMAIN dbms_aq.msgid_array_t IS 'Message ids of an array call';
CREATE TYPE dbms_aq.error_t AS (error_position integer, error_number integer, error_message text);
COMMENT ON TYPE dbms_aq.error_t IS 'Element of error_array_t; never filled, as in Oracle';
COMMENT ON COLUMN dbms_aq.error_t.error_position IS 'number of the message';
COMMENT ON COLUMN dbms_aq.error_t.error_number IS 'Oracle''s number';
COMMENT ON COLUMN dbms_aq.error_t.error_message IS 'the error';
CREATE DOMAIN dbms_aq.error_array_t AS dbms_aq.error_t[];
COMMENT ON DOMAIN dbms_aq.error_array_t IS 'Errors of an array call; never filled, as in Oracle';

CREATE TYPE dbms_aq.enqueue_options_t AS (visibility integer, relative_msgid uuid, sequence_deviation integer,
	transformation text, delivery_mode integer);
COMMENT ON TYPE dbms_aq.enqueue_options_t IS 'Options of dbms_aq.enqueue; null: the default';
COMMENT ON COLUMN dbms_aq.enqueue_options_t.visibility IS 'dbms_aq.on_commit() (default) or immediate()';
COMMENT ON COLUMN dbms_aq.enqueue_options_t.relative_msgid IS 'with sequence_deviation before(): the message to be in front of';
COMMENT ON COLUMN dbms_aq.enqueue_options_t.sequence_deviation IS 'before() or top()';
COMMENT ON COLUMN dbms_aq.enqueue_options_t.transformation IS 'transformation of the payload, [schema.]name';
COMMENT ON COLUMN dbms_aq.enqueue_options_t.delivery_mode IS 'persistent() (default) or buffered()';

CREATE TYPE dbms_aq.dequeue_options_t AS (consumer_name text, dequeue_mode integer, navigation integer,
	visibility integer, wait integer, msgid uuid, correlation text, deq_condition text,
	signature sys.aq$_sig_prop, transformation text, delivery_mode integer);
COMMENT ON TYPE dbms_aq.dequeue_options_t IS 'Options of dbms_aq.dequeue; null: the default';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.consumer_name IS 'the consumer, for queues with several';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.dequeue_mode IS 'browse(), locked(), remove() (default) or remove_nodata()';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.navigation IS 'first_message(), next_message() (default), next_transaction() and the two for several groups';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.visibility IS 'on_commit() (default) or immediate()';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.wait IS 'seconds, no_wait() or forever() (default)';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.msgid IS 'exactly this message';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.correlation IS 'LIKE pattern';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.deq_condition IS 'SQL condition over tab.priority, tab.corrid, tab.user_data.field, ...';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.signature IS 'not used';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.transformation IS 'transformation of the payload, [schema.]name';
COMMENT ON COLUMN dbms_aq.dequeue_options_t.delivery_mode IS 'persistent() (default), buffered() or persistent_or_buffered()';

CREATE TYPE dbms_aq.message_properties_t AS (priority integer, delay integer, expiration integer, correlation text,
	attempts integer, recipient_list dbms_aq.aq$_recipient_list_t, exception_queue text, enqueue_time timestamptz,
	state integer, sender_id sys.aq$_agent, original_msgid uuid, signature sys.aq$_sig_prop,
	transaction_group text, user_property jsonb, delivery_mode integer);
COMMENT ON TYPE dbms_aq.message_properties_t IS 'Properties of a message; null: the default';
COMMENT ON COLUMN dbms_aq.message_properties_t.priority IS 'smaller goes first; default 1';
COMMENT ON COLUMN dbms_aq.message_properties_t.delay IS 'seconds until it is ready; default no_delay()';
COMMENT ON COLUMN dbms_aq.message_properties_t.expiration IS 'seconds from then until it expires; default never()';
COMMENT ON COLUMN dbms_aq.message_properties_t.correlation IS 'free text';
COMMENT ON COLUMN dbms_aq.message_properties_t.attempts IS 'out: dequeues that were rolled back';
COMMENT ON COLUMN dbms_aq.message_properties_t.recipient_list IS 'in: the recipients; null or empty: the subscribers';
COMMENT ON COLUMN dbms_aq.message_properties_t.exception_queue IS 'queue to go to when it fails; null: the queue''s own';
COMMENT ON COLUMN dbms_aq.message_properties_t.enqueue_time IS 'out: time of the enqueue call';
COMMENT ON COLUMN dbms_aq.message_properties_t.state IS 'out: ready(), waiting(), processed() or expired(), at the dequeue';
COMMENT ON COLUMN dbms_aq.message_properties_t.sender_id IS 'the producer; its name is kept';
COMMENT ON COLUMN dbms_aq.message_properties_t.original_msgid IS 'out: in an exception queue, its id in the queue it came from; null if it has kept its id, within a queue table';
COMMENT ON COLUMN dbms_aq.message_properties_t.signature IS 'not used';
COMMENT ON COLUMN dbms_aq.message_properties_t.transaction_group IS 'out: the group it belongs to';
COMMENT ON COLUMN dbms_aq.message_properties_t.user_property IS 'free properties';
COMMENT ON COLUMN dbms_aq.message_properties_t.delivery_mode IS 'out: persistent() or buffered()';

CREATE DOMAIN dbms_aq.message_properties_array_t AS dbms_aq.message_properties_t[];
COMMENT ON DOMAIN dbms_aq.message_properties_array_t IS 'Properties of the messages of an array call';

CREATE TYPE dbms_aq.seek_pos_t AS (msgid uuid);
COMMENT ON TYPE dbms_aq.seek_pos_t IS 'A position in a queue';
COMMENT ON COLUMN dbms_aq.seek_pos_t.msgid IS 'the message at this position';
CREATE TYPE dbms_aq.seek_input_t AS (shard integer, priority integer, seek_type integer, seek_pos dbms_aq.seek_pos_t);
COMMENT ON TYPE dbms_aq.seek_input_t IS 'Where to go';
COMMENT ON COLUMN dbms_aq.seek_input_t.shard IS 'number of the shard; null or -1: all';
COMMENT ON COLUMN dbms_aq.seek_input_t.priority IS 'priority; null or -1: all';
COMMENT ON COLUMN dbms_aq.seek_input_t.seek_type IS 'seek_begin(), seek_end() or seek_msgid()';
COMMENT ON COLUMN dbms_aq.seek_input_t.seek_pos IS 'with seek_msgid(): the message that is to be the next one';
CREATE DOMAIN dbms_aq.seek_input_array_t AS dbms_aq.seek_input_t[];
COMMENT ON DOMAIN dbms_aq.seek_input_array_t IS 'Where to go, in several shards or priorities';
CREATE TYPE dbms_aq.seek_output_t AS (shard integer, priority integer, seek_type integer, seek_pos dbms_aq.seek_pos_t, skipped bigint);
COMMENT ON TYPE dbms_aq.seek_output_t IS 'Where a seek has come to';
COMMENT ON COLUMN dbms_aq.seek_output_t.shard IS 'as given';
COMMENT ON COLUMN dbms_aq.seek_output_t.priority IS 'as given';
COMMENT ON COLUMN dbms_aq.seek_output_t.seek_type IS 'as given';
COMMENT ON COLUMN dbms_aq.seek_output_t.seek_pos IS 'the next message; null at the end';
COMMENT ON COLUMN dbms_aq.seek_output_t.skipped IS 'messages that could have been dequeued and were passed by';
CREATE DOMAIN dbms_aq.seek_output_array_t AS dbms_aq.seek_output_t[];
COMMENT ON DOMAIN dbms_aq.seek_output_array_t IS 'Where a seek has come to, one element for each given';

-- Types of package dbms_aqadm

CREATE DOMAIN dbms_aqadm.aq$_subscriber_list_t AS sys.aq$_agent[];
COMMENT ON DOMAIN dbms_aqadm.aq$_subscriber_list_t IS 'Subscribers of a queue';
CREATE TYPE dbms_aqadm.aq$_purge_options_t AS ("block" boolean, delivery_mode integer);
COMMENT ON TYPE dbms_aqadm.aq$_purge_options_t IS 'Options of dbms_aqadm.purge_queue_table; null: the default';
COMMENT ON COLUMN dbms_aqadm.aq$_purge_options_t."block" IS 'true: wait for messages that other transactions have locked';
COMMENT ON COLUMN dbms_aqadm.aq$_purge_options_t.delivery_mode IS 'persistent() (default), buffered() or persistent_or_buffered()';
CREATE TYPE dbms_aqadm.queue_props_t AS (queue_type integer, retry_delay integer, retention_time integer,
	sort_list integer, cache_hint integer);
COMMENT ON TYPE dbms_aqadm.queue_props_t IS 'Properties of a transactional event queue; null: the default';
COMMENT ON COLUMN dbms_aqadm.queue_props_t.queue_type IS 'normal_queue() (default) or exception_queue()';
COMMENT ON COLUMN dbms_aqadm.queue_props_t.retry_delay IS 'retry delay after a rolled back dequeue, in seconds; default 0';
COMMENT ON COLUMN dbms_aqadm.queue_props_t.retention_time IS 'seconds that consumed messages stay visible; default 0';
COMMENT ON COLUMN dbms_aqadm.queue_props_t.sort_list IS 'accepted; the order is by priority and session';
COMMENT ON COLUMN dbms_aqadm.queue_props_t.cache_hint IS 'accepted; the message cache decides itself';
