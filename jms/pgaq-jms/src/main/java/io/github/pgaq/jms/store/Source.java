package io.github.pgaq.jms.store;

/**
 * What a consumer takes messages from.
 *
 * @param queue name of the queue or topic
 * @param consumer the subscriber's name; null for a queue
 * @param condition SQL condition that the messages meet; null: all messages
 * @param max how many messages to take at most
 * @param maxBytes how large their payloads may be together: a message behind this limit comes without its body. The
 *     first message always has it. The same for all sources of a call; 0: no limit
 */
public record Source(String queue, String consumer, String condition, int max, int maxBytes) {

    /** A source without a limit of bytes. */
    public Source(String queue, String consumer, String condition, int max) {
        this(queue, consumer, condition, max, 0);
    }
}
