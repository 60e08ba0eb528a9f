package io.github.pgaq.jms.store;

import java.util.UUID;

/**
 * A message as the server delivers it.
 *
 * @param msgid the server's id
 * @param receipt the receipt of its lease; 0 without a lease
 * @param attempts how often it was delivered before
 * @param priority the server's priority, 0 to 9, 0 first
 * @param enqueueTime when it was enqueued, milliseconds since 1970
 * @param readyTime when it was or is ready, milliseconds since 1970; 0: at once
 * @param expireTime when it expires, milliseconds since 1970; 0: never
 * @param sender the server's property {@code sender}, or null
 * @param body its payload; null: it is behind the limit of bytes, see {@link Source}
 */
public record Delivery(
        UUID msgid,
        long receipt,
        int attempts,
        int priority,
        long enqueueTime,
        long readyTime,
        long expireTime,
        String sender,
        Body body) {}
