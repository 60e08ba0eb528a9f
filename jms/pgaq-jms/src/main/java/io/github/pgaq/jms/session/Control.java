package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.JMSException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/** The control connection: what belongs to the JMS connection as a whole. Threads can share it. */
final class Control {
    /** SQLSTATE: connection failure. */
    private static final String LOST = "08006";

    private final ReentrantLock lock = new ReentrantLock();
    private final Link link;
    private final PgaqOptions options;
    private final String id;
    /** The control thread lets so much time pass only if it, or the process, was stopped; tests change it. */
    volatile long staleNanos = 2 * LeaseKeeper.PING_NANOS;

    /**
     * Makes a control connection.
     *
     * @param id names the JMS connection in logs and threads
     */
    Control(StoreFactory factory, PgaqOptions options, Link.Watcher watcher, String id) {
        this.link = new Link(factory, options, watcher);
        this.options = options;
        this.id = id;
    }

    /** Names the JMS connection. */
    String id() {
        return id;
    }

    /** Connects. */
    void open() throws JMSException {
        lock.lock();
        try {
            link.open();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Fails if the connection is lost, and another thread opens it again for longer than the options say, or this one
     * is interrupted. An interrupt does not end a wait for other calls: they are short.
     */
    private void enter() throws JMSException {
        boolean interrupted = false;
        try {
            while (!lock.tryLock() && !tryLock()) {
                interrupted |= Thread.interrupted();
                if (!link.isOpen()) {
                    throw new JMSException("control connection to the server is lost; it is tried again", LOST);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** False if the time is over, or the thread is interrupted. */
    private boolean tryLock() {
        try {
            return lock.tryLock(options.reconnectWait().toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Calls the store; see {@link Link#call}. */
    <T> T call(String what, Link.Call<T> call) throws JMSException {
        enter();
        try {
            return link.call(what, call);
        } finally {
            lock.unlock();
        }
    }

    /** Runs several calls with nothing of other threads between them. The lock is also held while it reconnects. */
    <T> T exclusively(Errors.Checked<T> action) throws JMSException {
        enter();
        try {
            return action.run();
        } finally {
            lock.unlock();
        }
    }

    /** An action without a result. */
    interface Action {
        void on(Store store) throws java.sql.SQLException;
    }

    /** Calls the store, without a result. */
    void run(String what, Action action) throws JMSException {
        call(what, store -> {
            action.on(store);
            return null;
        });
    }

    /**
     * Finds out whether the connection works, and opens another if it does not and the options say so. Does nothing
     * after the last attempt.
     */
    void ping() throws JMSException {
        lock.lock();
        try {
            if (link.isFailed()) {
                return;
            }
            link.ping();
            link.reopen(Deadline.NEVER);
        } finally {
            lock.unlock();
        }
    }

    /** As {@link #ping}, for a call, which waits as long as the options say, and fails after the last attempt. */
    void check() throws JMSException {
        enter();
        try {
            link.ping();
            link.reopen(Deadline.in(options.reconnectWait().toMillis()));
        } finally {
            lock.unlock();
        }
    }

    /** Whether it may have been lost long ago, which the control thread would have noticed. */
    boolean isStale() {
        return System.nanoTime() - link.worked() > staleNanos;
    }

    /** Closes it; the server removes what belongs to it. */
    void close() throws JMSException {
        lock.lock();
        try {
            link.close();
        } finally {
            lock.unlock();
        }
    }
}
