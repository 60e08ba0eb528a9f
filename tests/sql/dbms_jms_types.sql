-- Oracle's JMS types in PL/pgSQL: programs that write and read messages of all kinds, as Java programs receive and send them.
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA post;
SET search_path = post, sys, pg_catalog;
CALL dbms_aqadm.create_queue_table('letters_tab', 'SYS.AQ$_JMS_TEXT_MESSAGE');
CALL dbms_aqadm.create_queue('letters', 'letters_tab');
CALL dbms_aqadm.start_queue('letters');
CALL dbms_aqadm.create_transactional_event_queue('answers', queue_payload_type => 'JMS');
CALL dbms_aqadm.start_queue('answers');
CALL dbms_aqadm.create_transactional_event_queue('news', multiple_consumers => true, queue_payload_type => dbms_aqadm.jms_type());
CALL dbms_aqadm.start_queue('news');
SELECT queue_name, payload_type FROM aq.queues WHERE queue_name LIKE 'post.%' AND queue_type = 'normal' ORDER BY 1;

-- a text message with a header and properties of all types, and its answer
CREATE PROCEDURE send(p_text text, p_color text) LANGUAGE plpgsql AS $$
DECLARE
	l_options dbms_aq.enqueue_options_t;
	l_properties dbms_aq.message_properties_t;
	l_message sys.aq$_jms_text_message;
	l_id uuid;
BEGIN
	l_message := sys.aq$_jms_text_message();
	CALL sys.set_replyto(l_message, sys.aq$_agent('ME', 'post.answers', 0));
	CALL sys.set_type(l_message, 'greeting');
	CALL sys.set_userid(l_message, 'jmsuser');
	CALL sys.set_appid(l_message, 'plsql_enq');
	CALL sys.set_groupid(l_message, 'st');
	CALL sys.set_groupseq(l_message, 1);
	CALL sys.set_string_property(l_message, 'color', p_color);
	CALL sys.set_int_property(l_message, 'year', 1999);
	CALL sys.set_float_property(l_message, 'price', 16999.99);
	CALL sys.set_double_property(l_message, 'weight', 0.1);
	CALL sys.set_long_property(l_message, 'mileage', 300000);
	CALL sys.set_boolean_property(l_message, 'import', true);
	CALL sys.set_byte_property(l_message, 'password', -127);
	CALL sys.set_short_property(l_message, 'doors', 5);
	CALL sys.set_text(l_message, p_text);
	CALL dbms_aq.enqueue('post.letters', l_options, l_properties, l_message, l_id);
END $$;
CREATE PROCEDURE serve() LANGUAGE plpgsql AS $$
DECLARE
	l_options dbms_aq.dequeue_options_t;
	l_properties dbms_aq.message_properties_t;
	l_message sys.aq$_jms_text_message;
	l_answer sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	l_header sys.aq$_jms_header;
	l_text text;
	l_varchar varchar(4000);
	l_id uuid;
BEGIN
	l_options.wait := dbms_aq.no_wait();
	CALL dbms_aq.dequeue('post.letters', l_options, l_properties, l_message, l_id);
	CALL sys.get_text(l_message, l_text);
	CALL sys.get_text(l_message, l_varchar);
	RAISE NOTICE '% % % % %', l_text, l_varchar, (l_message).get_text, (l_message).text_vc, (l_message).text_len;
	RAISE NOTICE '% % % % %', sys.get_type(l_message), sys.get_userid(l_message), (l_message).get_appid, sys.get_groupid(l_message), sys.get_groupseq(l_message);
	RAISE NOTICE '% % % % % % % %', sys.get_string_property(l_message, 'color'), sys.get_int_property(l_message, 'year'), sys.get_float_property(l_message, 'price'),
		sys.get_double_property(l_message, 'weight'), sys.get_long_property(l_message, 'mileage'), sys.get_boolean_property(l_message, 'import'),
		sys.get_byte_property(l_message, 'password'), sys.get_short_property(l_message, 'doors');
	-- a property of another type is not found, as in Oracle
	RAISE NOTICE '% %', sys.get_int_property(l_message, 'doors'), sys.get_string_property(l_message, 'none');
	l_header := (l_message).header;
	RAISE NOTICE '%', l_header;
	CALL sys.set_text(l_answer, 'read: ' || l_text);
	CALL dbms_aq.enqueue((sys.get_replyto(l_message)).address, NULL, NULL, l_answer, l_id);
