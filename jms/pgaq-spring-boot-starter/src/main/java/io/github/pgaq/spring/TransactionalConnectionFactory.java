package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import javax.sql.DataSource;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * A connection factory whose messages commit with the rows of a DataSource.
 *
 * <p>Inside a transaction of Spring that uses the DataSource (of DataSourceTransactionManager, JdbcTransactionManager
 * or JpaTransactionManager), a connection works on the JDBC connection of that transaction: what a JmsTemplate sends
 * and receives commits and rolls back with it. Otherwise, as in the listeners of containers without such a transaction,
 * it delegates to the given factory.
 */
public class TransactionalConnectionFactory implements ConnectionFactory, DisposableBean {
    private final ConnectionFactory elsewhere;
    private final PgaqConnectionFactory inside;
    private final DataSource dataSource;

    /**
     * Makes a factory.
     *
     * @param elsewhere makes the connections outside of transactions, for example a CachingConnectionFactory
     * @param inside makes the connections on a JDBC connection
     * @param dataSource whose transactions are joined
     */
    public TransactionalConnectionFactory(
            ConnectionFactory elsewhere, PgaqConnectionFactory inside, DataSource dataSource) {
        this.elsewhere = elsewhere;
        this.inside = inside;
        this.dataSource = dataSource;
    }

    private boolean isInTransaction() {
        return TransactionSynchronizationManager.isActualTransactionActive()
                && TransactionSynchronizationManager.hasResource(dataSource);
    }

    @Override
    public Connection createConnection() throws JMSException {
        // the transaction's connection: it stays open until the transaction ends
        return isInTransaction()
                ? inside.createConnection(DataSourceUtils.getConnection(dataSource))
                : elsewhere.createConnection();
    }

    @Override
    public Connection createConnection(String user, String password) throws JMSException {
        return elsewhere.createConnection(user, password);
    }

    @Override
    public JMSContext createContext() {
        refuseContext();
        return elsewhere.createContext();
    }

    @Override
    public JMSContext createContext(int sessionMode) {
        refuseContext();
        return elsewhere.createContext(sessionMode);
    }

    @Override
    public JMSContext createContext(String user, String password) {
        return elsewhere.createContext(user, password);
    }

    @Override
    public JMSContext createContext(String user, String password, int sessionMode) {
        return elsewhere.createContext(user, password, sessionMode);
    }

    private void refuseContext() {
        if (isInTransaction()) {
            throw new JMSRuntimeException(
                    "a JMSContext cannot join a transaction of the DataSource; use a JmsTemplate or a Connection");
        }
    }

    /** Closes the other factory, if it can be closed. */
    @Override
    public void destroy() throws Exception {
        if (elsewhere instanceof DisposableBean closed) {
            closed.destroy();
        }
    }
}
