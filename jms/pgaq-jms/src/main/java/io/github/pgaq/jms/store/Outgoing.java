package io.github.pgaq.jms.store;

/**
 * A message to send.
 *
 * @param queue name of the queue or topic
 * @param body its payload
 * @param priority the server's priority, 0 to 9, 0 first
 * @param delay milliseconds until it is ready; 0: none
 * @param expiration milliseconds from then until it expires; 0: never
 * @param correlation the server's property {@code correlation}, or null
 * @param producer messages with the same producer keep their order across sessions; null: the order of this session
 * @param affinity messages with the same affinity that are sent one after another keep their order across sessions,
 *     without waiting for each other; empty: those of the same group do; null: those of this session
 */
public record Outgoing(
        String queue,
        Body body,
        int priority,
        long delay,
        long expiration,
        String correlation,
        String producer,
        String affinity) {}
