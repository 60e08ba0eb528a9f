-- History: snapshots of the counters. Created once; changed only by upgrade scripts.
--
-- A snapshot is one row here and one row of aq_internal.snapshot_data for each source of figures (aq_internal.sources): an array of the source's rows.
-- So a snapshot is a few dozen compressed rows, a new figure needs no new table, and purging causes little bloat.
-- The view aq.snapshot_figures shows them as rows.

CREATE SEQUENCE aq_internal.snapshot_id_seq AS integer;
COMMENT ON SEQUENCE aq_internal.snapshot_id_seq IS 'Numbers of snapshots; never reused';
CREATE SEQUENCE aq_internal.baseline_id_seq AS integer;
COMMENT ON SEQUENCE aq_internal.baseline_id_seq IS 'Numbers of baselines; never reused';

CREATE TABLE aq_internal.snapshot (
	dbid bigint NOT NULL,
	snap_id integer NOT NULL DEFAULT nextval('aq_internal.snapshot_id_seq'),
	startup_time timestamptz NOT NULL,
	begins timestamptz NOT NULL,
	taken timestamptz NOT NULL,
	elapsed interval NOT NULL,
	by_worker boolean NOT NULL,
	errors integer NOT NULL,
	PRIMARY KEY (dbid, snap_id)
);
COMMENT ON TABLE aq_internal.snapshot IS 'One row per snapshot of the counters';
COMMENT ON COLUMN aq_internal.snapshot.dbid IS 'the database it was taken in: a hash of the server''s system identifier and the database''s oid';
COMMENT ON COLUMN aq_internal.snapshot.snap_id IS 'number of the snapshot';
COMMENT ON COLUMN aq_internal.snapshot.startup_time IS 'when the counters started at zero: at the start of the server, or at its recovery from a crash';
COMMENT ON COLUMN aq_internal.snapshot.begins IS 'end of the snapshot before, or startup_time if that is later';
COMMENT ON COLUMN aq_internal.snapshot.taken IS 'when it was taken';
COMMENT ON COLUMN aq_internal.snapshot.elapsed IS 'its duration';
COMMENT ON COLUMN aq_internal.snapshot.by_worker IS 'taken by the worker, not by a call';
COMMENT ON COLUMN aq_internal.snapshot.errors IS 'sources of figures that could not be read; source "error" of aq_internal.snapshot_data says why';

CREATE TABLE aq_internal.snapshot_data (
	dbid bigint NOT NULL,
	snap_id integer NOT NULL,
	source text COLLATE "C" NOT NULL,
	data jsonb NOT NULL,
	PRIMARY KEY (dbid, snap_id, source)
);
COMMENT ON TABLE aq_internal.snapshot_data IS 'The data of a snapshot from each source; read it through aq.snapshot_figures';
COMMENT ON COLUMN aq_internal.snapshot_data.dbid IS 'the database';
COMMENT ON COLUMN aq_internal.snapshot_data.snap_id IS 'the snapshot';
COMMENT ON COLUMN aq_internal.snapshot_data.source IS 'the source of figures, see aq_internal.sources';
COMMENT ON COLUMN aq_internal.snapshot_data.data IS 'its rows, as an array';

CREATE TABLE aq_internal.snapshot_baseline (
	dbid bigint NOT NULL,
	baseline_id integer NOT NULL DEFAULT nextval('aq_internal.baseline_id_seq'),
	baseline_name text COLLATE "C" NOT NULL,
	first_snap_id integer NOT NULL,
	last_snap_id integer NOT NULL CHECK (last_snap_id > first_snap_id),
	created timestamptz NOT NULL DEFAULT now(),
	expires_after_days integer CHECK (expires_after_days > 0),
	PRIMARY KEY (dbid, baseline_id),
	UNIQUE (dbid, baseline_name)
);
COMMENT ON TABLE aq_internal.snapshot_baseline IS 'Ranges of snapshots that are kept under a name';
COMMENT ON COLUMN aq_internal.snapshot_baseline.dbid IS 'the database';
COMMENT ON COLUMN aq_internal.snapshot_baseline.baseline_id IS 'number of the baseline';
COMMENT ON COLUMN aq_internal.snapshot_baseline.baseline_name IS 'its name';
COMMENT ON COLUMN aq_internal.snapshot_baseline.first_snap_id IS 'first snapshot';
COMMENT ON COLUMN aq_internal.snapshot_baseline.last_snap_id IS 'last snapshot';
COMMENT ON COLUMN aq_internal.snapshot_baseline.created IS 'when it was created';
COMMENT ON COLUMN aq_internal.snapshot_baseline.expires_after_days IS 'days after which it is dropped; null: it is kept';

-- Without a row, aq_internal.snapshot_settings returns the settings in force.
CREATE TABLE aq_internal.snapshot_control (
	dbid bigint PRIMARY KEY,
	every interval NOT NULL,
	retention interval NOT NULL,
	top_statements integer
);
COMMENT ON TABLE aq_internal.snapshot_control IS 'Settings of the snapshots, where they differ from the defaults';
COMMENT ON COLUMN aq_internal.snapshot_control.dbid IS 'the database';
COMMENT ON COLUMN aq_internal.snapshot_control.every IS 'time between snapshots; 0: the worker takes none';
COMMENT ON COLUMN aq_internal.snapshot_control.retention IS 'how long they are kept; 0: forever';
COMMENT ON COLUMN aq_internal.snapshot_control.top_statements IS 'statements kept of pg_stat_statements; null: all';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.snapshot', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.snapshot_baseline', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.snapshot_control', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.snapshot_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.baseline_id_seq', '');
