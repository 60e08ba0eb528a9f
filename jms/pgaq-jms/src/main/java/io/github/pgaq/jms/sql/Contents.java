package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Content;
import io.github.pgaq.jms.store.Outgoing;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.UUID;

/** Writes and reads the bodies of large messages, a chunk at a time. */
final class Contents {

    /** SQLSTATE: input/output error. */
    private static final String IO_ERROR = "58030";

    private static final String ENQUEUE =
            "SELECT (aq_jms.enqueue(?, ARRAY[ROW(?, ?::jsonb, ?::jsonb, ?::jsonb, NULL, NULL)"
                    + "::aq.jms_message], priority => ?, delay => make_interval(secs => ?), "
                    + "expiration => make_interval(secs => ?), correlation => ?, producer => ?, affinity => ?))[1]";

    private static final String WRITE = "SELECT aq_jms.write_chunk(?, ?, ?, ?)";

    private static final String READ = "SELECT aq_jms.read_chunk(?, ?, ?, ?)";

    private final Statements statements;

    Contents(Statements statements) {
        this.statements = statements;
    }

    /** Enqueues a message and writes its content, in the open transaction. */
    void send(Outgoing message) throws SQLException {
        PreparedStatement statement = statements.get(ENQUEUE);
        Body body = message.body();
        statement.setString(1, message.queue());
        statement.setString(2, body.type());
        statement.setString(3, body.headers());
        statement.setString(4, body.properties());
        statement.setString(5, body.propertyTypes());
        statement.setInt(6, message.priority());
        statement.setObject(7, Payloads.seconds(message.delay()), Types.DOUBLE);
        statement.setObject(8, Payloads.seconds(message.expiration()), Types.DOUBLE);
        statement.setString(9, message.correlation());
        statement.setString(10, message.producer());
        statement.setString(11, message.affinity());
        UUID msgid;
        try (ResultSet row = statement.executeQuery()) {
            msgid = row.next() ? row.getObject(1, UUID.class) : null;
        }
        // null: no subscriber wants it
        if (msgid != null) {
            write(message.queue(), msgid, body.content());
        }
    }

    private void write(String queue, UUID msgid, Content content) throws SQLException {
        byte[] chunk = new byte[Content.CHUNK];
        PreparedStatement statement = statements.get(WRITE);
        try (InputStream in = content.open()) {
            int number = 0;
            int count = in.readNBytes(chunk, 0, chunk.length);
            do {
                statement.setString(1, queue);
                statement.setObject(2, msgid);
                statement.setInt(3, number++);
                statement.setBytes(4, count == chunk.length ? chunk : java.util.Arrays.copyOf(chunk, count));
                SqlStore.run(statement);
                count = in.readNBytes(chunk, 0, chunk.length);
            } while (count > 0);
        } catch (IOException e) {
            throw new SQLException("could not read the body of a message: " + e.getMessage(), IO_ERROR, e);
        } finally {
            statement.clearParameters();
        }
    }

    /** Reads a content; of a message that does not exist, nothing. */
    void read(String queue, String consumer, UUID msgid, OutputStream to) throws SQLException {
        PreparedStatement statement = statements.get(READ);
        for (int number = 0; ; number++) {
            statement.setString(1, queue);
            statement.setString(2, consumer);
            statement.setObject(3, msgid);
            statement.setInt(4, number);
            byte[] chunk;
            try (ResultSet row = statement.executeQuery()) {
                chunk = row.next() ? row.getBytes(1) : null;
            }
            if (chunk == null) {
                return;
            }
            try {
                to.write(chunk);
            } catch (IOException e) {
                throw new SQLException("could not store the body of a message: " + e.getMessage(), IO_ERROR, e);
            }
            if (chunk.length < Content.CHUNK) {
                return;
            }
        }
    }
}
