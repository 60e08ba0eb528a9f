-- These views filter rows by role, so a function in a query must not see the other rows (security_barrier).
DO $$
DECLARE
	view regclass;
BEGIN
	FOR view IN SELECT DISTINCT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
			WHERE n.nspname = 'sys' AND c.relkind = 'v' AND a.grantee = 0 AND a.privilege_type = 'SELECT' LOOP
		EXECUTE format('ALTER VIEW %s SET (security_barrier)', view);
	END LOOP;
END $$;

-- The helpers of make_view.sql and dictionary.sql are for the installation only.
DROP PROCEDURE aq_internal.make_view(text, text, text, text, text, text);
DROP PROCEDURE sys._make_variant(text, text, text, text, text);
