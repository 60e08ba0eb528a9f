-- Parameters of latches and mutexes: what they take, and that a wrong value changes nothing.
\pset format unaligned
SET pgaq.latch_classes = 'shard stream:1, Message Cache:7,lab:0';
SHOW pgaq.latch_classes;
SELECT * FROM t.error($$ SET pgaq.latch_classes = 'shard streams:1' $$);
SELECT * FROM t.error($$ SET pgaq.latch_classes = 'shard stream' $$);
SELECT * FROM t.error($$ SET pgaq.latch_classes = 'shard stream:8' $$);
SELECT * FROM t.error($$ SET pgaq.latch_classes = 'shard stream:11' $$);
SELECT * FROM t.error($$ SET pgaq.latch_classes = ':1' $$);
SHOW pgaq.latch_classes;
-- a class: spin yield waittime sleep0 ... sleep7
SET pgaq.latch_class_1 = '250';
SET pgaq.latch_class_2 = '-1 3 0';
SET pgaq.latch_class_3 = ' 20000 0 1 1 2 3 4 5 6 7 10000000 ';
SET pgaq.latch_class_4 = '';
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '-2' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '100 many' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '100 0 2' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '100 0 1 0' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '100 0 1 1000, 2000' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '99999999999999999999' $$);
SELECT * FROM t.error($$ SET pgaq.latch_class_1 = '1 1 1 1 1 1 1 1 1 1 1 12' $$);
SHOW pgaq.latch_class_1;
-- mutexes, all and by type
SET pgaq.mutex_wait_scheme = 1;
SET pgaq.wait_yield_mode = sleep;
SELECT * FROM t.error($$ SET pgaq.wait_yield_mode = never $$);
SELECT * FROM t.error($$ SET pgaq.mutex_wait_scheme = 256 $$);
SET pgaq.mutex_types = 'Library Cache:scheme=1 time=10, library cache bucket: spin=500 ';
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library:scheme=1' $$);
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library Cache:' $$);
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library Cache:scheme=256' $$);
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library Cache:scheme=1 time=ten' $$);
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library Cache:spin=0' $$);
SELECT * FROM t.error($$ SET pgaq.mutex_types = 'Library Cache' $$);
SHOW pgaq.mutex_types;
-- the classes and their latches, also by the names that Oracle's own scripts use
SELECT class, spin_count, yields, timed, sleep_us, latches FROM aq.latch_classes WHERE class IN (1, 2, 3, 4, 7);
SELECT bool_and(spin_count = current_setting('pgaq.spin_count')::int AND NOT timed) AS defaults, cardinality(max(latches)) = (SELECT count(*) - 2 FROM sys.v$latchname) AS rest FROM aq.latch_classes WHERE class = 0;
SELECT kslltnam AS latch_name, class_ksllt AS latch_class, c.spin AS class_spin_count FROM sys.x$kslltr r, sys.x$ksllclass c WHERE c.indx = r.class_ksllt AND r.class_ksllt > 0 ORDER BY 2;
SELECT la."child#" AS latch_child, kqrstcid AS "cache#", kqrsttxt AS parameter FROM sys.x$kqrst dc, sys.v$latch_children la
WHERE dc.kqrstcln = la."child#" AND la.name = 'row cache objects' AND la.addr IS NOT NULL ORDER BY 2;
