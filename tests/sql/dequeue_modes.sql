-- Modes: browse, locked, remove, remove_nodata.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('m');
SELECT t.put('m', 1, 3);
-- browse takes nothing
SELECT payload FROM aq.dequeue('m', mode => 'browse');
SELECT payload FROM aq.dequeue('m', mode => 'browse', max_messages => 10);
-- locked: stays in the queue, nobody else gets it, attempts do not rise
BEGIN;
SELECT payload FROM aq.dequeue('m', mode => 'locked');
SELECT payload FROM aq.dequeue('m', mode => 'locked') ;			-- the holder gets the next one
COMMIT;
SELECT payload, attempts FROM aq.dequeue('m', mode => 'browse');
BEGIN;
SELECT msgid AS locked_id FROM aq.dequeue('m', mode => 'locked') \gset
SELECT payload FROM aq.dequeue('m', mode => 'remove_nodata', msgid => :'locked_id');		-- removes what it holds
COMMIT;
SELECT t.look('m');
BEGIN;
SELECT payload FROM aq.dequeue('m', mode => 'locked');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('m', mode => 'browse');
-- remove without data
SELECT payload, payload IS NULL, priority FROM aq.dequeue('m', mode => 'remove_nodata');
-- remove
SELECT payload FROM aq.dequeue('m', mode => 'remove');
SELECT t.look('m') IS NULL;
-- upper case is understood or refused; nonsense is refused
SELECT t.error($$SELECT count(*) FROM aq.dequeue('m', mode => 'REMOVE')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('m', mode => 'take')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('m', mode => '')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('m', mode => NULL)$$);
-- browse, then remove without data by id: the intended pair
SELECT t.put('m', 4);
SELECT msgid AS seen FROM aq.dequeue('m', mode => 'browse') \gset
SELECT payload FROM aq.dequeue('m', mode => 'remove_nodata', msgid => :'seen');
SELECT t.look('m') IS NULL;
-- own uncommitted messages in each mode
BEGIN;
SELECT aq.enqueue('m', '5') AS own \gset
SELECT payload FROM aq.dequeue('m', mode => 'browse');
SELECT payload FROM aq.dequeue('m', mode => 'locked');
SELECT payload FROM aq.dequeue('m', msgid => :'own');
SELECT t.look('m') IS NULL;
COMMIT;
SELECT aq.drop_queue('m');
