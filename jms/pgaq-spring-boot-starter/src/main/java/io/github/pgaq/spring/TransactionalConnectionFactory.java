package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import java.sql.SQLException;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.TransactionSystemException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * A connection factory whose messages commit with the rows of a DataSource.
 *
 * <p>Inside a transaction of Spring that uses the DataSource (of DataSourceTransactionManager, JdbcTransactionManager
 * or JpaTransactionManager), a connection works on the JDBC connection of that transaction: what a JmsTemplate sends
 * and receives commits and rolls back with it. What is sent after the commit, in {@code afterCommit} or in a
 * {@code TransactionalEventListener}, is committed at the end of that phase.
 *
 * <p>Outside of such transactions it keeps one connection of the given factory, and sessions of it. Listener containers
 * of Spring Boot keep their own: they use {@link #getTargetConnectionFactory()}.
 */
public class TransactionalConnectionFactory extends TemplateConnectionFactory {
    private final PgaqConnectionFactory target;
    private final DataSource dataSource;
    private boolean cached = true;

    /**
     * Makes a factory.
     *
     * @param target makes the connections, outside of transactions too
     * @param dataSource whose transactions are joined
     */
    public TransactionalConnectionFactory(PgaqConnectionFactory target, DataSource dataSource) {
        super(target);
        this.target = target;
        // transaction managers bind connections to the target of such a proxy
        this.dataSource =
                dataSource instanceof TransactionAwareDataSourceProxy proxy && proxy.getTargetDataSource() != null
                        ? proxy.getTargetDataSource()
                        : dataSource;
    }

    /** Sets whether connections outside of transactions are kept; by default they are. */
    public void setCached(boolean cached) {
        this.cached = cached;
    }

    /**
     * Returns the DataSource whose transactions are joined. Spring calls it to see that the session is part of them,
     * before it takes a refused commit of a session for an error.
     */
    public DataSource getDataSource() {
        return dataSource;
    }

    /** Without synchronization its completion has begun, and the connection is about to go back to the pool. */
    private boolean isInTransaction() {
        return TransactionSynchronizationManager.isActualTransactionActive()
                && TransactionSynchronizationManager.isSynchronizationActive()
                && TransactionSynchronizationManager.hasResource(dataSource);
    }

    @Override
    public Connection createConnection() throws JMSException {
        if (!isInTransaction()) {
            return cached ? super.createConnection() : target.createConnection();
        }
        // the transaction's connection: it stays open until the transaction ends
        java.sql.Connection jdbc = DataSourceUtils.getConnection(dataSource);
        TransactionSynchronizationManager.registerSynchronization(new LateWork(jdbc));
        return JoinedConnection.of(target.createConnection(jdbc), dataSource);
    }

    @Override
    public JMSContext createContext() {
        refuseContext();
        return super.createContext();
    }

    @Override
    public JMSContext createContext(int sessionMode) {
        refuseContext();
        return super.createContext(sessionMode);
    }

    private void refuseContext() {
        if (isInTransaction()) {
            throw new JMSRuntimeException(
                    "a JMSContext cannot join a transaction of the DataSource; use a JmsTemplate or a Connection");
        }
    }

    /**
     * Commits what was done on the connection after the end of its transaction. Nothing tells the phase
     * {@code afterCommit} from the transaction itself, and no commit follows it.
     */
    private record LateWork(java.sql.Connection jdbc) implements TransactionSynchronization {
        @Override
        public void afterCompletion(int status) {
            try {
                if (status != STATUS_UNKNOWN && !jdbc.isClosed() && !jdbc.getAutoCommit()) {
                    jdbc.commit();
                }
            } catch (SQLException e) {
                throw new TransactionSystemException("could not commit what was sent after the transaction", e);
            }
        }
    }
}
