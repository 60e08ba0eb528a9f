package io.github.pgaq.jms.store;

import java.util.concurrent.locks.LockSupport;

/** Pauses that an interrupt does not end: it stays set for the caller's own waits. */
public final class Pause {
    private Pause() {}

    /** Waits for some milliseconds. */
    public static void milliseconds(long milliseconds) {
        boolean interrupted = false;
        long until = System.nanoTime() + milliseconds * 1_000_000;
        for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
