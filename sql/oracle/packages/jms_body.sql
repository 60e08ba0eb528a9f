-- Methods of Oracle's JMS types for the bodies of bytes, map and stream messages. As in Oracle, a body that is written or read is in the session's memory,
-- under the number of an operation, until flush() writes it into the message: src/jms/jms_operation.c.

CREATE FUNCTION sys._jms_begin(id integer, kind text, names text[], items jsonb[], bytes bytea, writing boolean) RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_begin';
COMMENT ON FUNCTION sys._jms_begin(integer, text, text[], jsonb[], bytea, boolean) IS 'Internal: begin a JMS operation; id null or negative: with a new number';
CREATE FUNCTION sys._jms_is_writing(id integer) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_is_writing';
COMMENT ON FUNCTION sys._jms_is_writing(integer) IS 'Internal: the mode of a JMS operation';
CREATE FUNCTION sys._jms_kind(id integer) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_kind';
COMMENT ON FUNCTION sys._jms_kind(integer) IS 'Internal: the kind of message of a JMS operation';
CREATE FUNCTION sys._jms_reset(id integer) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_reset';
COMMENT ON FUNCTION sys._jms_reset(integer) IS 'Internal: read the body of a JMS operation from its start';
CREATE FUNCTION sys._jms_clean(id integer) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_clean';
COMMENT ON FUNCTION sys._jms_clean(integer) IS 'Internal: end a JMS operation; null: all of the current role';
CREATE FUNCTION sys._jms_contents(id integer, OUT kind text, OUT names text[], OUT items jsonb[], OUT bytes bytea)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_contents';
COMMENT ON FUNCTION sys._jms_contents(integer) IS 'Internal: the body of a JMS operation';
CREATE FUNCTION sys._jms_put(id integer, name text, item jsonb) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_put';
COMMENT ON FUNCTION sys._jms_put(integer, text, jsonb) IS 'Internal: set a value of a map; add one, name null, to a stream';
CREATE FUNCTION sys._jms_get(id integer, name text) RETURNS jsonb
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_get';
COMMENT ON FUNCTION sys._jms_get(integer, text) IS 'Internal: a value of a map; null: there is none';
CREATE FUNCTION sys._jms_next(id integer) RETURNS jsonb
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_next';
COMMENT ON FUNCTION sys._jms_next(integer) IS 'Internal: the next value of a stream; null: the end';
CREATE FUNCTION sys._jms_skip(id integer) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_skip';
COMMENT ON FUNCTION sys._jms_skip(integer) IS 'Internal: pass the next value of a stream';
CREATE FUNCTION sys._jms_read(id integer, java_type text) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_read';
COMMENT ON FUNCTION sys._jms_read(integer, text) IS 'Internal: the next value of a bytes message; null: there are fewer bytes left';
CREATE FUNCTION sys._jms_read_bytes(id integer, length integer) RETURNS bytea
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_read_bytes';
COMMENT ON FUNCTION sys._jms_read_bytes(integer, integer) IS 'Internal: the next bytes of a bytes message; null: none are left';
CREATE FUNCTION sys._jms_write(id integer, java_type text, value text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_write';
COMMENT ON FUNCTION sys._jms_write(integer, text, text) IS 'Internal: add a value to a bytes message';
CREATE FUNCTION sys._jms_write_bytes(id integer, value bytea) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_jms_operation_write_bytes';
COMMENT ON FUNCTION sys._jms_write_bytes(integer, bytea) IS 'Internal: add bytes to a bytes message';

-- Operations

CREATE FUNCTION sys._jms_kind_with_operations(self aq.jms_message) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sys._jms_check(self);
	IF self.type NOT IN ('bytes', 'map', 'stream') THEN
		PERFORM sys._raise_error('AQ206', format('a %s message is not read and written by operations', self.type),
			'Only bytes, map and stream messages are.');
	END IF;
	RETURN self.type;
END $$;
COMMENT ON FUNCTION sys._jms_kind_with_operations(aq.jms_message) IS 'Internal: the kind of a message, or an error if it has no operations';

CREATE FUNCTION sys.prepare(self aq.jms_message, id numeric) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	kind text := sys._jms_kind_with_operations(self);
	names text[];
	items jsonb[];
BEGIN
	self := sys._jms_whole(self);
	IF kind = 'map' THEN
		SELECT array_agg(m.key ORDER BY m.key), array_agg(m.value ORDER BY m.key) INTO names, items FROM jsonb_each(self.text::jsonb) m;
	ELSIF kind = 'stream' THEN
		SELECT array_agg(s.value ORDER BY s.number) INTO items FROM jsonb_array_elements(self.text::jsonb) WITH ORDINALITY s (value, number);
	END IF;
	RETURN sys._jms_begin(id::integer, kind, names, items, self.bytes, false);
END $$;
COMMENT ON FUNCTION sys.prepare(aq.jms_message, numeric) IS
'Begin to read the body of a bytes, map or stream message; returns the number of the operation, a new
  one if id is negative or null. A map can also be written.';

CREATE FUNCTION sys.clear_body(self aq.jms_message, id numeric) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN sys._jms_begin(id::integer, sys._jms_kind_with_operations(self), NULL, NULL, NULL, true);
END $$;
COMMENT ON FUNCTION sys.clear_body(aq.jms_message, numeric) IS
'Begin to write an empty body of a bytes, map or stream message; returns the number of the operation, a new one if id is negative or null';

CREATE FUNCTION sys._jms_flush(self aq.jms_message, id integer) RETURNS aq.jms_message
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION sys._jms_flush(aq.jms_message, integer) IS 'Internal: a message with the body of an operation';

CREATE PROCEDURE sys.flush(INOUT self anyelement, id numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	self := sys._jms_flush(self, id::integer);
END $$;
COMMENT ON PROCEDURE sys.flush(anyelement, numeric) IS 'Write the body of an operation into the message';

CREATE FUNCTION sys.get_mode(self aq.jms_message, id numeric) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN CASE WHEN sys._jms_is_writing(id::integer) THEN dbms_aqjms.message_access_writeonly() ELSE dbms_aqjms.message_access_readonly() END;
END $$;
COMMENT ON FUNCTION sys.get_mode(aq.jms_message, numeric) IS 'The mode of an operation: dbms_aqjms.message_access_readonly() or message_access_writeonly()';

CREATE PROCEDURE sys.reset(self aq.jms_message, id numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_reset(id::integer);
END $$;
COMMENT ON PROCEDURE sys.reset(aq.jms_message, numeric) IS 'Read the body of an operation from its start';

CREATE PROCEDURE sys.clean(self aq.jms_message, id numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_clean(coalesce(id::integer, -1));
END $$;
COMMENT ON PROCEDURE sys.clean(aq.jms_message, numeric) IS 'End an operation; its body is forgotten';

CREATE PROCEDURE sys.clean_all()
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_clean(NULL);
END $$;
COMMENT ON PROCEDURE sys.clean_all() IS 'End all operations of the current role in the session';

CREATE FUNCTION sys.get_exception() RETURNS sys.aq$_jms_exception LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN NULL::sys.aq$_jms_exception;
COMMENT ON FUNCTION sys.get_exception() IS 'The last exception of Java: always null, because the methods run no Java';

-- Values

-- Items are as in aq_jms.item, which says: {"int": 5}.
CREATE FUNCTION sys._jms_item(java_type text, value text) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION sys._jms_item(text, text) IS 'Internal: a value of a map or stream message';

CREATE FUNCTION sys._jms_item_type(item jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE jsonb_typeof(item) WHEN 'object' THEN (SELECT min(k) FROM jsonb_object_keys(item) k) WHEN 'string' THEN 'string' WHEN 'boolean' THEN 'boolean'
	WHEN 'number' THEN sys._jms_type_of_number(item::numeric) END;
COMMENT ON FUNCTION sys._jms_item_type(jsonb) IS 'Internal: the type in Java of a value of a map or stream message; null: the value is null';

CREATE FUNCTION sys._jms_item_text(item jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN jsonb_typeof(item) = 'object' THEN item ->> sys._jms_item_type(item) ELSE item #>> '{}' END;
COMMENT ON FUNCTION sys._jms_item_text(jsonb) IS 'Internal: a value of a map or stream message as text; bytes in base64';

-- The conversions of the specification of JMS, 3.11.3.
CREATE FUNCTION sys._jms_convert(item jsonb, java_type text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	given text := sys._jms_item_type(item);
	value text := sys._jms_item_text(item);
BEGIN
	IF given IS NULL THEN
		RETURN NULL;
	ELSIF given <> java_type AND NOT (CASE java_type
			WHEN 'string' THEN given <> 'bytes'
			WHEN 'boolean' THEN given = 'string'
			WHEN 'byte' THEN given = 'string'
			WHEN 'short' THEN given IN ('byte', 'string')
			WHEN 'int' THEN given IN ('byte', 'short', 'string')
			WHEN 'long' THEN given IN ('byte', 'short', 'int', 'string')
			WHEN 'float' THEN given = 'string'
			WHEN 'double' THEN given IN ('float', 'string')
			ELSE false END) THEN
		PERFORM sys._raise_error('AQ204', format('a value of type %s cannot be read as %s', given, java_type));
	ELSIF given = 'string' AND java_type = 'boolean' THEN
		RETURN lower(value) = 'true';
	ELSIF given = 'string' AND java_type IN ('byte', 'short', 'int', 'long', 'float', 'double')
			AND value !~ (CASE WHEN java_type IN ('float', 'double') THEN '^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity)\s*$' ELSE '^[+-]?\d{1,30}$' END) THEN
		PERFORM sys._raise_error('AQ204', format('the text "%s" cannot be read as %s', value, java_type));
	END IF;
	RETURN CASE WHEN java_type IN ('byte', 'short', 'int', 'long') THEN sys._jms_number(java_type, value::numeric)::text ELSE value END;
END $$;
COMMENT ON FUNCTION sys._jms_convert(jsonb, text) IS 'Internal: a value of a map or stream message, converted to a type of Java; null: it is null';

CREATE FUNCTION sys._jms_read_value(id integer, java_type text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	value text;
BEGIN
	IF sys._jms_kind(id) = 'bytes' THEN
		RETURN sys._jms_read(id, java_type);
	END IF;
	value := sys._jms_convert(sys._jms_next(id), java_type);
	PERFORM sys._jms_skip(id);
	RETURN value;
END $$;
COMMENT ON FUNCTION sys._jms_read_value(integer, text) IS 'Internal: the next value of a bytes or stream message; a value that cannot be converted stays the next one';

CREATE FUNCTION sys._jms_write_value(id integer, java_type text, value text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF java_type IN ('byte', 'short', 'int', 'long') THEN
		value := sys._jms_number(java_type, value::numeric);
	END IF;
	IF sys._jms_kind(id) <> 'bytes' THEN
		PERFORM sys._jms_put(id, NULL, sys._jms_item(java_type, value));
	ELSIF value IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'a bytes message has no null values';
	ELSE
		PERFORM sys._jms_write(id, java_type, value);
	END IF;
END $$;
COMMENT ON FUNCTION sys._jms_write_value(integer, text, text) IS 'Internal: add a value to a bytes or stream message';

CREATE FUNCTION sys._jms_set_value(id integer, name text, java_type text, value text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(name, '') = '' THEN
		PERFORM sys._raise_error('AQ202', 'the name of a value must not be null');
	ELSIF java_type IN ('byte', 'short', 'int', 'long') THEN
		value := sys._jms_number(java_type, value::numeric);
	END IF;
	PERFORM sys._jms_put(id, name, sys._jms_item(java_type, value));
END $$;
COMMENT ON FUNCTION sys._jms_set_value(integer, text, text, text) IS 'Internal: set a value of a map message';

CREATE FUNCTION sys._jms_part(value bytea, "offset" integer, length integer) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF "offset" < 0 OR length < 0 OR "offset"::bigint + length > octet_length(value) THEN
		PERFORM sys._raise_error('AQ203', format('%s bytes from %s on are not within the %s bytes of the value', length, "offset", octet_length(value)),
			'The first byte has offset 0.');
	END IF;
	RETURN substring(value FROM "offset" + 1 FOR length);
END $$;
COMMENT ON FUNCTION sys._jms_part(bytea, integer, integer) IS 'Internal: bytes of a value, or an error';

-- The methods for each type

DO $$
DECLARE
	method record;
BEGIN
	FOR method IN VALUES ('boolean', 'boolean', 'boolean'), ('byte', 'numeric', 'integer'), ('short', 'numeric', 'integer'), ('int', 'numeric', 'integer'),
			('long', 'numeric', 'numeric'), ('float', 'double precision', 'double precision'), ('double', 'double precision', 'double precision'), ('char', 'text', 'text') LOOP
		EXECUTE format($f$
			CREATE FUNCTION sys.read_%1$s(self aq.jms_message, id numeric) RETURNS %3$s LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN RETURN sys._jms_read_value(id::integer, %1$L); END$b$;
			COMMENT ON FUNCTION sys.read_%1$s(aq.jms_message, numeric) IS 'The next value of a bytes or stream message, in Java a %1$s; null: the end';
			CREATE PROCEDURE sys.write_%1$s(self aq.jms_message, id numeric, value %2$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN PERFORM sys._jms_write_value(id::integer, %1$L, value::text); END$b$;
			COMMENT ON PROCEDURE sys.write_%1$s(aq.jms_message, numeric, %2$s) IS 'Add a value, in Java a %1$s, to a bytes or stream message';
			CREATE FUNCTION sys.get_%1$s(self aq.jms_message, id numeric, name text) RETURNS %3$s LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN RETURN sys._jms_convert(sys._jms_get(id::integer, name), %1$L); END$b$;
			COMMENT ON FUNCTION sys.get_%1$s(aq.jms_message, numeric, text) IS 'A value of a map message, in Java a %1$s; null: there is none';
			CREATE PROCEDURE sys.set_%1$s(self aq.jms_message, id numeric, name text, value %2$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN PERFORM sys._jms_set_value(id::integer, name, %1$L, value::text); END$b$;
			COMMENT ON PROCEDURE sys.set_%1$s(aq.jms_message, numeric, text, %2$s) IS 'Set a value of a map message, in Java a %1$s'$f$, method.column1, method.column2, method.column3);
	END LOOP;
	FOR method IN VALUES ('text'), ('varchar') LOOP
		EXECUTE format($f$
			CREATE PROCEDURE sys.read_utf(self aq.jms_message, id numeric, INOUT value %1$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN value := sys._jms_read(id::integer, 'utf'); END$b$;
			COMMENT ON PROCEDURE sys.read_utf(aq.jms_message, numeric, %1$s) IS 'The next text of a bytes message, into a variable; null: the end';
			CREATE PROCEDURE sys.read_string(self aq.jms_message, id numeric, INOUT value %1$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN value := sys._jms_read_value(id::integer, 'string'); END$b$;
			COMMENT ON PROCEDURE sys.read_string(aq.jms_message, numeric, %1$s) IS 'The next value of a stream message as text, into a variable; null: the end';
			CREATE PROCEDURE sys.get_string(self aq.jms_message, id numeric, name text, INOUT value %1$s) LANGUAGE plpgsql
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN value := sys._jms_convert(sys._jms_get(id::integer, name), 'string'); END$b$;
			COMMENT ON PROCEDURE sys.get_string(aq.jms_message, numeric, text, %1$s) IS 'A value of a map message as text, into a variable; null: there is none'$f$, method.column1);
	END LOOP;
	FOR method IN VALUES ('unsigned_byte'), ('unsigned_short') LOOP
		EXECUTE format($f$
			CREATE FUNCTION sys.read_%1$s(self aq.jms_message, id numeric) RETURNS integer LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
				SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $b$BEGIN RETURN sys._jms_read(id::integer, %1$L); END$b$;
			COMMENT ON FUNCTION sys.read_%1$s(aq.jms_message, numeric) IS 'The next value of a bytes message, in Java an %2$s; null: the end'$f$, method.column1, replace(method.column1, '_', ' '));
	END LOOP;
END $$;

CREATE PROCEDURE sys.write_utf(self aq.jms_message, id numeric, value text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_write(id::integer, 'utf', value);
END $$;
COMMENT ON PROCEDURE sys.write_utf(aq.jms_message, numeric, text) IS 'Add a text, with its length, to a bytes message';

CREATE PROCEDURE sys.write_string(self aq.jms_message, id numeric, value text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_put(id::integer, NULL, sys._jms_item('string', value));
END $$;
COMMENT ON PROCEDURE sys.write_string(aq.jms_message, numeric, text) IS 'Add a text to a stream message';

CREATE PROCEDURE sys.set_string(self aq.jms_message, id numeric, name text, value text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_set_value(id::integer, name, 'string', value);
END $$;
COMMENT ON PROCEDURE sys.set_string(aq.jms_message, numeric, text, text) IS 'Set a text of a map message';

-- Bytes

CREATE PROCEDURE sys.write_bytes(self aq.jms_message, id numeric, value bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF sys._jms_kind(id::integer) = 'bytes' THEN
		PERFORM sys._jms_write_bytes(id::integer, value);
	ELSE
		PERFORM sys._jms_put(id::integer, NULL, aq_jms.item(value));
	END IF;
END $$;
COMMENT ON PROCEDURE sys.write_bytes(aq.jms_message, numeric, bytea) IS 'Add bytes to a bytes or stream message';
CREATE PROCEDURE sys.write_bytes(self aq.jms_message, id numeric, value bytea, "offset" numeric, length numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL sys.write_bytes(self, id, sys._jms_part(value, "offset"::integer, length::integer));
END $$;
COMMENT ON PROCEDURE sys.write_bytes(aq.jms_message, numeric, bytea, numeric, numeric) IS 'Add some of the bytes to a bytes or stream message; the first has offset 0';

CREATE PROCEDURE sys.read_bytes(self aq.jms_message, id numeric, INOUT value bytea, length numeric, INOUT returned integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	value := sys._jms_read_bytes(id::integer, length::integer);
	returned := coalesce(octet_length(value), -1);
END $$;
COMMENT ON PROCEDURE sys.read_bytes(aq.jms_message, numeric, bytea, numeric, integer) IS
'The next bytes of a bytes message, up to this number; returned is what Oracle''s function returns: their number, -1 at the end';
CREATE PROCEDURE sys.read_bytes(self aq.jms_message, id numeric, INOUT value bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	value := decode(sys._jms_read_value(id::integer, 'bytes'), 'base64');
END $$;
COMMENT ON PROCEDURE sys.read_bytes(aq.jms_message, numeric, bytea) IS 'The next value of a stream message, which is bytes; null: the end';

CREATE PROCEDURE sys.set_bytes(self aq.jms_message, id numeric, name text, value bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._jms_set_value(id::integer, name, 'bytes', translate(encode(value, 'base64'), E'\n', ''));
END $$;
COMMENT ON PROCEDURE sys.set_bytes(aq.jms_message, numeric, text, bytea) IS 'Set bytes of a map message';
CREATE PROCEDURE sys.set_bytes(self aq.jms_message, id numeric, name text, value bytea, "offset" numeric, length numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL sys.set_bytes(self, id, name, sys._jms_part(value, "offset"::integer, length::integer));
END $$;
COMMENT ON PROCEDURE sys.set_bytes(aq.jms_message, numeric, text, bytea, numeric, numeric) IS 'Set some of the bytes in a map message; the first has offset 0';
CREATE PROCEDURE sys.get_bytes(self aq.jms_message, id numeric, name text, INOUT value bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	value := decode(sys._jms_convert(sys._jms_get(id::integer, name), 'bytes'), 'base64');
END $$;
COMMENT ON PROCEDURE sys.get_bytes(aq.jms_message, numeric, text, bytea) IS 'Bytes of a map message, into a variable; null: there are none';

-- Values of any type

CREATE FUNCTION sys._jms_value(item jsonb) RETURNS sys.aq$_jms_value
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT CASE WHEN i.type IS NOT NULL THEN ROW(19 + array_position('{boolean,byte,short,int,long,float,double,string,char,bytes}', i.type),
	CASE WHEN i.type = 'boolean' THEN i.value::boolean::integer WHEN i.type NOT IN ('string', 'char', 'bytes') THEN i.value::numeric END,
	CASE WHEN i.type = 'char' THEN i.value END, CASE WHEN i.type = 'string' THEN i.value END,
	CASE WHEN i.type = 'bytes' THEN decode(i.value, 'base64') END)::sys.aq$_jms_value END
	FROM (SELECT sys._jms_item_type(item), sys._jms_item_text(item)) i (type, value));
COMMENT ON FUNCTION sys._jms_value(jsonb) IS 'Internal: a value of a map or stream message; null: it is null';

CREATE PROCEDURE sys.get_object(self aq.jms_message, id numeric, name text, INOUT value sys.aq$_jms_value)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	value := sys._jms_value(sys._jms_get(id::integer, name));
END $$;
COMMENT ON PROCEDURE sys.get_object(aq.jms_message, numeric, text, sys.aq$_jms_value) IS 'A value of a map message, of any type; null: there is none';

CREATE PROCEDURE sys.read_object(self aq.jms_message, id numeric, INOUT value sys.aq$_jms_value)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	value := sys._jms_value(sys._jms_next(id::integer));
	PERFORM sys._jms_skip(id::integer);
END $$;
COMMENT ON PROCEDURE sys.read_object(aq.jms_message, numeric, sys.aq$_jms_value) IS 'The next value of a stream message, of any type; null: the end';

-- Names of a map

CREATE FUNCTION sys.get_names(self aq.jms_message, id numeric) RETURNS sys.aq$_jms_namearray
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN (sys._jms_contents(id::integer)).names;
END $$;
COMMENT ON FUNCTION sys.get_names(aq.jms_message, numeric) IS 'The names of all values of a map message';

CREATE PROCEDURE sys.get_names(self aq.jms_message, id numeric, INOUT names sys.aq$_jms_namearray, "offset" numeric, length numeric, INOUT returned integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	all_names text[] := (sys._jms_contents(id::integer)).names;
BEGIN
	names := all_names["offset"::integer + 1 : "offset"::integer + length::integer];
	returned := cardinality(names);
END $$;
COMMENT ON PROCEDURE sys.get_names(aq.jms_message, numeric, sys.aq$_jms_namearray, numeric, numeric, integer) IS
'Names of values of a map message: at most length from the one with index offset on, the first having
  0.
returned is what Oracle''s function returns: their number';

CREATE FUNCTION sys.get_size(self aq.jms_message, id numeric) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN cardinality((sys._jms_contents(id::integer)).names);
END $$;
COMMENT ON FUNCTION sys.get_size(aq.jms_message, numeric) IS 'The number of values of a map message';

CREATE FUNCTION sys.item_exists(self aq.jms_message, id numeric, name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN sys._jms_get(id::integer, name) IS NOT NULL;
END $$;
COMMENT ON FUNCTION sys.item_exists(aq.jms_message, numeric, text) IS 'Does a map message have a value of this name?';
