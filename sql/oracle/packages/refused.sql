-- Oracle's subprograms that pgaq does not support: they exist so that a program gets ORA-24205 instead of an undefined name.

CREATE FUNCTION sys._refuse(subprogram text, what text, hint text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sys._raise_error('AQ060', format('%s is not supported: pgaq does not have %s', subprogram, what), hint);
END $$;
COMMENT ON FUNCTION sys._refuse(text, text, text) IS 'Internal: the error of a subprogram that is not supported';

CREATE PROCEDURE dbms_aq.bind_agent(agent sys.aq$_agent, certificate text DEFAULT NULL)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aq.bind_agent', 'a directory of agents', 'Name agents in the call.') $$;
COMMENT ON PROCEDURE dbms_aq.bind_agent(sys.aq$_agent, text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aq.unbind_agent(agent sys.aq$_agent)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aq.unbind_agent', 'a directory of agents', 'Name agents in the call.') $$;
COMMENT ON PROCEDURE dbms_aq.unbind_agent(sys.aq$_agent) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.create_aq_agent(agent_name text, certificate_location text DEFAULT NULL, enable_http boolean DEFAULT false,
	enable_smtp boolean DEFAULT false, enable_anyp boolean DEFAULT false)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.create_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $$;
COMMENT ON PROCEDURE dbms_aqadm.create_aq_agent(text, text, boolean, boolean, boolean) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.alter_aq_agent(agent_name text, certificate_location text DEFAULT NULL, enable_http boolean DEFAULT false,
	enable_smtp boolean DEFAULT false, enable_anyp boolean DEFAULT false)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.alter_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_aq_agent(text, text, boolean, boolean, boolean) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.drop_aq_agent(agent_name text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.drop_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_aq_agent(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.enable_db_access(agent_name text, db_username text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.enable_db_access', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $$;
COMMENT ON PROCEDURE dbms_aqadm.enable_db_access(text, text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.disable_db_access(agent_name text, db_username text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.disable_db_access', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $$;
COMMENT ON PROCEDURE dbms_aqadm.disable_db_access(text, text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.create_database_kafka_topic(topicname text, partition_num numeric DEFAULT 1, retentiontime numeric DEFAULT 604800)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.create_database_kafka_topic', 'Kafka topics', 'Use a queue with several consumers.') $$;
COMMENT ON PROCEDURE dbms_aqadm.create_database_kafka_topic(text, numeric, numeric) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.drop_database_kafka_topic(topicname text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.drop_database_kafka_topic', 'Kafka topics', 'Use a queue with several consumers.') $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_database_kafka_topic(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.add_eventstream(queue_name text, event_stream_num numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.add_eventstream', 'event streams that are added later', 'Set SHARD_NUM before the queue is used.') $$;
COMMENT ON PROCEDURE dbms_aqadm.add_eventstream(text, numeric) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.add_ltwt_subscriber(queue_name text, subscriber sys.aq$_agent)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.add_ltwt_subscriber', 'lightweight subscribers', 'Use dbms_aqadm.add_subscriber.') $$;
COMMENT ON PROCEDURE dbms_aqadm.add_ltwt_subscriber(text, sys.aq$_agent) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.grant_priv_for_rm_plan(user_name text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.grant_priv_for_rm_plan', 'resource plans', 'Leave the call out.') $$;
COMMENT ON PROCEDURE dbms_aqadm.grant_priv_for_rm_plan(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.add_alias_to_ldap(alias text, obj_location text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.add_alias_to_ldap', 'a directory of queues', 'Name queues in the call.') $$;
COMMENT ON PROCEDURE dbms_aqadm.add_alias_to_ldap(text, text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqadm.del_alias_from_ldap(alias text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqadm.del_alias_from_ldap', 'a directory of queues', 'Name queues in the call.') $$;
COMMENT ON PROCEDURE dbms_aqadm.del_alias_from_ldap(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqelm.set_mailhost(mailhost text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqelm.set_mailhost', 'notification', 'Let a consumer wait in dequeue or listen, and send mail or HTTP requests itself.') $$;
COMMENT ON PROCEDURE dbms_aqelm.set_mailhost(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqelm.set_mailport(mailport numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqelm.set_mailport', 'notification', 'Let a consumer wait in dequeue or listen, and send mail or HTTP requests itself.') $$;
COMMENT ON PROCEDURE dbms_aqelm.set_mailport(numeric) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqelm.set_sendfrom(sendfrom text)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqelm.set_sendfrom', 'notification', 'Let a consumer wait in dequeue or listen, and send mail or HTTP requests itself.') $$;
COMMENT ON PROCEDURE dbms_aqelm.set_sendfrom(text) IS 'Not supported: ORA-24205';

CREATE PROCEDURE dbms_aqelm.set_proxy(proxy text, no_proxy_domains text DEFAULT NULL)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT sys._refuse('dbms_aqelm.set_proxy', 'notification', 'Let a consumer wait in dequeue or listen, and send mail or HTTP requests itself.') $$;
COMMENT ON PROCEDURE dbms_aqelm.set_proxy(text, text) IS 'Not supported: ORA-24205';
