-- The role that owns the tables and the functions with SECURITY DEFINER, and as which the workers run: it has no attributes, no members, and only pg_monitor's
-- rights beside its own. Views, schemas aq, aq_jms and aq_internal, and all other functions stay with the superuser that creates the extension: they run with the
-- rights of their callers, so that who gets hold of the role cannot replace what others call.
-- Roles belong to the whole server: another database may have made it, and it remains when the extension is dropped. The utility hook keeps roles without
-- SUPERUSER from granting or altering it (jobs/utility.c).
DO $$
DECLARE
	role record;
BEGIN
	SELECT r.oid, rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls AS attributes,
			EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid AND m.roleid <> 'pg_monitor'::regrole) AS members,
			EXISTS (SELECT FROM pg_shdepend d WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
				AND d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'o') AS used
		INTO role FROM pg_roles r WHERE r.rolname = 'pgaq';
	IF role.oid IS NULL THEN
		CREATE ROLE pgaq NOLOGIN;
	ELSIF role.attributes OR role.members OR role.used THEN
		RAISE EXCEPTION USING ERRCODE = 'duplicate_object', MESSAGE = 'role "pgaq" already exists',
			DETAIL = CASE WHEN role.attributes THEN 'It can log in, or has another attribute.' WHEN role.members THEN 'It has members, or is a member of another role than pg_monitor.'
				ELSE 'It owns objects in this database.' END,
			HINT = 'The extension pgaq needs a role of this name for itself. If the role is another one, rename it: ALTER ROLE pgaq RENAME TO ...';
	END IF;
	GRANT pg_monitor TO pgaq;
END $$;
GRANT USAGE ON SCHEMA aq, aq_jms, aq_internal TO pgaq;

-- A GRANT after the change of the owner: PostgreSQL 15 and 16 leave the old owner in what pg_dump takes as initial privileges otherwise.
DO $$
DECLARE
	command text;
BEGIN
	FOR command IN
		SELECT format('ALTER SCHEMA %1$s OWNER TO pgaq; GRANT ALL ON SCHEMA %1$s TO pgaq', 'aq_data')
		UNION ALL SELECT format('ALTER TABLE %1$s OWNER TO pgaq; GRANT ALL ON TABLE %1$s TO pgaq', c.oid::regclass)
			FROM pg_class c WHERE c.relnamespace IN ('aq'::regnamespace, 'aq_internal'::regnamespace, 'aq_data'::regnamespace) AND (c.relkind IN ('r', 'p')
				OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))
		UNION ALL SELECT CASE WHEN p.prosecdef THEN format('ALTER ROUTINE %1$s OWNER TO pgaq; GRANT ALL ON ROUTINE %1$s TO pgaq', p.oid::regprocedure)
				ELSE format('GRANT EXECUTE ON ROUTINE %s TO pgaq', p.oid::regprocedure) END
			FROM pg_proc p WHERE p.pronamespace IN ('aq'::regnamespace, 'aq_internal'::regnamespace)
				AND (p.prosecdef OR p.pronamespace = 'aq_internal'::regnamespace AND NOT has_function_privilege('public', p.oid, 'EXECUTE')) LOOP
		EXECUTE command;
	END LOOP;
END $$;
