-- Rows of tables that the database's owner cannot read, in a dump and in a restore: see tables/dump.sql.

-- Not a security definer: roles that can read the tables anyway get the rows, all others get none. A row comes after those that it refers to.
CREATE FUNCTION aq_internal.dump_rows() RETURNS SETOF aq_internal.dump_row
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
BEGIN
	IF pg_has_role('pg_read_all_data', 'USAGE') THEN
		FOREACH name IN ARRAY ARRAY['registration', 'notified', 'posting', 'schedule', 'propagation', 'propagation_link', 'propagation_batch', 'snapshot_data', 'active_session', 'unique_key'] LOOP
			RETURN QUERY EXECUTE format('SELECT %1$L, row_to_json(t) FROM aq_internal.%1$I t', name);
		END LOOP;
	END IF;
END $$;
COMMENT ON FUNCTION aq_internal.dump_rows() IS 'Internal: what pg_dump gets through aq_internal.dump_row; no rows for a role that is neither a superuser nor a member of pg_read_all_data';

-- Columns are found by their names: a later version can have more.
CREATE FUNCTION aq_internal.restore_row() RETURNS trigger
LANGUAGE plpgsql PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE (SELECT format('INSERT INTO aq_internal.%1$I (%2$s) SELECT %2$s FROM json_populate_record(NULL::aq_internal.%1$I, $1)', NEW.table_name,
		string_agg(quote_ident(key), ', ')) FROM json_object_keys(NEW.line) key) USING NEW.line;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION aq_internal.restore_row() IS 'Internal: puts a restored row of aq_internal.dump_row into its table';
CREATE TRIGGER restore BEFORE INSERT ON aq_internal.dump_row FOR EACH ROW EXECUTE FUNCTION aq_internal.restore_row();
