-- Methods of Oracle's JMS types: constructors, header, properties, text and bytes. docs/oracle-jms.md says how a program calls them.
--
-- A method that only reads takes an aq.jms_message, over which the types are domains. One that changes the message is a procedure with INOUT self. PL/pgSQL
-- assigns an INOUT argument only if the variable has exactly its type, so self is any type, and the function below that does it is found by that type.

-- Constants

CREATE FUNCTION dbms_aqjms.jms_text_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_0';
COMMENT ON FUNCTION dbms_aqjms.jms_text_message() IS 'kind of a message: text';
CREATE FUNCTION dbms_aqjms.jms_bytes_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqjms.jms_bytes_message() IS 'kind of a message: bytes';
CREATE FUNCTION dbms_aqjms.jms_stream_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqjms.jms_stream_message() IS 'kind of a message: stream';
CREATE FUNCTION dbms_aqjms.jms_map_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aqjms.jms_map_message() IS 'kind of a message: map';
CREATE FUNCTION dbms_aqjms.jms_object_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_4';
COMMENT ON FUNCTION dbms_aqjms.jms_object_message() IS 'kind of a message: object';
CREATE FUNCTION dbms_aqjms.message_access_readonly() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqjms.message_access_readonly() IS 'mode of an operation: its body is read';
CREATE FUNCTION dbms_aqjms.message_access_writeonly() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqjms.message_access_writeonly() IS 'mode of an operation: its body is written';
CREATE FUNCTION dbms_aq.jms_text_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_0';
COMMENT ON FUNCTION dbms_aq.jms_text_message() IS 'kind of a JMS message: text';
CREATE FUNCTION dbms_aq.jms_bytes_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aq.jms_bytes_message() IS 'kind of a JMS message: bytes';
CREATE FUNCTION dbms_aq.jms_stream_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aq.jms_stream_message() IS 'kind of a JMS message: stream';
CREATE FUNCTION dbms_aq.jms_map_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aq.jms_map_message() IS 'kind of a JMS message: map';
CREATE FUNCTION dbms_aq.jms_object_message() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_4';
COMMENT ON FUNCTION dbms_aq.jms_object_message() IS 'kind of a JMS message: object';
CREATE FUNCTION dbms_jms_plsql.data_type_boolean() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_20';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_boolean() IS 'type of an aq$_jms_value: boolean, num_val is 1 or 0';
CREATE FUNCTION dbms_jms_plsql.data_type_byte() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_21';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_byte() IS 'type of an aq$_jms_value: byte, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_short() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_22';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_short() IS 'type of an aq$_jms_value: short, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_integer() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_23';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_integer() IS 'type of an aq$_jms_value: int, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_long() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_24';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_long() IS 'type of an aq$_jms_value: long, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_float() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_25';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_float() IS 'type of an aq$_jms_value: float, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_double() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_26';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_double() IS 'type of an aq$_jms_value: double, in num_val';
CREATE FUNCTION dbms_jms_plsql.data_type_string() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_27';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_string() IS 'type of an aq$_jms_value: String, in text_val';
CREATE FUNCTION dbms_jms_plsql.data_type_character() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_28';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_character() IS 'type of an aq$_jms_value: char, in char_val';
CREATE FUNCTION dbms_jms_plsql.data_type_bytes() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_29';
COMMENT ON FUNCTION dbms_jms_plsql.data_type_bytes() IS 'type of an aq$_jms_value: bytes, in bytes_val';

