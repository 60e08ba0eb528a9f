package io.github.pgaq.jms.sql;

import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Cancels the wait of a receive, and no other statement.
 *
 * <p>A cancel request reaches the server on a connection of its own, and the server ignores it while no statement
 * runs. It can therefore be early: then it is repeated. It can be late: so {@link #disarm()} waits for a request that
 * is being sent. The server has acted on a request when the driver has read the end of that connection.
 */
final class Cancellation {

    /** Sends a cancel request and returns when the server has acted on it. */
    interface Request {
        void send() throws SQLException;
    }

    private static final long FIRST_PAUSE_MS = 20;
    private static final long LONGEST_PAUSE_MS = 1000;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition disarmed = lock.newCondition();
    private boolean receiving;
    private boolean requested;
    private boolean armed;
    private long number;

    /** A receive begins. */
    void begin() {
        lock.lock();
        try {
            number++;
            receiving = true;
            requested = false;
        } finally {
            lock.unlock();
        }
    }

    /** It ends; waits for nothing, because it has disarmed. */
    void end() {
        lock.lock();
        try {
            receiving = false;
        } finally {
            lock.unlock();
        }
    }

    /** The next statement may be cancelled; false if the receive was cancelled already and must not wait. */
    boolean arm() {
        lock.lock();
        try {
            armed = !requested;
            return armed;
        } finally {
            lock.unlock();
        }
    }

    /**
     * That statement has ended, successfully or not; waits for a request that is being sent.
     *
     * @return whether a cancel was requested
     */
    boolean disarm() {
        lock.lock();
        try {
            armed = false;
            disarmed.signalAll();
            return requested;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the receive, if one runs; returns when its wait has ended. */
    void cancel(Request request) throws SQLException {
        long pause = FIRST_PAUSE_MS;
        lock.lock();
        try {
            requested = receiving;
            // the next receive may begin before this thread has the lock again
            long wanted = number;
            while (armed && number == wanted) {
                request.send();
                disarmed.await(pause, TimeUnit.MILLISECONDS);
                pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            lock.unlock();
        }
    }
}
