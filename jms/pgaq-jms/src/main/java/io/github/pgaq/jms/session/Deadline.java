package io.github.pgaq.jms.session;

import java.time.Duration;

/** A point in time to wait for. */
final class Deadline {
    /** Waits without limit. */
    static final Deadline NEVER = new Deadline(0, true);

    private final long nanos;
    private final boolean never;

    private Deadline(long nanos, boolean never) {
        this.nanos = nanos;
        this.never = never;
    }

    /** A deadline after some milliseconds. */
    static Deadline in(long milliseconds) {
        return new Deadline(System.nanoTime() + Duration.ofMillis(milliseconds).toNanos(), false);
    }

    /** Nanoseconds until then, 0 if it is over. */
    long left() {
        return never ? Long.MAX_VALUE : Math.max(0, nanos - System.nanoTime());
    }

    /** Whether it is over. */
    boolean isOver() {
        return left() == 0;
    }

    /** Time until then; null without limit. */
    Duration timeout() {
        return never ? null : Duration.ofNanos(left());
    }
}
