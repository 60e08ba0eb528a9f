package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.List;
import java.util.UUID;

/** Takes and reads messages. */
final class Receiver {

    private static final String RECEIVE = "CALL aq_jms.receive(?::text[], ?::text[], ?::text[], ?::int4[], "
            + "make_interval(secs => ?), make_interval(secs => ?), max_bytes => ?, messages => NULL)";

    private static final String ACKNOWLEDGE_AND_RECEIVE = "CALL aq_jms.receive(?::text[], ?::text[], ?::text[], "
            + "?::int4[], make_interval(secs => ?), make_interval(secs => ?), ?::text[], ?::text[], ?::uuid[], "
            + "?::int8[], ?, NULL)";

    private static final String BROWSE = "SELECT aq_jms.browse(?, ?, ?, ?, ?, ?)";

    private final Connection connection;
    private final Statements statements;
    private List<Source> sources = List.of();
    private Array[] arrays;
    private List<Lease> busy = List.of();

    Receiver(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    /** One call of the server; timeout in seconds, null: no limit. */
    Received receive(List<Source> from, Double timeout, Duration lease, List<Lease> acknowledge) throws SQLException {
        PreparedStatement statement = statements.get(acknowledge.isEmpty() ? RECEIVE : ACKNOWLEDGE_AND_RECEIVE);
        prepare(from);
        for (int i = 0; i < arrays.length; i++) {
            statement.setArray(i + 1, arrays[i]);
        }
        statement.setObject(5, timeout, Types.DOUBLE);
        statement.setObject(6, lease == null ? null : SqlStore.seconds(lease), Types.DOUBLE);
        if (!acknowledge.isEmpty()) {
            Leases.arguments(connection, statement, 7, acknowledge);
        }
        limit(
                statement,
                acknowledge.isEmpty() ? 7 : 11,
                from.isEmpty() ? 0 : from.get(0).maxBytes());
        Rows rows = rows(statement);
        Leases.Undone undone = rows.undone(acknowledge);
        busy = undone.busy;
        return new Received(rows.source(), rows.messages(), undone.ended);
    }

    /** The leases that the last call has not acknowledged, because another transaction uses them. It did not wait. */
    List<Lease> busy() {
        return busy;
    }

    List<Delivery> browse(Source source, UUID after) throws SQLException {
        PreparedStatement statement = statements.get(BROWSE);
        statement.setString(1, source.queue());
        statement.setString(2, source.consumer());
        statement.setString(3, source.condition());
        statement.setObject(4, after, Types.OTHER);
        statement.setInt(5, source.max());
        limit(statement, 6, source.maxBytes());
        Rows rows = rows(statement);
        rows.undone(List.of());
        rows.source();
        return rows.messages();
    }

    static void limit(PreparedStatement statement, int parameter, int bytes) throws SQLException {
        statement.setObject(parameter, bytes == 0 ? null : bytes, Types.INTEGER);
    }

    /** A session calls for the same sources over and over. */
    private void prepare(List<Source> from) throws SQLException {
        if (arrays == null || !sources.equals(from)) {
            arrays = new Array[] {
                array("text", from.stream().map(Source::queue).toArray(String[]::new)),
                array("text", from.stream().map(Source::consumer).toArray(String[]::new)),
                array("text", from.stream().map(Source::condition).toArray(String[]::new)),
                array("int4", from.stream().map(Source::max).toArray(Integer[]::new))
            };
            sources = List.copyOf(from);
        }
    }

    private Array array(String type, Object[] values) throws SQLException {
        return connection.createArrayOf(type, values);
    }

    static Rows rows(PreparedStatement statement) throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            return new Rows(row.getBytes(1));
        }
    }
}
