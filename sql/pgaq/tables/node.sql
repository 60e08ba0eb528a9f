-- Nodes: the databases on other servers that this one belongs together with. Created once; changed only by upgrade scripts.

CREATE SEQUENCE aq_internal.node_number_seq AS integer;
COMMENT ON SEQUENCE aq_internal.node_number_seq IS 'Numbers of rows in aq_internal.node';

CREATE TABLE aq_internal.node (
	node_number integer PRIMARY KEY DEFAULT nextval('aq_internal.node_number_seq'),
	server_name text COLLATE "C" NOT NULL UNIQUE,
	role aq_internal.role NOT NULL,
	node_id uuid UNIQUE,
	timeline bigint,
	started timestamptz,
	caller aq_internal.role,
	added timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE aq_internal.node IS 'Other nodes: heartbeats are sent to each of them. A row changes only when the node has another server process than before';
COMMENT ON COLUMN aq_internal.node.node_number IS 'number of the row, never used again';
COMMENT ON COLUMN aq_internal.node.server_name IS 'foreign server of the link to it';
COMMENT ON COLUMN aq_internal.node.role IS 'role that has added it, whose user mapping the link uses';
COMMENT ON COLUMN aq_internal.node.node_id IS 'its identity; null: it has never answered, also the next two';
COMMENT ON COLUMN aq_internal.node.timeline IS 'timeline of its server''s WAL';
COMMENT ON COLUMN aq_internal.node.started IS 'when its server was started';
COMMENT ON COLUMN aq_internal.node.caller IS 'role as which it calls this node: that of its first call; null: none yet';
COMMENT ON COLUMN aq_internal.node.added IS 'when it was added';

-- Not dumped: a restored database is another node.
CREATE TABLE aq_internal.node_identity (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	node_id uuid NOT NULL DEFAULT gen_random_uuid(),
	system_identifier bigint NOT NULL,
	database_id oid NOT NULL,
	created timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE aq_internal.node_identity IS 'The identity of this database as a node: one row, made by the first call of aq.add_node';
COMMENT ON COLUMN aq_internal.node_identity.one IS 'always true';
COMMENT ON COLUMN aq_internal.node_identity.node_id IS 'the identity';
COMMENT ON COLUMN aq_internal.node_identity.system_identifier IS 'of the server for which it was made';
COMMENT ON COLUMN aq_internal.node_identity.database_id IS 'OID of the database for which it was made; if this database has another one, or its server another system identifier, it is a copy';
COMMENT ON COLUMN aq_internal.node_identity.created IS 'when it was made';

CREATE SEQUENCE aq_internal.node_epoch_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.node_epoch_seq IS 'Epochs of units: each grant has a higher one than all before';

-- Not dumped, either: other nodes hold nothing of a restored database, and it holds nothing of them. description.c reads the first columns of both.
CREATE TABLE aq_internal.node_unit (
	queue_id integer NOT NULL,
	shard smallint NOT NULL CHECK (shard BETWEEN 0 AND 31),
	consumer_number bigint NOT NULL,
	holder uuid NOT NULL,
	epoch bigint NOT NULL DEFAULT nextval('aq_internal.node_epoch_seq') UNIQUE,
	granted timestamptz NOT NULL DEFAULT now(),
	recalled timestamptz,
	role aq_internal.role NOT NULL,
	PRIMARY KEY (queue_id, shard, consumer_number)
);
COMMENT ON TABLE aq_internal.node_unit IS 'Units of this node that other nodes hold: messages of one consumer in one shard of a queue';
COMMENT ON COLUMN aq_internal.node_unit.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.node_unit.shard IS 'shard of the queue';
COMMENT ON COLUMN aq_internal.node_unit.consumer_number IS 'number of the consumer; 0: the queue has one, without a name';
COMMENT ON COLUMN aq_internal.node_unit.holder IS 'identity of the node that holds it; this node: it has come back, and the worker deletes the row';
COMMENT ON COLUMN aq_internal.node_unit.epoch IS 'number of the grant, never used again';
COMMENT ON COLUMN aq_internal.node_unit.granted IS 'when it was granted';
COMMENT ON COLUMN aq_internal.node_unit.recalled IS 'when it was asked back; null: it was not';
COMMENT ON COLUMN aq_internal.node_unit.role IS 'role as which the node has asked for it, with whose privileges its messages are sent';

CREATE TABLE aq_internal.node_held (
	queue_id integer NOT NULL,
	shard smallint NOT NULL CHECK (shard BETWEEN 32 AND 127),
	consumer_number bigint NOT NULL,
	returns boolean NOT NULL DEFAULT false,
	origin uuid NOT NULL,
	epoch bigint NOT NULL,
	origin_shard smallint NOT NULL,
	begun timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (queue_id, shard),
	UNIQUE (origin, epoch),
	UNIQUE (queue_id, origin, origin_shard, consumer_number)
);
COMMENT ON TABLE aq_internal.node_held IS 'Units of other nodes that this one holds';
COMMENT ON COLUMN aq_internal.node_held.queue_id IS 'the queue here';
COMMENT ON COLUMN aq_internal.node_held.shard IS 'shard with its messages here';
COMMENT ON COLUMN aq_internal.node_held.consumer_number IS 'number of the consumer here; 0: the queue has one, without a name';
COMMENT ON COLUMN aq_internal.node_held.returns IS 'it goes back: no session begins to dequeue its messages';
COMMENT ON COLUMN aq_internal.node_held.origin IS 'identity of the node to which it belongs; this node: the messages were adopted, see aq.remove_node';
COMMENT ON COLUMN aq_internal.node_held.epoch IS 'number of the grant there';
COMMENT ON COLUMN aq_internal.node_held.origin_shard IS 'shard of the queue there';
COMMENT ON COLUMN aq_internal.node_held.begun IS 'when its first messages came';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.node', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.node_number_seq', '');
