-- The extension needs the new functions of pgaq.
DO $$
BEGIN
	IF string_to_array((SELECT extversion FROM pg_extension WHERE extname = 'pgaq'), '.')::integer[] < string_to_array('@VERSION@', '.')::integer[] THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'version @VERSION@ of the extension "@EXTENSION@" needs version @VERSION@ of the extension "pgaq"', HINT = 'First run ALTER EXTENSION pgaq UPDATE.';
	END IF;
END $$;
