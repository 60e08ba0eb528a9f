package io.github.pgaq.jms;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeAll;

/**
 * A test that needs a server: {@code ./test jms} starts one, and by hand it is {@code mvn -Dpgaq.url=URL test}, with
 * the URL of a database, such as {@code jdbc:postgresql:mine?user=me}, in which the tests create what they need.
 */
public abstract class ServerTest {
    /** Ends a test that hangs: no claim of a test, and long enough for a busy machine. */
    public static final int SAFETY_SECONDS = 60;

    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final long RUN = System.nanoTime() / 1000 % 100_000_000;
    private static String failure;
    private static boolean prepared;

    /** The JDBC URL of the server. */
    public static String url() {
        String url = System.getProperty("pgaq.url");
        if (url == null || url.isEmpty()) {
            throw new IllegalStateException(
                    "this test needs a server: run ./test jms, or mvn -Dpgaq.url=JDBC-URL test");
        }
        return url;
    }

    /** A new connection to it. */
    public static Connection connect() throws SQLException {
        return DriverManager.getConnection(url());
    }

    @BeforeAll
    static synchronized void prepareServer() {
        if (!prepared) {
            prepared = true;
            try {
                execute("CREATE EXTENSION IF NOT EXISTS pgaq");
            } catch (SQLException e) {
                failure = "the server at " + url() + " cannot be used: " + e.getMessage();
            }
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
    }

    /** A name that no other test uses. */
    public static String newName(String what) {
        return what + "_" + RUN + "_" + NUMBER.incrementAndGet();
    }

    /** Creates a queue for Jakarta Messaging, whose failed messages are redelivered at once; returns its name. */
    public static String newQueue() throws SQLException {
        return create(newName("queue"), false);
    }

    /** Creates a topic. */
    public static String newTopic() throws SQLException {
        return create(newName("topic"), true);
    }

    private static String create(String name, boolean topic) throws SQLException {
        execute("SELECT aq.create_queue('" + name + "', 'aq.jms_message', multiple_consumers => " + topic
                + ", retry_delay => '0')");
        return name;
    }

    /** Executes a statement on a connection of its own. */
    public static void execute(String sql) throws SQLException {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** The first column of the first row of a query, as text. */
    public static String value(String sql) throws SQLException {
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : null;
        }
    }

    /** Waits until the query's value is the expected one. */
    public static void awaitValue(String expected, String sql) throws SQLException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        String found = value(sql);
        while (!expected.equals(found)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("expected " + expected + ", found " + found + ": " + sql);
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
            found = value(sql);
        }
    }
}