END $$;
CALL send('hello', 'RED');
SELECT (t.user_data).text_vc, sys.get_string_property(t.user_data, 'color'), (t.user_data).get_type FROM aq$letters_tab t;
CALL serve();
SELECT (payload).text FROM aq.browse('post.answers', NULL::aq.jms_message);

-- a condition over methods and attributes, in Oracle's spelling
CALL send('green', 'GREEN');
CALL send('blue', 'BLUE');
CREATE FUNCTION take(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	l_message sys.aq$_jms_text_message;
	l_properties dbms_aq.message_properties_t;
	l_id uuid;
BEGIN
	CALL dbms_aq.dequeue('post.letters', dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => dbms_aq.browse(), navigation => dbms_aq.first_message(), deq_condition => condition), l_properties, l_message, l_id);
	RETURN sys.get_text(l_message);
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END $$;
SELECT take(condition) FROM unnest(ARRAY[
	'tab.user_data.get_string_property(''color'') = ''BLUE''',
	'user_data.get_int_property(''year'') > 1998 AND tab.user_data.text_vc LIKE ''b%''',
	'tab.user_data.header.type = ''greeting'' AND tab.user_data.header.get_string_property(''color'') = ''BLUE''',
	'tab.user_data.get_type() = ''greeting'' AND (tab.user_data.header.replyto).address = ''POST.ANSWERS'' AND coalesce(tab.user_data.get_string_property(''none''), ''x'') = ''x''',
	'tab.user_data.get_string_property(''color'') = ''WHITE''',
	'cardinality(tab.user_data.header.properties) = 8', 'tab.user_data.header IS NOT NULL AND tab.user_data.header.no_field = 1', 'tab.user_data.header.no_method() = 1',
	'tab.user_data.no_method(1)', 'tab.user_data.no_attribute = 1', 'tab.no_attribute.get_type() = ''x''']) condition;

-- rules of subscribers
CALL dbms_aqadm.add_subscriber('news', sys.aq$_agent('RED', NULL, NULL), rule => 'coalesce(tab.user_data.get_string_property(''color''), ''RED'') = ''RED''');
CALL dbms_aqadm.add_subscriber('news', sys.aq$_agent('URGENT', NULL, NULL), rule => 'tab.priority = 0 OR tab.user_data.header.get_int_property(''urgency'') > 3');
CALL dbms_aqadm.add_subscriber('news', sys.aq$_agent('BOOKS', NULL, NULL), rule => 'tab.user_data.header.type = ''book''');
SELECT t.error($$CALL dbms_aqadm.add_subscriber('news', sys.aq$_agent('BAD', NULL, NULL), rule => 'tab.user_data.get_colour() = 1')$$);
DO $$
DECLARE
	l_message sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	l_id uuid;
BEGIN
	CALL dbms_aq.enqueue('news', NULL, NULL, l_message, l_id);
	CALL sys.set_string_property(l_message, 'color', 'BLUE');
	CALL sys.set_int_property(l_message, 'urgency', 5);
	CALL dbms_aq.enqueue('news', NULL, NULL, l_message, l_id);
	CALL sys.clear_properties(l_message);
	CALL sys.set_string_property(l_message, 'color', 'BLUE');
	CALL sys.set_type(l_message, 'book');
	CALL dbms_aq.enqueue('news', NULL, NULL, l_message, l_id);
END $$;
SELECT consumer_name, sys.get_string_property(t.user_data, 'color'), sys.get_int_property(t.user_data, 'urgency'), (t.user_data).get_type FROM aq$news t ORDER BY 1;
SELECT consumer, rule_failures FROM aq.subscribers WHERE queue_name = 'post.news' ORDER BY 1;

