-- What the database's owner must not read is dumped through this table. Created once; changed only by upgrade scripts.
--
-- pg_dump needs the SELECT privilege on each configuration table, and row-level security makes it fail. So the tables with data of several roles (payloads,
-- contexts, errors, figures of other databases) are no configuration tables. This one is: it is always empty, and pg_dump appends the condition to
-- SELECT ... FROM aq_internal.dump_row, so that it gets their rows as well, if its role can read them: see aq_internal.dump_rows. A restore inserts them here,
-- and a trigger puts them where they belong.

CREATE TABLE aq_internal.dump_row (
	table_name text NOT NULL,
	line json NOT NULL
);
ALTER TABLE aq_internal.dump_row REPLICA IDENTITY FULL;
COMMENT ON TABLE aq_internal.dump_row IS 'Empty: in a dump, the rows of tables that the database''s owner cannot read';
COMMENT ON COLUMN aq_internal.dump_row.table_name IS 'the table in aq_internal';
COMMENT ON COLUMN aq_internal.dump_row.line IS 'the row';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.dump_row', 'UNION ALL SELECT * FROM aq_internal.dump_rows()');
