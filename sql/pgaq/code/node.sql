-- Nodes: the databases on other servers that this one belongs together with. None of these functions is for PUBLIC: see rights.sql.

CREATE FUNCTION aq_internal.nodes_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_changed';
COMMENT ON FUNCTION aq_internal.nodes_changed() IS 'Internal: the link worker sends heartbeats to the nodes that there are now';
CREATE TRIGGER changed AFTER INSERT OR DELETE ON aq_internal.node FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.nodes_changed();
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON aq_internal.node_identity FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.nodes_changed();

CREATE FUNCTION aq.node_add(server name)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_add';
COMMENT ON FUNCTION aq.node_add(name) IS
'Add the database of a link as a node: heartbeats are sent to it with the current role''s user mapping. It does not wait for the other server; aq.nodes shows the result. Call it on both nodes. The first call makes this database a node. server: a foreign server of the wrapper pgaq_link. For superusers, and roles to which they grant it. Errors 22004, 42501, 42704, 42710, 42809, AQ182';

CREATE FUNCTION aq.node_remove(server name)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_remove';
COMMENT ON FUNCTION aq.node_remove(name) IS
'Send no heartbeats to a node any more, and forget its identity. server: as in aq.nodes; it need not exist any more. For superusers, and roles to which they grant it. Errors 22004, 42704';

CREATE FUNCTION aq.node_reset(keep boolean DEFAULT false)
RETURNS uuid LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_reset';
COMMENT ON FUNCTION aq.node_reset(boolean) IS
'In a copy of a node: make this database a node of its own, and return its identity. keep: true: keep the identity, because this database replaces the one of which it is a copy, for example after pg_upgrade; that one must not run any more. For superusers, and roles to which they grant it. Errors 22004, 55000';

CREATE FUNCTION aq.node_beat(caller_id uuid, caller_timeline bigint, caller_started timestamptz, OUT node_id uuid, OUT timeline bigint, OUT started timestamptz, OUT mutual boolean)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_beat';
COMMENT ON FUNCTION aq.node_beat(uuid, bigint, timestamptz) IS
'A heartbeat, called by links of other nodes; grant it to the roles as which they connect. caller_id, caller_timeline, caller_started: identity of the calling node, timeline and start of its server; node_id, timeline, started: the same of this one; mutual: has aq.node_add been called for it here, and has it answered. Errors 22004, 55000, AQ182';

-- The origin's side of one queue on several nodes: see src/link/NODES.md. Nothing calls these yet.
CREATE FUNCTION aq_internal.unit_acquire(queue_name text, shard integer, consumer text, caller uuid, wishes boolean, OUT epoch bigint, OUT is_new boolean)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_acquire';
COMMENT ON FUNCTION aq_internal.unit_acquire(text, integer, text, uuid, boolean) IS
'Internal: the epoch with which the calling node holds a unit of this one, null if it does not. wishes: grant it if no other node holds it; is_new: this call has granted it. Errors 22004, 22023, 42704, 0A000, 55000, AQ182';

CREATE FUNCTION aq_internal.unit_release(queue_name text, shard integer, consumer text, caller uuid, epoch bigint)
RETURNS boolean LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_release';
COMMENT ON FUNCTION aq_internal.unit_release(text, integer, text, uuid, bigint) IS
'Internal: the calling node gives a unit back; false: it does not hold it with this epoch. Errors 22004, 22023, 42704, 0A000, 55000, 55P03, AQ182';

CREATE FUNCTION aq_internal.unit_break(queue_name text, shard integer, consumer text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_break';
COMMENT ON FUNCTION aq_internal.unit_break(text, integer, text) IS
'Internal: take a unit from the node that holds it. What it has consumed and not acknowledged is consumed again. For the queue''s owner. Errors 22004, 22023, 42704, 0A000, 55000';
