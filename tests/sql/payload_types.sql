-- Every payload type: what goes in comes out, by each overload.
\pset format unaligned
\pset tuples_only on
CREATE TYPE t.address AS (street text, zip integer);
CREATE TYPE t.customer AS (id bigint, name text, tags text[], home t.address, born date);
SELECT aq.create_queue('p_jsonb');
SELECT aq.create_queue('p_text', 'text');
SELECT aq.create_queue('p_bytea', 'bytea');
SELECT aq.create_queue('p_xml', 'xml');
SELECT aq.create_queue('p_row', 't.customer');

-- jsonb: literal, text, jsonb, varchar
SELECT aq.enqueue('p_jsonb', '{"literal": 1}') IS NOT NULL;
SELECT aq.enqueue('p_jsonb', '{"text": 2}'::text) IS NOT NULL;
SELECT aq.enqueue('p_jsonb', '{"jsonb": 3}'::jsonb) IS NOT NULL;
SELECT aq.enqueue('p_jsonb', '{"varchar": 4}'::varchar) IS NOT NULL;
SELECT aq.enqueue('p_jsonb', jsonb_build_object('built', 5)) IS NOT NULL;
SELECT aq.enqueue('p_jsonb', 'null') IS NOT NULL;
SELECT aq.enqueue('p_jsonb', '"string"') IS NOT NULL;
SELECT payload FROM aq.dequeue('p_jsonb', max_messages => 3);
SELECT payload FROM aq.dequeue('p_jsonb', NULL::jsonb, max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('p_jsonb', 'not json')$$);
SELECT t.error($$SELECT aq.enqueue('p_jsonb', '\x00'::bytea)$$);
SELECT t.error($$SELECT aq.enqueue('p_jsonb', 42)$$);
SELECT t.error($$SELECT aq.enqueue('p_jsonb', '{}'::json)$$);

-- text
SELECT aq.enqueue('p_text', 'literal') IS NOT NULL;
SELECT aq.enqueue('p_text', 'text'::text) IS NOT NULL;
SELECT aq.enqueue('p_text', 'varchar'::varchar) IS NOT NULL;
SELECT aq.enqueue('p_text', 'name'::name::text) IS NOT NULL;
SELECT aq.enqueue('p_text', '') IS NOT NULL;
SELECT aq.enqueue('p_text', E'two\nlines, "quotes" and \\ and ü') IS NOT NULL;
SELECT '<' || payload || '>' FROM aq.dequeue('p_text', as_type => NULL::text, max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('p_text', '{}'::jsonb)$$);
SELECT t.error($$SELECT aq.enqueue('p_text', 1.5)$$);

-- bytea
SELECT aq.enqueue('p_bytea', '\x00ff'::bytea) IS NOT NULL;
SELECT aq.enqueue('p_bytea', '\x01') IS NOT NULL;			-- a literal goes through bytea's input function
SELECT aq.enqueue('p_bytea', ''::bytea) IS NOT NULL;
SELECT payload, length(payload) FROM aq.dequeue('p_bytea', as_type => NULL::bytea, max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('p_bytea', '{}'::jsonb)$$);

-- xml
SELECT aq.enqueue('p_xml', '<a>literal</a>') IS NOT NULL;
SELECT aq.enqueue('p_xml', '<a>xml</a>'::xml) IS NOT NULL;
SELECT payload, pg_typeof(payload) FROM aq.dequeue('p_xml', as_type => NULL::xml, max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('p_xml', '<a>')$$);

-- composite
SELECT aq.enqueue('p_row', ROW(1, 'Ada', ARRAY['x', 'y'], ROW('High St', 123)::t.address, '1815-12-10')::t.customer) IS NOT NULL;
SELECT aq.enqueue('p_row', '(2,Bob,{},"(,5)",)') IS NOT NULL;
SELECT aq.enqueue('p_row', ROW(NULL, NULL, NULL, NULL, NULL)::t.customer) IS NOT NULL;
SELECT payload, (payload).home, (payload).name FROM aq.dequeue('p_row', NULL::t.customer, max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('p_row', ROW('x', 1)::t.address)$$);
SELECT t.error($$SELECT aq.enqueue('p_row', ROW(1, 'x'))$$);
SELECT t.error($$SELECT aq.enqueue('p_row', '(2')$$);

-- a null payload is a message without payload, or refused; the same for each type
SELECT q, split_part(t.error(format('SELECT aq.enqueue(%L, NULL)', q)), ' | ', 1)
FROM unnest(ARRAY['p_jsonb', 'p_text', 'p_bytea', 'p_xml', 'p_row']) AS q;
SELECT aq.purge_queue(q) FROM unnest(ARRAY['p_jsonb', 'p_text', 'p_bytea', 'p_xml', 'p_row']) AS q;