-- methods of users' payload types are functions in the schema of the type
CREATE TYPE parcel AS (grams integer, sender text);
CREATE FUNCTION weighs(self parcel, grams integer) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN (self).grams >= grams;
SELECT aq.create_queue('post.parcels', 'post.parcel');
SELECT aq.enqueue('post.parcels', ROW(n * 100, 'a')::post.parcel) IS NOT NULL FROM generate_series(1, 3) n;
SET search_path = pg_catalog;
SELECT payload FROM aq.dequeue('post.parcels', as_type => NULL::post.parcel, condition => 'tab.user_data.weighs(200)');
SET search_path = post, sys, pg_catalog;

-- bytes, written and read value by value
DO $$
DECLARE
	l_message sys.aq$_jms_bytes_message := sys.aq$_jms_bytes_message();
	l_any sys.aq$_jms_message;
	l_properties dbms_aq.message_properties_t;
	l_op integer;
	l_bytes bytea;
	l_text text;
	l_n integer;
	l_id uuid;
BEGIN
	l_op := sys.clear_body(l_message, -1);
	CALL sys.write_byte(l_message, l_op, 10);
	CALL sys.write_bytes(l_message, l_op, '\x616263');
	CALL sys.write_bytes(l_message, l_op, '\x616263'::bytea, 1, 2);
	CALL sys.write_char(l_message, l_op, 'A');
	CALL sys.write_double(l_message, l_op, 9999.99);
	CALL sys.write_float(l_message, l_op, 99.99);
	CALL sys.write_int(l_message, l_op, 12345);
	CALL sys.write_long(l_message, l_op, -1234567);
	CALL sys.write_short(l_message, l_op, 123);
	CALL sys.write_utf(l_message, l_op, U&'h\00E9 \+01F600');
	CALL sys.write_boolean(l_message, l_op, true);
	CALL sys.write_byte(l_message, l_op, -1);
	CALL sys.write_short(l_message, l_op, -1);
	CALL sys.flush(l_message, l_op);
	CALL sys.clean(l_message, l_op);
	CALL dbms_aq.enqueue('answers', NULL, NULL, l_message, l_id);
	CALL dbms_aq.dequeue('answers', dbms_aq.dequeue_options_t(wait => 0, msgid => l_id), l_properties, l_any, l_id);
	RAISE NOTICE '% % % %', (l_any).message_type = dbms_aq.jms_bytes_message(), sys.cast_to_text_msg(l_any), sys.bytes_len(l_any), sys.get_bytes(l_any);
	l_message := sys.cast_to_bytes_msg(l_any);
	l_op := sys.prepare(l_message, -1);
	RAISE NOTICE 'mode %', sys.get_mode(l_message, l_op) = dbms_aqjms.message_access_readonly();
	RAISE NOTICE '%', sys.read_byte(l_message, l_op);
	CALL sys.read_bytes(l_message, l_op, l_bytes, 5, l_n);
	RAISE NOTICE '% %', l_bytes, l_n;
	RAISE NOTICE '% % % % % %', sys.read_char(l_message, l_op), sys.read_double(l_message, l_op), sys.read_float(l_message, l_op), sys.read_int(l_message, l_op),
		sys.read_long(l_message, l_op), sys.read_short(l_message, l_op);
	CALL sys.read_utf(l_message, l_op, l_text);
	RAISE NOTICE '% % % % %', l_text = U&'h\00E9 \+01F600', sys.read_boolean(l_message, l_op), sys.read_unsigned_byte(l_message, l_op), sys.read_unsigned_short(l_message, l_op),
		sys.read_int(l_message, l_op);
	CALL sys.read_bytes(l_message, l_op, l_bytes, 5, l_n);
	RAISE NOTICE '% %', l_bytes, l_n;
	CALL sys.reset(l_message, l_op);
	RAISE NOTICE '%', sys.read_unsigned_byte(l_message, l_op);
	CALL sys.clean_all();
	-- the whole body at once
	CALL sys.set_bytes(l_message, '\x00ff');
	CALL sys.get_bytes(l_message, l_bytes);
	RAISE NOTICE '% %', l_bytes, (l_message).bytes_raw;
