package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqAdmin.Privilege;
import io.github.pgaq.jms.PgaqAdmin.Settings;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class PgaqAdminTest extends ServerTest {

    private Connection connection;
    private final String name = newName("admin");

    @BeforeEach
    void open() throws SQLException {
        connection = connect();
    }

    @AfterEach
    void close() throws SQLException {
        connection.close();
    }

    private void send(String text) throws SQLException {
        execute("SELECT aq.enqueue('" + name + "', ROW('text', '{}', NULL, NULL, '" + text
                + "', NULL)::aq.jms_message)");
    }

    private String setting(String column) throws SQLException {
        return value("SELECT " + column + " FROM aq.queues WHERE queue_name LIKE '%" + name + "'");
    }

    private void assertState(String state, org.junit.jupiter.api.function.Executable call) {
        assertEquals(state, assertThrows(SQLException.class, call).getSQLState());
    }

    @Test
    void queuesAndTopicsAreCreatedAndDropped() throws SQLException {
        assertEquals(name, PgaqAdmin.createQueue(connection, name));
        assertEquals("f", setting("multiple_consumers"));
        assertState("42710", () -> PgaqAdmin.createQueue(connection, name));
        PgaqAdmin.createQueue(connection, name, new Settings().ifNotExists());
        send("a");
        assertState("55000", () -> PgaqAdmin.drop(connection, name, false));
        PgaqAdmin.drop(connection, name, true);
        assertState("42704", () -> PgaqAdmin.drop(connection, name, true));
        PgaqAdmin.createTopic(connection, name);
        assertEquals("t", setting("multiple_consumers"));
        PgaqAdmin.drop(connection, name, false);
    }

    @Test
    void settingsAreTheServers() throws SQLException {
        PgaqAdmin.createTopic(
                connection,
                name,
                new Settings()
                        .maxRetries(7)
                        .retryDelay(Duration.ofMillis(1500))
                        .retryDelayFactor(2)
                        .retryDelayMax(Duration.ofHours(30))
                        .retention(Duration.ofSeconds(5))
                        .shards(3)
                        .comment("it's")
                        .exceptionQueue("none"));
        assertEquals("7", setting("max_retries"));
        assertEquals("00:00:01.5", setting("retry_delay"));
        assertEquals("2", setting("retry_delay_factor"));
        assertEquals("30:00:00", setting("retry_delay_max"));
        assertEquals("00:00:05", setting("retention"));
        assertEquals("3", setting("shards"));
        assertEquals("it's", setting("comment"));
        PgaqAdmin.drop(connection, name, true);
        PgaqAdmin.createQueue(connection, name, new Settings().maxRetries(-1));
        assertEquals(null, setting("max_retries"));
        PgaqAdmin.drop(connection, name, true);
    }

    @Test
    void aLimitOfRetriesThatIsTooHighIsRefusedInWords() {
        SQLException error = assertThrows(
                SQLException.class, () -> PgaqAdmin.createQueue(connection, name, new Settings().maxRetries(256)));
        assertTrue(error.getMessage().contains("must be at most 255, not 256"), error.getMessage());
    }

    @Test
    void theyArePartOfTheTransaction() throws SQLException {
        connection.setAutoCommit(false);
        PgaqAdmin.createQueue(connection, name);
        connection.rollback();
        assertEquals("0", value("SELECT count(*) FROM aq.queues WHERE queue_name LIKE '%" + name + "'"));
    }

    @Test
    void privilegesAreGrantedAndRevoked() throws SQLException {
        String role = newName("role");
        execute("CREATE ROLE " + role);
        PgaqAdmin.createTopic(connection, name);
        PgaqAdmin.grant(connection, name, role, Privilege.ENQUEUE, Privilege.SUBSCRIBE);
        assertEquals("enqueue,subscribe", privileges(role));
        PgaqAdmin.revoke(connection, name, role, Privilege.ENQUEUE);
        assertEquals("subscribe", privileges(role));
        PgaqAdmin.grant(connection, name, role);
        assertEquals("dequeue,enqueue,subscribe", privileges(role));
        PgaqAdmin.revoke(connection, name, role);
        assertEquals(null, privileges(role));
        PgaqAdmin.grantSubscription(connection, name, "client.sub", role);
        PgaqAdmin.revokeSubscription(connection, name, "client.sub", role);
        PgaqAdmin.drop(connection, name, true);
        execute("DROP ROLE " + role);
    }

    private String privileges(String role) throws SQLException {
        return value("SELECT string_agg(DISTINCT privilege, ',' ORDER BY privilege) FROM aq.privileges"
                + " WHERE queue_name LIKE '%" + name + "' AND grantee::text = '" + role + "'");
    }

    @Test
    void queuesAreStoppedAndStarted() throws SQLException {
        PgaqAdmin.createQueue(connection, name);
        PgaqAdmin.stop(connection, name, true, false);
        assertThrows(SQLException.class, () -> send("a"));
        PgaqAdmin.start(connection, name);
        send("a");
        PgaqAdmin.drop(connection, name, true);
    }

    @Test
    void messagesArePurged() throws SQLException {
        PgaqAdmin.createQueue(connection, name);
        send("a");
        send("b");
        send("c");
        assertEquals(1, PgaqAdmin.purge(connection, name, null, "tab.payload.text = 'b'"));
        assertEquals(2, PgaqAdmin.purge(connection, name));
        assertEquals(0, PgaqAdmin.purge(connection, name));
        PgaqAdmin.drop(connection, name, false);
    }

    @Test
    void deadLettersAreRedriven() throws SQLException {
        PgaqAdmin.createQueue(connection, name, new Settings().maxRetries(0));
        for (String text : new String[] {"a", "b", "c"}) {
            send(text);
            connection.setAutoCommit(false);
            try (var statement = connection.createStatement()) {
                statement.execute("SELECT aq.dequeue('" + name + "', NULL::aq.jms_message)");
            }
            connection.rollback();
            connection.setAutoCommit(true);
        }
        // the worker moves them
        awaitValue("3", "SELECT count(*) FROM aq.dead_letters WHERE queue_name LIKE '%" + name + "'");
        assertEquals(1, PgaqAdmin.redrive(connection, name, 1, null));
        assertEquals(1, PgaqAdmin.redrive(connection, name, -1, "tab.payload.text = 'c'"));
        assertEquals(1, PgaqAdmin.redrive(connection, name));
        assertEquals(3, PgaqAdmin.purge(connection, name));
        PgaqAdmin.drop(connection, name, true);
    }
}
