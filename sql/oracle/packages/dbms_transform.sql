-- Package dbms_transform. A transformation is a function of one argument: one that create_transformation makes, or any other. create_transformation
-- makes it with its creator's privileges and search_path; the creator can grant EXECUTE on it as on any function.

CREATE FUNCTION sys._transformation(name text, from_type regtype, OUT call text, OUT source regtype, OUT target regtype,
	OUT definer boolean, OUT function oid)
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	parts text[] := sys._split_name(name);
	schemas text[] := sys._callers_schemas(true);
BEGIN
	SELECT format('%I.%I', n.nspname, p.proname), p.proargtypes[0]::regtype, p.prorettype::regtype, p.prosecdef,
			p.oid
		INTO call, source, target, definer, function
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE p.proname = parts[2] AND p.pronargs = 1 AND p.prokind = 'f' AND NOT p.proretset
			AND (n.nspname = parts[1] OR parts[1] IS NULL AND n.nspname = ANY (schemas))
		ORDER BY p.proargtypes[0] = from_type DESC, array_position(schemas, n.nspname::text), p.oid
		LIMIT 1;
	IF call IS NULL THEN
		PERFORM sys._raise_error('AQ098', format('transformation "%s" does not exist', name),
			'Create it with dbms_transform.create_transformation, or name a function of one argument.');
	END IF;
END $$;
COMMENT ON FUNCTION sys._transformation(text, regtype) IS 'Internal: the function behind a transformation''s name';

-- A subscriber's transformation is chosen by a role that manages the queue, and runs in the consumers' sessions. It must not run with their
-- privileges, nor with those of a function that the choosing role may not execute.
CREATE FUNCTION sys._check_subscriber_transformation(native text, name text, chosen_by oid) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	t record;
BEGIN
	IF name IS NULL THEN
		RETURN NULL;
	END IF;
	SELECT * INTO t FROM sys._transformation(name, sys._payload_type(native));
	IF t.source <> sys._payload_type(native) THEN
		PERFORM sys._raise_error('AQ096', format('transformation "%s" takes %s, not %s', name, t.source, sys._payload_type(native)));
	ELSIF NOT t.definer THEN
		PERFORM sys._raise_error('AQ060', format('"%s" cannot be the transformation of a subscriber', name),
			'Create it with dbms_transform.create_transformation, or as SECURITY DEFINER.');
	ELSIF has_function_privilege(chosen_by, t.function, 'EXECUTE') IS NOT true THEN
		PERFORM sys._raise_error('AQ060', format('"%s" cannot be the transformation of a subscriber', name),
			'The role that chooses it needs EXECUTE on it.');
	END IF;
	RETURN t.call;
END $$;
COMMENT ON FUNCTION sys._check_subscriber_transformation(text, text, oid) IS 'Internal: the full name of a transformation for a subscriber';

-- literal: a text is read as what the transformation takes. restricted: it is a subscriber's.
CREATE FUNCTION sys._transformation_expression(name text, given regtype, wanted regtype, literal boolean, restricted boolean) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	t record;
BEGIN
	SELECT * INTO t FROM sys._transformation(name, given);
	IF t.source <> given AND NOT (literal AND given = 'text'::regtype) THEN
		PERFORM sys._raise_error('AQ096', format('transformation "%s" takes %s, not %s', name, t.source, given));
	ELSIF t.target <> wanted THEN
		PERFORM sys._raise_error('AQ095', format('transformation "%s" makes %s, not %s', name, t.target, wanted));
	END IF;
	RETURN format('sys._transform_end($1, sys._transform_begin(), %s)',
		CASE WHEN restricted THEN format('sys._transform(%s, $2, NULL::%s)', t.function, t.target)
			ELSE format('%s($2::%s)', t.call, t.source) END);
END $$;
COMMENT ON FUNCTION sys._transformation_expression(text, regtype, regtype, boolean, boolean) IS
'Internal: the expression that applies a transformation to the payload $2 of a message of queue $1, or an error';

-- The time of a transformation is measured from the evaluation of the second argument to that of the third.
CREATE FUNCTION sys._transform_begin() RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_transformation_begin';
COMMENT ON FUNCTION sys._transform_begin() IS 'Internal: the clock when a transformation begins, nanoseconds; 0 while pgaq.timed_statistics is off';

