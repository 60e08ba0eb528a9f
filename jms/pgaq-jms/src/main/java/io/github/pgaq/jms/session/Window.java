package io.github.pgaq.jms.session;

/**
 * How many messages a consumer leases with its next take: one at first, twice as many each time its buffer runs dry
 * within a second, half as many when it lasted more than five. So a slow consumer leaves the messages to others.
 */
final class Window {
    private static final long SOON_NANOS = 1_000_000_000;
    private static final long LONG_NANOS = 5_000_000_000L;

    private final int most;
    private int size = 1;
    private long last;
    private boolean full;

    Window(int prefetch) {
        this.most = Math.max(1, prefetch);
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
        return size;
    }

    /** Notes that a take at this time brought that many messages. */
    void taken(int count, long now) {
        last = now;
        full = count >= size;
    }

    /** When the last take was, by System.nanoTime(). */
    long last() {
        return last;
    }

    /** Messages went back unseen: begins anew. */
    void reset() {
        size = 1;
        full = false;
    }
}
