package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;

/**
 * A message that a consumer has taken.
 *
 * @param consumer the consumer
 * @param delivery the message
 * @param lease its lease; null if the open transaction has consumed it
 */
record Taken(Consumer consumer, Delivery delivery, Lease lease) {}
