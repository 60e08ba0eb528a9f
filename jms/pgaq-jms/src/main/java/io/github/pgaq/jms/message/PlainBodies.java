package io.github.pgaq.jms.message;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Content;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MessageFormatException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/**
 * Messages to queues whose payload type is text, jsonb or bytea: the body of a text or bytes message is the payload,
 * and the properties are those of the server. These also have the headers that the server lacks, by their names of JMS,
 * which no property has.
 */
final class PlainBodies {

    /** The headers among the properties, and their names in an {@code aq.jms_message}. */
    static final Map<String, String> HEADERS = Map.of(
            "JMSMessageID",
            "message_id",
            "JMSCorrelationID",
            "correlation_id",
            "JMSType",
            "type",
            "JMSReplyTo",
            "reply_to",
            "JMSDeliveryMode",
            "delivery_mode");

    /** The most bytes that a value of PostgreSQL can have, with its overhead. */
    private static final int LARGEST = 1_000_000_000;

    private PlainBodies() {}

    /** See {@link Messages#toPlainBody}. */
    static Body of(PgaqMessage message, String payloadType, boolean correlated) throws JMSException {
        String kind = payloadType.equals("bytea") ? "bytes" : "text";
        if (!message.kind().equals(kind) && !message.kind().equals("message")) {
            throw new MessageFormatException("a queue of payload type " + payloadType + " takes " + kind
                    + " messages, not " + message.kind() + " messages; one of payload type aq.jms_message takes all");
        }
        String text = kind.equals("text") ? text(message, payloadType) : null;
        return new Body(message.kind(), null, properties(message, correlated), null, text, bytes(message, kind));
    }

    private static String text(PgaqMessage message, String payloadType) throws JMSException {
        String text = message.storedText();
        if (text == null && message.storedBytes() != null) {
            throw new MessageFormatException("a text with U+0000 or half of a surrogate pair cannot be sent to a queue"
                    + " of payload type " + payloadType);
        }
        if (text != null && payloadType.equals("jsonb")) {
            try {
                Json.parse(text);
            } catch (IllegalArgumentException e) {
                MessageFormatException error = new MessageFormatException(
                        "a text message to a queue of payload type jsonb must be JSON: " + e.getMessage());
                error.initCause(e);
                throw error;
            }
        }
        return text;
    }

    /** A large body as well: the payload is one value. */
    private static byte[] bytes(PgaqMessage message, String kind) throws JMSException {
        if (!kind.equals("bytes")) {
            return null;
        }
        Content content = message.content();
        if (content == null) {
            return message.storedBytes();
        }
        if (message.contentLength() > LARGEST) {
            throw new MessageFormatException(
                    "a payload of type bytea cannot have " + message.contentLength() + " bytes, only " + LARGEST);
        }
        try (InputStream in = content.open()) {
            return in.readAllBytes();
        } catch (IOException e) {
            JMSException error = new JMSException("could not read the body of a message: " + e.getMessage());
            error.initCause(e);
            throw error;
        }
    }

    private static String properties(PgaqMessage message, boolean correlated) throws JMSException {
        Messages.Headers all = new Messages.Headers();
        all.add("JMSMessageID", message.getJMSMessageID());
        all.add("JMSCorrelationID", correlated ? null : message.getJMSCorrelationID());
        all.add("JMSType", message.getJMSType());
        all.add("JMSReplyTo", Messages.nameOf(message.getJMSReplyTo()));
        if (message.getJMSDeliveryMode() != DeliveryMode.PERSISTENT) {
            all.add("JMSDeliveryMode", message.getJMSDeliveryMode());
        }
        for (Map.Entry<String, Object> property : message.properties().entrySet()) {
            if (!property.getKey().equals(PropertyNames.DELIVERY_COUNT)) {
                all.addProperty(property.getKey(), property.getValue());
            }
        }
        return all.end();
    }
}
