-- As in the extension pgaq: functions with SECURITY DEFINER run as the role pgaq.
DO $$
DECLARE
	command text;
BEGIN
	FOR command IN SELECT format('ALTER ROUTINE %1$s OWNER TO pgaq; GRANT ALL ON ROUTINE %1$s TO pgaq', p.oid::regprocedure)
		FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		WHERE d.refobjid = (SELECT e.oid FROM pg_extension e WHERE e.extname = 'pgaq_oracle') AND p.prosecdef LOOP
		EXECUTE command;
	END LOOP;
END $$;
