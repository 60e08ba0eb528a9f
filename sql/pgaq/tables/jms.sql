-- The payload type of the Jakarta Messaging provider (jms/README.md). All five kinds of messages can be in one queue.

CREATE TYPE aq.jms_message AS (
	type text,
	headers jsonb,
	properties jsonb,
	property_types jsonb,
	text text,
	bytes bytea
);
COMMENT ON TYPE aq.jms_message IS 'A message of Jakarta Messaging: payload type of queues and topics that Java programs use, for aq.create_queue';
COMMENT ON COLUMN aq.jms_message.type IS 'kind of message: text, bytes, map, stream, object, or message for one without a body';
COMMENT ON COLUMN aq.jms_message.headers IS 'headers that the client sets: message_id, timestamp, correlation_id, type, reply_to, destination, delivery_mode, connection, expiration, delivery_time, content, content_length';
COMMENT ON COLUMN aq.jms_message.properties IS 'properties by name, as plain JSON';
COMMENT ON COLUMN aq.jms_message.property_types IS 'types of properties that the JSON value does not tell, by name: byte, short, long, float, double';
COMMENT ON COLUMN aq.jms_message.text IS 'body of a text message; of a map message a JSON object, of a stream message a JSON array of values such as {"int": 5}';
COMMENT ON COLUMN aq.jms_message.bytes IS 'body of a bytes message; of an object message the serial form of Java';

-- Bodies of large messages, in chunks. A message names its content in its headers; see "Large messages" in jms/README.md.
CREATE TABLE aq_internal.jms_content (
	content uuid PRIMARY KEY,
	home_id integer NOT NULL,
	queue_id integer,
	msgid uuid,
	written timestamptz NOT NULL DEFAULT clock_timestamp(),
	missed timestamptz
);
COMMENT ON TABLE aq_internal.jms_content IS 'One row per body of a large message of Jakarta Messaging';
COMMENT ON COLUMN aq_internal.jms_content.content IS 'random; header content of the message';
COMMENT ON COLUMN aq_internal.jms_content.home_id IS 'the queue that the message was sent to';
COMMENT ON COLUMN aq_internal.jms_content.queue_id IS 'where the message was last found: the same queue, or its exception queue; null: not found yet';
COMMENT ON COLUMN aq_internal.jms_content.msgid IS 'its id there';
COMMENT ON COLUMN aq_internal.jms_content.written IS 'when the client began to write it';
COMMENT ON COLUMN aq_internal.jms_content.missed IS 'since when no message with this content is left; null: there is one';

CREATE TABLE aq_internal.jms_chunk (
	content uuid,
	number integer CHECK (number >= 0),
	data bytea NOT NULL,
	PRIMARY KEY (content, number)
);
ALTER TABLE aq_internal.jms_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
COMMENT ON TABLE aq_internal.jms_chunk IS 'Chunks of bodies of large messages';
COMMENT ON COLUMN aq_internal.jms_chunk.content IS 'the body';
COMMENT ON COLUMN aq_internal.jms_chunk.number IS 'place in the body, from 0 on';
COMMENT ON COLUMN aq_internal.jms_chunk.data IS 'the bytes';
