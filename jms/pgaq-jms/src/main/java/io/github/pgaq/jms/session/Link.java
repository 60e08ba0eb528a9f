package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.JMSException;
import java.sql.SQLException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store that is opened again, as the options say, after its connection was lost. Belongs to one thread at a time,
 * except for {@link #cancel()}.
 */
final class Link {
    private static final Logger LOG = LoggerFactory.getLogger(Link.class);

    /** So often a pause between two attempts looks whether it is still wanted: close() waits for it. */
    private static final long LOOK_MS = 50;

    /** A call that fails after a longer time has waited, on a connection that worked until shortly before. */
    private static final long LONGEST_LOSS_NANOS = 5_000_000_000L;

    /** What is to be done when a connection was lost, and when it works again. */
    interface Watcher {
        /**
         * The connection is lost; attempts to open another follow, if the options allow any.
         *
         * @param worked when it worked last, as far as is known, by System.nanoTime()
         */
        void lost(SQLException cause, long worked);

        /** A new connection is open. */
        void restored(Store store) throws SQLException;

        /** No connection could be opened; it is not tried again. */
        void failed(JMSException reason);

        /** Whether to stop trying. */
        boolean isClosed();
    }

    /** A call of the store. */
    interface Call<T> {
        T on(Store store) throws SQLException;
    }

    private final StoreFactory factory;
    private final PgaqOptions options;
    private final Watcher watcher;
    private volatile Store store;
    private volatile SQLException loss;
    private volatile JMSException failure;
    /** Attempts to connect again since the loss, and when the next one is due, by System.nanoTime(). */
    private int attempts;

    private Deadline next;
    /** When a call succeeded last, by System.nanoTime(). */
    private volatile long worked = System.nanoTime();

    Link(StoreFactory factory, PgaqOptions options, Watcher watcher) {
        this.factory = factory;
        this.options = options;
        this.watcher = watcher;
    }

    /** Opens the store now; otherwise the first call does. */
    void open() throws JMSException {
        if (store == null) {
            try {
                store = factory.open();
            } catch (SQLException e) {
                throw Errors.of("could not connect", e);
            }
        }
    }

    /**
     * Calls the store. Errors become JMSExceptions; if the connection is lost, the next call opens another.
     *
     * @param what what fails if it fails, such as {@code could not send}
     */
    <T> T call(String what, Call<T> call) throws JMSException {
        try {
            return raw(call);
        } catch (SQLException e) {
            throw Errors.of(what, e);
        }
    }

    /** As {@link #call}, with the server's errors as they are. */
    <T> T raw(Call<T> call) throws SQLException, JMSException {
        reopen(Deadline.in(options.reconnectWait().toMillis()));
        open();
        long began = System.nanoTime();
        try {
            T result = call.on(store);
            worked = System.nanoTime();
            return result;
        } catch (SQLException e) {
            if (Errors.isLost(e)) {
                long before = System.nanoTime() - LONGEST_LOSS_NANOS;
                lost(e, before - began > 0 ? before : worked);
            }
            throw e;
        }
    }

    /** Ends a wait of another thread, see {@link Store#cancel()}. */
    void cancel() {
        Store current = store;
        if (current != null) {
            current.cancel();
        }
    }

    /** Whether a call finds a connection without opening one. */
    boolean isOpen() {
        return store != null && loss == null;
    }

    /** Finds out whether the connection still works. */
    void ping() {
        if (!isOpen()) {
            return;
        }
        if (store.isAlive()) {
            worked = System.nanoTime();
        } else {
            lost(new SQLException("the server does not answer", "08006"), worked);
        }
    }

    /** When it worked last, as far as is known, by System.nanoTime(). */
    long worked() {
        return worked;
    }

    /** Whether it is lost, and not tried again. */
    boolean isFailed() {
        return failure != null;
    }

    /**
     * Opens another connection if the last one is lost.
     *
     * @param until fails then; a later call continues the attempts
     */
    void reopen(Deadline until) throws JMSException {
        if (failure != null) {
            throw again(failure);
        }
        if (loss == null) {
            return;
        }
        int allowed = options.reconnectAttempts();
        boolean tried = false;
        while ((allowed < 0 || attempts < allowed) && pause(until)) {
            if (!next.isOver() || tried && until.isOver()) {
                throw Errors.of("connection to the server is lost; it is tried again", loss);
            }
            if (attempt()) {
                return;
            }
            tried = true;
        }
        String reason = allowed == 0 ? " (reconnectAttempts is 0)" : "";
        failure = Errors.of("connection to the server is lost" + reason, loss);
        watcher.failed(failure);
        throw failure;
    }

    private boolean attempt() {
        attempts++;
        try {
            Store opened = factory.open();
            store = opened;
            watcher.restored(opened);
            LOG.info("connected again after {} attempts", attempts);
            loss = null;
            worked = System.nanoTime();
            return true;
        } catch (SQLException e) {
            loss = e;
            closeQuietly();
            next = Deadline.in(options.reconnectDelay().toMillis());
            return false;
        }
    }

    /** Closes the store, if it is open. */
    void close() throws JMSException {
        Store current = store;
        failure = new jakarta.jms.IllegalStateException("the connection is closed");
        if (current != null) {
            try {
                current.close();
            } catch (SQLException e) {
                if (!Errors.isLost(e)) {
                    throw Errors.of("could not close", e);
                }
            }
        }
    }

    private void lost(SQLException cause, long worked) {
        LOG.warn("connection to the server is lost: {}", cause.getMessage());
        loss = cause;
        attempts = 0;
        next = Deadline.in(0);
        closeQuietly();
        watcher.lost(cause, worked);
    }

    private void closeQuietly() {
        try {
            store.close();
        } catch (SQLException | RuntimeException e) {
            LOG.debug("closing a lost connection failed", e);
        }
    }

    /** Waits until the next attempt is due, or the deadline; false: it is no longer wanted. */
    private boolean pause(Deadline until) throws JMSException {
        try {
            for (long left = left(until); left > 0 && !watcher.isClosed(); left = left(until)) {
                Thread.sleep(Math.min(left / 1_000_000 + 1, LOOK_MS));
            }
            return !watcher.isClosed();
        } catch (InterruptedException e) {
            throw Errors.interrupted("connection to the server is lost; interrupted before it was tried again", e);
        }
    }

    private long left(Deadline until) {
        return Math.min(next.left(), until.left());
    }

    /** The same error, for another call. */
    static JMSException again(JMSException failure) {
        if (failure instanceof jakarta.jms.IllegalStateException) {
            return new jakarta.jms.IllegalStateException(failure.getMessage());
        }
        JMSException copy = new JMSException(failure.getMessage(), failure.getErrorCode());
        copy.setLinkedException(failure.getLinkedException());
        copy.initCause(failure);
        return copy;
    }
}