-- the wrong model type at dequeue is refused and takes nothing
SELECT aq.enqueue('p_text', 'kept') IS NOT NULL;
SELECT t.error($$SELECT payload FROM aq.dequeue('p_text')$$);
SELECT t.error($$SELECT payload FROM aq.dequeue('p_text', as_type => NULL::bytea)$$);
SELECT t.error($$SELECT payload FROM aq.browse('p_text')$$);
-- a number of messages without its name is no type
SELECT t.error($$SELECT payload FROM aq.dequeue('p_text', 10)$$);
SELECT t.error($$SELECT payload FROM aq.dequeue('p_text', 10::smallint)$$);
SELECT t.error($$SELECT payload FROM aq.dequeue('p_row', NULL::t.address)$$);
-- without its name a text is the consumer
SELECT t.error($$SELECT payload FROM aq.dequeue('p_text', NULL::text)$$);
SELECT payload FROM aq.dequeue('p_text', as_type => NULL::text);

-- arrays: the same overloads, order of ids is the order of elements
SELECT cardinality(aq.enqueue_array('p_jsonb', ARRAY['1', '2', '3']));
SELECT cardinality(aq.enqueue_array('p_jsonb', '{"4","5"}'));
SELECT split_part(t.error($$SELECT aq.enqueue_array('p_jsonb', 'no array')$$), ' | ', 1);
SELECT cardinality(aq.enqueue_array('p_jsonb', ARRAY['6', '7']::jsonb[]));
SELECT t.drain('p_jsonb');
SELECT cardinality(aq.enqueue_array('p_text', ARRAY['a', 'b'])), cardinality(aq.enqueue_array('p_text', ARRAY['c']::varchar[]::text[]));
SELECT string_agg(payload, ',') FROM aq.dequeue('p_text', as_type => NULL::text, max_messages => 10);
SELECT cardinality(aq.enqueue_array('p_bytea', ARRAY['\x01', '\x02']::bytea[]));
SELECT payload FROM aq.dequeue('p_bytea', as_type => NULL::bytea, max_messages => 10);
SELECT cardinality(aq.enqueue_array('p_xml', ARRAY['<x/>', '<y/>']::xml[]));
SELECT payload FROM aq.dequeue('p_xml', as_type => NULL::xml, max_messages => 10);
SELECT cardinality(aq.enqueue_array('p_row', ARRAY[ROW(7, 'g', NULL, NULL, NULL), ROW(8, 'h', NULL, NULL, NULL)]::t.customer[]));
SELECT (payload).id FROM aq.dequeue('p_row', NULL::t.customer, max_messages => 10);
SELECT aq.enqueue_array('p_jsonb', '{}'::text[]);
SELECT split_part(t.error($$SELECT aq.enqueue_array('p_jsonb', NULL)$$), ' | ', 1);
SELECT t.error($$SELECT aq.enqueue_array('p_jsonb', ARRAY['1', 'bad', '3'])$$);
SELECT t.error($$SELECT aq.enqueue_array('p_jsonb', ARRAY[1, 2])$$);
SELECT t.drain('p_jsonb');		-- nothing of the refused array
SELECT cardinality(aq.enqueue_array('p_jsonb', ARRAY[['1', '2'], ['3', '4']]));
SELECT t.drain('p_jsonb');
-- ids and order agree
CREATE TEMP TABLE ids AS SELECT * FROM unnest(aq.enqueue_array('p_jsonb', (SELECT array_agg(n::text) FROM generate_series(1, 500) n))) WITH ORDINALITY AS u(msgid, n);
SELECT count(*), count(DISTINCT msgid) FROM ids;
SELECT count(*), bool_and(d.payload = to_jsonb(i.n)) FROM aq.dequeue('p_jsonb', max_messages => 1000) d JOIN ids i USING (msgid);
DROP TABLE ids;

-- large ones: toasted in the row and whole in the answer
SELECT aq.enqueue('p_text', repeat('pgaq ', 400000)) IS NOT NULL;
SELECT aq.enqueue('p_bytea', decode(repeat('00ff', 500000), 'hex')) IS NOT NULL;
SELECT length(payload), md5(payload) = md5(repeat('pgaq ', 400000)) FROM aq.dequeue('p_text', as_type => NULL::text);
SELECT length(payload), payload = decode(repeat('00ff', 500000), 'hex') FROM aq.dequeue('p_bytea', as_type => NULL::bytea);
-- sizes around the borders of an inline slot and of toast
SELECT bool_and(aq.enqueue('p_text', repeat('x', n)) IS NOT NULL) FROM unnest(ARRAY[0, 1, 126, 127, 128, 511, 512, 513, 1999, 2000, 2048, 8100, 8192, 8193, 16384]) n;
SELECT string_agg(length(payload)::text, ' ') FROM aq.dequeue('p_text', as_type => NULL::text, max_messages => 100);

-- a composite type that changes while messages are stored
SELECT aq.enqueue('p_row', ROW(9, 'old', NULL, NULL, NULL)::t.customer) IS NOT NULL;
ALTER TYPE t.customer ADD ATTRIBUTE email text;
SELECT aq.enqueue('p_row', ROW(10, 'new', NULL, NULL, NULL, 'n@x')::t.customer) IS NOT NULL;
SELECT (payload).id, (payload).name, (payload).email FROM aq.dequeue('p_row', NULL::t.customer, max_messages => 10);

SELECT aq.drop_queue(q) FROM unnest(ARRAY['p_jsonb', 'p_text', 'p_bytea', 'p_xml', 'p_row']) AS q;
DROP TYPE t.customer;
DROP TYPE t.address;
