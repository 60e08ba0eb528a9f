package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Source;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Takes, reads, and waits for messages. */
final class Receiver {

    private static final String BODY = ", (m.payload).type, (m.payload).headers, (m.payload).properties, "
            + "(m.payload).property_types, (m.payload).text, (m.payload).bytes ";

    private static final String TAKE = "SELECT m.msgid, m.receipt, m.attempts, m.priority, m.enqueue_time, "
            + "m.ready_at, m.expires_at, m.sender" + BODY
            + "FROM aq.dequeue_full(?, NULL::aq.jms_message, consumer => ?, max_messages => ?, condition => ?, "
            + "lease => make_interval(secs => ?)) AS m";

    private static final String BROWSE = "SELECT m.msgid, 0, m.attempts, m.priority, m.enqueue_time, "
            + "NULL, NULL, NULL" + BODY
            + "FROM aq.browse(?, NULL::aq.jms_message, consumer => ?, max_messages => ?, condition => ?, "
            + "after => ?) AS m";

    private static final String WAIT = "CALL aq.listen(?::text[], ?::text[], make_interval(secs => ?), NULL, NULL)";

    private static final String PAUSE = "SELECT pg_sleep(0.02)";

    private final Connection connection;
    private final Statements statements;

    Receiver(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    /** Takes messages of the source, without waiting. */
    List<Delivery> take(Source source, Duration lease) throws SQLException {
        PreparedStatement statement = statements.get(TAKE);
        arguments(statement, source);
        statement.setObject(5, lease == null ? null : SqlStore.seconds(lease), Types.DOUBLE);
        return deliveries(statement);
    }

    List<Delivery> browse(Source source, UUID after) throws SQLException {
        PreparedStatement statement = statements.get(BROWSE);
        arguments(statement, source);
        statement.setObject(5, after, Types.OTHER);
        return deliveries(statement);
    }

    /** Waits until one of the queues has a message, or for a moment if there are conditions. */
    void await(List<Source> sources, double seconds) throws SQLException {
        if (sources.stream().anyMatch(source -> source.condition() != null)) {
            SqlStore.run(statements.get(PAUSE));
            return;
        }
        PreparedStatement statement = statements.get(WAIT);
        statement.setArray(1,
                connection.createArrayOf("text", sources.stream().map(Source::queue).toArray(String[]::new)));
        statement.setArray(2,
                connection.createArrayOf("text", sources.stream().map(Source::consumer).toArray(String[]::new)));
        statement.setDouble(3, seconds);
        SqlStore.run(statement);
    }

    private static void arguments(PreparedStatement statement, Source source) throws SQLException {
        statement.setString(1, source.queue());
        statement.setString(2, source.consumer());
        statement.setInt(3, source.max());
        statement.setString(4, source.condition());
    }

    private static List<Delivery> deliveries(PreparedStatement statement) throws SQLException {
        List<Delivery> deliveries = new ArrayList<>();
        try (ResultSet row = statement.executeQuery()) {
            while (row.next()) {
                Body body = new Body(row.getString(9), row.getString(10), row.getString(11), row.getString(12),
                        row.getString(13), row.getBytes(14));
                deliveries.add(new Delivery(row.getObject(1, UUID.class), row.getLong(2), row.getInt(3), row.getInt(4),
                        milliseconds(row.getTimestamp(5)), milliseconds(row.getTimestamp(6)),
                        milliseconds(row.getTimestamp(7)), row.getString(8), body));
            }
        }
        return deliveries;
    }

    private static long milliseconds(Timestamp time) {
        return time == null ? 0 : time.getTime();
    }
}
