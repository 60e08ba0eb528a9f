package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Outgoing;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.List;

/** Enqueues payloads of other types than {@code aq.jms_message}, with the properties of the server. */
final class Payloads {

    private static final String ENQUEUE = "SELECT aq_jms.enqueue(?, ?, priority => ?, "
            + "delay => make_interval(secs => ?), expiration => make_interval(secs => ?), correlation => ?, "
            + "producer => ?, affinity => ?, options => ";

    private static final String WITHOUT_GROUPS = ENQUEUE + "?::jsonb)";

    /** The group of a message, if it has one, is its key. */
    private static final String WITH_GROUPS = ENQUEUE
            + "(SELECT jsonb_agg(o || jsonb_build_object('key', o -> 'properties' -> 'JMSXGroupID') ORDER BY n)"
            + " FROM jsonb_array_elements(?::jsonb) WITH ORDINALITY AS e (o, n)))";

    private final Connection connection;
    private final Statements statements;

    Payloads(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    /** Enqueues messages of one queue with the same options, {@link Sender#alike}, in one call. */
    void send(List<Outgoing> messages) throws SQLException {
        String options = options(messages);
        PreparedStatement statement =
                statements.get(options.contains("\"JMSXGroupID\"") ? WITH_GROUPS : WITHOUT_GROUPS);
        Outgoing common = messages.get(0);
        boolean bytes = messages.stream().anyMatch(message -> message.body().bytes() != null);
        statement.setString(1, common.queue());
        statement.setArray(
                2,
                bytes
                        ? connection.createArrayOf(
                                "bytea",
                                messages.stream().map(m -> m.body().bytes()).toArray(byte[][]::new))
                        : connection.createArrayOf(
                                "text",
                                messages.stream().map(m -> m.body().text()).toArray(String[]::new)));
        statement.setInt(3, common.priority());
        statement.setObject(4, seconds(common.delay()), Types.DOUBLE);
        statement.setObject(5, seconds(common.expiration()), Types.DOUBLE);
        statement.setString(6, common.correlation());
        statement.setString(7, common.producer());
        statement.setString(8, common.affinity());
        statement.setString(9, options);
        try {
            SqlStore.run(statement);
        } finally {
            statement.clearParameters();
        }
    }

    /** 0: none. */
    static Double seconds(long milliseconds) {
        return milliseconds == 0 ? null : milliseconds / 1000.0;
    }

    private static String options(List<Outgoing> messages) {
        StringBuilder out = new StringBuilder();
        for (Outgoing message : messages) {
            out.append(out.length() == 0 ? "[" : ", ");
            out.append("{\"properties\": ").append(message.body().properties()).append('}');
        }
        return out.append(']').toString();
    }
}
