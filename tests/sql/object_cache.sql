-- The object cache: what it shows, hot copies, locks and pins for each use.
SELECT column_name FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = 'v$db_object_cache' ORDER BY ordinal_position;
SELECT column_name FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = 'v$libcache_locks' ORDER BY ordinal_position;
SELECT column_name FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = 'v$librarycache' ORDER BY ordinal_position;

-- the worker has looked at all queues when it makes this message ready
SELECT aq.create_queue('tick');
SELECT aq.enqueue('tick', '1', delay => '0.01 s') IS NOT NULL AS enqueued;
CALL aq.wait('tick', NULL, '1 minute', NULL);
SELECT aq.drop_queue('tick', force => true);

-- a queue that nobody else uses; the worker has nothing to do for it
CREATE VIEW cached AS
SELECT property, status, lock_mode, pin_mode, kept, invalidations, locked_total, pinned_total, mutex_gets
FROM sys."v$db_object_cache" WHERE name = 'CACHED' ORDER BY property NULLS FIRST;
SELECT aq.create_queue('cached');
SELECT count(*) FROM cached;

-- kept: one pin for the session
SELECT count(*) FROM aq.browse('cached');
SELECT count(*) FROM aq.browse('cached');
SELECT property, status, lock_mode, pin_mode, pinned_total FROM cached;
SELECT l.type, l.mode_held, l.mode_requested FROM sys."v$libcache_locks" l
JOIN sys."v$db_object_cache" o ON o.addr = l.object_handle WHERE o.name = 'CACHED' ORDER BY 1;
SELECT l.type, l.mode_held, l.mode_requested, l.pid = pg_backend_pid() AS own FROM aq.object_locks l
JOIN aq.cached_objects o ON o.addr = l.object WHERE o.queue_name = 'cached' ORDER BY 1;

-- for each look: a lock and a pin, four gets of the mutex
SET pgaq.session_pins = off;
SELECT count(*) FROM aq.browse('cached');
SELECT lock_mode, pin_mode FROM cached;
SELECT locked_total AS locked, pinned_total AS pinned, mutex_gets AS gets FROM cached \gset
SELECT count(*) FROM aq.browse('cached');
SELECT count(*) FROM aq.browse('cached');
SELECT locked_total > :locked AS locks, pinned_total - :pinned = locked_total - :locked AS as_many_pins,
	(mutex_gets - :gets) / (locked_total - :locked) AS gets, (mutex_gets - :gets) % (locked_total - :locked) AS rest FROM cached;

-- a transaction's pins last as long as it does
BEGIN;
SELECT count(*) FROM aq.browse('cached');
SELECT lock_mode, pin_mode FROM cached;
COMMIT;
SELECT lock_mode, pin_mode FROM cached;

-- changes, also those that are rolled back; what others change in the same moment does not show here
SELECT invalidations AS before FROM cached \gset
SELECT aq.alter_queue('cached', max_retries => 7);
SELECT invalidations - :before AS invalidations FROM cached;
BEGIN;
SELECT aq.alter_queue('cached', max_retries => 8);
ROLLBACK;
SELECT invalidations - :before AS invalidations FROM cached;
SELECT max_retries FROM aq.queues WHERE queue_name = 'cached';

-- hot
SHOW pgaq.hot_object_copies;
CALL dbms_shared_pool.markhot(NULL, 'CACHED', 10, true);
SELECT count(*) > 2 FROM cached;
SELECT property, status, kept FROM cached WHERE property IN ('HOT', 'HOTCOPY1', 'HOTCOPY2');
SELECT count(DISTINCT (hash_value, full_hash_value)) = count(*) AS own_hashes FROM sys."v$db_object_cache" WHERE name = 'CACHED';
SELECT count(*) FROM aq.browse('cached');
SELECT mutex_gets AS gets FROM cached WHERE property = 'HOT' \gset
SELECT sum(locked_total) AS locked, sum(mutex_gets) AS copygets FROM cached WHERE property LIKE 'HOTCOPY%' \gset
SELECT count(*) FROM aq.browse('cached');
SELECT count(*) FROM aq.browse('cached');
SELECT mutex_gets - :gets AS gets_of_master FROM cached WHERE property = 'HOT';
SELECT (sum(mutex_gets) - :copygets) / (sum(locked_total) - :locked) = 4 AS four_gets, count(*) FILTER (WHERE locked_total > 0) AS copies_used
FROM cached WHERE property LIKE 'HOTCOPY%';

-- a change reaches all copies, and its result the session
SELECT aq.stop_queue('cached');
SELECT min(invalidations) > 0 AS all_know FROM cached;
SELECT count(*) FROM aq.browse('cached');
SELECT aq.start_queue('cached');
SELECT count(*) FROM aq.browse('cached');

-- who waits for the queue's users to end says so in the master's value, and takes it back there
SELECT aq.stop_queue('cached', wait => true);
SELECT aq.start_queue('cached');
SELECT aq.enqueue('cached', '5') IS NOT NULL AS put;
SELECT payload FROM aq.dequeue('cached');
SELECT * FROM aq.check();

-- by hash; and again cold
SELECT full_hash_value AS hash FROM sys."v$db_object_cache" WHERE name = 'CACHED' AND property = 'HOT' \gset
CALL dbms_shared_pool.unmarkhot(:'hash', 10);
SELECT property, status, kept FROM cached;
SELECT count(*) FROM aq.browse('cached');
CALL dbms_shared_pool.markhot(:'hash', 10, global => false);
SELECT count(*) > 2 FROM cached;
CALL dbms_shared_pool.unmarkhot('', 'cached');
CALL dbms_shared_pool.unmarkhot(NULL, 'cached');
CALL dbms_shared_pool.unmarkhot(NULL, 'cached');
SELECT property FROM cached;

-- a session that has ended, which takes a moment, has neither lock nor pin
SELECT count(*) FROM aq.browse('cached');
CREATE VIEW holders AS SELECT l.type FROM sys."v$libcache_locks" l JOIN sys."v$db_object_cache" o ON o.addr = l.object_handle
	WHERE o.name = 'CACHED' AND l.pid NOT IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq worker');
SELECT count(*) > 0 AS known FROM holders;
\c
DO $$
BEGIN
	FOR i IN 1..1000 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM holders);
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;
SELECT * FROM holders;
DROP VIEW holders;

-- mistakes
CALL dbms_shared_pool.markhot(NULL, 'nobody knows it');
CALL dbms_shared_pool.markhot('public', 'cached');
CALL dbms_shared_pool.markhot(NULL, 'cached', 1);
CALL dbms_shared_pool.markhot('0123', 10);
CALL dbms_shared_pool.markhot('0123', 1);
SET ROLE pg_monitor;
CALL dbms_shared_pool.markhot(NULL, 'cached');
RESET ROLE;

-- dropped while it is hot: copies go, too
CALL dbms_shared_pool.markhot(NULL, 'cached');
SELECT count(*) FROM aq.browse('cached');
SELECT aq.drop_queue('cached');
SELECT count(*) FROM sys."v$db_object_cache" o WHERE NOT EXISTS (SELECT FROM aq_internal.queue q WHERE q.queue_id = o.queue_id)
	AND o.property IS NOT NULL;
SELECT namespace, gets >= gethits AND pins >= pinhits AS sane, gethitratio BETWEEN 0 AND 1 AND pinhitratio BETWEEN 0 AND 1 AS ratios
FROM sys."v$librarycache";
DROP VIEW cached;
