package io.github.pgaq.jms.store;

import java.util.Set;

/**
 * A queue as the catalog describes it.
 *
 * @param name its name with its schema
 * @param topic whether it has several consumers
 * @param payloadType its payload type, such as {@code aq.jms_message}
 * @param maxRetries failed attempts until a message goes to the exception queue; negative: no limit
 * @param mayEnqueue whether the role has the privilege to send to it
 */
public record QueueDescription(String name, boolean topic, String payloadType, int maxRetries, boolean mayEnqueue) {
    private static final Set<String> PLAIN = Set.of("text", "jsonb", "bytea");
    private static final String MESSAGE = "jms_message";

    /** Whether payloads are messages with headers, properties and a body of any kind. */
    public boolean holdsMessages() {
        return payloadType.equals(MESSAGE) || payloadType.endsWith("." + MESSAGE);
    }

    /** Whether payloads are the bodies of text or bytes messages. */
    public boolean holdsBodies() {
        return PLAIN.contains(payloadType);
    }
}
