package io.github.pgaq.jms.store;

/**
 * What a consumer takes messages from.
 *
 * @param queue name of the queue or topic
 * @param consumer the subscriber's name; null for a queue
 * @param condition SQL condition that the messages meet; null: all messages
 * @param max how many messages to take at most
 */
public record Source(String queue, String consumer, String condition, int max) {}