END $$;

-- a map
DO $$
DECLARE
	l_message sys.aq$_jms_map_message := sys.aq$_jms_map_message();
	l_properties dbms_aq.message_properties_t;
	l_op integer;
	l_names sys.aq$_jms_namearray;
	l_value sys.aq$_jms_value;
	l_bytes bytea;
	l_text text;
	l_varchar varchar;
	l_n integer;
	l_id uuid;
BEGIN
	l_op := sys.prepare(l_message, NULL);
	CALL sys.set_string(l_message, l_op, 'type', 'status');
	CALL sys.set_long(l_message, l_op, 'millis', 1790000000000);
	CALL sys.set_int(l_message, l_op, 'count', 1);
	CALL sys.set_int(l_message, l_op, 'count', 7);
	CALL sys.set_short(l_message, l_op, 'short', -5);
	CALL sys.set_byte(l_message, l_op, 'byte', 5);
	CALL sys.set_float(l_message, l_op, 'float', 1.5);
	CALL sys.set_double(l_message, l_op, 'double', 'NaN');
	CALL sys.set_boolean(l_message, l_op, 'flag', false);
	CALL sys.set_char(l_message, l_op, 'char', 'x');
	CALL sys.set_bytes(l_message, l_op, 'bytes', '\x0102');
	CALL sys.set_bytes(l_message, l_op, 'some', '\x010203'::bytea, 0, 1);
	CALL sys.set_string(l_message, l_op, 'null', NULL);
	CALL sys.flush(l_message, l_op);
	CALL sys.clean(l_message, l_op);
	RAISE NOTICE '%', (l_message).text;
	CALL dbms_aq.enqueue('answers', NULL, NULL, l_message, l_id);
	l_message := NULL;
	CALL dbms_aq.dequeue('answers', dbms_aq.dequeue_options_t(wait => 0, msgid => l_id), l_properties, l_message, l_id);
	l_op := sys.prepare(l_message, -1);
	l_names := sys.get_names(l_message, l_op);
	RAISE NOTICE '% %', l_names, sys.get_size(l_message, l_op);
	CALL sys.get_names(l_message, l_op, l_names, 1, 2, l_n);
	RAISE NOTICE '% %', l_names, l_n;
	RAISE NOTICE '% % % % % % % % % %', sys.get_long(l_message, l_op, 'millis'), sys.get_int(l_message, l_op, 'count'), sys.get_long(l_message, l_op, 'count'),
		sys.get_short(l_message, l_op, 'short'), sys.get_byte(l_message, l_op, 'byte'), sys.get_float(l_message, l_op, 'float'), sys.get_double(l_message, l_op, 'double'),
		sys.get_boolean(l_message, l_op, 'flag'), sys.get_char(l_message, l_op, 'char'), sys.get_int(l_message, l_op, 'none');
	CALL sys.get_string(l_message, l_op, 'type', l_text);
	CALL sys.get_string(l_message, l_op, 'count', l_varchar);
	CALL sys.get_bytes(l_message, l_op, 'bytes', l_bytes);
	RAISE NOTICE '% % % % %', l_text, l_varchar, l_bytes, sys.item_exists(l_message, l_op, 'null'), sys.item_exists(l_message, l_op, 'none');
	FOREACH l_text IN ARRAY ARRAY['count', 'flag', 'char', 'type', 'bytes', 'null'] LOOP
		CALL sys.get_object(l_message, l_op, l_text, l_value);
		RAISE NOTICE '% %', l_text, l_value;
	END LOOP;
	RAISE NOTICE '%', (dbms_jms_plsql.data_type_integer(), dbms_jms_plsql.data_type_boolean(), dbms_jms_plsql.data_type_character(), dbms_jms_plsql.data_type_string(),
		dbms_jms_plsql.data_type_bytes());
	CALL sys.clean_all();
END $$;

-- numbers of other types, as in variables that were NUMBER
DO $$
DECLARE
	l_message sys.aq$_jms_map_message := sys.aq$_jms_map_message();
	l_bytes sys.aq$_jms_bytes_message := sys.aq$_jms_bytes_message();
	l_op numeric;
	l_one numeric := 1;
	l_names sys.aq$_jms_namearray;
	l_n integer;