CREATE FUNCTION sys._transform_end(queue_name text, began bigint, value anyelement) RETURNS anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_transformation_end';
COMMENT ON FUNCTION sys._transform_end(text, bigint, anyelement) IS 'Internal: what a transformation has made; counts its time for the queue';

CREATE FUNCTION sys._transform(function oid, payload "any", as_type anyelement) RETURNS anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_transformation_restricted';
COMMENT ON FUNCTION sys._transform(oid, "any", anyelement) IS 'Internal: apply the transformation of a subscriber in a restricted operation';

-- The comment of a transformation's function contains the arguments with which it was created.
CREATE FUNCTION sys._make_transformation(schema_name text, name text, from_type regtype, to_type regtype, parts jsonb)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	expression text := parts ->> '0';
	body text;
BEGIN
	IF expression IS NULL THEN
		SELECT 'ROW(' || string_agg(coalesce('(' || (parts ->> a.attnum::text) || ')', 'NULL'), ', ' ORDER BY a.attnum) || ')'
			INTO expression
			FROM pg_type y JOIN pg_attribute a ON a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
			WHERE y.oid = to_type;
	END IF;
	PERFORM sys._run_ddl(format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE sql VOLATILE SECURITY DEFINER '
		'SET search_path = %s AS %L', schema_name, name, from_type, to_type,
		coalesce(nullif(sys._callers_path(), ''), quote_literal('')),
		format('SELECT CAST((%s) AS %s) FROM (SELECT $1 AS user_data) AS source',
			sys._in_parentheses(expression, 'source'), to_type)));
	PERFORM sys._run_ddl(format('COMMENT ON FUNCTION %I.%I(%s) IS %L', schema_name, name, from_type, 'AQ transformation ' || parts::text));
END $$;
COMMENT ON FUNCTION sys._make_transformation(text, text, regtype, regtype, jsonb) IS 'Internal: make or replace a transformation''s function';

CREATE FUNCTION sys._transformations(OUT oid oid, OUT schema_name text, OUT name text, OUT from_type regtype, OUT to_type regtype,
	OUT owner text, OUT parts jsonb)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT p.oid, n.nspname, p.proname, p.proargtypes[0]::regtype, p.prorettype::regtype, pg_get_userbyid(p.proowner),
		substr(d.description, 19)::jsonb
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		JOIN pg_description d ON d.classoid = 'pg_proc'::regclass AND d.objoid = p.oid AND d.objsubid = 0
	WHERE d.description LIKE 'AQ transformation {%' AND p.pronargs = 1;
END;
COMMENT ON FUNCTION sys._transformations() IS 'Internal: the transformations made by dbms_transform';

