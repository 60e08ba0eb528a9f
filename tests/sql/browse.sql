-- aq.browse: looks, page after page, and takes nothing.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('b', retry_delay => '0');
SELECT t.put('b', 1, 250);
SELECT count(*) FROM aq.browse('b');			-- 100 unless told
SELECT count(*) FROM aq.browse('b', max_messages => 1000);
-- paging by the last id
CREATE TEMP TABLE page (n serial, msgid uuid, payload jsonb);
INSERT INTO page (msgid, payload) SELECT msgid, payload FROM aq.browse('b', max_messages => 99);
INSERT INTO page (msgid, payload) SELECT msgid, payload FROM aq.browse('b', max_messages => 99, after => (SELECT msgid FROM page ORDER BY n DESC LIMIT 1));
INSERT INTO page (msgid, payload) SELECT msgid, payload FROM aq.browse('b', max_messages => 99, after => (SELECT msgid FROM page ORDER BY n DESC LIMIT 1));
INSERT INTO page (msgid, payload) SELECT msgid, payload FROM aq.browse('b', max_messages => 99, after => (SELECT msgid FROM page ORDER BY n DESC LIMIT 1));
SELECT count(*), bool_and(payload = to_jsonb(n)) FROM page;
-- with priorities
SELECT aq.enqueue('b', '"first"', priority => 0) IS NOT NULL;
SELECT payload FROM aq.browse('b', max_messages => 2);
-- choosing
SELECT payload FROM aq.browse('b', condition => 'payload = ''77''');
SELECT count(*) FROM aq.browse('b', correlation => 'x%');
-- in READ ONLY transactions
BEGIN READ ONLY;
SELECT payload FROM aq.browse('b', max_messages => 1);
COMMIT;
-- typed
SELECT aq.create_queue('b_text', 'text', retry_delay => '0');
SELECT aq.enqueue('b_text', 'x') IS NOT NULL;
SELECT payload FROM aq.browse('b_text', as_type => NULL::text);
-- what another transaction took is not shown; own take neither
BEGIN;
SELECT payload FROM aq.dequeue('b', max_messages => 3);
SELECT payload FROM aq.browse('b', max_messages => 2);
ROLLBACK;
SELECT payload, attempts FROM aq.browse('b', max_messages => 2);
-- refused
SELECT t.error($$SELECT count(*) FROM aq.browse('no such queue')$$);
SELECT t.error($$SELECT count(*) FROM aq.browse('b', max_messages => -1)$$);
SELECT t.error($$SELECT count(*) FROM aq.browse('b', 'consumer')$$);
SELECT t.error($$SELECT count(*) FROM aq.browse('b', after => '00000000-0000-0000-0000-000000000000')$$);
SELECT aq.drop_queue('b', true);
SELECT aq.drop_queue('b_text', true);
