-- Unique keys of messages.  Created once; changed only by upgrade scripts.

CREATE TABLE aq_internal.unique_key (
	queue_id integer NOT NULL,
	unique_key text COLLATE "C" NOT NULL,
	generation bigint NOT NULL,
	msgid uuid NOT NULL,
	until timestamptz NOT NULL,
	created timestamptz NOT NULL,
	PRIMARY KEY (queue_id, unique_key, generation)
);
COMMENT ON TABLE aq_internal.unique_key IS 'The unique keys of messages, by aq.enqueue_unique; the row with the highest generation counts';
COMMENT ON COLUMN aq_internal.unique_key.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.unique_key.unique_key IS 'the unique key';
COMMENT ON COLUMN aq_internal.unique_key.generation IS 'how many messages have had the key, up to this one';
COMMENT ON COLUMN aq_internal.unique_key.msgid IS 'the message that has it';
COMMENT ON COLUMN aq_internal.unique_key.until IS 'until when it is in force; infinity: until the message is done';
COMMENT ON COLUMN aq_internal.unique_key.created IS 'when the message was enqueued';
