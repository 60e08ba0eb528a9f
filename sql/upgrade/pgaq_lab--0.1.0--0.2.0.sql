\echo Use "ALTER EXTENSION pgaq_lab UPDATE" to load this file. \quit
-- The extension needs the new functions of pgaq.
DO $$
BEGIN
	IF string_to_array((SELECT extversion FROM pg_extension WHERE extname = 'pgaq'), '.')::integer[] < string_to_array('0.2.0', '.')::integer[] THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'version 0.2.0 of the extension "pgaq_lab" needs version 0.2.0 of the extension "pgaq"', HINT = 'First run ALTER EXTENSION pgaq UPDATE.';
	END IF;
END $$;

-- Written by tools/upgrade --write from here to the end: functions and views, their comments, owners and rights.
