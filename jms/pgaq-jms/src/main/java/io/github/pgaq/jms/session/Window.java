package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.store.Delivery;
import java.util.List;

/**
 * How many messages a consumer leases with its next take: one at first, twice as many each time its buffer runs dry
 * within a second, half as many when it lasted more than five. So a slow consumer leaves the messages to others. Not
 * more than fit into the limit of bytes, if they are as large as those of the last take: what exceeds it is leased in
 * vain.
 */
final class Window {
    private static final long SOON_NANOS = 1_000_000_000;
    private static final long LONG_NANOS = 5_000_000_000L;

    private final int most;
    private final long bytes;
    private int size = 1;
    /** So many messages as the last ones fit into the limit of bytes. */
    private long fitting = Long.MAX_VALUE;

    private long last;
    private long used;
    private boolean full;

    Window(PgaqOptions options) {
        this.most = Math.max(1, options.prefetch());
        this.bytes = options.prefetchBytes();
    }

    /** The number for a take now, by System.nanoTime(). */
    int next(long now) {
        long lasted = now - last;
        if (full && lasted < SOON_NANOS) {
            size = Math.min(most, 2 * size);
        } else if (full && lasted > LONG_NANOS) {
            size = Math.max(1, size / 2);
        }
        // a take that brings nothing, or is cancelled, does not change it again
        full = false;
        return fitting(size);
    }

    /** Whether the next take is likely to find messages that are used soon: the last one was full, and is used up. */
    boolean isBusy(long now) {
        return full && size > 1 && now - last < SOON_NANOS;
    }

    /** That many, or fewer: as many as fit into the limit of bytes. */
    int fitting(int count) {
        return (int) Math.min(count, fitting);
    }

    /** Notes what a take at this time brought. */
    void taken(List<Delivery> messages, long now) {
        int count = 0;
        long taken = 0;
        for (Delivery message : messages) {
            if (message.body() != null) {
                count++;
                taken += message.body().size();
            }
        }
        last = now;
        used = now;
        full = count >= fitting(size);
        fitting = taken == 0 ? Long.MAX_VALUE : Math.max(1, count * bytes / taken);
    }

    /** Notes that a message of the buffer is used. */
    void use(long now) {
        used = now;
    }

    /** When the last take or use was, by System.nanoTime(). */
    long used() {
        return used;
    }

    /** Messages went back unseen: starts over. */
    void reset() {
        size = 1;
        full = false;
    }
}
