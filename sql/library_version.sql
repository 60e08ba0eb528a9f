-- A server that was not restarted after an installation of files still has the library of the version before.
DO $$
BEGIN
	IF current_setting('pgaq.max_queues', true) IS NOT NULL
		AND string_to_array(coalesce(current_setting('pgaq.library_version', true), '0'), '.')::integer[] < string_to_array('@VERSION@', '.')::integer[] THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'version @VERSION@ of the extension "pgaq" needs the library of this version',
			DETAIL = format('The server has loaded the library of %s.', coalesce('version ' || current_setting('pgaq.library_version', true), 'an earlier version')),
			HINT = 'Restart the server. Then repeat the command.';
	END IF;
END $$;
