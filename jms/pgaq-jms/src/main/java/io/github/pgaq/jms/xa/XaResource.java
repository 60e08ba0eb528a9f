package io.github.pgaq.jms.xa;

import io.github.pgaq.jms.store.Store;
import jakarta.jms.JMSException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.locks.ReentrantLock;
import javax.sql.XAConnection;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The branches of one session's distributed transactions: that of the driver, on the session's JDBC connection. A
 * session that is closed while a branch is not finished leaves its connection open until the branch is finished,
 * because only there can it be prepared.
 */
final class XaResource implements XAResource {
    private static final Logger LOG = LoggerFactory.getLogger(XaResource.class);

    /** SQLSTATE of PREPARE TRANSACTION where prepared transactions are disabled. */
    private static final String NOT_IN_PREREQUISITE_STATE = "55000";

    /** What must have happened before a branch ends. */
    interface Pending {
        /** Waits for it. */
        void await() throws JMSException;
    }

    /** Not a monitor, in which a virtual thread of Java 21 would keep its carrier while it waits for the server. */
    private final ReentrantLock lock = new ReentrantLock();

    private XAConnection connection;
    private Connection jdbc;
    private Pending pending = () -> {};
    /** The branch that is not finished: begun on this connection and neither committed nor rolled back. */
    private Xid branch;

    private boolean closed;

    void setPending(Pending pending) {
        this.pending = pending;
    }

    /**
     * Works on another connection from now on, instead of one that is lost.
     *
     * @return the store on it
     * @throws SQLException if a branch was lost with the last connection, until it is rolled back
     */
    Store use(XaSource source, XaStores stores) throws SQLException {
        lock.lock();
        try {
            if (branch != null) {
                throw new SQLException(
                        "the connection is lost, and with it a transaction that is not rolled back yet", "40000");
            }
            closeConnection();
            connection = source.open();
            try {
                jdbc = connection.getConnection();
                return stores.on(jdbc);
            } catch (SQLException | RuntimeException e) {
                closeConnection();
                throw e;
            }
        } finally {
            lock.unlock();
        }
    }

    /** The session is closed. */
    void close() {
        lock.lock();
        try {
            closed = true;
            if (branch == null) {
                closeConnection();
            }
        } finally {
            lock.unlock();
        }
    }

    private void closeConnection() {
        if (connection != null) {
            try {
                connection.close();
            } catch (SQLException e) {
                LOG.debug("closing an XA connection failed", e);
            }
            connection = null;
        }
    }

    private XAResource driver() throws XAException {
        if (connection == null) {
            throw failure(XAException.XAER_RMFAIL, "the session is closed", null);
        }
        try {
            return connection.getXAResource();
        } catch (SQLException e) {
            throw failure(XAException.XAER_RMFAIL, e.getMessage(), e);
        }
    }

    @Override
    public void start(Xid xid, int flags) throws XAException {
        lock.lock();
        try {
            if (closed) {
                throw failure(XAException.XAER_RMFAIL, "the session is closed", null);
            }
            driver().start(xid, flags);
            branch = xid;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void end(Xid xid, int flags) throws XAException {
        try {
            // not locked: a completion listener may call the session
            pending.await();
        } catch (JMSException e) {
            throw failure(XAException.XAER_RMERR, e.getMessage(), e);
        }
        lock.lock();
        try {
            driver().end(xid, flags);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public int prepare(Xid xid) throws XAException {
        lock.lock();
        try {
            return driver().prepare(xid);
        } catch (XAException e) {
            if (!(e.getCause() instanceof SQLException cause) || isLost(cause)) {
                throw e;
            }
            // the server has rolled it back
            if (!closed) {
                forgetRefused(xid);
            }
            finished(xid);
            throw failure(XAException.XA_RBROLLBACK, reason(cause), cause);
        } finally {
            lock.unlock();
        }
    }

    static String reason(SQLException cause) {
        if (NOT_IN_PREREQUISITE_STATE.equals(cause.getSQLState())
                && cause.getMessage().contains("prepared transactions are disabled")) {
            return "the transaction was rolled back: distributed transactions need prepared transactions, and the"
                    + " server's max_prepared_transactions is 0; set it to the number of connections, and restart the"
                    + " server";
        }
        return "the transaction was rolled back: " + cause.getMessage();
    }

    /**
     * After a failed PREPARE TRANSACTION the driver still regards the branch as ended but unfinished, and refuses
     * another one. Its rollback sends a ROLLBACK. Without an open transaction the server would warn about that.
     */
    private void forgetRefused(Xid xid) {
        try (Statement statement = jdbc.createStatement()) {
            statement.execute("BEGIN");
            driver().rollback(xid);
        } catch (SQLException | XAException e) {
            LOG.warn("an XA connection can no longer be used: {}", e.getMessage());
            closeConnection();
        }
    }

    @Override
    public void commit(Xid xid, boolean onePhase) throws XAException {
        lock.lock();
        try {
            boolean alive = true;
            try {
                driver().commit(xid, onePhase);
            } catch (XAException e) {
                alive = onePhase || e.errorCode == XAException.XAER_NOTA;
                throw e;
            } finally {
                // a prepared branch is still to be committed if that has failed
                if (alive) {
                    finished(xid);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void rollback(Xid xid) throws XAException {
        lock.lock();
        try {
            try {
                driver().rollback(xid);
            } finally {
                finished(xid);
            }
        } finally {
            lock.unlock();
        }
    }

    private void finished(Xid xid) {
        if (xid.equals(branch)) {
            branch = null;
            if (closed) {
                closeConnection();
            }
        }
    }

    @Override
    public Xid[] recover(int flag) throws XAException {
        lock.lock();
        try {
            return driver().recover(flag);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void forget(Xid xid) throws XAException {
        lock.lock();
        try {
            driver().forget(xid);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isSameRM(XAResource other) {
        return other == this;
    }

    @Override
    public int getTransactionTimeout() {
        return 0;
    }

    @Override
    public boolean setTransactionTimeout(int seconds) {
        return false;
    }

    private static boolean isLost(SQLException e) {
        return e.getSQLState() != null
                && (e.getSQLState().startsWith("08") || e.getSQLState().startsWith("57P"));
    }

    private static XAException failure(int code, String message, Exception cause) {
        XAException exception = new XAException(message);
        exception.errorCode = code;
        exception.initCause(cause);
        return exception;
    }
}
