package io.github.pgaq.jms;

import io.github.pgaq.jms.sql.Ownership;
import io.github.pgaq.jms.sql.SqlStore;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import io.github.pgaq.jms.xa.XaConnection;
import io.github.pgaq.jms.xa.XaContext;
import io.github.pgaq.jms.xa.XaSource;
import jakarta.jms.JMSException;
import jakarta.jms.XAConnectionFactory;
import jakarta.jms.XAJMSContext;
import jakarta.jms.XAQueueConnectionFactory;
import jakarta.jms.XATopicConnectionFactory;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;
import javax.sql.ConnectionEvent;
import javax.sql.ConnectionEventListener;
import javax.sql.XAConnection;
import javax.sql.XADataSource;
import org.postgresql.xa.PGXADataSource;

/**
 * Connection factory of pgaq for distributed transactions, and also for ordinary connections.
 *
 * <p>The server needs {@code max_prepared_transactions} of at least the number of XA sessions. Messages and rows of the
 * same database need no distributed transaction: see {@link PgaqSession#getConnection()}.
 */
public class PgaqXAConnectionFactory extends PgaqConnectionFactory
        implements XAConnectionFactory, XAQueueConnectionFactory, XATopicConnectionFactory {
    private static final long serialVersionUID = 1;

    private transient XADataSource xaDataSource;

    /** For setters: {@link #setUrl} is needed. */
    public PgaqXAConnectionFactory() {}

    /**
     * Connects by a URL.
     *
     * @param url a JDBC URL of pgjdbc, which can have options of this provider
     * @throws IllegalArgumentException if an option is not valid
     */
    public PgaqXAConnectionFactory(String url) {
        super(url);
    }

    /**
     * Connects by a URL with properties.
     *
     * @param url a JDBC URL of pgjdbc, which can have options of this provider
     * @param properties properties of pgjdbc, such as {@code user} and {@code password}, and options
     * @throws IllegalArgumentException if an option is not valid
     */
    public PgaqXAConnectionFactory(String url, Properties properties) {
        super(url, properties);
    }

    /** Connects by an XADataSource of pgjdbc, {@link PGXADataSource}. */
    public PgaqXAConnectionFactory(XADataSource dataSource) {
        this.xaDataSource = dataSource;
    }

    @Override
    public XaConnection createXAConnection() throws JMSException {
        return connectXa(null, null);
    }

    @Override
    public XaConnection createXAConnection(String user, String password) throws JMSException {
        return connectXa(user, password);
    }

    @Override
    public XaConnection createXAQueueConnection() throws JMSException {
        return connectXa(null, null);
    }

    @Override
    public XaConnection createXAQueueConnection(String user, String password) throws JMSException {
        return connectXa(user, password);
    }

    @Override
    public XaConnection createXATopicConnection() throws JMSException {
        return connectXa(null, null);
    }

    @Override
    public XaConnection createXATopicConnection(String user, String password) throws JMSException {
        return connectXa(user, password);
    }

    @Override
    public XAJMSContext createXAContext() {
        return contextXa(null, null);
    }

    @Override
    public XAJMSContext createXAContext(String user, String password) {
        return contextXa(user, password);
    }

    private XAJMSContext contextXa(String user, String password) {
        return unchecked(() -> new XaContext(connectXa(user, password)));
    }

    private XaConnection connectXa(String user, String password) throws JMSException {
        StoreFactory factory = stores(user, password);

        return new XaConnection(factory, getOptions(), source(user, password), this::inBranches, origin());
    }

    /** A store on a connection for XA, whose transactions others end. */
    private Store inBranches(Connection connection) throws SQLException {
        Ownership.of(connection, getOptions().keepAlive());
        return new SqlStore(connection, false);
    }

    private XaSource source(String user, String password) throws JMSException {
        XADataSource source = xaDataSource != null ? xaDataSource : ofUrl();

        return () -> user == null ? source.getXAConnection() : source.getXAConnection(user, password);
    }

    private XADataSource ofUrl() throws JMSException {
        PGXADataSource source = new PGXADataSource();
        Properties all = driverProperties();

        source.setUrl(getUrl());
        try {
            for (String name : all.stringPropertyNames()) {
                if (name.equals("user")) {
                    source.setUser(all.getProperty(name));
                } else if (name.equals("password")) {
                    source.setPassword(all.getProperty(name));
                } else {
                    source.setProperty(name, all.getProperty(name));
                }
            }
        } catch (SQLException e) {
            throw failed(e);
        }
        return source;
    }

    @Override
    StoreFactory stores(String user, String password) throws JMSException {
        if (xaDataSource == null) {
            return super.stores(user, password);
        }
        XaSource source = source(user, password);
        return () -> ordinary(source.open());
    }

    /** A store on an XA connection that is not used for XA; closing it closes the connection. */
    private Store ordinary(XAConnection connection) throws SQLException {
        connection.addConnectionEventListener(new ConnectionEventListener() {
            @Override
            public void connectionClosed(ConnectionEvent event) {
                try {
                    connection.close();
                } catch (SQLException e) {
                    // it is closed then
                }
            }

            @Override
            public void connectionErrorOccurred(ConnectionEvent event) {
                connectionClosed(event);
            }
        });
        return owned(connection.getConnection(), getOptions().keepAlive());
    }
}