CREATE FUNCTION dbms_jms_plsql.convert_jms_selector(selector text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._refuse('dbms_jms_plsql.convert_jms_selector', 'a translation of selectors to rules in SQL',
		'Write the rule: tab.user_data.get_string_property(''color'') = ''red''.');
END $$;
COMMENT ON FUNCTION dbms_jms_plsql.convert_jms_selector(text) IS 'Not supported: ORA-24205';

-- JMSReplyTo

-- An address that is no queue here is kept as it is written.
CREATE FUNCTION sys._jms_reply_to(agent sys.aq$_agent) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	native text := sys._resolve_queue(agent.address, 'any');
BEGIN
	IF native IS NOT NULL THEN
		RETURN CASE WHEN (sys._describe_queue(native)).multiple_consumers THEN 'topic:' ELSE 'queue:' END || native;
	END IF;
	RETURN 'queue:' || coalesce(array_to_string(sys._split_name(agent.address), '.'), agent.address);
END $$;
COMMENT ON FUNCTION sys._jms_reply_to(sys.aq$_agent) IS 'Internal: the header reply_to of an agent; null: the agent has no address';

CREATE FUNCTION sys.get_replyto(self aq.jms_message) RETURNS sys.aq$_agent
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).headers ?| '{reply_to,reply_to_name}' THEN sys.aq$_agent((self).headers ->> 'reply_to_name',
	sys._oracle_name(regexp_replace(regexp_replace((self).headers ->> 'reply_to', '^(temporary-.*)/\d+$', '\1'), '^(temporary-)?(queue|topic):', '')), 0) END;
COMMENT ON FUNCTION sys.get_replyto(aq.jms_message) IS
'JMSReplyTo: an agent whose address is the queue to answer to; null: not set';

CREATE FUNCTION sys._jms_set_replyto(self aq.jms_message, replyto sys.aq$_agent) RETURNS aq.jms_message
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN aq_jms.set_header(aq_jms.set_header(self, 'reply_to_name', nullif(btrim((replyto).name), '')), 'reply_to', sys._jms_reply_to(replyto));
COMMENT ON FUNCTION sys._jms_set_replyto(aq.jms_message, sys.aq$_agent) IS 'Internal: set JMSReplyTo';

-- Properties

CREATE FUNCTION sys._jms_check(self aq.jms_message) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF self IS NOT DISTINCT FROM NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'the JMS message is null',
			HINT = 'Make it first: message := sys.aq$_jms_text_message().';
	END IF;
END $$;
COMMENT ON FUNCTION sys._jms_check(aq.jms_message) IS 'Internal: an error for a message that was not constructed';

CREATE FUNCTION sys._jms_type_of_number(value numeric) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN scale(value) > 0 THEN 'double' WHEN value BETWEEN -2147483648 AND 2147483647 THEN 'int' ELSE 'long' END;
COMMENT ON FUNCTION sys._jms_type_of_number(numeric) IS 'Internal: the type in Java of a number that has none';

