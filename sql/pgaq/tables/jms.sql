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
COMMENT ON COLUMN aq.jms_message.headers IS 'headers that the client sets: message_id, timestamp, correlation_id, type, reply_to, destination, delivery_mode, connection, expiration, delivery_time, content_length';
COMMENT ON COLUMN aq.jms_message.properties IS 'properties by name, as plain JSON';
COMMENT ON COLUMN aq.jms_message.property_types IS 'types of properties that the JSON value does not show, by name: byte, short, long, float, double';
COMMENT ON COLUMN aq.jms_message.text IS 'body of a text message; of a map message a JSON object, of a stream message a JSON array of values such as {"int": 5}';
COMMENT ON COLUMN aq.jms_message.bytes IS 'body of a bytes message; of an object message the serial form of Java';
