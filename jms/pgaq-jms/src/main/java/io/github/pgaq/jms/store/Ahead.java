package io.github.pgaq.jms.store;

import java.time.Duration;

/**
 * What a commit takes in its transaction, without waiting.
 *
 * @param source what it takes from
 * @param lease how long the messages are leased
 */
public record Ahead(Source source, Duration lease) {}
