-- The history of active sessions on disk. Created once; changed only by upgrade scripts.

CREATE TABLE aq_internal.active_session (
	dbid bigint NOT NULL,
	sample_id bigint NOT NULL,
	sample_time timestamptz NOT NULL,
	session integer NOT NULL,
	pid integer NOT NULL,
	background boolean NOT NULL,
	user_id oid,
	role text,
	query_id bigint,
	event text,
	event_id bigint,
	sequence bigint,
	p1_meaning text,
	p1 bigint,
	p2_meaning text,
	p2 bigint,
	p3_meaning text,
	p3 bigint,
	wait_class text,
	wait_class_id bigint,
	time_waited_us bigint,
	blocking_session integer,
	blocking_pid integer,
	queue_id integer,
	queue_name text,
	program text,
	module text,
	action text,
	operation text,
	PRIMARY KEY (dbid, sample_id, session)
);
CREATE INDEX ON aq_internal.active_session (dbid, sample_time);
COMMENT ON TABLE aq_internal.active_session IS 'One sample in ten of the active sessions; read it through aq.stored_session_history';
COMMENT ON COLUMN aq_internal.active_session.dbid IS 'the database, see aq_internal.snapshot';
COMMENT ON COLUMN aq_internal.active_session.sample_id IS 'number of the sample';
COMMENT ON COLUMN aq_internal.active_session.sample_time IS 'when it was taken';
COMMENT ON COLUMN aq_internal.active_session.session IS 'number of the session';
COMMENT ON COLUMN aq_internal.active_session.pid IS 'its process id';
COMMENT ON COLUMN aq_internal.active_session.background IS 'a process of the server itself';
COMMENT ON COLUMN aq_internal.active_session.user_id IS 'oid of its role';
COMMENT ON COLUMN aq_internal.active_session.role IS 'name of its role at that time';
COMMENT ON COLUMN aq_internal.active_session.query_id IS 'identifier of the query';
COMMENT ON COLUMN aq_internal.active_session.event IS 'its wait; null: it was on a processor';
COMMENT ON COLUMN aq_internal.active_session.event_id IS 'hash of the name';
COMMENT ON COLUMN aq_internal.active_session.sequence IS 'which wait of the session';
COMMENT ON COLUMN aq_internal.active_session.p1_meaning IS 'meaning of P1';
COMMENT ON COLUMN aq_internal.active_session.p1 IS 'parameter 1 of the wait';
COMMENT ON COLUMN aq_internal.active_session.p2_meaning IS 'meaning of P2';
COMMENT ON COLUMN aq_internal.active_session.p2 IS 'parameter 2 of the wait';
COMMENT ON COLUMN aq_internal.active_session.p3_meaning IS 'meaning of P3';
COMMENT ON COLUMN aq_internal.active_session.p3 IS 'parameter 3 of the wait';
COMMENT ON COLUMN aq_internal.active_session.wait_class IS 'class of the event';
COMMENT ON COLUMN aq_internal.active_session.wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN aq_internal.active_session.time_waited_us IS 'total microseconds of the wait, if known';
COMMENT ON COLUMN aq_internal.active_session.blocking_session IS 'number of the session that blocked it';
COMMENT ON COLUMN aq_internal.active_session.blocking_pid IS 'process id of that session';
COMMENT ON COLUMN aq_internal.active_session.queue_id IS 'queue of its operation';
COMMENT ON COLUMN aq_internal.active_session.queue_name IS 'name of the queue at that time';
COMMENT ON COLUMN aq_internal.active_session.program IS 'application_name, or the type of process';
COMMENT ON COLUMN aq_internal.active_session.module IS 'module of dbms_application_info';
COMMENT ON COLUMN aq_internal.active_session.action IS 'action of dbms_application_info';
COMMENT ON COLUMN aq_internal.active_session.operation IS 'its queue operation';
