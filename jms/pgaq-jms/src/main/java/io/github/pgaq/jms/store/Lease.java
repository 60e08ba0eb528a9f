package io.github.pgaq.jms.store;

import java.util.UUID;

/**
 * The lease of a message.
 *
 * @param queue name of the queue or topic
 * @param consumer the subscriber's name; null for a queue
 * @param msgid the server's id of the message
 * @param receipt what the server gave out with the message
 */
public record Lease(String queue, String consumer, UUID msgid, long receipt) {}
