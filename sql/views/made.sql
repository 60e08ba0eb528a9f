-- A view that shows each role what it may see: nothing that the role calls in a query is to meet the rest.
DO $$
DECLARE
	view regclass;
BEGIN
	FOR view IN SELECT c.oid FROM pg_class c, aclexplode(c.relacl) a
			WHERE c.relnamespace IN ('aq'::regnamespace, 'sys'::regnamespace) AND c.relkind = 'v' AND a.grantee = 0 AND a.privilege_type = 'SELECT' LOOP
		EXECUTE format('ALTER VIEW %s SET (security_barrier)', view);
	END LOOP;
END $$;

-- The helpers of sql/views/make.sql are for the installation only.
DROP PROCEDURE aq._make_view(text, text, text, text);
DROP PROCEDURE aq._make_source(text, text, text, text, integer);