BEGIN
	CALL sys.set_groupseq(l_message, l_one);
	l_op := sys.prepare(l_message, -l_one);
	CALL sys.set_int(l_message, l_op, 'n', 5::bigint);
	CALL sys.set_double(l_message, l_op, 'd', l_one);
	CALL sys.set_bytes(l_message, l_op, 'b', '\x010203'::bytea, l_one, l_one);
	CALL sys.get_names(l_message, l_op, l_names, l_one, l_one, l_n);
	RAISE NOTICE '% % % %', l_names, l_n, sys.get_int(l_message, l_op, 'n'), sys.get_double(l_message, l_op, 'd');
	CALL sys.flush(l_message, l_op);
	CALL sys.clean(l_message, l_op);
	RAISE NOTICE '%', l_message;
	l_op := sys.clear_body(l_bytes, NULL);
	CALL sys.write_bytes(l_bytes, l_op, '\x010203'::bytea, l_one, l_one);
	CALL sys.flush(l_bytes, l_op);
	CALL sys.clean(l_bytes, l_op);
	RAISE NOTICE '%', l_bytes;
END $$;

-- a stream: a value that cannot be converted stays the next one
DO $$
DECLARE
	l_message sys.aq$_jms_stream_message := sys.aq$_jms_stream_message();
	l_value sys.aq$_jms_value;
	l_op integer;
	l_bytes bytea;
	l_text text;
BEGIN
	l_op := sys.clear_body(l_message, -1);
	CALL sys.write_int(l_message, l_op, 7);
	CALL sys.write_string(l_message, l_op, '12');
	CALL sys.write_bytes(l_message, l_op, '\x616263');
	CALL sys.write_double(l_message, l_op, 2.5);
	CALL sys.write_boolean(l_message, l_op, true);
	CALL sys.write_string(l_message, l_op, NULL);
	CALL sys.write_string(l_message, l_op, 'end');
	CALL sys.flush(l_message, l_op);
	RAISE NOTICE '%', (l_message).text;
	CALL sys.reset(l_message, l_op);
	RAISE NOTICE '% %', sys.read_long(l_message, l_op), sys.read_int(l_message, l_op);
	RAISE NOTICE '%', t.error(format('SELECT sys.read_int(aq_jms.construct(''stream''), %s)', l_op));
	CALL sys.read_bytes(l_message, l_op, l_bytes);
	CALL sys.read_string(l_message, l_op, l_text);
	CALL sys.read_object(l_message, l_op, l_value);
	RAISE NOTICE '% % %', l_bytes, l_text, l_value;
	CALL sys.read_string(l_message, l_op, l_text);
	RAISE NOTICE '%', l_text;
	CALL sys.read_string(l_message, l_op, l_text);
	RAISE NOTICE '% %', l_text, sys.read_int(l_message, l_op);
	CALL sys.clean(l_message, l_op);
END $$;

