-- Names as Oracle's packages take them, and what comes out of Oracle's types.
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA ora;
CREATE SCHEMA "Mixed";
CREATE TYPE ora.order_t AS (id integer, note text);
SET search_path = ora, public;

-- [schema.]name, lower case unless quoted; anything else is malformed (null)
SELECT name, sys._split_name(name) FROM unnest(ARRAY['Orders', 'ORA.Orders', ' ora . orders ', '"Orders"', 'a."b""c"', 'x$y#1',
	'1a', 'a.b.c', 'a.', '.a', '""', '"open', 'a b', '', 'sub@#1', 'größe']) AS name;

-- a queue of dbms_aqadm has its schema in its native name
CALL dbms_aqadm.create_sharded_queue('Orders', queue_payload_type => 'ORDER_T');
CALL dbms_aqadm.create_sharded_queue('"Mixed"."Orders"', queue_payload_type => 'RAW');
SELECT queue_name, payload_type, enqueue_enabled, dequeue_enabled, max_retries FROM aq.queues ORDER BY queue_name COLLATE "C";
SELECT name, sys._resolve_queue(name, 'any') FROM unnest(ARRAY['orders', 'ORDERS', 'Ora.ORDERS', '"orders"', '"Orders"', '"Mixed"."Orders"', 'mixed.orders']) AS name;
-- without a schema: the schemas of search_path in their order, then a queue of aq.create_queue
SELECT aq.create_queue('orders');
SELECT aq.create_queue('plain');
SELECT sys._resolve_queue('orders', 'any'), sys._resolve_queue('Plain', 'any');
SET search_path = public;
SELECT sys._resolve_queue('orders', 'any');
SELECT aq.drop_queue('orders');
SET search_path = "Mixed", ora;
SELECT sys._resolve_queue('"Orders"', 'any'), sys._resolve_queue('Orders', 'any');
SET search_path = ora, public;

-- what is refused
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('no good')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue(NULL)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table(NULL, 'JSON')$$);
SELECT t.error($$CALL dbms_aqadm.drop_queue_table(NULL)$$);
SELECT t.error($$CALL dbms_aqadm.start_queue(NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue(NULL, NULL, NULL, '1'::text, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('nowhere.orders')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('aq$orders')$$);
SELECT t.error(format('CALL dbms_aqadm.create_sharded_queue(%L)', repeat('x', 124)));
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('orders', queue_payload_type => 'raw')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'anydata')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => NULL)$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'no_such_type')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => '!')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'integer')$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'raw', max_retries => -1)$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'raw', queue_properties => ROW(NULL, -1, NULL, NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'raw', queue_properties => ROW(NULL, NULL, -2, NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('q', queue_payload_type => 'raw', queue_properties => ROW(2, NULL, NULL, NULL, NULL))$$);

-- names of 126 bytes work; their view would have too long a name, so they have none
SELECT format('CALL dbms_aqadm.create_sharded_queue(%L, queue_payload_type => %L)', repeat('x', 123), 'raw') \gexec
SELECT octet_length(queue_name) FROM aq.queues WHERE queue_name LIKE 'ora.xxx%';
SELECT format('CALL dbms_aqadm.drop_sharded_queue(%L)', repeat('x', 123)) \gexec

-- the constructors leave out fields as defaults
SELECT sys.aq$_agent('ANN', NULL, NULL), dbms_aq.dequeue_options_t(wait => dbms_aq.no_wait(), consumer_name => 'ann'),
	dbms_aq.enqueue_options_t(visibility => dbms_aq.on_commit()), dbms_aq.message_properties_t(priority => 3);
-- who may create queues in a schema: who may create tables there, with the right to create queues
CREATE ROLE regress_ora_admin;
GRANT aq_administrator_role TO regress_ora_admin;
CREATE ROLE regress_ora_user;
GRANT USAGE ON SCHEMA ora TO regress_ora_admin, regress_ora_user;
SET ROLE regress_ora_admin;
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('ora.stolen', queue_payload_type => 'raw')$$);
RESET ROLE;
GRANT CREATE ON SCHEMA ora TO regress_ora_admin, regress_ora_user;
SET ROLE regress_ora_admin;
CALL dbms_aqadm.create_sharded_queue('ora.allowed', queue_payload_type => 'raw');
CALL dbms_aqadm.drop_queue('ora.allowed');
RESET ROLE;
SET ROLE regress_ora_user;
CALL dbms_aqadm.create_sharded_queue('ora.stolen', queue_payload_type => 'raw');
RESET ROLE;

CALL dbms_aqadm.drop_queue('orders');
CALL dbms_aqadm.drop_queue('"Mixed"."Orders"');
SELECT aq.drop_queue('plain');
DROP SCHEMA "Mixed";
