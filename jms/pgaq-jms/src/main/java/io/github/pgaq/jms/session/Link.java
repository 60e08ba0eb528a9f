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

    /** What is to be done when a connection was lost, and when it works again. */
    interface Watcher {
        /** The connection is lost; attempts to open another follow, if the options allow any. */
        void lost(SQLException cause);

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
    private SQLException loss;
    private JMSException failure;

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
        reopen();
        open();
        try {
            return call.on(store);
        } catch (SQLException e) {
            if (Errors.isLost(e)) {
                lost(e);
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
        if (isOpen() && !store.isAlive()) {
            lost(new SQLException("connection to the server is lost", "08006"));
        }
    }

    /** Opens another connection if the last one is lost. */
    void reopen() throws JMSException {
        if (failure != null) {
            throw again(failure);
        }
        if (loss == null) {
            return;
        }
        SQLException last = loss;
        int allowed = options.reconnectAttempts();
        for (int attempt = 0; allowed < 0 || attempt < allowed; attempt++) {
            if (attempt > 0 && !pause() || watcher.isClosed()) {
                break;
            }
            try {
                Store opened = factory.open();
                store = opened;
                loss = null;
                watcher.restored(opened);
                LOG.info("connected again after {} attempts", attempt + 1);
                return;
            } catch (SQLException e) {
                loss = e;
                last = e;
                closeQuietly();
            }
        }
        String reason = allowed == 0 ? " (reconnectAttempts is 0)" : "";
        failure = Errors.of("connection to the server is lost" + reason, last);
        watcher.failed(failure);
        throw failure;
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

    private void lost(SQLException cause) {
        LOG.warn("connection to the server is lost: {}", cause.getMessage());
        loss = cause;
        closeQuietly();
        watcher.lost(cause);
    }

    private void closeQuietly() {
        try {
            store.close();
        } catch (SQLException | RuntimeException e) {
            LOG.debug("closing a lost connection failed", e);
        }
    }

    /** Waits before the next attempt; false: not to the end. */
    private boolean pause() {
        long end = System.nanoTime() + options.reconnectDelay().toNanos();
        try {
            for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
                if (watcher.isClosed()) {
                    return false;
                }
                Thread.sleep(Math.min(left / 1_000_000 + 1, LOOK_MS));
            }
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private static JMSException again(JMSException failure) {
        if (failure instanceof jakarta.jms.IllegalStateException) {
            return new jakarta.jms.IllegalStateException(failure.getMessage());
        }
        JMSException copy = new JMSException(failure.getMessage(), failure.getErrorCode());
        copy.setLinkedException(failure.getLinkedException());
        copy.initCause(failure);
        return copy;
    }
}
