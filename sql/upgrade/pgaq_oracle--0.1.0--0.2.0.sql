\echo Use "ALTER EXTENSION pgaq_oracle UPDATE" to load this file. \quit
-- The extension needs the new functions of pgaq.
DO $$
BEGIN
	IF string_to_array((SELECT extversion FROM pg_extension WHERE extname = 'pgaq'), '.')::integer[] < string_to_array('0.2.0', '.')::integer[] THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'version 0.2.0 of the extension "pgaq_oracle" needs version 0.2.0 of the extension "pgaq"', HINT = 'First run ALTER EXTENSION pgaq UPDATE.';
	END IF;
END $$;

-- Written by tools/upgrade --write from here to the end: functions and views, their comments, owners and rights.
CREATE OR REPLACE FUNCTION sys._messages(queue_name text)
 RETURNS SETOF aq.messages
 LANGUAGE sql
BEGIN ATOMIC
 SELECT m.queue_name,
     m.consumer,
     m.msgid,
     m.state,
     m.priority,
     m.correlation,
     m.payload,
     m.enqueue_time,
     m.ready_at,
     m.expires_at,
     m.dequeue_time,
     m.attempts,
     m.sender,
     m.exception_queue,
     m.original_msgid,
     m.properties,
     m.shard,
     m.session_id,
     m.delivery_mode,
     m.in_memory,
     m.leased_since,
     m.leased_until,
     m.leased_by,
     m.last_error,
     m.dead_letter,
     m.key
    FROM aq.messages m
   WHERE (m.queue_name = _messages.queue_name);
END;
CREATE OR REPLACE FUNCTION sys._buffered_messages(queue_name text)
 RETURNS SETOF aq.messages
 LANGUAGE sql
BEGIN ATOMIC
 SELECT m.queue_name,
     m.consumer,
     m.msgid,
     m.state,
     m.priority,
     m.correlation,
     m.payload,
     m.enqueue_time,
     m.ready_at,
     m.expires_at,
     m.dequeue_time,
     m.attempts,
     m.sender,
     m.exception_queue,
     m.original_msgid,
     m.properties,
     m.shard,
     m.session_id,
     m.delivery_mode,
     m.in_memory,
     m.leased_since,
     m.leased_until,
     m.leased_by,
     m.last_error,
     m.dead_letter,
     m.key
    FROM aq.messages m
   WHERE ((m.queue_name = _buffered_messages.queue_name) AND (m.delivery_mode = 'buffered'::text));
