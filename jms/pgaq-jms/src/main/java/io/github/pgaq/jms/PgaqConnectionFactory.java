package io.github.pgaq.jms;

import io.github.pgaq.jms.session.ClientConnection;
import io.github.pgaq.jms.session.Context;
import io.github.pgaq.jms.sql.SqlStore;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.QueueConnectionFactory;
import jakarta.jms.TopicConnectionFactory;
import java.io.Serializable;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import javax.naming.NamingException;
import javax.naming.Reference;
import javax.naming.Referenceable;
import javax.sql.DataSource;

/**
 * Connection factory of pgaq, for queues and topics.
 *
 * <p>It connects by a JDBC URL or by a DataSource. Options ({@link PgaqOption}) are set by {@link #setOption}, or, with
 * the prefix {@code pgaq.}, in the URL or the properties:
 * {@code jdbc:postgresql://host/database?user=app&pgaq.prefetch=10}. All other parameters are those of pgjdbc.
 */
public class PgaqConnectionFactory
        implements ConnectionFactory, QueueConnectionFactory, TopicConnectionFactory, Referenceable, Serializable {
    private static final long serialVersionUID = 1;
    private static final String PREFIX = "pgaq.";
    private static final String URL = "url";
    private static final Set<String> CREDENTIALS = Set.of("user", "password");

    private static final String PROCESS = UUID.randomUUID().toString();

    /** Names it for the order of what its connections send. */
    private String origin = "jms:" + UUID.randomUUID();

    private String url;
    private final Properties properties = new Properties();
    private transient DataSource dataSource;
    private PgaqOptions options = PgaqOptions.DEFAULTS;

    /** For setters: {@link #setUrl} is needed. */
    public PgaqConnectionFactory() {}

    /**
     * Connects by a URL.
     *
     * @param url a JDBC URL of pgjdbc, which can have options of this provider
     * @throws IllegalArgumentException if an option is not valid
     */
    public PgaqConnectionFactory(String url) {
        setUrl(url);
    }

    /**
     * Connects by a URL with properties.
     *
     * @param url a JDBC URL of pgjdbc, which can have options of this provider
     * @param properties properties of pgjdbc, such as {@code user} and {@code password}, and options
     * @throws IllegalArgumentException if an option is not valid
     */
    public PgaqConnectionFactory(String url, Properties properties) {
        setUrl(url);
        properties.stringPropertyNames().forEach(name -> set(name, properties.getProperty(name)));
    }

    /** Connects by a DataSource, which may be a pool; it needs one connection for each session and one more. */
    public PgaqConnectionFactory(DataSource dataSource) {
        this.dataSource = dataSource;
    }

    /**
     * Sets the URL.
     *
     * @throws IllegalArgumentException if it is not a JDBC URL, or has an option that is not valid
     */
    public final void setUrl(String url) {
        if (!url.startsWith("jdbc:")) {
            // not the whole URL: it may have a password
            throw new IllegalArgumentException("URL must be a JDBC URL, such as jdbc:postgresql://localhost/shop, not "
                    + url.replaceFirst("(?s)(?<=:|^.{20}).*", "..."));
        }
        int query = url.indexOf('?');
        if (query < 0) {
            this.url = url;
            return;
        }
        StringBuilder rest = new StringBuilder();
        for (String parameter : url.substring(query + 1).split("&")) {
            int equal = parameter.indexOf('=');
            String name = equal < 0 ? parameter : parameter.substring(0, equal);
            if (name.startsWith(PREFIX) || PgaqOption.exists(name) || CREDENTIALS.contains(name)) {
                // credentials in the URL would go before those that createConnection() is given
                set(name, URLDecoder.decode(equal < 0 ? "" : parameter.substring(equal + 1), StandardCharsets.UTF_8));
            } else if (!parameter.isEmpty()) {
                rest.append(rest.isEmpty() ? "?" : "&").append(parameter);
            }
        }
        this.url = url.substring(0, query) + rest;
    }

    /** Returns the URL without the options of this provider, or null if no URL is set. */
    public final String getUrl() {
        return url;
    }

    /** Sets the user that createConnection() without a user connects as. */
    public final void setUser(String user) {
        set("user", user);
    }

    /** Sets the password that createConnection() without a user connects with. */
    public final void setPassword(String password) {
        set("password", password);
    }

    /**
     * Sets an option.
     *
     * @throws IllegalArgumentException if it cannot have this value
     */
    public final PgaqConnectionFactory setOption(PgaqOption option, String value) {
        options = options.with(option, value);
        return this;
    }

    /**
     * Sets options by their names, with or without the prefix {@code pgaq.}.
     *
     * @throws IllegalArgumentException if one does not exist, or cannot have its value
     */
    public final void setOptions(Map<String, String> values) {
        values.forEach((name, value) ->
                options = options.with(name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name, value));
    }

    /** Sets {@link PgaqOption#PREFETCH}. */
    public final void setPrefetch(int messages) {
        setOption(PgaqOption.PREFETCH, Integer.toString(messages));
    }

    /** Sets {@link PgaqOption#PREFETCH_BYTES}. */
    public final void setPrefetchBytes(int bytes) {
        setOption(PgaqOption.PREFETCH_BYTES, Integer.toString(bytes));
    }

    /** Sets {@link PgaqOption#LEASE}. */
    public final void setLease(Duration lease) {
        setOption(PgaqOption.LEASE, Long.toString(lease.toMillis()));
    }

    /** Sets {@link PgaqOption#CLIENT_ID}. */
    public final void setClientId(String clientId) {
        setOption(PgaqOption.CLIENT_ID, clientId == null ? "" : clientId);
    }

    /** Sets {@link PgaqOption#ALLOWED_CLASSES}. */
    public final void setAllowedClasses(String classes) {
        setOption(PgaqOption.ALLOWED_CLASSES, classes == null ? "" : classes);
    }

    /** Returns the options. */
    public final PgaqOptions getOptions() {
        return options;
    }

    private void set(String name, String value) {
        if (name.startsWith(PREFIX)) {
            options = options.with(name.substring(PREFIX.length()), value);
        } else if (PgaqOption.exists(name)) {
            throw new IllegalArgumentException(
                    "option \"" + name + "\" must be written \"" + PREFIX + name + "\" here");
        } else if (value == null) {
            properties.remove(name);
        } else {
            properties.setProperty(name, value);
        }
    }

    @Override
    public PgaqConnection createConnection() throws JMSException {
        return connect(null, null);
    }

    @Override
    public PgaqConnection createConnection(String user, String password) throws JMSException {
        return connect(user, password);
    }

    @Override
    public PgaqConnection createQueueConnection() throws JMSException {
        return connect(null, null);
    }

    @Override
    public PgaqConnection createQueueConnection(String user, String password) throws JMSException {
        return connect(user, password);
    }

    @Override
    public PgaqConnection createTopicConnection() throws JMSException {
        return connect(null, null);
    }

    @Override
    public PgaqConnection createTopicConnection(String user, String password) throws JMSException {
        return connect(user, password);
    }

    /**
     * Creates a connection that works on a JDBC connection of the caller: its one session sends and receives in the
     * transaction of that connection, and the caller commits. With autocommit, each send and receive is a transaction.
     * Closing the JMS connection does not close the JDBC connection.
     *
     * @param connection a connection of pgjdbc, or one of a pool that unwraps to it
     */
    public PgaqConnection createConnection(Connection connection) throws JMSException {
        try {
            // one store for the session and for control: both are used by the caller's thread
            Store store = new SqlStore(connection, false);
            return new ClientConnection(() -> store, options, true, origin);
        } catch (SQLException e) {
            throw failed(e);
        }
    }

    @Override
    public JMSContext createContext() {
        return context(null, null, JMSContext.AUTO_ACKNOWLEDGE);
    }

    @Override
    public JMSContext createContext(String user, String password) {
        return context(user, password, JMSContext.AUTO_ACKNOWLEDGE);
    }

    @Override
    public JMSContext createContext(String user, String password, int sessionMode) {
        return context(user, password, sessionMode);
    }

    @Override
    public JMSContext createContext(int sessionMode) {
        return context(null, null, sessionMode);
    }

    private JMSContext context(String user, String password, int mode) {
        Context.checkMode(mode);
        return unchecked(() -> new Context(connect(user, password), mode));
    }

    /** A call that connects. */
    interface Connecting<T> {
        T connect() throws JMSException;
    }

    /** Calls with the exceptions of contexts. */
    static <T> T unchecked(Connecting<T> call) {
        try {
            return call.connect();
        } catch (JMSSecurityException e) {
            throw new JMSSecurityRuntimeException(e.getMessage(), e.getErrorCode(), e);
        } catch (JMSException e) {
            throw new JMSRuntimeException(e.getMessage(), e.getErrorCode(), e);
        }
    }

    private ClientConnection connect(String user, String password) throws JMSException {
        return new ClientConnection(stores(user, password), options, false, origin);
    }

    /** See {@link ClientConnection#ClientConnection}. */
    final String origin() {
        return origin;
    }

    StoreFactory stores(String user, String password) throws JMSException {
        DataSource source = dataSource;
        if (source != null) {
            return () -> owned(
                    user == null ? source.getConnection() : source.getConnection(user, password), options.keepAlive());
        }
        if (url == null) {
            throw new JMSException("the connection factory has neither a URL nor a DataSource");
        }
        Properties all = driverProperties();
        if (user != null) {
            all.setProperty("user", user);
            all.setProperty("password", password == null ? "" : password);
        }
        String to = url;
        return () -> owned(DriverManager.getConnection(to, all), options.keepAlive());
    }

    /** The properties of pgjdbc. */
    final Properties driverProperties() {
        Properties all = new Properties();
        properties.stringPropertyNames().forEach(name -> all.setProperty(name, properties.getProperty(name)));
        all.putIfAbsent("ApplicationName", "pgaq-jms");
        if (!options.keepAlive().isZero()) {
            all.putIfAbsent("tcpKeepAlive", "true");
        }
        return all;
    }

    /** A store that closes its connection, also if it cannot be made. */
    static Store owned(Connection connection, Duration keepAlive) throws SQLException {
        try {
            return new SqlStore(connection, keepAlive);
        } catch (SQLException | RuntimeException e) {
            connection.close();
            throw e;
        }
    }

    static JMSException failed(SQLException e) {
        JMSException exception = new JMSException("could not connect: " + e.getMessage(), e.getSQLState());
        exception.setLinkedException(e);
        exception.initCause(e);
        return exception;
    }

    /** Returns a reference for JNDI; the password is part of it if it was set. */
    @Override
    public Reference getReference() throws NamingException {
        if (url == null) {
            throw new NamingException("a connection factory without a URL has no reference");
        }
        Map<String, String> values = new LinkedHashMap<>();
        values.put(URL, url);
        properties.stringPropertyNames().forEach(name -> values.put(name, properties.getProperty(name)));
        options.changed().forEach((option, value) -> values.put(PREFIX + option.key(), value));
        return PgaqObjectFactory.reference(getClass(), values);
    }

    /** Takes the values of a reference. Those that a process makes of one reference are one factory for the order. */
    final void set(Map<String, String> values) {
        String name = PROCESS + new TreeMap<>(values);
        origin = "jms:" + UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
        values.forEach((key, value) -> {
            if (key.equals(URL)) {
                setUrl(value);
            } else {
                set(key, value);
            }
        });
    }
}
