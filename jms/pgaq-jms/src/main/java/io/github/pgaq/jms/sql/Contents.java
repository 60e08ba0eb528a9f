package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Content;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;

/** Writes and reads the bodies of large messages, a chunk at a time. */
final class Contents {

    /** SQLSTATE: input/output error. */
    private static final String IO_ERROR = "58030";

    private static final String WRITE = "SELECT aq.jms_write_chunk(?, ?, ?, ?)";

    private static final String READ = "SELECT aq.jms_read_chunk(?, ?)";

    private final Statements statements;

    Contents(Statements statements) {
        this.statements = statements;
    }

    /** Writes a content, in the open transaction. */
    void write(String queue, Content content) throws SQLException {
        byte[] chunk = new byte[Content.CHUNK];
        PreparedStatement statement = statements.get(WRITE);
        try (InputStream in = content.open()) {
            int number = 0;
            int count = in.readNBytes(chunk, 0, chunk.length);
            do {
                statement.setString(1, queue);
                statement.setObject(2, content.id());
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

    /** Reads a content; of one that does not exist, nothing. */
    void read(UUID content, OutputStream to) throws SQLException {
        PreparedStatement statement = statements.get(READ);
        for (int number = 0;; number++) {
            statement.setObject(1, content);
            statement.setInt(2, number);
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
