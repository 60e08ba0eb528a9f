-- Sessions: all processes of the server, with pgaq's data for those that use it.
--
-- The data of each process are read once, without locks. PostgreSQL's waits are named "type: event", are seen only at this moment, and have no P1 to
-- P3 and no times.

CALL aq_internal.make_source('sessions', 'aq_session_views_sessions', 'All processes of the server',
	'session integer, pid integer, attached boolean, background boolean, active boolean, event integer, event_id bigint,
	 event_name text, wait_class_id bigint, wait_class_number integer, wait_class text, p1text text, p1 bigint, p2text text,
	 p2 bigint, p3text text, p3 bigint, waiting boolean, sequence bigint, wait_us bigint, ago_us bigint, left_us bigint, blocker integer,
	 final_blocker integer, operation text, queue_id integer, module text, action text, client_info text');

CALL aq_internal.make_view('aq', 'sessions', 'All processes of the server and what they wait for. Waits of pgaq are exact and have P1 to P3; an event of the form "type: event" is a wait of PostgreSQL''s own, seen at this moment',
	'FROM aq_internal.sessions() s JOIN pg_catalog.pg_stat_activity a ON a.pid = s.pid', $$
	session = s.session | number of the session in the views of pgaq
	pid = s.pid | process id, as in pg_stat_activity
	role = a.usename::text | name of its role
	database = a.datname::text | its database
	application_name = a.application_name | its application_name
	backend_type = a.backend_type | kind of process
	attached = s.attached | it has used pgaq
	active = s.active | it counts as active: it runs, or its wait is not idle
	waiting = s.waiting | it waits now
	event = s.event_name | its wait, or its last wait in pgaq; "type: event" is a wait of PostgreSQL's own; null: it has not waited
	wait_class = s.wait_class | class of the event; Idle does not count as lost time
	wait_us = s.wait_us | microseconds of the wait, so far if it is still waiting; null: PostgreSQL's own
	since_wait_us = s.ago_us | microseconds since the wait ended; 0 if it is still waiting
	left_us = s.left_us | microseconds until its timeout: -1 without a timeout, 0 after it; null when it does not wait, and for PostgreSQL's own waits
	p1_meaning = s.p1text | meaning of P1
	p1 = s.p1 | parameter 1 of the wait
	p2_meaning = s.p2text | meaning of P2
	p2 = s.p2 | parameter 2 of the wait
	p3_meaning = s.p3text | meaning of P3
	p3 = s.p3 | parameter 3 of the wait
	blocking_session = s.blocker | number of the session that blocks it: the holder of a latch, a mutex or a lock of the server; a user of a queue that is being stopped; a consumer that can make room; a helper
	final_blocking_session = s.final_blocker | number of the session at the end of the chain of blockers; null: none, or the chain is a cycle
	operation = s.operation | queue operation it is in: see aq.time_model
	queue_id = s.queue_id | queue of that operation, if known
	query_id = a.query_id | identifier of the query, as in pg_stat_statements; null when compute_query_id is off
$$);