CREATE FUNCTION sys._jms_property_type(self aq.jms_message, property_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE jsonb_typeof((self).properties -> property_name)
	WHEN 'string' THEN 'string' WHEN 'boolean' THEN 'boolean'
	WHEN 'object' THEN CASE WHEN (self).properties -> property_name ? 'float' THEN 'float' ELSE 'double' END
	WHEN 'number' THEN coalesce((self).property_types ->> property_name, sys._jms_type_of_number(((self).properties ->> property_name)::numeric)) END;
COMMENT ON FUNCTION sys._jms_property_type(aq.jms_message, text) IS 'Internal: the type in Java of a property; null: there is none, or it is null';

CREATE FUNCTION sys._jms_number(java_type text, value numeric) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	bits integer := CASE java_type WHEN 'byte' THEN 7 WHEN 'short' THEN 15 WHEN 'int' THEN 31 ELSE 63 END;
BEGIN
	IF round(value) NOT BETWEEN -(2::numeric ^ bits) AND 2::numeric ^ bits - 1 THEN
		PERFORM sys._raise_error('AQ203', format('%s is not a %s of Java', value, java_type));
	END IF;
	RETURN round(value);
END $$;
COMMENT ON FUNCTION sys._jms_number(text, numeric) IS 'Internal: a whole number in the range of a type of Java, or an error';

CREATE FUNCTION sys._jms_set_property(self aq.jms_message, property_name text, java_type text, value text) RETURNS aq.jms_message
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION sys._jms_set_property(aq.jms_message, text, text, text) IS 'Internal: add a property of a type of Java';

-- What Oracle has in fields of the header; the rest are the user's.
CREATE FUNCTION sys._jms_is_header_property(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN name IN ('JMSXUserID', 'JMSXAppID', 'JMSXGroupID', 'JMSXGroupSeq');
COMMENT ON FUNCTION sys._jms_is_header_property(text) IS 'Internal: is it a field of Oracle''s JMS header?';

CREATE FUNCTION sys._jms_clear_properties(self aq.jms_message) RETURNS aq.jms_message
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sys._jms_check(self);
	self.properties := (SELECT jsonb_object_agg(p.key, p.value) FROM jsonb_each(self.properties) p WHERE sys._jms_is_header_property(p.key));
	self.property_types := (SELECT jsonb_object_agg(p.key, p.value) FROM jsonb_each(self.property_types) p WHERE sys._jms_is_header_property(p.key));
	RETURN self;
END $$;
COMMENT ON FUNCTION sys._jms_clear_properties(aq.jms_message) IS 'Internal: remove the properties that are not of the header';

CREATE FUNCTION sys._jms_set_field(self aq.jms_message, field text, value text) RETURNS aq.jms_message
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION sys._jms_set_field(aq.jms_message, text, text) IS 'Internal: set a field of the header';

-- The header as a value

CREATE FUNCTION sys._jms_userproperty(self aq.jms_message, name text) RETURNS sys.aq$_jms_userproperty
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT ROW(name, CASE WHEN t.type = 'string' THEN 100 ELSE 200 END, CASE WHEN t.type = 'string' THEN t.value END,
		CASE t.type WHEN 'string' THEN NULL WHEN 'boolean' THEN t.value::boolean::integer ELSE t.value::numeric END,
		19 + array_position('{boolean,byte,short,int,long,float,double,string}', t.type))::sys.aq$_jms_userproperty
	FROM (SELECT coalesce(sys._jms_property_type(self, name), 'string'), aq_jms.get_property(self, name)) t (type, value));
COMMENT ON FUNCTION sys._jms_userproperty(aq.jms_message, text) IS 'Internal: a property as an element of a header';

CREATE FUNCTION sys.header(self aq.jms_message) RETURNS sys.aq$_jms_header
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN self IS DISTINCT FROM NULL THEN ROW(sys.get_replyto(self), (self).headers ->> 'type', (self).properties ->> 'JMSXUserID',
	(self).properties ->> 'JMSXAppID', (self).properties ->> 'JMSXGroupID', ((self).properties ->> 'JMSXGroupSeq')::integer,
	(SELECT array_agg(sys._jms_userproperty(self, p.key) ORDER BY p.key) FROM jsonb_each((self).properties) p
		WHERE NOT sys._jms_is_header_property(p.key)))::sys.aq$_jms_header END;
COMMENT ON FUNCTION sys.header(aq.jms_message) IS 'Header and properties of a JMS message';

CREATE FUNCTION sys._jms_set_header(self aq.jms_message, header sys.aq$_jms_header) RETURNS aq.jms_message
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION sys._jms_set_header(aq.jms_message, sys.aq$_jms_header) IS 'Internal: a message with another header and properties';

CREATE FUNCTION sys._jms_of_header(header sys.aq$_jms_header) RETURNS aq.jms_message
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN sys._jms_set_header(aq_jms.construct('message'), header);
COMMENT ON FUNCTION sys._jms_of_header(sys.aq$_jms_header) IS 'Internal: a message that has this header';

CREATE FUNCTION sys._jms_set_property(self sys.aq$_jms_header, property_name text, java_type text, value text) RETURNS sys.aq$_jms_header
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN sys.header(sys._jms_set_property(sys._jms_of_header(self), property_name, java_type, value));
COMMENT ON FUNCTION sys._jms_set_property(sys.aq$_jms_header, text, text, text) IS 'Internal: the same for a header';
CREATE FUNCTION sys._jms_clear_properties(self sys.aq$_jms_header) RETURNS sys.aq$_jms_header
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN sys.header(sys._jms_clear_properties(sys._jms_of_header(self)));
COMMENT ON FUNCTION sys._jms_clear_properties(sys.aq$_jms_header) IS 'Internal: the same for a header';
CREATE FUNCTION sys._jms_set_field(self sys.aq$_jms_header, field text, value text) RETURNS sys.aq$_jms_header
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN sys.header(sys._jms_set_field(sys._jms_of_header(self), field, value));
COMMENT ON FUNCTION sys._jms_set_field(sys.aq$_jms_header, text, text) IS 'Internal: the same for a header';
CREATE FUNCTION sys._jms_set_replyto(self sys.aq$_jms_header, replyto sys.aq$_agent) RETURNS sys.aq$_jms_header
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN sys.header(sys._jms_set_replyto(sys._jms_of_header(self), replyto));
COMMENT ON FUNCTION sys._jms_set_replyto(sys.aq$_jms_header, sys.aq$_agent) IS 'Internal: the same for a header';

CREATE PROCEDURE sys.lookup_property_name(self sys.aq$_jms_header, new_property_name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_set_property(self, new_property_name, 'string', NULL);
END $$;
COMMENT ON PROCEDURE sys.lookup_property_name(sys.aq$_jms_header, text) IS 'An error if the header has a property of this name, or the name is null';

-- The methods that set and get a field of the header or a property, of messages and of headers

DO $$
DECLARE
	field record;
	argument text;
	property record;
BEGIN
	FOR field IN VALUES ('type', 'text', '(self).headers ->> ''type''', 'JMSType'), ('userid', 'text', '(self).properties ->> ''JMSXUserID''', 'property JMSXUserID'),
			('appid', 'text', '(self).properties ->> ''JMSXAppID''', 'property JMSXAppID'), ('groupid', 'text', '(self).properties ->> ''JMSXGroupID''', 'property JMSXGroupID'),
			('groupseq', 'integer', '((self).properties ->> ''JMSXGroupSeq'')::integer', 'property JMSXGroupSeq') LOOP
		argument := CASE field.column2 WHEN 'integer' THEN 'numeric' ELSE field.column2 END;
		EXECUTE format($f$
			CREATE PROCEDURE sys.set_%1$s(INOUT self anyelement, %1$s %5$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN self := sys._jms_set_field(self, %1$L, %1$s::text); END$b$;
			COMMENT ON PROCEDURE sys.set_%1$s(anyelement, %5$s) IS 'Set %4$s of a JMS message or header';
			CREATE FUNCTION sys.get_%1$s(self aq.jms_message) RETURNS %2$s LANGUAGE sql IMMUTABLE PARALLEL UNSAFE RETURN %3$s;
			COMMENT ON FUNCTION sys.get_%1$s(aq.jms_message) IS '%4$s of a JMS message; null: not set';
			CREATE FUNCTION sys.get_%1$s(self sys.aq$_jms_header) RETURNS %2$s LANGUAGE sql IMMUTABLE PARALLEL UNSAFE RETURN (self).%1$s;
			COMMENT ON FUNCTION sys.get_%1$s(sys.aq$_jms_header) IS '%4$s of a JMS header; null: not set'$f$, field.column1, field.column2, field.column3, field.column4, argument);
	END LOOP;
	FOR property IN VALUES ('boolean', 'boolean', 'boolean'), ('byte', 'numeric', 'integer'), ('short', 'numeric', 'integer'), ('int', 'numeric', 'integer'),
			('long', 'numeric', 'numeric'), ('float', 'double precision', 'double precision'), ('double', 'double precision', 'double precision'), ('string', 'text', 'text') LOOP
		EXECUTE format($f$
			CREATE PROCEDURE sys.set_%1$s_property(INOUT self anyelement, property_name text, property_value %2$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on
				AS $b$BEGIN self := sys._jms_set_property(self, property_name, %1$L, property_value::text); END$b$;
			COMMENT ON PROCEDURE sys.set_%1$s_property(anyelement, text, %2$s) IS 'Add a property, in Java a %1$s, to a JMS message or header';
			CREATE FUNCTION sys.get_%1$s_property(self aq.jms_message, property_name text) RETURNS %3$s LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
				RETURN CASE WHEN sys._jms_property_type(self, property_name) = %1$L THEN aq_jms.get_property(self, property_name)::%3$s END;
			COMMENT ON FUNCTION sys.get_%1$s_property(aq.jms_message, text) IS 'A property of a JMS message; null: there is none, or it is not a %1$s';
			CREATE FUNCTION sys.get_%1$s_property(self sys.aq$_jms_header, property_name text) RETURNS %3$s LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
				RETURN sys.get_%1$s_property(sys._jms_of_header(self), property_name);
			COMMENT ON FUNCTION sys.get_%1$s_property(sys.aq$_jms_header, text) IS 'A property of a JMS header; null: there is none, or it is not a %1$s'$f$,
			property.column1, property.column2, property.column3);
	END LOOP;
END $$;

CREATE FUNCTION sys.get_boolean_property_as_int(self sys.aq$_jms_header, property_name text) RETURNS integer
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN sys.get_boolean_property(self, property_name)::integer;
COMMENT ON FUNCTION sys.get_boolean_property_as_int(sys.aq$_jms_header, text) IS 'A property of a JMS header: 1 for true, 0 for false; null: there is none, or it is not a boolean';

CREATE PROCEDURE sys.set_replyto(INOUT self anyelement, replyto sys.aq$_agent)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	self := sys._jms_set_replyto(self, replyto);
END $$;
COMMENT ON PROCEDURE sys.set_replyto(anyelement, sys.aq$_agent) IS 'Set JMSReplyTo of a JMS message or header: the agent''s address is the queue to answer to';

CREATE FUNCTION sys.get_replyto(self sys.aq$_jms_header) RETURNS sys.aq$_agent LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (self).replyto;
COMMENT ON FUNCTION sys.get_replyto(sys.aq$_jms_header) IS 'JMSReplyTo of a JMS header; null: not set';

CREATE PROCEDURE sys.clear_properties(INOUT self anyelement)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	self := sys._jms_clear_properties(self);
END $$;
COMMENT ON PROCEDURE sys.clear_properties(anyelement) IS 'Remove the properties of a JMS message or header; userid, appid, groupid and groupseq stay';

-- Text and bytes

CREATE FUNCTION sys._jms_whole(self aq.jms_message) RETURNS aq.jms_message
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF self.headers ? 'content_length' THEN
		PERFORM sys._raise_error('AQ200', format('the body has %s bytes, which the message does not contain', self.headers ->> 'content_length'),
			'Read it in parts with aq_jms.read_chunk.');
	END IF;
	RETURN self;
END $$;
COMMENT ON FUNCTION sys._jms_whole(aq.jms_message) IS 'Internal: an error if the body of a message is beside it, in chunks';

CREATE PROCEDURE sys.set_text(INOUT self anyelement, payload text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_check(self);
	self := aq_jms.set_text(self, payload);
END $$;
COMMENT ON PROCEDURE sys.set_text(anyelement, text) IS 'Set the body of a text message';

CREATE FUNCTION sys.get_text(self aq.jms_message) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'text' THEN (self).text END;
COMMENT ON FUNCTION sys.get_text(aq.jms_message) IS 'The body of a text message';

CREATE PROCEDURE sys.get_text(self aq.jms_message, INOUT payload text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	payload := sys.get_text(self);
END $$;
COMMENT ON PROCEDURE sys.get_text(aq.jms_message, text) IS 'The body of a text message, into a variable';
CREATE PROCEDURE sys.get_text(self aq.jms_message, INOUT payload varchar)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	payload := sys.get_text(self);
END $$;
COMMENT ON PROCEDURE sys.get_text(aq.jms_message, varchar) IS 'The same for variables that are varchar';

CREATE PROCEDURE sys.set_bytes(INOUT self anyelement, payload bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_check(self);
	self := aq_jms.set_bytes(self, payload);
END $$;
COMMENT ON PROCEDURE sys.set_bytes(anyelement, bytea) IS 'Set the body of a bytes message';

CREATE FUNCTION sys.get_bytes(self aq.jms_message) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN (sys._jms_whole(self)).bytes;
COMMENT ON FUNCTION sys.get_bytes(aq.jms_message) IS 'The body of a bytes or object message';

CREATE PROCEDURE sys.get_bytes(self aq.jms_message, INOUT payload bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	payload := sys.get_bytes(self);
END $$;
COMMENT ON PROCEDURE sys.get_bytes(aq.jms_message, bytea) IS 'The body of a bytes or object message, into a variable';

-- Attributes: (message).text_vc

CREATE FUNCTION sys.text_len(self aq.jms_message) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL UNSAFE RETURN char_length(sys.get_text(self));
COMMENT ON FUNCTION sys.text_len(aq.jms_message) IS 'Attribute of a text message: its length';
CREATE FUNCTION sys.text_vc(self aq.jms_message) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length(sys.get_text(self)) <= 4000 THEN (self).text END;
COMMENT ON FUNCTION sys.text_vc(aq.jms_message) IS 'Attribute of a text message: the text, if it has at most 4000 bytes';
CREATE FUNCTION sys.text_lob(self aq.jms_message) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length(sys.get_text(self)) > 4000 THEN (self).text END;
COMMENT ON FUNCTION sys.text_lob(aq.jms_message) IS 'Attribute of a text message: the text, if it has more than 4000 bytes';
CREATE FUNCTION sys.bytes_len(self aq.jms_message) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL UNSAFE RETURN octet_length((self).bytes);
COMMENT ON FUNCTION sys.bytes_len(aq.jms_message) IS 'Attribute of a bytes or object message: its length';
CREATE FUNCTION sys.bytes_raw(self aq.jms_message) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length((self).bytes) <= 2000 THEN (self).bytes END;
COMMENT ON FUNCTION sys.bytes_raw(aq.jms_message) IS 'Attribute of a bytes or object message: the bytes, if there are at most 2000';
CREATE FUNCTION sys.bytes_lob(self aq.jms_message) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length((self).bytes) > 2000 THEN (self).bytes END;
COMMENT ON FUNCTION sys.bytes_lob(aq.jms_message) IS 'Attribute of a bytes or object message: the bytes, if there are more than 2000';
CREATE FUNCTION sys.message_type(self aq.jms_message) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN array_position('{text,bytes,stream,map,object}', (self).type) - 1;
COMMENT ON FUNCTION sys.message_type(aq.jms_message) IS 'Attribute of a JMS message: its kind, dbms_aq_jms.*_message; null: it has no body';

-- Constructors

CREATE FUNCTION sys.aq$_jms_text_message() RETURNS sys.aq$_jms_text_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN aq_jms.construct('text');
COMMENT ON FUNCTION sys.aq$_jms_text_message() IS 'A new text message: Oracle''s aq$_jms_text_message.construct';
CREATE FUNCTION sys.aq$_jms_bytes_message() RETURNS sys.aq$_jms_bytes_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN aq_jms.construct('bytes');
COMMENT ON FUNCTION sys.aq$_jms_bytes_message() IS 'A new bytes message: Oracle''s aq$_jms_bytes_message.construct';
CREATE FUNCTION sys.aq$_jms_map_message() RETURNS sys.aq$_jms_map_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN aq_jms.construct('map');
COMMENT ON FUNCTION sys.aq$_jms_map_message() IS 'A new map message: Oracle''s aq$_jms_map_message.construct';
CREATE FUNCTION sys.aq$_jms_stream_message() RETURNS sys.aq$_jms_stream_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN aq_jms.construct('stream');
COMMENT ON FUNCTION sys.aq$_jms_stream_message() IS 'A new stream message: Oracle''s aq$_jms_stream_message.construct';
CREATE FUNCTION sys.aq$_jms_text_message(header sys.aq$_jms_header, text_len numeric, text_vc text, text_lob text) RETURNS sys.aq$_jms_text_message
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN sys._jms_set_header(aq_jms.text(coalesce(text_lob, text_vc)), header);
COMMENT ON FUNCTION sys.aq$_jms_text_message(sys.aq$_jms_header, numeric, text, text) IS 'A text message of its attributes; text_len does not matter';
CREATE FUNCTION sys.aq$_jms_bytes_message(header sys.aq$_jms_header, bytes_len numeric, bytes_raw bytea, bytes_lob bytea) RETURNS sys.aq$_jms_bytes_message
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN sys._jms_set_header(aq_jms.bytes(coalesce(bytes_lob, bytes_raw)), header);
COMMENT ON FUNCTION sys.aq$_jms_bytes_message(sys.aq$_jms_header, numeric, bytea, bytea) IS 'A bytes message of its attributes; bytes_len does not matter';
CREATE FUNCTION sys.aq$_jms_object_message(header sys.aq$_jms_header, bytes_len numeric, bytes_raw bytea, bytes_lob bytea) RETURNS sys.aq$_jms_object_message
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN sys._jms_set_header(ROW('object', '{}', NULL, NULL, NULL, coalesce(bytes_lob, bytes_raw))::aq.jms_message, header);
COMMENT ON FUNCTION sys.aq$_jms_object_message(sys.aq$_jms_header, numeric, bytea, bytea) IS 'An object message of its attributes; bytes_len does not matter';

CREATE FUNCTION sys.aq$_jms_message(mtype numeric) RETURNS sys.aq$_jms_message
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF mtype IS NULL OR mtype NOT BETWEEN 0 AND 4 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('there is no kind %s of JMS messages', coalesce(mtype::text, 'null')),
			HINT = 'Use dbms_aq.jms_text_message(), jms_bytes_message(), jms_stream_message(), jms_map_message() or jms_object_message().';
	END IF;
	RETURN aq_jms.construct(('{text,bytes,stream,map,object}'::text[])[mtype::integer + 1]);
END $$;
COMMENT ON FUNCTION sys.aq$_jms_message(numeric) IS 'A new message of a kind: Oracle''s aq$_jms_message.construct';
CREATE FUNCTION sys.aq$_jms_message(message aq.jms_message) RETURNS sys.aq$_jms_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN message;
COMMENT ON FUNCTION sys.aq$_jms_message(aq.jms_message) IS 'A message of some kind as one of any kind';

CREATE FUNCTION sys.cast_to_text_msg(self aq.jms_message) RETURNS sys.aq$_jms_text_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'text' THEN self END;
COMMENT ON FUNCTION sys.cast_to_text_msg(aq.jms_message) IS 'The message as a text message; null: it is of another kind';
CREATE FUNCTION sys.cast_to_bytes_msg(self aq.jms_message) RETURNS sys.aq$_jms_bytes_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'bytes' THEN self END;
COMMENT ON FUNCTION sys.cast_to_bytes_msg(aq.jms_message) IS 'The message as a bytes message; null: it is of another kind';
CREATE FUNCTION sys.cast_to_map_msg(self aq.jms_message) RETURNS sys.aq$_jms_map_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'map' THEN self END;
COMMENT ON FUNCTION sys.cast_to_map_msg(aq.jms_message) IS 'The message as a map message; null: it is of another kind';
CREATE FUNCTION sys.cast_to_stream_msg(self aq.jms_message) RETURNS sys.aq$_jms_stream_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'stream' THEN self END;
COMMENT ON FUNCTION sys.cast_to_stream_msg(aq.jms_message) IS 'The message as a stream message; null: it is of another kind';
CREATE FUNCTION sys.cast_to_object_msg(self aq.jms_message) RETURNS sys.aq$_jms_object_message LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN (self).type = 'object' THEN self END;
COMMENT ON FUNCTION sys.cast_to_object_msg(aq.jms_message) IS 'The message as an object message; null: it is of another kind';
