-- What people have changed through a console.  Created once; changed only by upgrade scripts.

CREATE TABLE aq_internal.action (
	done_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	role text COLLATE "C" NOT NULL,
	action text NOT NULL,
	object text NOT NULL,
	number bigint,
	detail text
);
CREATE INDEX action_done_at ON aq_internal.action (done_at);
CREATE INDEX action_role ON aq_internal.action (role, done_at);
ALTER TABLE aq_internal.action REPLICA IDENTITY FULL;
COMMENT ON TABLE aq_internal.action IS 'What people have changed through a console; of the last 90 days, 10,000 rows of a role at most, and in no dump';
COMMENT ON COLUMN aq_internal.action.done_at IS 'when';
COMMENT ON COLUMN aq_internal.action.role IS 'role that had logged in';
COMMENT ON COLUMN aq_internal.action.action IS 'what was done';
COMMENT ON COLUMN aq_internal.action.object IS 'queue, schedule or message';
COMMENT ON COLUMN aq_internal.action.number IS 'how many messages it concerned; null: none';
COMMENT ON COLUMN aq_internal.action.detail IS 'arguments';
