-- Nodes: the databases on other servers that this one belongs together with. None of these functions is for PUBLIC: see rights.sql.

CREATE FUNCTION aq_internal.nodes_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_change_nodes';
COMMENT ON FUNCTION aq_internal.nodes_changed() IS 'Internal: the link worker sends heartbeats to the nodes that there are now';
CREATE TRIGGER changed AFTER INSERT OR DELETE ON aq_internal.node FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.nodes_changed();
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON aq_internal.node_identity FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.nodes_changed();

CREATE FUNCTION aq.add_node(server name)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_add';
COMMENT ON FUNCTION aq.add_node(name) IS
'Add the database of a link as a node: heartbeats are sent to it with the current role''s user
  mapping. It does not wait for the other server; aq.nodes shows the result. Call it on both nodes.
  The first call makes this database a node.
server: a foreign server of the wrapper pgaq_link
For superusers, and roles to which they grant it.
Errors 22004, 42501, 42704, 42710, 42809, AQ182';

CREATE FUNCTION aq.remove_node(server name, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_remove';
COMMENT ON FUNCTION aq.remove_node(name, boolean) IS
'Stop the heartbeats to a node and forget its identity. Fails while one of the two nodes holds
  messages of the other: see aq.node_units.
server: as in aq.nodes; the foreign server may have been dropped
force: true removes the node although it is unreachable. Units lent to it return to this node, as
  with aq.reclaim_unit; its messages held here stay here
For superusers, and roles to which they grant it.
Errors 22004, 42704, 55006';

CREATE FUNCTION aq.reset_node(keep boolean DEFAULT false)
RETURNS uuid LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_reset';
COMMENT ON FUNCTION aq.reset_node(boolean) IS
'In a copy of a node: make this database a node of its own, and return its identity.
keep: true keeps the identity, because this database replaces the original, for example after
  pg_upgrade; the original must never run again. false: units lent to other nodes return, so that
  their messages are ready here again; messages of other nodes held here stay here
For superusers, and roles to which they grant it.
Errors 22004, 55000';

CREATE FUNCTION aq.node_beat(caller_id uuid, caller_timeline bigint, caller_started timestamptz, OUT node_id uuid, OUT timeline bigint, OUT started timestamptz, OUT mutual boolean)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_calls_beat';
COMMENT ON FUNCTION aq.node_beat(uuid, bigint, timestamptz) IS
'A heartbeat, called by links of other nodes; grant it to the roles as which they connect.
caller_id, caller_timeline, caller_started: identity of the calling node, timeline and start of its
  server
node_id, timeline, started: the same for this node
mutual: whether this node has added the caller, and the caller has answered
Errors 22004, 22023, 55000, AQ182';

-- One queue on several nodes: see src/node/NODES.md.

CREATE FUNCTION aq_internal.units_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_change_units';
COMMENT ON FUNCTION aq_internal.units_changed() IS 'Internal: the link worker reads its units again';
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON aq_internal.node_unit FOR EACH ROW EXECUTE FUNCTION aq_internal.units_changed();
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON aq_internal.node_held FOR EACH ROW EXECUTE FUNCTION aq_internal.units_changed();

CREATE FUNCTION aq.node_want(caller uuid, queue_name text, consumer text, payload_type text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_want';
COMMENT ON FUNCTION aq.node_want(uuid, text, text, text) IS
'Called by links of other nodes: sessions there dequeue from the distributed queue of this name, for
  the consumer (null: it has one, without a name), so they get a share of its messages here.
caller: identity of the calling node
payload_type: of the queue there, with the schema
The role needs the privilege to dequeue. The messages are sent with its privileges.
Errors 0A000, 22004, 42501, 42704, 55000, AQ182';

CREATE FUNCTION aq.node_resume(caller uuid, token bigint, epochs bigint[], ids uuid[])
RETURNS integer[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_arrival_resume';
COMMENT ON FUNCTION aq.node_resume(uuid, bigint, bigint[], uuid[]) IS
'Called by links of other nodes: the numbers, from 1 on, of those messages of theirs that have not
  arrived here. From now on, only messages that are sent with this token are taken.
caller: identity of the calling node
token: a number that is greater than the last one
epochs: of the unit of each message
ids: of the messages there
Errors 22004, 42704, 55000, AQ182';

CREATE FUNCTION aq.node_deliver(caller uuid, token bigint, epoch bigint, queue_name text, shard integer, consumer text, payload_type text, payloads text[], priorities integer[],
	lifetimes bigint[], correlations text[], properties jsonb[], senders text[], exception_queues text[], originals uuid[],
	keys text[] DEFAULT NULL)
RETURNS boolean LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_arrival_deliver';
COMMENT ON FUNCTION aq.node_deliver(uuid, bigint, bigint, text, integer, text, text, text[], integer[], bigint[], text[], jsonb[], text[], text[], uuid[], text[]) IS
'Called by links of other nodes: messages of theirs for a consumer here.
caller: identity of the calling node
token: of the last aq.node_resume
epoch, shard: of their unit
payload_type: with its schema, must be the queue''s
payloads, priorities, correlations, properties, senders, exception_queues: of the messages
lifetimes: remaining time until expiration, in microseconds
originals: their ids there
keys: of the messages; null: none has a key
The arrays have an element for each message. Returns false, and takes nothing, if an earlier grant of
  the unit has not ended here; it ends now. The role needs the privilege to enqueue.
Errors 0A000, 22004, 22023, 42501, 42704, 53400, 55000, AQ182';

CREATE FUNCTION aq.node_recall(caller uuid, epoch bigint)
RETURNS boolean LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_arrival_recall';
COMMENT ON FUNCTION aq.node_recall(uuid, bigint) IS
'Called by links of other nodes: take back their unit. Returns false if this node does not hold it.
caller: identity of the calling node
epoch: of the unit
Errors 22004, 55000, AQ182';

CREATE FUNCTION aq.node_finish(caller uuid, epochs bigint[], ids uuid[])
RETURNS bigint[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_finish';
COMMENT ON FUNCTION aq.node_finish(uuid, bigint[], uuid[]) IS
'Called by links of other nodes: messages of this node that were consumed there. Returns the epochs
  of units that the calling node does not hold.
caller: identity of the calling node
epochs: of the unit of each message
ids: of the messages here, null: only asks for the epoch
Errors 22004, 22023, 55000, AQ182';

CREATE FUNCTION aq.node_return(caller uuid, epoch bigint)
RETURNS boolean LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_return';
COMMENT ON FUNCTION aq.node_return(uuid, bigint) IS
'Called by links of other nodes: a unit of this node returns, after its consumed messages were
  reported. Its other messages are ready again, at their positions. Returns false if the calling
  node does not hold the unit.
caller: identity of the calling node
epoch: of the unit
Errors 22004, 55000, AQ182';

CREATE FUNCTION aq.reclaim_unit(queue_name text, shard integer, consumer text DEFAULT NULL, force boolean DEFAULT false)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_node_unit_break';
COMMENT ON FUNCTION aq.reclaim_unit(text, integer, text, boolean) IS
'Take a unit of a distributed queue back from the node that holds it, when that node is down for
  good, or for too long: its messages are ready here again, at their positions. Messages that the
  node consumed but had not yet reported are delivered twice.
queue_name, shard, consumer: as in aq.node_units
force: true also takes it from a reachable node, which keeps consuming its messages until it learns
  of this
For the queue''s owner.
Errors 22004, 22023, 42501, 42704, 55000';