END;
CREATE OR REPLACE PROCEDURE dbms_aqadm.schedule_propagation(IN queue_name text, IN destination text DEFAULT NULL::text, IN start_time timestamp with time zone DEFAULT NULL::timestamp with time zone, IN duration numeric DEFAULT NULL::numeric, IN next_time text DEFAULT NULL::text, IN latency numeric DEFAULT 60, IN destination_queue text DEFAULT NULL::text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$
BEGIN
	PERFORM aq.create_propagation(dbms_aqadm._queue(queue_name), dbms_aqadm._destination(destination, destination_queue),
		latency => dbms_aqadm._seconds(coalesce(latency, 60)), start_time => start_time, duration => dbms_aqadm._seconds(duration),
		every => dbms_aqadm._every(next_time, duration), subscribe => false);
END $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.unschedule_propagation(IN queue_name text, IN destination text DEFAULT NULL::text, IN destination_queue text DEFAULT NULL::text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$
BEGIN
	PERFORM aq.drop_propagation(dbms_aqadm._queue(queue_name), dbms_aqadm._destination(destination, destination_queue), unsubscribe => false);
END $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.create_aq_agent(IN agent_name text, IN certificate_location text DEFAULT NULL::text, IN enable_http boolean DEFAULT false, IN enable_smtp boolean DEFAULT false, IN enable_anyp boolean DEFAULT false)
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$ SELECT sys._refuse('dbms_aqadm.create_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.alter_aq_agent(IN agent_name text, IN certificate_location text DEFAULT NULL::text, IN enable_http boolean DEFAULT false, IN enable_smtp boolean DEFAULT false, IN enable_anyp boolean DEFAULT false)
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$ SELECT sys._refuse('dbms_aqadm.alter_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.drop_aq_agent(IN agent_name text)
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$ SELECT sys._refuse('dbms_aqadm.drop_aq_agent', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.enable_db_access(IN agent_name text, IN db_username text)
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$ SELECT sys._refuse('dbms_aqadm.enable_db_access', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $procedure$;
CREATE OR REPLACE PROCEDURE dbms_aqadm.disable_db_access(IN agent_name text, IN db_username text)
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$ SELECT sys._refuse('dbms_aqadm.disable_db_access', 'secure queues', 'Grant privileges to roles with dbms_aqadm.grant_queue_privilege.') $procedure$;
CREATE OR REPLACE FUNCTION sys._jms_set_replyto(self aq.jms_message, replyto sys."aq$_agent")
 RETURNS aq.jms_message
 LANGUAGE sql
RETURN aq_jms.set_header(aq_jms.set_header(self, 'reply_to_name'::text, NULLIF(btrim((replyto).name), ''::text)), 'reply_to'::text, sys._jms_reply_to(replyto));
CREATE OR REPLACE FUNCTION sys._jms_set_property(self aq.jms_message, property_name text, java_type text, value text)
 RETURNS aq.jms_message
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
	PERFORM sys._jms_check(self);
	IF coalesce(property_name, '') = '' THEN
		PERFORM sys._raise_error('AQ202', 'the name of a property must not be null');
	ELSIF self.properties ? property_name THEN
		PERFORM sys._raise_error('AQ201', format('the message already has a property "%s"', property_name), 'Remove all with clear_properties first.');
	END IF;
	CASE java_type
		WHEN 'boolean' THEN RETURN aq_jms.set_property(self, property_name, value::boolean);
		WHEN 'string' THEN RETURN aq_jms.set_property(self, property_name, value);
		WHEN 'float' THEN RETURN aq_jms.set_property(self, property_name, value::real);
		WHEN 'double' THEN RETURN aq_jms.set_property(self, property_name, value::double precision);
		WHEN 'long' THEN RETURN aq_jms.set_property(self, property_name, sys._jms_number(java_type, value::numeric)::bigint);
		WHEN 'int' THEN RETURN aq_jms.set_property(self, property_name, sys._jms_number(java_type, value::numeric)::integer);
		ELSE
			self := aq_jms.set_property(self, property_name, sys._jms_number(java_type, value::numeric)::smallint);
			self.property_types := self.property_types || jsonb_build_object(property_name, java_type);
			RETURN self;
	END CASE;
END $function$;
CREATE OR REPLACE FUNCTION sys._jms_set_field(self aq.jms_message, field text, value text)
 RETURNS aq.jms_message
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	property text := CASE field WHEN 'userid' THEN 'JMSXUserID' WHEN 'appid' THEN 'JMSXAppID' WHEN 'groupid' THEN 'JMSXGroupID' WHEN 'groupseq' THEN 'JMSXGroupSeq' END;
BEGIN
	PERFORM sys._jms_check(self);
	IF field = 'type' THEN
		RETURN aq_jms.set_header(self, 'type', value);
	ELSIF value IS NULL THEN
		self.properties := nullif(self.properties - property, '{}');
		RETURN self;
	ELSIF field = 'groupseq' THEN
		RETURN aq_jms.set_property(self, property, sys._jms_number('int', value::numeric)::integer);
	END IF;
	RETURN aq_jms.set_property(self, property, value);
END $function$;
CREATE OR REPLACE FUNCTION sys._jms_userproperty(self aq.jms_message, name text)
 RETURNS sys."aq$_jms_userproperty"
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT ROW(_jms_userproperty.name, CASE WHEN (t.type = 'string'::text) THEN 100 ELSE 200 END, CASE WHEN (t.type = 'string'::text) THEN t.value ELSE NULL::text END, CASE t.type WHEN 'string'::text THEN NULL::numeric WHEN 'boolean'::text THEN (((t.value)::boolean)::integer)::numeric ELSE (t.value)::numeric END, (19 + array_position('{boolean,byte,short,int,long,float,double,string}'::text[], t.type)))::sys."aq$_jms_userproperty" AS "row" FROM (SELECT COALESCE(sys._jms_property_type(_jms_userproperty.self, _jms_userproperty.name), 'string'::text) AS "coalesce", aq_jms.get_property(_jms_userproperty.self, _jms_userproperty.name) AS get_property) t(type, value));
CREATE OR REPLACE FUNCTION sys._jms_set_header(self aq.jms_message, header sys."aq$_jms_header")
 RETURNS aq.jms_message
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	property sys.aq$_jms_userproperty;
BEGIN
	self := sys._jms_set_replyto(sys._jms_set_field(aq_jms.clear_properties(self), 'type', header.type), header.replyto);
	self := sys._jms_set_field(sys._jms_set_field(self, 'userid', header.userid), 'appid', header.appid);
	self := sys._jms_set_field(sys._jms_set_field(self, 'groupid', header.groupid), 'groupseq', header.groupseq::text);
	FOREACH property IN ARRAY coalesce(header.properties::sys.aq$_jms_userproperty[], '{}') LOOP
		self := sys._jms_set_property(self, property.name, ('{boolean,byte,short,int,long,float,double,string}'::text[])[property.java_type - 19],
			coalesce(property.str_value, property.num_value::text));
	END LOOP;
	RETURN self;
END $function$;
CREATE OR REPLACE FUNCTION sys._jms_of_header(header sys."aq$_jms_header")
 RETURNS aq.jms_message
 LANGUAGE sql
RETURN sys._jms_set_header(aq_jms.construct('message'::text), header);
CREATE OR REPLACE FUNCTION sys.get_boolean_property(self aq.jms_message, property_name text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'boolean'::text) THEN (aq_jms.get_property(self, property_name))::boolean ELSE NULL::boolean END;
CREATE OR REPLACE FUNCTION sys.get_byte_property(self aq.jms_message, property_name text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'byte'::text) THEN (aq_jms.get_property(self, property_name))::integer ELSE NULL::integer END;
CREATE OR REPLACE FUNCTION sys.get_short_property(self aq.jms_message, property_name text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'short'::text) THEN (aq_jms.get_property(self, property_name))::integer ELSE NULL::integer END;
CREATE OR REPLACE FUNCTION sys.get_int_property(self aq.jms_message, property_name text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'int'::text) THEN (aq_jms.get_property(self, property_name))::integer ELSE NULL::integer END;
CREATE OR REPLACE FUNCTION sys.get_long_property(self aq.jms_message, property_name text)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'long'::text) THEN (aq_jms.get_property(self, property_name))::numeric ELSE NULL::numeric END;
CREATE OR REPLACE FUNCTION sys.get_float_property(self aq.jms_message, property_name text)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'float'::text) THEN (aq_jms.get_property(self, property_name))::double precision ELSE NULL::double precision END;
CREATE OR REPLACE FUNCTION sys.get_double_property(self aq.jms_message, property_name text)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'double'::text) THEN (aq_jms.get_property(self, property_name))::double precision ELSE NULL::double precision END;
CREATE OR REPLACE FUNCTION sys.get_string_property(self aq.jms_message, property_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (sys._jms_property_type(self, property_name) = 'string'::text) THEN aq_jms.get_property(self, property_name) ELSE NULL::text END;
CREATE OR REPLACE FUNCTION sys._jms_whole(self aq.jms_message)
 RETURNS aq.jms_message
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
	IF self.headers ? 'content_length' THEN
		PERFORM sys._raise_error('AQ200', format('the body has %s bytes, which the message does not contain', self.headers ->> 'content_length'),
			'Read it in parts with aq_jms.read_chunk.');
	END IF;
	RETURN self;
END $function$;
CREATE OR REPLACE PROCEDURE sys.set_text(INOUT self anyelement, IN payload text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$
BEGIN
	PERFORM sys._jms_check(self);
	self := aq_jms.set_text(self, payload);
END $procedure$;
CREATE OR REPLACE PROCEDURE sys.set_bytes(INOUT self anyelement, IN payload bytea)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$
BEGIN
	PERFORM sys._jms_check(self);
	self := aq_jms.set_bytes(self, payload);
END $procedure$;
CREATE OR REPLACE FUNCTION sys."aq$_jms_text_message"()
 RETURNS sys."aq$_jms_text_message"
 LANGUAGE sql
 IMMUTABLE
RETURN aq_jms.construct('text'::text);
CREATE OR REPLACE FUNCTION sys."aq$_jms_bytes_message"()
 RETURNS sys."aq$_jms_bytes_message"
 LANGUAGE sql
 IMMUTABLE
RETURN aq_jms.construct('bytes'::text);
CREATE OR REPLACE FUNCTION sys."aq$_jms_map_message"()
 RETURNS sys."aq$_jms_map_message"
 LANGUAGE sql
 IMMUTABLE
RETURN aq_jms.construct('map'::text);
CREATE OR REPLACE FUNCTION sys."aq$_jms_stream_message"()
 RETURNS sys."aq$_jms_stream_message"
 LANGUAGE sql
 IMMUTABLE
RETURN aq_jms.construct('stream'::text);
CREATE OR REPLACE FUNCTION sys."aq$_jms_text_message"(header sys."aq$_jms_header", text_len numeric, text_vc text, text_lob text)
 RETURNS sys."aq$_jms_text_message"
 LANGUAGE sql
 SET "pgaq.oracle_errors" TO 'on'
RETURN sys._jms_set_header(aq_jms.text(COALESCE(text_lob, text_vc)), header);
CREATE OR REPLACE FUNCTION sys."aq$_jms_bytes_message"(header sys."aq$_jms_header", bytes_len numeric, bytes_raw bytea, bytes_lob bytea)
 RETURNS sys."aq$_jms_bytes_message"
 LANGUAGE sql
 SET "pgaq.oracle_errors" TO 'on'
RETURN sys._jms_set_header(aq_jms.bytes(COALESCE(bytes_lob, bytes_raw)), header);
CREATE OR REPLACE FUNCTION sys."aq$_jms_message"(mtype numeric)
 RETURNS sys."aq$_jms_message"
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $function$
BEGIN
	IF mtype IS NULL OR mtype NOT BETWEEN 0 AND 4 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('there is no kind %s of JMS messages', coalesce(mtype::text, 'null')),
			HINT = 'Use dbms_aq.jms_text_message(), jms_bytes_message(), jms_stream_message(), jms_map_message() or jms_object_message().';
	END IF;
	RETURN aq_jms.construct(('{text,bytes,stream,map,object}'::text[])[mtype::integer + 1]);
END $function$;
CREATE OR REPLACE FUNCTION sys._jms_flush(self aq.jms_message, id integer)
 RETURNS aq.jms_message
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	body record := sys._jms_contents(id);
BEGIN
	IF sys._jms_kind_with_operations(self) <> body.kind THEN
		PERFORM sys._raise_error('AQ206', format('JMS operation %s is of a %s message, not of a %s message', id, body.kind, self.type));
	ELSIF body.kind = 'bytes' THEN
		RETURN aq_jms.set_bytes(self, body.bytes);
	ELSIF body.kind = 'map' THEN
		self.text := coalesce((SELECT jsonb_object_agg(m.name, m.item) FROM unnest(body.names, body.items) m (name, item)), '{}');
	ELSE
		self.text := to_jsonb(body.items);
	END IF;
	RETURN self;
END $function$;
CREATE OR REPLACE FUNCTION sys._jms_item(java_type text, value text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
	CASE
		WHEN value IS NULL THEN RETURN 'null';
		WHEN java_type = 'boolean' THEN RETURN aq_jms.item(value::boolean);
		WHEN java_type = 'float' THEN RETURN aq_jms.item(value::real);
		WHEN java_type = 'double' THEN RETURN aq_jms.item(value::double precision);
		WHEN java_type IN ('byte', 'short', 'int', 'long') THEN RETURN jsonb_build_object(java_type, value::bigint);
		WHEN java_type = 'char' AND char_length(value) <> 1 THEN PERFORM sys._raise_error('AQ203', format('"%s" is not one character of Java', value));
		ELSE RETURN jsonb_build_object(java_type, value);
	END CASE;
END $function$;
CREATE OR REPLACE PROCEDURE sys.write_bytes(IN self aq.jms_message, IN id numeric, IN value bytea)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_catalog', 'pg_temp'
 SET "pgaq.oracle_errors" TO 'on'
AS $procedure$
BEGIN
	IF sys._jms_kind(id::integer) = 'bytes' THEN
		PERFORM sys._jms_write_bytes(id::integer, value);
	ELSE
		PERFORM sys._jms_put(id::integer, NULL, aq_jms.item(value));
	END IF;
END $procedure$;
COMMENT ON FUNCTION sys._payload(integer,pg_catalog.text,pg_catalog.anyelement) IS 'Internal: a payload given as text, with the privileges of the queue''s owner';
COMMENT ON FUNCTION sys.message_type(aq.jms_message) IS 'Attribute of a JMS message: its kind, dbms_aq_jms.*_message; null: it has no body';
