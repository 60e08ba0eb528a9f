-- Agents.

CREATE FUNCTION sys.aq$_agent(name text, address text, protocol numeric) RETURNS sys.aq$_agent
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW(nullif($1, ''), nullif($2, ''), $3)::sys.aq$_agent;
COMMENT ON FUNCTION sys.aq$_agent(text, text, numeric) IS 'Make an agent, as Oracle''s constructor; an empty text is a null';

CREATE FUNCTION sys._agent_name(agent_name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	parts text[] := aq_internal.split_name(agent_name);
BEGIN
	IF parts IS NULL OR parts[1] IS NOT NULL THEN
		PERFORM aq.raise_error('AQ089', format('agent name "%s" is not an identifier', agent_name),
			'Names begin with a letter and go on with letters, digits, _, $ and #; others must be in double quotes.');
	END IF;
	IF octet_length(parts[2]) > 127 THEN
		PERFORM aq.raise_error('AQ087', format('agent name "%s" is too long', parts[2]), 'Names have at most 127 bytes.');
	ELSIF parts[2] ILIKE 'aq$\_%' THEN
		PERFORM aq.raise_error('AQ090', format('agent name "%s" is reserved', agent_name),
			'Names must not begin with AQ$_.');
	END IF;
	RETURN parts[2];
END $$;
COMMENT ON FUNCTION sys._agent_name(text) IS 'Internal: consumer''s native name of an agent''s name';
