package io.github.pgaq.jms.store;

/**
 * The payload of a message: the fields of the SQL type {@code aq.jms_message}. To a queue of another payload type, text
 * or bytes alone are sent as the payload, and the properties as those of the server.
 *
 * @param type {@code text}, {@code bytes}, {@code map}, {@code stream}, {@code object} or {@code message} (no body)
 * @param headers the headers of the client, a JSON object; null: it is to be sent to a queue of another payload type
 * @param properties the properties, a JSON object; null: none
 * @param propertyTypes the types of the properties that the JSON value alone does not show; null: none
 * @param text the body of a text, map or stream message, or null
 * @param bytes the body of a bytes or object message, or null
 * @param content the body of a message to send, if it is large, or null
 */
public record Body(
        String type,
        String headers,
        String properties,
        String propertyTypes,
        String text,
        byte[] bytes,
        Content content) {

    /** The payload of a message without a large body, or of one that was received. */
    public Body(String type, String headers, String properties, String propertyTypes, String text, byte[] bytes) {
        this(type, headers, properties, propertyTypes, text, bytes, null);
    }

    /** Whether it is for a queue of another payload type than {@code aq.jms_message}. */
    public boolean isPlain() {
        return headers == null;
    }

    /** Characters and bytes of what is in memory. */
    public long size() {
        return length(headers) + length(properties) + length(text) + (bytes == null ? 0 : bytes.length);
    }

    private static long length(String value) {
        return value == null ? 0 : value.length();
    }
}