-- errors have Oracle's numbers
CREATE FUNCTION fails(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	-- what PostgreSQL advises when a function is missing depends on its version
	RETURN regexp_replace(t.error(format($do$DO $body$
DECLARE
	m sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	none sys.aq$_jms_text_message;
	b sys.aq$_jms_bytes_message := sys.aq$_jms_bytes_message();
	map sys.aq$_jms_map_message := sys.aq$_jms_map_message();
	stream sys.aq$_jms_stream_message := sys.aq$_jms_stream_message();
	header sys.aq$_jms_header;
	n integer;
BEGIN
	CALL sys.set_string_property(m, 'x', 'y');
	header := (m).header;
	%s;
END $body$ $do$, statement)), '^(42883 [|] [^|]*) [|].*', '\1');
END $$;
SELECT fails FROM unnest(ARRAY[
	'CALL sys.set_int_property(m, ''x'', 1)', 'CALL sys.lookup_property_name(header, ''x'')', 'CALL sys.lookup_property_name(header, ''z'')',
	'CALL sys.set_int_property(m, NULL, 1)', 'CALL sys.set_byte_property(m, ''b'', 128)', 'CALL sys.set_long_property(m, ''l'', 1e19)',
	'CALL sys.set_text(none, ''x'')', 'CALL sys.set_text(map, ''x'')', 'CALL sys.set_text(n, ''x'')', 'n := sys.prepare(m, -1)',
	'CALL sys.flush(map, 17)', 'CALL sys.clean(map, NULL)', 'n := sys.prepare(b, -1); CALL sys.write_int(b, n, 1)', 'n := sys.clear_body(b, -1); n := sys.read_int(b, n)',
	'n := sys.clear_body(b, -1); CALL sys.write_byte(b, n, 256)', 'n := sys.clear_body(b, -1); CALL sys.write_char(b, n, ''ab'')', 'n := sys.clear_body(b, -1); CALL sys.write_int(b, n, NULL)',
	'n := sys.clear_body(b, -1); CALL sys.write_utf(b, n, repeat(''x'', 65536))', 'n := sys.clear_body(b, -1); CALL sys.write_utf(b, n, NULL)', 'CALL sys.write_utf(b, NULL, ''x'')', 'n := sys.clear_body(b, -1); CALL sys.write_bytes(b, n, ''\x01''::bytea, 1, 1)',
	'n := sys.prepare(map, -1); CALL sys.write_int(map, n, 1)', 'n := sys.clear_body(stream, -1); CALL sys.set_int(stream, n, ''x'', 1)', 'n := sys.prepare(map, -1); n := sys.read_int(map, n)', 'n := sys.prepare(map, -1); CALL sys.flush(b, n)', 'n := sys.prepare(map, -1); CALL sys.set_int(map, n, '''', 1)',
	'n := sys.prepare(map, -1); CALL sys.set_string(map, n, ''s'', ''x''); n := sys.get_int(map, n, ''s'')',
	'CALL sys.clean_all(); FOR i IN 1 .. 21 LOOP n := sys.clear_body(b, -1); END LOOP']) statement, fails(statement);
CALL sys.clean_all();
-- an operation is that of the role
SELECT sys.clear_body(aq_jms.construct('map'), NULL) AS op \gset
SET ROLE regress_ora_user;
SELECT t.error(format('SELECT sys.get_size(NULL, %s)', :op)), sys.clear_body(aq_jms.construct('stream'), NULL) <> :op;
CALL sys.clean_all();
RESET ROLE;
SELECT sys.get_size(NULL, :op);
CALL sys.clean_all();
SELECT t.error(format('SELECT sys.get_size(NULL, %s)', :op));
SELECT sys.aq$_jms_message(dbms_aqjms.jms_map_message()), sys.aq$_jms_message(dbms_aqjms.jms_text_message()), (sys.aq$_jms_message(sys.aq$_jms_stream_message())).message_type;
SELECT t.error('SELECT sys.aq$_jms_message(9)'), sys.get_exception();
SELECT t.error('SELECT dbms_jms_plsql.convert_jms_selector(''a = 1'')');
SELECT t.error($$SELECT sys.get_bytes(aq_jms.set_header(aq_jms.construct('bytes'), 'content_length', '5000000'))$$);

-- a message of another kind stays in the queue, also with immediate visibility
DO $$
DECLARE
	l_text sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	l_map sys.aq$_jms_map_message;
	l_properties dbms_aq.message_properties_t;
	l_options dbms_aq.dequeue_options_t;
	l_id uuid;
	l_ignored uuid;
BEGIN
	CALL dbms_aq.enqueue('answers', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, l_text, l_id);
	FOREACH l_options.visibility IN ARRAY ARRAY[dbms_aq.on_commit(), dbms_aq.immediate()] LOOP
		l_options.msgid := l_id;
		BEGIN
			CALL dbms_aq.dequeue('answers', l_options, l_properties, l_map, l_ignored);
		EXCEPTION WHEN OTHERS THEN
			RAISE NOTICE '%', sqlerrm;
		END;
	END LOOP;
	CALL dbms_aq.dequeue('answers', l_options, l_properties, l_text, l_ignored);
	RAISE NOTICE '%', l_text;
END $$;

-- arrays
DO $$
DECLARE
	l_messages sys.aq$_jms_text_message[];
	l_message sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	l_properties dbms_aq.message_properties_array_t;
	l_ids dbms_aq.msgid_array_t;
	l_n integer;
BEGIN
	CALL dbms_aqadm.purge_queue_table('answers', NULL, NULL);
	FOR i IN 1 .. 3 LOOP
		CALL sys.set_text(l_message, 'text ' || i);
		l_messages[i] := l_message;
	END LOOP;
	CALL dbms_aq.enqueue_array('answers', NULL, 3, array_fill(NULL::dbms_aq.message_properties_t, ARRAY[3]), l_messages, l_ids, l_n);
	l_messages := NULL;
	CALL dbms_aq.dequeue_array('answers', dbms_aq.dequeue_options_t(wait => 0), 10, l_properties, l_messages, l_ids, l_n);
	RAISE NOTICE '% % %', l_n, (l_messages[1]).get_text, (l_messages[3]).get_text;
END $$;

-- a header as a value, and messages of their attributes
DO $$
DECLARE
	l_header sys.aq$_jms_header;
	l_message sys.aq$_jms_text_message;
BEGIN
	CALL sys.set_type(l_header, 'greeting');
	CALL sys.set_replyto(l_header, sys.aq$_agent(NULL, 'NEWS', NULL));
	CALL sys.set_groupid(l_header, 'g');
	CALL sys.set_boolean_property(l_header, 'flag', true);
	CALL sys.set_byte_property(l_header, 'small', 5);
	l_message := sys.aq$_jms_text_message(l_header, 5, 'hello', NULL);
	RAISE NOTICE '%', l_message;
	RAISE NOTICE '% % % % %', (l_message).header = l_header, sys.get_type(l_header), sys.get_boolean_property(l_header, 'flag'),
		sys.get_boolean_property_as_int(l_header, 'flag'), sys.get_byte_property(l_header, 'small');
	RAISE NOTICE '% %', sys.aq$_jms_bytes_message(l_header, 1, '\x01', NULL), sys.cast_to_object_msg(sys.aq$_jms_object_message(NULL, 1, NULL, '\x02'));
	CALL sys.clear_properties(l_header);
	CALL sys.set_type(l_header, NULL);
	CALL sys.set_groupid(l_header, NULL);
	RAISE NOTICE '%', l_header;
END $$;
-- where to answer to a Java program: its queue, also a temporary one
SELECT sys.get_replyto(aq_jms.set_header(aq_jms.construct('text'), 'reply_to', address)) FROM unnest(ARRAY['queue:post.letters', 'topic:News', 'temporary-queue:aq$temp_3/12', 'queue:a/12']) address;

-- a transformation of JMS messages
CALL dbms_transform.create_transformation('post', 'loud', 'SYS', 'AQ$_JMS_TEXT_MESSAGE', 'SYS', 'AQ$_JMS_TEXT_MESSAGE', 'aq_jms.text(upper(sys.get_text(source.user_data)))');
DO $$
DECLARE
	l_message sys.aq$_jms_text_message := sys.aq$_jms_text_message();
	l_properties dbms_aq.message_properties_t;
	l_id uuid;
BEGIN
	CALL sys.set_text(l_message, 'hello');
	CALL dbms_aq.enqueue('answers', NULL, NULL, l_message, l_id);
	CALL dbms_aq.dequeue('answers', dbms_aq.dequeue_options_t(wait => 0, transformation => 'post.loud'), l_properties, l_message, l_id);
	RAISE NOTICE '%', (l_message).get_text;
END $$;

CALL dbms_aqadm.drop_queue_table('letters_tab', true);
CALL dbms_aqadm.drop_sharded_queue('answers', force => true);
CALL dbms_aqadm.drop_sharded_queue('news', force => true);
SELECT aq.drop_queue('post.parcels', force => true);
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA post CASCADE;
RESET client_min_messages;
