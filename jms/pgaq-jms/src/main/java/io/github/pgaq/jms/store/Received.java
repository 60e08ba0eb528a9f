package io.github.pgaq.jms.store;

import java.util.List;

/**
 * The result of {@link Store#receive}.
 *
 * @param source index of the source that the messages are from; -1 if there are none
 * @param messages the messages, in the order of taking
 * @param stale the leases among those to acknowledge that had ended
 */
public record Received(int source, List<Delivery> messages, List<Lease> stale) {}
