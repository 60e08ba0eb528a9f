-- Messages of the Jakarta Messaging provider for programs in SQL: making, changing and reading them. A function that changes returns the changed message.

CREATE FUNCTION aq_jms.construct(type text DEFAULT 'text') RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW(type, '{}', NULL, NULL, CASE type WHEN 'map' THEN '{}' WHEN 'stream' THEN '[]' END, NULL)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.construct(text) IS
'A new message for Java programs without headers, properties and body.
type: text, bytes, map, stream, object, or message for one without a body';

CREATE FUNCTION aq_jms.text(body text) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('text', '{}', NULL, NULL, body, NULL)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.text(text) IS 'A text message with this body';

CREATE FUNCTION aq_jms.bytes(body bytea) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('bytes', '{}', NULL, NULL, NULL, body)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.bytes(bytea) IS 'A bytes message with this body';

CREATE FUNCTION aq_jms.set_text(message aq.jms_message, body text) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('text', (message).headers, (message).properties, (message).property_types, body, NULL)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.set_text(aq.jms_message, text) IS 'Make it a text message with this body';

CREATE FUNCTION aq_jms.set_bytes(message aq.jms_message, body bytea) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('bytes', (message).headers, (message).properties, (message).property_types, NULL, body)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.set_bytes(aq.jms_message, bytea) IS 'Make it a bytes message with this body';

CREATE FUNCTION aq_jms.set_header(message aq.jms_message, name text, value text) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW((message).type, CASE WHEN value IS NULL THEN COALESCE((message).headers, '{}'::jsonb) - name
	ELSE COALESCE((message).headers, '{}'::jsonb) || jsonb_build_object(name, value) END,
	(message).properties, (message).property_types, (message).text, (message).bytes)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.set_header(aq.jms_message, text, text) IS
'Set a header: type, correlation_id, reply_to (queue:NAME or topic:NAME); null removes it.';

CREATE FUNCTION aq_jms.get_header(message aq.jms_message, name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (message).headers ->> name;
COMMENT ON FUNCTION aq_jms.get_header(aq.jms_message, text) IS
'A header as text; null: not set.';

-- As the Java type that has the name; double and float have values that JSON cannot represent.
CREATE FUNCTION aq_jms.set_property(message aq.jms_message, name text, value anyelement) RETURNS aq.jms_message
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT ROW((message).type, (message).headers,
		coalesce((message).properties, '{}') || jsonb_build_object(name, CASE WHEN v.special THEN jsonb_build_object(v.java, v.text)
			WHEN v.java IS NOT NULL OR v.type IN ('boolean', 'integer', 'numeric') THEN to_jsonb(value) ELSE to_jsonb(v.text) END),
		nullif(coalesce((message).property_types, '{}') - name || CASE WHEN v.java IS NULL OR v.special THEN '{}' ELSE jsonb_build_object(name, v.java) END, '{}'),
		(message).text, (message).bytes)::aq.jms_message
	FROM (SELECT t.type, value::text, t.type IN ('real', 'double precision') AND value::text ~* '[a-z]{3}', CASE t.type WHEN 'smallint' THEN 'short'
		WHEN 'bigint' THEN 'long' WHEN 'real' THEN 'float' WHEN 'double precision' THEN 'double' END FROM (SELECT pg_typeof(value)::text) t (type)) v (type, text, special, java)
$$;
COMMENT ON FUNCTION aq_jms.set_property(aq.jms_message, text, anyelement) IS
'Set a property. Its type in Java is that of the value: boolean, smallint (short), integer (int),
  bigint (long), real (float), double precision (double); numeric is an int, a long or a double; all
  other types are strings. Properties of the provider, such as JMSXGroupID, are set in the same way.';

CREATE FUNCTION aq_jms.get_property(message aq.jms_message, name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN COALESCE(CASE WHEN jsonb_typeof((message).properties -> name) = 'object'
	THEN COALESCE((message).properties -> name ->> 'double', (message).properties -> name ->> 'float') END, (message).properties ->> name);
COMMENT ON FUNCTION aq_jms.get_property(aq.jms_message, text) IS
'A property as text, which a cast turns into its type; null: not set.';

CREATE FUNCTION aq_jms.clear_properties(message aq.jms_message) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW((message).type, (message).headers, NULL, NULL, (message).text, (message).bytes)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.clear_properties(aq.jms_message) IS 'Remove all properties';

CREATE FUNCTION aq_jms.item(value anyelement) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN value IS NULL THEN 'null' WHEN v.type = 'bytea' THEN jsonb_build_object('bytes', translate(encode(value::text::bytea, 'base64'), E'\n', ''))
		WHEN v.type IN ('real', 'double precision') AND v.text ~* '[a-z]{3}' THEN jsonb_build_object(v.java, v.text)
		WHEN v.java = 'string' THEN jsonb_build_object(v.java, v.text) ELSE jsonb_build_object(v.java, to_jsonb(value)) END
	FROM (SELECT t.type, value::text, CASE t.type WHEN 'boolean' THEN 'boolean' WHEN 'smallint' THEN 'short' WHEN 'integer' THEN 'int' WHEN 'bigint' THEN 'long'
		WHEN 'real' THEN 'float' WHEN 'double precision' THEN 'double' WHEN 'numeric' THEN 'double' ELSE 'string' END
		FROM (SELECT pg_typeof(value)::text) t (type)) v (type, text, java)
$$;
COMMENT ON FUNCTION aq_jms.item(anyelement) IS
'A value in the form that map and stream messages have: {"int": 5}. Types as in aq_jms.set_property,
  but bytea is bytes, and numeric a double.';

CREATE FUNCTION aq_jms.set_item(message aq.jms_message, name text, value jsonb) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('map', (message).headers, (message).properties, (message).property_types,
	(COALESCE(NULLIF((message).text, ''), '{}')::jsonb || jsonb_build_object(name, value))::text, NULL)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.set_item(aq.jms_message, text, jsonb) IS
'Set an item of a map message: aq_jms.set_item(m, ''count'', aq_jms.item(5)).';

CREATE FUNCTION aq_jms.add_item(message aq.jms_message, value jsonb) RETURNS aq.jms_message
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW('stream', (message).headers, (message).properties, (message).property_types,
	(COALESCE(NULLIF((message).text, ''), '[]')::jsonb || jsonb_build_array(value))::text, NULL)::aq.jms_message;
COMMENT ON FUNCTION aq_jms.add_item(aq.jms_message, jsonb) IS
'Add an item to a stream message: aq_jms.add_item(m, aq_jms.item(5)).';

CREATE FUNCTION aq_jms.items(message aq.jms_message, OUT name text, OUT type text, OUT value text) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 10
BEGIN ATOMIC
	SELECT i.name, t.type, t.value
	FROM (SELECT key, jsonb_each.value, 0 FROM jsonb_each(CASE WHEN (message).type = 'map' THEN (message).text::jsonb END)
		UNION ALL SELECT NULL, e.value, e.number FROM jsonb_array_elements(CASE WHEN (message).type = 'stream' THEN (message).text::jsonb END) WITH ORDINALITY e (value, number)) i (name, item, number)
		LEFT JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(i.item) = 'object' THEN i.item END) t (type, value) ON true
	ORDER BY i.number, i.name;
END;
COMMENT ON FUNCTION aq_jms.items(aq.jms_message) IS
'The items of a map or stream message, in the order of the stream: name (null in a stream), type in
  Java, and value as text; bytes in base64.';
