package io.github.pgaq.jms.sql;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.pgaq.jms.ServerTest;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The limits of the server for statements and sessions, and what a pool has set on its connections. */
@Timeout(60)
class ServerLimitsTest extends ServerTest {
    private static final Duration LEASE = Duration.ofMinutes(1);
    /** Long enough for the first call of a session on a busy machine. */
    private static final String LIMIT = "statement_timeout = '2s'";

    private static final Duration SHORT = Duration.ofMillis(100);
    private static final Duration LONGER = Duration.ofMillis(2500);

    private String queue;

    @BeforeEach
    void create() throws SQLException {
        queue = newQueue();
    }

    private static void set(Connection connection, String setting) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET " + setting);
        }
    }

    private static String show(Connection connection, String parameter) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SHOW " + parameter)) {
            row.next();
            return row.getString(1);
        }
    }

    private Received receive(SqlStore store, Duration wait) throws SQLException {
        return store.receive(List.of(new Source(queue, null, null, 1)), wait, LEASE, List.of());
    }

    private Outgoing message() {
        return new Outgoing(queue, new Body("text", "{}", null, null, "a", null), 4, 0, 0, null, null, null);
    }

    private interface Preparation {
        void of(Connection connection) throws SQLException;
    }

    /** The source of what comes in a wait that is longer than the limit, on a connection that was prepared. */
    private int longWait(Preparation preparation) throws SQLException {
        try (Connection connection = connect()) {
            SqlStore store = new SqlStore(connection, false);
            receive(store, SHORT);
            set(connection, LIMIT);
            preparation.of(connection);
            return receive(store, LONGER).source();
        }
    }

    @Test
    void aWaitOutlastsStatementTimeout() throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        try {
            List<Future<Integer>> waits = threads.invokeAll(List.of(
                    () -> longWait(connection -> {}),
                    // as the first statement of a transaction, and behind another one
                    () -> longWait(connection -> connection.setAutoCommit(false)),
                    () -> longWait(connection -> {
                        connection.setAutoCommit(false);
                        set(connection, "application_name = 'pgaq-jms'");
                    })));
            for (Future<Integer> wait : waits) {
                assertEquals(-1, wait.get());
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void statementTimeoutAppliesToOtherCalls() throws SQLException {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            SqlStore store = new SqlStore(connection, false);
            receive(store, SHORT);
            set(connection, LIMIT);
            receive(store, SHORT);
            SQLException e = assertThrows(SQLException.class, () -> statement.execute("SELECT pg_sleep(50)"));
            assertEquals("57014", e.getSQLState());
        }
    }

    @Test
    void aConnectionMayLieIdleForLong() throws SQLException {
        Connection connection = connect();
        set(connection, "idle_session_timeout = '1min'");
        SqlStore store = new SqlStore(connection, true);
        assertEquals("0", show(connection, "idle_session_timeout"));
        store.close();
    }

    @Test
    void aConnectionWithoutAutocommitCommitsWhatItSends() throws SQLException {
        Connection connection = connect();
        connection.setAutoCommit(false);
        SqlStore store = new SqlStore(connection, true);
        store.send(List.of(message()));
        try (Connection other = connect()) {
            assertEquals(
                    1, receive(new SqlStore(other, false), LONGER).messages().size());
        }
        store.close();
    }

    @Test
    void aPoolGetsItsConnectionAsItWas() throws SQLException {
        try (Connection connection = connect()) {
            set(connection, "idle_session_timeout = '1min'");
            connection.setAutoCommit(false);
            SqlStore store = new SqlStore(pooled(connection), true);
            store.send(List.of(message()));
            store.close();
            assertFalse(connection.getAutoCommit());
            assertEquals("1min", show(connection, "idle_session_timeout"));
        }
    }

    @Test
    void aPoolGetsItsConnectionAsItWasAlthoughItCannotBeClosed() throws SQLException {
        try (Connection connection = connect()) {
            set(connection, "idle_session_timeout = '1min'");
            SqlStore store = new SqlStore(pooled(connection), true);
            String temporary = store.createTemporary(false);
            execute("SELECT aq.drop_queue('" + temporary + "', force => true)");
            assertThrows(SQLException.class, store::close);
            assertEquals("1min", show(connection, "idle_session_timeout"));
        }
    }

    @Test
    void theServerEndsAConnectionWhoseMachineIsGone() throws SQLException {
        try (Connection connection = connect()) {
            String before = keepAlive(connection);
            SqlStore store = new SqlStore(pooled(connection), Duration.ofSeconds(30));
            assertEquals("15 3 5 30000", keepAlive(connection));
            store.close();
            assertEquals(before, keepAlive(connection));
            new SqlStore(pooled(connection), Duration.ofMillis(1)).close();
            assertEquals(before, keepAlive(connection));
        }
    }

    private static String keepAlive(Connection connection) throws SQLException {
        return String.join(
                " ",
                show(connection, "tcp_keepalives_idle"),
                show(connection, "tcp_keepalives_interval"),
                show(connection, "tcp_keepalives_count"),
                show(connection, "tcp_user_timeout"));
    }

    /** A connection that its pool keeps open. */
    private static Connection pooled(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                ServerLimitsTest.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
                    if (method.getName().equals("close")) {
                        return null;
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
