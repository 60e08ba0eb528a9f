-- The history of active sessions on disk. Created once; changed only by upgrade scripts.

CREATE TABLE aq_internal.active_session (
	dbid bigint NOT NULL,
	sample_id bigint NOT NULL,
	sample_time timestamptz NOT NULL,
	session_id integer NOT NULL,
	session_serial integer NOT NULL,
	background boolean NOT NULL,
	user_id oid,
	username text,
	sql_id bigint,
	event text,
	event_id bigint,
	seq bigint,
	p1text text,
	p1 bigint,
	p2text text,
	p2 bigint,
	p3text text,
	p3 bigint,
	wait_class text,
	wait_class_id bigint,
	time_waited bigint,
	blocking_session integer,
	blocking_session_serial integer,
	queue_id integer,
	queue_name text,
	program text,
	module text,
	action text,
	operation text,
	PRIMARY KEY (dbid, sample_id, session_id)
);
CREATE INDEX ON aq_internal.active_session (dbid, sample_time);
COMMENT ON TABLE aq_internal.active_session IS 'One sample in ten of the active sessions; read it through aq.stored_session_history';
COMMENT ON COLUMN aq_internal.active_session.dbid IS 'the database, see aq_internal.snapshot';
COMMENT ON COLUMN aq_internal.active_session.sample_id IS 'number of the sample';
COMMENT ON COLUMN aq_internal.active_session.sample_time IS 'when it was taken';
COMMENT ON COLUMN aq_internal.active_session.session_id IS 'number of the session';
COMMENT ON COLUMN aq_internal.active_session.session_serial IS 'its process id';
COMMENT ON COLUMN aq_internal.active_session.background IS 'a process of the server itself';
COMMENT ON COLUMN aq_internal.active_session.user_id IS 'oid of its role';
COMMENT ON COLUMN aq_internal.active_session.username IS 'name of its role at that time';
COMMENT ON COLUMN aq_internal.active_session.sql_id IS 'identifier of the query';
COMMENT ON COLUMN aq_internal.active_session.event IS 'its wait; null: it was on a processor';
COMMENT ON COLUMN aq_internal.active_session.event_id IS 'hash of the name';
COMMENT ON COLUMN aq_internal.active_session.seq IS 'which wait of the session';
COMMENT ON COLUMN aq_internal.active_session.p1text IS 'meaning of P1';
COMMENT ON COLUMN aq_internal.active_session.p1 IS 'parameter 1 of the wait';
COMMENT ON COLUMN aq_internal.active_session.p2text IS 'meaning of P2';
COMMENT ON COLUMN aq_internal.active_session.p2 IS 'parameter 2 of the wait';
COMMENT ON COLUMN aq_internal.active_session.p3text IS 'meaning of P3';
COMMENT ON COLUMN aq_internal.active_session.p3 IS 'parameter 3 of the wait';
COMMENT ON COLUMN aq_internal.active_session.wait_class IS 'class of the event';
COMMENT ON COLUMN aq_internal.active_session.wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN aq_internal.active_session.time_waited IS 'total microseconds of the wait, if known';
COMMENT ON COLUMN aq_internal.active_session.blocking_session IS 'number of the session that blocked it';
COMMENT ON COLUMN aq_internal.active_session.blocking_session_serial IS 'process id of that session';
COMMENT ON COLUMN aq_internal.active_session.queue_id IS 'queue of its operation';
COMMENT ON COLUMN aq_internal.active_session.queue_name IS 'name of the queue at that time';
COMMENT ON COLUMN aq_internal.active_session.program IS 'application_name, or the type of process';
COMMENT ON COLUMN aq_internal.active_session.module IS 'module of dbms_application_info';
COMMENT ON COLUMN aq_internal.active_session.action IS 'action of dbms_application_info';
COMMENT ON COLUMN aq_internal.active_session.operation IS 'its queue operation';
SELECT pg_catalog.pg_extension_config_dump('aq_internal.active_session', '');
