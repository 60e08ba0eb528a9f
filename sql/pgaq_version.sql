-- The extension needs the new functions of pgaq.
DO $$
BEGIN
	IF (SELECT extversion FROM pg_extension WHERE extname = 'pgaq') <> '@VERSION@' THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'version @VERSION@ of the extension "@EXTENSION@" needs version @VERSION@ of the extension "pgaq"', HINT = 'First run ALTER EXTENSION pgaq UPDATE.';
	END IF;
END $$;
