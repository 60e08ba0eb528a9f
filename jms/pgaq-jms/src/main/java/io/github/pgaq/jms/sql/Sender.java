package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Outgoing;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/** Enqueues messages, however many in one round trip. */
final class Sender {

    private static final String OPTIONS = "priority => ?, delay => make_interval(secs => ?), "
            + "expiration => make_interval(secs => ?), correlation => ?, producer => ?, delivery_mode => ?)";

    private static final String ONE = "SELECT aq.enqueue(?, "
            + "ROW(?, ?::jsonb, ?::jsonb, ?::jsonb, ?, ?)::aq.jms_message, " + OPTIONS;

    /** Messages of one queue with the same options; the rows of unnest come in its order. */
    private static final String ALIKE = "SELECT aq.enqueue_array(?, ARRAY("
            + "SELECT ROW(b.type, b.headers::jsonb, b.properties::jsonb, b.property_types::jsonb, b.text, b.bytes)"
            + "::aq.jms_message FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bytea[]) "
            + "AS b(type, headers, properties, property_types, text, bytes)), " + OPTIONS;

    /** Any messages; the calls are made in the order of the rows. */
    private static final String ANY = "SELECT count(aq.enqueue(m.queue, ROW(m.type, m.headers::jsonb, "
            + "m.properties::jsonb, m.property_types::jsonb, m.text, m.bytes)::aq.jms_message, "
            + "priority => m.priority, delay => make_interval(secs => m.delay), "
            + "expiration => make_interval(secs => m.expiration), correlation => m.correlation, "
            + "producer => m.producer, delivery_mode => m.mode)) FROM unnest(?::text[], ?::text[], ?::text[], "
            + "?::text[], ?::text[], ?::text[], ?::bytea[], ?::int4[], ?::float8[], ?::float8[], ?::text[], "
            + "?::text[], ?::text[]) AS m(queue, type, headers, properties, property_types, text, bytes, priority, "
            + "delay, expiration, correlation, producer, mode)";

    private final Connection connection;
    private final Statements statements;

    Sender(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    void send(List<Outgoing> messages) throws SQLException {
        if (messages.isEmpty()) {
            return;
        }
        if (messages.size() == 1) {
            one(messages.get(0));
        } else if (messages.stream().allMatch(m -> alike(m, messages.get(0)))) {
            alike(messages);
        } else {
            any(messages);
        }
    }

    private void one(Outgoing message) throws SQLException {
        PreparedStatement statement = statements.get(ONE);
        Body body = message.body();
        statement.setString(1, message.queue());
        statement.setString(2, body.type());
        statement.setString(3, body.headers());
        statement.setString(4, body.properties());
        statement.setString(5, body.propertyTypes());
        statement.setString(6, body.text());
        statement.setBytes(7, body.bytes());
        options(statement, 8, message);
        SqlStore.run(statement);
    }

    private void alike(List<Outgoing> messages) throws SQLException {
        PreparedStatement statement = statements.get(ALIKE);
        statement.setString(1, messages.get(0).queue());
        bodies(statement, 2, messages);
        options(statement, 8, messages.get(0));
        SqlStore.run(statement);
    }

    private void any(List<Outgoing> messages) throws SQLException {
        PreparedStatement statement = statements.get(ANY);
        statement.setArray(1, texts(messages, Outgoing::queue));
        bodies(statement, 2, messages);
        statement.setArray(8, array("int4", messages.stream().map(Outgoing::priority).toArray(Integer[]::new)));
        statement.setArray(9, array("float8", messages.stream().map(m -> seconds(m.delay())).toArray(Double[]::new)));
        statement.setArray(10,
                array("float8", messages.stream().map(m -> seconds(m.expiration())).toArray(Double[]::new)));
        statement.setArray(11, texts(messages, Outgoing::correlation));
        statement.setArray(12, texts(messages, Outgoing::producer));
        statement.setArray(13, texts(messages, Sender::mode));
        SqlStore.run(statement);
    }

    private static void options(PreparedStatement statement, int first, Outgoing message) throws SQLException {
        statement.setInt(first, message.priority());
        statement.setObject(first + 1, seconds(message.delay()), Types.DOUBLE);
        statement.setObject(first + 2, seconds(message.expiration()), Types.DOUBLE);
        statement.setString(first + 3, message.correlation());
        statement.setString(first + 4, message.producer());
        statement.setString(first + 5, mode(message));
    }

    private void bodies(PreparedStatement statement, int first, List<Outgoing> messages) throws SQLException {
        statement.setArray(first, texts(messages, m -> m.body().type()));
        statement.setArray(first + 1, texts(messages, m -> m.body().headers()));
        statement.setArray(first + 2, texts(messages, m -> m.body().properties()));
        statement.setArray(first + 3, texts(messages, m -> m.body().propertyTypes()));
        statement.setArray(first + 4, texts(messages, m -> m.body().text()));
        byte[][] bytes = messages.stream().map(m -> m.body().bytes()).toArray(byte[][]::new);
        statement.setArray(first + 5, isEmpty(bytes) ? null : array("bytea", bytes));
    }

    /** Null if all are null: unnest fills the column with nulls. */
    private Array texts(List<Outgoing> messages, Function<Outgoing, String> field) throws SQLException {
        String[] texts = messages.stream().map(field).toArray(String[]::new);
        return isEmpty(texts) ? null : array("text", texts);
    }

    private static boolean isEmpty(Object[] values) {
        return Arrays.stream(values).allMatch(Objects::isNull);
    }

    private Array array(String type, Object[] values) throws SQLException {
        return connection.createArrayOf(type, values);
    }

    private static boolean alike(Outgoing one, Outgoing other) {
        return one.queue().equals(other.queue()) && one.priority() == other.priority()
                && one.delay() == other.delay() && one.expiration() == other.expiration()
                && one.buffered() == other.buffered() && Objects.equals(one.correlation(), other.correlation())
                && Objects.equals(one.producer(), other.producer());
    }

    private static Double seconds(long milliseconds) {
        return milliseconds == 0 ? null : milliseconds / 1000.0;
    }

    private static String mode(Outgoing message) {
        return message.buffered() ? "buffered" : null;
    }
}
