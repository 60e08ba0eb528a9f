-- Propagation.

CREATE VIEW aq.propagations AS
SELECT p.schedule_id, q.queue_name, p.destination,
	CASE WHEN l.diverged THEN 'diverged' WHEN NOT p.enabled THEN 'disabled' WHEN k.error IS NOT NULL THEN 'stuck' WHEN p.failures > 0 THEN 'retrying' WHEN now() < p.start_time THEN 'waiting' ELSE 'enabled' END AS state,
	(SELECT r.rolname FROM pg_roles r WHERE r.oid = p.role) AS role,
	p.latency, p.start_time, p.duration, p.every, p.created,
	(SELECT coalesce(sum(b.messages), 0) FROM aq_internal.propagation_batch b WHERE b.schedule_id = p.schedule_id)
		+ (SELECT sum(c.enqueued - c.dequeued)::bigint FROM aq_internal.consumers(p.queue_id) c
			LEFT JOIN aq_internal.subscriber s ON s.queue_id = c.queue_id AND s."position" = c."position"
		WHERE (NOT q.multiple_consumers
			OR s.consumer ~ '(^| )-> ' AND coalesce(substring(s.consumer, '(?:^| )-> (.*)$') = p.destination OR p.destination LIKE '@%' AND substring(s.consumer, '(@.*)$') = p.destination, s.consumer !~ '-> .*@'))) AS lag,
	p.messages, p.bytes, p.batches, p.elapsed AS elapsed_us, p.most_messages, p.most_bytes, p.last_run,
	p.failures, CASE WHEN pg_has_role(p.role::oid, 'USAGE') OR pg_has_role('pg_monitor', 'USAGE') THEN coalesce(k.error, p.last_error) END AS last_error, p.last_error_time
FROM aq_internal.propagation p JOIN aq_internal.queue q ON q.queue_id = p.queue_id
	LEFT JOIN aq_internal.propagation_link l ON l.schedule_id = p.schedule_id, LATERAL (SELECT aq_internal.stuck(1, p.role)) k(error)
WHERE pg_has_role('pg_monitor', 'USAGE') OR aq_internal.may(q.rights_id, 'ANY');
COMMENT ON VIEW aq.propagations IS 'Propagation schedules of the queues that the current role can use; members of pg_monitor see all. What was moved is written every two seconds';
COMMENT ON COLUMN aq.propagations.schedule_id IS 'number of the schedule';
COMMENT ON COLUMN aq.propagations.queue_name IS 'the queue whose messages go on';
COMMENT ON COLUMN aq.propagations.destination IS 'the queue that gets them, queue@server for one in another database; null, @server: all queues of this database, or there, that are named by consumers and have no schedule of their own';
COMMENT ON COLUMN aq.propagations.state IS 'enabled; waiting: for start_time; retrying: after an error; stuck: a process that runs code for the role cannot be interrupted, and its schedules wait until that ends; disabled: by a role, or after 16 errors in a row; diverged: disabled, because the other database has not got what it should have, or more';
COMMENT ON COLUMN aq.propagations.role IS 'role that has scheduled it, whose privileges count; null: dropped';
COMMENT ON COLUMN aq.propagations.latency IS 'pause after the queue was found empty; 0: none';
COMMENT ON COLUMN aq.propagations.start_time IS 'when the first window begins';
COMMENT ON COLUMN aq.propagations.duration IS 'of a window; null: without end';
COMMENT ON COLUMN aq.propagations.every IS 'between the beginnings of windows; null: there is one';
COMMENT ON COLUMN aq.propagations.created IS 'when it was scheduled';
COMMENT ON COLUMN aq.propagations.lag IS 'messages that are not propagated yet, with those on their way to a server; null: the queue is not in memory';
COMMENT ON COLUMN aq.propagations.messages IS 'messages that it has moved';
COMMENT ON COLUMN aq.propagations.bytes IS 'size of their payloads, bytes';
COMMENT ON COLUMN aq.propagations.batches IS 'transactions that have moved them';
COMMENT ON COLUMN aq.propagations.elapsed_us IS 'total time of these, microseconds';
COMMENT ON COLUMN aq.propagations.most_messages IS 'messages in the largest batch';
COMMENT ON COLUMN aq.propagations.most_bytes IS 'bytes in the largest batch';
COMMENT ON COLUMN aq.propagations.last_run IS 'when messages were last moved; null: not yet';
COMMENT ON COLUMN aq.propagations.failures IS 'errors in a row, since messages were last moved';
COMMENT ON COLUMN aq.propagations.last_error IS 'message of the last error, which can hold parts of payloads and the address of another server: only for members of the role that has scheduled it and of pg_monitor; null: none';
COMMENT ON COLUMN aq.propagations.last_error_time IS 'time of the last error';
GRANT SELECT ON aq.propagations TO PUBLIC;
