package io.github.pgaq.jms.conformance.pgaq;

import io.github.pgaq.jms.PgaqAdmin;
import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.PgaqSession;
import io.github.pgaq.jms.PgaqXAConnectionFactory;
import io.github.pgaq.jms.conformance.Provider;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.QueueConnectionFactory;
import jakarta.jms.Session;
import jakarta.jms.TopicConnectionFactory;
import jakarta.jms.XAConnectionFactory;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;

/** The provider of this project, on the server whose JDBC URL is the system property {@code pgaq.url}. */
public final class PgaqProvider implements Provider {
    /** Each connection factory names its sessions, so that the sessions of one JMS connection can be found. */
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final String url = System.getProperty("pgaq.url", "");
    private final Deque<java.sql.Connection> idle = new ConcurrentLinkedDeque<>();

    private interface Action {
        void run(java.sql.Connection connection) throws Exception;
    }

    public PgaqProvider() throws Exception {
        if (url.isEmpty()) {
            throw new IllegalStateException(
                    "these tests need a server: run ./test jms, or mvn -Dpgaq.url=JDBC-URL test");
        }
        administer(connection -> {
            try (Statement statement = connection.createStatement()) {
                statement.execute("CREATE EXTENSION IF NOT EXISTS pgaq");
            }
        });
    }

    private void administer(Action action) throws Exception {
        java.sql.Connection connection = idle.poll();
        if (connection == null) {
            connection = DriverManager.getConnection(url);
        }
        action.run(connection);
        idle.push(connection);
    }

    private PgaqConnectionFactory factory() {
        return new PgaqConnectionFactory(url + "&ApplicationName=conformance" + NUMBER.incrementAndGet());
    }

    private static String option(String url, String name) {
        for (String pair : url.substring(url.indexOf('?') + 1).split("&")) {
            if (pair.startsWith(name + "=")) {
                return pair.substring(name.length() + 1);
            }
        }
        throw new IllegalStateException("pgaq.url has no option " + name);
    }

    @Override
    public String name() {
        return "pgaq";
    }

    @Override
    public ConnectionFactory connectionFactory() {
        return factory();
    }

    @Override
    public ConnectionFactory connectionFactory(String clientId) {
        PgaqConnectionFactory factory = factory();
        factory.setClientId(clientId);
        return factory;
    }

    @Override
    public QueueConnectionFactory queueConnectionFactory() {
        return factory();
    }

    @Override
    public TopicConnectionFactory topicConnectionFactory() {
        return factory();
    }

    @Override
    public XAConnectionFactory xaConnectionFactory() {
        return new PgaqXAConnectionFactory(url);
    }

    @Override
    public String user() {
        return option(url, "user");
    }

    @Override
    public String password() {
        return option(url, "password");
    }

    /** A server can trust all connections from its own machine; that of ./test jms asks for the password. */
    @Override
    public boolean checksPasswords() {
        // the driver prefers a password of the URL
        String plain = url.replaceFirst("\\?.*", "");
        try {
            DriverManager.getConnection(plain, user(), "wrong").close();
            return false;
        } catch (SQLException e) {
            return true;
        }
    }

    private PgaqAdmin.Settings settings() {
        return new PgaqAdmin.Settings().maxRetries(deliveryLimit() - 1).retryDelay(Duration.ZERO);
    }

    @Override
    public void createQueue(String name) throws Exception {
        administer(connection -> PgaqAdmin.createQueue(connection, name, settings()));
    }

    @Override
    public void dropQueue(String name) throws Exception {
        administer(connection -> PgaqAdmin.drop(connection, name, true));
    }

    @Override
    public void createTopic(String name) throws Exception {
        administer(connection -> PgaqAdmin.createTopic(connection, name, settings()));
    }

    @Override
    public void dropTopic(String name) throws Exception {
        administer(connection -> PgaqAdmin.drop(connection, name, true));
    }

    @Override
    public boolean kill(Connection connection) throws Exception {
        String application;
        try (Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
            application = applicationOf(((PgaqSession) session).getConnection());
        }
        administer(admin -> {
            try (PreparedStatement statement = admin.prepareStatement(
                    "SELECT pg_terminate_backend(pid, 10000) " + "FROM pg_stat_activity WHERE application_name = ?")) {
                statement.setString(1, application);
                statement.execute();
            }
        });
        return true;
    }

    private static String applicationOf(java.sql.Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SHOW application_name")) {
            row.next();
            return row.getString(1);
        }
    }

    @Override
    public void close() throws Exception {
        for (java.sql.Connection connection : idle) {
            connection.close();
        }
    }
}
