package io.github.pgaq.jms.session;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * Lets one thread at a time use a session's store, and holds what threads wait for: whether the session is started or
 * closed, and whether a listener runs.
 *
 * <p>A thread that waits at the server for messages gives way: {@link #enter} cancels its wait, and it continues when
 * the others have left. The gate is not held while a listener runs.
 */
final class Gate {
    private static final long CANCEL_AGAIN_NANOS = 20_000_000;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final Runnable cancel;

    // all guarded by lock
    private Thread owner;
    private int holds;
    private boolean waiting;
    private int wanted;
    private boolean started;
    private boolean closed;
    private Thread listening;
    private Object listener;

    /**
     * Makes a gate.
     *
     * @param cancel ends the wait at the server, if there is one
     */
    Gate(Runnable cancel) {
        this.cancel = cancel;
    }

    /** Enters; ends the wait of another thread at the server. A thread can enter again what it has entered. */
    void enter() {
        lock.lock();
        try {
            if (owner != Thread.currentThread()) {
                wanted++;
                while (owner != null) {
                    endWait();
                    if (owner != null) {
                        changed.awaitUninterruptibly();
                    }
                }
                wanted--;
                owner = Thread.currentThread();
            }
            holds++;
        } finally {
            lock.unlock();
        }
    }

    /** Enters if no other thread has entered or wants to. */
    boolean tryEnter() {
        lock.lock();
        try {
            if (owner != null || wanted > 0) {
                return false;
            }
            owner = Thread.currentThread();
            holds = 1;
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Leaves what was entered. */
    void leave() {
        lock.lock();
        try {
            if (--holds == 0) {
                owner = null;
                changed.signalAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Enters when the session is started and no other thread wants to enter.
     *
     * @param given whether to go on waiting for it; asked again after each {@link #wake}
     * @return false, without having entered, if the session is closed, the deadline is over, or given is false
     * @throws InterruptedException if the thread is interrupted before the deadline
     */
    boolean enterStarted(BooleanSupplier given, Deadline deadline) throws InterruptedException {
        lock.lock();
        try {
            while (!closed && given.getAsBoolean()) {
                if (started && owner == null && wanted == 0) {
                    owner = Thread.currentThread();
                    holds = 1;
                    return true;
                }
                if (!deadline.isOver()) {
                    changed.awaitNanos(deadline.left());
                } else if (started) {
                    changed.awaitUninterruptibly();
                } else {
                    return false;
                }
            }
            return false;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until the condition holds or the session is closed, not entered.
     *
     * @return false if it is closed
     */
    boolean awaitState(BooleanSupplier condition) {
        lock.lock();
        try {
            while (!closed && !condition.getAsBoolean()) {
                changed.awaitUninterruptibly();
            }
            return !closed;
        } finally {
            lock.unlock();
        }
    }

    /** Waits until the deadline, or until closed; not entered. */
    void pause(Deadline deadline) {
        long until = System.nanoTime() + deadline.left();
        lock.lock();
        try {
            while (!closed && awaitUninterruptibly(changed, until)) {
                // changes other than closing do not end the pause
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Marks the beginning of a wait at the server, that others may cancel; the caller has entered.
     *
     * @return false if it must not begin: the session is stopped or closed, others want to enter, or given is false
     */
    boolean beginWait(BooleanSupplier given) {
        lock.lock();
        try {
            waiting = started && !closed && wanted == 0 && given.getAsBoolean();
            return waiting;
        } finally {
            lock.unlock();
        }
    }

    /** Marks its end. */
    void endWaiting() {
        lock.lock();
        try {
            waiting = false;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Marks that a message is being delivered to a listener of a consumer, if the session is started; until
     * {@link #endListener}.
     */
    boolean beginListener(Object consumer) {
        lock.lock();
        try {
            if (!started || closed) {
                return false;
            }
            listening = Thread.currentThread();
            listener = consumer;
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Marks that the listener has returned. */
    void endListener() {
        lock.lock();
        try {
            listening = null;
            listener = null;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Whether the calling thread runs a listener of this session. */
    boolean isListening() {
        lock.lock();
        try {
            return listening == Thread.currentThread();
        } finally {
            lock.unlock();
        }
    }

    /** Waits until no listener of the consumer runs, or of any if it is null, except on the calling thread. */
    void awaitListener(Object consumer) {
        lock.lock();
        try {
            while (listening != null
                    && listening != Thread.currentThread()
                    && (consumer == null || consumer == listener)) {
                changed.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Starts or stops deliveries; a wait at the server ends. */
    void setStarted(boolean value) {
        lock.lock();
        try {
            started = value;
            changed.signalAll();
            if (!value) {
                endWait();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Whether deliveries are started. */
    boolean isStarted() {
        lock.lock();
        try {
            return started && !closed;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Closes; a wait at the server ends.
     *
     * @return false if it was closed already
     */
    boolean close() {
        lock.lock();
        try {
            if (closed) {
                return false;
            }
            closed = true;
            changed.signalAll();
            endWait();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Whether it is closed. */
    boolean isClosed() {
        lock.lock();
        try {
            return closed;
        } finally {
            lock.unlock();
        }
    }

    /** Ends a wait at the server and lets all threads look again at what they wait for. */
    void wake() {
        lock.lock();
        try {
            changed.signalAll();
            endWait();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Cancels the wait at the server until it has ended, with the lock held, which is given up meanwhile: a cancel
     * that comes before the statement has begun does nothing, so it is repeated. An interrupt does not end it.
     */
    private void endWait() {
        Thread waiter = waiting ? owner : null;
        boolean interrupted = false;
        while (waiting && owner == waiter && waiter != Thread.currentThread()) {
            lock.unlock();
            try {
                cancel.run();
            } finally {
                lock.lock();
            }
            if (waiting && owner == waiter && !awaitNanos(CANCEL_AGAIN_NANOS)) {
                interrupted |= Thread.interrupted();
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Waits for a change; false if the thread is interrupted, which stays set for the caller's code. */
    private boolean awaitNanos(long nanos) {
        try {
            changed.awaitNanos(nanos);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /**
     * Waits for a change until a time, by System.nanoTime(). An interrupt does not end it, and stays set.
     *
     * @return false if the time is over
     */
    static boolean awaitUninterruptibly(Condition condition, long until) {
        boolean interrupted = Thread.interrupted();
        try {
            long left = until - System.nanoTime();
            return left > 0 && condition.awaitNanos(left) > 0;
        } catch (InterruptedException e) {
            interrupted = true;
            return true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