CREATE FUNCTION sys._fold(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN coalesce((sys._split_name(name))[2], name);
COMMENT ON FUNCTION sys._fold(text) IS 'Internal: a single identifier, lower case unless quoted';

CREATE FUNCTION sys._type_named(schema_name text, type_name text) RETURNS regtype
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	found regtype := CASE upper(type_name) WHEN 'RAW' THEN 'bytea'::regtype WHEN 'JSON' THEN 'jsonb'::regtype
		WHEN 'XMLTYPE' THEN 'xml'::regtype WHEN 'SYS.XMLTYPE' THEN 'xml'::regtype WHEN 'VARCHAR2' THEN 'text'::regtype WHEN 'CLOB' THEN 'text'::regtype END;
BEGIN
	IF found IS NULL THEN
		BEGIN
			found := sys._callers_type(CASE WHEN schema_name IS NULL THEN type_name ELSE schema_name || '.' || type_name END);
		EXCEPTION WHEN syntax_error OR invalid_name THEN
			found := NULL;
		END;
	END IF;
	-- Oracle's types of JMS messages are domains over it
	IF (SELECT t.typtype = 'd' AND t.typbasetype = 'aq.jms_message'::regtype FROM pg_type t WHERE t.oid = found) THEN
		found := 'aq.jms_message'::regtype;
	END IF;
	IF found IS NULL THEN
		PERFORM sys._raise_error('AQ082', CASE WHEN type_name IS NULL THEN 'payload type must not be null'
			ELSE format('payload type "%s" does not exist', type_name) END,
			'Use RAW, JSON, XMLTYPE, text or a composite type.');
	ELSIF NOT has_type_privilege(found, 'USAGE') THEN
		PERFORM sys._raise_error('AQ083', format('permission denied for type %s', found), 'Ask its owner for the USAGE privilege on it.');
	END IF;
	RETURN found;
END $$;
COMMENT ON FUNCTION sys._type_named(text, text) IS 'Internal: a payload type, also by Oracle''s name';

CREATE PROCEDURE dbms_transform.create_transformation(schema text, name text, from_schema text, from_type text,
	to_schema text, to_type text, transformation text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	source regtype := sys._type_named(from_schema, from_type);
	target regtype := sys._type_named(to_schema, to_type);
	of_schema text := coalesce(sys._fold(schema), (sys._callers_schemas())[1]);
BEGIN
	IF to_regprocedure(format('%I.%I(%s)', of_schema, sys._fold(name), source)) IS NOT NULL THEN
		PERFORM sys._raise_error('AQ097', format('transformation "%s.%s" already exists', of_schema, sys._fold(name)),
			'Change it with dbms_transform.modify_transformation.');
	END IF;
	PERFORM sys._make_transformation(of_schema, sys._fold(name), source, target,
		jsonb_strip_nulls(jsonb_build_object('0', nullif(transformation, ''))));
	-- it runs with its creator's privileges; CREATE OR REPLACE keeps the granted ones
	PERFORM sys._run_ddl(format('REVOKE EXECUTE ON FUNCTION %I.%I(%s) FROM PUBLIC', of_schema, sys._fold(name), source));
END $$;
COMMENT ON PROCEDURE dbms_transform.create_transformation(text, text, text, text, text, text, text) IS
'Make a transformation from one payload type to another: an expression over source.user_data, or
  attribute by attribute with modify_transformation.';

CREATE FUNCTION sys._transformation_named(schema text, name text, OUT schema_name text, OUT transformation_name text,
	OUT from_type regtype, OUT to_type regtype, OUT parts jsonb)
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	SELECT t.schema_name, t.name, t.from_type, t.to_type, t.parts
		INTO schema_name, transformation_name, from_type, to_type, parts
		FROM sys._transformations() t
		WHERE t.schema_name = coalesce(sys._fold(schema), (sys._callers_schemas())[1])
			AND t.name = sys._fold(_transformation_named.name);
	IF transformation_name IS NULL THEN
		PERFORM sys._raise_error('AQ098', format('transformation "%s.%s" does not exist', schema, name),
			'The view sys.all_transformations lists them.');
	END IF;
END $$;
COMMENT ON FUNCTION sys._transformation_named(text, text) IS 'Internal: a transformation made by dbms_transform';

CREATE PROCEDURE dbms_transform.modify_transformation(schema text, name text, attribute_number numeric, transformation text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	t record;
BEGIN
	SELECT * INTO t FROM sys._transformation_named(schema, name);
	IF attribute_number = 0 THEN
		t.parts := '{}';
	ELSE
		t.parts := t.parts - '0';
	END IF;
	PERFORM sys._make_transformation(t.schema_name, t.transformation_name, t.from_type, t.to_type,
		jsonb_strip_nulls(t.parts || jsonb_build_object(attribute_number::integer::text, nullif(transformation, ''))));
END $$;
COMMENT ON PROCEDURE dbms_transform.modify_transformation(text, text, numeric, text) IS
'Change the expression of one attribute of the result; 0: of the whole';

CREATE PROCEDURE dbms_transform.drop_transformation(schema text, name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	t record;
BEGIN
	SELECT * INTO t FROM sys._transformation_named(schema, name);
	PERFORM sys._run_ddl(format('DROP FUNCTION %I.%I(%s)', t.schema_name, t.transformation_name, t.from_type));
END $$;
COMMENT ON PROCEDURE dbms_transform.drop_transformation(text, text) IS 'Drop a transformation';
