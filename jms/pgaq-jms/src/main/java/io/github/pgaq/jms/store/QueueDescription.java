package io.github.pgaq.jms.store;

/**
 * A queue as the catalog describes it.
 *
 * @param name its name with its schema
 * @param topic whether it has several consumers
 * @param payloadType its payload type, such as {@code aq.jms_message}
 * @param maxRetries failed attempts until a message goes to the exception queue; negative: no limit
 */
public record QueueDescription(String name, boolean topic, String payloadType, int maxRetries) {}
