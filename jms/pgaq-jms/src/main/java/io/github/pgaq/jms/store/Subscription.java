package io.github.pgaq.jms.store;

/**
 * A subscriber of a topic.
 *
 * @param topic the topic's name with its schema
 * @param subscriber its name
 * @param rule its condition, or null
 */
public record Subscription(String topic, String subscriber, String rule) {}
